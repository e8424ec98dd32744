// Saving: conflicts and policies, uniqueness.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct ConflictTests {
    /// Two contexts at the same commit that both changed the same item.
    private func diverge(
        _ container: PersistentContainer,
        _ theirs: (Item) -> Void,
        _ mine: (Item) -> Void
    ) throws -> (context: ManagedObjectContext, item: Item) {
        let id = try makeItems(1, in: container)[0]
        let context = container.newContext()
        let item = try #require(try context.existingObject(with: id))
        let other = container.newContext()
        let their = try #require(try other.existingObject(with: id))
        theirs(their)
        try other.save()
        mine(item)
        return (context, item)
    }

    private func stored(_ container: PersistentContainer, _ id: Item.ID) throws -> String? {
        let context = container.newContext()
        return try context.existingObject(with: id).map { "\($0.title) \($0.number)" }
    }

    @Test func anUnchangedVersionIsNoConflict() throws {
        let container = try memory()
        let ids = try makeItems(2, in: container)
        let context = container.newContext()
        let item = try #require(try context.existingObject(with: ids[0]))
        let other = container.newContext()
        try other.existingObject(with: ids[1])?.title = "theirs"
        try other.save()
        item.title = "mine"
        try context.save()
        #expect(try stored(container, ids[0]) == "mine 0")
        #expect(try stored(container, ids[1]) == "theirs 1")
        #expect(try context.existingObject(with: ids[1])?.title == "theirs")
    }

    @Test func errorListsEveryConflictAndChangesNothing() throws {
        let container = try memory()
        let (context, item) = try diverge(container) {
            $0.title = "theirs"
        } _: {
            $0.title = "mine"
        }
        let new = Item(in: context)
        do {
            try context.save()
            Issue.record("no conflict")
        } catch let error as StoreError {
            #expect(error.code == .conflict && error.outcome == .nothingSaved)
            let conflict = try #require(error.details.first?.conflict)
            #expect(error.details.count == 1 && conflict.object == item.objectID)
            #expect(conflict.base.snapshot(of: Item.self)?.title == "item 0")
            #expect(conflict.mine?.snapshot(of: Item.self)?.title == "mine")
            #expect(conflict.theirs?.snapshot(of: Item.self)?.title == "theirs")
            #expect(conflict.theirs?.snapshot(of: Tag.self) == nil)
        }
        // Edits stand, nothing is stored.
        #expect(item.title == "mine" && new.isInserted && context.hasChanges)
        #expect(try stored(container, item.id) == "theirs 0")
        #expect(try stored(container, new.id) == nil)
        context.refresh(item, mergeChanges: true)
        try context.save(mergePolicy: .objectWinsByProperty)
        #expect(try stored(container, item.id) == "mine 0")
    }

    @Test func objectWinsByPropertyKeepsBoth() throws {
        let container = try memory()
        let (context, item) = try diverge(container) {
            $0.title = "theirs"
            $0.number = 5
        } _: {
            $0.title = "mine"
        }
        try context.save(mergePolicy: .objectWinsByProperty)
        #expect(try stored(container, item.id) == "mine 5")
        #expect(item.title == "mine" && item.number == 5 && !item.hasChanges)
    }

    @Test func storeWinsByPropertyKeepsTheirs() throws {
        let container = try memory()
        let (context, item) = try diverge(container) {
            $0.title = "theirs"
        } _: {
            $0.title = "mine"
            $0.number = 5
        }
        try context.save(mergePolicy: .storeWinsByProperty)
        #expect(try stored(container, item.id) == "theirs 5")
        #expect(item.title == "theirs" && item.number == 5)
    }

    @Test func overwriteAndRollbackDecideWholeObjects() throws {
        let container = try memory()
        let (context, item) = try diverge(container) {
            $0.title = "theirs"
            $0.number = 5
        } _: {
            $0.title = "mine"
        }
        try context.save(mergePolicy: .overwrite)
        #expect(try stored(container, item.id) == "mine 0")
        let (second, other) = try diverge(container) {
            $0.title = "theirs"
        } _: {
            $0.number = 9
        }
        try second.save(mergePolicy: .rollback)
        #expect(try stored(container, other.id) == "theirs 0")
        #expect(other.title == "theirs" && other.number == 0 && !second.hasChanges)
    }

    @Test func aCustomPolicyDecidesEachConflict() throws {
        let container = try memory()
        let (context, item) = try diverge(container) {
            $0.title = "theirs"
        } _: {
            $0.title = "mine"
        }
        try context.save(
            mergePolicy: .custom { conflict in
                conflict.theirs?.snapshot(of: Item.self)?.title == "theirs"
                    ? .storeWinsByProperty : .fail
            }
        )
        #expect(try stored(container, item.id) == "theirs 0")
    }

    @Test func additionsToTheSameSetDoNotConflict() throws {
        let container = try memory()
        let start = container.newContext()
        let item = Item(in: start)
        let tags = (0..<4).map { _ in Tag(in: start) }
        item.tags.append(tags[0])
        item.tags.append(tags[1])
        try start.save()
        let first = container.newContext()
        let second = container.newContext()
        let one = try #require(try first.existingObject(with: item.id))
        let two = try #require(try second.existingObject(with: item.id))
        one.tags.append(try first.object(with: tags[2].id))
        one.tags.remove(try first.object(with: tags[0].id))
        two.tags.append(try second.object(with: tags[3].id))
        try first.save()
        try second.save()
        #expect(Set(two.tags.ids) == [tags[1].id, tags[2].id, tags[3].id])
        #expect(try second.object(with: tags[3].id).items.ids == [item.id])
        #expect(try second.object(with: tags[0].id).items.isEmpty)
    }

    @Test func deletedThereEditedHere() throws {
        let container = try memory()
        func deleted() throws -> (ManagedObjectContext, Item) {
            let id = try makeItems(1, in: container)[0]
            let context = container.newContext()
            let item = try #require(try context.existingObject(with: id))
            item.title = "mine"
            let other = container.newContext()
            other.delete(try other.object(with: id))
            try other.save()
            return (context, item)
        }
        var (context, item) = try deleted()
        #expect(code { try context.save() } == .conflict)
        try context.save(mergePolicy: .rollback)
        #expect(try stored(container, item.id) == nil && item.isDeleted)
        (context, item) = try deleted()
        try context.save(mergePolicy: .storeWinsByProperty)
        #expect(try stored(container, item.id) == nil && item.isDeleted)
        (context, item) = try deleted()
        try context.save(mergePolicy: .objectWinsByProperty)
        #expect(!item.isDeleted && item.title == "mine")
        #expect(try stored(container, item.id) == "mine 0")
        (context, item) = try deleted()
        context.advance()
        #expect(item.isDeleted && item.title == "mine")
        try context.save(mergePolicy: .overwrite)
        #expect(try stored(container, item.id) == "mine 0")
    }

    @Test func deletedHereChangedThere() throws {
        let container = try memory()
        var (context, item) = try diverge(container) {
            $0.title = "theirs"
        } _: { item in
            item.context?.delete(item)
        }
        #expect(code { try context.save() } == .conflict)
        try context.save(mergePolicy: .storeWinsByProperty)
        #expect(!item.isDeleted && item.title == "theirs")
        (context, item) = try diverge(container) {
            $0.title = "theirs"
        } _: { item in
            item.context?.delete(item)
        }
        try context.save(mergePolicy: .objectWinsByProperty)
        #expect(try stored(container, item.id) == nil && item.isDeleted)
    }
}

