// Live and dead bytes against a walk over every page, and when a compaction is worthwhile.

import Foundation
import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite(.verified) struct SpaceTests {
    /// Frames of all pages, large values and small blobs of a state that is all in pages.
    static func counted(_ state: StoreState) throws -> UInt64 {
        var bytes: UInt64 = 0
        func visit(_ node: TreeNode, _ tree: Tree) throws {
            if node.isLeaf {
                bytes += node.basis?.address?.frameLength ?? 0
                for index in 0..<node.count where tree.id == .largeValues || tree.id == .blobs {
                    if tree.id == .blobs {
                        let entry = try BlobEntry(decoding: node.value(index))
                        guard case .frame(let place) = entry.place else { continue }
                        bytes += place.address.frameLength
                    } else {
                        var reader = ByteReader(node.value(index))
                        let place = try ValuePlace(from: &reader, below: FileOffset(.max))
                        bytes += place.address.frameLength
                    }
                }
                return
            }
            for index in node.children.indices {
                bytes += try #require(node.children[index].address).frameLength
                try visit(try tree.child(of: node, at: index), tree)
            }
        }
        for id in state.trees.keys {
            let tree = state.tree(id)
            bytes += try #require(tree.root.address).frameLength
            try visit(try #require(try tree.rootNode()), tree)
        }
        return bytes
    }

    @Test(arguments: [UInt64(121), 122])
    func liveBytesAreWhatAWalkCounts(seed: UInt64) throws {
        let directory = MemoryDirectory()
        var engine = try CompactionTests.open(directory, .commits(9))
        var history = RandomHistory(seed: seed)
        for step in 0..<60 {
            try history.commit(engine)
            if step % 7 == 3 { try engine.checkpoint() }
            if step % 19 == 11 {
                // A settle writes pages again.
                let copy = try directory.copyWithBlobs()
                let other = try CompactionTests.open(copy, .newest)
                try other.checkpoint()
                let state = other.snapshot().state
                #expect(try Self.counted(state) == state.liveBytes, "settle, step \(step)")
            }
            if step % 17 == 5 { _ = try engine.compact() }
            if step % 13 == 8 {
                try engine.close()
                engine = try CompactionTests.open(directory, .commits(9))
            }
            let state = engine.snapshot().state
            if !state.isDirty {
                #expect(try Self.counted(state) == state.liveBytes, "step \(step)")
            }
        }
        try engine.checkpoint()
        let state = engine.snapshot().state
        #expect(try Self.counted(state) == state.liveBytes)
        #expect(engine.statistics.liveBytes == state.liveBytes)
    }

    /// Leaves that change packed ones need those, too.
    @Test(arguments: [UInt64(125), 126, 127])
    func packedLeavesThatAreChangedAreAlive(seed: UInt64) throws {
        let directory = MemoryDirectory()
        var engine = try PackedStoreTests.open(directory)
        try PackedStoreTests.fill(engine)
        _ = try engine.compact()
        var random = SeededRandom(seed: seed)
        var edited = 0
        // Symbol tables and what keeps them apart: alive as long as the file.
        let compacted = engine.snapshot().state
        let tables = compacted.liveBytes - (try Self.counted(compacted))
        for step in 0..<40 {
            let live = try engine.contents().keys.sorted()
            _ = try engine.write { transaction in
                for object in Set((0..<10).compactMap { _ in live.randomElement(using: &random) }) {
                    if Int.random(in: 0..<3, using: &random) == 0 {
                        try transaction.delete(TestDelegate.entity, ObjectID(object))
                    } else {
                        try transaction.update(
                            TestDelegate.entity,
                            ObjectID(object),
                            patch: patch(Int64(step), "step \(step)")
                        )
                    }
                }
            }
            if step % 3 == 0 { try engine.checkpoint() }
            if step % 11 == 5 {
                // A settle writes pages again.
                let other = try PackedStoreTests.open(try directory.copyWithBlobs())
                try other.checkpoint()
                let state = other.snapshot().state
                let live = try Self.counted(state) + tables
                #expect(live == state.liveBytes, "settle, step \(step)")
            }
            if step % 7 == 6 { engine.trimMemory() }
            if step % 13 == 12 {
                try engine.close()
                engine = try PackedStoreTests.open(directory)
            }
            let state = engine.snapshot().state
            if state.isDirty { continue }
            #expect(try Self.counted(state) + tables == state.liveBytes, "step \(step)")
            edited = max(edited, try PackedStoreTests.layouts(directory).edited)
        }
        #expect(edited > 5)
    }

    @Test func aCompactedFileIsAllAlive() throws {
        let directory = MemoryDirectory()
        let engine = try CompactionTests.open(directory, .newest)
        var history = RandomHistory(seed: 131)
        for _ in 0..<30 { try history.commit(engine) }
        try engine.checkpoint()
        #expect(engine.statistics.deadBytes > 0)
        _ = try engine.compact()
        #expect(engine.statistics.deadBytes == 0)
        #expect(try Self.counted(engine.snapshot().state) == engine.statistics.liveBytes)
        #expect(try engine.reclaimableBytes() == 0)
    }

    /// Live, history, dead and void bytes are all there are; only a retention makes history, and
    /// only what went wrong, or a CLOSE, makes voids.
    @Test(arguments: [Retention.newest, .commits(12), .all])
    func everyByteIsForSomething(retention: Retention) throws {
        let directory = MemoryDirectory()
        var engine = try CompactionTests.open(directory, retention)
        var history = RandomHistory(seed: 161)
        var voids: [UInt64] = []
        func check() throws {
            let state = engine.snapshot().state
            let report = try engine.spaceReport()
            #expect(report.total == state.baseFrame.rawValue - FileHeader.logStart.rawValue)
            #expect(report.live == state.liveBytes)
            #expect((report.history > 0) == (retention != .newest))
            if engine.statistics.compactions == 0 {
                // Voids behind the oldest commit that is kept are not counted on.
                let bytes = try engine.reclaimableBytes()
                #expect(report.dead <= bytes && bytes <= report.reclaimable)
                if retention == .newest { #expect(bytes == report.reclaimable) }
            }
            voids.append(report.void)
        }
        for _ in 0..<30 { try history.commit(engine) }
        try engine.checkpoint()
        try check()
        // The CLOSE, and after a crash the way to a fresh page.
        try engine.close()
        engine = try CompactionTests.open(directory, retention)
        for _ in 0..<5 { try history.commit(engine) }
        try engine.checkpoint()
        try check()
        engine = try CompactionTests.open(directory.copyWithBlobs(), retention)
        for _ in 0..<5 { try history.commit(engine) }
        try engine.checkpoint()
        try check()
        #expect(voids == voids.sorted() && voids[0] == 0 && voids[1] > 0 && voids[2] > voids[1])
        _ = try engine.compact()
        let report = try engine.spaceReport()
        #expect(report.dead + report.void < 20_000)
        print("space \(report), \(retention), voids \(voids)")
    }

    /// It runs when there is enough to give back, and not again before there is more.
    @Test(arguments: [Retention.newest, .commits(4), .all])
    func itRunsOnlyWhenItIsWorthwhile(retention: Retention) throws {
        let engine = try Engine.openTest(MemoryDirectory()) {
            RandomHistory.adjust(&$0)
            $0.retention = retention
            $0.compactsAutomatically = false
            $0.compactionDeadBytesMin = 60_000
        }
        var history = RandomHistory(seed: 141)
        var runs = 0
        for step in 0..<150 {
            try history.commit(engine)
            guard let report = try engine.compactIfWorthwhile() else { continue }
            runs += 1
            #expect(report.bytesBefore - report.bytesAfter >= 50_000, "step \(step)")
            #expect(try engine.compactIfWorthwhile() == nil)
        }
        #expect(retention == .all ? runs == 0 : (1...12).contains(runs))
        #expect(try engine.snapshot().everything() == history.newest)
        print("worthwhile \(runs) times, \(retention)")
    }

    @Test func anIdleStoreIsCompactedByItself() throws {
        let engine = try Engine.openTest(MemoryDirectory()) {
            RandomHistory.adjust(&$0)
            $0.maintenance = .background
            $0.idleMilliseconds = 10
            $0.idleTailBytes = 0
            $0.compactionDeadBytesMin = 20_000
        }
        var history = RandomHistory(seed: 151)
        for _ in 0..<60 { try history.commit(engine) }
        for _ in 0..<12_000 where engine.statistics.compactions == 0 { usleep(10_000) }
        #expect(engine.statistics.compactions > 0)
        for _ in 0..<5 { try history.commit(engine) }
        #expect(try engine.snapshot().everything() == history.newest)
        try engine.close()
    }

    /// A checkpoint that would write all pages anew, into a file that is worth a compaction then,
    /// gives way to the compaction; one that would write few does not.
    @Test func aCompactionTakesTheCheckpointsPlace() throws {
        let engine = try Engine.openTest(MemoryDirectory()) {
            $0.checkpointTailMin = 64 << 20
            $0.checkpointTailMax = 64 << 20
            $0.compactionDeadBytesMin = 64 << 10
        }
        func update(_ objects: some Sequence<Int>, _ int: Int64) throws {
            _ = try engine.write { transaction in
                for object in objects {
                    let id = ObjectID(UInt64(object))
                    try transaction.update(TestDelegate.entity, id, patch: patch(int))
                }
            }
        }
        _ = try engine.write { transaction in
            for object in 1...10_000 {
                var random = SeededRandom(seed: UInt64(object))
                let text = String(random.next(), radix: 36) + String(random.next(), radix: 36)
                let id = ObjectID(UInt64(object))
                try transaction.insert(TestDelegate.entity, id, row: row(Int64(object), text))
            }
        }
        try engine.checkpoint()
        func wouldGiveBack() -> UInt64? {
            let (state, end) = engine.writer.withLock { ($0.pending, $0.log.end) }
            return engine.worthwhileBytes(behindCheckpointOf: state, at: end)
        }
        func changed() -> UInt64 { engine.writer.withLock { $0.pending.changedPageBytes } }
        #expect(changed() == 0)
        #expect(wouldGiveBack() == nil)
        try update([5_000], 1)
        #expect(changed() > 0)
        #expect(wouldGiveBack() == nil)
        // All leaves, in commits that are row changes, twice: half of the file would be dead.
        for round in 1...2 {
            for start in 1...10 { try update(stride(from: start, through: 10_000, by: 10), 7) }
            if round == 1 { try engine.checkpoint() }
        }
        let estimate = changed()
        let bytes = try #require(wouldGiveBack())
        #expect(bytes > 64 << 10)
        // The estimate is of the right size.
        let before = engine.writer.withLock { $0.log.end.rawValue }
        try engine.checkpoint()
        let written = engine.writer.withLock { $0.log.end.rawValue } - before
        #expect(estimate > written / 2 && estimate < written * 2, "\(estimate) for \(written)")
    }

    /// A large value that came since the last checkpoint is no garbage.
    @Test func whatCameSinceIsLive() throws {
        let engine = try Engine.openTest(MemoryDirectory()) {
            $0.checkpointTailMin = 64 << 20
            $0.checkpointTailMax = 64 << 20
            $0.compactionDeadBytesMin = 64 << 10
        }
        var random = SeededRandom(seed: 8)
        let text = (0..<40_000).map { _ in String(random.next(), radix: 36) }.joined()
        _ = try engine.write {
            try $0.insert(TestDelegate.entity, ObjectID(1), row: row(1, text))
        }
        let (state, end) = engine.writer.withLock { ($0.pending, $0.log.end) }
        #expect(end.rawValue > 300_000)
        #expect(engine.worthwhileBytes(behindCheckpointOf: state, at: end) == nil)
    }

    /// The maintenance thread does as the estimate says: no checkpoint, but a compaction.
    @Test func theThreadCompactsInstead() throws {
        /// Pages; then commits of row changes over all of them, until `goesOn` says no.
        func engine(
            _ maintenance: Maintenance,
            tailMax: UInt64,
            _ goesOn: (Engine, _ saves: Int) -> Bool
        ) throws -> Engine {
            let engine = try Engine.openTest(MemoryDirectory()) {
                $0.maintenance = maintenance
                $0.idleMilliseconds = 600_000
                $0.checkpointTailMin = tailMax
                $0.checkpointTailMax = tailMax
                $0.compactionDeadBytesMin = 64 << 10
            }
            var random = SeededRandom(seed: 9)
            func save(_ body: (WriteTransaction, ObjectID, String) throws -> Void) throws {
                _ = try engine.write { transaction in
                    for object in 1...8_000 {
                        let text = String(random.next(), radix: 36)
                        try body(transaction, ObjectID(UInt64(object)), text)
                    }
                }
            }
            try save { try $0.insert(TestDelegate.entity, $1, row: row(1, $2 + $2 + $2)) }
            #expect(engine.statistics.treeCommits == 2)
            var saves = 0
            while goesOn(engine, saves) {
                // Before the save that is one too many, nothing took its place.
                #expect(engine.statistics.treeCommits == 2)
                try save { try $0.update(TestDelegate.entity, $1, patch: patch(nil, $2)) }
                saves += 1
            }
            return engine
        }
        // How many saves that takes is counted where no thread shortens the tail meanwhile.
        var enough = 0
        _ = try engine(.inline, tailMax: 64 << 20) { engine, saves in
            enough = saves
            return engine.writer.withLock { $0.log.tailBytes <= 400 << 10 }
        }
        let other = try engine(.background, tailMax: 400 << 10) { $1 < enough }
        for _ in 0..<60_000 where other.statistics.compactions + other.statistics.checkpoints == 0 {
            _ = Parker().park(milliseconds: 1)
        }
        #expect(other.statistics.compactions == 1)
        #expect(other.statistics.checkpoints == 0)
        #expect(try other.contents().count == 8_000)
        try other.close()
    }
}
