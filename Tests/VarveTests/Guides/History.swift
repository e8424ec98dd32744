// The examples of the article History.
#if Macros
import Foundation
import Testing
import Varve

@Suite("Guide: history") struct HistoryGuide {
    @Test("What came after a token is told, once") func tokens() async throws {
        let container = try notes("Bread", "Soup")
        let saved = try JSONEncoder().encode([container.historyToken])
        try await container.performBackgroundTask(author: "sync") { context in
            Note(in: context).title = "Cheese"
            try context.save()
        }
        try await container.performBackgroundTask(author: "import") { context in
            for note in try context.fetch(Note.where { $0.title == "Soup" }) {
                context.delete(note)
            }
            try context.save()
        }
        var lines: [String] = []

        // Shown in History: loop
        var token = try JSONDecoder().decode([HistoryToken].self, from: saved)[0]
        let news = try container.history(after: token, notBy: ["sync"], changing: [Note.self])
        for try await commit in news {
            let changes = commit.changes(of: Note.self)
            for (id, last) in try commit.valuesBefore(of: changes.deleted) {
                lines.append("\(commit.author) deleted \(id): \(last.title)")
            }
            token = commit.token  // keep it when this commit was dealt with
        }
        // End.
        #expect(lines.count == 1 && lines[0].hasPrefix("import deleted Note/"))
        #expect(lines[0].hasSuffix("Soup"))
        #expect(try token == container.historyToken)

        // Shown in History: cursor
        var cursor = try container.history(after: token).makeCursor()
        while let commit = try cursor.next() { print(commit.number, commit.date) }
        // End.

        // Shown in History: expired
        do {
            _ = try container.history(after: token)
        } catch StoreError.Code.commitExpired, StoreError.Code.unknownCommit {
            token = try container.historyToken  // and read everything anew
        }
        // End.
    }

    @Test("The past is shown, and an object's versions are told") func past() throws {
        let container = try notes("Bread")
        let context = container.newContext(author: "ann")
        let note = try #require(try context.fetch(FetchDescriptor<Note>()).first)
        let yesterday = try container.historyToken
        note.title = "Brioche"
        try context.save()

        // Shown in History: past
        let past = try container.newContext(at: .token(yesterday))
        let old = try past.existingObject(with: note.id)
        print(old?.title ?? "", try past.count(FetchDescriptor<Note>()))
        // End.
        #expect(old?.title == "Bread")

        // Shown in History: versions
        for version in try container.versions(of: note.id, limit: 20) {
            print(version.commit.rawValue, version.author ?? "", version.changedProperties)
            print(version.previous?.title ?? "", "->", version.values?.title ?? "deleted")
        }
        // End.
        #expect(try container.versions(of: note.id).map(\.author) == ["ann", ""])
    }

    @Test("Commits and objects are taken back") func reverts() throws {
        let container = try notes("Bread", "Soup")
        let context = container.newContext()
        let yesterday = try container.historyToken
        let note = try #require(try context.fetch(Note.where { $0.title == "Bread" }).first)
        context.delete(note)
        let mistake = try #require(try context.save().commit)

        // Shown in History: revert
        try context.revert(commit: mistake)
        try context.save()
        // End.
        #expect(try context.count(FetchDescriptor<Note>()) == 2)

        // Shown in History: object
        let left = try context.revert(note.id, to: .token(yesterday))
        for edit in left { print(edit.object, edit.property ?? "", edit.reason) }
        // End.
        #expect(left.isEmpty && !context.hasChanges)
    }
}
#endif
