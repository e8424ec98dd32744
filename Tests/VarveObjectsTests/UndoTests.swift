// Undo, redo and transactions, one promise at a time. Random runs of them: `UndoWorld` in
// FuzzTests.

import Foundation
import Observation
import Synchronization
import Testing
import VarveBase
import VarveObjects

@Suite(.verified) struct UndoTests {
    private func context(_ container: PersistentContainer) -> ManagedObjectContext {
        let context = container.newContext()
        context.undoLimit = 10
        return context
    }

    @Test func withoutALimitNothingIsKept() throws {
        let container = try memory()
        let context = container.newContext()
        #expect(context.undoLimit == 0)
        Item(in: context).title = "new"
        #expect(!context.canUndo)
        #expect(try context.undo().isEmpty)
        #expect(context.hasChanges)
    }

    @Test func groupsHaveNamesAndOrder() throws {
        let container = try memory()
        let context = context(container)
        let item = Item(in: context)
        try context.save()
        context.withUndoGroup("Rename") { item.title = "a" }
        context.withUndoGroup("Count") { item.number = 7 }
        #expect(context.undoActionName == "Count")
        #expect(!context.canRedo)
        try context.undo()
        #expect(item.number == 0 && item.title == "a")
        #expect(context.undoActionName == "Rename" && context.redoActionName == "Count")
        try context.undo()
        #expect(item.title == "" && !context.hasChanges)
        // What came before the save is a step of its own.
        #expect(context.canUndo && context.undoActionName == "")
        try context.redo()
        try context.redo()
        #expect(item.title == "a" && item.number == 7)
        #expect(!context.canRedo)
    }

    @Test func anEditEndsWhatCanBeRedone() throws {
        let container = try memory()
        let context = context(container)
        let item = Item(in: context)
        try context.save()
        context.withUndoGroup("one") { item.title = "a" }
        try context.undo()
        item.title = "b"
        #expect(!context.canRedo && context.redoActionName == "")
        try context.redo()
        #expect(item.title == "b")
    }

    @Test func theOldestStepsGo() throws {
        let container = try memory()
        let context = context(container)
        let item = Item(in: context)
        try context.save()
        context.undoLimit = 3
        for number in 1...6 { context.withUndoGroup { item.number = number } }
        for _ in 0..<10 { try context.undo() }
        #expect(item.number == 3)
        #expect(!context.canUndo)
    }

    /// A saved deletion: row, relationships, order, blob and identity come back.
    @Test func aSavedDeletionComesBackWhole() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let context = context(container)
        let bytes = Data((0..<5_000).map { UInt8(truncatingIfNeeded: $0 * 7) })
        let item = Item(in: context)
        item.title = "kept"
        let picture = Picture(in: context)
        picture.data = try context.makeBlob(bytes, for: Picture.columns.data)
        item.picture = picture
        let tags = (0..<3).map { _ in Tag(in: context) }
        for tag in [tags[2], tags[0], tags[1]] { item.tags.append(tag) }
        let shelf = Folder(in: context)
        item.folder = shelf
        try context.save()
        let (id, pictureID) = (item.id, picture.id)
        context.delete(item)
        try context.save()
        #expect(try container.newContext().existingObject(with: id) == nil)
        #expect(try container.newContext().existingObject(with: pictureID) == nil)

