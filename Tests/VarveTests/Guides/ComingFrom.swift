// The examples of the articles Coming from Core Data, from SwiftData and from GRDB.
#if Macros
import Foundation
import Testing
import Varve
import VarveTesting

@Suite("Guide: coming from elsewhere") @MainActor struct ComingFromGuide {
    @Test("What a Core Data stack becomes") func coreData() async throws {
        let place = try TemporaryStore()
        let url = place.url
        // Shown in ComingFromCoreData: stack
        let container = try await PersistentContainer.open(at: url, schema: AppSchema.self)
        let request = Note.where { $0.title.contains("bread", ignoringCase: true) }
            .sorted { [$0.changed.descending] }
        let notes = try container.viewContext.fetchBatched(request, size: 20)

        try await container.performBackgroundTask { context in
            Note(in: context).title = "Rye bread"
            try context.save()
        }
        // End.
        #expect(notes.isEmpty)
        #expect(try container.newContext().count(request) == 1)
        try await container.close()
    }

    @Test("What a SwiftData model becomes") func swiftData() throws {
        let container = try notes()
        // Shown in ComingFromSwiftData: context
        let context = container.viewContext
        let note = Note(in: context)  // no insert(_:)
        note.title = "Bread"
        try context.save()  // never by itself

        let pinned = Note.where { $0.isPinned }.sorted { [$0.changed.descending] }
        let notes = try context.fetch(pinned)
        // End.
        #expect(notes.isEmpty)
        #expect(try context.count(Note.all) == 1)

        // Shown in ComingFromSwiftData: predicate
        let old = try FetchDescriptor(
            predicate: #Predicate<Note> { !$0.isPinned && $0.title.contains("ea") },
            sortBy: [SortDescriptor(\Note.changed, order: .reverse)]
        )
        let found = try context.fetch(old)
        // End.
        #expect(found.map(\.title) == ["Bread"])
    }

    @Test("What reads and writes of GRDB become") func grdb() async throws {
        let container = try notes("Bread")
        // Shown in ComingFromGRDB: write
        try await container.performBackgroundTask { context in
            for note in try context.fetch(Note.where { $0.title == "Bread" }) {
                note.isPinned = true
            }
            try context.save()
        }
        // End.

        // Shown in ComingFromGRDB: read
        let titles = try await container.performBackgroundTask { context in
            try context.fetch(Note.where { $0.isPinned }).map(\.title)
        }
        // End.
        #expect(titles == ["Bread"])

        let context = container.newContext()
        // Shown in ComingFromGRDB: rows
        try context.batchUpdate(Note.where { $0.title.hasPrefix("B") }) { row in
            row.isPinned = false
        }
        try context.batchDelete(Note.where { !$0.isPinned })
        // End.
        #expect(try container.newContext().count(Note.all) == 0)
    }
}
#endif
