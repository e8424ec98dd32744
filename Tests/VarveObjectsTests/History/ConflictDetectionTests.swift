// Objects that a save compares though they were not edited.

import Testing
import VarveBase

@testable import VarveObjects

@Suite(.verified) struct ConflictDetectionTests {
    private static func setUp() throws -> (
        PersistentContainer, ManagedObjectContext, rate: Item, order: Item
    ) {
        let container = try memory()
        let context = container.newContext()
        let (rate, order) = (Item(in: context), Item(in: context))
        rate.number = 7
        try context.save()
        order.title = "7 times"
        return (container, context, rate, order)
    }

    @Test func `What others did to an object that was named makes the save fail`() throws {
        for isDeleted in [false, true] {
            let (container, context, rate, order) = try Self.setUp()
            try context.detectConflicts(for: rate)
            let other = container.newContext()
            let theirs = try #require(try other.existingObject(with: rate.id))
            if isDeleted { other.delete(theirs) } else { theirs.number = 8 }
            try other.save()
            do {
                try context.save()
                Issue.record("the save rests on an old value")
            } catch let error as StoreError {
                #expect(error.code == .conflict && error.details.count == 1)
                #expect(error.details.first?.objects == [rate.id.objectID])
            }
            // It fails again until the context has seen it.
            #expect(code { try context.save() } == .conflict)
            context.advance()
            #expect(isDeleted ? rate.isDeleted : rate.number == 8)
            try context.save()
            #expect(order.title == "7 times")
        }
    }

    @Test func `Without being named, or when nobody changed it, nothing is compared`() throws {
        let (container, context, rate, order) = try Self.setUp()
        let other = container.newContext()
        try other.existingObject(with: rate.id)?.number = 8
        try other.save()
        try context.save()
        order.title = "again"
        try context.detectConflicts(for: rate)
        try makeItems(1, in: container)
        try context.save()
        // The save ended it.
        try other.existingObject(with: rate.id)?.number = 9
        try other.save()
        order.title = "more"
        try context.save()
        // And so does a rollback.
        try context.detectConflicts(for: [rate, order])
        try other.existingObject(with: rate.id)?.number = 10
        try other.save()
        context.rollback()
        order.title = "last"
        try context.save()
    }

    @Test func `An edit of it is one conflict, and policies decide about edits alone`() throws {
        let (container, context, rate, _) = try Self.setUp()
        try context.detectConflicts(for: rate)
        rate.title = "mine"
        let other = container.newContext()
        try other.existingObject(with: rate.id)?.number = 8
        try other.save()
        do {
            try context.save()
            Issue.record("both changed it")
        } catch let error as StoreError {
            #expect(error.code == .conflict && error.details.count == 1)
        }
        try context.save(mergePolicy: .objectWinsByProperty)
        #expect(rate.title == "mine" && rate.number == 8)
    }

    @Test func `A custom policy is asked, once`() throws {
        for fails in [false, true] {
            let (container, context, rate, _) = try Self.setUp()
            try context.detectConflicts(for: rate)
            let other = container.newContext()
            try other.existingObject(with: rate.id)?.number = 8
            try other.save()
            let asked = Shared<[Int?]>([])
            let policy = MergePolicy.custom { conflict in
                let mine = conflict.mine?.snapshot(of: Item.self)?.number
                let theirs = conflict.theirs?.snapshot(of: Item.self)?.number
                asked.withLock { $0 += [mine, theirs] }
                return fails ? .fail : .storeWinsByProperty
            }
            let found = code { try context.save(mergePolicy: policy) }
            #expect(found == (fails ? .conflict : nil))
            #expect(asked.withLock { $0 } == [7, 8])
        }
    }
}
