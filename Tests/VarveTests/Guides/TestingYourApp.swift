// The examples of the article Testing your app.
#if Macros
import Foundation
import Testing
import Varve
import VarveTesting

// Shown in TestingYourApp: suite
@Suite struct NoteTests {
    @Test func aNoteIsKept() async throws {
        let place = try TemporaryStore()
        do {
            let container = try await PersistentContainer.open(
                at: place.url,
                schema: AppSchema.self
            )
            let context = container.newContext()
            Note(in: context).title = "Bread"
            try context.save()
            try await container.close()
        }
        let container = try await PersistentContainer.open(at: place.url, schema: AppSchema.self)
        #expect(try container.newContext().count(Note.all) == 1)
        try await container.close()
    }
}
// End.

@Suite("Guide: testing your app") struct TestingYourAppGuide {
    @Test("A store in memory") func memory() throws {
        // Shown in TestingYourApp: memory
        let container = try PersistentContainer.inMemory(schema: AppSchema.self)
        // End.
        #expect(try container.newContext().count(Note.all) == 0)
    }

    @Test("A full disk") func full() throws {
        // Shown in TestingYourApp: full
        let disk = SimulatedDisk()
        let container = try PersistentContainer.openNow(on: disk, schema: AppSchema.self)
        let context = container.newContext()
        var random = SeededRandom(seed: 1)
        Note(in: context).text = Data(random.bytes(6_000_000)).base64EncodedString()
        disk.setFault(  // a disk of four megabytes
            SimulatedDisk.Fault(
                first: 1,
                count: .max,
                code: SimulatedDisk.noSpace,
                writesPast: 4 << 20
            )
        )
        let error = #expect(throws: StoreError.self) { try context.save() }
        #expect(error?.code == .diskFull)
        disk.setFault(nil)
        try context.save()  // the edits stood
        // End.
        #expect(!context.hasChanges)
    }

    @Test("A power cut") func powerCut() throws {
        // Shown in TestingYourApp: power
        let disk = SimulatedDisk()
        let container = try PersistentContainer.openNow(on: disk, schema: AppSchema.self)
        let context = container.newContext()
        Note(in: context).title = "Bread"
        try context.save()

        var random = SeededRandom(seed: 7)
        let after = SimulatedDisk.powerCut(disk.state, &random)
        let again = try PersistentContainer.openNow(on: after, schema: AppSchema.self)
        #expect(try again.newContext().count(Note.all) == 1)
        // End.
    }

    @Test("Reads are counted") func reads() throws {
        let container = try notes("Bread", "Soup", "Buns")
        // Shown in TestingYourApp: reads
        container.trimMemory()
        let context = container.newContext()
        let before = container.statistics.storePasses
        for note in try context.fetch(Note.all) { print(note.title) }
        #expect(container.statistics.storePasses - before == 1)
        // End.
    }
}
#endif
