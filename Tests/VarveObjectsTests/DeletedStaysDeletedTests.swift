// An edit ends with its object, and what is gone is led to by nothing.

import Testing
import VarveObjects

@Suite(.verified) struct DeletedStaysDeletedTests {
    @Test func anEditedAndDeletedObjectLeavesNothingToSave() throws {
        let container = try graph()
        let context = container.newContext()
        let node = try nodes("a", in: context)[0]
        node.name = "b"
        context.delete(node)
        try context.save()
        #expect(!context.hasChanges && node.isDeleted)
        #expect(try context.save(mergePolicy: .objectWinsByProperty).commit == nil)
        #expect(try container.newContext().count(Node.all) == 0)
    }

    @Test func aCascadedObjectIsNotWrittenAgain() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("parent", "child", in: context)
        all[1].parent = all[0]
        try context.save()
        all[1].name = "edited"
        context.delete(all[0])
        try context.save()
        #expect(!context.hasChanges)
        try context.save(mergePolicy: .overwrite)
        #expect(try container.newContext().count(Node.all) == 0)
    }

    @Test func aBackgroundTaskThatEditsAndDeletesHasSaved() async throws {
        let container = try graph()
        let id = try nodes("a", in: container.newContext())[0].id
        try await container.performBackgroundTask { context in
            let node = try #require(try context.existingObject(with: id))
            node.name = "b"
            context.delete(node)
            try context.save()
        }
        #expect(try container.newContext().count(Node.all) == 0)
    }

    @Test(arguments: [true, false])
    func aNewObjectThatWasLinkedAndDeletedWasNeverThere(readsFirst: Bool) throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", in: context)
        let new = Node(in: context)
        all[0].picks.append(new)
        all[0].playlist.append(new)
        all[0].left.append(new)
        all[0].chapters.append(new)
        new.children.append(all[1])
        new.next = all[1]
        all[0].stale = new
        all[0].loose = new
        if readsFirst { #expect(all[0].picks.count == 1 && all[0].chapters.count == 1) }
        context.delete(new)
        try context.save()
        #expect(all[0].picks.isEmpty && all[0].playlist.isEmpty && all[0].left.isEmpty)
        #expect(all[0].chapters.isEmpty && all[0].stale == nil && all[0].loose == nil)
        // Its cascade took the other one along.
        #expect(all[1].isDeleted)
        try context.save()
        let fresh = container.newContext()
        #expect(try fresh.fetch(Node.all).names == ["a"])
        try expectSound(fresh)
        #expect(!context.hasChanges)
    }

    @Test func aNewObjectsDeletionFreesWhoLedToIt() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("old parent", "child", "old next", in: context)
        all[1].parent = all[0]
        all[1].next = all[2]
        try context.save()
        let new = Node(in: context)
        all[1].next = new
        new.previous = all[1]
        all[1].book = new
        context.delete(new)
        context.processPendingChanges()
        #expect(all[1].next == nil && all[2].previous == nil && all[1].book == nil)
        // Others saved meanwhile: the journal is applied once more.
        let other = container.newContext()
        try #require(try other.named("old parent")).name = "renamed"
        try other.save()
        try context.save()
        try expectSound(container.newContext())
        let fresh = container.newContext()
        #expect(try fresh.named("child")?.next == nil)
    }

    @Test func refreshingWithoutEditsDropsBothSides() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", "c", in: context)
        all[0].picks.append(all[1])
        all[0].left.append(all[1])
        all[1].parent = all[0]
        all[0].next = all[1]
        context.refresh(all[1], mergeChanges: false)
        #expect(all[0].left.isEmpty && all[0].children.isEmpty && all[0].next == nil)
        // Without inverse it is the owner's affair alone.
        #expect(all[0].picks.names == ["b"])
        context.refresh(all[0], mergeChanges: false)
        #expect(all[0].picks.isEmpty && !context.hasChanges)
        all[2].chapters.append(all[1])
        context.refresh(all[2], mergeChanges: false)
        #expect(all[1].book == nil && !context.hasChanges)
        context.delete(all[1])
        try context.save()
        try expectSound(container.newContext())
    }

    @Test func relatingToADeletedObjectIsRefused() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("parent", "child", in: context)
        context.delete(all[0])
        _ = try context.fetch(Node.all)
        all[1].parent = all[0]
        #expect(all[1].parent == nil)
        #expect(code { try context.save() } == .objectDeleted)
        #expect(context.refusedEdits.first?.property == "parent")
        // The way out: set it properly.
        all[1].parent = nil
        try context.save()
        all[1].picks.append(all[0])
        #expect(all[1].picks.isEmpty)
        #expect(code { try context.save() } == .objectDeleted)
        all[1].name = "kept"
        context.acknowledgeRefusedEdits()
        try context.save()
        #expect(try storedNames(container) == ["kept"])
    }

    @Test func editingADeletedObjectIsRefused() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", in: context)
        context.delete(all[0])
        all[0].name = "edited"
        #expect(all[0].name == "a")
        do {
            try context.save()
            Issue.record("saved")
        } catch let error as StoreError {
            #expect(error.code == .objectDeleted && error.message.contains("in this context"))
        }
        context.refresh(all[0], mergeChanges: false)
        #expect(context.refusedEdits.isEmpty)
        try context.save()
        all[0].name = "after"
        #expect(code { try context.save() } == .objectDeleted)
        context.acknowledgeRefusedEdits()
        #expect(try context.save().commit == nil)
        #expect(try container.newContext().count(Node.all) == 1)
    }

    @Test func deletingThroughAnotherContextIsRefused() throws {
        let container = try graph()
        let context = container.newContext()
        let node = try nodes("a", in: context)[0]
        let other = container.newContext()
        other.delete(node)
        #expect(!node.isDeleted)
        #expect(code { try other.save() } == .crossContext)
        other.acknowledgeRefusedEdits()
        try other.save()
        #expect(try container.newContext().count(Node.all) == 1)
    }

    @Test func crossContextEndsWithTheNextProperValue() throws {
        let container = try graph()
        let (first, second) = (container.newContext(), container.newContext())
        let mine = Node(in: first)
        mine.next = Node(in: second)
        #expect(code { try first.save() } == .crossContext)
        mine.next = Node(in: first)
        try first.save()
        try expectSound(container.newContext())
    }

    @Test func deletedObjectsAreThoseOfThisContext() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", in: context)
        all[0].name = "edited"
        let other = container.newContext()
        other.delete(try other.same(all)[0])
        try other.save()
        context.advance()
        #expect(context.deletedObjects.isEmpty)
        context.delete(all[1])
        #expect(context.deletedObjects.count == 1)
    }

    @Test func setAwayAndBackIsNoEdit() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", "c", in: context)
        all[0].parent = all[1]
        all[0].picks.append(all[1])
        all[0].playlist.append(contentsOf: [all[1], all[2]])
        try context.save()
        all[0].parent = all[2]
        all[0].parent = all[1]
        #expect(!context.hasChanges)
        all[0].picks.remove(all[1])
        all[0].picks.append(all[1])
        #expect(!context.hasChanges)
        all[0].playlist.insert(all[2], at: 0)
        #expect(context.hasChanges)
        all[0].playlist.insert(all[1], at: 0)
        #expect(!context.hasChanges)
        // And it does not come back over what others saved.
        all[0].parent = all[2]
        all[0].parent = all[1]
        let other = container.newContext()
        let theirs = try other.same(all)
        theirs[0].parent = nil
        try other.save()
        all[2].name = "other edit"
        try context.save()
        let fresh = container.newContext()
        #expect(try fresh.same(all)[0].parent == nil)
    }

    @Test func aRefreshedPartnerIsStillInLists() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", "c", in: context)
        all[1].previous = all[0]
        try context.save()
        all[1].previous = all[2]
        context.refresh(all[0], mergeChanges: false)
        #expect(all[0].next == nil)
        #expect(try context.fetch(Node.where { $0.name == "a" }).names == ["a"])
        try context.save()
        try expectSound(container.newContext())
    }

    @Test func whatWasLostWithANewObjectIsNoEdit() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("owner", in: context)
        let new = Node(in: context)
        all[0].picks.append(new)
        let other = container.newContext()
        other.delete(try #require(try other.named("owner")))
        try other.save()
        context.advance()
        #expect(context.hasChanges)
        context.delete(new)
        context.processPendingChanges()
        #expect(!context.hasChanges)
        #expect(try context.save().commit == nil)
    }
}
