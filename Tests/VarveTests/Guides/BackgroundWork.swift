// The examples of the article Background work.
#if Macros
import Foundation
import Testing
import Varve

@Suite("Guide: background work") @MainActor struct BackgroundWorkGuide {
    @Test("Tasks give back values, IDs and snapshots") func tasks() async throws {
        let container = try notes()
        let titles = ["Bread", "Soup"]

        // Shown in BackgroundWork: task
        let ids = try await container.performBackgroundTask(author: "import") { context in
            let notes = titles.map { title in
                let note = Note(in: context)
                note.title = title
                return note
            }
            try context.save()
            return notes.map(\.id)
        }
        // End.

        // Shown in BackgroundWork: back
        let context = container.viewContext
        context.advance()
        let notes = try ids.compactMap { try context.existingObject(with: $0) }
        // End.
        #expect(notes.map(\.title) == titles)

        // Shown in BackgroundWork: snapshots
        let shown = try await container.performBackgroundTask { context in
            try context.fetch(Note.all.sorted { [$0.title.ascending] }).map { $0.snapshot() }
        }
        print(shown.map(\.title))
        // End.
        #expect(shown.map(\.title) == titles)
    }

    @Test("A body that waits takes what is downloaded") func waiting() async throws {
        let container = try notes()
        let download = AsyncThrowingStream<String, any Error> { stream in
            for title in ["Bread", "Soup"] { stream.yield(title) }
            stream.finish()
        }
        // Shown in BackgroundWork: waiting
        let count = try await container.withBackgroundContext(author: "download") { context in
            for try await title in download {
                Note(in: context).title = title
            }
            try context.save()
            return try context.count(Note.all)
        }
        // End.
        #expect(count == 2)
    }

    @Test("Imports, contexts that live on, and cancelling") func longWork() async throws {
        let container = try notes()
        let lines = (0..<1_000).map { "line \($0)" }

        // Shown in BackgroundWork: import
        let result = try await container.performBackgroundTask(author: "import") { context in
            try context.batchInsert(Note.self, lines, rowsPerCommit: 10_000) { row, line in
                row.title = line
            }
        }
        print(result.inserted)
        // End.

        let note = try #require(try container.viewContext.fetch(Note.all).first)
        // Shown in BackgroundWork: concurrently
        note.text = "edited during an import"
        try await container.viewContext.saveConcurrently()
        // End.
        #expect(try container.newContext().count(Note.where { $0.text != "" }) == 1)

        // Shown in BackgroundWork: actor
        let editor = container.newBackgroundContext(author: "editor")
        let id = try await editor.perform { context in
            let note = Note(in: context)
            note.title = "Draft"
            return note.id
        }
        try await editor.perform { context in
            try context.existingObject(with: id)?.text = "Once upon a time"
            try context.save()
        }
        // End.

        // Shown in BackgroundWork: cancel
        let counting = Task {
            try await container.performBackgroundTask { context in
                var letters = 0
                for note in try context.fetchBatched(Note.all) {
                    try context.checkCancellation()
                    letters += note.title.count
                }
                return letters
            }
        }
        // End.
        #expect(try await counting.value > 1_000)
        #expect(try container.newContext().count(Note.where { $0.text != "" }) == 2)
    }
}
#endif
