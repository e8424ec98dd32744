// What others link to an object, and the order that they give to a list, stay when a step is undone
// or done again.

import Testing

@testable import VarveObjects

@Suite(.verified) struct LinkedByOthersTests {
    /// Others linked something to what an undo would take away: it stays, and is told.
    @Test(
        arguments: [
            "children", "picks", "pickedBy", "playlist", "left", "right", "chapters", "loose",
            "stale", "next",
        ]
    )
    func anUndoLeavesWhatOthersLinkedTo(_ how: String) throws {
        let container = try graph()
        let context = container.newContext()
        context.undoLimit = 10
        let shared = context.withUndoGroup { try? nodes("shared", "mine", in: context) }
        let node = try #require(shared?.first)
        node.children.append(shared![1])
        try context.save()
        let other = container.newContext()
        let theirs = try other.object(with: node.id)
        let new = Node(in: other)
        new.name = "theirs"
        switch how {
        case "children": theirs.children.append(new)
        case "picks": theirs.picks.append(new)
        case "pickedBy": new.picks.append(theirs)
        case "playlist": theirs.playlist.append(new)
        case "left": theirs.left.append(new)
        case "right": new.left.append(theirs)
        case "chapters": theirs.chapters.append(new)
        case "loose": new.loose = theirs
        case "stale": new.stale = theirs
        default: new.next = theirs
        }
        try other.save()
        context.advance()
        var skipped: [SkippedEdit] = []
        while context.canUndo { skipped += try context.undo() }
        #expect(skipped.map(\.object) == [node.objectID], "\(how)")
        #expect(skipped.first?.reason == .changedSince, "\(how)")
        #expect(!node.isDeleted, "\(how)")
        try context.save()
        let fresh = container.newContext()
        #expect(try fresh.fetch(Node.all).map(\.name).sorted() == ["shared", "theirs"])
        try expectSound(fresh)
    }

    /// Others rearranged the list: a member that an undo takes out, or brings back, leaves their
    /// order as it is.
    @Test func anUndoLeavesTheOrderOfOthers() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("owner", "a", "b", "c", "d", in: context)
        let (owner, a, b, c, d) = (all[0], all[1], all[2], all[3], all[4])
        for node in [a, b, c] { for list in [owner.playlist, owner.left] { list.append(node) } }
        try context.save()
        context.undoLimit = 10
        context.withUndoGroup("add") {
            for list in [owner.playlist, owner.left] { list.append(d) }
        }
        context.withUndoGroup("remove") {
            for list in [owner.playlist, owner.left] { list.remove(b) }
        }
        try context.save()
        // a, c, d; theirs: d, c, a.
        let other = container.newContext()
        let theirs = try other.same(all)
        for list in [theirs[0].playlist, theirs[0].left] {
            list.replaceAll(with: [theirs[4], theirs[3], theirs[1]])
        }
        try other.save()
        context.advance()
        #expect(try context.undo().isEmpty)
        for list in [owner.playlist, owner.left] { #expect(list.names == ["d", "c", "a", "b"]) }
        #expect(try context.undo().isEmpty)
        for list in [owner.playlist, owner.left] { #expect(list.names == ["c", "a", "b"]) }
        try context.save()
        #expect(try context.redo().isEmpty)
        #expect(try context.redo().isEmpty)
        for list in [owner.playlist, owner.left] { #expect(list.names == ["c", "d", "a"]) }
        try context.save()
        try expectSound(container.newContext())
    }

    /// Others rearranged the list of an object: it is not the undo's to take away.
    @Test func anUndoLeavesAnObjectWhoseListOthersRearranged() throws {
        let container = try graph()
        let context = container.newContext()
        let members = try nodes("a", "b", in: context)
        context.undoLimit = 10
        let owner = context.withUndoGroup { () -> Node in
            let owner = Node(in: context)
            owner.name = "owner"
            for node in members { owner.playlist.append(node) }
            return owner
        }
        try context.save()
        let other = container.newContext()
        let theirs = try other.same([owner] + members)
        theirs[0].playlist.replaceAll(with: [theirs[2], theirs[1]])
        try other.save()
        context.advance()
        let skipped = try context.undo()
        #expect(skipped.map(\.object) == [owner.objectID])
        #expect(!owner.isDeleted && owner.playlist.names == ["b", "a"])
    }

    /// An order that the step made, and others changed since, is told.
    @Test func anUndoTellsOfAnOrderThatOthersChanged() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("owner", "a", "b", "c", in: context)
        let owner = all[0]
        for node in all.dropFirst() { owner.playlist.append(node) }
        try context.save()
        context.undoLimit = 10
        context.withUndoGroup { owner.playlist.replaceAll(with: all.dropFirst().reversed()) }
        try context.save()
        let other = container.newContext()
        let theirs = try other.same(all)
        theirs[0].playlist.replaceAll(with: [theirs[2], theirs[3], theirs[1]])
        try other.save()
        context.advance()
        let skipped = try context.undo()
        #expect(skipped.map(\.property) == ["playlist"])
        #expect(skipped.first?.reason == .changedSince)
        #expect(owner.playlist.names == ["b", "c", "a"])
    }

    /// A batch whose work others have done reads what they saved.
    @Test func aBatchThatChangesNothingReadsTheNewestCommit() throws {
        let container = try graph()
        let context = container.newContext()
        let node = try nodes("a", in: context)[0]
        let other = container.newContext()
        #expect(try other.batchUpdate(Node.all) { $0.name = "b" }.updated == 1)
        #expect(node.name == "a")
        let result = try context.batchUpdate(Node.all) { $0.name = "b" }
        #expect(result.commit == nil && result.updated == 0)
        #expect(node.name == "b")
        #expect(try context.batchDelete(Node.where { $0.name == "x" }).commit == nil)
    }

    /// A deletion that is done again does not take what others linked meanwhile.
    @Test func aRedoLeavesWhatOthersLinkedTo() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("root", "branch", in: context)
        let (root, branch) = (all[0], all[1])
        branch.parent = root
        root.picks.append(branch)
        try context.save()
        context.undoLimit = 10
        context.withUndoGroup { context.delete(root) }
        try context.save()
        #expect(try context.undo().isEmpty)
        try context.save()
        #expect(try context.redo().isEmpty)
        #expect(try context.undo().isEmpty)
        try context.save()
        let other = container.newContext()
        let new = Node(in: other)
        new.parent = try other.object(with: root.id)
        try other.save()
        context.advance()
        let skipped = try context.redo()
        // What belongs to one that stays, stays as well.
        #expect(Set(skipped.map(\.object)) == [root.objectID, branch.objectID])
        #expect(!root.isDeleted && !branch.isDeleted)
        try context.save()
        try expectSound(container.newContext())
    }
}
