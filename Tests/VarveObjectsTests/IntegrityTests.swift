// What holds between contexts: every policy, every way to the newest commit.

import Testing
import VarveObjects

private let settling: [MergePolicy] = [
    .objectWinsByProperty, .storeWinsByProperty, .overwrite, .rollback,
]

private let namedPolicies: [(String, MergePolicy)] = [
    ("objectWins", .objectWinsByProperty), ("storeWins", .storeWinsByProperty),
    ("overwrite", .overwrite), ("rollback", .rollback),
]

@Suite(.verified) struct IntegrityTests {
    /// Two contexts on the same nodes; the second one saves `theirs`, then the first tries `mine`.
    private func meet(
        _ names: String...,
        advances: Bool,
        prepare: ([Node]) -> Void = { _ in },
        mine: ([Node]) -> Void,
        theirs: ([Node]) -> Void
    ) throws -> (PersistentContainer, ManagedObjectContext, [Node]) {
        let container = try graph()
        let context = container.newContext()
        let all = names.map { name in
            let node = Node(in: context)
            node.name = name
            return node
        }
        prepare(all)
        try context.save()
        mine(all)
        let other = container.newContext()
        theirs(try other.same(all))
        try other.save()
        if advances { context.advance() }
        return (container, context, all)
    }

    @Test(arguments: [false, true])
    func aChildUnderAParentThatOthersDeleted(advances: Bool) throws {
        for policy in settling {
            let (container, context, all) = try meet("parent", "child", advances: advances) { _ in
            } mine: {
                $0[1].parent = $0[0]
                $0[1].picks.append($0[0])
                $0[1].playlist.append($0[0])
                $0[1].left.append($0[0])
                $0[1].book = $0[0]
                $0[1].next = $0[0]
                $0[1].loose = $0[0]
            } theirs: {
                $0[0].context?.delete($0[0])
            }
            #expect(code { try context.save() } == .conflict)
            try context.save(mergePolicy: policy)
            let fresh = container.newContext()
            try expectSound(fresh)
            #expect(try fresh.fetch(Node.all).names == ["child"])
            #expect(all[1].parent == nil && !context.hasChanges)
            try expectSound(context)
        }
    }

    @Test func theWaysOutOfALostTarget() throws {
        func lost() throws -> (PersistentContainer, ManagedObjectContext, [Node]) {
            try meet("parent", "child", "other", advances: true) { _ in
            } mine: {
                $0[1].parent = $0[0]
                $0[1].picks.append($0[0])
            } theirs: {
                $0[0].context?.delete($0[0])
            }
        }
        var (_, context, all) = try lost()
        #expect(all[1].parent == nil && all[1].picks.isEmpty && context.hasChanges)
        #expect(code { try context.save() } == .conflict)
        all[1].parent = all[2]
        #expect(code { try context.save() } == .conflict)
        all[1].picks.remove(all[0])
        try context.save()
        #expect(all[2].children.names == ["child"])
        (_, context, all) = try lost()
        context.refresh(all[1], mergeChanges: false)
        #expect(!context.hasChanges)
        #expect(try context.save().commit == nil)
    }

    @Test func aCascadeFindsWhatOthersSavedMeanwhile() throws {
        for advances in [false, true] {
            let (container, context, all) = try meet(
                "parent",
                "child",
                "grandchild",
                advances: advances
            ) { _ in
            } mine: {
                $0[0].context?.delete($0[0])
            } theirs: {
                $0[1].parent = $0[0]
                $0[2].parent = $0[1]
            }
            if advances {
                #expect(all[1].isDeleted && all[2].isDeleted)
                try context.save()
            } else {
                #expect(code { try context.save() } == .conflict)
                try context.save(mergePolicy: .objectWinsByProperty)
            }
            #expect(try storedNames(container) == [])
            #expect(all.allSatisfy { $0.isDeleted })
        }
    }

    @Test func denySeesWhatOthersSavedMeanwhile() throws {
        for advances in [false, true] {
            let (container, context, _) = try meet("guardian", "guarded", advances: advances) { _ in
            } mine: {
                $0[0].context?.delete($0[0])
            } theirs: {
                $0[1].guardian = $0[0]
            }
            #expect(code { try context.save(mergePolicy: .overwrite) } == .deleteDenied)
            #expect(try storedNames(container).count == 2)
            context.rollback()
            try expectSound(container.newContext())
        }
    }

    @Test func nullifyReachesWhatOthersSavedMeanwhile() throws {
        for policy in settling {
            let (container, context, _) = try meet("a", "b", advances: false) { _ in
            } mine: {
                $0[0].context?.delete($0[0])
            } theirs: {
                $0[1].loose = $0[0]
                $0[1].book = $0[0]
                $0[1].next = $0[0]
                $0[1].picks.append($0[0])
            }
            _ = try? context.save(mergePolicy: policy)
            try expectSound(container.newContext())
            try expectSound(context)
        }
    }

