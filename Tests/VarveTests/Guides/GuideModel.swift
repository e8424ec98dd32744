// The model that most examples of the guides are about: notebooks, notes and labels.
#if Macros
import Foundation
import Varve

// Shown in Relationships: model
@Entity final class Notebook: ManagedObject {
    var name: String = ""
    @Relationship(inverse: \Note.notebook, deleteRule: .cascade) var notes: ToMany<Note>
}

@Entity final class Note: ManagedObject {
    #Index<Note>([\.isPinned, \.changed])
    var title: String = ""
    var text: String = ""
    var changed: Date = .now
    var isPinned: Bool = false
    @Relationship var notebook: Notebook?
    @Relationship(inverse: \Label.notes) var labels: ToMany<Label>
}

@Entity final class Label: ManagedObject {
    #Unique<Label>([\.name], onConflict: .upsert)
    var name: String = ""
    var color: String = "grey"
    @Relationship var notes: ToMany<Note>
}
// End.

enum AppSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Notebook.self, Note.self, Label.self] }
}

/// Notes with these titles in a store in memory.
func notes(_ titles: String...) throws -> PersistentContainer {
    let container = try PersistentContainer.inMemory(schema: AppSchema.self)
    try container.newContext().batchInsert(Note.self, titles) { row, title in row.title = title }
    return container
}

/// The code of the StoreError that `body` throws; nil if it throws none.
func code(_ body: () throws -> Void) -> StoreError.Code? {
    do {
        try body()
        return nil
    } catch {
        return (error as? StoreError)?.code
    }
}
#endif
