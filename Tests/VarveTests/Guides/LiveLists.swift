// The examples of the article Live lists.
#if Macros
import Foundation
import Testing
import Varve

@Suite("Guide: live lists") struct LiveListsGuide {
    @MainActor @Test("A list and its values follow saves", .timeLimit(.minutes(10)))
    func following() async throws {
        let container = try notes("Bread", "Soup")
        let view = container.viewContext

        // Shown in LiveLists: list
        let list = try view.live(Note.all.sorted { [$0.title.ascending] })
        print(list.count)  // reads no row
        print(list.results.first?.title ?? "")
        // End.
        #expect(list.results.map(\.title) == ["Bread", "Soup"])

        // Shown in LiveLists: changes
        let observation = list.onChange { change in
            print(change.deleted.map(\.place.offset))  // in the list before
            print(change.inserted.map(\.place.offset))  // in the list now
            print(change.moved.map { ($0.from.offset, $0.to.offset) })
            print(change.updated.map(\.id))
        }
        // End.

        // Shown in LiveLists: sections
        let sectioned = try view.live(Note.all, sectionedBy: { $0.notebook.name })
        for section in sectioned.sections {
            print(section.value ?? "", section.count)
        }
        // End.
        #expect(sectioned.sections.map(\.count) == [2])

        // Shown in LiveLists: values
        let pinned = try view.liveCount(Note.where { $0.isPinned })
        let newest = try view.liveMaximum(Note.all) { $0.changed }
        print(pinned.value, newest.value ?? .distantPast)
        // End.
        #expect(pinned.value == 0 && newest.value != nil)

        // Shown in LiveLists: commits
        var commits = container.commits.makeAsyncIterator()
        try await container.performBackgroundTask(author: "import") { context in
            Note(in: context).title = "From elsewhere"
            try context.save()
        }
        if let commit = await commits.next() {
            print(commit.author, commit.ids(of: Note.self, .inserted).count)
        }
        // End.

        let cheese = Note(in: view)
        cheese.title = "Cheese"
        cheese.isPinned = true

        // Shown in LiveLists: loop
        for await change in list.changes {
            print("commit \(change.commit?.rawValue ?? 0): \(change.count) objects")
            if change.inserted.count == 1 { break }
        }
        // End.
        #expect(list.results.contains { $0.title == "Cheese" })
        #expect(pinned.value == 1)

        // Shown in LiveLists: request
        list.descriptor = Note.where { $0.isPinned }
        // End.
        #expect(list.count == 1)
        observation.cancel()
    }
}
#endif