    @Test func oneHusbandHasOneWife() throws {
        for (name, policy) in namedPolicies {
            for advances in [false, true] {
                let (container, context, _) = try meet("x", "y", "z", advances: advances) { _ in
                } mine: {
                    $0[0].next = $0[1]
                } theirs: {
                    $0[2].next = $0[1]
                }
                if !advances { #expect(code { try context.save() } == .conflict) }
                try context.save(mergePolicy: policy)
                let fresh = container.newContext()
                try expectSound(fresh)
                let winner = try #require(try fresh.named("y")).previous?.name
                // Behind an advance the app saw what the others did; before, the policy says.
                let mineWins = advances || name == "objectWins" || name == "overwrite"
                #expect(winner == (mineWins ? "x" : "z"))
                try expectSound(context)
            }
        }
    }

    @Test func aMergeUnderAPendingOneToOneKeepsBothSides() throws {
        let (container, context, _) = try meet("x", "y", "z", advances: true) { _ in
        } mine: {
            $0[0].next = $0[1]
        } theirs: {
            $0[0].next = $0[2]
        }
        try expectSound(context)
        try context.save()
        let fresh = container.newContext()
        try expectSound(fresh)
        #expect(try fresh.named("x")?.next?.name == "y")
        #expect(try fresh.named("z")?.previous == nil)
    }

    @Test func whatComesBackComesBackWhole() throws {
        for advances in [false, true] {
            for policy in [MergePolicy.objectWinsByProperty, .overwrite] {
                let (container, context, _) = try meet(
                    "a",
                    "note",
                    "b",
                    "c",
                    "child",
                    advances: advances
                ) { all in
                    all[0].chapters.append(contentsOf: [all[2], all[1], all[3]])
                    all[1].left.append(contentsOf: [all[3], all[2]])
                    all[0].left.append(contentsOf: [all[3], all[1], all[2]])
                    all[1].next = all[2]
                    all[1].playlist.append(contentsOf: [all[2], all[0]])
                    all[1].parent = all[0]
                    all[1].stale = all[3]
                } mine: {
                    $0[1].name = "edited"
                } theirs: {
                    $0[1].context?.delete($0[1])
                }
                #expect(code { try context.save() } == .conflict)
                try context.save(mergePolicy: policy)
                let fresh = container.newContext()
                try expectSound(fresh)
                let note = try #require(try fresh.named("edited"))
                let folder = try #require(try fresh.named("a"))
                #expect(folder.chapters.names == ["b", "edited", "c"])
                #expect(folder.left.names == ["c", "edited", "b"])
                #expect(note.left.names == ["c", "b"] && note.next?.name == "b")
                #expect(note.playlist.names == ["b", "a"] && note.parent === folder)
                #expect(note.stale?.name == "c")
                fresh.delete(folder)
                try fresh.save()
                try expectSound(container.newContext())
            }
        }
    }

    @Test func whatComesBackDoesNotBringItsParent() throws {
        let (container, context, _) = try meet("parent", "child", advances: false) {
            $0[1].parent = $0[0]
        } mine: {
            $0[1].name = "edited"
        } theirs: {
            $0[0].context?.delete($0[0])
        }
        try context.save(mergePolicy: .objectWinsByProperty)
        try expectSound(container.newContext())
        #expect(try storedNames(container) == ["edited"])
    }

    @Test func aStaleReferenceReadsAsNone() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", in: context)
        all[0].stale = all[1]
        try context.save()
        let other = container.newContext()
        other.delete(try other.same(all)[1])
        try other.save()
        let fresh = container.newContext()
        let node = try #require(try fresh.named("a"))
        #expect(node.stale == nil && fresh.readFailures.isEmpty)
        node.name = "edited"
        try fresh.save()
    }

    @Test func anUpsertSeesTheUpdatesOfItsSave() throws {
        let container = try graph()
        let context = container.newContext()
        let old = try nodes("old", in: context)[0]
        old.key = "a"
        try context.save()
        old.key = "b"
        let new = Node(in: context)
        new.key = "a"
        new.name = "new"
        #expect(try context.save().replaced.isEmpty)
        #expect(try storedNames(container) == ["old", "new"])
        // And the other way round: an update that takes the key comes first.
        let third = Node(in: context)
        third.key = "c"
        third.name = "third"
        old.key = "c"
        #expect(try context.save().replaced == [third.objectID: old.objectID])
        #expect(try storedNames(container) == ["third", "new"])
    }

