// Undo and redo where others saved meanwhile: what they changed, deleted or took is theirs.

import Foundation
import Testing

@testable import VarveObjects

@Suite(.verified) struct AttackUndoOthersTests {
    struct Stop: Error {}

    private func context(_ container: PersistentContainer) -> ManagedObjectContext {
        let context = container.newContext()
        context.undoLimit = 100
        return context
    }

    /// The other context deleted what the undo wants back in a relationship.
    @Test(arguments: [0, 1, 2, 3]) func undoMeetsADeletionOfOthers(_ kind: Int) throws {
        let policies: [MergePolicy] = [
            .error, .overwrite, .rollback, .objectWinsByProperty,
        ]
        let container = try graph()
        let context = context(container)
        let all = try nodes("a", "b", "c", "d", in: context)
        let (a, b, c, d) = (all[0], all[1], all[2], all[3])
        for node in [b, c, d] { a.chapters.append(node) }
        a.next = b
        try context.save()
        context.withUndoGroup {
            a.chapters.remove(c)
            a.chapters.replaceAll(with: [d, b])
            a.next = d
        }
        try context.save()
        let other = container.newContext()
        let theirs = try other.same([a, b, c, d])
        other.delete(theirs[2])
        theirs[3].next = theirs[1]
        try other.save()
        // The undo is made over the old commit.
        try context.undo()
        do {
            try context.save(mergePolicy: policies[kind])
        } catch let error as StoreError {
            #expect(error.code == .conflict)
            context.advance()
            try expectSound(context)
            try context.save(mergePolicy: .storeWinsByProperty)
        }
        try expectSound(context)
        try expectSound(container.newContext())
        try context.redo()
        try context.undo()
        try context.save(mergePolicy: .overwrite)
        try expectSound(container.newContext())
        #expect(try !storedNames(container).isEmpty)
    }

    @Test func anOrderKeepsWhatOthersAdded() throws {
        let container = try graph()
        let context = context(container)
        let all = try nodes("a", "b", "c", "d", "e", in: context)
        let (a, b, c, d, e) = (all[0], all[1], all[2], all[3], all[4])
        for node in [b, c, d] {
            a.chapters.append(node)
            a.playlist.append(node)
            a.left.append(node)
        }
        try context.save()
        context.withUndoGroup {
            for list in [a.chapters, a.playlist, a.left] { list.replaceAll(with: [d, b, c]) }
        }
        try context.save()
        #expect(a.chapters.names == ["d", "b", "c"])
        let other = container.newContext()
        let theirs = try other.same([a, e])
        theirs[0].chapters.append(theirs[1])
        theirs[0].playlist.append(theirs[1])
        theirs[0].left.append(theirs[1])
        try other.save()
        context.advance()
        try context.undo()
        for names in [a.chapters.names, a.playlist.names, a.left.names] {
            #expect(names == ["b", "c", "e", "d"] || names == ["b", "c", "d", "e"])
        }
        try context.save()
        try context.redo()
        try context.save()
        let fresh = container.newContext()
        let stored = try #require(try fresh.existingObject(with: a.id))
        #expect(Set(stored.chapters.names) == ["b", "c", "d", "e"])
        #expect(stored.chapters.names.first == "d" && e.book === a)
        try expectSound(fresh)
    }

    @Test func aStolenPartnerIsGivenBack() throws {
        let container = try graph()
        let context = context(container)
        let all = try nodes("a", "b", "c", "d", in: context)
        let (a, b, c, d) = (all[0], all[1], all[2], all[3])
        a.next = b
        c.next = d
        try context.save()
        context.withUndoGroup("steal") { c.next = b }
        #expect(a.next == nil && d.previous == nil)
        try context.undo()
        #expect(a.next === b && c.next === d)
        try context.redo()
        try context.save()
        // Others give it to the fourth meanwhile.
        let other = container.newContext()
        let theirs = try other.same([b, d])
        theirs[1].next = theirs[0]
        try other.save()
        context.advance()
        let skipped = try context.undo()
        #expect(!skipped.isEmpty)
        try expectSound(context)
        try context.save()
        try expectSound(container.newContext())
        #expect(d.next === b && b.previous === d)
    }

