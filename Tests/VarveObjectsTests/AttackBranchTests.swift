// Branches in the wrong order: merged late, after their parent saved, rolled back, was reset or
// deleted the object; transactions and steps in them.

import Foundation
import Testing
import VarveTesting

@testable import VarveObjects

@Suite(.verified) struct AttackBranchTests {
    struct Stop: Error {}

    /// `follow()` of a branch keeps its edits, and it stays on its parent's commit.
    @MainActor @Test func aBranchFollowsItsParent() async throws {
        let container = try graph()
        let parent = container.newContext()
        let all = try nodes("a", "b", in: parent)
        let branch = try parent.branch()
        let copies = try branch.same(all)
        copies[0].name = "branch"
        copies[0].next = copies[1]
        let task = Task { @MainActor in await branch.follow() }
        for _ in 0..<20 { await Task.yield() }
        let other = container.newContext()
        try other.same(all)[1].name = "theirs"
        try other.save()
        for _ in 0..<200 {
            await Task.yield()
            try await Task.sleep(for: .milliseconds(1))
        }
        task.cancel()
        await task.value
        #expect(copies[0].name == "branch" && branch.hasChanges)
        #expect(copies[1].name == "b" && all[1].name == "b")
        #expect(branch.commit == parent.commit)
        parent.advance()
        branch.advance()
        #expect(copies[1].name == "theirs" && copies[0].name == "branch")
        try branch.mergeIntoParent()
        #expect(all[0].name == "branch" && all[0].next === all[1])
        try parent.save()
        try expectSound(container.newContext())
    }

