// The examples of the article Entities without macros: relationships, an index and constraints.

import Foundation
import Testing
import VarveObjects

// Shown in EntitiesWithoutMacros: notebook
final class Notebook: ManagedObject {
    static let entityName = "Notebook"
    struct Columns: Sendable {
        let name = Column<Notebook, String>("name", default: "")
        let notes = ToManyColumn<Notebook, Note>(
            "notes",
            inverse: "notebook",
            deleteRule: .cascade
        )
    }
    static let columns = Columns()
    static var uniqueConstraints: [EntityConstraint] {
        [EntityConstraint(columns.name, onConflict: .upsert)]
    }
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }

    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var notes: ToMany<Note> { storedValue(Self.columns.notes, \.notes) }
}
// End.

// Shown in EntitiesWithoutMacros: note
final class Note: ManagedObject {
    static let entityName = "Note"
    static var originalEntityNames: [String] { ["Memo"] }
    struct Columns: Sendable {
        let title = Column<Note, String>("title", default: "", originalName: "heading")
        let changed = Column<Note, Date>("changed", default: .now)
        let number = Column<Note, Int>("number")  // no default: must be set
        let picture = Column<Note, Blob?>("picture", externalStorageAbove: 65_536)
        let notebook = ToOneColumn<Note, Notebook>("notebook")
    }
    static let columns = Columns()
    static var indexes: [EntityIndex] {
        [EntityIndex(columns.notebook, columns.changed.descending)]
    }
    static var uniqueConstraints: [EntityConstraint] {
        [EntityConstraint(columns.notebook, columns.number)]
    }
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }

    var title: String {
        get { storedValue(Self.columns.title, \.title) }
        set { setStoredValue(newValue, Self.columns.title, \.title) }
    }
    var changed: Date {
        get { storedValue(Self.columns.changed, \.changed) }
        set { setStoredValue(newValue, Self.columns.changed, \.changed) }
    }
    var number: Int {
        get { storedValue(Self.columns.number, \.number) }
        set { setStoredValue(newValue, Self.columns.number, \.number) }
    }
    var picture: Blob? {
        get { storedValue(Self.columns.picture, \.picture) }
        set { setStoredValue(newValue, Self.columns.picture, \.picture) }
    }
    var notebook: Notebook? {
        get { storedValue(Self.columns.notebook, \.notebook) }
        set { setStoredValue(newValue, Self.columns.notebook, \.notebook) }
    }
    var isExpanded = false  // no column: not stored
}
// End.

enum AppSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Notebook.self, Note.self] }
}

// Shown in EntitiesWithoutMacros: sendable
@available(*, unavailable, message: "pass note.id or note.snapshot()")
extension Note: Sendable {}
// End.
@available(*, unavailable, message: "pass the id or a snapshot")
extension Notebook: Sendable {}

@Suite("Guide: entities without macros", .verified) struct GuideWithoutMacros {
    @Test("Entities written by hand keep inverses, constraints and cascades") func byHand() throws {
        // Shown in EntitiesWithoutMacros: use
        let container = try PersistentContainer.inMemory(schema: AppSchema.self)
        let context = container.newContext()
        let kitchen = Notebook(in: context)
        kitchen.name = "Kitchen"
        let note = Note(in: context)
        note.number = 1
        note.notebook = kitchen
        try context.save()
        print(kitchen.notes.count)  // 1: the inverse follows
        // End.
        #expect(kitchen.notes.ids == [note.id])
        let double = Note(in: context)
        #expect(code { try context.save() } == .missingValue)
        double.number = 1
        double.notebook = kitchen
        #expect(code { try context.save() } == .notUnique)
        double.number = 2
        Notebook(in: context).name = "Kitchen"
        #expect(try context.save().replaced.count == 1)
        let request = Note.where { $0.notebook.name == "Kitchen" }
        #expect(try context.fetch(request).map(\.number) == [1, 2])
        context.delete(kitchen)
        try context.save()
        #expect(try context.count(Note.all) == 0)
    }
}