    @Test func aCascadeThatOthersRebuiltIsUndone() throws {
        let container = try graph()
        let context = context(container)
        let all = try nodes("root", "one", "two", "leaf", "free", in: context)
        all[1].parent = all[0]
        all[2].parent = all[0]
        all[3].parent = all[1]
        all[4].playlist.append(all[3])
        all[4].picks.append(all[2])
        all[4].loose = all[1]
        try context.save()
        context.withUndoGroup("Delete") { context.delete(all[0]) }
        try context.save()
        #expect(try storedNames(container) == ["free"])
        let other = container.newContext()
        let free = try other.same([all[4]])[0]
        let new = Node(in: other)
        new.name = "new"
        free.playlist.append(new)
        free.loose = new
        try other.save()
        context.advance()
        let skipped = try context.undo()
        #expect(skipped.map(\.property) == ["loose"])
        try expectSound(context)
        try context.save()
        let fresh = container.newContext()
        try expectSound(fresh)
        let names = try storedNames(container).sorted()
        #expect(names == ["free", "leaf", "new", "one", "root", "two"])
        let stored = try #require(try fresh.existingObject(with: all[4].id))
        #expect(Set(stored.playlist.names) == ["leaf", "new"])
        #expect(stored.picks.names == ["two"] && stored.loose?.name == "new")
        // And away again, without what others made.
        try context.redo()
        try context.save()
        #expect(try storedNames(container).sorted() == ["free", "new"])
        try expectSound(container.newContext())
    }

    /// The value that the undo gives back has another owner now.
    /// The undone insertion has a cascade, by which others linked what is not the undo's to delete.
    @Test func anUndoneInsertionTakesNothingOfOthersAlong() throws {
        let container = try graph()
        let context = context(container)
        let child = try nodes("child", in: context)[0]
        context.withUndoGroup { Node(in: context).name = "parent" }
        try context.save()
        let parent = try #require(try context.fetch(Node.where { $0.name == "parent" }).first)
        let id = parent.id
        let other = container.newContext()
        let theirs = try other.same([child])[0]
        theirs.parent = try other.existingObject(with: id)
        try other.save()
        context.advance()
        #expect(child.parent?.id == id)
        // It stays, and is told: without it the child would be left alone.
        let skipped = try context.undo()
        #expect(skipped.map(\.object) == [parent.objectID])
        #expect(!parent.isDeleted && child.parent === parent)
        try expectSound(context)
        #expect(try context.redo().isEmpty)
        #expect(!parent.isDeleted && parent.name == "parent" && child.parent === parent)
        // Nobody leads to it any more.
        theirs.parent = nil
        try other.save()
        context.advance()
        #expect(try context.undo().isEmpty)
        #expect(parent.isDeleted && !child.isDeleted)
        try context.save()
        let fresh = container.newContext()
        #expect(try fresh.fetch(Node.all).map(\.name) == ["child"])
        try expectSound(fresh)
    }

    @Test func aUniqueValueIsTakenMeanwhile() throws {
        let container = try memory()
        let context = context(container)
        let serial = UUID()
        let item = Item(in: context)
        item.serial = serial
        try context.save()
        context.withUndoGroup { item.serial = nil }
        context.withUndoGroup { context.delete(item) }
        try context.save()
        let other = container.newContext()
        let taken = Item(in: other)
        taken.serial = serial
        try other.save()
        try context.undo()
        try context.save()
        try context.undo()
        #expect(code { try context.save() } == .notUnique)
        #expect(item.serial == serial && context.hasChanges)
        try context.redo()
        #expect(!context.hasChanges || item.serial == nil)
        try context.save()
        #expect(try container.newContext().count(Item.all) == 2)
        // Both go the other way round, and the constraint is met by the redo.
        try context.undo()
        other.delete(taken)
        try other.save()
        try context.save()
        let fresh = container.newContext()
        #expect(try fresh.fetch(Item.all).map(\.serial) == [serial])
    }

