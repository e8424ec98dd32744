// What a large transaction wrote on its way is counted without being read again.

import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Live bytes of large transactions", .verified) struct LargeTransactionSpaceTests {
    private struct Refusal: Error {}

    private static func open(_ directory: any StoreDirectory) throws -> Engine {
        try Engine.openTest(directory) {
            $0.packsLeaves = true
            $0.packsAnyLeaf = true
            $0.compactsAutomatically = false
            $0.maintenance = .inline
            // Leaves leave memory soon, both those that were read and those that were changed.
            $0.nodeCacheBytes = 768 << 10
            $0.scarceNodeCacheBytes = 128 << 10
            $0.appendedBytesMax = 256 << 10
            $0.changedBytesMax = 512 << 10
            $0.deltaBytesMax = 1 << 10
        }
    }

    private static func fill(_ engine: Engine, _ rows: Int) throws {
        _ = try engine.write { transaction in
            for object in 1...rows {
                let text = "a text of row \(object), which is \(object * 7_919 % 1_009)"
                let id = ObjectID(UInt64(object))
                try transaction.insert(TestDelegate.entity, id, row: row(Int64(object), text))
            }
        }
    }

    private static func change(
        _ transaction: WriteTransaction,
        _ objects: [UInt64],
        _ step: Int,
        _ random: inout SeededRandom
    ) throws {
        // Where few rows change, most of a leaf stays packed.
        let kinds = step % 2 == 0 ? 80 : 8
        for object in objects {
            switch Int.random(in: 0..<kinds, using: &random) {
            case 0: try transaction.delete(TestDelegate.entity, ObjectID(object))
            case 1...6:
                try transaction.update(
                    TestDelegate.entity,
                    ObjectID(object),
                    patch: patch(Int64(step), "step \(step)")
                )
            default: break
            }
        }
    }

    @Test("They are exact, in any order, and behind transactions that fail", arguments: 1...4)
    func areExact(seed: UInt64) throws {
        let directory = MemoryDirectory()
        var engine = try Self.open(directory)
        try Self.fill(engine, 6_000)
        _ = try engine.compact()
        let compacted = engine.snapshot().state
        // Symbol tables: alive as long as the file.
        let tables = compacted.liveBytes - (try SpaceTests.counted(compacted))
        var random = SeededRandom(seed: seed)
        var edited = 0
        for step in 0..<12 {
            var objects = try engine.contents().keys.sorted()
            if step % 3 == 1 { objects.shuffle(using: &random) }
            if step % 4 == 2 { objects.removeLast(objects.count / 2) }
            if step % 4 == 3 {
                #expect(throws: Refusal.self) {
                    try engine.write { transaction in
                        try Self.change(transaction, objects, step, &random)
                        throw Refusal()
                    }
                }
            }
            // Small commits before it: what they replaced is not the transaction's to know.
            for object in objects.prefix(step % 5) {
                _ = try engine.write { transaction in
                    try transaction.update(
                        TestDelegate.entity,
                        ObjectID(object),
                        patch: patch(-1, "small")
                    )
                }
            }
            _ = try engine.write { try Self.change($0, objects, step, &random) }
            if step % 5 == 4 {
                try engine.close()
                engine = try Self.open(directory)
            }
            try engine.checkpoint()
            let state = engine.snapshot().state
            let live = try SpaceTests.counted(state) + tables
            #expect(live == state.liveBytes, "seed \(seed), step \(step)")
            edited = max(edited, try PackedStoreTests.layouts(directory).edited)
        }
        #expect(engine.statistics.spills > 0 && edited > 5)
    }

    /// Reads of the disk during an update of all rows, which are on so many leaves.
    private static func reads(rows: Int) throws -> (reads: Int, leaves: Int) {
        let disk = SimulatedDisk()
        let directory = disk.root
        var engine = try Self.open(directory)
        try fill(engine, rows)
        _ = try engine.compact()
        try engine.close()
        engine = try Self.open(directory)
        let layouts = try PackedStoreTests.layouts(directory)
        let before = disk.reads
        _ = try engine.write { transaction in
            for object in 1...rows {
                try transaction.update(
                    TestDelegate.entity,
                    ObjectID(UInt64(object)),
                    patch: patch(Int64(object), nil)
                )
            }
        }
        #expect(engine.statistics.spills > 0)
        let reads = disk.reads - before
        try engine.close()
        return (reads, layouts.packed + layouts.plain)
    }

    @Test("A leaf is read once, however often it is counted")
    func readsEachLeafOnce() throws {
        let once = try Self.reads(rows: 20_000)
        let twice = try Self.reads(rows: 40_000)
        #expect(once.leaves > 50 && twice.leaves > 3 * once.leaves / 2)
        // Nothing of them was in memory.
        #expect(once.reads >= once.leaves && twice.reads >= twice.leaves)
        #expect(2 * once.reads < 3 * once.leaves)
        #expect(2 * twice.reads < 3 * twice.leaves)
    }
}
