// The examples of the article Durability.
#if Macros
import Foundation
import Testing
import Varve
import VarveTesting

@Suite("Guide: durability") struct DurabilityGuide {
    /// What an app keeps of a save whose outcome is unknown.
    final class Keeper { var commit: CommitIdentity? }

    @Test("A save of unknown outcome is told after the store was opened again")
    func unknown() throws {
        let disk = SimulatedDisk()
        let keeper = Keeper()
        func write() throws {
            let container = try PersistentContainer.openNow(on: disk, schema: AppSchema.self)
            let context = container.newContext()
            Note(in: context).title = "Bread"
            disk.setFault(SimulatedDisk.Fault(first: disk.calls + 1, count: 100))
            // Shown in Durability: unknown
            do {
                try context.save()
            } catch let error as StoreError where error.outcome == .unknown {
                keeper.commit = error.commit  // keep it, and open the store again
            }
            // End.
            try? container.closeNow(discardingEdits: true)
        }
        try write()
        disk.setFault(nil)
        let container = try PersistentContainer.openNow(on: disk, schema: AppSchema.self)
        let commit = try #require(keeper.commit)
        // Shown in Durability: outcome
        switch try container.outcome(of: commit) {
        case .present: print("It was saved.")
        case .absent: print("It was not, and never will be: save it again.")
        case .unknown: print("This opening cannot tell: look at the data.")
        }
        // End.
        let isThere = try container.outcome(of: commit) == .present
        #expect(try container.newContext().count(Note.all) == (isThere ? 1 : 0))
        #expect(try container.outcome(of: commit) != .unknown)
    }

    @Test("A store is looked at without writing to it") func looking() async throws {
        let place = try TemporaryStore()
        let writer = try await PersistentContainer.open(at: place.url, schema: AppSchema.self)
        try await writer.close()
        let url = place.url
        // Shown in Durability: reading
        let container = try await PersistentContainer.open(
            at: url,
            schema: AppSchema.self,
            options: ContainerOptions(isReadOnly: true)
        )
        // End.
        let context = container.newContext()
        _ = Note(in: context)
        #expect(code { try context.save() } == .readOnly)
        try await container.close(discardingEdits: true)
    }
}
#endif
