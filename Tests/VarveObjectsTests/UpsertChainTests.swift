// Upserts beside the updates and deletions of the same save: no row is lost, each key has one.

import Testing
import VarveObjects

@Suite(.verified) struct UpsertChainTests {
    /// Keys of stored nodes by name.
    private func keys(_ container: PersistentContainer) throws -> [String: String?] {
        let context = container.newContext()
        try expectSound(context)
        let all = try context.fetch(Node.all)
        return Dictionary(all.map { ($0.name, $0.key) }) { first, _ in first }
    }

    private func keyed(
        _ pairs: KeyValuePairs<String, String>,
        in context: ManagedObjectContext
    ) throws -> [Node] {
        let nodes = pairs.map { name, key in
            let node = Node(in: context)
            node.name = name
            node.key = key
            return node
        }
        try context.save()
        return nodes
    }

    /// Another context saves something first, so that the plan is made anew.
    private func disturb(_ container: PersistentContainer) throws {
        let other = container.newContext()
        Node(in: other).name = "beside"
        try other.save()
    }

    @Test(arguments: [false, true]) func keysMoveOnAndTheFirstIsTakenAnew(isBeside: Bool) throws {
        let container = try graph()
        let context = container.newContext()
        let all = try keyed(["one": "a", "two": "b", "three": "c"], in: context)
        if isBeside { try disturb(container) }
        all[2].key = "d"
        all[1].key = "c"
        all[0].key = "b"
        let new = Node(in: context)
        new.key = "a"
        new.name = "new"
        #expect(try context.save().replaced.isEmpty)
        let stored = try keys(container).compactMapValues { $0 }
        #expect(stored == ["one": "b", "two": "c", "three": "d", "new": "a"])
    }

    @Test(arguments: [false, true]) func exchangedKeysAreFoundByWhoHasThemNow(isBeside: Bool) throws
    {
        let container = try graph()
        let context = container.newContext()
        let all = try keyed(["one": "a", "two": "b"], in: context)
        if isBeside { try disturb(container) }
        (all[0].key, all[1].key) = ("b", "a")
        let new = Node(in: context)
        new.key = "a"
        new.score = 7
        #expect(try context.save().replaced == [new.objectID: all[1].objectID])
        #expect(all[1].score == 7 && all[1].name == "two" && all[0].score == 0)
        let stored = try keys(container).compactMapValues { $0 }
        #expect(stored == ["one": "b", "two": "a"])
    }

    @Test(arguments: [false, true]) func theKeyOfADeletedObjectIsFree(isBeside: Bool) throws {
        let container = try graph()
        let context = container.newContext()
        let all = try keyed(["parent": "p", "child": "c"], in: context)
        all[1].parent = all[0]
        try context.save()
        if isBeside { try disturb(container) }
        // Also that of one that a cascade deletes.
        context.delete(all[0])
        for (name, key) in [("new parent", "p"), ("new child", "c")] {
            let new = Node(in: context)
            new.name = name
            new.key = key
        }
        #expect(try context.save().replaced.isEmpty)
        let stored = try keys(container).compactMapValues { $0 }
        #expect(stored == ["new parent": "p", "new child": "c"])
    }

    @Test func aKeyGivenAwayAndTakenByTwoNewOnes() throws {
        let container = try graph()
        let context = container.newContext()
        let old = try keyed(["old": "a"], in: context)[0]
        old.key = "b"
        let news = (0..<4).map { number in
            let new = Node(in: context)
            new.key = number < 2 ? "a" : "b"
            if number.isMultiple(of: 2) { new.name = "new \(number)" } else { new.score = 5 }
            return new
        }
        let replaced = try context.save().replaced
        #expect(
            replaced == [
                news[1].objectID: news[0].objectID, news[2].objectID: old.objectID,
                news[3].objectID: old.objectID,
            ]
        )
        #expect(old.name == "new 2" && old.score == 5 && news[0].score == 5)
        let stored = try keys(container).compactMapValues { $0 }
        #expect(stored == ["new 0": "a", "new 2": "b"])
        // The replaced ones are no objects any more, and the context has nothing to save.
        #expect(news[1].isDeleted && news[2].isDeleted && !context.hasChanges)
        #expect(try context.save().commit == nil)
    }

    @Test func twoNewOnesWithoutAKeyAreTwo() throws {
        let container = try graph()
        let context = container.newContext()
        for name in ["x", "y"] { Node(in: context).name = name }
        #expect(try context.save().replaced.isEmpty)
        #expect(try storedNames(container) == ["x", "y"])
    }

    @Test func anotherContextTookTheKeyMeanwhile() throws {
        let container = try graph()
        let context = container.newContext()
        _ = try nodes("first", in: context)
        let new = Node(in: context)
        new.key = "k"
        new.name = "mine"
        let other = container.newContext()
        let theirs = try keyed(["theirs": "k"], in: other)[0]
        #expect(try context.save().replaced == [new.objectID: theirs.objectID])
        let stored = try keys(container).compactMapValues { $0 }
        #expect(stored == ["mine": "k"])
    }

    @Test func updatesThatMeetEachOtherFailAsDuplicates() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try keyed(["one": "a", "two": "b"], in: context)
        all[0].key = "c"
        all[1].key = "c"
        #expect(code { try context.save() } == .notUnique)
        all[1].key = "b"
        try context.save()
        let stored = try keys(container).compactMapValues { $0 }
        #expect(stored == ["one": "c", "two": "b"])
    }
}