    @Test func anUpsertIsUndoneAndDoneAgain() throws {
        let container = try graph()
        let context = context(container)
        let a = try nodes("a", in: context)[0]
        a.key = "k"
        try context.save()
        context.withUndoGroup { context.delete(a) }
        try context.save()
        let other = container.newContext()
        let b = Node(in: other)
        (b.name, b.key) = ("b", "k")
        let child = Node(in: other)
        child.name = "child"
        child.parent = b
        try other.save()
        try context.undo()
        let result = try context.save()
        #expect(result.replaced.count <= 1)
        try expectSound(context)
        let fresh = container.newContext()
        try expectSound(fresh)
        #expect(try fresh.fetch(Node.where { $0.key == "k" }).count == 1)
        // What was replaced is not there to be undone or redone.
        try context.redo()
        try context.undo()
        try context.save(mergePolicy: .overwrite)
        try expectSound(container.newContext())
        #expect(try container.newContext().fetch(Node.where { $0.key == "k" }).count == 1)
    }

    @Test func redoAfterMergesOfEverything() throws {
        let container = try graph()
        let context = context(container)
        let all = try nodes("a", "b", "c", in: context)
        context.removeAllUndoSteps()
        context.withUndoGroup {
            let new = Node(in: context)
            new.name = "new"
            new.book = all[0]
            all[0].chapters.insert(all[1], at: 0)
            all[2].guardian = all[0]
            all[1].left.append(new)
        }
        try context.undo()
        let other = container.newContext()
        let theirs = try other.same(all)
        theirs[0].chapters.append(theirs[2])
        theirs[2].guardian = theirs[1]
        theirs[1].name = "theirs"
        try other.save()
        context.advance()
        try context.redo()
        try expectSound(context)
        try context.save()
        try expectSound(container.newContext())
        while context.canUndo { try context.undo() }
        try context.save()
        try expectSound(container.newContext())
        #expect(try storedNames(container).sorted() == ["a", "c", "theirs"])
    }

    /// The edit is taken back, and what others saved beneath it is shown: an undo, or a
    /// transaction, must not write an old value over theirs.
    @Test(arguments: [false, true]) func whatOthersSavedBeneathAnEditIsShown(undoes: Bool) throws {
        let container = try graph()
        let context = context(container)
        let all = try nodes("a", "b", in: context)
        let (a, b) = (all[0], all[1])
        context.removeAllUndoSteps()
        func others() throws {
            let other = container.newContext()
            let theirs = try other.same(all)
            theirs[0].name = "theirs"
            theirs[0].score = 7
            theirs[1].name = "theirs"
            try other.save()
            context.advance()
        }
        if undoes {
            context.withUndoGroup {
                a.name = "mine"
                context.delete(b)
            }
            try others()
            #expect(a.name == "mine" && a.score == 7 && b.isDeleted)
            #expect(try context.undo().map(\.property) == ["name"])
        } else {
            #expect(throws: Stop.self) {
                try context.transaction {
                    a.name = "mine"
                    context.delete(b)
                    try others()
                    a.name = "mine, too"
                    throw Stop()
                }
            }
        }
        #expect(a.name == "theirs" && b.name == "theirs" && !b.isDeleted && !context.hasChanges)
        try context.save()
        #expect(try storedNames(container) == ["theirs", "theirs"])
        // What was saved meanwhile is no such edit: it is taken back by value.
        context.withUndoGroup { a.name = "one" }
        try context.save()
        context.withUndoGroup { a.name = "two" }
        try context.save()
        try context.undo()
        try context.undo()
        #expect(a.name == "theirs")
    }

    /// What others gave another partner since keeps it.
    @Test func aMemberThatOthersTookStaysThere() throws {
        let container = try graph()
        let context = context(container)
        let all = try nodes("a", "b", "c", "d", in: context)
        let (a, b, c, d) = (all[0], all[1], all[2], all[3])
        for node in [b, c] { a.chapters.append(node) }
        a.next = b
        try context.save()
        context.withUndoGroup {
            a.chapters.remove(c)
            context.delete(a)
        }
        try context.save()
        let other = container.newContext()
        let theirs = try other.same([b, c, d])
        theirs[2].chapters.append(theirs[1])
        theirs[2].next = theirs[0]
        try other.save()
        context.advance()
        #expect(try !context.undo().isEmpty)
        try expectSound(context)
        #expect(c.book === d && d.chapters.names == ["c"] && d.next === b && a.next == nil)
        #expect(a.chapters.names == ["b"])
        try context.save()
        try expectSound(container.newContext())
    }
}
