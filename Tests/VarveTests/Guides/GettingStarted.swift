// The examples of the article Getting started.
#if Macros
import Foundation
import Testing
import Varve
import VarveTesting

@Suite("Guide: getting started") @MainActor struct GettingStartedGuide {
    // Shown in GettingStarted: model
    @Entity final class Note: ManagedObject {
        var title: String = ""
        var text: String = ""
        var changed: Date = .now
    }

    enum AppSchema: VersionedSchema {
        static let version = 1
        static var entities: [any ManagedObject.Type] { [Note.self] }
    }
    // End.

    // Shown in GettingStarted: place
    func storeURL() throws -> URL {
        let folder = try FileManager.default.url(
            for: .applicationSupportDirectory,
            in: .userDomainMask,
            appropriateFor: nil,
            create: true
        )
        return folder.appending(path: "notes.varve")
    }
    // End.

    @Test("Notes are made, saved, fetched, changed and deleted") func notes() async throws {
        let place = try TemporaryStore()
        // Not storeURL(), which is the user's own folder.
        let url = place.url
        // Shown in GettingStarted: open
        let container = try await PersistentContainer.open(at: url, schema: AppSchema.self)
        let context = container.viewContext
        // End.

        // Shown in GettingStarted: save
        let note = Note(in: context)
        note.title = "Bread"
        note.text = "500 g flour, 350 g water, 10 g salt"
        try context.save()
        // End.
        #expect(!context.hasChanges)

        // Shown in GettingStarted: fetch
        let recent = Note.where { $0.text.contains("flour") }
            .sorted { [$0.changed.descending] }
            .limit(20)
        for note in try context.fetch(recent) { print(note.title, note.changed) }
        // End.
        #expect(try context.fetch(recent).map(\.title) == ["Bread"])

        // Shown in GettingStarted: change
        note.text += ", 2 g yeast"
        note.changed = .now
        try context.save()

        context.delete(note)
        try context.save()
        // End.
        #expect(try context.count(Note.all) == 0)

        // Shown in GettingStarted: close
        try await container.close()
        // End.
    }
}
#endif
