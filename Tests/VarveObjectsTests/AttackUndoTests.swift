// Undo and redo in the wrong order: deletions that nobody processed, observers that edit, saves in
// the middle, full disks. What others saved meanwhile: AttackUndoOthersTests.swift.

import Foundation
import Observation
import Testing
import VarveBase
import VarveTesting

@testable import VarveObjects

@Suite(.verified) struct AttackUndoTests {
    struct Stop: Error {}

    private func context(_ container: PersistentContainer) -> ManagedObjectContext {
        let context = container.newContext()
        context.undoLimit = 100
        return context
    }

    /// A deletion is a step from the moment of `delete`, not from the next fetch on.
    @Test func aDeletionIsAStepAtOnce() throws {
        let container = try graph()
        let context = context(container)
        let a = try nodes("a", in: context)[0]
        context.removeAllUndoSteps()
        context.withUndoGroup("Rename") { a.name = "b" }
        context.withUndoGroup("Delete") { context.delete(a) }
        #expect(context.undoActionName == "Delete" && context.canUndo)
        try context.undo()
        #expect(!a.isDeleted && a.name == "b")
        #expect(context.undoActionName == "Rename" && context.redoActionName == "Delete")
        try context.undo()
        #expect(a.name == "a" && !context.hasChanges)
    }

    @Test func aBareDeletionCanBeUndoneAtOnce() throws {
        let container = try graph()
        let context = context(container)
        let a = try nodes("a", in: context)[0]
        context.removeAllUndoSteps()
        context.withUndoGroup { a.name = "b" }
        try context.undo()
        #expect(context.canRedo)
        context.delete(a)
        #expect(context.canUndo && !context.canRedo)
        try context.redo()
        #expect(a.isDeleted)
        try context.undo()
        #expect(!a.isDeleted && a.name == "a" && !context.hasChanges)
        try context.redo()
        #expect(a.isDeleted)
        try context.save()
        try context.undo()
        try context.save()
        #expect(try storedNames(container) == ["a"])
    }

    /// A transaction that throws inside a hook of a deletion takes back its own deletions only.
    @Test func aTransactionInAHookTakesBackItsOwn() throws {
        let container = try graph()
        let context = context(container)
        let all = try nodes("a", "b", "c", in: context)
        let (a, b, c) = (all[0], all[1], all[2])
        a.onPrepareForDeletion = {
            context.delete(b)
            try? context.transaction {
                context.delete(c)
                throw Stop()
            }
        }
        context.delete(a)
        try context.save()
        #expect(try storedNames(container) == ["c"])
        try context.undo()
        try context.save()
        #expect(try storedNames(container).sorted() == ["a", "b", "c"])
    }

    @Test func editThenDeleteThenUndo() throws {
        let container = try graph()
        let context = context(container)
        let all = try nodes("a", "b", "c", in: context)
        let (a, b, c) = (all[0], all[1], all[2])
        b.parent = a
        c.parent = b
        a.playlist.append(c)
        a.playlist.append(b)
        try context.save()
        context.removeAllUndoSteps()
        context.withUndoGroup("all") {
            a.name = "edited"
            b.parent = nil
            context.delete(a)
            c.parent = nil
            c.next = b
            context.delete(b)
        }
        try context.undo()
        #expect(a.name == "a" && b.parent === a && c.parent === b && c.next == nil)
        #expect(Array(a.playlist) == [c, b] && !context.hasChanges)
        try context.redo()
        try context.save()
        #expect(try storedNames(container) == ["c"])
        try context.undo()
        try context.save()
        let fresh = container.newContext()
        let stored = try fresh.same([a, b, c])
        #expect(stored[1].parent === stored[0] && stored[2].parent === stored[1])
        #expect(stored[0].playlist.ids == [c.id, b.id] && stored[0].name == "a")
        try expectSound(fresh)
    }