@Suite(.verified) struct UniquenessTests {
    private func account(
        _ context: ManagedObjectContext,
        _ email: String,
        _ change: (Account) -> Void = { _ in }
    ) -> Account {
        let account = Account(in: context)
        account.email = email
        change(account)
        return account
    }

    @Test func duplicatesInsideOneContextAreReported() throws {
        let container = try memory()
        let context = container.newContext()
        let serial = UUID()
        let items = (0..<3).map { _ in Item(in: context) }
        items[0].serial = serial
        items[1].serial = serial
        do {
            try context.save()
            Issue.record("saved a duplicate")
        } catch let error as StoreError {
            #expect(error.code == .notUnique)
            #expect(error.details.first?.objects == [items[0].objectID, items[1].objectID])
            #expect(error.details.first?.place.attribute == "serial")
        }
        #expect(container.statistics.newestCommit.rawValue <= 1)
        items[1].serial = UUID()
        try context.save()
        #expect(try context.count(Item.all) == 3)
    }

    @Test func errorAgainstStoredObjectsAndNilIsNeverEqual() throws {
        let container = try memory()
        let context = container.newContext()
        let serial = UUID()
        let first = Item(in: context)
        first.serial = serial
        for _ in 0..<3 { Item(in: context).serial = nil }
        try context.save()
        let second = Item(in: context)
        second.serial = serial
        #expect(code { try context.save() } == .notUnique)
        first.serial = nil
        try context.save()
        #expect(try context.count(Item.where { $0.serial == nil }) == 4)
    }

    @Test func upsertKeepsIDAndWhatIsNotGiven() throws {
        let container = try memory()
        let context = container.newContext()
        let old = account(context, "a@b") {
            $0.name = "old"
            $0.visits = 7
        }
        try context.save()
        let new = account(context, "a@b") { $0.name = "new name" }
        let result = try context.save()
        #expect(result.replaced == [new.objectID: old.objectID])
        #expect(new.isDeleted && !new.isInserted)
        #expect(old.name == "new name" && old.visits == 7)
        #expect(try context.fetch(Account.all) == [old])
        #expect(try context.existingObject(with: new.id) == nil)
        #expect(!context.hasChanges)
    }

    @Test func ignoreDropsTheNewOne() throws {
        let container = try memory()
        let context = container.newContext()
        let old = account(context, "one") {
            $0.code = 5
            $0.visits = 1
        }
        try context.save()
        let new = account(context, "two") {
            $0.code = 5
            $0.visits = 1
        }
        // Only one part equal is no duplicate, nor are nil parts.
        _ = account(context, "three") { $0.code = 5 }
        _ = account(context, "four") { $0.visits = 1 }
        let result = try context.save()
        #expect(result.replaced == [new.objectID: old.objectID])
        #expect(old.email == "one")
        #expect(try context.count(Account.all) == 3)
    }
}
