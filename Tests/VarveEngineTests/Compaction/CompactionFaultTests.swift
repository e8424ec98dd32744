// Power cuts and failing calls at every step of a compaction, on a simulated disk.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO

@testable import VarveEngine

@Suite struct CompactionFaultTests {
    private static func open(_ disk: SimulatedDisk, _ retention: Retention) throws -> Engine {
        try CompactionTests.open(disk.root, retention)
    }

    /// The power goes at each call of a compaction and of the commits behind it: what opens is the
    /// last acknowledged state or the one being saved, and it can be compacted.
    @Test(arguments: [(UInt64(101), Retention.newest), (102, .all), (103, .commits(5))])
    func thePowerMayGoAtAnyCall(seed: UInt64, retention: Retention) throws {
        let disk = SimulatedDisk()
        let engine = try Self.open(disk, retention)
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
        let moments = disk.takeHistory()
        #expect(disk.violations == [])
        var random = SeededGenerator(seed)
        var cases = 0
        for (state, note) in moments {
            let allowed = acknowledged[note...min(note + 1, acknowledged.count - 1)]
            let image = SimulatedDisk.powerCut(state, &random)
            let opened = try Self.open(image, retention)
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
                let settled = image.core.withLock { $0.state }
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
        var random = SeededGenerator(111)
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
                let cut = SimulatedDisk.powerCut(disk.core.withLock { $0.state }, &random)
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
        #expect(codes[.poisoned] == 1)
        #expect(codes[code == SimulatedDisk.noSpace ? .noSpace : .ioFailed, default: 0] > 3)
        print("failing calls of a compaction \(call), code \(code): \(codes)")
    }
}