    @Test func twoNewObjectsWithOneKeyBecomeOne() throws {
        let container = try graph()
        let context = container.newContext()
        let all = (0..<2).map { _ in Node(in: context) }
        all[0].key = "k"
        all[0].name = "first"
        all[1].key = "k"
        all[1].score = 5
        all[1].picks.append(all[0])
        let parent = Node(in: context)
        parent.name = "parent"
        all[1].parent = parent
        #expect(try context.save().replaced == [all[1].objectID: all[0].objectID])
        let fresh = container.newContext()
        try expectSound(fresh)
        let stored = try #require(try fresh.named("first"))
        #expect(stored.score == 5 && stored.parent?.name == "parent")
    }

    @Test func anUpsertKeepsBothSidesOfWhatItGives() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("existing", "x", "y", in: context)
        all[0].key = "k"
        all[0].next = all[1]
        try context.save()
        let new = Node(in: context)
        new.key = "k"
        new.next = all[2]
        try context.save()
        let fresh = container.newContext()
        try expectSound(fresh)
        #expect(try fresh.named("existing")?.next?.name == "y")
    }

    @Test(arguments: ["picks", "playlist", "left", "next", "all"])
    func anEditedObjectComesBackWithItsNewLinks(_ what: String) throws {
        for (name, policy) in namedPolicies {
            let container = try graph()
            let context = container.newContext()
            let all = try nodes("parent", "child", in: context)
            if what == "left" || what == "all" { all[1].left.append(all[0]) }
            if what == "picks" || what == "all" { all[1].picks.append(all[0]) }
            if what == "playlist" || what == "all" { all[1].playlist.append(all[0]) }
            if what == "next" || what == "all" { all[1].next = all[0] }
            all[0].name = "mine"
            let other = container.newContext()
            other.delete(try #require(try other.named("parent")))
            try other.save()
            try context.save(mergePolicy: policy)
            let fresh = container.newContext()
            try expectSound(fresh)
            let child = try #require(try fresh.named("child"))
            let isBack = name == "objectWins" || name == "overwrite"
            #expect(try fresh.count(Node.all) == (isBack ? 2 : 1))
            guard isBack else { continue }
            if what == "left" || what == "all" { #expect(child.left.names == ["mine"]) }
            if what == "picks" || what == "all" { #expect(child.picks.names == ["mine"]) }
            if what == "playlist" || what == "all" { #expect(child.playlist.names == ["mine"]) }
            if what == "next" || what == "all" { #expect(child.next?.name == "mine") }
        }
    }

    @Test func bothOrderedSidesAreWrittenOnANewerCommit() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", "c", in: context)
        all[0].left.append(all[1])
        try context.save()
        let other = container.newContext()
        _ = try nodes("else", in: other)
        all[2].left.append(all[1])
        all[0].left.append(all[2])
        try context.save()
        let fresh = container.newContext()
        try expectSound(fresh)
        #expect(try fresh.named("a")?.left.names == ["b", "c"])
        #expect(try fresh.named("b")?.right.names == ["a", "c"])
    }

    @Test func whatWasSetAndTakenBackIsNotWritten() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("book", "chapter", in: context)
        let other = container.newContext()
        let theirs = try other.same(all)
        _ = try nodes("else", in: container.newContext())
        // In an order each step counts, so the journal keeps them.
        all[0].chapters.append(all[1])
        all[0].chapters.remove(all[1])
        all[0].name = "mine"
        try context.save()
        theirs[1].name = "theirs"
        try other.save()
        #expect(try storedNames(container) == ["mine", "theirs", "else"])
    }

    /// The new member was forgotten if it went before the stored one, and kept if behind it: then
    /// the list was `c` alone, before it was that and what the other one had added.
    @Test(arguments: [[1, 2], [2, 1]], [true, false])
    func aListThatIsReplacedHasNoOrderOfItsRemovals(order: [Int], clears: Bool) throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("owner", "a", "b", "c", in: context)
        let (old, new) = (all[order[0]], all[order[1]])
        all[0].picks.append(old)
        try context.save()
        let other = container.newContext()
        let theirs = try other.same(all)
        all[0].picks.append(new)
        if clears {
            all[0].picks.removeAll()
            all[0].picks.append(all[3])
        } else {
            all[0].picks.replaceAll(with: [all[3]])
        }
        theirs[0].picks.append(theirs[order[1]])
        try other.save()
        try context.save(mergePolicy: .objectWinsByProperty)
        #expect(all[0].picks.names == ["c"])
        let fresh = container.newContext()
        #expect(try fresh.named("owner")?.picks.names == ["c"])
    }
}
