// Power cuts and failing calls at every step of a compaction, on a simulated disk.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite(.verified) struct CompactionFaultTests {
    private static func open(
        _ disk: SimulatedDisk,
        _ retention: Retention,
        packs: Bool = false
    ) throws -> Engine {
        try CompactionTests.open(disk.root, retention, packs: packs)
    }

    /// The power goes at each call of a compaction and of the commits behind it: what opens is the
    /// last acknowledged state or the one being saved, and it can be compacted.
    @Test(arguments: [
        (UInt64(101), Retention.newest, false), (102, .all, false), (103, .commits(5), false),
        (104, .newest, true), (105, .all, true),
    ])
    func thePowerMayGoAtAnyCall(seed: UInt64, retention: Retention, packs: Bool) throws {
        let disk = SimulatedDisk()
        let engine = try Self.open(disk, retention, packs: packs)
        var history = RandomHistory(seed: seed)
        for _ in 0..<14 { try history.commit(engine) }
        var acknowledged = [engine.snapshot().number]
        disk.record()
        disk.note(0)
        for _ in 0..<2 {
            _ = try engine.compact()
            for _ in 0..<3 {
                acknowledged.append(try history.commit(engine))
                disk.note(acknowledged.count - 1)
            }
        }
        let moments = Array(disk.takeRecording())
        #expect(disk.violations == [])
        var random = SeededRandom(seed: seed)
        var cases = 0
        for (state, note) in moments {
            let allowed = acknowledged[note...min(note + 1, acknowledged.count - 1)]
            let image = SimulatedDisk.powerCut(state, &random)
            let opened = try Self.open(image, retention, packs: packs)
            let number = opened.snapshot().number
            #expect(allowed.contains(number), "call \(cases): commit \(number.rawValue)")
            #expect(
                try opened.snapshot().everything() == history.states[number],
                "call \(cases)"
            )
            #expect(try !image.root.list().contains { $0.contains("-new-") })
            if cases % 5 == 0 {
                _ = try opened.compact()
                #expect(try opened.snapshot().everything() == history.states[number])
                let settled = image.state
                let again = try Self.open(SimulatedDisk.powerCut(settled, &random), retention)
                #expect(try again.snapshot().everything() == history.states[number])
            }
            #expect(image.violations == [])
            cases += 1
        }
        #expect(cases > 30)
        print("power cuts in a compaction \(cases), \(retention), seed \(seed)")
    }

    /// Each call of a compaction fails once: it throws, and the store is what it was and goes on,
    /// or, behind the rename, it is poisoned and every commit is there after reopening.
    @Test(arguments: [Int32(5), SimulatedDisk.noSpace])
    func anyCallMayFail(code: Int32) throws {
        var call = 1
        var codes: [EngineError.Code: Int] = [:]
        var random = SeededRandom(seed: 111)
        while true {
            let disk = SimulatedDisk()
            var engine = try Self.open(disk, .commits(6))
            var history = RandomHistory(seed: 112)
            for _ in 0..<10 { try history.commit(engine) }
            disk.setFault(SimulatedDisk.Fault(first: disk.calls + call, code: code))
            var failure: EngineError?
            do { _ = try engine.compact() } catch { failure = error }
            guard disk.failures > 0 else { break }
            let error = try #require(failure, "call \(call) failed and nobody was told")
            codes[error.code, default: 0] += 1
            #expect(try engine.snapshot().everything() == history.newest)
            if error.code == .poisoned {
                let refused = #expect(throws: EngineError.self) { try engine.write { _ in } }
                #expect(refused?.code == .poisoned)
                let cut = SimulatedDisk.powerCut(disk.state, &random)
                #expect(
                    try Self.open(cut, .commits(6)).snapshot().everything() == history.newest
                )
                engine = try Self.open(disk.killed(), .commits(6))
            } else {
                #expect(try !disk.root.list().contains { $0.contains("-new-") })
                try history.commit(engine)
                _ = try engine.compact()
            }
            #expect(try engine.snapshot().everything() == history.newest)
            #expect(disk.violations == [])
            call += 1
        }
        // The sync of the directory, and the first bytes behind it.
        #expect(codes[.poisoned] == 2)
        #expect(codes[code == SimulatedDisk.noSpace ? .noSpace : .ioFailed, default: 0] > 3)
        print("failing calls of a compaction \(call), code \(code): \(codes)")
    }

    // MARK: Beside a saver

    /// An engine whose compactions meet a saver: at some of their steps, and right before the last
    /// one. `save` is called on the thread that compacts, which holds no lock there.
    private static func open(
        _ disk: SimulatedDisk,
        _ retention: Retention,
        _ save: @escaping @Sendable () -> Void
    ) throws -> Engine {
        let steps = Mutex(0)
        return try Engine.openTest(disk.root) {
            RandomHistory.adjust(&$0)
            $0.compactedLeafBytes = 1 << 10
            $0.retention = retention
            $0.environment = GatedEnvironment { point in
                if point == .compactionStep {
                    let step = steps.withLock { steps in
                        steps += 1
                        return steps
                    }
                    if step % 11 == 3 { save() }
                }
                if point == .compactionCaughtUp { save() }
            }
        }
    }

    /// What a saver was told, beside a compaction.
    private struct Saver {
        var history: RandomHistory
        var acknowledged: [CommitNumber] = []
        var error: EngineError?

        mutating func save(_ engine: Engine, _ disk: SimulatedDisk) {
            if error != nil { return }
            do {
                acknowledged.append(try history.commit(engine))
                disk.note(acknowledged.count - 1)
            } catch let failure as EngineError {
                error = failure
            } catch { Issue.record("\(error)") }
        }
    }

    /// The power goes at each call of a compaction and of the saves beside it: no acknowledged save
    /// is lost, whichever of the two files is the store.
    @Test(arguments: [(UInt64(121), Retention.newest), (122, .commits(6))])
    func thePowerMayGoBesideASaver(seed: UInt64, retention: Retention) throws {
        let disk = SimulatedDisk()
        let saver = Mutex(Saver(history: RandomHistory(seed: seed)))
        let shared = Mutex<Engine?>(nil)
        let engine = try Self.open(disk, retention) {
            guard let engine = shared.withLock({ $0 }) else { return }
            saver.withLock { $0.save(engine, disk) }
        }
        defer { shared.withLock { $0 = nil } }
        for _ in 0..<10 { saver.withLock { $0.save(engine, disk) } }
        shared.withLock { $0 = engine }
        disk.record()
        for _ in 0..<2 {
            let report = try engine.compact()
            #expect(report.commitsInLastStep >= 1)
            saver.withLock { $0.save(engine, disk) }
        }
        let moments = Array(disk.takeRecording())
        #expect(disk.violations == [])
        let (history, acknowledged) = saver.withLock { ($0.history, $0.acknowledged) }
        #expect(saver.withLock { $0.error } == nil)
        var random = SeededRandom(seed: seed)
        // A sample, another one for each seed, and the end, where both files have the name.
        for (index, (state, note)) in moments.enumerated()
        where index % 3 == Int(seed % 3) || index > moments.count - 20 {
            let image = SimulatedDisk.powerCut(state, &random)
            let opened = try Self.open(image, retention) {}
            let number = opened.snapshot().number
            let allowed = acknowledged[note...min(note + 1, acknowledged.count - 1)]
            #expect(allowed.contains(number), "seed \(seed), call \(index)")
            #expect(
                try opened.snapshot().everything() == history.states[number],
                "seed \(seed), call \(index)"
            )
            #expect(image.violations == [])
        }
        print("power cuts beside a saver \(moments.count), \(retention), seed \(seed)")
    }

    /// Each call fails once, of the compaction or of the saves beside it: whoever it hits is told,
    /// and what was acknowledged is there after the process dies and after a power cut.
    @Test(arguments: [(UInt64(131), Retention.newest), (132, .commits(6))])
    func anyCallMayFailBesideASaver(seed: UInt64, retention: Retention) throws {
        var call = 1
        var told: [String: Int] = [:]
        var random = SeededRandom(seed: seed)
        while true {
            let disk = SimulatedDisk()
            let saver = Mutex(Saver(history: RandomHistory(seed: seed)))
            let shared = Mutex<Engine?>(nil)
            let engine = try Self.open(disk, retention) {
                guard let engine = shared.withLock({ $0 }) else { return }
                saver.withLock { $0.save(engine, disk) }
            }
            defer { shared.withLock { $0 = nil } }
            for _ in 0..<8 { saver.withLock { $0.save(engine, disk) } }
            shared.withLock { $0 = engine }
            disk.setFault(SimulatedDisk.Fault(first: disk.calls + call, code: 5))
            var failure: EngineError?
            do { _ = try engine.compact() } catch { failure = error }
            guard disk.failures > 0 else { break }
            let (history, error) = saver.withLock { ($0.history, $0.error) }
            let name = "seed \(seed), call \(call)"
            // A sweep behind it may have failed: that is tried again and told nobody.
            told[failure.map { "compaction \($0.code)" } ?? "compaction done", default: 0] += 1
            if let error { told["saver \(error.code)", default: 0] += 1 }
            #expect(disk.violations == [], "\(name)")
            let images = [
                disk.killed(), SimulatedDisk.powerCut(disk.state, &random),
            ]
            for image in images {
                let opened = try Self.open(image, retention) {}
                let found = try opened.snapshot().everything()
                let last = saver.withLock { $0.acknowledged.last }
                if error?.code == .outcomeUnknown, opened.snapshot().number != last {
                    #expect(opened.snapshot().number == last?.next, "\(name)")
                } else {
                    #expect(found == history.newest, "\(name)")
                }
            }
            if failure?.code != .poisoned, error == nil {
                saver.withLock { $0.save(engine, disk) }
                let newest = saver.withLock { $0.history.newest }
                #expect(try engine.snapshot().everything() == newest, "\(name)")
            }
            call += 1
        }
        #expect(told["compaction ioFailed", default: 0] > 3)
        #expect(told["compaction poisoned", default: 0] > 0)
        print("failing calls beside a saver \(call): \(told), \(retention), seed \(seed)")
    }
}
