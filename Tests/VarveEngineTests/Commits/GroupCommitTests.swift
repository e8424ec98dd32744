// Savers that share a sync: order, outcomes, power cuts, failures.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Group commit", .verified) struct GroupCommitTests {
    static let entity = TestDelegate.entity

    private static func insert(_ engine: Engine, _ object: UInt64) throws -> CommitNumber {
        let (_, commit) = try engine.write {
            try $0.insert(entity, ObjectID(object), row: row(Int64(object), "row \(object)"))
        }
        return try #require(commit)
    }

    /// Every row by the commit that wrote it; the indexes are checked on the way.
    private static func rows(_ engine: Engine) throws -> [UInt64: UInt64] {
        _ = try engine.contents()
        let snapshot = engine.snapshot()
        var result: [UInt64: UInt64] = [:]
        var cursor = snapshot.cursor(TestDelegate.rows)
        var hasRow = try cursor.first()
        while hasRow {
            result[try cursor.row().version.rawValue] = try cursor.trailingObjectID().rawValue
            hasRow = try cursor.next()
        }
        return result
    }

    @Test("Threads that change a guarded value lose no change")
    func guardedValues() {
        let guarded = Guarded([Int](repeating: 0, count: 4))
        let threads = (0..<8).map { thread in
            TestThread {
                for step in 0..<5_000 {
                    // Two places, so that a half-done change would show.
                    guarded.withLock { values in
                        values[thread % 4] += 1
                        if step % 100 == 0 { _ = Parker().park(milliseconds: 0) }
                        values[(thread + 1) % 4] -= 1
                    }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(guarded.withLock { $0 } == [0, 0, 0, 0])
        struct Refusal: Error {}
        #expect(throws: Refusal.self) {
            try guarded.withLock { _ throws(Refusal) in throw Refusal() }
        }
        #expect(guarded.withLock { $0.count } == 4, "free again behind an error")
    }

    /// Waits until that many commits wait behind a held leader.
    private static func waitForQueue(_ engine: Engine, _ count: Int) {
        while engine.queue.count < count { _ = Parker().park(milliseconds: 1) }
    }

    @Test("Savers that come during a sync share the next one", arguments: [1, 7, 40])
    func saversShareASync(_ savers: Int) throws {
        let gate = Gate(.commitSync)
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root) {
            $0.environment = GatedEnvironment(onYield: { gate.yield($0) })
        }
        let before = engine.statistics
        gate.arm()
        let first = TestThread { _ = try? Self.insert(engine, 1000) }
        gate.waitUntilReached()
        let commits = Mutex<[UInt64: UInt64]>([:])
        let others = (0..<savers).map { index in
            TestThread {
                let number = try? Self.insert(engine, UInt64(index + 1))
                commits.withLock { $0[number?.rawValue ?? 0] = UInt64(index + 1) }
            }
        }
        Self.waitForQueue(engine, savers)
        #expect(engine.snapshot().number.rawValue == before.newestCommit)
        gate.open()
        first.join()
        for other in others { other.join() }
        let after = engine.statistics
        #expect(after.batches - before.batches == 2)
        #expect(after.largestBatch == UInt64(max(savers, 1)))
        #expect(after.deltaCommits - before.deltaCommits == UInt64(savers + 1))
        var expected = commits.withLock { $0 }
        expected[before.newestCommit + 1] = 1000
        #expect(try Self.rows(engine) == expected)
        // A crash now loses nothing.
        var random = SeededRandom(seed: 1)
        let state = disk.state
        let reopened = try Engine.openTest(SimulatedDisk.powerCut(state, &random).root)
        #expect(try Self.rows(reopened) == expected)
        #expect(disk.violations == [])
    }

    @Test(
        "A power cut in a batch keeps what was acknowledged and a prefix of the rest",
        arguments: [UInt64(1), 2, 3, 4]
    )
    func aPowerCutKeepsAPrefix(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let gate = Gate(.commitSync)
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root) {
            $0.environment = GatedEnvironment(onYield: { gate.yield($0) })
            $0.tailRoomMin = 4096
            $0.tailReserve = 0
            $0.checkpointTailMin = 3 << 10
            $0.checkpointTailMax = 3 << 10
            $0.nodeWeightMax = 512
        }
        disk.record()
        let schemaCommit = engine.snapshot().number.rawValue
        let acknowledged = Mutex<UInt64>(schemaCommit)
        var object: UInt64 = 0
        for _ in 0..<6 {
            gate.arm()
            object += 1
            let (leader, savers) = (object, Int.random(in: 0..<5, using: &random))
            let first = TestThread { _ = try? Self.insert(engine, leader) }
            gate.waitUntilReached()
            let others = (0..<savers).map { index in
                let object = leader + UInt64(index) + 1
                return TestThread {
                    let number = (try? Self.insert(engine, object))?.rawValue ?? 0
                    acknowledged.withLock { $0 = max($0, number) }
                    disk.raiseNote(to: Int(number))
                }
            }
            object += UInt64(savers)
            Self.waitForQueue(engine, savers)
            gate.open()
            first.join()
            for other in others { other.join() }
            disk.note(Int(engine.snapshot().number.rawValue))
        }
        let all = try Self.rows(engine)
        var cases = 0
        for (state, note) in disk.takeRecording() {
            let cut = SimulatedDisk.powerCut(state, &random)
            let reopened = try Engine.openTest(cut.root)
            let number = reopened.snapshot().number.rawValue
            #expect(number >= UInt64(note), "seed \(seed): an acknowledged commit is gone")
            #expect(
                try Self.rows(reopened) == all.filter { $0.key <= number },
                "seed \(seed): not a prefix"
            )
            cases += 1
        }
        print("group power cuts \(cases), seed \(seed)")
        #expect(disk.violations == [])
    }

    @Test("When a batch's sync fails, nobody knows it, and who stands on it wrote nothing")
    func aFailedSyncFailsTheBatchAndItsSuccessors() throws {
        let gate = Gate(.commitSync)
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root) {
            $0.environment = GatedEnvironment(onYield: { gate.yield($0) })
        }
        _ = try Self.insert(engine, 1)
        let codes = Mutex<[UInt64: EngineError.Code]>([:])
        let save: @Sendable (UInt64) -> Void = { object in
            do { _ = try Self.insert(engine, object) } catch {
                codes.withLock { $0[object] = (error as? EngineError)?.code }
            }
        }
        gate.arm()
        let first = TestThread { save(2) }
        gate.waitUntilReached()
        let others = (3...6).map { object in TestThread { save(UInt64(object)) } }
        Self.waitForQueue(engine, 4)
        disk.setFault(SimulatedDisk.Fault(first: disk.calls + 1))
        gate.open()
        first.join()
        for other in others { other.join() }
        #expect(
            codes.withLock { $0 } == [
                2: .outcomeUnknown, 3: .poisoned, 4: .poisoned, 5: .poisoned, 6: .poisoned,
            ]
        )
        #expect(throws: EngineError.self) { _ = try Self.insert(engine, 7) }
        // Readers stay at what is known.
        #expect(try Self.rows(engine).values.sorted() == [1])
        let reopened = try Engine.openTest(disk.killed().root)
        let objects = try Self.rows(reopened).values.sorted()
        #expect(objects == [1] || objects == [1, 2])
        #expect(try Self.insert(reopened, 8).rawValue > 1)
    }

    @Test("Without space those savers are refused who find none, no others, and the store goes on")
    func noSpaceRefusesWhoFindsNone() throws {
        let gate = Gate(.commitSync)
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root) {
            $0.environment = GatedEnvironment(onYield: { gate.yield($0) })
            $0.tailRoomMin = 0
            $0.tailRoomMax = 1 << 20
            $0.tailReserve = 0
        }
        _ = try Self.insert(engine, 1)
        let codes = Mutex<[UInt64: EngineError.Code]>([:])
        let save: @Sendable (UInt64, Int) -> Void = { object, size in
            do {
                _ = try engine.write {
                    // Nothing that compresses.
                    var random = SeededRandom(seed: object)
                    let text = (0..<size).map { _ in String(random.next(), radix: 36) }.joined()
                    try $0.insert(Self.entity, ObjectID(object), row: row(1, text))
                }
            } catch {
                codes.withLock { $0[object] = (error as? EngineError)?.code }
            }
        }
        gate.arm()
        let first = TestThread { save(2, 1) }
        gate.waitUntilReached()
        let others = (3...8).map { object in TestThread { save(UInt64(object), 90) } }
        Self.waitForQueue(engine, 6)
        // No more than is ready.
        let size = try engine.writer.withLock { try $0.generation.file.size() }
        disk.setFault(
            SimulatedDisk.Fault(
                first: disk.calls + 1,
                count: .max,
                code: SimulatedDisk.noSpace,
                writesPast: Int(size)
            )
        )
        let refused = (9...18).map { object in TestThread { save(UInt64(object), 4000) } }
        for other in refused { other.join() }
        #expect(codes.withLock { $0.keys.sorted() } == (9...18).map { UInt64($0) })
        #expect(codes.withLock { $0.values.allSatisfy { $0 == .noSpace } })
        gate.open()
        first.join()
        for other in others { other.join() }
        disk.setFault(nil)
        let number = try Self.insert(engine, 20)
        let expected = (1...8).map { Int64($0) } + [20]
        #expect(try Self.rows(engine).values.sorted().map { Int64($0) } == expected)
        #expect(engine.snapshot().number == number)
        let reopened = try Engine.openTest(disk.killed().root)
        #expect(try Self.rows(reopened).values.sorted().map { Int64($0) } == expected)
    }

    @Test("A relaxed commit is visible at once, and a full one makes it durable")
    func relaxedCommitsLoseASuffixAtMost() throws {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root)
        _ = try Self.insert(engine, 1)
        let syncs = engine.statistics.syncs
        for object in UInt64(2)...20 {
            _ = try engine.write(durability: .relaxed) {
                try $0.insert(Self.entity, ObjectID(object), row: row(1, "relaxed"))
            }
        }
        #expect(engine.statistics.syncs == syncs)
        #expect(engine.statistics.relaxedCommits == 19)
        #expect(try Self.rows(engine).count == 20)
        var random = SeededRandom(seed: 3)
        let all = try Self.rows(engine)
        for _ in 0..<40 {
            let state = disk.state
            let reopened = try Engine.openTest(SimulatedDisk.powerCut(state, &random).root)
            let number = reopened.snapshot().number.rawValue
            #expect(try Self.rows(reopened) == all.filter { $0.key <= number })
            #expect(number >= (all.keys.min() ?? 0))
        }
        _ = try Self.insert(engine, 21)
        let state = disk.state
        let reopened = try Engine.openTest(SimulatedDisk.powerCut(state, &random).root)
        #expect(try Self.rows(reopened).count == 21)
    }

    @Test("Values of a commit that waits can be read by the next saver")
    func valuesOfWaitingCommitsAreReadable() throws {
        let gate = Gate(.commitSync)
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root) {
            $0.environment = GatedEnvironment(onYield: { gate.yield($0) })
            $0.inlineValueBytesMax = 256
        }
        gate.arm()
        let first = TestThread { _ = try? Self.insert(engine, 1) }
        gate.waitUntilReached()
        let text = String(repeating: "long ", count: 400)
        let failures = Mutex<[String]>([])
        let second = TestThread {
            do {
                _ = try engine.write {
                    try $0.insert(Self.entity, ObjectID(2), row: row(2, text))
                }
            } catch { failures.withLock { $0.append("\(error)") } }
        }
        Self.waitForQueue(engine, 1)
        // Stands on the commit before, whose value it needs for the index.
        let third = TestThread {
            do {
                _ = try engine.write {
                    try $0.update(Self.entity, ObjectID(2), patch: patch(nil, "short"))
                }
            } catch { failures.withLock { $0.append("\(error)") } }
        }
        Self.waitForQueue(engine, 2)
        gate.open()
        for thread in [first, second, third] { thread.join() }
        #expect(failures.withLock { $0 } == [])
        let reopened = try Engine.openTest(disk.killed().root)
        #expect(try reopened.contents() == engine.contents())
    }
}
