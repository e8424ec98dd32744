// Observers that act in the middle of an edit of the graph: of a setter, of a move to others'
// commit, of an undo. What they do counts, and what was under way rests on it.

import Foundation
import Observation
import Testing

@testable import VarveObjects

@Suite(.verified) struct ObserversInTheMiddleTests {
    private enum Act: CaseIterable {
        case rollback, reset, refresh, advance, delete, unlink, relink, make, process
    }

    private func observed(
        _ container: PersistentContainer
    ) -> ManagedObjectContext { container.newContext(observes: true) }

    @MainActor private func act(
        _ act: Act,
        _ node: Node,
        _ other: Node,
        _ context: ManagedObjectContext
    ) {
        switch act {
        case .rollback: context.rollback()
        case .reset: context.reset()
        case .refresh: context.refresh(node, mergeChanges: false)
        case .advance: context.advance()
        case .delete: context.delete(other)
        case .unlink: if !node.isDeleted { node.parent = nil }
        case .relink: if !other.isDeleted { other.parent = nil }
        case .make:
            let new = Node(in: context)
            new.name = "made"
            if !other.isDeleted { new.parent = other }
        case .process: context.processPendingChanges()
        }
    }

    /// All that a context shows agrees, is saved in the end, and is what others read.
    @MainActor private func expectWhole(
        _ container: PersistentContainer,
        _ context: ManagedObjectContext,
        _ what: String
    ) throws {
        try expectSound(context)
        #expect(context.readFailures.isEmpty, "\(what)")
        context.acknowledgeRefusedEdits()
        do { try context.save() } catch let error as StoreError {
            #expect(error.code == .conflict, "\(what): \(error)")
            context.advance()
            try expectSound(context)
            try context.save(mergePolicy: .overwrite)
        }
        #expect(!context.hasChanges, "\(what)")
        try expectSound(context)
        let fresh = container.newContext()
        try expectSound(fresh)
        #expect(
            try fresh.fetch(Node.all).map { "\($0.id) \($0.parent?.id as Any)" }
                == (try context.fetch(Node.all).map { "\($0.id) \($0.parent?.id as Any)" }),
            "\(what)"
        )
    }

    /// A setter, while another context has deleted one end and moved another.
    @MainActor @Test(arguments: Act.allCases) private func inTheMiddleOfASetter(
        _ first: Act
    ) throws {
        for second in Act.allCases {
            let container = try graph()
            let context = observed(container)
            let n = try nodes("a", "b", "c", "d", in: context)
            n[1].parent = n[0]
            n[2].parent = n[0]
            try context.save()
            let other = container.newContext()
            try other.object(with: n[3].id).parent = other.object(with: n[1].id)
            try other.delete(other.object(with: n[0].id))
            try other.save()
            var hasRun = false
            beforeChange(of: { _ = (n[2].parent, n[2].isDeleted) }) {
                hasRun = true
                self.act(first, n[2], n[1], context)
            }
            beforeChange(of: { _ = (n[1].children.count, n[0].children.count) }) {
                self.act(second, n[1], n[3], context)
            }
            n[2].parent = n[1]
            #expect(hasRun, "\(first), \(second)")
            // Neither took it back, or the ends of it.
            let keeping: Set<Act> = [.process, .make]
            if keeping.contains(first), keeping.contains(second) {
                #expect(n[2].parent === n[1], "\(first), \(second)")
                #expect(n[1].children.contains(n[2]), "\(first), \(second)")
            }
            try expectWhole(container, context, "\(first), \(second)")
        }
    }

    /// A move to a commit that puts a list with a new object into the reach of a deletion.
    @MainActor @Test(arguments: Act.allCases) private func inTheMiddleOfAMove(
        _ first: Act
    ) throws {
        for second in Act.allCases {
            let container = try graph()
            let context = observed(container)
            context.undoLimit = 9
            let n = try nodes("root", "list", "job", "other", in: context)
            n[2].parent = n[1]
            try context.save()
            let new = Node(in: context)
            new.parent = n[1]
            n[3].parent = n[2]
            context.delete(n[0])
            context.processPendingChanges()
            let other = container.newContext()
            try other.object(with: n[1].id).parent = other.object(with: n[0].id)
            try other.save()
            beforeChange(of: { _ = n[1].isDeleted }) { self.act(first, n[1], n[3], context) }
            beforeChange(of: { _ = (new.isDeleted, n[2].children.count) }) {
                self.act(second, n[2], new, context)
            }
            context.advance()
            try expectWhole(container, context, "\(first), \(second)")
        }
    }

    /// An undo, and a redo, of a step that made, moved and deleted.
    @MainActor @Test(arguments: Act.allCases) private func inTheMiddleOfAnUndo(
        _ first: Act
    ) throws {
        for (second, saves) in Act.allCases.flatMap({ [($0, false), ($0, true)] }) {
            let container = try graph()
            let context = observed(container)
            let n = try nodes("a", "b", "c", "d", in: context)
            n[1].parent = n[0]
            try context.save()
            context.undoLimit = 9
            let made = context.withUndoGroup {
                let made = Node(in: context)
                made.parent = n[1]
                n[2].parent = made
                n[3].playlist.append(contentsOf: [n[1], n[2]])
                context.delete(n[0])
                return made
            }
            if saves { try context.save() }
            beforeChange(of: { _ = (made.isDeleted, n[1].isDeleted) }) {
                self.act(first, n[2], n[3], context)
            }
            beforeChange(of: { _ = (n[2].parent, n[3].playlist.count) }) {
                self.act(second, n[3], n[2], context)
            }
            try context.undo()
            try expectSound(context)
            if context.canRedo { try context.redo() }
            try expectWhole(container, context, "\(first), \(second), \(saves)")
        }
    }

    /// What an observer gave up in the middle of an undo stays given up, and no step is left.
    @MainActor @Test func aRollbackEndsAnUndo() throws {
        let container = try graph()
        let context = observed(container)
        let node = try #require(try nodes("a", in: context).first)
        context.undoLimit = 9
        let new = context.withUndoGroup {
            node.name = "edited"
            return Node(in: context)
        }
        beforeChange(of: { _ = new.isDeleted }) { context.rollback() }
        try context.undo()
        #expect(!context.hasChanges && !context.canUndo && !context.canRedo)
        #expect(node.name == "a" && context.readFailures.isEmpty)
    }

    /// An observer that marks a new object as deleted while it ends leaves nothing behind.
    @MainActor @Test func aNewObjectIsDeletedWhileItEnds() throws {
        let container = try graph()
        let context = observed(container)
        context.undoLimit = 9
        let new = context.withUndoGroup { Node(in: context) }
        beforeChange(of: { _ = new.isDeleted }) { context.delete(new) }
        try context.undo()
        #expect(!context.hasChanges)
        #expect(try context.fetch(Node.all).isEmpty && context.readFailures.isEmpty)
        try context.save()
    }

    /// Edits of an observer in the middle of an edit are a part of its step.
    @MainActor @Test(arguments: [false, true]) func theStepKnowsThem(_ saves: Bool) throws {
        let container = try graph()
        let context = observed(container)
        let n = try nodes("a", "b", "c", "d", in: context)
        n[2].parent = n[0]
        n[3].parent = n[0]
        try context.save()
        context.undoLimit = 9
        beforeChange(of: { _ = n[0].children.count }) { n[3].parent = n[1] }
        context.withUndoGroup { n[2].parent = n[1] }
        #expect(n[2].parent === n[1] && n[3].parent === n[1])
        if saves { try context.save() }
        #expect(try context.undo().isEmpty)
        #expect(n[2].parent === n[0] && n[3].parent === n[0] && n[1].children.isEmpty)
        #expect(try context.redo().isEmpty)
        #expect(n[2].parent === n[1] && n[3].parent === n[1] && n[0].children.isEmpty)
        try expectWhole(container, context, "undo")
    }

    /// Many observers, each of which edits a relationship: no edit is lost.
    @MainActor @Test(arguments: [1, 5, 30]) func manyObserversLoseNothing(_ watched: Int) throws {
        let container = try graph()
        let context = observed(container)
        let n = try nodes("owner", "other", in: context)
        let members = (0..<40).map { _ in
            let node = Node(in: context)
            node.parent = n[0]
            return node
        }
        var calls = 0
        for node in members.prefix(watched) {
            beforeChange(of: { _ = node.parent }) {
                calls += 1
                node.book = n[1]
            }
        }
        let other = container.newContext()
        try other.object(with: n[1].id).score = 1
        try other.save()
        context.advance()
        #expect(calls == watched)
        #expect(n[0].children.count == 40 && members.allSatisfy { $0.parent === n[0] })
        #expect(n[1].chapters.count == watched)
        try expectWhole(container, context, "\(watched)")
    }

    /// An observer of a blob's object edits it as it goes: a policy brings both back.
    @MainActor @Test func anObserverEditsWhatGoes() throws {
        let container = try memory()
        let context = container.newContext(observes: true)
        let picture = Picture(in: context)
        var writer = try context.makeBlob()
        try writer.append(Data(repeating: 7, count: 3))
        picture.data = try writer.finish()
        try context.save()
        let other = container.newContext()
        try other.delete(other.object(with: picture.id))
        try other.save()
        beforeChange(of: { _ = picture.caption }) { picture.caption = "edited" }
        context.advance()
        #expect(picture.caption == "edited" && picture.hasChanges)
        try context.save(mergePolicy: .overwrite)
        let stored = try container.newContext().object(with: picture.id)
        #expect(stored.caption == "edited")
        #expect(try stored.data?.readAll().count == 3)
    }

    private struct Stop: Error {}

    private enum Edit: CaseIterable {
        case toOne, again, list, order, oneToOne, delete
    }

    @MainActor private func make(_ edit: Edit, _ n: [Node], _ context: ManagedObjectContext) {
        switch edit {
        case .toOne, .again: n[2].parent = n[1]
        case .list: n[2].picks.append(n[1])
        case .order: n[2].playlist.insert(n[1], at: 0)
        case .oneToOne: n[2].next = n[1]
        case .delete:
            context.delete(n[2])
            context.processPendingChanges()
        }
    }

    /// An observer moves the context in the middle of an edit, which a transaction or an undo takes
    /// back: nothing of it stays, and what was edited before does.
    @MainActor @Test(arguments: [false, true], [false, true])
    private func anEditIsTakenBackThroughAMove(_ throwsIt: Bool, _ saves: Bool) throws {
        for edit in Edit.allCases {
            let container = try graph()
            let context = observed(container)
            let n = try nodes("a", "b", "c", "d", "e", "f", in: context)
            n[2].playlist.append(n[3])
            n[4].previous = n[2]
            n[5].parent = n[2]
            try context.save()
            context.undoLimit = 9
            if edit == .again { context.withUndoGroup { n[2].parent = n[0] } }
            beforeChange(of: {
                _ = (n[2].parent, n[2].picks.ids, n[2].playlist.ids, n[2].next, n[2].isDeleted)
            }) {
                do {
                    let other = container.newContext()
                    try other.object(with: n[3].id).parent = other.object(with: n[0].id)
                    try other.save()
                } catch { Issue.record(error) }
                context.advance()
            }
            if throwsIt {
                #expect(throws: Stop.self) {
                    try context.transaction {
                        make(edit, n, context)
                        throw Stop()
                    }
                }
            } else {
                context.withUndoGroup { make(edit, n, context) }
                #expect(n[2].isDeleted == (edit == .delete), "\(edit)")
                #expect((n[2].parent === n[1]) == (edit == .toOne || edit == .again), "\(edit)")
                if saves { try context.save() }
                #expect(try context.undo().isEmpty, "\(edit)")
            }
            #expect(n[3].parent === n[0], "\(edit): the context moved")
            #expect(n[2].parent === (edit == .again ? n[0] : nil), "\(edit)")
            #expect(n[2].picks.isEmpty && n[2].playlist.ids == [n[3].id], "\(edit)")
            #expect(n[2].next === n[4] && n[5].parent === n[2] && !n[2].isDeleted, "\(edit)")
            if !throwsIt {
                #expect(try context.redo().isEmpty, "\(edit)")
                let isThere = try context.fetch(Node.all).contains { $0 === n[2] }
                #expect(isThere == (edit != .delete), "\(edit)")
                #expect((n[2].parent === n[1]) == (edit == .toOne || edit == .again), "\(edit)")
                #expect(n[2].picks.count == (edit == .list ? 1 : 0), "\(edit)")
                #expect((n[2].next === n[1]) == (edit == .oneToOne), "\(edit)")
            } else {
                #expect(context.hasChanges == (edit == .again), "\(edit)")
            }
            try expectWhole(container, context, "\(edit)")
        }
    }

    /// An observer advances over others' deletion in the middle of a refresh, and edits: the last
    /// values stay, and a policy brings them back. One that finds another row shows that.
    @MainActor @Test(arguments: [false, true], [false, true])
    func anObserverMovesInARefresh(_ merges: Bool, _ deletes: Bool) throws {
        let container = try graph()
        let context = observed(container)
        let x = try #require(try nodes("x", in: context).first)
        x.score = 3
        try context.save()
        let other = container.newContext()
        let theirs = try other.object(with: x.id)
        if deletes { other.delete(theirs) } else { theirs.score = 4 }
        try other.save()
        beforeChange(of: { _ = x.name }) {
            context.advance()
            x.name = "edited"
        }
        context.refresh(x, mergeChanges: merges)
        #expect(x.isDeleted == deletes)
        #expect(x.score == (deletes ? 3 : 4))
        // A refresh gives up edits, also those of its observers.
        #expect(x.name == (merges ? "edited" : "x"))
        try context.save(mergePolicy: .overwrite)
        let stored = try container.newContext().fetch(Node.all)
        let expected = merges ? "edited 3.0" : "x 3.0"
        let isStored = merges || !deletes
        #expect(
            stored.map { "\($0.name) \($0.score)" }
                == (isStored ? [deletes ? expected : expected.replacing("3.0", with: "4.0")] : [])
        )
        #expect(context.readFailures.isEmpty)
    }

    /// An observer deletes, in the middle of a move, what a deletion of the transaction reaches.
    @MainActor @Test func aTransactionGivesBackWhatWasDeletedTwice() throws {
        let container = try graph()
        let context = observed(container)
        let n = try nodes("x", "y", "z", in: context)
        beforeChange(of: { _ = n[2].children.ids }) { context.delete(n[0]) }
        #expect(throws: Stop.self) {
            try context.transaction {
                n[0].parent = n[1]
                context.delete(n[1])
                let other = container.newContext()
                try other.object(with: n[0].id).parent = other.object(with: n[2].id)
                try other.save()
                context.advance()
                throw Stop()
            }
        }
        #expect(!context.hasChanges && !n[0].isInserted && n[0].parent === n[2])
        try expectWhole(container, context, "deleted twice")
    }

    private enum Laid: CaseIterable { case branch, undo, revert }

    /// An observer rolls all back in the middle of what a branch, an undo or a revert does: nothing
    /// of it is done behind that.
    @MainActor @Test(arguments: Laid.allCases) private func aRollbackEndsWhatIsLaid(
        _ laid: Laid
    ) throws {
        for kind in 0..<3 {
            let container = try PersistentContainer.inMemory(
                schema: GraphSchema.self,
                options: ContainerOptions(retention: .all)
            )
            let context = observed(container)
            let p = try #require(try nodes("p", in: context).first)
            context.undoLimit = 9
            func make(_ context: ManagedObjectContext) throws -> Node {
                let owner = try context.object(with: p.id)
                let new = Node(in: context)
                (new.name, new.score) = ("new", 4)
                switch kind {
                case 0: new.parent = owner
                case 1: owner.playlist.append(new)
                default:
                    owner.next = new
                    new.parent = owner
                    new.picks.append(owner)
                }
                return new
            }
            let branch = try laid == .branch ? context.branch() : nil
            let new = try make(branch ?? context)
            if laid != .branch {
                try context.save()
                if laid == .undo { try context.undo() } else { context.delete(new) }
                try context.save()
            }
            beforeChange(of: { _ = (p.children.ids, p.playlist.ids, p.next) }) {
                context.rollback()
            }
            switch laid {
            case .branch: _ = try branch?.mergeIntoParent(.error)
            case .undo: try context.redo()
            case .revert: try context.revert(commit: #require(context.commit))
            }
            #expect(context.readFailures.isEmpty, "\(laid) \(kind)")
            #expect(!context.hasChanges, "\(laid) \(kind)")
            try expectWhole(container, context, "\(laid) \(kind)")
        }
    }

    /// An observer takes an edit back when a save has written it, and the row is still the old one.
    @MainActor @Test(arguments: [false, true], [false, true])
    func anObserverTakesBackWhatIsSaved(_ isNew: Bool, _ isAlone: Bool) throws {
        let container = try graph()
        let context = observed(container)
        var n = try nodes("x", "y", in: context)
        if isNew { n[0] = Node(in: context) }
        n[0].children.append(n[0])
        if !isAlone {
            let other = container.newContext()
            try other.object(with: n[1].id).score = 1
            try other.save()
        }
        beforeChange(of: { _ = n[0].children.ids }) { n[0].parent = nil }
        try context.save()
        #expect(n[0].parent == nil && n[0].children.isEmpty && context.hasChanges)
        try expectWhole(container, context, "saved just now")
        #expect(n[0].parent == nil && n[0].children.isEmpty)
    }
}
