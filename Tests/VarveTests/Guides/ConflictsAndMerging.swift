// The examples of the article Conflicts and merging.
#if Macros
import Foundation
import Testing
import Varve

@Suite("Guide: conflicts and merging") struct ConflictsAndMergingGuide {
    /// A context whose edit of a note meets another one's.
    private func meeting() throws -> (ManagedObjectContext, Note) {
        let container = try notes("Bread")
        let context = container.newContext()
        let note = try #require(try context.fetch(Note.all).first)
        note.title = "mine"
        try container.newContext().batchUpdate(Note.all) { row in
            row.title = "theirs"
            row.text = "theirs"
        }
        return (context, note)
    }

    @Test("A conflict is thrown, and resolved after advance()") func conflict() throws {
        let (context, note) = try meeting()
        #expect(note.title == "mine" && note.text == "")
        // Shown in ConflictsAndMerging: conflict
        do {
            try context.save()
        } catch let error as StoreError where error.code == .conflict {
            print(error.details.count, "objects were changed by others too")
            context.advance()  // their values under our edits
            try context.save()
        }
        // End.
        #expect(note.title == "mine" && note.text == "theirs" && !context.hasChanges)
    }

    @Test("A context shows one commit until it moves on") func oneCommit() throws {
        let container = try notes("Bread")
        let context = container.newContext()
        // Shown in ConflictsAndMerging: advance
        let other = container.newContext()
        let note = try context.fetch(Note.all)[0]
        try other.fetch(Note.all)[0].title = "Rye bread"
        try other.save()

        print(note.title)  // Bread: this context has not moved
        context.advance()
        print(note.title)  // Rye bread
        // End.
        #expect(note.title == "Rye bread")
    }

    @Test("Policies decide without a conflict") func policies() throws {
        let (context, note) = try meeting()
        // Shown in ConflictsAndMerging: policy
        try context.save(mergePolicy: .objectWinsByProperty)
        // End.
        #expect(note.title == "mine" && note.text == "theirs")

        let (second, kept) = try meeting()
        // Shown in ConflictsAndMerging: custom
        let policy = MergePolicy.custom { conflict in
            guard let theirs = conflict.theirs?.snapshot(of: Note.self) else { return .fail }
            return theirs.text.isEmpty ? .objectWinsByProperty : .storeWinsByProperty
        }
        try second.save(mergePolicy: policy)
        // End.
        #expect(kept.title == "theirs")
    }

    @Test("An upsert says what stands in the place of a new object") func replaced() throws {
        let container = try notes()
        let context = container.newContext()
        Label(in: context).name = "baking"
        try context.save()

        // Shown in ConflictsAndMerging: upsert
        let label = Label(in: context)
        label.name = "baking"  // there already
        label.color = "red"
        let result = try context.save()
        for (new, existing) in result.replaced { print(new, "is", existing) }
        // End.
        #expect(result.replaced.count == 1 && label.isDeleted)
        #expect(try context.fetch(Label.all).map(\.color) == ["red"])
    }
}
#endif