    @Test func extremeValuesComeBackToTheBit() throws {
        let container = try memory()
        let context = context(container)
        let item = Item(in: context)
        try context.save()
        let dates = [
            Date.distantPast, .distantFuture, Date(timeIntervalSinceReferenceDate: -0.0),
            Date(timeIntervalSinceReferenceDate: .leastNonzeroMagnitude),
        ]
        let texts = [
            "", "\u{0}", "e\u{301}", "\u{e9}", String(repeating: "\u{1F9D1}", count: 40_000),
        ]
        let numbers = [0, .max, 1]
        for step in 0..<12 {
            context.withUndoGroup {
                item.timestamp = dates[step % dates.count]
                item.title = texts[step % texts.count]
                item.number = numbers[step % numbers.count]
            }
        }
        try context.save()
        for step in (0..<11).reversed() {
            #expect(try context.undo().isEmpty)
            #expect(Array(item.title.utf8) == Array(texts[step % texts.count].utf8))
            #expect(item.number == numbers[step % numbers.count])
            if step % 3 == 0 { try context.save() }
        }
        for step in 1..<12 {
            #expect(try context.redo().isEmpty)
            #expect(Array(item.title.utf8) == Array(texts[step % texts.count].utf8))
        }
        context.undoLimit = .max
        #expect(context.canUndo)
        context.undoLimit = -3
        #expect(!context.canUndo && context.undoLimit == 0)
        try context.save()
    }

    @Test func aFullDiskIsUndone() throws {
        let disk = SimulatedDisk()
        let container = try PersistentContainer.openNow(on: disk, schema: GraphSchema.self)
        let context = context(container)
        let all = try nodes("a", "b", "c", in: context)
        all[0].chapters.append(all[1])
        try context.save()
        context.withUndoGroup("Big") {
            all[0].name = AdviceForDisksTests.long
            all[0].chapters.append(all[2])
            context.delete(all[1])
        }
        try AdviceForDisksTests().stop(disk, SimulatedDisk.noSpace)
        #expect(code { try context.save() } == .diskFull)
        #expect(context.undoActionName == "Big")
        try context.undo()
        #expect(all[0].name == "a" && all[0].chapters.names == ["b"] && !context.hasChanges)
        try context.redo()
        #expect(code { try context.save() } == .diskFull)
        try context.undo()
        disk.setFault(nil)
        try context.save()
        try expectSound(context)
        try context.redo()
        try context.save()
        try expectSound(container.newContext())
        try context.undo()
        try context.save()
        try container.closeNow()
        let again = try PersistentContainer.openNow(on: disk, schema: GraphSchema.self)
        #expect(try storedNames(again) == ["a", "b", "c"])
        try expectSound(again.newContext())
        try again.closeNow()
    }

    @Test func aSaveInTheMiddleOfAGroupIsPartOfTheStep() throws {
        let container = try graph()
        let context = context(container)
        let all = try nodes("a", "b", in: context)
        context.removeAllUndoSteps()
        try context.withUndoGroup("both") {
            all[0].next = all[1]
            all[0].name = "first"
            try context.save()
            context.delete(all[1])
            all[0].name = "second"
            try context.save()
            let c = Node(in: context)
            c.name = "c"
            c.parent = all[0]
        }
        #expect(context.undoActionName == "both")
        try context.undo()
        #expect(all[0].name == "a" && all[0].next == nil && all[0].children.isEmpty)
        #expect(try context.fetch(Node.all).names.sorted() == ["a", "b"])
        try context.save()
        try expectSound(container.newContext())
        try context.redo()
        try context.save()
        #expect(try storedNames(container).sorted() == ["c", "second"])
        try expectSound(container.newContext())
    }

    /// Runs `body`, once, just before what `read` reads changes.
    @MainActor private func before(_ read: () -> Void, _ body: @escaping @MainActor () -> Void) {
        let isDone = Shared(false)
        withObservationTracking(read) {
            let isSecond = isDone.withLock { value in
                defer { value = true }
                return value
            }
            if !isSecond { MainActor.assumeIsolated { body() } }
        }
    }

