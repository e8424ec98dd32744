// What readers with fresh eyes found in ordinary use: lists, cursors, questions, branches.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct AttackOrdinaryUseTests {
    /// The rule of the deletion takes it out; the edit was refused, and each save behind it failed.
    @Test(arguments: [false, true])
    func aDeletedMemberIsTakenOutOfItsList(isProcessed: Bool) throws {
        let container = try memory()
        let context = container.newContext()
        let folder = Folder(in: context)
        let (item, other, third) = (Item(in: context), Item(in: context), Item(in: context))
        for member in [item, other, third] { member.folder = folder }
        try context.save()
        context.delete(item)
        if isProcessed { context.processPendingChanges() }
        folder.items.remove(item)
        #expect(context.refusedEdits.isEmpty)
        try context.save()
        folder.items.remove(item)
        #expect(context.refusedEdits.isEmpty && folder.items.count == 2)
        context.delete(other)
        if isProcessed { context.processPendingChanges() }
        folder.items.replaceAll(with: [third])
        #expect(context.refusedEdits.isEmpty)
        try context.save()
        context.delete(third)
        if isProcessed { context.processPendingChanges() }
        folder.items.removeAll()
        #expect(context.refusedEdits.isEmpty)
        try context.save()
        let stored = try container.newContext().fetch(Folder.all)
        #expect(stored.map(\.items.count) == [0])
        #expect(try container.newContext().count(Item.all) == 0)
    }

    /// A batched list read the new commit, in which the object has no lists, and the save that
    /// brought it back had nothing to bring back.
    @Test func aBatchedListLeavesTheListsOfTheGone() throws {
        let container = try memory()
        let writer = container.newContext()
        let made = Item(in: writer)
        made.tags.append(Tag(in: writer))
        try writer.save()
        let id = made.id
        let context = container.newContext()
        let list = try context.fetchBatched(Item.all.prefetch { $0.tags })
        let item = list[0]
        item.title = "mine"
        let other = container.newContext()
        other.delete(try other.object(with: id))
        try other.save()
        context.advance()
        #expect(item.isDeleted && item.tags.count == 1)
        _ = list[0]
        #expect(item.tags.count == 1)
        try context.save(mergePolicy: .objectWinsByProperty)
        let stored = try #require(try container.newContext().existingObject(with: id))
        #expect(stored.title == "mine" && stored.tags.count == 1)
    }

    @Test func aQuestionAboutAWindowFollowsItsOrder() throws {
        let container = try memory()
        let ids = try makeItems(3, in: container)
        let context = container.newContext()
        let first = Item.all.sorted { [$0.title.ascending] }.limit(1)
        let sum = try context.liveSum(first) { $0.number }
        let most = try context.liveMaximum(first) { $0.number }
        #expect(sum.value == 0 && most.value == 0)
        let other = container.newContext()
        let item = try #require(try other.existingObject(with: ids[0]))
        item.title = "z"
        try other.save()
        context.advance()
        #expect(try context.sum(first) { $0.number } == 1)
        #expect(sum.value == 1 && most.value == 1)
    }

    /// The object itself is its own last term, and has no value in a cursor.
    @Test(arguments: ["title, id", "id", "-title, -id, number"])
    func anOrderThatNamesTheObjectIsPaged(order text: String) throws {
        let container = try memory()
        try makeItems(5, in: container) { item, _ in item.title = "same" }
        let context = container.newContext()
        let order = try container.order(text, of: Item.self)
        let all = Item.all.sorted { _ in order }
        let wanted = try context.fetch(all).map(\.number)
        var found: [Int] = []
        var page = try context.fetchPage(all.limit(2))
        while !page.objects.isEmpty, found.count < 10 {
            found += page.objects.map(\.number)
            page = try context.fetchPage(all.limit(2).after(page.last))
        }
        #expect(found == wanted && wanted.count == 5)
        let third = try context.fetch(all)[2]
        let cursor = try context.cursor(of: third.id, in: all)
        #expect(try context.fetch(all.before(cursor)).map(\.number) == Array(wanted[..<2]))
        // That of another order is not taken.
        let other = Item.all.sorted { [$0.number.ascending] }
        #expect(code { _ = try context.fetch(other.after(cursor)) } == .invalidCursor)
    }

    @Test func aBranchThatMovesOnKeepsWhatWasRefused() throws {
        let container = try memory()
        let parent = container.newContext()
        let row = Everything(in: parent)
        row.required = "r"
        try parent.save()
        let sheet = try parent.branch()
        let copy = try sheet.object(with: row.id)
        copy.decimal = .nan
        copy.int = 5
        #expect(code { try sheet.mergeIntoParent() } == .invalid)
        sheet.advance()
        #expect(sheet.refusedEdits.count == 1)
        #expect(code { try sheet.mergeIntoParent() } == .invalid)
        #expect(row.int != 5)
        sheet.rollback()
        #expect(sheet.refusedEdits.isEmpty)
        copy.int = 6
        try sheet.mergeIntoParent()
        #expect(row.int == 6)
        try parent.save()
    }

    @Test func aSaveOfNothingEndsTheWatchForConflicts() throws {
        let container = try memory()
        let context = container.newContext()
        let (rate, order) = (Item(in: context), Item(in: context))
        try context.save()
        try context.detectConflicts(for: rate)
        #expect(try context.save().commit == nil)
        let other = container.newContext()
        let theirs = try #require(try other.existingObject(with: rate.id))
        theirs.number = 9
        try other.save()
        order.title = "later"
        try context.save()
        #expect(rate.number == 9)
    }
}
