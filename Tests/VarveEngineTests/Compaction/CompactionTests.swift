// The store after a compaction against the store before: every commit that is kept, row by row.

import Foundation
import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO

@testable import VarveEngine

@Suite(.verified) struct CompactionTests {
    static func open(
        _ directory: any StoreDirectory,
        _ retention: Retention,
        _ clock: SetClock = SetClock(),
        maintenance: Maintenance = .automatic,
        packs: Bool = false
    ) throws -> Engine {
        try Engine.openTest(directory) {
            RandomHistory.adjust(&$0)
            $0.compactedLeafBytes = 1 << 10
            $0.packsLeaves = packs
            $0.retention = retention
            $0.environment = clock
            $0.maintenance = maintenance
            $0.idleMilliseconds = 20
        }
    }

    /// Every commit from `oldest` on shows what the model says, none before does.
    static func check(
        _ engine: Engine,
        _ history: RandomHistory,
        from oldest: CommitNumber
    ) throws {
        #expect(try engine.snapshot().everything() == history.newest)
        #expect(try engine.retainedCommits().lowerBound == oldest)
        for (number, state) in history.states {
            guard number >= oldest else {
                let error = #expect(throws: EngineError.self) { try engine.snapshot(at: number) }
                #expect(error?.code == .notRetained)
                continue
            }
            let past = try engine.snapshot(at: number)
            #expect(try past.everything() == state, "commit \(number.rawValue)")
            if number > oldest {
                var found: [RowChangeKind: Set<UInt64>] = [:]
                for list in try engine.changes(of: number).objects {
                    found[list.kind] = Set(list.objects.map(\.rawValue))
                }
                #expect(found == history.changes[number], "commit \(number.rawValue)")
            }
        }
    }

    @Test(arguments: [
        (UInt64(71), Retention.newest), (72, .all), (73, .commits(17)), (74, .bytes(40_000)),
        (75, .days(1)), (76, .commits(1)),
    ])
    func aCompactedStoreShowsTheSame(seed: UInt64, retention: Retention) throws {
        let directory = MemoryDirectory()
        let clock = SetClock()
        var engine = try Self.open(directory, retention, clock)
        var history = RandomHistory(seed: seed)
        for step in 0..<40 {
            clock.microseconds.withLock { $0 += 3_600_000_000 }
            try history.commit(engine)
            if step % 11 == 7 {
                try engine.close()
                engine = try Self.open(directory, retention, clock)
            }
            if step % 13 == 8 { try engine.checkpoint() }
        }
        let before = engine.snapshot()
        let size = try directory.openFile("test.varve", mode: .read).size()
        let list = try engine.commits(1000)
        let wanted = try engine.oldestRetained(before.state)
        let id = engine.storeID
        var calls = 0
        let report = try engine.compact(progress: { _ in calls += 1 })
        #expect(calls > 1)
        #expect(report.newest == before.number && report.oldest == wanted)
        #expect(report.generation == 2 && engine.storeID == id)
        #expect(engine.statistics.compactions == 1)
        if retention == .newest {
            #expect(try directory.openFile("test.varve", mode: .read).size() < size)
        }
        #expect(try !directory.list().contains { $0.contains("-new-") })
        // The old file is read on.
        #expect(try before.everything() == history.newest)
        try Self.check(engine, history, from: wanted)
        let kept = try engine.commits(1000)
        #expect(kept.map(\.number) == list.map(\.number).filter { $0 >= wanted && $0.rawValue > 0 })
        for (after, earlier) in zip(kept, list) {
            #expect(after.number == earlier.number && after.epoch == earlier.epoch)
            #expect(after.author == earlier.author && after.counts == earlier.counts)
            #expect(after.timeMicroseconds == earlier.timeMicroseconds)
        }
        // Without a clean close and with one, and onward.
        let copy = try Self.open(directory.copyWithBlobs(), retention, clock)
        #expect(copy.statistics.settledCommits == 0)
        try Self.check(copy, history, from: wanted)
        for _ in 0..<8 { try history.commit(engine) }
        try engine.close()
        engine = try Self.open(directory, retention, clock)
        for _ in 0..<3 { try history.commit(engine) }
        try Self.check(engine, history, from: wanted)
        let again = try engine.compact()
        #expect(again.generation == 3)
        try Self.check(engine, history, from: again.oldest)
        print("compaction \(retention) seed \(seed): \(report.bytesBefore) to \(report.bytesAfter)")
    }

