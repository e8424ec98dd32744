// Observers that move the context, or open transactions and groups, in the middle of an edit that
// is recorded: what a review of that found.

import Observation
import Testing

@testable import VarveObjects

@Suite(.verified) @MainActor struct EditsUnderWayTests {
    private struct Stop: Error {}

    private func setting() throws -> (PersistentContainer, ManagedObjectContext, [Node]) {
        let container = try graph()
        let context = container.newContext(observes: true)
        let n = try nodes("a", "b", "c", "d", "e", in: context)
        context.undoLimit = 9
        return (container, context, n)
    }

    private func expectSaved(
        _ container: PersistentContainer,
        _ context: ManagedObjectContext
    ) throws {
        try expectSound(context)
        try context.save()
        #expect(!context.hasChanges && context.readFailures.isEmpty)
        let fresh = container.newContext()
        try expectSound(fresh)
        let all = try fresh.fetch(Node.all).map { "\($0.id) \($0.name) \($0.parent?.id as Any)" }
        let own = try context.fetch(Node.all).map { "\($0.id) \($0.name) \($0.parent?.id as Any)" }
        #expect(all == own)
    }

    /// A new object that the observer makes and deletes, and one that the edit leads to.
    @Test(arguments: [false, true]) func newObjectsThatEnd(_ isTarget: Bool) throws {
        let (container, context, n) = try setting()
        let new = Node(in: context)
        beforeChange(of: { _ = n[2].parent }) {
            if isTarget {
                context.delete(new)
            } else {
                let own = Node(in: context)
                own.parent = n[0]
                context.delete(own)
                context.delete(new)
            }
            try saveElsewhere(container)
            context.advance()
        }
        n[2].parent = isTarget ? new : n[1]
        #expect(n[2].parent === (isTarget ? nil : n[1]))
        try expectSaved(container, context)
    }

    /// Both delete, and the observer of that finds the other deletion in the middle of the own one.
    @Test(arguments: [false, true]) func bothDelete(_ child: Bool) throws {
        let (container, context, n) = try setting()
        n[1].parent = n[0]
        n[2].parent = n[1]
        n[3].next = n[2]
        try context.save()
        n[2].name = "edited"
        n[2].next = n[4]
        try saveElsewhere(container) { try $0.delete($0.object(with: n[2].id)) }
        beforeChange(of: { _ = n[0].children.ids }) { context.advance() }
        context.delete(child ? n[1] : n[2])
        if !child { beforeChange(of: { _ = n[1].children.ids }) { context.advance() } }
        context.processPendingChanges()
        #expect(n[2].isDeleted && !n[2].hasChanges)
        try expectSaved(container, context)
    }

    /// The observer takes an earlier edit back; it stays so when the edit around it is laid again.
    @Test func anEditThatTheObserverTakesBack() throws {
        let (container, context, n) = try setting()
        n[0].parent = n[1]
        beforeChange(of: { _ = n[2].parent }) {
            n[0].parent = nil
            try saveElsewhere(container)
            context.advance()
        }
        n[2].parent = n[3]
        #expect(n[0].parent == nil && n[2].parent === n[3])
        try expectSaved(container, context)
        #expect(n[0].parent == nil && n[2].parent === n[3])
    }

    /// Two edits of one object behind its save: the second one is the value from before.
    @Test(arguments: [false, true]) func editsOfWhatIsSaved(_ isNew: Bool) throws {
        let (container, context, n) = try setting()
        let x = isNew ? Node(in: context) : n[0]
        let old = x.name
        x.name = "b"
        x.key = "k"
        x.children.append(n[1])
        beforeChange(of: { _ = x.children.ids }) {
            x.score = 5
            x.name = old
            x.key = nil
        }
        try context.save()
        #expect(x.name == old && x.key == nil && x.score == 5 && x.hasChanges)
        try expectSaved(container, context)
        #expect(x.name == old && x.key == nil && x.score == 5)
    }

