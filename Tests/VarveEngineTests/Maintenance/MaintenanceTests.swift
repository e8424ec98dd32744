// The maintenance thread beside savers and readers: checkpoints, room, witnesses, power cuts.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Maintenance", .verified) struct MaintenanceTests {
    static let entity = TestDelegate.entity

    private static func adjust(_ options: inout EngineOptions) {
        options.maintenance = .background
        options.nodeWeightMax = 512
        options.tailRoomMin = 16 << 10
        options.checkpointTailMin = 8 << 10
        options.checkpointTailMax = 8 << 10
        options.idleMilliseconds = 20
        options.idleTailBytes = 1 << 10
    }

    /// Waits up to a minute: other tests may hold the machine.
    private static func wait(until isTrue: () throws -> Bool) throws {
        for _ in 0..<60_000 {
            if try isTrue() { return }
            _ = Parker().park(milliseconds: 1)
        }
        Issue.record("waited a minute in vain")
    }

    /// The thread may be woken for what it has just done. A store that savers write to without a
    /// pause got a witness so, on a machine with much other work.
    @Test("A round with nothing left to do is no idle moment")
    func anEmptyRoundIsNoIdleMoment() throws {
        let engine = try Engine.openTest(MemoryDirectory()) {
            Self.adjust(&$0)
            $0.idleMilliseconds = 600_000
        }
        _ = try engine.write { try $0.insert(Self.entity, ObjectID(1), row: row(1, "a")) }
        let thread = try #require(engine.role.maintenance)
        for _ in 0..<4 { _ = engine.maintain(MaintenanceNeeds(), on: thread, isWoken: true) }
        #expect(engine.statistics.witnesses == 0)
        for _ in 0..<2 { _ = engine.maintain(MaintenanceNeeds(), on: thread, isWoken: false) }
        #expect(engine.statistics.witnesses == 1)
        try engine.close()
    }

    @Test(
        "Checkpoints in the background change no contents, at any power cut",
        arguments: [UInt64(21), 22, 23]
    )
    func backgroundCheckpointsKeepContents(seed: UInt64) throws {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root, Self.adjust)
        // Object -> commit of its newest row, as of each commit: what a row's version says.
        let versions = Mutex<[UInt64: [UInt64: UInt64]]>([:])
        let acknowledged = Mutex<UInt64>(0)
        let cuts = Mutex<[(SimulatedDisk.State, UInt64)]>([])
        let isDone = Mutex(false)
        let photographer = TestThread {
            // Each picture is opened and read later: on a busy machine there would be thousands.
            var pause = 4
            while !isDone.withLock({ $0 }) {
                // What is acknowledged before the picture is taken must be in it.
                let number = acknowledged.withLock { $0 }
                let state = disk.state
                let count = cuts.withLock { cuts in
                    cuts.append((state, number))
                    if cuts.count == 64 {
                        cuts = stride(from: 0, to: 64, by: 2).map { cuts[$0] }
                    }
                    return cuts.count
                }
                if count == 32 { pause *= 2 }
                _ = Parker().park(milliseconds: pause)
            }
        }
        @Sendable func save(_ step: Int, object: UInt64) {
            do {
                let text = String(repeating: "t\(step)", count: 1 + step % 20)
                let (_, commit) = try engine.write { transaction in
                    let id = ObjectID(object)
                    let number = transaction.number.rawValue
                    if try transaction.row(TestDelegate.rows, id) == nil {
                        try transaction.insert(Self.entity, id, row: row(Int64(step), text))
                        versions.withLock { $0[number] = [object: number] }
                    } else if step % 5 == 0 {
                        try transaction.delete(Self.entity, id)
                        versions.withLock { $0[number] = [object: 0] }
                    } else {
                        try transaction.update(Self.entity, id, patch: patch(nil, text))
                        versions.withLock { $0[number] = [object: number] }
                    }
                }
                let number = commit?.rawValue ?? 0
                acknowledged.withLock { $0 = max($0, number) }
            } catch { Issue.record("seed \(seed): \(error)") }
        }
        onThreads(4) { thread in
            var random = SeededRandom(seed: seed &* 100 &+ UInt64(thread))
            for step in 0..<120 {
                save(step, object: UInt64(thread * 1000 + Int.random(in: 0..<60, using: &random)))
            }
        }
        // A machine that gives the maintenance thread no time lets savers write pages themselves;
        // this test is about the thread, so it goes on until that has had its turn.
        try Self.wait {
            let statistics = engine.statistics
            if statistics.checkpoints > 0, statistics.backgroundPages > 0 { return true }
            save(1, object: 5_000 + acknowledged.withLock { $0 } % 60)
            return false
        }
        isDone.withLock { $0 = true }
        photographer.join()
        let statistics = engine.statistics
        try engine.close()
        cuts.withLock {
            $0.append((disk.state, engine.snapshot().number.rawValue))
        }

        func expected(_ number: UInt64) -> [UInt64: UInt64] {
            var rows: [UInt64: UInt64] = [:]
            for (commit, change) in versions.withLock({ $0 }).sorted(by: { $0.key < $1.key })
            where commit <= number {
                for (object, version) in change { rows[object] = version == 0 ? nil : version }
            }
            return rows
        }
        var random = SeededRandom(seed: seed)
        let pictures = cuts.withLock { $0 }
        for (state, number) in pictures {
            let reopened = try Engine.openTest(SimulatedDisk.powerCut(state, &random).root)
            let newest = reopened.snapshot().number.rawValue
            #expect(newest >= number, "seed \(seed)")
            _ = try reopened.contents()
            var found: [UInt64: UInt64] = [:]
            var cursor = reopened.snapshot().cursor(TestDelegate.rows)
            var hasRow = try cursor.first()
            while hasRow {
                found[try cursor.trailingObjectID().rawValue] = try cursor.row().version.rawValue
                hasRow = try cursor.next()
            }
            #expect(found == expected(newest), "seed \(seed), commit \(newest)")
        }
        print(
            "background checkpoints \(statistics.checkpoints), cuts \(pictures.count), seed \(seed)"
        )
        #expect(disk.violations == [])
    }

    @Test("A checkpoint in the background writes each page once and leaves nothing dirty")
    func aBackgroundCheckpointCleansTheState() throws {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root) {
            Self.adjust(&$0)
            // Else the last commits may be too few to be worth one, and the wait would be in vain.
            $0.idleTailBytes = 0
        }
        for object in UInt64(1)...400 {
            _ = try engine.write {
                try $0.insert(Self.entity, ObjectID(object), row: row(Int64(object), "text"))
            }
        }
        try Self.wait { !engine.published.withLock { $0.state.isDirty } }
        #expect(engine.statistics.checkpoints > 0)
        #expect(try engine.contents().count == 400)
    }

    /// They were once: a saver then wrote all pages itself, those of the thread were for nothing.
    @Test("Pages written ahead of a checkpoint are no tail that calls for pages")
    func pagesAheadAreNoTail() throws {
        let engine = try Engine.openTest(MemoryDirectory()) { $0.maintenance = .inline }
        _ = try engine.write { try $0.insert(Self.entity, ObjectID(1), row: row(1, "one")) }
        try engine.exclusively { writer throws(EngineError) in
            let before = writer.log.tailBytes
            let page = writer.log.appendBody(
                .value,
                front: [UInt8](repeating: 1, count: ValueHeader.length),
                body: [UInt8](repeating: 2, count: 5000),
                compresses: false
            )
            #expect(writer.log.tailBytes == before + page.frameLength)
            writer.log.countAhead(page.frameLength)
            #expect(writer.log.tailBytes == before)
        }
        try engine.checkpoint()
        #expect(engine.writer.withLock { $0.log.tailBytes } < 1000)
    }

    @Test("An idle store gets a witness: nothing is in doubt after a crash")
    func anIdleStoreGetsAWitness() throws {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root, Self.adjust)
        let id = engine.allocateObjectIDs(1)
        _ = try engine.write { try $0.insert(Self.entity, id, row: row(1, "one")) }
        try Self.wait { engine.statistics.witnesses > 0 }
        let lost = engine.allocateObjectIDs(5)
        let reopened = try Engine.openTest(disk.killed().root) { $0.maintenance = .inline }
        #expect(reopened.statistics.settledCommits == 0)
        #expect(try reopened.contents().count == 1)
        #expect(reopened.allocateObjectIDs(1) > lost, "an ID of a lost save came back")
        // The chain goes on round the witness.
        _ = try reopened.write { try $0.insert(Self.entity, ObjectID(9), row: row(2, "two")) }
        try reopened.close()
        _ = try engine.write { try $0.insert(Self.entity, ObjectID(10), row: row(3, "three")) }
        let again = try Engine.openTest(disk.killed().root) { $0.maintenance = .inline }
        #expect(try again.contents().count == 2)
    }

    @Test("Relaxed commits are synced after a while")
    func relaxedCommitsAreSynced() throws {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root) {
            Self.adjust(&$0)
            $0.idleMilliseconds = 60_000
        }
        _ = try engine.write(durability: .relaxed) {
            try $0.insert(Self.entity, ObjectID(1), row: row(1, "one"))
        }
        try Self.wait {
            disk.state.files.values.allSatisfy { $0.pending.isEmpty }
        }
        var random = SeededRandom(seed: 5)
        let state = disk.state
        let reopened = try Engine.openTest(SimulatedDisk.powerCut(state, &random).root)
        #expect(try reopened.contents().count == 1)
    }

    @Test("Closing or dropping an engine ends its thread", arguments: [true, false])
    func anEngineEndsItsThread(closes: Bool) throws {
        for round in 0..<20 {
            weak var dropped: Engine?
            do {
                let engine = try Engine.openTest(SimulatedDisk().root, Self.adjust)
                for object in UInt64(1)...UInt64(10 + round) {
                    _ = try engine.write {
                        try $0.insert(Self.entity, ObjectID(object), row: row(1, "text"))
                    }
                }
                if closes { try engine.close() }
                dropped = engine
            }
            try Self.wait { dropped == nil }
        }
    }
}
