// Engines that are suspended and come back, at random, against a model; with locks on bytes, and
// where one engine has the store for itself.

import Foundation
import Testing
import VarveBase
import VarveIO
import VarveTesting

@testable import VarveEngine

/// A folder of the system where locks are on whole files: one engine writes alone.
private final class WholeLocks: StoreDirectory {
    private let base: PosixDirectory
    init(_ path: String) throws { base = try PosixDirectory.open(path: path) }

    var name: String { base.name }
    var isSharedBetweenProcesses: Bool { true }
    func openFile(_ name: String, mode: OpenMode) throws(IOError) -> any StoreFile {
        try base.openFile(name, mode: mode)
    }
    func exists(_ name: String) throws(IOError) -> Bool { try base.exists(name) }
    func rename(_ from: String, to: String, replacing: Bool) throws(IOError) {
        try base.rename(from, to: to, replacing: replacing)
    }
    func remove(_ name: String) throws(IOError) { try base.remove(name) }
    func list() throws(IOError) -> [String] { try base.list() }
    func sync() throws(IOError) { try base.sync() }
    func directory(_ name: String, create: Bool) throws(IOError) -> any StoreDirectory {
        try base.directory(name, create: create)
    }
    func removeDirectory(_ name: String) throws(IOError) { try base.removeDirectory(name) }
    func isNamed(_ name: String, _ file: any StoreFile) throws(IOError) -> Bool? {
        try base.isNamed(name, file)
    }
    func lock(
        _ name: String,
        byte: UInt64,
        kind: LockKind,
        wait: Bool
    ) throws(IOError) -> any FileLock {
        try base.lock(name, byte: byte, kind: kind, wait: wait)
    }
}

@Suite(.verified) struct SuspensionTests {
    private struct Member {
        var engine: Engine?
        /// IDs taken and not used yet, as those of unsaved objects.
        var taken: [ObjectID] = []
        /// What it showed when it was suspended.
        var shown: [UInt64: String]?
    }

    private final class Place {
        let path: String
        let sharesTurns: Bool
        init(sharesTurns: Bool) throws {
            self.sharesTurns = sharesTurns
            path =
                FileManager.default.temporaryDirectory
                .appending(path: "varve-suspension-\(UUID().uuidString)").path
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: true
            )
        }
        deinit { try? FileManager.default.removeItem(atPath: path) }

