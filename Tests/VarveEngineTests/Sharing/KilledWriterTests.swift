// Writing processes that are killed at any call, and power cuts while several are at work.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Writing processes that die", .verified) struct KilledWriterTests {
    private struct System {
        let disk = SimulatedDisk()
        let table = SimulatedLockTable()
        var processes: [(process: SimulatedProcess, engine: Engine)] = []
        var started = 0

        mutating func start() throws {
            started += 1
            let process = SimulatedProcess(disk, table, started)
            processes.append((process, try Engine.openTest(process.root, adjustSmall)))
        }
    }

    @Test("A killed process holds nobody up and loses nothing", arguments: UInt64(1)...12)
    func killed(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var system = System()
        for _ in 0..<3 { try system.start() }
        var model = RowModel()
        for step in 0..<70 {
            let index = Int.random(in: 0..<system.processes.count, using: &random)
            let (process, engine) = system.processes[index]
            var changed = model
            let action = Int.random(in: 0..<30, using: &random)
            if action < 6 {
                process.kill(afterCalls: Int.random(in: 0..<14, using: &random))
            }
            do {
                switch action {
                case 0, 20: try engine.checkpoint()
                case 1, 21: _ = try engine.compact()
                case 2, 22: try engine.close()
                default: _ = try engine.write { try changed.change(engine, $0, &random) }
                }
                if ![0, 20, 1, 21, 2, 22].contains(action) { model = changed }
            } catch {
                #expect(process.isDead, "seed \(seed), step \(step): \(error)")
            }
            if action < 6 || action == 22 {
                // It ends here at the latest, with or without a save under way.
                process.kill()
                system.processes.remove(at: index)
                if system.processes.isEmpty || Bool.random(using: &random) { try system.start() }
                if system.processes.count < 3 { try system.start() }
            }
            let other = system.processes.randomElement(using: &random)!.engine
            // Who has no turn hears only of what was told. A turn shows the newest.
            try other.exclusively { _ throws(EngineError) in }
            let contents = try other.contents()
            if contents == changed.contents { model = changed }
            #expect(contents == model.contents, "seed \(seed), step \(step), action \(action)")
            if contents != model.contents { return }
        }
        for (_, engine) in system.processes {
            #expect(try engine.contents() == model.contents, "seed \(seed)")
        }
        #expect(system.disk.violations.filter { !$0.contains("-lock") } == [])
    }

    @Test("A power cut takes nothing that one of several acknowledged", arguments: UInt64(1)...4)
    func powerCut(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var system = System()
        for _ in 0..<2 { try system.start() }
        var model = RowModel()
        var states: [UInt64: [UInt64: String]] = [:]
        let start = system.processes[0].engine.snapshot().number.rawValue
        states[start] = model.contents
        system.disk.note(Int(start))
        system.disk.record()
        for step in 0..<24 {
            let engine = system.processes[Int.random(in: 0..<2, using: &random)].engine
            let (_, commit) = try engine.write { transaction in
                try model.change(engine, transaction, &random)
                states[transaction.number.rawValue] = model.contents
            }
            system.disk.note(Int(commit?.rawValue ?? 0))
            if step % 9 == 8 { try engine.checkpoint() }
        }
        let history = Array(system.disk.takeRecording())
        #expect(history.count > 100)
        for (index, moment) in history.enumerated() {
            let disk = SimulatedDisk.powerCut(moment.state, &random)
            let engine = try Engine.openTest(disk.root, mode: .existing, adjustSmall)
            let number = engine.snapshot().number.rawValue
            #expect(number >= UInt64(moment.note), "seed \(seed), call \(index)")
            #expect(try engine.contents() == states[number], "seed \(seed), call \(index)")
        }
        #expect(system.disk.violations.filter { !$0.contains("-lock") } == [])
    }

    @Test("A failed sync of one process stops that one alone", arguments: UInt64(1)...4)
    func aFailedSync(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var system = System()
        for _ in 0..<2 { try system.start() }
        var model = RowModel()
        for _ in 0..<6 {
            for (_, engine) in system.processes {
                _ = try engine.write { try model.change(engine, $0, &random) }
            }
        }
        let (first, second) = (system.processes[0].engine, system.processes[1].engine)
        var changed = model
        // Reading the page and marking it come first; the sync is one of the next calls.
        let calls = system.disk.calls
        system.disk.setFault(
            SimulatedDisk.Fault(first: calls + Int.random(in: 2...4, using: &random))
        )
        do {
            _ = try first.write { try changed.change(first, $0, &random) }
            model = changed
        } catch {}
        system.disk.setFault(nil)
        try second.exclusively { _ throws(EngineError) in }
        let contents = try second.contents()
        #expect(contents == model.contents || contents == changed.contents, "seed \(seed)")
        if contents == changed.contents { model = changed }
        _ = try second.write { try model.change(second, $0, &random) }
        #expect(try second.contents() == model.contents, "seed \(seed)")
        #expect(try first.contents() == model.contents, "seed \(seed)")
    }

    @Test(
        "What a failed sync left is written again before anybody builds on it",
        arguments: UInt64(1)...8
    )
    func aFailedSyncAndAPowerCut(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var system = System()
        for _ in 0..<2 { try system.start() }
        var model = RowModel()
        for _ in 0..<4 {
            for (_, engine) in system.processes {
                _ = try engine.write { try model.change(engine, $0, &random) }
            }
        }
        let (first, second) = (system.processes[0].engine, system.processes[1].engine)
        var changed = model
        // One call after the other fails, until it is one that poisons.
        for call in 1...12 {
            system.disk.setFault(SimulatedDisk.Fault(first: system.disk.calls + call))
            do {
                changed = model
                _ = try first.write { try changed.change(first, $0, &random) }
                model = changed
            } catch {}
            system.disk.setFault(nil)
            if case .poisoned = first.writer.withLock({ $0.status }) { break }
        }
        try second.exclusively { _ throws(EngineError) in }
        if try second.contents() == changed.contents { model = changed }
        _ = try second.write { try model.change(second, $0, &random) }
        let state = system.disk.state
        for cut in 0..<10 {
            let disk = SimulatedDisk.powerCut(state, &random)
            let engine = try Engine.openTest(disk.root, mode: .existing, adjustSmall)
            #expect(try engine.contents() == model.contents, "seed \(seed), cut \(cut)")
        }
    }

    /// The next one has no room behind the log either: it writes in place, through a descriptor of
    /// its own, what the system shows and the disk does not have.
    @Test("What a failed sync left is written again on a full disk", arguments: UInt64(2)...8)
    func aFailedSyncOnAFullDisk(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var system = System()
        for _ in 0..<2 { try system.start() }
        var model = RowModel()
        let (first, second) = (system.processes[0].engine, system.processes[1].engine)
        _ = try second.write { try model.change(second, $0, &random) }
        // Which call of a save is its sync.
        system.disk.record()
        _ = try first.write { try model.change(first, $0, &random) }
        let file = try #require(system.disk.state.file("test.varve"))
        let sync = system.disk.takeRecording().steps.lastIndex {
            if case .sync(file) = $0.operation { true } else { false }
        }
        _ = try second.write { try model.change(second, $0, &random) }
        var changed = model
        system.disk.setFault(
            SimulatedDisk.Fault(first: system.disk.calls + 1 + (try #require(sync)))
        )
        let error = #expect(throws: EngineError.self) {
            _ = try first.write { try changed.change(first, $0, &random) }
        }
        #expect(error?.code == .outcomeUnknown, "seed \(seed)")
        let left = try #require(system.disk.state.files[file])
        let hasLostBytes = left.hasLostBytes
        #expect(hasLostBytes, "seed \(seed): it was the sync that failed")
        system.disk.setFault(
            SimulatedDisk.Fault(
                first: 1,
                count: .max,
                code: SimulatedDisk.noSpace,
                writesPast: left.cache.countWithoutTrailingZeros
            )
        )
        try second.exclusively { _ throws(EngineError) in }
        system.disk.setFault(nil)
        let contents = try second.contents()
        #expect(contents == model.contents || contents == changed.contents, "seed \(seed)")
        // The system may have forgotten it in the meantime.
        let isThere = contents == changed.contents
        let settled = second.statistics
        #expect(settled.settledInPlace == settled.settledCommits, "seed \(seed)")
        #expect(settled.settledInPlace > 0, "seed \(seed)")
        func stays(_ contents: [UInt64: String]) throws {
            for image in [CrashImage(), CrashImage.random(of: system.disk.state, &random)] {
                let disk = SimulatedDisk(system.disk.state.after(image))
                let engine = try Engine.openTest(disk.root, mode: .existing, adjustSmall)
                #expect(try engine.contents() == contents, "seed \(seed)")
            }
        }
        try stays(contents)
        model = isThere ? changed : model
        _ = try second.write { try model.change(second, $0, &random) }
        try stays(model.contents)
        #expect(try first.contents() == model.contents, "seed \(seed)")
        #expect(system.disk.violations.filter { !$0.contains("-lock") } == [])
    }
}