    /// A refresh lays the journal, and an observer moves in the middle of that.
    @Test(arguments: [false, true]) func aMoveInARefresh(_ isUndo: Bool) throws {
        let (container, context, n) = try setting()
        func edits() {
            n[2].parent = n[3]
            n[0].parent = n[1]
            beforeChange(of: { _ = n[2].parent }) {
                try saveElsewhere(container)
                context.advance()
            }
            n[4].next = n[0]
            context.refresh(n[4], mergeChanges: false)
        }
        if isUndo {
            context.withUndoGroup { edits() }
            #expect(n[2].parent === n[3] && n[0].parent === n[1])
            try context.undo()
        } else {
            #expect(throws: Stop.self) {
                try context.transaction {
                    edits()
                    throw Stop()
                }
            }
        }
        #expect(n[2].parent == nil && n[0].parent == nil && !context.hasChanges)
        try expectSaved(container, context)
    }

    enum Inner: CaseIterable {
        case moves, throwsIt, group
    }

    /// Transactions and groups of an observer in the middle of an edit, which is taken back.
    @Test(arguments: Inner.allCases, [false, true])
    func anObserverOpens(_ inner: Inner, _ isUndo: Bool) throws {
        let (container, context, n) = try setting()
        beforeChange(of: { _ = n[2].parent }) {
            switch inner {
            case .moves:
                try context.transaction {
                    n[3].name = "q"
                    try saveElsewhere(container)
                    context.advance()
                }
            case .throwsIt:
                do {
                    try context.transaction {
                        n[3].parent = n[0]
                        throw Stop()
                    }
                } catch is Stop {}
            case .group: context.withUndoGroup { n[3].name = "q" }
            }
        }
        if isUndo {
            if inner == .group {
                n[2].parent = n[1]
            } else {
                context.withUndoGroup { n[2].parent = n[1] }
            }
            #expect(n[2].parent === n[1] && n[3].parent == nil)
            try context.undo()
            #expect(n[2].parent == nil)
            #expect(n[3].name == (inner == .group ? "q" : "d"))
            if inner == .group { try context.undo() }
        } else {
            #expect(throws: Stop.self) {
                try context.transaction {
                    n[2].parent = n[1]
                    throw Stop()
                }
            }
        }
        #expect(n[2].parent == nil && n[3].parent == nil && n[3].name == "d")
        #expect(!context.hasChanges)
        try expectSaved(container, context)
    }

    /// An edit that an observer makes while a move lays the journal is in no step, and no undo of
    /// an earlier one loses it.
    @Test func anUndoLeavesWhatNoStepKnows() throws {
        let (container, context, n) = try setting()
        context.withUndoGroup { n[1].parent = n[0] }
        beforeChange(of: { _ = n[1].parent }) { n[3].parent = n[4] }
        try saveElsewhere(container)
        context.advance()
        #expect(n[3].parent === n[4])
        try context.undo()
        #expect(n[1].parent == nil && n[3].parent === n[4])
        try expectSaved(container, context)
    }

    private enum Deletion: CaseIterable {
        case itself, owner, marked
    }

    /// The observer of a setter deletes the object: its value ends with it, and nothing of it stays
    /// when that is taken back.
    @Test(arguments: Deletion.allCases, [false, true])
    private func aSetterOfWhatIsDeleted(_ deletion: Deletion, _ isUndo: Bool) throws {
        let (container, context, n) = try setting()
        n[1].parent = n[0]
        try context.save()
        beforeChange(of: { _ = n[1].name }) {
            context.delete(deletion == .itself ? n[1] : n[0])
            if deletion != .marked { context.processPendingChanges() }
        }
        if isUndo {
            context.withUndoGroup { n[1].name = "new" }
            try context.undo()
        } else {
            #expect(throws: Stop.self) {
                try context.transaction {
                    n[1].name = "new"
                    throw Stop()
                }
            }
        }
        #expect(n[1].name == "b" && !n[1].isDeleted && !n[0].isDeleted && !context.hasChanges)
        try expectSaved(container, context)
    }

    /// An observer deletes the owner below which a new object is put: it was never there.
    @Test(arguments: [false, true]) func aNewObjectBelowWhatIsDeleted(_ isUndo: Bool) throws {
        let (container, context, n) = try setting()
        n[1].parent = n[0]
        try context.save()
        beforeChange(of: { _ = n[1].children.ids }) {
            context.delete(n[0])
            context.processPendingChanges()
        }
        func edits() { n[1].children.append(Node(in: context)) }
        if isUndo {
            context.withUndoGroup { edits() }
            #expect(n[0].isDeleted && n[1].isDeleted)
            try context.undo()
        } else {
            #expect(throws: Stop.self) {
                try context.transaction {
                    edits()
                    throw Stop()
                }
            }
        }
        #expect(!context.hasChanges && n[1].parent === n[0])
        #expect(try context.count(Node.all) == 5)
        try expectSaved(container, context)
    }

    /// An observer of what a cascade only marks moves the context: what was edited before the
    /// deletion is taken back as well.
    @Test(arguments: [0, 1, 2]) func aMoveWhileObjectsAreMarked(_ how: Int) throws {
        let (container, context, n) = try setting()
        n[1].parent = n[0]
        n[2].parent = n[1]
        try context.save()
        beforeChange(of: { _ = n[2].isDeleted }) {
            try saveElsewhere(container)
            context.advance()
        }
        func edits() {
            n[1].name = "new"
            n[1].loose = n[4]
            context.delete(n[0])
            context.processPendingChanges()
        }
        if how == 0 {
            #expect(throws: Stop.self) {
                try context.transaction {
                    edits()
                    throw Stop()
                }
            }
        } else {
            context.withUndoGroup { edits() }
            if how == 2 { try context.save() }
            #expect(try context.undo().isEmpty)
        }
        #expect(n[1].name == "b" && n[1].loose == nil && n[2].parent === n[1])
        try expectSaved(container, context)
        #expect(try container.newContext().object(with: n[1].id).name == "b")
    }

    /// An observer of the rules that run at the end of a group makes one of its own.
    @Test func aGroupInTheRulesOfAnother() throws {
        let (container, context, n) = try setting()
        n[1].parent = n[0]
        try context.save()
        beforeChange(of: { _ = n[1].isDeleted }) {
            context.withUndoGroup("inner") { n[3].name = "q" }
        }
        context.withUndoGroup("outer") {
            n[4].name = "r"
            context.delete(n[0])
        }
        #expect(context.undoActionName == "outer")
        #expect(try context.undo().isEmpty)
        #expect(n[3].name == "d" && n[4].name == "e" && n[1].parent === n[0])
        #expect(context.undoActionName.isEmpty && !context.hasChanges)
        try expectSaved(container, context)
    }

    /// Many edits of one property leave one entry.
    @Test func theJournalStaysShort() throws {
        let (_, _, n) = try setting()
        var journal = Journal()
        for number in 0..<10_000 {
            _ = journal.begin()
            let model = n[0].storage.model
            let slot = model.properties.firstIndex { $0.name == "loose" } ?? 0
            let id = n[1 + number % 4].storage.object
            journal.append(.relate(model, n[0].storage.object, slot: slot, to: id))
            journal.end()
        }
        #expect(journal.intents.count == 1)
        #expect(journal.entryCount < 200)
    }
}
