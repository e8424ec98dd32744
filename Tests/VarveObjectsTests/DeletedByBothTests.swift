// Two contexts delete, move and bring back the same objects: what a save, an undo, a transaction or
// a branch makes of that. The programs of an attack.

import Foundation
import Testing

@testable import VarveObjects

@Suite(.verified) struct DeletedByBothTests {
    private struct Stop: Error {}

    /// When an object is edited: others' deletion is not seen, not yet, or already.
    enum Edit { case aside, before, behind }

    // MARK: Brought back

    /// A small blob lies in a page of its row's commit, a large one in a file: both come back.
    /// Also where the context sees the deletion before it is edited, and the file is another one.
    @Test(arguments: [3, 200_000], [Edit.aside, .before, .behind])
    func blobsComeBackWithTheirRow(_ size: Int, _ edit: Edit) throws {
        for policy in [MergePolicy.overwrite, .objectWinsByProperty] {
            let container = try memory()
            let context = container.newContext()
            let picture = Picture(in: context)
            var writer = try context.makeBlob()
            try writer.append(Data(repeating: 7, count: size))
            picture.data = try writer.finish()
            try context.save()
            if edit != .behind { picture.caption = "edited" }
            try saveElsewhere(container) { try $0.delete($0.object(with: picture.id)) }
            if edit != .aside {
                context.advance()
                try container.compactNow()
            }
            if edit == .behind { picture.caption = "edited" }
            try context.save(mergePolicy: policy)
            let stored = try container.newContext().object(with: picture.id)
            #expect(stored.caption == "edited")
            #expect(try stored.data?.readAll() == Data(repeating: 7, count: size))
        }
    }

    /// Others gave the row another blob, and a policy writes the old one again.
    @Test func anOldBlobIsWrittenOverANewOne() throws {
        let container = try memory()
        let context = container.newContext()
        let picture = Picture(in: context)
        func blob(_ byte: UInt8, _ context: ManagedObjectContext) throws -> Blob {
            var writer = try context.makeBlob()
            try writer.append(Data(repeating: byte, count: 5))
            return try writer.finish()
        }
        picture.data = try blob(1, context)
        try context.save()
        picture.caption = "edited"
        try saveElsewhere(container) { try $0.object(with: picture.id).data = blob(2, $0) }
        try context.save(mergePolicy: .overwrite)
        let stored = try container.newContext().object(with: picture.id)
        #expect(try stored.data?.readAll() == Data(repeating: 1, count: 5))
    }

    /// An object that an undo brought back and an upsert replaced shows the row that others gave it
    /// later, and edits are edits of that.
    @Test func aReplacedObjectThatOthersBringBackShowsTheirRow() throws {
        let container = try graph()
        let (context, other) = (container.newContext(), container.newContext())
        let item = try #require(try nodes("old", in: context).first)
        item.key = "1"
        try context.save()
        context.undoLimit = 9
        let edited = try other.object(with: item.id)
        (edited.key, edited.name) = ("2", "theirs")
        context.delete(item)
        try context.save()
        try context.undo()
        try saveElsewhere(container) { Node(in: $0).key = "1" }
        #expect(try context.save().replaced.count == 1)
        #expect(item.isDeleted)
        try other.save(mergePolicy: .overwrite)
        context.advance()
        #expect(!item.isDeleted && item.name == "theirs" && item.key == "2" && !item.hasChanges)
        item.score = 5
        try context.save()
        let stored = try container.newContext().object(with: item.id)
        #expect(stored.name == "theirs" && stored.key == "2" && stored.score == 5)
    }

    /// An edit that had lost its target leads to it again, and shows so, when a revert brings it
    /// back.
    @Test func aRevertShowsWhatItWillSave() throws {
        let container = try PersistentContainer.inMemory(
            schema: GraphSchema.self,
            options: ContainerOptions(retention: .all)
        )
        let context = container.newContext()
        let (_, list, _) = try family(context)
        let new = Node(in: context)
        (new.name, new.parent) = ("new", list)
        let other = container.newContext()
        try other.delete(other.object(with: list.id))
        let gone = try #require(try other.save().commit)
        context.advance()
        #expect(new.parent == nil)
        try context.revert(commit: gone)
        #expect(new.parent === list && list.children.contains(new))
        let branch = try context.branch()
        #expect(try branch.object(with: new.id).parent?.name == "list")
        try context.save()
        #expect(try storedFamilies(container) == ["job<list", "list<root", "new<list", "root<"])
    }

