// How long a context lives: as long as one of its objects, unless it keeps objects itself.

import Foundation
import Observation
import Synchronization
import Testing
import VarveObjects

@Suite(.verified) struct ContextLifetimeTests {
    /// Two nodes, the first the parent and a pick of the second.
    private func saved(_ container: PersistentContainer) throws -> Node.ID {
        let context = container.newContext()
        let all = try nodes("a", "b", in: context)
        all[1].parent = all[0]
        all[1].picks.append(all[0])
        try context.save()
        return all[1].id
    }

    @Test func objectsOfAContextThatNobodyHoldsAreWhole() throws {
        let container = try graph()
        let id = try saved(container)
        #expect(try container.newContext().fetch(Node.all).map(\.name) == ["a", "b"])
        let node = try #require(try container.newContext().existingObject(with: id))
        #expect(node.parent?.name == "a" && node.picks.names == ["a"])
        // What somebody else saves is not seen: it is one commit, as of any context.
        let other = container.newContext()
        try #require(try other.existingObject(with: id)?.parent).name = "else"
        try other.save()
        #expect(node.parent?.name == "a")
        node.context?.advance()
        #expect(node.parent?.name == "else")
    }

    /// What an app does with objects before it lets them go.
    private static let uses: [(name: String, body: @Sendable (Node) throws -> Void)] = [
        ("reads", { _ = ($0.name, $0.parent?.name, $0.picks.names) }),
        ("pages", { _ = try $0.picks.page(0..<5) }),
        (
            "saves",
            { node in
                guard let context = node.context else { return }
                node.name = "c"
                node.picks.removeAll()
                try context.save()
            }
        ),
        (
            "rolls back",
            { node in
                guard let context = node.context else { return }
                node.name = "c"
                node.parent = nil
                context.rollback()
            }
        ),
        (
            "inserts",
            { node in
                guard let context = node.context else { return }
                let child = Node(in: context)
                child.parent = node
                try context.save()
            }
        ),
        (
            "deletes",
            { node in
                guard let context = node.context else { return }
                context.delete(node)
                try context.save()
            }
        ),
        (
            "undoes",
            { node in
                guard let context = node.context else { return }
                context.undoLimit = 5
                node.name = "c"
                _ = try context.undo()
                context.undoLimit = 0
            }
        ),
        (
            "throws in a transaction",
            { node in
                try? node.context?.transaction {
                    node.name = "c"
                    throw CancellationError()
                }
            }
        ),
        (
            "branches",
            { node in
                guard let branch = try node.context?.branch() else { return }
                try branch.existingObject(with: node.id)?.name = "c"
                _ = try branch.mergeIntoParent()
                try node.context?.save()
            }
        ),
        ("lists", { _ = try $0.context?.fetchBatched(Node.all, size: 5)[0].name }),
        ("refreshes", { $0.context?.refreshAllObjects() }),
        ("resets", { $0.context?.reset() }),
    ]

    @Test(arguments: uses.map(\.name), [false, true])
    func aContextEndsWithItsLastObject(_ use: String, _ observes: Bool) throws {
        let body = try #require(Self.uses.first { $0.name == use }).body
        var options = ContainerOptions()
        options.everyContextObserves = observes
        let container = try PersistentContainer.inMemory(
            schema: GraphSchema.self,
            options: options
        )
        let id = try saved(container)
        weak var context: ManagedObjectContext?
        func run() throws {
            let made = container.newContext()
            context = made
            #expect(try made.existingObject(with: id) != nil)
        }
        try run()
        #expect(context == nil)
        func hold() throws -> Node? {
            let made = container.newContext()
            context = made
            return try made.existingObject(with: id)
        }
        var node = try hold()
        #expect(context != nil)
        if observes {
            withObservationTracking {
                _ = (node?.name, node?.parent, node?.picks.count)
            } onChange: {
            }
        }
        try node.map(body)
        #expect((context != nil) == (use != "resets"))
        node = nil
        #expect(context == nil && container.statistics.contexts == 0)
        #expect(container.statistics.realisedObjects == 0)
    }

    @Test func aContextWithEditsEndsWhenTheAppLetsItGo() throws {
        let events = Mutex<[EndedContextTrace]>([])
        var options = ContainerOptions()
        options.trace = TraceHandler { event in
            if case .endedContext(let trace) = event { events.withLock { $0.append(trace) } }
        }
        let container = try PersistentContainer.inMemory(
            schema: GraphSchema.self,
            options: options
        )
        let id = try saved(container)
        weak var context: ManagedObjectContext?
        func edit() throws -> (Node, Node) {
            let made = container.newContext()
            context = made
            let node = try #require(try made.existingObject(with: id))
            let parent = try #require(node.parent)
            node.name = "c"
            return (node, parent)
        }
        let (node, parent) = try edit()
        #expect(context == nil)
        // What it has in memory is good.
        #expect(node.name == "c" && events.withLock(\.isEmpty))
        #expect(parent.isFault && parent.name == "")
        parent.name = "d"
        node.parent = nil
        node.picks.removeAll()
        #expect(
            events.withLock { $0.map { "\($0.context) \($0.object) \($0.entity) \($0.use)" } }
                == ["context \(parent.objectID) Node read"]
        )
        #expect(try container.newContext().fetch(Node.all).names == ["a", "b"])
    }

    @Test(arguments: ["attribute", "to-one", "to-many", "save"])
    func anEditThatIsLostIsToldOf(_ what: String) throws {
        let uses = Mutex<[EndedContextTrace.Use]>([])
        var options = ContainerOptions()
        options.trace = TraceHandler { event in
            if case .endedContext(let trace) = event { uses.withLock { $0.append(trace.use) } }
        }
        let container = try PersistentContainer.inMemory(
            schema: GraphSchema.self,
            options: options
        )
        let id = try saved(container)
        func edit() throws -> Node {
            let node = try #require(try container.newContext().existingObject(with: id))
            // Nobody holds the context: it ends with this edit.
            node.name = "c"
            return node
        }
        let node = try edit()
        switch what {
        case "attribute": node.score = 7
        case "to-one": node.parent = nil
        case "save": try node.context?.save()
        default: node.picks.append(node)
        }
        #expect(uses.withLock { $0 } == [what == "save" ? .context : .edit])
        #expect(node.context == nil && node.name == "c")
    }

    /// Objects end on any thread, while their context makes others.
    @Test func objectsThatEndOnOtherThreadsEndTheContextOnce() throws {
        let container = try graph()
        let maker = container.newContext()
        for number in 0..<200 { Node(in: maker).score = Double(number) }
        try maker.save()
        for round in 0..<100 {
            weak var context: ManagedObjectContext?
            func run() throws {
                let made = container.newContext()
                context = made
                let group = DispatchGroup()
                for part in 0..<4 {
                    // Given away whole: nobody else has these objects.
                    let (least, most) = (Double(50 * part), Double(50 * part + 50))
                    nonisolated(unsafe) var objects = try made.fetch(
                        Node.where { $0.score >= least && $0.score < most }.returningFaults(true)
                    )
                    unsafe #expect(objects.count == 50)
                    DispatchQueue.global().async(group: group) { unsafe objects = [] }
                    if round % 2 == 0 { continue }
                    _ = try made.fetch(Node.where { $0.score == Double(part) })
                }
                group.wait()
            }
            try run()
            #expect(context == nil, "round \(round)")
        }
    }
}