    /// A writer commits, readers read and take snapshots, and the store is compacted over and over.
    @Test(arguments: [
        (Retention.newest, Maintenance.inline), (.all, .inline), (.commits(20), .background),
        (.newest, .background),
    ])
    func readersAndAWriterGoOn(retention: Retention, maintenance: Maintenance) throws {
        let directory = MemoryDirectory()
        let engine = try Self.open(directory, retention, maintenance: maintenance)
        let model = Mutex(RandomHistory(seed: 81))
        for _ in 0..<20 { _ = try model.withLock { try $0.commit(engine) } }
        let isOver = Atomic(false)
        let rounds = Atomic(0)
        let failures = Mutex<[String]>([])
        let threads = DispatchGroup()
        func run(_ name: String, _ body: @escaping @Sendable () throws -> Void) {
            DispatchQueue.global().async(group: threads) {
                do { try body() } catch { failures.withLock { $0.append("\(name): \(error)") } }
            }
        }
        run("writer") {
            defer { isOver.store(true, ordering: .relaxed) }
            var commits = 0
            // Beside two compactions at least, whoever is faster.
            while commits < 40 || rounds.load(ordering: .relaxed) < 2 {
                _ = try model.withLock { try $0.commit(engine) }
                commits += 1
            }
        }
        for _ in 0..<2 {
            run("reader") {
                while !isOver.load(ordering: .relaxed) {
                    let snapshot = engine.snapshot()
                    let first = try snapshot.everything()
                    usleep(2_000)
                    if try snapshot.everything() != first { throw EngineError(.damaged, "other") }
                }
            }
        }
        do {
            while !isOver.load(ordering: .relaxed) {
                _ = try engine.compact()
                rounds.add(1, ordering: .relaxed)
                usleep(20_000)
            }
        } catch {
            failures.withLock { $0.append("compactor: \(error)") }
            // The writer ends all the same.
            rounds.store(2, ordering: .relaxed)
        }
        threads.wait()
        #expect(failures.withLock { $0 } == [])
        let history = model.withLock { $0 }
        let oldest = try engine.retainedCommits().lowerBound
        try Self.check(engine, history, from: oldest)
        if retention == .all { #expect(oldest == CommitNumber(0)) }
        try engine.close()
        try Self.check(try Self.open(directory, retention), history, from: oldest)
        print("\(retention): \(history.states.count) commits beside two compactions at least")
    }

    @Test func aCancelledCompactionLeavesTheStore() throws {
        let directory = MemoryDirectory()
        let engine = try Self.open(directory, .all)
        var history = RandomHistory(seed: 91)
        for _ in 0..<12 { try history.commit(engine) }
        let names = try directory.list()
        var asked = 0
        for limit in 0..<3 {
            asked = 0
            let error = #expect(throws: EngineError.self) {
                try engine.compact(isCancelled: {
                    asked += 1
                    return asked > limit
                })
            }
            #expect(error?.code == .cancelled)
            #expect(try directory.list() == names)
        }
        try Self.check(engine, history, from: CommitNumber(0))
        _ = try engine.compact()
        try Self.check(engine, history, from: CommitNumber(0))
    }

    /// Whoever is told of the progress may save: nobody waits for him. It goes up to the end.
    @Test(arguments: [Retention.newest, .all])
    func progressMayBeReportedToASaver(retention: Retention) throws {
        let engine = try Self.open(MemoryDirectory(), retention)
        var history = RandomHistory(seed: 92)
        for _ in 0..<12 { try history.commit(engine) }
        var seen: [CompactionProgress] = []
        var commits = 0
        let report = try engine.compact(progress: { status in
            seen.append(status)
            guard commits < 6 else { return }
            commits += 1
            do { try history.commit(engine) } catch { Issue.record("\(error)") }
        })
        #expect(commits > 0)
        #expect(seen.allSatisfy { $0.entriesDone <= $0.entries })
        let bytes = seen.map(\.bytesWritten)
        #expect(bytes == bytes.sorted() && bytes.last == report.bytesAfter)
        #expect(seen.last.map { $0.entriesDone == $0.entries } == true)
        // The last report comes when all is done, and the saver may answer it.
        try Self.check(engine, history, from: retention == .all ? CommitNumber(0) : report.oldest)
    }

