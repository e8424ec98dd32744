// Faults: what fires them, what they read, what happens when that fails.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct FaultTests {
    @Test func readingAPropertyLoadsTheRowOnce() throws {
        let container = try memory()
        let id = try makeItems(1, in: container)[0]
        let context = container.newContext()
        let item = try context.object(with: id)
        #expect(item.isFault)
        let first = reads(container) { item.title }
        #expect(first.value == "item 0" && first.reads == 1)
        let second = reads(container) { (item.title, item.number, item.priority) }
        #expect(second.reads == 0 && second.value.1 == 0 && second.value.2 == .normal)
        #expect(!item.isFault)
    }

    @Test func identityAndStateLoadNothing() throws {
        let container = try memory()
        let ids = try makeItems(1_000, in: container)
        let context = container.newContext()
        let outcome = try reads(container) {
            let items = try ids.map { try context.object(with: $0) }
            let set = Set(items)
            for item in items {
                _ = (item.id, item.objectID, item.isFault, item.isInserted, item.isUpdated)
                _ = (item.isDeleted, item.context, item.description, item == items[0])
                _ = (item.hasFault(Item.columns.tags), item.hasFault(Item.columns.picture))
            }
            return set.count
        }
        #expect(outcome.value == 1_000 && outcome.reads == 0)
        #expect(container.statistics.realisedObjects == 0)
    }

    @Test func theRowCacheComesFirstAndIsAskedApart() throws {
        let container = try memory()
        let id = try makeItems(1, in: container)[0]
        #expect(!container.isRowCached(id.objectID))
        let context = container.newContext()
        let item = try context.object(with: id)
        #expect(item.isFault && !container.isRowCached(id.objectID))
        _ = item.title
        #expect(!item.isFault && container.isRowCached(id.objectID))
        context.refresh(item, mergeChanges: false)
        #expect(item.isFault && container.isRowCached(id.objectID))
        let again = reads(container) { item.title }
        #expect(again.reads == 0 && again.value == "item 0")
    }

    @Test func aToManyHasTwoLevels() throws {
        let container = try memory()
        let writer = container.newContext()
        let item = Item(in: writer)
        let tags = (0..<3).map { index in
            let tag = Tag(in: writer)
            tag.name = "tag \(index)"
            return tag
        }
        for tag in tags { item.tags.append(tag) }
        try writer.save()
        let wanted = tags.map(\.id)
        writer.reset()
        container.trimMemory()
        let context = container.newContext()
        let other = try context.object(with: item.id)
        #expect(other.hasFault(Item.columns.tags))
        let ids = reads(container) { other.tags.ids }
        #expect(ids.value == wanted && ids.reads == 0)
        #expect(!other.hasFault(Item.columns.tags))
        #expect(other.tags.count == 3 && other.tags[1].isFault)
        let name = reads(container) { other.tags[1].name }
        #expect(name.value == "tag 1" && name.reads == 1)
    }

    @Test func oneInstancePerIDAndContext() throws {
        let container = try memory()
        let id = try makeItems(1, in: container)[0]
        let context = container.newContext()
        let first = try context.object(with: id)
        #expect(try context.existingObject(with: id) === first)
        #expect(try context.fetch(Item.all)[0] === first)
        #expect(try context.fetchBatched(Item.all)[0] === first)
        #expect(context.registeredObject(with: id) === first)
        let other = container.newContext()
        #expect(try other.object(with: id) !== first)
    }

    @Test func hooksRunOncePerFillAndReturn() throws {
        let container = try memory()
        let id = try makeItems(1, in: container)[0]
        let context = container.newContext()
        let item = try context.object(with: id)
        #expect(item.calls.isEmpty)
        _ = item.title
        _ = item.number
        #expect(item.calls == ["fetch"])
        context.refresh(item, mergeChanges: false)
        #expect(item.calls == ["fetch", "fault"])
        _ = item.title
        #expect(item.calls == ["fetch", "fault", "fetch"])
    }

    @Test func aFilledObjectStaysFilled() throws {
        let container = try memory()
        let id = try makeItems(1, in: container)[0]
        let context = container.newContext()
        let item = try context.object(with: id)
        _ = item.title
        item.number = 5
        try context.save()
        #expect(!item.isFault)
        container.trimMemory()
        context.rollback()
        #expect(!item.isFault)
        context.refreshAllObjects()
        #expect(item.isFault)
        let new = Item(in: context)
        try context.save()
        #expect(!new.isFault && new.title == "")
    }

    @Test func refreshDropsOrKeepsEdits() throws {
        let container = try memory()
        let id = try makeItems(1, in: container)[0]
        let context = container.newContext()
        let item = try context.object(with: id)
        item.title = "mine"
        context.refresh(item, mergeChanges: true)
        #expect(item.title == "mine" && item.number == 0 && item.isUpdated)
        #expect(context.hasChanges)
        context.refresh(item, mergeChanges: false)
        #expect(item.isFault && !item.isUpdated && !context.hasChanges)
        #expect(item.title == "item 0")

        // refreshAllObjects moves to the newest commit; edits stay.
        item.title = "edited"
        let other = container.newContext()
        let theirs = try other.object(with: id)
        theirs.number = 77
        try other.save()
        #expect(item.number == 0)
        context.refreshAllObjects()
        #expect(item.number == 77 && item.title == "edited")
        try context.save()
        #expect(item.title == "edited" && item.number == 77)
    }

    @Test func threeWaysByID() throws {
        let container = try memory()
        let id = try makeItems(1, in: container)[0]
        let context = container.newContext()
        #expect(context.registeredObject(with: id) == nil)
        let promise = try reads(container) { try context.object(with: id) }
        #expect(promise.reads == 0 && promise.value.isFault)
        #expect(context.registeredObject(with: id) === promise.value)
        let existing = try reads(container) { try context.existingObject(with: id) }
        #expect(existing.reads == 1 && existing.value?.isFault == false)
        let fresh = container.newContext()
        let doomed = Item(in: fresh)
        #expect(try fresh.existingObject(with: doomed.id) === doomed)
        #expect(try context.existingObject(with: doomed.id) == nil)
        let tagID = Tag(in: fresh).objectID
        #expect(try context.existingObject(with: tagID) == nil)
    }

    @Test func aFaultCanBeFilledThoughTheRowIsDeleted() throws {
        let container = try memory()
        let ids = try makeItems(2, in: container)
        let context = container.newContext()
        let items = try context.fetch(Item.all)
        #expect(items.allSatisfy { $0.isFault })
        let other = container.newContext()
        other.delete(try other.object(with: ids[0]))
        other.delete(try other.object(with: ids[1]))
        try other.save()
        // Still at its commit.
        #expect(items[0].title == "item 0" && !items[0].isDeleted)
        context.advance()
        #expect(items[0].isDeleted && items[1].isDeleted)
        #expect(items[0].title == "item 0" && items[1].title == "item 1" && items[1].number == 1)
        #expect(try context.fetch(Item.all).isEmpty)
        #expect(try context.existingObject(with: ids[0]) == nil)
        #expect(context.readFailures.isEmpty)
    }

    @Test func aFailedReadGivesZeroAndBlocksTheSave() throws {
        let container = try memory()
        let ids = try makeItems(3, in: container)
        let context = container.newContext()
        let good = try context.object(with: ids[0])
        good.title = "good"
        // An ID that no row has: what a lost row looks like.
        let ghost = Item(in: container.newContext()).id
        let broken = try context.object(with: ghost)
        #expect(broken.title == "" && broken.number == 0 && broken.priority == .low)
        #expect(broken.isFault && broken.readFailure?.code == .objectNotFound)
        #expect(context.readFailures.count == 1)
        broken.title = "kept out"
        #expect(!broken.hasChanges)
        #expect(code { try context.load(broken) } == .objectNotFound)
        #expect(try context.fetch(Item.all).count == 3)
        #expect(code { try context.save() } == .contextFailed)
        context.acknowledgeReadFailures()
        try context.save()
        #expect(good.title == "good")
        let other = container.newContext()
        #expect(try other.existingObject(with: ids[0])?.title == "good")
    }
}
