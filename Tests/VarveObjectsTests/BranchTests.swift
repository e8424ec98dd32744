// Edit sheets: a context over another one. Random runs of them: `UndoWorld` in FuzzTests.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct BranchTests {
    @Test func aSheetIsMergedOrDropped() throws {
        let container = try memory()
        let parent = container.newContext()
        let item = Item(in: parent)
        item.title = "unsaved"
        let sheet = try parent.branch()
        #expect(!sheet.hasChanges && sheet.parent === parent)
        let copy = try #require(try sheet.existingObject(with: item.id))
        #expect(copy !== item && copy.title == "unsaved")
        copy.title = "edited"
        let tag = Tag(in: sheet)
        copy.tags.append(tag)
        #expect(sheet.hasChanges && item.title == "unsaved" && item.tags.isEmpty)
        try sheet.mergeIntoParent()
        #expect(item.title == "edited" && item.tags.map(\.id) == [tag.id])
        #expect(!sheet.hasChanges && parent.hasChanges)
        copy.title = "dropped"
        sheet.rollback()
        #expect(copy.title == "edited" && !sheet.hasChanges)
        try parent.save()
        #expect(try container.newContext().existingObject(with: item.id)?.title == "edited")
    }

    @Test func whatBothChangedIsToldForEachProperty() throws {
        let container = try memory()
        let parent = container.newContext()
        let item = Item(in: parent)
        item.title = "base"
        try parent.save()
        let sheet = try parent.branch()
        let copy = try sheet.object(with: item.id)
        copy.title = "sheet"
        copy.number = 3
        item.title = "parent"
        do {
            try sheet.mergeIntoParent()
            Issue.record("a conflict was passed over")
        } catch let error as StoreError {
            #expect(error.code == .conflict && error.details.count == 1)
            #expect(error.details.first?.place.attribute == "title")
            let conflict = try #require(error.details.first?.conflict)
            #expect(conflict.base.snapshot(of: Item.self)?.title == "base")
            #expect(conflict.mine?.snapshot(of: Item.self)?.title == "sheet")
            #expect(conflict.theirs?.snapshot(of: Item.self)?.title == "parent")
        }
        #expect(item.title == "parent" && item.number == 0)
        let left = try sheet.mergeIntoParent(.parentWins)
        #expect(left.map(\.property) == ["title"])
        #expect(item.title == "parent" && item.number == 3 && copy.title == "parent")
    }

    @Test func aSheetMayTakeTheParentsEditsOver() throws {
        let container = try memory()
        let parent = container.newContext()
        let item = Item(in: parent)
        try parent.save()
        let sheet = try parent.branch()
        let copy = try sheet.object(with: item.id)
        copy.title = "sheet"
        item.number = 9
        item.title = "parent"
        #expect(copy.number == 0)
        sheet.advance()
        #expect(copy.number == 9 && copy.title == "sheet")
        try sheet.mergeIntoParent()
        #expect(item.title == "sheet")
    }

    @Test func anObjectThatTheParentDeletedIsTold() throws {
        let container = try memory()
        let parent = container.newContext()
        let item = Item(in: parent)
        try parent.save()
        let sheet = try parent.branch()
        try sheet.object(with: item.id).title = "sheet"
        parent.delete(item)
        #expect(code { try sheet.mergeIntoParent() } == .conflict)
        sheet.advance()
        #expect(code { try sheet.mergeIntoParent() } == .conflict)
        #expect(try sheet.mergeIntoParent(.branchWins).map(\.reason) == [.deletedSince])
        try parent.save()
        #expect(try container.newContext().existingObject(with: item.id) == nil)
    }

    @Test func theMergeIsOneStepOfTheParent() throws {
        let container = try memory()
        let parent = container.newContext()
        parent.undoLimit = 5
        let item = Item(in: parent)
        try parent.save()
        let sheet = try parent.branch()
        try sheet.object(with: item.id).title = "sheet"
        _ = Item(in: sheet)
        try sheet.mergeIntoParent(undoActionName: "Edit")
        #expect(parent.undoActionName == "Edit" && parent.insertedObjects.count == 1)
        try parent.undo()
        #expect(item.title == "" && parent.insertedObjects.isEmpty)
    }

    @Test func aBranchWritesNothing() async throws {
        let container = try memory()
        let parent = container.newContext()
        let sheet = try parent.branch()
        _ = Item(in: sheet)
        #expect(code { try sheet.save() } == .invalidRequest)
        #expect(code { _ = try sheet.batchDelete(Item.all) } == .invalidRequest)
        // A close counts what only the sheet has.
        #expect(code { try container.closeNow() } == .unsavedChanges)
        sheet.rollback()
        try container.closeNow()
    }

    @Test func whatIsInvalidIsNotMerged() throws {
        let container = try memory()
        let parent = container.newContext()
        let sheet = try parent.branch()
        let item = Item(in: sheet)
        item.title = "bad"
        #expect(code { try sheet.mergeIntoParent() } == .invalid)
        #expect(!parent.hasChanges && sheet.hasChanges)
    }

    /// The parent saves while the sheet is open.
    @Test func theParentSavesMeanwhile() throws {
        let container = try memory()
        let parent = container.newContext()
        let item = Item(in: parent)
        let sheet = try parent.branch()
        let copy = try sheet.object(with: item.id)
        copy.number = 4
        try parent.save()
        try sheet.mergeIntoParent()
        try parent.save()
        #expect(try container.newContext().existingObject(with: item.id)?.number == 4)
        #expect(copy.number == 4 && !copy.isInserted && !sheet.hasChanges)
    }

    @Test func aBlobGoesThrough() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let parent = container.newContext()
        let picture = Picture(in: parent)
        try parent.save()
        let bytes = Data(repeating: 9, count: 4_000)
        let sheet = try parent.branch()
        let copy = try sheet.object(with: picture.id)
        copy.data = try sheet.makeBlob(bytes, for: Picture.columns.data)
        try sheet.mergeIntoParent()
        try parent.save()
        #expect(
            try container.newContext().existingObject(with: picture.id)?.data?.readAll() == bytes
        )
        try container.closeNow()
    }
}
