// Others' commits put objects in the reach of a deletion that is not saved, and take them out
// again.

import Observation
import Synchronization
import Testing

@testable import VarveObjects

@Suite(.verified) struct ReachByOthersTests {
    private static let policies: [MergePolicy] = [
        .error, .objectWinsByProperty, .storeWinsByProperty, .overwrite, .rollback,
    ]

    /// A root and a branch that is not below it, saved.
    private func rootAndBranch(
        _ container: PersistentContainer,
        _ context: ManagedObjectContext
    ) throws -> (root: Node, branch: Node) {
        let all = try nodes("root", "branch", in: context)
        try context.save()
        return (all[0], all[1])
    }

    private func move(
        _ node: Node,
        below parent: Node?,
        _ container: PersistentContainer
    ) throws {
        let other = container.newContext()
        let theirs = try other.object(with: node.id)
        theirs.parent = try parent.map { try other.object(with: $0.id) }
        try other.save()
    }

    private func child(of parent: Node, _ context: ManagedObjectContext) -> Node {
        let new = Node(in: context)
        new.name = "new"
        new.score = 7
        new.parent = parent
        return new
    }

    /// A new object is deleted by what others did: the save says nothing of it, and it ends.
    @Test(arguments: 0..<5) func aNewObjectInTheReachOfADeletionIsNotSaved(_ kind: Int) throws {
        let container = try graph()
        let context = container.newContext()
        let (root, branch) = try rootAndBranch(container, context)
        context.delete(root)
        let new = child(of: branch, context)
        try move(branch, below: root, container)
        context.advance()
        #expect(new.isDeleted && branch.isDeleted)
        #expect(context.insertedObjects.isEmpty)
        #expect(context.deletedObjects.count == 2)
        try context.save(mergePolicy: Self.policies[kind])
        #expect(!context.hasChanges && new.isDeleted && !new.hasChanges && !branch.hasChanges)
        #expect(try container.newContext().count(Node.all) == 0)
        try expectSound(container.newContext())
    }

    /// Lists of all kinds lead to it; what its own cascade reached goes for itself.
    @Test func whatLedToItLeadsNowhere() throws {
        let container = try graph()
        let context = container.newContext()
        let (root, branch) = try rootAndBranch(container, context)
        let all = try nodes("stays", "below", in: context)
        let (stays, below) = (all[0], all[1])
        try context.save()
        context.delete(root)
        let new = child(of: branch, context)
        for list in [stays.picks, stays.playlist, stays.left, stays.chapters] { list.append(new) }
        (stays.next, stays.loose, stays.stale) = (new, new, new)
        new.guarded.append(stays)
        below.parent = new
        try move(branch, below: root, container)
        context.advance()
        #expect(stays.next == nil && stays.playlist.isEmpty && below.isDeleted)
        try context.save()
        let fresh = container.newContext()
        #expect(try fresh.fetch(Node.all).map(\.name) == ["stays"])
        let stored = try fresh.object(with: stays.id)
        #expect(stored.next == nil && stored.loose == nil && stored.stale == nil)
        #expect(stored.picks.isEmpty && stored.left.isEmpty && stored.guardian == nil)
        try expectSound(fresh)
    }

    /// Out of its reach again everything is as it was: by others, or by an undo.
    @Test(arguments: [true, false]) func whatIsOutOfReachAgainHasItsEdits(_ byUndo: Bool) throws {
        let container = try graph()
        let context = container.newContext()
        let (root, branch) = try rootAndBranch(container, context)
        context.undoLimit = 10
        context.withUndoGroup("type") { branch.name = "edited" }
        let new = context.withUndoGroup("child") { child(of: branch, context) }
        context.withUndoGroup("delete") { context.delete(root) }
        try move(branch, below: root, container)
        context.advance()
        #expect(branch.isDeleted && new.isDeleted && branch.name == "edited")
        if byUndo {
            #expect(try context.undo().isEmpty)
        } else {
            try move(branch, below: nil, container)
            context.advance()
        }
        #expect(!branch.isDeleted && branch.name == "edited")
        #expect(!new.isDeleted && new.isInserted && new.score == 7 && new.parent === branch)
        try context.save()
        let stored = try container.newContext().fetch(Node.all).map(\.name).sorted()
        #expect(stored == (byUndo ? ["edited", "new", "root"] : ["edited", "new"]))
        try expectSound(container.newContext())
    }