    // MARK: Undo and redo

    /// Others put a list into the reach of a deletion, before or behind the move that shows it. The
    /// save deletes it, and an undo brings all of it back.
    @Test(arguments: [false, true], [false, true])
    func anUndoBringsBackWhatASaveReached(_ advances: Bool, _ redoes: Bool) throws {
        let container = try graph()
        let context = container.newContext()
        context.undoLimit = 9
        let all = try nodes("root", "list", "job", "stays", in: context)
        let (root, list, job, stays) = (all[0], all[1], all[2], all[3])
        job.parent = list
        stays.playlist.append(contentsOf: [job, root, list])
        stays.loose = list
        try context.save()
        context.removeAllUndoSteps()
        context.withUndoGroup { context.delete(root) }
        try saveElsewhere(container) { other in
            try other.object(with: list.id).parent = other.object(with: root.id)
        }
        if advances {
            context.advance()
            #expect(list.isDeleted && job.isDeleted)
        }
        try context.save(mergePolicy: .overwrite)
        #expect(try storedFamilies(container) == ["stays<"])
        #expect(try context.undo().isEmpty)
        if redoes {
            #expect(try context.redo().isEmpty)
            #expect(try context.fetch(Node.all).names == ["stays"] && stays.playlist.isEmpty)
            #expect(try context.undo().isEmpty)
        }
        #expect(!list.isDeleted && list.parent === root && job.parent === list)
        try context.save()
        #expect(try storedFamilies(container) == ["job<list", "list<root", "root<", "stays<"])
        let stored = try container.newContext().object(with: stays.id)
        #expect(stored.playlist.names == ["job", "root", "list"] && stored.loose?.name == "list")
    }

    /// The same for what was new below it, if an earlier step made it.
    @Test func anUndoBringsBackNewObjectsThatASaveReached() throws {
        let container = try graph()
        let context = container.newContext()
        context.undoLimit = 9
        let all = try nodes("root", "list", in: context)
        let (root, list) = (all[0], all[1])
        context.removeAllUndoSteps()
        let new = context.withUndoGroup {
            let new = Node(in: context)
            (new.name, new.parent) = ("new", list)
            return new
        }
        context.withUndoGroup { context.delete(root) }
        try saveElsewhere(container) { other in
            try other.object(with: list.id).parent = other.object(with: root.id)
        }
        context.advance()
        #expect(new.isDeleted)
        try context.save()
        #expect(try storedFamilies(container).isEmpty)
        #expect(try context.undo().isEmpty)
        try context.save()
        #expect(try storedFamilies(container) == ["list<root", "new<list", "root<"])
        #expect(try context.undo().isEmpty)
        try context.save()
        #expect(try storedFamilies(container) == ["list<root", "root<"])
    }

    /// Others took a list out of the reach of a deletion: neither its undo nor its redo takes it.
    @Test func aRedoLeavesWhatOthersTookOut() throws {
        let container = try graph()
        let context = container.newContext()
        let (root, list, job) = try family(context)
        context.undoLimit = 9
        context.withUndoGroup { context.delete(root) }
        try saveElsewhere(container) { try $0.object(with: list.id).parent = nil }
        context.advance()
        #expect(root.isDeleted && !list.isDeleted && !job.isDeleted)
        #expect(try context.undo().isEmpty)
        let skipped = try context.redo()
        #expect(Set(skipped.map(\.object)) == [list.objectID, job.objectID])
        #expect(skipped.allSatisfy { $0.reason == .changedSince })
        #expect(root.isDeleted && !list.isDeleted && !job.isDeleted)
        try context.save()
        #expect(try storedFamilies(container) == ["job<list", "list<"])
    }