    /// An observer that edits a relationship while an undo lays values: its edit stays, and a redo
    /// does not lose it.
    @MainActor @Test(arguments: [false, true])
    func anObserverEditsDuringAnUndo(isSaved: Bool) throws {
        let container = try graph()
        let context = container.viewContext
        context.undoLimit = 100
        let all = try nodes("a", "b", "c", "d", in: context)
        let (a, b, c, d) = (all[0], all[1], all[2], all[3])
        context.withUndoGroup {
            a.name = "edited"
            a.parent = b
        }
        if isSaved { try context.save() }
        before({ _ = a.name }) {
            c.parent = d
            c.name = "by the observer"
        }
        try context.undo()
        #expect(a.name == "a" && a.parent == nil)
        #expect(c.parent === d && c.name == "by the observer")
        try context.redo()
        #expect(a.parent === b && c.parent === d && c.name == "by the observer")
        try expectSound(context)
        try context.save()
        let fresh = container.newContext()
        #expect(try fresh.existingObject(with: c.id)?.parent?.name == "d")
        try expectSound(fresh)
    }

    @MainActor @Test func undoInAnObserverIsRefused() throws {
        let container = try graph()
        let context = container.viewContext
        context.undoLimit = 100
        let a = try nodes("a", in: context)[0]
        context.withUndoGroup { a.name = "b" }
        context.withUndoGroup { a.name = "c" }
        var codes: [StoreError.Code?] = []
        before({ _ = a.name }) {
            codes += [code { try context.undo() }, code { try context.redo() }]
        }
        try context.undo()
        #expect(codes == [.reentrantSave, .reentrantSave])
        #expect(a.name == "b")
        a.onWillSave = { #expect(code { try context.undo() } == .reentrantSave) }
        a.onDidSave = { #expect(code { try context.redo() } == .reentrantSave) }
        try context.save()
        a.onWillSave = nil
        a.onDidSave = nil
    }

    @Test func hooksOfASaveBelongToTheStep() throws {
        let container = try graph()
        let context = context(container)
        let all = try nodes("a", "b", in: context)
        context.removeAllUndoSteps()
        all[0].onWillSave = { if all[1].score == 0 { all[1].score = 5 } }
        all[0].onDidSave = { all[1].name = "after the save" }
        context.withUndoGroup { all[0].name = "edited" }
        try context.save()
        all[0].onWillSave = nil
        all[0].onDidSave = nil
        #expect(all[1].name == "after the save" && context.canUndo)
        try context.undo()
        #expect(all[1].name == "b" && all[0].name == "edited")
        try context.undo()
        try context.undo()
        #expect(all[0].name == "a" && all[1].score == 0 && !context.canUndo)
        try context.save()
    }

    @Test func aResetBetweenTheStepsLeavesNoStep() throws {
        let container = try graph()
        let context = context(container)
        let a = try nodes("a", in: context)[0]
        context.withUndoGroup {
            a.name = "b"
            context.reset()
        }
        #expect(!context.canUndo)
        let again = try #require(try context.named("a"))
        context.withUndoGroup { again.name = "c" }
        context.transaction {
            again.name = "d"
            context.rollback()
            again.name = "e"
        }
        #expect(again.name == "e")
        try context.undo()
        #expect(again.name == "a")
        try context.save()
    }

    /// Undo while nobody may write, and in a context of the past.
    @Test func undoWithoutAWriter() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let ids = try makeItems(3, in: container)
        let context = context(container)
        let item = try context.object(with: ids[0])
        context.withUndoGroup { item.title = "edited" }
        context.withUndoGroup { context.delete(item) }
        try container.suspendNow()
        #expect(code { try context.save() } == .suspended)
        try context.undo()
        try context.undo()
        #expect(item.title == "item 0" && !context.hasChanges)
        try context.redo()
        let branch = try context.branch()
        try branch.object(with: ids[1]).title = "in a branch"
        try branch.mergeIntoParent(undoActionName: "Sheet")
        #expect(context.undoActionName == "Sheet")
        try container.resumeNow()
        try context.save()
        let past = try container.newContext(at: .commit(CommitNumber(1)))
        past.undoLimit = 3
        if let old = try past.fetch(Item.all).first {
            past.withUndoGroup { past.delete(old) }
            try past.undo()
            #expect(!old.isDeleted && !past.hasChanges)
        }
        let fresh = container.newContext()
        #expect(try fresh.fetch(Item.all).map(\.title).contains("in a branch"))
        try container.closeNow()
        #expect(code { try context.undo() } == nil || code { try context.undo() } == .closed)
    }

}