    /// An edit that is undone while its object is out of sight does not come back with it.
    @Test func whatIsUndoneOutOfSightStaysUndone() throws {
        let container = try graph()
        let context = container.newContext()
        let (root, branch) = try rootAndBranch(container, context)
        context.undoLimit = 10
        context.withUndoGroup("score") { branch.score = 3 }
        context.withUndoGroup("delete") { context.delete(root) }
        context.withUndoGroup("type") { branch.name = "edited" }
        context.withUndoGroup("child") { _ = child(of: branch, context) }
        try move(branch, below: root, container)
        context.advance()
        #expect(try context.undo().isEmpty)
        #expect(try context.undo().isEmpty)
        try move(branch, below: nil, container)
        context.advance()
        #expect(!branch.isDeleted && branch.name == "branch" && branch.children.isEmpty)
        #expect(branch.score == 3)
        #expect(try context.count(Node.all) == 1)
        #expect(try context.redo().isEmpty)
        #expect(branch.name == "edited")
        _ = try context.redo()
        #expect(branch.children.count == 1 && branch.children.first?.score == 7)
        try context.save()
        #expect(try container.newContext().count(Node.all) == 2)
    }

    /// A save that fails takes nothing that is out of sight away.
    @Test func aSaveThatFailsKeepsWhatIsOutOfSight() throws {
        let container = try graph()
        let context = container.newContext()
        let (root, branch) = try rootAndBranch(container, context)
        let guardian = try nodes("guardian", "guarded", in: context)
        guardian[0].guarded.append(guardian[1])
        try context.save()
        context.undoLimit = 10
        context.withUndoGroup { branch.name = "edited" }
        let new = context.withUndoGroup { child(of: branch, context) }
        context.withUndoGroup { context.delete(root) }
        context.withUndoGroup { context.delete(guardian[0]) }
        try move(branch, below: root, container)
        context.advance()
        #expect(throws: StoreError.self) { try context.save() }
        try context.undo()
        try context.undo()
        #expect(branch.name == "edited" && new.score == 7 && new.parent === branch)
        try context.save()
        #expect(try container.newContext().count(Node.all) == 5)
    }

    /// What the newest commit has out of reach by the time of the save is saved as it was edited;
    /// so is what hangs on a deletion that a policy gives up.
    @Test(arguments: 0..<5) func aSaveDecidesOnTheNewestCommit(_ kind: Int) throws {
        let container = try graph()
        let context = container.newContext()
        let (root, branch) = try rootAndBranch(container, context)
        branch.name = "edited"
        let new = child(of: branch, context)
        var checks = 0
        new.onValidate = { checks += 1 }
        context.delete(root)
        try move(branch, below: root, container)
        context.advance()
        #expect(branch.isDeleted && new.isDeleted)
        let other = container.newContext()
        let isGivenUp = kind == 2 || kind == 4
        if isGivenUp {
            try other.object(with: root.id).name = "theirs"
            try other.save()
        } else if kind > 0 {
            try move(branch, below: nil, container)
        }
        try context.save(mergePolicy: Self.policies[kind])
        #expect(checks == 1 && !context.hasChanges && !branch.hasChanges && !new.hasChanges)
        let fresh = container.newContext()
        let stored = try fresh.fetch(Node.all).map(\.name).sorted()
        switch kind {
        case 0: #expect(stored.isEmpty)
        case 1, 3: #expect(stored == ["edited", "new"])
        default: #expect(stored == ["edited", "new", "theirs"])
        }
        if kind > 0 {
            #expect(!branch.isDeleted && !new.isDeleted && new.parent === branch)
            #expect(branch.name == "edited")
        }
        try expectSound(fresh)
        try expectSound(context)
    }