    /// A redo makes an object again whose owner others deleted meanwhile.
    @Test func aRedoOfAnInsertionTellsOfALostTarget() throws {
        let container = try graph()
        let context = container.newContext()
        let (_, list, _) = try family(context)
        context.undoLimit = 9
        let new = context.withUndoGroup {
            let new = Node(in: context)
            (new.name, new.parent) = ("new", list)
            return new
        }
        try context.save()
        try context.undo()
        try context.save()
        try saveElsewhere(container) { try $0.delete($0.object(with: list.id)) }
        context.advance()
        let skipped = try context.redo()
        #expect(skipped.map(\.object) == [new.objectID])
        #expect(skipped.map(\.property) == ["parent"])
        #expect(skipped.map(\.reason) == [.targetDeleted])
        try context.save()
        #expect(try storedFamilies(container) == ["new<", "root<"])
    }

    // MARK: Both delete

    /// A new object in the reach of a deletion is shown as deleted. Others delete its owner as
    /// well: it stays so, and does not come back without one.
    @Test(arguments: [false, true]) func aNewObjectGoesWithItsOwner(_ deletesRoot: Bool) throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("root", "list", in: context)
        let (root, list) = (all[0], all[1])
        let new = Node(in: context)
        new.parent = list
        let below = Node(in: context)
        below.parent = new
        context.delete(root)
        try saveElsewhere(container) { other in
            try other.object(with: list.id).parent = other.object(with: root.id)
        }
        context.advance()
        #expect(new.isDeleted && below.isDeleted)
        try saveElsewhere(container) { other in
            let theirs = try other.object(with: list.id)
            if deletesRoot { theirs.parent.map { other.delete($0) } } else { other.delete(theirs) }
        }
        context.advance()
        #expect(new.context == nil && below.context == nil && context.insertedObjects.isEmpty)
        try context.save()
        #expect(try storedFamilies(container).isEmpty)
    }

    /// A transaction deletes what others delete as well, moves on and throws.
    @Test(arguments: [false, true]) func aTransactionDoesNotBringBack(_ isEdited: Bool) throws {
        let container = try graph()
        let context = container.newContext()
        let (_, list, job) = try family(context)
        if isEdited { list.score = 4 }
        try saveElsewhere(container) { try $0.delete($0.object(with: list.id)) }
        #expect(throws: Stop.self) {
            try context.transaction {
                context.delete(list)
                context.advance()
                throw Stop()
            }
        }
        #expect(list.isDeleted && job.isDeleted && context.insertedObjects.isEmpty)
        #expect(context.hasChanges == isEdited)
        if isEdited {
            // The edit from before is an edit of what others deleted, as ever.
            #expect(code { try context.save() } == .conflict)
            try context.save(mergePolicy: .objectWinsByProperty)
            #expect(try container.newContext().object(with: list.id).score == 4)
        } else {
            try context.save()
            #expect(try storedFamilies(container) == ["root<"])
        }
    }

    /// What a branch makes for an owner that its parent deletes is a conflict.
    @Test func aNewObjectOfABranchMeetsADeletion() throws {
        let container = try graph()
        let context = container.newContext()
        let (_, list, _) = try family(context)
        let branch = try context.branch()
        let new = Node(in: branch)
        (new.name, new.parent) = ("new", try branch.object(with: list.id))
        context.delete(list)
        #expect(code { try branch.mergeIntoParent() } == .conflict)
        #expect(new.parent?.name == "list")
        let skipped = try branch.mergeIntoParent(.branchWins)
        #expect(skipped.map(\.property) == ["parent"])
        #expect(skipped.map(\.reason) == [.targetDeleted])
        try context.save()
        #expect(try storedFamilies(container) == ["new<", "root<"])
    }

    /// An edit of a unique value that a deletion hid and others brought out counts for an upsert.
    @Test func aHiddenKeyIsNoticed() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("root", "item", in: context)
        let (root, item) = (all[0], all[1])
        item.key = "k"
        let new = Node(in: context)
        (new.key, new.name) = ("k", "new")
        context.delete(root)
        context.processPendingChanges()
        try saveElsewhere(container) { other in
            try other.object(with: item.id).parent = other.object(with: root.id)
        }
        context.advance()
        #expect(item.isDeleted)
        try saveElsewhere(container) { try $0.object(with: item.id).parent = nil }
        #expect(try context.save(mergePolicy: .objectWinsByProperty).replaced.count == 1)
        #expect(try storedFamilies(container) == ["new<"])
    }

    /// The same where the transaction, or an observer, edited the blob.
    @MainActor @Test(arguments: [false, true])
    func aTransactionGivesBackABlob(_ edits: Bool) throws {
        let container = try memory()
        let context = container.newContext()
        let picture = Picture(in: context)
        func setBlob() throws {
            var writer = try context.makeBlob()
            try writer.append(Data(repeating: 7, count: 3))
            picture.data = try writer.finish()
        }
        if !edits { try setBlob() }
        try context.save()
        if edits { try setBlob() } else { picture.caption = "edited" }
        try saveElsewhere(container) { try $0.delete($0.object(with: picture.id)) }
        #expect(throws: Stop.self) {
            try context.transaction {
                context.delete(picture)
                context.advance()
                throw Stop()
            }
        }
        #expect(try picture.data?.readAll().count == 3)
        try context.save(mergePolicy: .overwrite)
        let stored = try container.newContext().object(with: picture.id)
        #expect(try stored.data?.readAll().count == 3)
    }

    // MARK: What others changed

    /// Others change a deleted object before the deletion is saved: an undo brings back theirs.
    @Test(arguments: [false, true]) func anUndoBringsBackWhatOthersChanged(_ advances: Bool) throws
    {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("p", "q", "x", "member", in: context)
        let (p, x) = (all[0], all[2])
        x.parent = p
        try context.save()
        context.undoLimit = 9
        context.delete(x)
        context.processPendingChanges()
        try saveElsewhere(container) { other in
            let edited = try other.object(with: x.id)
            edited.score = 7
            edited.parent = try other.object(with: all[1].id)
            edited.playlist.append(try other.object(with: all[3].id))
        }
        if advances { context.advance() }
        try context.save(mergePolicy: .overwrite)
        #expect(try context.undo().isEmpty)
        try context.save()
        let stored = try container.newContext().object(with: x.id)
        #expect(stored.score == 7 && stored.parent?.name == "q")
        #expect(stored.playlist.names == ["member"])
        try expectSound(container.newContext())
    }

    /// A step links what it then deletes, and one deletes what an undo had brought back.
    @Test func aRedoDeletesWhatItsStepDeleted() throws {
        let container = try graph()
        let context = container.newContext()
        context.undoLimit = 9
        let all = try nodes("root", "list", in: context)
        let (root, list) = (all[0], all[1])
        context.removeAllUndoSteps()
        context.withUndoGroup {
            list.parent = root
            context.delete(root)
        }
        try context.save()
        #expect(try context.undo().isEmpty)
        #expect(try context.redo().isEmpty)
        try context.save()
        #expect(try storedFamilies(container).isEmpty)
        #expect(try context.undo().isEmpty)
        context.withUndoGroup { context.delete(root) }
        #expect(try context.undo().isEmpty)
        try context.save()
        #expect(try context.redo().isEmpty)
        try context.save()
        #expect(try storedFamilies(container) == ["list<"])
    }

    /// Both delete what hangs below a deletion that is not saved: an undo leaves it deleted.
    @Test func anUndoLeavesWhatOthersDeleted() throws {
        let container = try graph()
        let context = container.newContext()
        let (root, list, job) = try family(context)
        context.undoLimit = 9
        context.delete(root)
        context.processPendingChanges()
        try saveElsewhere(container) { try $0.delete($0.object(with: list.id)) }
        context.advance()
        let skipped = try context.undo()
        #expect(Set(skipped.map(\.object)) == [list.objectID, job.objectID])
        #expect(skipped.allSatisfy { $0.reason == .deletedSince })
        #expect(!root.isDeleted && list.isDeleted && job.isDeleted && !context.hasChanges)
        try context.save()
        #expect(try storedFamilies(container) == ["root<"])
    }

    /// A save inside of a group.
    @Test func aGroupThatSavesKnowsWhatItReached() throws {
        let container = try graph()
        let context = container.newContext()
        context.undoLimit = 9
        let all = try nodes("root", "list", in: context)
        let (root, list) = (all[0], all[1])
        context.removeAllUndoSteps()
        try context.withUndoGroup {
            context.delete(root)
            try saveElsewhere(container) { other in
                try other.object(with: list.id).parent = other.object(with: root.id)
            }
            try context.save(mergePolicy: .overwrite)
        }
        #expect(try storedFamilies(container).isEmpty)
        #expect(try context.undo().isEmpty)
        try context.save()
        #expect(try storedFamilies(container) == ["list<root", "root<"])
    }
}