    /// A transaction that throws takes back what it edited, and nothing from before, also when the
    /// branch moved on inside it.
    @Test(arguments: [false, true]) func aBranchMovesInsideATransaction(savesBefore: Bool) throws {
        let container = try graph()
        let parent = container.newContext()
        let all = try nodes("a", "b", "c", in: parent)
        let branch = try parent.branch()
        let copies = try branch.same(all)
        copies[0].name = "before"
        copies[0].next = copies[1]
        let new = Node(in: branch)
        new.name = "new"
        #expect(throws: Stop.self) {
            try branch.transaction {
                copies[0].name = "inside"
                copies[1].name = "inside"
                all[2].name = "parent"
                if savesBefore { try parent.save() }
                // It stays where it is until the transaction has ended.
                branch.advance()
                branch.refreshAllObjects()
                #expect(copies[2].name == "c" && copies[0].name == "inside")
                copies[2].name = "inside"
                new.name = "inside"
                throw Stop()
            }
        }
        #expect(copies[0].name == "before" && copies[0].next === copies[1])
        #expect(copies[1].name == "b" && copies[2].name == "c" && new.name == "new")
        branch.advance()
        #expect(copies[2].name == "parent" && copies[0].next === copies[1] && new.name == "new")
        #expect(!new.storage.state.contains(.invalid))
        try branch.mergeIntoParent()
        try parent.save()
        let stored = container.newContext()
        #expect(try storedNames(container).sorted() == ["b", "before", "new", "parent"])
        try expectSound(stored)
    }

    /// What a branch gave up does not stand in the way of its next merge.
    @Test(arguments: [false, true]) func aRollbackEndsWhatCouldNotBePlaced(resets: Bool) throws {
        let container = try graph()
        let parent = container.newContext()
        let all = try nodes("a", "b", in: parent)
        let branch = try parent.branch()
        try branch.same(all)[0].name = "branch"
        parent.delete(all[0])
        branch.advance()
        #expect(code { try branch.mergeIntoParent() } == .conflict)
        if resets { branch.reset() } else { branch.rollback() }
        #expect(!branch.hasChanges)
        try branch.same([all[1]])[0].name = "later"
        #expect(try branch.mergeIntoParent().isEmpty)
        #expect(all[1].name == "later")
        try parent.save()
        #expect(try storedNames(container) == ["later"])
    }

    /// Whoever decides anew what could not be placed has decided.
    @Test func anEditAfterTheConflictSettlesIt() throws {
        let container = try graph()
        let parent = container.newContext()
        let all = try nodes("a", "b", "c", in: parent)
        let branch = try parent.branch()
        let copies = try branch.same(all)
        copies[0].parent = copies[1]
        parent.delete(all[1])
        branch.advance()
        #expect(copies[0].parent == nil)
        #expect(code { try branch.mergeIntoParent() } == .conflict)
        copies[0].parent = copies[2]
        #expect(try branch.mergeIntoParent().isEmpty)
        #expect(all[0].parent === all[2])
        try parent.save()
        try expectSound(container.newContext())
    }

    enum Deed: CaseIterable { case saves, rollsBack, resets, savesOthers, deletes, undoes }

    /// A branch of a branch is merged when its grandparent has moved on, in every way.
    @Test(arguments: Deed.allCases, [false, true])
    func aGrandchildIsMergedLate(deed: Deed, innerLast: Bool) throws {
        let container = try graph()
        let top = container.newContext()
        top.undoLimit = 10
        let all = try nodes("a", "b", "c", "d", in: top)
        let (a, b) = (all[0], all[1])
        top.withUndoGroup {
            a.name = "top"
            a.chapters.append(b)
        }
        let unsaved = Node(in: top)
        unsaved.name = "unsaved"
        let middle = try top.branch()
        let mine = try middle.same(all)
        mine[0].chapters.append(mine[2])
        mine[1].name = "middle"
        let inner = try middle.branch()
        let his = try inner.same(all)
        his[0].chapters.insert(his[3], at: 0)
        his[2].name = "inner"
        let new = Node(in: inner)
        new.name = "new"
        new.parent = his[0]
        try #require(try inner.existingObject(with: unsaved.id)).next = new
        switch deed {
        case .saves: try top.save()
        case .rollsBack: top.rollback()
        case .resets: top.reset()
        case .savesOthers:
            let other = container.newContext()
            try other.same(all)[3].name = "theirs"
            other.delete(try other.same(all)[1])
            try other.save()
            top.advance()
        case .deletes:
            top.delete(a)
            top.delete(unsaved)
        case .undoes:
            try top.undo()
            try top.undo()
        }
        func merge(_ branch: ManagedObjectContext) throws {
            do {
                try branch.mergeIntoParent()
            } catch let error as StoreError {
                #expect(error.code == .conflict)
                try branch.mergeIntoParent(.branchWins)
            }
            #expect(!branch.hasChanges)
        }
        if innerLast {
            try merge(middle)
            if deed == .saves { try top.save() }
            try merge(inner)
            try merge(middle)
        } else {
            try merge(inner)
            try merge(middle)
            inner.advance()
        }
        for context in [inner, middle, top] { try expectSound(context) }
        #expect(try inner.fetch(Node.all).count == top.fetch(Node.all).count)
        try top.save(mergePolicy: .overwrite)
        try expectSound(container.newContext())
        inner.advance()
        middle.advance()
        inner.advance()
        for context in [inner, middle, top] { try expectSound(context) }
        #expect(try inner.fetch(Node.all).names == storedNames(container))
        #expect(!inner.hasChanges && !middle.hasChanges && !top.hasChanges)
    }

    /// A transaction inside a group inside a branch.
    @Test(arguments: [false, true]) func transactionInAGroupInABranch(throwsAtLast: Bool) throws {
        let container = try graph()
        let parent = container.newContext()
        parent.undoLimit = 10
        let all = try nodes("a", "b", "c", in: parent)
        parent.removeAllUndoSteps()
        let branch = try parent.branch()
        branch.undoLimit = 10
        let copies = try branch.same(all)
        branch.withUndoGroup("Outer") {
            copies[0].name = "group"
            try? branch.transaction {
                copies[0].name = "transaction"
                branch.delete(copies[1])
                copies[2].parent = copies[0]
                branch.withUndoGroup("Inner") { copies[2].name = "inner" }
                if throwsAtLast { throw Stop() }
            }
        }
        #expect(branch.undoActionName == "Outer")
        #expect(copies[0].name == (throwsAtLast ? "group" : "transaction"))
        #expect(copies[1].isDeleted == !throwsAtLast)
        try branch.undo()
        #expect(!branch.hasChanges && copies[0].name == "a" && copies[2].parent == nil)
        try branch.redo()
        try branch.mergeIntoParent(undoActionName: "Sheet")
        #expect(parent.undoActionName == "Sheet")
        // Taken back in the branch after the merge, and merged again.
        try branch.undo()
        #expect(copies[0].name == "a" && branch.hasChanges)
        try branch.mergeIntoParent(undoActionName: "Back")
        #expect(!parent.hasChanges && all[0].name == "a" && !all[1].isDeleted)
        try parent.undo()
        #expect(all[0].name == (throwsAtLast ? "group" : "transaction"))
        try parent.undo()
        #expect(!parent.hasChanges && !parent.canUndo)
        try parent.redo()
        try parent.save()
        branch.advance()
        try expectSound(branch)
        try expectSound(container.newContext())
        #expect(try storedNames(container).count == (throwsAtLast ? 3 : 2))
    }

    /// The parent's transaction takes a merge back: the branch has its edits still.
    @Test func aMergeInsideATransactionOfTheParent() throws {
        let container = try graph()
        let parent = container.newContext()
        let all = try nodes("a", "b", in: parent)
        let branch = try parent.branch()
        let copies = try branch.same(all)
        copies[0].name = "branch"
        try? parent.transaction {
            all[1].name = "transaction"
            try branch.mergeIntoParent()
            throw Stop()
        }
        #expect(all[0].name == "a" && all[1].name == "b" && !parent.hasChanges)
        branch.advance()
        try expectSound(branch)
        #expect(copies[1].name == "b")
    }

    @Test func aParentThatIsClosedOrDeletedFrom() throws {
        let container = try graph()
        let parent = container.newContext()
        let all = try nodes("a", "b", in: parent)
        let branch = try parent.branch()
        let copies = try branch.same(all)
        copies[0].chapters.append(copies[1])
        copies[1].name = "branch"
        parent.delete(all[0])
        try parent.save()
        #expect(code { try branch.mergeIntoParent() } == .conflict)
        let left = try branch.mergeIntoParent(.branchWins)
        #expect(!left.isEmpty)
        #expect(all[1].name == "branch")
        try expectSound(parent)
        try expectSound(branch)
        try parent.save()
        copies[1].name = "late"
        branch.rollback()
        try container.closeNow()
        #expect(code { try branch.mergeIntoParent() } == .closed)
        #expect(code { _ = try parent.branch() } == .closed)
    }

    /// A unique value that the parent, or the store, has taken.
    @Test func aUniqueValueMeetsTheParents() throws {
        let container = try memory()
        let parent = container.newContext()
        let serial = UUID()
        let first = Item(in: parent)
        first.serial = serial
        let branch = try parent.branch()
        let second = Item(in: branch)
        second.serial = serial
        try branch.mergeIntoParent()
        #expect(code { try parent.save() } == .notUnique)
        second.serial = UUID()
        try branch.mergeIntoParent()
        try parent.save()
        #expect(try container.newContext().count(Item.all) == 2)
        let fresh = try parent.branch()
        let third = Item(in: fresh)
        third.serial = serial
        fresh.delete(try fresh.object(with: first.id))
        try fresh.mergeIntoParent()
        try parent.save()
        #expect(try container.newContext().count(Item.all) == 2)
    }
}
