// The examples of the article Relationships.
#if Macros
import Foundation
import Testing
import Varve

@Suite("Guide: relationships") struct RelationshipsGuide {
    // Shown in Relationships: ordered
    @Entity final class Checklist: ManagedObject {
        var name: String = ""
        @Relationship(inverse: \Step.checklist, deleteRule: .cascade, ordered: true)
        var steps: ToMany<Step>
    }

    @Entity final class Step: ManagedObject {
        var text: String = ""
        @Relationship var checklist: Checklist?
    }
    // End.

    enum ListSchema: VersionedSchema {
        static let version = 1
        static var entities: [any ManagedObject.Type] { [Checklist.self, Step.self] }
    }

    @Test("Both sides agree, and a cascade takes what it says") func sides() throws {
        let container = try notes("Bread")
        let context = container.newContext()
        let bread = try #require(try context.fetch(Note.all).first)

        // Shown in Relationships: use
        let kitchen = Notebook(in: context)
        kitchen.name = "Kitchen"
        bread.notebook = kitchen
        print(kitchen.notes.contains(bread))  // true: the other side follows

        let baking = Label(in: context)
        baking.name = "baking"
        bread.labels.append(baking)
        print(baking.notes.count)  // 1
        try context.save()
        // End.
        #expect(kitchen.notes.contains(bread) && baking.notes.count == 1)

        // Shown in Relationships: delete
        context.delete(kitchen)  // its notes go with it: .cascade
        try context.save()
        print(bread.isDeleted)  // true
        print(baking.notes.isEmpty)  // true: labels stay and forget the note
        // End.
        #expect(bread.isDeleted && baking.notes.isEmpty && !baking.isDeleted)

        // Shown in Relationships: refused
        let soup = Note(in: context)
        soup.notebook = kitchen  // deleted already: the edit is kept out
        print(context.refusedEdits.count)  // 1; save() would throw objectDeleted
        soup.notebook = nil  // set properly: forgotten
        try context.save()
        // End.
        #expect(context.refusedEdits.isEmpty && !context.hasChanges)
    }

    @Test("Ordered lists keep their order") func order() throws {
        let context = try PersistentContainer.inMemory(schema: ListSchema.self).newContext()
        let checklist = Checklist(in: context)
        let texts = ["knead", "wait", "bake"]
        let steps = texts.map { text in
            let step = Step(in: context)
            step.text = text
            return step
        }
        // Shown in Relationships: arrange
        checklist.steps.append(contentsOf: steps)
        checklist.steps.insert(steps[2], at: 0)  // moves it
        checklist.steps.replaceAll(with: steps)  // this order, these members
        try context.save()
        // End.
        #expect(checklist.steps.map(\.text) == texts)
    }
}
#endif
