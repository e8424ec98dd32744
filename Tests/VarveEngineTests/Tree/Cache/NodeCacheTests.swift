// Nodes out of the cache under readers, and the epochs that keep them.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite(.verified) struct NodeCacheTests {
    private let entity = TestDelegate.entity

    /// What row `object` holds after `round` rounds of updates, each of which changes the objects
    /// with the same remainder: a pure function, so that every reader can check every row.
    private static func value(_ object: UInt64, _ commit: UInt64, _ from: UInt64) -> Int64 {
        // Commit c > from changes the objects with object % 7 == c % 7.
        var last = from
        var commit = commit
        while commit > from && commit % 7 != object % 7 { commit -= 1 }
        if commit > from { last = commit }
        return Int64(object * 100_000 + last)
    }

    /// Readers of every kind, a writer, and a cache that holds a few nodes: whatever a reader is
    /// lent is the row of its commit.
    @Test(arguments: [UInt64(1), 2, 3])
    func readersSeeTheirCommitWhileNodesAreEvicted(seed: UInt64) throws {
        let engine = try Engine.openTest(MemoryDirectory()) { options in
            options.nodeWeightMax = 512
            options.nodeCacheBytes = 24 << 10
            options.checkpointTailMin = 4 << 10
            options.checkpointTailMax = 4 << 10
        }
        let count: UInt64 = 600
        let first = engine.allocateObjectIDs(Int(count)).rawValue
        let (_, made) = try engine.write { transaction in
            for object in first..<(first + count) {
                try transaction.insert(
                    entity,
                    ObjectID(object),
                    row: row(Int64(object * 100_000) + 2, "row \(object)")
                )
            }
        }
        #expect(made == CommitNumber(2))
        let isDone = Atomic(false)
        let wrong = Atomic(0)
        let read = Atomic(0)
        let failures = Mutex<[any Error]>([])
        // Threads of their own: a pool may run the writer to its end before any reader.
        onThreads(7) { worker in
            do {
                if worker == 0 {
                    defer { isDone.store(true, ordering: .releasing) }
                    while read.load(ordering: .relaxed) == 0, failures.withLock(\.isEmpty) {
                        _ = Parker().park(milliseconds: 1)
                    }
                    for _ in 0..<120 { try changeOneSeventh(engine, first, count) }
                    return
                }
                var random = SeededRandom(seed: seed &* 1_000 &+ UInt64(worker))
                while !isDone.load(ordering: .acquiring) {
                    try readSomething(engine, first, count, &random) { object, commit, row in
                        read.add(1, ordering: .relaxed)
                        let wanted = Self.value(object, commit, 2)
                        let found = try? RowLayout(row).slot(ColumnID(0), in: row).int(in: row)
                        if found != wanted { wrong.add(1, ordering: .relaxed) }
                    }
                }
            } catch {
                failures.withLock { $0.append(error) }
            }
        }
        #expect(failures.withLock { "\($0)" } == "[]", "seed \(seed)")
        #expect(wrong.load(ordering: .relaxed) == 0, "seed \(seed)")
        #expect(read.load(ordering: .relaxed) > 0)
        let statistics = engine.statistics
        #expect(statistics.nodeEvictions > 0 && statistics.nodeMisses > 0)
        #expect(statistics.nodeHits > 0)
        #expect(statistics.nodeCacheBytes <= 24 << 10)
        // Nobody reads any more: the next nodes that come in let the waiting ones go.
        #expect(try engine.contents().count == Int(count))
        #expect(engine.statistics.nodeLimboBytes < 1 << 20)
    }

    /// Each page on the way is looked up once, whether or not the file may be read.
    @Test func aRowInMemoryVisitsEachPageOnce() throws {
        let directory = MemoryDirectory()
        let made = try Engine.openTest(directory) { $0.nodeWeightMax = 512 }
        let first = made.allocateObjectIDs(600).rawValue
        _ = try made.write { transaction in
            for object in first..<(first + 600) {
                try transaction.insert(entity, ObjectID(object), row: row(1, "row \(object)"))
            }
        }
        try made.close()
        let engine = try Engine.openTest(directory) { $0.nodeWeightMax = 512 }
        let snapshot = engine.snapshot()
        let object = ObjectID(first + 300)
        func visits(_ body: () throws -> Void) throws -> UInt64 {
            let before = engine.statistics
            try body()
            let after = engine.statistics
            #expect(after.nodeMisses == before.nodeMisses)
            return after.nodeHits - before.nodeHits
        }
        var found: [Bool?] = [try snapshot.withRow(TestDelegate.rows, object) { _, _ in }]
        let reading = try visits {
            found.append(try snapshot.withRow(TestDelegate.rows, object) { _, _ in })
        }
        let inMemory = try visits {
            found.append(try snapshot.withRowInMemory(TestDelegate.rows, object) { _, _ in })
        }
        #expect(found == [true, true, true])
        #expect(reading > 1 && inMemory == reading)
        try engine.close()
    }

    private func changeOneSeventh(_ engine: Engine, _ first: UInt64, _ count: UInt64) throws {
        _ = try engine.write { transaction in
            let number = transaction.number.rawValue
            for object in first..<(first + count) where object % 7 == number % 7 {
                try transaction.update(
                    entity,
                    ObjectID(object),
                    patch: patch(Int64(object * 100_000 + number))
                )
            }
        }
    }

    /// One read of a kind that chance picks; `check` gets what was lent.
    private func readSomething(
        _ engine: Engine,
        _ first: UInt64,
        _ count: UInt64,
        _ random: inout SeededRandom,
        _ check: (_ object: UInt64, _ commit: UInt64, _ row: Span<UInt8>) -> Void
    ) throws {
        let snapshot = engine.snapshot()
        let commit = snapshot.number.rawValue
        let tree = TestDelegate.rows
        let some = (0..<20).map { _ in first + UInt64.random(in: 0..<count, using: &random) }
        switch Int.random(in: 0..<6, using: &random) {
        case 0:
            for object in some {
                let isThere = try snapshot.withRow(tree, ObjectID(object)) { _, row in
                    check(object, commit, row)
                }
                #expect(isThere)
            }
        case 1:
            let ids = some.sorted().map { ObjectID($0) }
            var seen = 0
            try snapshot.withRows(tree, ids) { position, _, row in
                seen += 1
                check(ids[position].rawValue, commit, row)
                return true
            }
            #expect(seen == ids.count)
        case 2:
            var cursor = snapshot.cursor(tree)
            guard try cursor.seek(atOrAfter: EngineKeys.object(ObjectID(some[0]))) else { return }
            var left = 80
            try cursor.visitRows { object, _, row in
                check(object.rawValue, commit, row)
                left -= 1
                return left > 0
            }
        case 3:
            // A read inside a read, and one inside that.
            _ = try snapshot.withRow(tree, ObjectID(some[0])) { _, row in
                for object in some {
                    _ = try? snapshot.withRow(tree, ObjectID(object)) { _, inner in
                        _ = try? snapshot.row(tree, ObjectID(some[1]))
                        check(object, commit, inner)
                    }
                }
                check(some[0], commit, row)
            }
        case 4:
            for object in some {
                let bytes = try snapshot.row(tree, ObjectID(object))?.bytes ?? []
                check(object, commit, bytes.span)
            }
        default:
            // Entries of both indexes lead to rows that have them.
            var cursor = snapshot.cursor(TestDelegate.byInt)
            guard try cursor.seek(position: UInt64.random(in: 0..<count, using: &random))
            else { return }
            for _ in 0..<30 {
                let object = try cursor.trailingObjectID()
                _ = try snapshot.withRow(tree, object) { _, row in
                    check(object.rawValue, commit, row)
                }
                if try !cursor.next() { break }
            }
        }
    }

    /// More threads than lines, all inside operations at once: whoever has no line is counted too.
    @Test func threadsWithoutALineCountAsReaders() {
        let epochs = ReaderEpochs()
        let outer = epochs.enter()
        let inner = epochs.enter()
        let tag = epochs.close()
        #expect(epochs.oldest() <= tag)
        epochs.leave(inner)
        #expect(epochs.oldest() <= tag)
        epochs.leave(outer)
        #expect(epochs.oldest() == .max)
        let others = (0..<3).map { _ in epochs.enterWithoutLine() }
        let next = epochs.close()
        #expect(epochs.oldest() <= next)
        epochs.leave(others[1])
        let late = epochs.enterWithoutLine()
        #expect(epochs.oldest() <= next)
        epochs.leave(others[0])
        epochs.leave(others[2])
        #expect(epochs.oldest() == next + 1)
        epochs.leave(late)
        #expect(epochs.oldest() == .max)
    }

    /// The cache knows pages by their places. A forged file may name one page in two ways, one of
    /// them wrong: it was read, and changed, as long as the other way had brought it in, and the
    /// store with that commit did not open again.
    @Test(arguments: [true, false])
    func aPageInMemoryIsReachedAsTheFileSaysOrIsDamage(isLeaf: Bool) throws {
        let engine = try Engine.openTest(MemoryDirectory()) { $0.nodeWeightMax = 512 }
        _ = try engine.write { transaction in
            for object in UInt64(1)...40 {
                try transaction.insert(entity, ObjectID(object), row: row(Int64(object), "text"))
            }
        }
        try engine.checkpoint()
        let state = engine.snapshot().state
        let nodes = state.generation.nodes
        let root = try #require(state.trees[TestDelegate.rows])
        #expect(root.level == 1)
        typealias Reached = (address: PageAddress, tree: TreeID, level: Int, rows: UInt64)
        func load(_ page: Reached) throws {
            _ = try nodes.load(page.address, tree: page.tree, level: page.level, rows: page.rows)
        }
        var right: Reached = (try #require(root.address), TestDelegate.rows, 1, root.rows)
        if isLeaf {
            let child = try nodes.load(right.address, tree: right.tree, level: 1, rows: right.rows)
                .children[2]
            right = (try #require(child.address), right.tree, 0, child.rows)
        }
        var wrong = [Reached](repeating: right, count: 5)
        wrong[0].address.payloadHash ^= 1 << 63
        wrong[1].address.storedLength += 8
        wrong[2].tree = TreeID(right.tree.rawValue + 1)
        wrong[3].level += 1
        wrong[4].rows += 1
        for (index, page) in wrong.enumerated() {
            for isInMemory in [false, true] {
                nodes.evictAll()
                if isInMemory { try load(right) }
                let error = #expect(throws: EngineError.self, "\(index), \(isInMemory)") {
                    try load(page)
                }
                #expect(error?.code == .damaged)
            }
        }
        try load(right)
    }

    /// A reader that stays inside keeps what it may see, and no more is needed to free the rest.
    @Test func whatAReaderMaySeeStays() throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory) { options in
            options.nodeWeightMax = 512
            options.nodeCacheBytes = 8 << 10
        }
        let first = engine.allocateObjectIDs(2_000).rawValue
        _ = try engine.write { transaction in
            for object in first..<(first + 2_000) {
                try transaction.insert(entity, ObjectID(object), row: row(Int64(object), "text"))
            }
        }
        try engine.checkpoint()
        let snapshot = engine.snapshot()
        var inside = 0
        _ = try snapshot.withRow(TestDelegate.rows, ObjectID(first)) { _, held in
            let copy = (0..<held.count).map { held[$0] }
            // Everything else passes through the cache meanwhile.
            for object in first..<(first + 2_000) {
                _ = try? snapshot.withRow(TestDelegate.rows, ObjectID(object)) { _, _ in }
            }
            inside = Int(engine.statistics.nodeLimboBytes)
            #expect((0..<held.count).map { held[$0] } == copy)
        }
        #expect(inside > 32 << 10)
        for object in first..<(first + 2_000) {
            _ = try snapshot.withRow(TestDelegate.rows, ObjectID(object)) { _, _ in }
        }
        #expect(engine.statistics.nodeLimboBytes < inside)
    }
}