    /// It may be cancelled whenever it asks, also beside a saver; it never asks while savers wait.
    @Test func itMayBeCancelledAtAnyTime() throws {
        let isLocked = Mutex(false)
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory) {
            RandomHistory.adjust(&$0)
            $0.retention = .commits(8)
            $0.environment = GatedEnvironment { point in
                if point == .compactionBegin { isLocked.withLock { $0 = false } }
                if point == .compactionCaughtUp { isLocked.withLock { $0 = true } }
            }
        }
        var history = RandomHistory(seed: 93)
        for _ in 0..<12 { try history.commit(engine) }
        let names = try directory.list()
        var limit = 0
        while true {
            var asked = 0
            do {
                _ = try engine.compact(isCancelled: {
                    #expect(!isLocked.withLock { $0 })
                    if asked % 7 == 3, asked < 40 { _ = try? history.commit(engine) }
                    asked += 1
                    return asked > limit
                })
                break
            } catch {
                #expect(error.code == .cancelled)
                #expect(try directory.list() == names)
            }
            limit += 1 + limit / 3
        }
        #expect(try engine.snapshot().everything() == history.newest)
        print("cancelled at \(limit) of the times it asked")
    }

    /// A bad page stops it by name; asked to, it saves the rest and says what is lost.
    @Test func aDamagedPageIsNamedOrLeftOut() throws {
        let directory = MemoryDirectory()
        var engine = try Self.open(directory, .newest)
        let entity = TestDelegate.entity
        _ = try engine.write { transaction in
            for index in 1...200 {
                try transaction.insert(
                    entity,
                    ObjectID(UInt64(index)),
                    row: row(Int64(index), "text \(index)")
                )
            }
        }
        try engine.checkpoint()
        let leaf = try #require(try Self.someLeaf(of: TestDelegate.rows, engine.snapshot().state))
        try engine.close()
        let file = try directory.openFile("test.varve", mode: .readWrite)
        try file.write([0xAA, 0xBB, 0xCC], at: FileOffset(leaf.offset.rawValue + 60))
        engine = try Self.open(directory, .newest)
        let error = #expect(throws: EngineError.self) { try engine.compact() }
        #expect(error?.code == .damaged && error?.place == leaf.offset)
        let report = try engine.compact(damage: .skipDamaged)
        let lost = try #require(report.damage.first)
        #expect(report.damage.count == 1 && lost.tree == TestDelegate.rows)
        #expect(lost.place == leaf.offset)
        let left = engine.snapshot().count(TestDelegate.rows)
        #expect(left + lost.entries == 200 && left > 0)
        for index in 1...200 {
            let key = EngineKeys.object(ObjectID(UInt64(index)))
            let isLost =
                ByteReader.compare(key, lost.low) >= 0
                && lost.high.map { ByteReader.compare(key, $0) < 0 } ?? true
            let row = try engine.snapshot().row(TestDelegate.rows, ObjectID(UInt64(index)))
            #expect((row == nil) == isLost)
        }
    }

    static func someLeaf(of tree: TreeID, _ state: StoreState) throws -> PageAddress? {
        var root = try #require(try state.tree(tree).rootNode())
        let tree = state.tree(tree)
        while root.level > 1 { root = try tree.child(of: root, at: root.count / 2) }
        return root.children[root.count / 2].address
    }

    /// A blob that a kept commit names keeps its file, whatever the newest one names.
    @Test(arguments: [Retention.newest, .commits(3)])
    func blobFilesStayAsLongAsACommitIsKept(retention: Retention) throws {
        let directory = MemoryDirectory()
        let engine = try Self.open(directory, retention)
        let bytes = [UInt8](repeating: 9, count: 2000)
        func insertBlob(_ object: UInt64) throws {
            let writer = try engine.makeBlobWriter(externalLimit: 100)
            try writer.append(bytes)
            let pending = try writer.finish()
            _ = try engine.write {
                try $0.insert(
                    TestDelegate.entity,
                    ObjectID(object),
                    row: row(1, "a", blob: pending.reference)
                )
            }
        }
        func files() throws -> Int {
            try directory.directory("test.varve-blobs", create: false).list().count
        }
        try insertBlob(1)
        let named = engine.snapshot().number
        _ = try engine.write { try $0.delete(TestDelegate.entity, ObjectID(1)) }
        try engine.checkpoint()
        #expect(try files() == (retention == .newest ? 0 : 1))
        _ = try engine.compact()
        if retention != .newest {
            #expect(try engine.snapshot(at: named).everything().blobs[1] == bytes)
        }
        for index in 0..<4 {
            _ = try engine.write {
                try $0.insert(TestDelegate.entity, ObjectID(UInt64(10 + index)), row: row(1, "b"))
            }
            _ = try engine.compact()
        }
        try engine.checkpoint()
        _ = try engine.write { try $0.delete(TestDelegate.entity, ObjectID(10)) }
        try engine.checkpoint()
        #expect(try files() == 0)
    }
}

extension MemoryDirectory {
    /// The store file and its blobs as they are now, in a directory of their own.
    func copyWithBlobs() throws -> MemoryDirectory {
        let copy = try copyForCrash()
        let name = "test.varve-blobs"
        guard try exists(name) else { return copy }
        let source = try directory(name, create: false)
        let target = try copy.directory(name, create: true)
        for name in try source.list() {
            let file = try source.openFile(name, mode: .read)
            let bytes = try file.read(at: FileOffset(0), count: Int(try file.size()))
            try target.openFile(name, mode: .createExclusive).write(bytes, at: FileOffset(0))
        }
        return copy
    }
}