    /// What checks say against a new object counts only if it is saved after all.
    @Test func checksOfAHiddenObjectCountWhenItIsSaved() throws {
        let container = try graph()
        let context = container.newContext()
        let (root, branch) = try rootAndBranch(container, context)
        let new = child(of: branch, context)
        new.complaint = "is wrong"
        context.delete(root)
        try move(branch, below: root, container)
        context.advance()
        try move(branch, below: nil, container)
        let error = #expect(throws: StoreError.self) {
            try context.save(mergePolicy: .objectWinsByProperty)
        }
        #expect(error?.code == .invalid)
        #expect(try storedNames(container).sorted() == ["branch", "root"])
        try move(branch, below: root, container)
        context.advance()
        try context.save()
        #expect(try storedNames(container).isEmpty)
    }

    /// Who observes an object hears that it is there again.
    @Test(arguments: [true, false]) func observersHearOfWhatComesBack(_ byUndo: Bool) throws {
        let container = try graph()
        let context = container.newContext(observes: true)
        let (root, branch) = try rootAndBranch(container, context)
        let leaf = try nodes("leaf", in: context)[0]
        leaf.parent = branch
        try context.save()
        context.undoLimit = 10
        let new = context.withUndoGroup { () -> Node in
            let new = Node(in: context)
            new.parent = leaf
            return new
        }
        context.withUndoGroup { context.delete(root) }
        try move(branch, below: root, container)
        context.advance()
        #expect(new.isDeleted)
        #expect(branch.children.isEmpty)
        let states = Mutex(0)
        let lists = Mutex(0)
        withObservationTracking {
            _ = new.isDeleted
        } onChange: {
            states.withLock { $0 += 1 }
        }
        withObservationTracking {
            _ = branch.children.count
        } onChange: {
            lists.withLock { $0 += 1 }
        }
        if byUndo {
            try context.undo()
        } else {
            try move(branch, below: nil, container)
            context.advance()
        }
        #expect(!new.isDeleted && branch.children.count == 1)
        #expect(states.withLock { $0 } == 1 && lists.withLock { $0 } == 1)
    }

    /// The deletion reached it when it was made and ended its edit; others took it out; the undo
    /// gives the edit back.
    @Test func anUndoGivesBackEditsOfWhatOthersTookOut() throws {
        let container = try graph()
        let context = container.newContext()
        let (root, branch) = try rootAndBranch(container, context)
        branch.parent = root
        try context.save()
        context.undoLimit = 10
        context.withUndoGroup { branch.name = "edited" }
        context.withUndoGroup { context.delete(root) }
        try move(branch, below: nil, container)
        context.advance()
        #expect(!branch.isDeleted && branch.name == "branch")
        #expect(try context.undo().isEmpty)
        #expect(branch.name == "edited" && branch.parent == nil)
        try context.save()
        #expect(try storedNames(container).sorted() == ["edited", "root"])
    }

    /// A deletion that was not saved is not done again over what others did meanwhile.
    @Test func aRedoOfAnUnsavedDeletionLeavesWhatOthersLinkedTo() throws {
        let container = try graph()
        let context = container.newContext()
        let (root, branch) = try rootAndBranch(container, context)
        branch.parent = root
        try context.save()
        context.undoLimit = 10
        context.withUndoGroup { context.delete(root) }
        #expect(try context.undo().isEmpty)
        #expect(try context.redo().isEmpty)
        #expect(root.isDeleted && branch.isDeleted)
        #expect(try context.undo().isEmpty)
        let other = container.newContext()
        let theirs = Node(in: other)
        theirs.name = "theirs"
        theirs.parent = try other.object(with: root.id)
        try other.save()
        context.advance()
        let skipped = try context.redo()
        // What belongs to one that stays, stays as well.
        #expect(Set(skipped.map(\.object)) == [root.objectID, branch.objectID])
        #expect(!root.isDeleted && !branch.isDeleted)
        try context.save()
        #expect(try storedNames(container).sorted() == ["branch", "root", "theirs"])
        try expectSound(container.newContext())
    }

    /// Both deleted it: what an undo brought back as new goes again with the redo.
    @Test(arguments: ["root", "branch"]) func aRedoOfWhatBothDeletedLeavesNothing(
        _ others: String
    ) throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("root", "branch", "leaf", "keep", in: context)
        let (root, branch, leaf, keep) = (all[0], all[1], all[2], all[3])
        branch.parent = root
        leaf.parent = branch
        try context.save()
        context.undoLimit = 10
        context.withUndoGroup {
            keep.picks.append(branch)
            keep.loose = leaf
            leaf.next = keep
        }
        context.withUndoGroup { context.delete(root) }
        let other = container.newContext()
        other.delete(try other.object(with: others == "root" ? root.id : branch.id))
        try other.save()
        context.advance()
        _ = try context.undo()
        _ = try context.redo()
        try expectSound(context)
        try context.save()
        #expect(try storedNames(container) == ["keep"])
        try expectSound(container.newContext())
        let stored = try #require(try container.newContext().fetch(Node.all).first)
        #expect(stored.picks.isEmpty && stored.loose == nil && stored.previous == nil)
    }

    /// What a branch of the context deletes stays deleted when what hides it is taken back.
    @Test func aHiddenObjectThatABranchDeletesStaysDeleted() throws {
        let container = try graph()
        let context = container.newContext()
        let (root, branch) = try rootAndBranch(container, context)
        let leaf = try nodes("leaf", in: context)[0]
        leaf.parent = branch
        try context.save()
        let sheet = try context.branch()
        sheet.delete(try sheet.object(with: leaf.id))
        context.delete(root)
        try move(branch, below: root, container)
        context.advance()
        #expect(leaf.isDeleted)
        #expect(try sheet.mergeIntoParent().isEmpty)
        try move(branch, below: nil, container)
        context.advance()
        #expect(!branch.isDeleted && leaf.isDeleted)
        try context.save()
        #expect(try storedNames(container) == ["branch"])
    }

    /// A new object that comes back below what another deletion hides comes back with it.
    @Test func aNewObjectComesBackOutOfSight() throws {
        let container = try graph()
        let context = container.newContext()
        let (root, branch) = try rootAndBranch(container, context)
        context.undoLimit = 10
        let new = context.withUndoGroup("child") { child(of: branch, context) }
        context.withUndoGroup("root") { context.delete(root) }
        context.withUndoGroup("new") { context.delete(new) }
        try move(branch, below: root, container)
        context.advance()
        #expect(try context.undo().isEmpty)
        #expect(context.readFailures.isEmpty)
        #expect(try context.undo().isEmpty)
        #expect(!new.isDeleted && new.score == 7 && new.parent === branch)
        #expect(context.readFailures.isEmpty)
        try context.save()
        #expect(try storedNames(container).sorted() == ["branch", "new", "root"])
    }

    /// New objects that the newest commit puts in the reach of a deletion replace nobody.
    @Test func whatIsDoomedReplacesNobody() throws {
        let container = try graph()
        let context = container.newContext()
        let (root, branch) = try rootAndBranch(container, context)
        let known = try nodes("known", in: context)[0]
        known.key = "k"
        try context.save()
        context.delete(root)
        let new = child(of: branch, context)
        new.key = "k"
        try move(branch, below: root, container)
        let result = try context.save(mergePolicy: .overwrite)
        #expect(result.replaced.isEmpty)
        let stored = try container.newContext().fetch(Node.all)
        #expect(stored.map(\.name) == ["known"])
    }
}
