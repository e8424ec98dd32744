// Reads that fail while a context moves to a newer commit: what is saved stays saved, and no object
// shows a value of another commit than the rest.

import Foundation
import Testing
import VarveObjects
import VarveTesting

@testable import VarveObjects

@Suite(.verified) struct FailedSettleTests {
    private func open(_ disk: SimulatedDisk) throws -> PersistentContainer {
        // Nothing stays in memory that no object holds.
        try PersistentContainer.openNow(
            on: disk,
            schema: GraphSchema.self,
            options: ContainerOptions(unreferencedRowBytes: 0, nodeCacheBytes: 0)
        )
    }

    private static func text(_ index: Int, bytes: Int = 700) -> String {
        var random = SeededRandom(seed: UInt64(index))
        return "\(index) " + random.bytes(bytes).map { String($0, radix: 16) }.joined()
    }

    /// The number that a text begins with.
    private static func head(_ text: String) -> String {
        String(text.prefix { $0 != " " })
    }

    /// A closed store of 40 nodes on several pages.
    private func filled() throws -> SimulatedDisk {
        let disk = SimulatedDisk()
        let container = try open(disk)
        func fill() throws {
            let context = container.newContext()
            for index in 0..<40 { Node(in: context).name = Self.text(index) }
            try context.save()
        }
        try fill()
        try container.closeNow()
        return disk
    }

    /// Others change every third node; what they wrote is on the disk and not in memory.
    private func changeEveryThird(_ container: PersistentContainer) throws {
        let context = container.newContext()
        let all = try context.fetch(Node.all)
        for index in stride(from: 0, to: all.count, by: 3) {
            all[index].name = Self.text(100 + index)
        }
        try context.save()
        try container.store.engine.checkpoint()
    }

    // MARK: Merging

