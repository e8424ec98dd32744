// Where the notes are: options of every command, opening the store, and errors in plain words.

import ArgumentParser
import Foundation
import Varve

struct Library: ParsableArguments {
    @Option(help: "The file that keeps the notes.") var store = "notes.varve"
    @Option(help: "The notebook to work in.") var notebook = "Notes"

    /// Opens the store, does `work` and closes it. When something fails, the command ends and the
    /// container with it: what was saved before is on disk, what was not is gone.
    @MainActor func open(
        isReadOnly: Bool = false,
        _ work: @MainActor (ManagedObjectContext) async throws -> Void
    ) async throws {
        do {
            let container = try await PersistentContainer.open(
                at: URL(filePath: store),
                schema: NotesSchema.self,
                options: ContainerOptions(isReadOnly: isReadOnly)
            )
            try await work(container.viewContext)
            try await container.close()
        } catch let error as StoreError {
            throw Failure(error)
        }
    }

    /// The notebook, if there is one already.
    func existingNotebook(in context: ManagedObjectContext) throws -> Notebook? {
        try context.fetch(Notebook.where { $0.name == notebook }).first
    }

    /// The note with this title.
    func note(_ title: String, in context: ManagedObjectContext) throws -> Note {
        let notes = Note.where { $0.notebook.name == notebook && $0.title == title }
        if let note = try context.fetch(notes).first { return note }
        throw Failure("There is no note \"\(title)\" in the notebook \"\(notebook)\".")
    }
}

/// Why a command ends early. The argument parser prints the text after "Error:".
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }

    /// The codes that the user of this program can do something about. Others speak for themselves.
    init(_ error: StoreError) {
        description =
            switch error.code {
            case .notUnique: "There is a note with this title already."
            case .conflict: "Somebody else changed this note just now. Nothing was saved."
            case .busy: "Another program is writing to the notes. Please try again."
            case .diskFull: "The disk is full. Nothing was saved."
            case .missingFolder: "The folder for the notes does not exist. Make it first."
            case .notAStore: "The file does not keep notes."
            default: error.message
            }
    }
}
