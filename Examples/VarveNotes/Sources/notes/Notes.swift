// The program `notes`, and its commands that write: `add` and `delete`.

import ArgumentParser
import Foundation
import Varve

@main struct Notes: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Keeps notes with photos, and shows them to others while you write.",
        subcommands: [Add.self, Delete.self, List.self, Show.self, Watch.self]
    )
}

struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Adds a note, or changes one.")

    @Argument(help: "The title. No two notes of a notebook have the same.") var title: String
    @Option(help: "The text.") var text: String?
    @Option(help: "A file, whose bytes are kept with the note.") var photo: String?
    @Flag(help: "Change the note with this title, do not add one.") var change = false
    @OptionGroup var library: Library

    @MainActor func run() async throws {
        try await library.open { context in
            let note = try change ? library.note(title, in: context) : newNote(in: context)
            if let text { note.text = text }
            if let photo {
                guard let bytes = try? Data(contentsOf: URL(filePath: photo)) else {
                    throw Failure("The photo \"\(photo)\" cannot be read.")
                }
                note.photo = try context.makeBlob(bytes, for: Note.columns.photo)
            }
            try context.save()
        }
    }

    private func newNote(in context: ManagedObjectContext) throws -> Note {
        let note = Note(in: context)
        note.title = title
        note.notebook = try library.existingNotebook(in: context) ?? newNotebook(in: context)
        return note
    }

    private func newNotebook(in context: ManagedObjectContext) -> Notebook {
        let notebook = Notebook(in: context)
        notebook.name = library.notebook
        return notebook
    }
}

struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Deletes a note and its photo.")

    @Argument(help: "The title of the note.") var title: String
    @OptionGroup var library: Library

    @MainActor func run() async throws {
        try await library.open { context in
            context.delete(try library.note(title, in: context))
            try context.save()
        }
    }
}
