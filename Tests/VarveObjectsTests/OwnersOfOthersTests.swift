// An undo or a redo that is to delete an owner, while others edited what belongs to it, linked
// something to that or moved it: both go, or both stay.

import Testing

@testable import VarveObjects

@Suite(.verified) struct OwnersOfOthersTests {
    /// A redo of a deletion, saved or not, behind which others edited the last of what belongs to
    /// it, or linked something to that.
    @Test(arguments: [false, true], [false, true])
    func aRedoLeavesTheOwner(_ saves: Bool, _ links: Bool) throws {
        let container = try graph()
        let context = container.newContext()
        let (root, list, job) = try family(context)
        let others = try nodes("other", "friend", in: context)
        let (other, friend) = (others[0], others[1])
        other.parent = root
        friend.next = root
        friend.picks.append(list)
        friend.playlist.append(root)
        friend.playlist.append(other)
        try context.save()
        context.undoLimit = 9
        context.withUndoGroup { context.delete(root) }
        if saves { try context.save() }
        #expect(try context.undo().isEmpty)
        if saves { try context.save() }
        try saveElsewhere(container) { theirs in
            let theirJob = try theirs.object(with: job.id)
            if links {
                let new = Node(in: theirs)
                (new.name, new.parent) = ("new", theirJob)
            } else {
                theirJob.name = "edited"
            }
        }
        context.advance()
        let skipped = try context.redo()
        let all = [root, list, job, other]
        #expect(Set(skipped.map(\.object)) == Set(all.map(\.objectID)))
        #expect(skipped.allSatisfy { $0.reason == .changedSince })
        #expect(all.allSatisfy { !$0.isDeleted })
        // What led to what stays leads there.
        #expect(friend.next === root && friend.picks.names == ["list"])
        #expect(friend.playlist.names == ["root", "other"])
        // Nothing was done, so there is nothing to take back, and nothing to do again.
        #expect(try context.undo().isEmpty && context.redo().isEmpty)
        #expect(all.allSatisfy { !$0.isDeleted })
        #expect(friend.next === root && friend.picks.names == ["list"])
        #expect(friend.playlist.names == ["root", "other"])
        try expectSound(context)
        try context.save()
        let expected =
            links
            ? ["friend<", "job<list", "list<root", "new<job", "other<root", "root<"]
            : ["edited<list", "friend<", "list<root", "other<root", "root<"]
        #expect(try storedFamilies(container) == expected)
    }

    /// What others took out of it before they edited it keeps nobody. What belongs to another owner
    /// goes.
    @Test func aRedoTakesWhatNobodyEdited() throws {
        let container = try graph()
        let context = container.newContext()
        let (root, list, job) = try family(context)
        let second = try nodes("second", "below", in: context)
        second[1].parent = second[0]
        try context.save()
        context.undoLimit = 9
        context.withUndoGroup {
            context.delete(root)
            context.delete(second[0])
        }
        try context.save()
        try context.undo()
        try context.save()
        try saveElsewhere(container) { theirs in
            let theirJob = try theirs.object(with: job.id)
            theirJob.name = "edited"
            try theirs.object(with: second[1].id).name = "edited too"
            theirJob.parent = nil
        }
        context.advance()
        let skipped = try context.redo()
        #expect(Set(skipped.map(\.object)) == Set([job, second[0], second[1]].map(\.objectID)))
        #expect(root.isDeleted && list.isDeleted && !job.isDeleted && !second[0].isDeleted)
        try context.save()
        #expect(try storedFamilies(container) == ["edited too<second", "edited<", "second<"])
    }

    /// An undo of an insertion: others edited what it put below a new object, or took that out.
    @Test(arguments: [false, true]) func anUndoLeavesTheOwner(_ takesOut: Bool) throws {
        let container = try graph()
        let context = container.newContext()
        let (_, _, job) = try family(context)
        context.undoLimit = 9
        let new = context.withUndoGroup {
            let new = [Node(in: context), Node(in: context)]
            (new[0].name, new[1].name, new[1].parent) = ("owner", "owned", new[0])
            job.parent = new[0]
            return new
        }
        try context.save()
        try saveElsewhere(container) { theirs in
            let owned = try theirs.object(with: new[1].id)
            owned.name = "edited"
            if takesOut { owned.parent = nil }
        }
        context.advance()
        let skipped = try context.undo()
        let stays = takesOut ? [new[1]] : new
        #expect(Set(skipped.map(\.object)) == Set(stays.map(\.objectID)))
        #expect(new[0].isDeleted == takesOut && !new[1].isDeleted)
        #expect(job.parent?.name == "list")
        try context.save()
        let expected = ["job<list", "list<root", "root<"]
        #expect(
            try storedFamilies(container)
                == (takesOut ? ["edited<"] + expected : ["edited<owner"] + expected + ["owner<"])
                .sorted()
        )
    }

    /// A step set a relationship that takes its target along, and deleted the object. Others put
    /// something below both. What a step deleted by it goes again with it, or stays with it.
    @Test func aRedoLeavesWhatItsLastEditReached() throws {
        let container = try graph()
        let context = container.newContext()
        let (root, list, job) = try family(context)
        context.undoLimit = 9
        context.withUndoGroup {
            job.parent = root
            context.delete(root)
        }
        try context.save()
        #expect(try context.undo().isEmpty)
        #expect(job.parent === list)
        try context.save()
        try saveElsewhere(container) { try $0.object(with: job.id).name = "edited" }
        context.advance()
        let skipped = try context.redo()
        #expect(Set(skipped.map(\.object)) == Set([root, list, job].map(\.objectID)))
        try context.save()
        #expect(try storedFamilies(container) == ["edited<list", "list<root", "root<"])
    }

    private enum Change: CaseIterable {
        case next, picks, playlist, loose, moved
    }

    /// Others took away a link, or moved a member, between an undo and a redo. An undo of the redo
    /// gives what was before that, and not what was before the step.
    @Test(arguments: Change.allCases)
    private func anUndoOfARedoLeavesWhatOthersChanged(_ change: Change) throws {
        let container = try graph()
        let context = container.newContext()
        let n = try nodes("a", "b", "c", "d", in: context)
        n[1].parent = n[0]
        n[2].next = n[0]
        n[2].loose = n[0]
        n[2].picks.append(n[0])
        n[2].playlist.append(n[0])
        n[2].playlist.append(n[1])
        try context.save()
        context.undoLimit = 9
        context.withUndoGroup { context.delete(n[0]) }
        try context.save()
        #expect(try context.undo().isEmpty)
        try context.save()
        try saveElsewhere(container) { theirs in
            let (c, b) = (try theirs.object(with: n[2].id), try theirs.object(with: n[1].id))
            switch change {
            case .next: c.next = nil
            case .loose: c.loose = nil
            case .picks: c.picks.removeAll()
            case .playlist: c.playlist.removeAll()
            case .moved: b.parent = try theirs.object(with: n[3].id)
            }
        }
        context.advance()
        func shown() throws -> [String] {
            try context.fetch(Node.all).map { node in
                let ones = [node.parent, node.next, node.loose].map { $0?.name ?? "-" }
                return "\(node.name) \(ones) \(node.picks.names) \(node.playlist.names)"
            }
        }
        let before = try shown()
        try context.redo()
        // A one-to-one has two ends: others changed the object itself.
        #expect(n[1].isDeleted == (change != .moved && change != .next))
        try context.undo()
        #expect(try shown() == before, "\(change)")
        try context.save()
        try expectSound(container.newContext())
        #expect(try shown() == before, "\(change)")
    }
}