        #expect(try context.undo().isEmpty)
        #expect(item.title == "kept" && item.isInserted && !item.isDeleted)
        #expect(try context.existingObject(with: id) === item)
        #expect(item.tags.map(\.id) == [tags[2], tags[0], tags[1]].map(\.id))
        #expect(item.picture === picture)
        #expect(shelf.items.contains(item))
        try context.save()
        let fresh = container.newContext()
        let stored = try #require(try fresh.existingObject(with: id))
        #expect(stored.title == "kept" && stored.folder?.id == shelf.id)
        #expect(stored.tags.map(\.id) == [tags[2], tags[0], tags[1]].map(\.id))
        #expect(try stored.picture?.data?.readAll() == bytes)
        // And away again.
        try context.redo()
        try context.save()
        #expect(try container.newContext().existingObject(with: id) == nil)
        try container.closeNow()
    }

    @Test func whatOthersChangedIsLeftAndSaid() throws {
        let container = try memory()
        let context = context(container)
        let item = Item(in: context)
        try context.save()
        context.withUndoGroup("both") {
            item.title = "mine"
            item.number = 1
        }
        try context.save()
        let other = container.newContext()
        try other.object(with: item.id).title = "theirs"
        try other.save()
        context.advance()
        let skipped = try context.undo()
        #expect(item.title == "theirs" && item.number == 0)
        #expect(skipped.count == 1)
        #expect(skipped.first?.property == "title" && skipped.first?.reason == .changedSince)
        try context.save()
    }

    @Test func whatOthersDeletedIsLeftAndSaid() throws {
        let container = try memory()
        let context = context(container)
        let item = Item(in: context)
        let folder = Folder(in: context)
        try context.save()
        context.withUndoGroup { item.number = 1 }
        context.withUndoGroup { item.folder = folder }
        context.withUndoGroup { item.folder = nil }
        try context.save()
        let other = container.newContext()
        other.delete(try other.object(with: folder.id))
        try other.save()
        context.advance()
        #expect(try context.undo().map(\.reason) == [.targetDeleted])
        #expect(item.folder == nil)
        let third = container.newContext()
        third.delete(try third.object(with: item.id))
        try third.save()
        context.advance()
        try context.undo()
        #expect(try context.undo().map(\.reason) == [.deletedSince])
    }

    /// Two contexts undo the same deletion.
    @Test(arguments: ["error", "objectWins", "storeWins", "overwrite", "rollback"])
    func twoBringBackTheSame(_ name: String) throws {
        let policies: [String: MergePolicy] = [
            "error": .error, "objectWins": .objectWinsByProperty,
            "storeWins": .storeWinsByProperty, "overwrite": .overwrite, "rollback": .rollback,
        ]
        let policy = try #require(policies[name])
        let container = try memory()
        let (first, second) = (context(container), context(container))
        let item = Item(in: first)
        item.title = "old"
        try first.save()
        second.advance()
        let theirs = try second.object(with: item.id)
        _ = theirs.title
        first.delete(item)
        try first.save()
        try first.undo()
        item.title = "of the first"
        // The second one has no step for it: it deletes and undoes on its own.
        second.delete(theirs)
        second.advance()
        try second.undo()
        try first.save()
        if second.hasChanges {
            if name == "error" {
                let found = code { try second.save() }
                #expect(found == nil || found == .conflict)
                second.advance()
            }
            try second.save(mergePolicy: policy)
        }
        let stored = try container.newContext().existingObject(with: item.id)
        #expect(stored != nil)
    }

    @Test func aTransactionThatThrowsLeavesNothing() throws {
        struct Stop: Error {}
        let container = try memory()
        let context = container.newContext()
        let item = Item(in: context)
        let folder = Folder(in: context)
        item.folder = folder
        try context.save()
        item.title = "before"
        #expect(throws: Stop.self) {
            try context.transaction {
                item.title = "inside"
                _ = Item(in: context)
                context.delete(folder)
                #expect(code { try context.save() } == .reentrantSave)
                throw Stop()
            }
        }
        #expect(item.title == "before" && item.folder === folder && !folder.isDeleted)
        #expect(context.insertedObjects.isEmpty && context.deletedObjects.isEmpty)
        let number = context.transaction {
            item.number = 5
            try? context.transaction {
                item.number = 6
                throw Stop()
            }
            return item.number
        }
        #expect(number == 5)
        try context.save()
        #expect(try container.newContext().existingObject(with: item.id)?.title == "before")
    }

    /// One change of a property costs one entry, however often it is set.
    @Test func aGroupCostsWhatItTouches() throws {
        let container = try memory()
        let context = context(container)
        let item = Item(in: context)
        try context.save()
        context.withUndoGroup { for number in 0..<10_000 { item.number = number } }
        try context.undo()
        #expect(item.number == 0)
        #expect(!context.hasChanges)
    }

    @Test func rollbackEndsTheSteps() throws {
        let container = try memory()
        let context = context(container)
        let item = Item(in: context)
        try context.save()
        context.withUndoGroup { item.number = 1 }
        context.rollback()
        #expect(!context.canUndo && !context.canRedo)
        #expect(item.number == 0)
    }

    @Test func misuseIsSaid() throws {
        let container = try memory()
        let context = context(container)
        let item = Item(in: context)
        context.withUndoGroup {
            item.number = 1
            #expect(code { try context.undo() } == .invalidRequest)
        }
        context.transaction {
            #expect(code { try context.redo() } == .invalidRequest)
        }
        #expect(code { try context.mergeIntoParent() } == .invalidRequest)
    }

    @MainActor @Test func whoAskedWhetherThereIsSomethingToUndoIsTold() throws {
        let container = try memory()
        let view = container.viewContext
        view.undoLimit = 5
        let item = Item(in: view)
        try view.save()
        view.removeAllUndoSteps()
        let told = Atomic<Int>(0)
        func watch() {
            withObservationTracking {
                _ = (view.canUndo, view.canRedo)
            } onChange: {
                told.add(1, ordering: .relaxed)
            }
        }
        watch()
        item.title = "edited"
        #expect(told.load(ordering: .relaxed) == 1)
        #expect(view.canUndo)
        watch()
        try view.undo()
        #expect(told.load(ordering: .relaxed) == 2)
        #expect(view.canRedo && !view.canUndo)
    }
}
