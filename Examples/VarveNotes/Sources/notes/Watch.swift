// The command `watch`: a process that reads along while others write.

import ArgumentParser
import Foundation
import Observation
import Varve

struct Watch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints what others add, change and delete, until it is interrupted."
    )

    @OptionGroup var library: Library

    @MainActor func run() async throws {
        // One that only reads holds up nobody who writes.
        try await library.open(isReadOnly: true) { context in
            guard let notebook = try library.existingNotebook(in: context) else {
                throw Failure("There is no notebook \"\(library.notebook)\" yet. Add a note first.")
            }
            let desk = Desk(notebook)
            var shown = desk.lines()
            say("watching \(shown.count) notes")
            // The view context follows the saves of other processes by itself. What the closure
            // reads of the objects is observed: it is called again when that has changed.
            for await notes in Observations({ desk.lines() }) {
                // Getters do not throw. What they could not read is listed here.
                if let failure = context.readFailures.first { throw failure.error }
                report(notes, after: shown)
                shown = notes
            }
        }
    }

    private func report(_ notes: [Note.ID: String], after shown: [Note.ID: String]) {
        for (id, line) in notes.sorted(by: { $0.key < $1.key }) where shown[id] != line {
            say("\(shown[id] == nil ? "added" : "changed") \(line)")
        }
        for (id, line) in shown.sorted(by: { $0.key < $1.key }) where notes[id] == nil {
            say("deleted \(line)")
        }
    }

    /// Like `print`, which keeps lines back while the output is a pipe.
    private func say(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
}

/// What is on the screen, so to speak. A context lets go of objects that nobody holds, and then
/// their changes are told to nobody: the desk holds the notes that it has shown.
@MainActor private final class Desk {
    private let notebook: Notebook
    private var notes: [Note] = []

    init(_ notebook: Notebook) { self.notebook = notebook }

    func lines() -> [Note.ID: String] {
        notes = Array(notebook.notes)
        return notes.reduce(into: [:]) { $0[$1.id] = $1.line }
    }
}
