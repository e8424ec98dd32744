// Savers of every kind at once, with power cuts at every call and calls that fail.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

/// Threads that save rows of their own: small and large values, bulk, relaxed; checkpoints and
/// compactions between them.
private final class MixedLoad: Sendable {
    enum Outcome: Equatable {
        case acknowledged(CommitNumber, isFull: Bool)
        case refused
        case unknown
    }
    let disk = SimulatedDisk()
    let engine: Engine
    /// What became of each commit, by the first of its objects and their number.
    let outcomes = Mutex<[UInt64: (count: UInt64, outcome: Outcome)]>([:])

    static func adjust(_ options: inout EngineOptions) {
        options.nodeWeightMax = 512
        options.tailRoomMin = 4096
        options.tailRoomMax = 8 << 10
        options.tailReserve = 1 << 10
        options.checkpointTailMin = 6 << 10
        options.checkpointTailMax = 6 << 10
        options.deltaBytesMax = 2 << 10
        options.earlyWriteBytes = 6 << 10
        options.batchBytesMax = 16 << 10
        options.inlineValueBytesMax = 256
        options.relaxedSyncMilliseconds = 2
        options.idleMilliseconds = 3
        options.idleTailBytes = 1 << 10
    }

    init(_ maintenance: Maintenance) throws {
        engine = try Engine.openTest(disk.root) {
            Self.adjust(&$0)
            $0.maintenance = maintenance
        }
    }

    func run(seed: UInt64, steps: Int) {
        onThreads(4) { thread in
            var random = SeededRandom(seed: seed &* 1000 &+ UInt64(thread))
            var object = UInt64(thread + 1) << 20
            for _ in 0..<steps { self.step(&object, &random) }
        }
    }

    private func step(_ next: inout UInt64, _ random: inout SeededRandom) {
        let kind = Int.random(in: 0..<12, using: &random)
        if kind == 0 {
            // What fails here fails the savers, who tell.
            if Bool.random(using: &random) {
                _ = try? engine.checkpoint()
            } else {
                _ = try? engine.compact()
            }
            return
        }
        let first = next
        let count = kind == 1 ? UInt64.random(in: 20...60, using: &random) : 1
        next += count
        // Letters that do not compress, so that lengths are lengths in the file.
        let length = kind < 4 ? Int.random(in: 100...900, using: &random) : 6
        let text = (0..<length).map { _ in String(random.next() & 31, radix: 32) }.joined()
        let isFull = kind < 8
        let outcome: Outcome
        do {
            let (_, commit) = try engine.write(durability: isFull ? .full : .relaxed) {
                for object in first..<first + count {
                    try $0.insert(
                        TestDelegate.entity,
                        ObjectID(object),
                        row: row(Int64(object), text)
                    )
                }
            }
            guard let commit else {
                Issue.record("a save without a commit")
                return
            }
            outcome = .acknowledged(commit, isFull: isFull)
            if isFull {
                disk.raiseNote(to: Int(commit.rawValue))
            }
        } catch let error as EngineError {
            outcome = error.code == .outcomeUnknown ? .unknown : .refused
            #expect([.outcomeUnknown, .poisoned, .noSpace, .ioFailed].contains(error.code))
        } catch {
            Issue.record("\(error)")
            return
        }
        outcomes.withLock { $0[first] = (count, outcome) }
    }

    /// Whether a store that was opened later holds whole commits, all up to its newest one, and
    /// nothing that was refused.
    func check(_ store: Engine, atLeast: UInt64, _ name: String) throws {
        let newest = store.snapshot().number.rawValue
        #expect(newest >= atLeast, "\(name): an acknowledged commit is gone")
        let found = Set(try store.contents().keys)
        for (first, (count, outcome)) in outcomes.withLock({ $0 }) {
            let there = (first..<first + count).filter { found.contains($0) }.count
            switch outcome {
            case .acknowledged(let commit, _):
                let expected = commit.rawValue <= newest ? Int(count) : 0
                #expect(there == expected, "\(name): commit \(commit.rawValue) of \(newest)")
            case .refused: #expect(there == 0, "\(name): a refused save is there")
            case .unknown: #expect(there == 0 || there == Int(count), "\(name): half a save")
            }
        }
    }
}

@Suite("Mixed load", .verified) struct MixedLoadTests {
    @Test(
        "A power cut at any call keeps what was acknowledged, and a prefix of the rest",
        arguments: [UInt64(1), 2, 3, 4],
        [Maintenance.inline, .background]
    )
    func powerCuts(seed: UInt64, maintenance: Maintenance) throws {
        let load = try MixedLoad(maintenance)
        load.disk.record()
        load.run(seed: seed, steps: 18)
        var random = SeededRandom(seed: seed)
        let name = "seed \(seed), \(maintenance)"
        let history = Array(load.disk.takeRecording())
        // A sample, another one for each seed, and always the end.
        for (index, (state, note)) in history.enumerated()
        where index % 5 == Int(seed) || index == history.count - 1 {
            let cut = SimulatedDisk.powerCut(state, &random)
            let store: Engine
            do {
                store = try Engine.openTest(cut.root, MixedLoad.adjust)
            } catch {
                Issue.record("\(name), call \(index): refused after a power cut: \(error)")
                continue
            }
            try load.check(store, atLeast: UInt64(note), "\(name), call \(index)")
            #expect(cut.violations == [])
        }
        let compactions = load.engine.statistics.compactions
        print("mixed load: calls \(history.count), compactions \(compactions), \(name)")
        try load.engine.close()
        let reopened = try Engine.openTest(load.disk.killed().root, mode: .existing)
        #expect(reopened.statistics.settledCommits == 0)
        try load.check(reopened, atLeast: load.engine.snapshot().number.rawValue, name)
        #expect(load.disk.violations == [])
    }

    @Test(
        "Whatever call fails, each saver is told what is on disk",
        arguments: zip([UInt64(5), 6], [Int32(5), SimulatedDisk.noSpace])
    )
    func failingCalls(seed: UInt64, code: Int32) throws {
        var random = SeededRandom(seed: seed)
        var told: [String: Int] = [:]
        for round in 0..<16 {
            let load = try MixedLoad(round % 2 == 0 ? .inline : .background)
            load.disk.setFault(
                SimulatedDisk.Fault(
                    first: load.disk.calls + Int.random(in: 1...90, using: &random),
                    count: Int.random(in: 1...3, using: &random),
                    code: code
                )
            )
            load.run(seed: seed &+ UInt64(round), steps: 12)
            var full: UInt64 = 0
            for (_, outcome) in load.outcomes.withLock({ $0 }).values {
                switch outcome {
                case .acknowledged(let commit, let isFull):
                    told["acknowledged", default: 0] += 1
                    if isFull { full = max(full, commit.rawValue) }
                case .refused: told["refused", default: 0] += 1
                case .unknown: told["unknown", default: 0] += 1
                }
            }
            let name = "seed \(seed), round \(round)"
            #expect(load.disk.violations == [], "\(name)")
            let state = load.disk.state
            for picture in 0..<4 {
                // A process that dies, then power cuts.
                let disk =
                    picture == 0 ? load.disk.killed() : SimulatedDisk.powerCut(state, &random)
                let store: Engine
                do {
                    store = try Engine.openTest(disk.root, MixedLoad.adjust)
                } catch {
                    Issue.record("\(name), picture \(picture): \(error)")
                    continue
                }
                try load.check(store, atLeast: full, "\(name), picture \(picture)")
            }
        }
        print("failing calls, code \(code): \(told)")
    }
}
