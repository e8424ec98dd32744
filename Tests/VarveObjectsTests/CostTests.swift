// What edits of many objects cost: rows, index entries and pages are counted, not time, for n and
// 2n.

import Testing
import VarveBase
import VarveEngine
import VarveRecords

@testable import VarveObjects

@Suite(.verified) struct CostTests {
    /// A store with one owner and members, all saved.
    private struct Nodes {
        let container: PersistentContainer
        let context: ManagedObjectContext
        let owner: Node
        let members: [Node]

        init(_ count: Int) throws {
            container = try graph()
            context = container.newContext()
            let context = context
            owner = Node(in: context)
            members = (0..<count).map { _ in Node(in: context) }
            try context.save()
        }

        /// Another context saves: what this one saves is judged over a newer commit.
        func saveElsewhere() throws {
            let other = container.newContext()
            _ = Node(in: other)
            try other.save()
        }
    }

    private struct Cost: CustomStringConvertible {
        var rows = 0
        var entries = 0
        var pages = 0
        var description: String { "\(rows) rows, \(entries) entries, \(pages) pages" }

        init(_ container: PersistentContainer) {
            let (statistics, records) = (container.statistics, container.store.statistics)
            rows = statistics.storeReads + statistics.rowsScanned
            entries = statistics.entriesScanned
            pages = Int(records.engine.nodeHits + records.engine.nodeMisses)
        }
    }

