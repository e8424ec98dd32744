// Compaction beside savers that never pause: it starts by itself, gives way and catches up.

import Foundation
import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite(.verified) struct SteadyLoadTests {
    private static func adjust(_ options: inout EngineOptions) {
        RandomHistory.adjust(&options)
        options.compactedLeafBytes = 1 << 10
        options.maintenance = .background
        options.idleMilliseconds = 60_000
        options.compactionDeadBytesMin = 30_000
    }

    /// Waits up to a minute: other tests may hold the machine.
    private static func wait(until isTrue: () throws -> Bool) throws {
        for _ in 0..<60_000 {
            if try isTrue() { return }
            _ = Parker().park(milliseconds: 1)
        }
        Issue.record("waited a minute in vain")
    }

    /// A saver that never pauses leaves the store no idle moment, and still it is compacted; what
    /// the retention keeps stays, and a reader of an old commit reads on.
    @Test(arguments: [
        (UInt64(201), Retention.newest), (202, .commits(10)), (203, .bytes(20_000)),
    ])
    func aStoreThatIsAlwaysWrittenIsCompacted(seed: UInt64, retention: Retention) throws {
        let directory = MemoryDirectory()
        var engine = try Engine.openTest(directory) {
            Self.adjust(&$0)
            $0.retention = retention
        }
        var history = RandomHistory(seed: seed)
        for _ in 0..<20 { try history.commit(engine) }
        let reader = engine.snapshot()
        let before = try reader.everything()
        let end = Date(timeIntervalSinceNow: 300)
        while engine.statistics.compactions < 3, Date() < end { try history.commit(engine) }
        #expect(engine.statistics.compactions >= 3)
        #expect(engine.statistics.witnesses == 0, "it was idle")
        #expect(try reader.everything() == before)
        func check() throws {
            #expect(try engine.snapshot().everything() == history.newest)
            let oldest = try engine.retainedCommits().lowerBound
            let newest = engine.snapshot().number
            if case .commits(let count) = retention {
                #expect(newest.rawValue - oldest.rawValue >= UInt64(count) - 1)
            }
            for (number, state) in history.states where number >= oldest {
                #expect(try engine.snapshot(at: number).everything() == state)
            }
        }
        try engine.close()
        try check()
        engine = try Engine.openTest(directory) { Self.adjust(&$0) }
        try check()
        print("compacted under load after \(history.states.count) commits, seed \(seed)")
    }

    /// History that is to be kept is no garbage, however much of the file it is.
    @Test func allHistoryStays() throws {
        let engine = try Engine.openTest(MemoryDirectory()) {
            Self.adjust(&$0)
            $0.retention = .all
            $0.idleMilliseconds = 5
            $0.compactionDeadBytesMin = 0
        }
        var history = RandomHistory(seed: 204)
        for _ in 0..<100 { try history.commit(engine) }
        try Self.wait { engine.statistics.witnesses > 0 }
        #expect(try engine.compactIfWorthwhile() == nil)
        try engine.close()
        #expect(engine.statistics.compactions == 0)
        for (number, state) in history.states {
            #expect(try engine.snapshot(at: number).everything() == state)
        }
    }

    /// Savers who share a thread with nobody's: in memory there is no maintenance thread.
    @Test func aStoreInMemoryIsCompactedByItsSavers() throws {
        let engine = try Engine.openTest(MemoryDirectory()) {
            Self.adjust(&$0)
            $0.maintenance = .inline
        }
        var history = RandomHistory(seed: 205)
        for _ in 0..<120 { try history.commit(engine) }
        #expect(engine.statistics.compactions > 0)
        #expect(try engine.snapshot().everything() == history.newest)
    }

    /// What savers wait for is the commits since the last look, as row changes, not their pages.
    @Test(arguments: [Retention.newest, .commits(30)])
    func theLastStepIsSmall(retention: Retention) throws {
        let saver = Mutex<(@Sendable () -> Void)?>(nil)
        let engine = try Engine.openTest(MemoryDirectory()) {
            $0.retention = retention
            $0.environment = GatedEnvironment { point in
                if point == .compactionCaughtUp { saver.withLock { $0 }?() }
            }
        }
        @Sendable func save(_ object: Int, _ text: String) throws {
            _ = try engine.write { transaction in
                let id = ObjectID(UInt64(object))
                if try transaction.row(TestDelegate.rows, id) == nil {
                    try transaction.insert(TestDelegate.entity, id, row: row(1, text))
                } else {
                    try transaction.update(TestDelegate.entity, id, patch: patch(nil, text))
                }
            }
        }
        _ = try engine.write { transaction in
            for object in 1...4_000 {
                try transaction.insert(
                    TestDelegate.entity,
                    ObjectID(UInt64(object)),
                    row: row(Int64(object), "text \(object)")
                )
            }
        }
        let last = 40
        saver.withLock {
            $0 = {
                // Each in a leaf of its own.
                for index in 1...last {
                    do { try save(index * 99, "new \(index)") } catch { Issue.record("\(error)") }
                }
            }
        }
        for index in 1...40 { try save(index * 7, "old \(index)") }
        let report = try engine.compact()
        #expect(report.commitsInLastStep == UInt64(last))
        #expect(report.bytesInLastStep < UInt64(last) * 300 + 1000)
        #expect(report.bytesInLastStep == engine.statistics.compactionLastStepBytes)
        saver.withLock { $0 = nil }
        let rows = try engine.contents()
        for index in 1...last { #expect(rows[UInt64(index * 99)]?.contains("new") == true) }
        // What is in memory only is known as such.
        try save(3, "behind it")
        try engine.checkpoint()
        #expect(!engine.snapshot().state.isDirty)
        #expect(try engine.compact().commitsInLastStep == 0)
        #expect(try engine.contents()[3]?.contains("behind it") == true)
        print("last step: \(report.bytesInLastStep) bytes for \(last) commits, \(retention)")
    }

    /// A saver who had the writer lock for long leaves much behind: copying it under the same lock
    /// would make the next one wait as long again.
    @Test(arguments: [Retention.newest, .commits(30)])
    func aLargeCommitAtTheEndIsCaughtUpWith(retention: Retention) throws {
        let saves = Mutex(0)
        let shared = Mutex<Engine?>(nil)
        let large: @Sendable () -> Void = {
            let number = saves.withLock { saves in
                saves += 1
                return saves
            }
            guard number <= 2, let engine = shared.withLock({ $0 }) else { return }
            do {
                _ = try engine.write { transaction in
                    var random = SeededRandom(seed: UInt64(number))
                    for object in 1...8_000 {
                        // What does not compress.
                        let text = (0..<6).map { _ in String(random.next(), radix: 36) }.joined()
                        try transaction.update(
                            TestDelegate.entity,
                            ObjectID(UInt64(object)),
                            patch: patch(Int64(object), "save \(number) " + text)
                        )
                    }
                }
            } catch { Issue.record("\(error)") }
        }
        let engine = try Engine.openTest(MemoryDirectory()) {
            $0.retention = retention
            $0.environment = GatedEnvironment { if $0 == .compactionCaughtUp { large() } }
        }
        _ = try engine.write { transaction in
            for object in 1...8_000 {
                let id = ObjectID(UInt64(object))
                let row = row(Int64(object), "save 0")
                try transaction.insert(TestDelegate.entity, id, row: row)
            }
        }
        shared.withLock { $0 = engine }
        defer { shared.withLock { $0 = nil } }
        let report = try engine.compact()
        #expect(saves.withLock { $0 } == 3, "it looked again behind each large commit")
        #expect(report.rounds >= 2)
        #expect(report.commitsInLastStep == 0)
        #expect(report.bytesInLastStep < 64 << 10)
        let rows = try engine.contents()
        #expect(rows.count == 8_000)
        #expect(rows.values.allSatisfy { $0.contains("save 2") })
    }

    /// A saver who commits as fast as the compaction copies is slowed down, then the last step
    /// takes what is left: it ends.
    @Test(arguments: [Retention.newest, .commits(1000)])
    func itEndsBesideASaverWhoIsAsFast(retention: Retention) throws {
        let brakes = Mutex<Set<Int>>([])
        let shared = Mutex<Engine?>(nil)
        let saved = Mutex<[UInt64: String]>([:])
        @Sendable func save() {
            guard let engine = shared.withLock({ $0 }) else { return }
            _ = brakes.withLock { $0.insert(engine.compaction.brakeMilliseconds) }
            let number = saved.withLock { $0.count } + 1
            var random = SeededRandom(seed: UInt64(number))
            var letters: [UInt8] = []
            // 8 letters a number, of 32: they compress to five eighths.
            for _ in 0..<1500 {
                let number = random.next()
                for byte in 0..<8 { letters.append(64 + UInt8(number >> UInt64(8 * byte) & 31)) }
            }
            let text = String(decoding: letters, as: UTF8.self)
            do {
                _ = try engine.write {
                    let id = ObjectID(UInt64(number))
                    try $0.insert(TestDelegate.entity, id, row: row(1, text))
                }
                saved.withLock { $0[UInt64(number)] = text }
            } catch { Issue.record("\(error)") }
        }
        let engine = try Engine.openTest(MemoryDirectory()) {
            $0.retention = retention
            $0.environment = GatedEnvironment { point in
                // Not inside that save.
                if point == .compactionStep { save() }
            }
        }
        shared.withLock { $0 = engine }
        defer { shared.withLock { $0 = nil } }
        for _ in 0..<12 { save() }
        let report = try engine.compact()
        let rows = try engine.contents()
        #expect(rows.count == saved.withLock { $0.count })
        #expect(report.newest == engine.snapshot().number)
        #expect(report.rounds <= 20)
        // The newest commit alone: what came meanwhile was little enough for the last step.
        if retention != .newest { #expect(brakes.withLock { $0.count } > 1) }
        #expect(engine.compaction.brakeMilliseconds == 0)
        print("rounds \(report.rounds), brakes \(brakes.withLock { $0.sorted() }), \(retention)")
    }

    /// Checkpoints and room that savers need while the thread compacts do not wait for its end.
    @Test func maintenanceGoesOnMeanwhile() throws {
        let shared = Mutex<Engine?>(nil)
        let counts = Mutex<(begun: UInt64, most: UInt64)>((0, 0))
        let engine = try Engine.openTest(MemoryDirectory()) {
            Self.adjust(&$0)
            $0.environment = GatedEnvironment { point in
                guard let engine = shared.withLock({ $0 }) else { return }
                switch point {
                case .compactionBegin:
                    counts.withLock { $0.begun = engine.statistics.checkpoints }
                case .compactionStep: _ = Parker().park(milliseconds: 1)
                case .compactionCaughtUp:
                    let checkpoints = engine.statistics.checkpoints
                    counts.withLock { $0.most = max($0.most, checkpoints - $0.begun) }
                default: break
                }
            }
        }
        shared.withLock { $0 = engine }
        defer { shared.withLock { $0 = nil } }
        var history = RandomHistory(seed: 206)
        let end = Date(timeIntervalSinceNow: 300)
        while counts.withLock({ $0.most }) == 0, Date() < end { try history.commit(engine) }
        #expect(counts.withLock { $0.most } > 0)
        #expect(try engine.snapshot().everything() == history.newest)
        try engine.close()
        print("checkpoints beside a compaction \(counts.withLock { $0.most })")
    }

    /// A commit that was `.relaxed` before is on disk behind a compaction, and counts as durable:
    /// blob files that it dropped are removed, though no commit follows.
    @Test func relaxedCommitsAreDurableBehindIt() throws {
        let directory = MemoryDirectory()
        let engine = try CompactionTests.open(directory, .newest, maintenance: .inline)
        let writer = try engine.makeBlobWriter(externalLimit: 100)
        try writer.append([UInt8](repeating: 9, count: 2000))
        var pending: PendingBlob? = try writer.finish()
        let reference = try #require(pending?.reference)
        _ = try engine.write {
            try $0.insert(TestDelegate.entity, ObjectID(1), row: row(1, "a", blob: reference))
        }
        pending = nil
        _ = try engine.write(durability: .relaxed) {
            try $0.delete(TestDelegate.entity, ObjectID(1))
        }
        func files() throws -> Int {
            try directory.directory("test.varve-blobs", create: false).list().count
        }
        #expect(try files() == 1)
        _ = try engine.compact()
        let (newest, durable) = engine.published.withLock { ($0.state.number, $0.durable) }
        #expect(durable == newest)
        #expect(try files() == 0)
    }
}
