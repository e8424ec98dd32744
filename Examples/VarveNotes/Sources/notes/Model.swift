// What the store keeps: notebooks and their notes. A note may have a photo.

import Foundation
import Varve

@Entity final class Notebook: ManagedObject {
    // Two processes may add the first note of a notebook at once: both notes come into one.
    #Unique<Notebook>([\.name], onConflict: .upsert)
    var name: String = ""
    @Relationship(inverse: \Note.notebook, deleteRule: .cascade) var notes: ToMany<Note>
}

@Entity final class Note: ManagedObject {
    #Unique<Note>([\.notebook, \.title])
    #Index<Note>([\.notebook, \.created])
    var title: String = ""
    var text: String = ""
    var created: Date = .now
    // The row holds length and digest only. A photo above the limit is a file beside the store.
    @Attribute(.externalStorage(above: 65_536)) var photo: Blob?
    @Relationship var notebook: Notebook?

    func validate(_ report: inout ValidationReport) {
        if title.isEmpty { report.fail("title", "must not be empty") }
    }
}

extension Note {
    /// How lists show the note. The photo itself is not read for this.
    var line: String {
        let photo = photo.map { " (photo of \($0.length) bytes)" } ?? ""
        return title + (text.isEmpty ? "" : ": \(text)") + photo
    }
}

enum NotesSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Notebook.self, Note.self] }
}