    /// Expects that twice as much costs about twice as much, and so many entries for each at most.
    private func expectLinear(
        _ count: Int = 100,
        entries: Int,
        sourceLocation: SourceLocation = #_sourceLocation,
        _ make: (Int) throws -> (nodes: Nodes, work: () throws -> Void)
    ) throws {
        var costs: [Cost] = []
        for size in [count, 2 * count] {
            let (nodes, work) = try make(size)
            let before = Cost(nodes.container)
            try work()
            var cost = Cost(nodes.container)
            cost.rows -= before.rows
            cost.entries -= before.entries
            cost.pages -= before.pages
            #expect(cost.entries <= entries * size, "\(cost)", sourceLocation: sourceLocation)
            costs.append(cost)
        }
        func isLinear(_ part: (Cost) -> Int) -> Bool {
            part(costs[1]) <= part(costs[0]) * 9 / 4 + 64
        }
        #expect(
            isLinear(\.rows) && isLinear(\.entries) && isLinear(\.pages),
            "\(costs)",
            sourceLocation: sourceLocation
        )
    }

    enum List: CaseIterable {
        case playlist, left, right, chapters, picks, children

        func of(_ node: Node) -> ToMany<Node> {
            switch self {
            case .playlist: node.playlist
            case .left: node.left
            case .right: node.right
            case .chapters: node.chapters
            case .picks: node.picks
            case .children: node.children
            }
        }

        static let ordered: [List] = [.playlist, .left, .right, .chapters]
    }

    @Test(arguments: List.allCases, [false, true])
    func `n appends and one save`(_ list: List, _ isBehind: Bool) throws {
        try expectLinear(entries: 6) { count in
            let nodes = try Nodes(2 * count)
            for member in nodes.members[..<count] { list.of(nodes.owner).append(member) }
            try nodes.context.save()
            #expect(list.of(nodes.owner).count == count)
            let work = {
                for member in nodes.members[count...] { list.of(nodes.owner).append(member) }
                if isBehind { try nodes.saveElsewhere() }
                try nodes.context.save()
                #expect(list.of(nodes.owner).ids == nodes.members.map(\.id))
            }
            return (nodes, work)
        }
    }

    @Test(arguments: List.allCases, [false, true])
    func `n links from the other side and one save`(_ list: List, _ isBehind: Bool) throws {
        try expectLinear(entries: 4) { count in
            let nodes = try Nodes(count)
            let work = {
                for member in nodes.members { list.of(member).append(nodes.owner) }
                if isBehind { try nodes.saveElsewhere() }
                try nodes.context.save()
            }
            return (nodes, work)
        }
    }

    /// The rows that a cascade reaches are read together, and who they lead to is looked for once.
    @Test func `a cascade of n rows makes one pass over the store`() throws {
        for count in [100, 200] {
            let nodes = try Nodes(count)
            let other = Node(in: nodes.context)
            for member in nodes.members {
                nodes.owner.children.append(member)
                member.guardian = other
            }
            try nodes.context.save()
            nodes.container.trimMemory(.rows)
            let context = nodes.container.newContext()
            let owner = try #require(try context.existingObject(with: nodes.owner.id))
            let before = nodes.container.statistics
            context.delete(owner)
            context.processPendingChanges()
            let passes = nodes.container.statistics.storePasses - before.storePasses
            #expect(passes <= 2, "\(count): \(passes)")
            #expect(context.deletedObjects.count == count + 1)
            try context.save()
            #expect(try context.fetchIDs(Node.all) == [other.id])
            #expect(try context.existingObject(with: other.id)?.guarded.count == 0)
        }
    }

    @Test(arguments: List.ordered, [false, true])
    func `n inserts at the front and one save`(_ list: List, _ isBehind: Bool) throws {
        try expectLinear(entries: 4) { count in
            let nodes = try Nodes(count)
            let work = {
                for member in nodes.members { list.of(nodes.owner).insert(member, at: 0) }
                if isBehind { try nodes.saveElsewhere() }
                try nodes.context.save()
                #expect(list.of(nodes.owner).ids == nodes.members.reversed().map(\.id))
            }
            return (nodes, work)
        }
    }

    @Test(arguments: List.ordered, [false, true])
    func `n moves within one list and one save`(_ list: List, _ isBehind: Bool) throws {
        try expectLinear(entries: 6) { count in
            let nodes = try Nodes(count)
            for member in nodes.members { list.of(nodes.owner).append(member) }
            try nodes.context.save()
            var model = nodes.members.map(\.id)
            let work = {
                for step in 0..<count {
                    let member = nodes.members[step * 7919 % count]
                    let place = step * 31 % count
                    model.removeAll { $0 == member.id }
                    model.insert(member.id, at: place)
                    list.of(nodes.owner).insert(member, at: place)
                    #expect(list.of(nodes.owner).count == count)
                }
                if isBehind { try nodes.saveElsewhere() }
                try nodes.context.save()
                #expect(list.of(nodes.owner).ids == model)
            }
            return (nodes, work)
        }
    }

    @Test(arguments: List.ordered)
    func `n saves of one move each read no list under the writer's lock`(_ list: List) throws {
        let nodes = try Nodes(100)
        for member in nodes.members { list.of(nodes.owner).append(member) }
        try nodes.context.save()
        var model = nodes.members.map(\.id)
        for step in 0..<60 {
            let moved = nodes.members[99 - step % 7]
            model.removeAll { $0 == moved.id }
            model.insert(moved.id, at: 3)
            list.of(nodes.owner).insert(moved, at: 3)
            let before = nodes.container.statistics.entriesScanned
            try nodes.context.save()
            #expect(nodes.container.statistics.entriesScanned - before <= 40)
            #expect(list.of(nodes.owner).ids == model)
        }
    }

    @Test(arguments: List.allCases, [false, true])
    func `n removals and one save`(_ list: List, _ isBehind: Bool) throws {
        try expectLinear(entries: 6) { count in
            let nodes = try Nodes(count)
            for member in nodes.members { list.of(nodes.owner).append(member) }
            try nodes.context.save()
            let work = {
                for member in nodes.members.reversed() { list.of(nodes.owner).remove(member) }
                if isBehind { try nodes.saveElsewhere() }
                try nodes.context.save()
                #expect(list.of(nodes.owner).count == 0)
            }
            return (nodes, work)
        }
    }

    @Test(arguments: List.allCases, [false, true])
    func `n deletes of members of one list`(_ list: List, _ isBehind: Bool) throws {
        try expectLinear(entries: 8) { count in
            let nodes = try Nodes(count)
            for member in nodes.members { list.of(nodes.owner).append(member) }
            try nodes.context.save()
            let work = {
                for member in nodes.members {
                    nodes.context.delete(member)
                    nodes.context.processPendingChanges()
                }
                if isBehind { try nodes.saveElsewhere() }
                try nodes.context.save()
                #expect(list.of(nodes.owner).count == 0)
            }
            return (nodes, work)
        }
    }

    @Test(arguments: List.allCases, [false, true])
    func `n deletes of objects with incoming references`(_ list: List, _ isBehind: Bool) throws {
        try expectLinear(entries: 12) { count in
            let nodes = try Nodes(2 * count)
            for (source, target) in zip(nodes.members[..<count], nodes.members[count...]) {
                list.of(source).append(target)
                source.loose = target
                source.next = target
            }
            try nodes.context.save()
            let work = {
                for target in nodes.members[count...] { nodes.context.delete(target) }
                if isBehind { try nodes.saveElsewhere() }
                try nodes.context.save()
                for source in nodes.members[..<count] {
                    #expect(list.of(source).count == 0 && source.loose == nil)
                    #expect(source.next == nil)
                }
            }
            return (nodes, work)
        }
    }

    @Test(arguments: List.allCases, [false, true])
    func `The owner of n members is deleted`(_ list: List, _ isBehind: Bool) throws {
        try expectLinear(entries: 8) { count in
            let nodes = try Nodes(count)
            for member in nodes.members {
                list.of(nodes.owner).append(member)
                member.loose = nodes.owner
            }
            try nodes.context.save()
            let work = {
                nodes.context.delete(nodes.owner)
                if isBehind { try nodes.saveElsewhere() }
                try nodes.context.save()
            }
            return (nodes, work)
        }
    }

    @Test func `New objects that are deleted one by one leave no trace`() throws {
        try expectLinear(entries: 4) { count in
            let nodes = try Nodes(2)
            let work = {
                let new = (0..<count).map { _ in
                    let node = Node(in: nodes.context)
                    nodes.owner.children.append(node)
                    nodes.owner.picks.append(node)
                    nodes.owner.playlist.insert(node, at: 0)
                    node.playlist.append(nodes.owner)
                    nodes.members[0].left.append(node)
                    return node
                }
                nodes.owner.picks.append(nodes.members[1])
                for node in new {
                    nodes.context.delete(node)
                    nodes.context.processPendingChanges()
                }
                #expect(nodes.owner.picks.ids == [nodes.members[1].id])
                #expect(nodes.owner.playlist.isEmpty && nodes.members[0].left.isEmpty)
                try nodes.saveElsewhere()
                try nodes.context.save()
                try expectSound(nodes.container.newContext())
                #expect(nodes.owner.picks.ids == [nodes.members[1].id])
            }
            return (nodes, work)
        }
    }

    enum Reach: CaseIterable {
        case list, chain
    }

    /// Others put n members, or a chain of n, in the reach of a deletion; the save deletes them and
    /// the step learns of them. Undo brings them back, redo takes them along.
    @Test(arguments: Reach.allCases)
    func `A step learns of what a save reached`(_ reach: Reach) throws {
        for work in ["save", "undo", "redo"] {
            try expectLinear(entries: 24) { count in
                let nodes = try Nodes(count)
                nodes.context.undoLimit = 3
                nodes.context.withUndoGroup { nodes.context.delete(nodes.owner) }
                let other = nodes.container.newContext()
                var last = try other.object(with: nodes.owner.id)
                for member in try other.same(nodes.members) {
                    member.parent = last
                    if reach == .chain { last = member }
                }
                try other.save()
                nodes.context.advance()
                if work == "save" { return (nodes, { try nodes.context.save() }) }
                try nodes.context.save()
                if work == "undo" {
                    func undo() throws {
                        #expect(try nodes.context.undo().isEmpty)
                        #expect(try nodes.context.count(Node.all) == count + 1)
                    }
                    return (nodes, undo)
                }
                try nodes.context.undo()
                try nodes.context.save()
                func redo() throws {
                    #expect(try nodes.context.redo().isEmpty)
                    #expect(try nodes.context.count(Node.all) == 0)
                }
                return (nodes, redo)
            }
        }
    }

    @Test func `A context n commits behind moves on for what changed`() throws {
        for count in [1_200, 2_400] {
            let nodes = try Nodes(20)
            let writer = nodes.container.newContext()
            let same = try writer.same(Array(nodes.members.prefix(5)))
            let start = nodes.container.feed.steps
            for step in 0..<count {
                same[step % 5].score = Double(step + 1)
                try writer.save()
            }
            #expect(nodes.container.feed.steps - start <= 6 * count)
            let (before, reads) = (nodes.container.feed.steps, nodes.container.statistics)
            nodes.context.advance()
            #expect(nodes.container.feed.steps - before <= 3 * 1_100)
            #expect(nodes.container.statistics.storeReads - reads.storeReads <= 10)
            #expect(nodes.members[(count - 1) % 5].score == Double(count))
            // And when it goes, nobody pays for all it held.
            let (last, now) = (nodes.container.feed.steps, writer.commit)
            same[0].score = -1
            try writer.save()
            #expect(writer.commit != now)
            #expect(nodes.container.feed.steps - last <= 70)
        }
    }

    /// Both sides have an order, and another context saved: what was written of one side was read
    /// as the other side's list, and the save failed.
    @Test func `Both sides are ordered and the save stands on a newer commit`() throws {
        let nodes = try Nodes(3)
        for member in nodes.members { nodes.owner.left.append(member) }
        try nodes.saveElsewhere()
        try nodes.context.save()
        #expect(nodes.owner.left.ids == nodes.members.map(\.id))
        nodes.owner.left.insert(nodes.members[2], at: 0)
        for member in nodes.members { #expect(member.right.ids == [nodes.owner.id]) }
        try nodes.saveElsewhere()
        try nodes.context.save()
        try expectSound(nodes.container.newContext())
        #expect(nodes.owner.left.first === nodes.members[2])
    }
}
