// A store and its backup on one disk, in any order: saves in both, compactions, backups, kills,
// power cuts and calls that fail. What an opening has shown, or a save has acknowledged, stays.

import Foundation
import Testing
import VarveBase
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Names of stores and backups, in any order", .verified) struct NameFuzzTests {
    /// What is known of a file: objects that are there, and those that may be.
    private struct Known {
        var certain: Set<UInt64> = []
        var possible: Set<UInt64> = []
    }

    private final class World {
        var disk = SimulatedDisk()
        var random: SeededRandom
        var engines: [String: Engine] = [:]
        var known: [String: Known] = [:]
        /// Kinds of steps that did what they are for.
        var done: [String: Int] = [:]
        private var next: UInt64 = 0

        private let seed: UInt64

        init(seed: UInt64) {
            self.seed = seed
            random = SeededRandom(seed: seed)
        }

        func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

        /// Whether the backup's file is there: it is, once it was there for sure.
        var hasCopy: Bool {
            if disk.state.file("copy.varve") != nil { return true }
            #expect(known["copy"]?.certain.isEmpty ?? true, "the backup is gone, seed \(seed)")
            known["copy"] = nil
            return false
        }

        /// The open store of a name, opened if there is a file; nil: there is none, or it failed.
        func engine(_ name: String) throws -> Engine? {
            if let engine = engines[name] { return engine }
            if name == "copy", !hasCopy { return nil }
            var options = EngineOptions()
            options.compactsAutomatically = false
            options.maintenance = .inline
            let engine = try Engine.open(
                .directory(disk.root, name: name),
                options: options,
                delegate: TestDelegate()
            )
            engines[name] = engine
            if engine.snapshot().schema.isEmpty {
                _ = try engine.write { try $0.replaceSchema([1], version: 1) }
            }
            let found = Set(try engine.contents().keys)
            let before = known[name] ?? Known(possible: found)
            #expect(before.certain.isSubset(of: found), "\(name) lost something, seed \(seed)")
            #expect(found.isSubset(of: before.certain.union(before.possible)), "seed \(seed)")
            // Shown to somebody who may write: it stays.
            known[name] = Known(certain: found)
            return engine
        }

        func save(_ name: String) throws {
            guard let engine = try engine(name) else { return }
            next += 1
            known[name]?.possible.insert(next)
            do {
                let object = next
                _ = try engine.write {
                    try $0.insert(TestDelegate.entity, ObjectID(object), row: row(1, "\(object)"))
                }
            } catch let error as EngineError {
                if error.code != .outcomeUnknown { known[name]?.possible.remove(next) }
                throw error
            }
            known[name]?.certain.insert(next)
            known[name]?.possible.remove(next)
            done["save \(name)", default: 0] += 1
        }

        func backup() throws {
            guard let engine = try engine("test") else { return }
            // A backup that somebody has open is refused.
            if let copy = engines.removeValue(forKey: "copy") { try copy.close() }
            let now = Set(try engine.contents().keys)
            _ = hasCopy
            if let earlier = known["copy"] {
                known["copy"]?.possible = earlier.possible.union(now)
            }
            let report = try engine.backup(to: .directory(disk.root, name: "copy"))
            known["copy"] = Known(certain: now)
            done[report.isIncrement ? "increment" : "backup", default: 0] += 1
        }

        func kill() {
            engines = [:]
            disk.kill()
        }

        func step() throws {
            switch below(12) {
            case 0...2: try save("test")
            case 3, 4: try save("copy")
            case 5, 6: try backup()
            case 7:
                guard let engine = try engine(below(3) == 0 ? "copy" : "test") else { return }
                _ = try engine.compact()
                done["compaction", default: 0] += 1
            case 8:
                for name in engines.keys.sorted() {
                    try engines.removeValue(forKey: name)?.close()
                }
            case 9: kill()
            case 10:
                kill()
                let image = below(2) == 0 ? CrashImage() : .everything(of: disk.state)
                disk = SimulatedDisk(disk.state.after(image))
                done["power cut", default: 0] += 1
            default:
                // A backup is taken away, so that a new one is made. The test does it, unharmed.
                disk.setFault(nil)
                if below(3) == 0, engines["copy"] == nil, hasCopy {
                    try disk.root.remove("copy.varve")
                    try disk.root.sync()
                    known["copy"] = nil
                }
            }
        }
    }

    /// 80 seeds, or as many as VARVE_NAME_SEEDS says.
    @Test func whatWasShownStays() throws {
        var done: [String: Int] = [:]
        let variables = ProcessInfo.processInfo.environment
        let count = variables["VARVE_NAME_SEEDS"].flatMap(UInt64.init) ?? 80
        for seed in 1...max(80, count) {
            done.merge(try Self.run(seed), uniquingKeysWith: +)
        }
        // Each kind of step does what it is for, often enough.
        for kind in ["save test", "save copy", "backup", "increment", "compaction", "power cut"] {
            #expect(done[kind, default: 0] > 50, "\(kind): \(done)")
        }
    }

    private static func run(_ seed: UInt64) throws -> [String: Int] {
        let world = World(seed: seed)
        for _ in 0..<80 {
            let disk = world.disk
            let failures = disk.failures
            if world.below(4) == 0 {
                let first = disk.calls + 1 + world.below(9)
                // One call, or two; or the process dies in the middle of a step.
                disk.setFault(.init(first: first, count: [1, 2, 1_000_000][world.below(3)]))
            }
            do {
                try world.step()
            } catch let error as EngineError {
                let refused: Set<EngineError.Code> = [.busy, .invalid]
                #expect(
                    disk.failures > failures || refused.contains(error.code),
                    "seed \(seed): \(error)"
                )
                // Whatever state the process is in, the next one goes on.
                world.kill()
            }
            disk.setFault(nil)
        }
        world.kill()
        let cut = SimulatedDisk(world.disk.state.after(CrashImage()))
        world.disk = cut
        for name in ["test", "copy"] {
            let engine = try world.engine(name)
            #expect(engine != nil || world.known[name]?.certain.isEmpty ?? true, "seed \(seed)")
        }
        #expect(cut.violations.isEmpty, "seed \(seed)")
        return world.done
    }
}
