// The commands that read: `list` and `show`.

import ArgumentParser
import Foundation
import Varve

struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Lists the notes, oldest first.")

    @Option(help: "Only notes that have this in their title or text.") var search: String?
    @OptionGroup var library: Library

    @MainActor func run() async throws {
        try await library.open { context in
            var notes = Note.where { $0.notebook.name == library.notebook }
                .sorted { [$0.created.ascending] }
            if let search {
                notes = notes.where {
                    $0.title.contains(search, ignoringCase: true)
                        || $0.text.contains(search, ignoringCase: true)
                }
            }
            // In batches: a long list takes no more memory than a short one.
            for note in try context.fetchBatched(notes) { print(note.line) }
        }
    }
}

struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Shows a note.")

    @Argument(help: "The title of the note.") var title: String
    @Option(help: "Write the photo to this file.") var savePhoto: String?
    @OptionGroup var library: Library

    @MainActor func run() async throws {
        try await library.open { context in
            let note = try library.note(title, in: context)
            print(note.line)
            guard let savePhoto else { return }
            guard let photo = note.photo else { throw Failure("The note has no photo.") }
            // Now the bytes are read, and checked against the digest.
            try photo.readAll().write(to: URL(filePath: savePhoto))
        }
    }
}