        func open(_ adjust: (inout EngineOptions) -> Void = { _ in }) throws -> Engine {
            let directory: any StoreDirectory =
                try sharesTurns ? PosixDirectory.open(path: path) : WholeLocks(path)
            return try Engine.openTest(directory) {
                RandomHistory.adjust(&$0)
                $0.compactsAutomatically = false
                $0.turnMilliseconds = 60_000
                $0.idleMilliseconds = 5
                adjust(&$0)
            }
        }
    }

    @Test(
        "Random suspensions lose nothing and give no ID twice",
        arguments: [UInt64(401), 402, 403, 404],
        [false, true]
    )
    func random(seed: UInt64, sharesTurns: Bool) throws {
        var random = SeededRandom(seed: seed)
        let place = try Place(sharesTurns: sharesTurns)
        var members = [Member(), Member(), Member()]
        var model: [UInt64: String] = [:]
        var used: Set<UInt64> = []
        var counts: [String: Int] = [:]
        for step in 0..<160 {
            let index = Int.random(in: 0..<members.count, using: &random)
            let why: Comment = "step \(step), member \(index), seed \(seed)"
            // Where one writes alone the others are away.
            let isInTheWay =
                !sharesTurns
                && members.indices.contains { other in
                    other != index && members[other].engine?.isSuspended == false
                }
            func note(_ what: String) { counts[what, default: 0] += 1 }
            guard let engine = members[index].engine else {
                if isInTheWay { continue }
                members[index].engine = try place.open()
                note("open")
                #expect(try members[index].engine?.contents() == model, why)
                continue
            }
            switch Int.random(in: 0..<12, using: &random) {
            case 0..<4 where !engine.isSuspended:
                // Some IDs are from before a suspension.
                members[index].taken.append(engine.allocateObjectIDs(1))
                let count = min(members[index].taken.count, 3)
                let objects = members[index].taken.suffix(count)
                members[index].taken.removeLast(count)
                try Self.save(engine, Array(objects), step, &model, &used, why)
                #expect(try engine.contents() == model, why)
                note("save")
            case 4..<7:
                if engine.isSuspended {
                    if isInTheWay {
                        let refused = #expect(throws: EngineError.self) { try engine.resume() }
                        #expect(refused?.code == .busy, why)
                        note("busy")
                        continue
                    }
                    try engine.resume()
                    members[index].shown = nil
                    #expect(try engine.contents() == model, why)
                    note("resume")
                } else {
                    try engine.suspend()
                    members[index].shown = try engine.contents()
                    #expect(members[index].shown == model, why)
                    note("suspend")
                }
            case 7 where !engine.isSuspended:
                _ = try engine.compact()
                note("compact")
            case 8:
                members[index].taken += (0..<2).map { _ in engine.allocateObjectIDs(1) }
            case 9:
                try engine.close()
                members[index] = Member()
                note("close")
            case 10 where !engine.isSuspended:
                try engine.checkpoint()
            default:
                guard engine.isSuspended else { continue }
                let refused = #expect(throws: EngineError.self) {
                    try engine.write { try $0.delete(TestDelegate.entity, ObjectID(1)) }
                }
                #expect(refused?.code == .suspended, why)
                #expect(try engine.contents() == members[index].shown, why)
                note("refused")
            }
        }
        for member in members { try member.engine?.close() }
        let last = try place.open()
        #expect(try last.contents() == model)
        try last.close()
        print("suspensions \(counts.sorted { $0.key < $1.key }), seed \(seed)")
        #expect(counts["resume", default: 0] > 3 && counts["save", default: 0] > 5)
    }

    private static func save(
        _ engine: Engine,
        _ objects: [ObjectID],
        _ step: Int,
        _ model: inout [UInt64: String],
        _ used: inout Set<UInt64>,
        _ why: Comment
    ) throws {
        for object in objects {
            #expect(used.insert(object.rawValue).inserted, why)
        }
        _ = try engine.write { transaction in
            for object in objects {
                try transaction.insert(
                    TestDelegate.entity,
                    object,
                    row: row(Int64(step), "\(step)")
                )
            }
        }
        let contents = try engine.contents()
        for object in objects { model[object.rawValue] = contents[object.rawValue] }
    }

    @Test("An engine that others were faster than goes on when nothing happened meanwhile")
    func unchanged() throws {
        for sharesTurns in [false, true] {
            let place = try Place(sharesTurns: sharesTurns)
            let engine = try place.open()
            let first = engine.allocateObjectIDs(1)
            for _ in 0..<4 {
                _ = try engine.write {
                    try $0.insert(
                        TestDelegate.entity,
                        engine.allocateObjectIDs(1),
                        row: row(1, "x")
                    )
                }
                try engine.suspend()
                let held = engine.snapshot()
                try engine.resume()
                #expect(engine.snapshot().number == held.number)
            }
            // IDs stay dense: what was set aside is taken back.
            #expect(engine.allocateObjectIDs(1).rawValue - first.rawValue < 16)
            try engine.close()
        }
    }

    /// The code of the error that `body` throws; nil if it throws none.
    private static func code(_ body: () throws -> Void) -> EngineError.Code? {
        do {
            try body()
            return nil
        } catch {
            return (error as? EngineError)?.code
        }
    }

    private static func save(_ engine: Engine, _ object: UInt64) throws {
        _ = try engine.write {
            try $0.insert(TestDelegate.entity, ObjectID(object), row: row(1, "x"))
        }
    }

    @Test("A poisoned engine gives its locks up too, and a closed one has none")
    func poisoned() throws {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root) { $0.maintenance = .inline }
        disk.setFault(SimulatedDisk.Fault(first: disk.calls + 1, count: 1_000))
        #expect(Self.code { try Self.save(engine, 5) } == .outcomeUnknown)
        disk.setFault(nil)
        try engine.suspend()
        #expect(engine.isSuspended)
        // Another opening gets the lock.
        let other = try Engine.openTest(disk.root) { $0.maintenance = .inline }
        #expect(Self.code { try engine.resume() } == .busy)
        try other.close()
        try engine.resume()
        #expect(Self.code { try Self.save(engine, 6) } == .poisoned)
        try engine.close()
        #expect(Self.code { try engine.suspend() } == .closed)
        #expect(Self.code { try Engine.openTest(disk.root).close() } == nil)
    }

    @Test("A call that fails leaves an engine open or suspended, and what was saved stays")
    func failedCalls() throws {
        var refusals = 0
        for call in 1...6 {
            let disk = SimulatedDisk()
            let engine = try Engine.openTest(disk.root) { $0.maintenance = .inline }
            try Self.save(engine, 5)
            disk.setFault(
                SimulatedDisk.Fault(first: disk.calls + call, code: SimulatedDisk.noSpace)
            )
            let refusal = Self.code { try engine.suspend() }
            disk.setFault(nil)
            #expect((refusal == nil) == engine.isSuspended, "call \(call)")
            if refusal != nil { refusals += 1 }
            #expect(Self.code { try engine.resume() } == nil)
            if refusal == nil || refusal == .noSpace { try Self.save(engine, 6) }
            let count = try engine.contents().count
            disk.kill()
            let again = try Engine.openTest(disk.root)
            #expect(try again.contents().count == count, "call \(call)")
            try again.close()
        }
        #expect(refusals > 0)
    }
}
