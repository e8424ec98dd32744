// The order of ordered relationships is that of the app's calls.

import Testing
import VarveObjects

@Suite struct OrderStaysTests {
    private func stored(
        _ container: PersistentContainer,
        _ node: Node,
        _ list: (Node) -> ToMany<Node>
    ) throws -> [String] {
        let context = container.newContext()
        return list(try #require(try context.existingObject(with: node.id))).names
    }

    @Test func appendingKeepsTheOrderOfTheCalls() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("0", "1", "2", "3", "4", "5", "6", in: context)
        for index in [5, 2, 6, 1] {
            all[0].playlist.append(all[index])
            all[0].left.append(all[index])
            all[0].chapters.append(all[index])
        }
        try context.save()
        let wanted = ["5", "2", "6", "1"]
        #expect(all[0].playlist.names == wanted && all[0].left.names == wanted)
        #expect(all[0].chapters.names == wanted)
        #expect(try stored(container, all[0], \.playlist) == wanted)
        #expect(try stored(container, all[0], \.left) == wanted)
        #expect(try stored(container, all[0], \.chapters) == wanted)
        try expectSound(container.newContext())
    }

    @Test func theFarSideKeepsItsOrderToo() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("0", "1", "2", "3", in: context)
        for index in [3, 1, 2] { all[index].left.append(all[0]) }
        all[0].right.insert(all[2], at: 0)
        #expect(all[0].right.names == ["2", "3", "1"])
        try context.save()
        #expect(try stored(container, all[0], \.right) == ["2", "3", "1"])
    }

    @Test func placesAreKeptBesideOthersEdits() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("0", "1", "2", "3", "4", "5", in: context)
        all[0].playlist.append(contentsOf: [all[1], all[2], all[3]])
        try context.save()
        let other = container.newContext()
        let theirs = try other.same(all)
        theirs[0].playlist.append(theirs[4])
        theirs[0].playlist.remove(theirs[1])
        try other.save()
        all[0].playlist.insert(all[5], at: 2)
        all[0].playlist.insert(all[3], at: 0)
        #expect(all[0].playlist.names == ["3", "1", "2", "5"])
        try context.save()
        #expect(all[0].playlist.names == ["3", "2", "5", "4"])
        #expect(try stored(container, all[0], \.playlist) == ["3", "2", "5", "4"])
        try expectSound(container.newContext())
    }

    @Test func removedAndAppendedGoesToTheEnd() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("0", "1", "2", "3", in: context)
        all[0].playlist.append(contentsOf: [all[1], all[2], all[3]])
        try context.save()
        all[0].playlist.remove(all[1])
        all[0].playlist.append(all[1])
        #expect(all[0].playlist.names == ["2", "3", "1"])
        try context.save()
        #expect(try stored(container, all[0], \.playlist) == ["2", "3", "1"])
        all[0].playlist.replaceAll(with: [all[3], all[1]])
        try context.save()
        #expect(try stored(container, all[0], \.playlist) == ["3", "1"])
    }

    @Test func iteratingAndRemovingIsSafe() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("0", "1", "2", "3", in: context)
        all[0].picks.append(contentsOf: all[1...])
        try context.save()
        let picks = all[0].picks
        for node in picks { picks.remove(node) }
        #expect(picks.isEmpty && all[0].picks.isEmpty)
        try context.save()
    }

    @Test func aListOnceReadIsStable() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("0", "1", "2", in: context)
        all[0].picks.append(contentsOf: all[1...])
        try context.save()
        let picks = all[0].picks
        #expect(picks.indices.count == 2)
        let other = container.newContext()
        other.delete(try other.same(all)[2])
        try other.save()
        context.advance()
        // What a list view does: it counted before, and asks for the last row now.
        #expect(picks.endIndex == 2 && picks[1].isDeleted)
        #expect(all[0].picks.count == 1)
        picks.append(try nodes("new", in: context)[0])
        #expect(picks.count == 2 && picks.last?.name == "new")
    }
}