    /// The old row stayed, and its object showed values of an older commit beside newer ones.
    @Test(arguments: [1, Int.max]) func aReadThatFailsInAMergeLeavesAFault(count: Int) throws {
        let start = try filled()
        var (faults, failing) = (0, 0)
        while true {
            let disk = SimulatedDisk(start.state)
            let container = try open(disk)
            func run() throws {
                let context = container.newContext()
                let all = try context.fetch(Node.all)
                for node in all { #expect(node.name != "") }
                all[3].score = 3
                try changeEveryThird(container)
                disk.setReadFault(
                    .init(first: disk.reads + failing + 1, count: count, kind: .fails(5))
                )
                context.advance()
                let listed = Set(context.readFailures.compactMap(\.object))
                for (index, node) in all.enumerated() {
                    let expected = "\(index % 3 == 0 ? 100 + index : index)"
                    if node.isFault {
                        faults += 1
                        #expect(listed.contains(node.objectID), "read \(failing), node \(index)")
                    } else {
                        let name = Self.head(node.name)
                        #expect(name == expected, "read \(failing), node \(index)")
                    }
                }
                #expect(all[3].score == 3 && all[3].isUpdated)
                disk.setReadFault(nil)
                // The next read tries again.
                for (index, node) in all.enumerated() {
                    let name = Self.head(node.name)
                    let expected = "\(index % 3 == 0 ? 100 + index : index)"
                    #expect(name == expected, "read \(failing), node \(index)")
                }
                #expect(all[3].score == 3)
            }
            try run()
            try container.closeNow()
            if disk.readFailures == 0 { break }
            failing += 1
        }
        // A single failure costs nothing: each row is tried once more by itself.
        #expect(failing > 3 && (faults > 0) == (count > 1), "\(failing) reads, \(faults) faults")
    }

    /// The others' commits are further back than the feed remembers: each object is looked up.
    @Test(arguments: [1, Int.max]) func aLookUpThatFailsInAMerge(count: Int) throws {
        let start = try filled()
        var failing = 0
        while true {
            let disk = SimulatedDisk(start.state)
            let container = try PersistentContainer.openNow(
                on: disk,
                schema: GraphSchema.self,
                options: ContainerOptions(
                    unreferencedRowBytes: 0,
                    nodeCacheBytes: 0,
                    rememberedChanges: 0
                )
            )
            func run() throws {
                let context = container.newContext()
                let all = try context.fetch(Node.all)
                for node in all { #expect(node.name != "") }
                let deleted = all[7]
                func others() throws {
                    let other = container.newContext()
                    other.delete(try #require(try other.existingObject(with: deleted.id)))
                    try other.save()
                }
                try others()
                try changeEveryThird(container)
                disk.setReadFault(
                    .init(first: disk.reads + failing + 1, count: count, kind: .fails(5))
                )
                context.advance()
                disk.setReadFault(nil)
                for (index, node) in all.enumerated() where node !== deleted {
                    // Its place in the others' list.
                    let place = index > 7 ? index - 1 : index
                    let name = Self.head(node.name)
                    let expected = "\(place % 3 == 0 ? 100 + place : index)"
                    #expect(name == expected, "read \(failing), node \(index)")
                }
                #expect(deleted.isDeleted || deleted.isFault, "read \(failing)")
            }
            try run()
            try container.closeNow()
            if disk.readFailures == 0 { break }
            failing += 1
        }
        #expect(failing > 3)
    }

    // MARK: Saving

    /// What a save is about.
    private struct Edits {
        let all: [Node]
        let new: Node

        init(_ context: ManagedObjectContext, _ all: [Node]) {
            self.all = all
            all[0].name = "mine"
            all[1].children.append(all[2])
            context.delete(all[4])
            new = Node(in: context)
            new.name = "new"
            new.next = all[5]
            // So many that the save writes pages, and none of them stays in memory.
            for index in 200..<360 {
                Node(in: context).name = FailedSettleTests.text(index, bytes: 1_000)
            }
        }

        /// What a save stores that wins everywhere, in the order of IDs.
        static let names: [String] = {
            var names = (0..<40).map { "\($0 % 3 == 0 ? 100 + $0 : $0)" }
            names[0] = "mine"
            names.remove(at: 4)
            return names + ["new"] + (200..<360).map { "\($0)" }
        }()
    }

    /// Whatever read fails: the edits stand, or they are saved, and are not saved a second time.
    @Test(arguments: [1, Int.max]) func aReadThatFailsInASave(count: Int) throws {
        let start = try filled()
        var (failing, savedWithAnError) = (0, 0)
        while true {
            let disk = SimulatedDisk(start.state)
            let container = try open(disk)
            func run() throws -> [String] {
                let context = container.newContext()
                let all = try context.fetch(Node.all)
                for node in all { #expect(node.name != "") }
                try changeEveryThird(container)
                let edits = Edits(context, all)
                disk.setReadFault(
                    .init(first: disk.reads + failing + 1, count: count, kind: .fails(5))
                )
                var failure: StoreError?
                do { try context.save(mergePolicy: .objectWinsByProperty) } catch {
                    failure = try #require(error as? StoreError)
                }
                disk.setReadFault(nil)
                if let failure, failure.outcome != .saved {
                    #expect(failure.outcome == .nothingSaved && edits.new.isInserted)
                    #expect(all[0].isUpdated && all[1].children.count == 1)
                    // A deletion whose rules cannot be read is taken back, and said.
                    let listed = context.readFailures.map(\.object)
                    #expect(all[4].isDeleted || listed.contains(all[4].objectID))
                    context.rollback()
                    return try storedNames(container)
                }
                if let failure {
                    savedWithAnError += 1
                    advisedAfterACommit(failure)
                }
                #expect(!context.hasChanges && !edits.new.isInserted && all[4].isDeleted)
                let number = context.commit
                context.acknowledgeReadFailures()
                #expect(try context.save().commit == nil && context.commit == number)
                #expect(edits.new.name == "new" && edits.new.next === all[5])
                #expect(try context.fetch(Node.all).names.map(Self.head) == Edits.names)
                return Edits.names
            }
            let expected = try run().map(Self.head)
            #expect(try storedNames(container).map(Self.head) == expected, "read \(failing)")
            try container.closeNow()
            if disk.readFailures == 0 { break }
            // Each one up to the first of those behind the commit, and some of them.
            failing += failing < 50 ? 1 : 20
        }
        #expect(failing > 50, "\(failing) reads")
        #expect(count == 1 || savedWithAnError > 0, "\(failing) reads")
    }

    private func advisedAfterACommit(_ error: StoreError) {
        let suggestion = error.suggestion ?? "none"
        #expect(suggestion.contains("The save is on disk: do not save it again"), "\(suggestion)")
    }

    /// The container was closed when the commit was on its way: the newest commit could not be
    /// had, and all edits stood as unsaved, the new object among them.
    @Test func aContainerThatIsClosedWhileASaveWrites() throws {
        let disk = try filled()
        let container = try open(disk)
        // 0: not begun; 1: closing; 2: closed.
        let closing = Shared(0)
        func run() throws {
            let context = container.newContext()
            let all = try context.fetch(Node.all)
            for node in all { #expect(node.name != "") }
            try changeEveryThird(container)
            let edits = Edits(context, all)
            let hooks = Shared(0)
            edits.new.onDidSave = { hooks.withLock { $0 += 1 } }
            let error = #expect(throws: StoreError.self) {
                try context.save(
                    mergePolicy: .custom { _ in
                        if closing.withLock({ $0 }) == 0 {
                            closing.withLock { $0 = 1 }
                            Thread.detachNewThread {
                                try? container.closeNow(discardingEdits: true)
                                closing.withLock { $0 = 2 }
                            }
                            while !container.isClosed { sched_yield() }
                        }
                        return .objectWinsByProperty
                    }
                )
            }
            #expect(error?.code == .closed && error?.outcome == .saved)
            if let error { advisedAfterACommit(error) }
            #expect(!context.hasChanges && context.insertedObjects.isEmpty)
            #expect(!edits.new.isInserted && !all[0].isUpdated && all[4].isDeleted)
            #expect(hooks.withLock { $0 } == 1)
            // No false conflict, and no error of a write.
            #expect(code { try context.save() } == .closed)
            // A deleted object keeps its last values; others cannot be read any more.
            #expect(Self.head(all[4].name) == "4")
            #expect(code { try context.load(all[0]) } == .closed)
        }
        try run()
        while closing.withLock({ $0 }) == 1 { sched_yield() }
        let again = try open(disk)
        #expect(try storedNames(again).map(Self.head) == Edits.names)
        try expectSound(again.newContext())
        try again.closeNow()
    }
}
