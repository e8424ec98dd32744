// Calls that fail and power that goes at any call, on a simulated disk.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

/// What a store should hold: text and integer of each row as `contents()` spells them, its blob.
private struct Model: Equatable {
    var rows: [UInt64: String] = [:]
    var blobs: [UInt64: [UInt8]] = [:]

    mutating func set(_ object: UInt64, _ int: Int64, _ text: String, _ blob: [UInt8]?) {
        let values: [StoredValue?] = [.int(int), .text(text)]
        rows[object] = "\(values)"
        blobs[object] = blob
    }

    /// Whether the engine holds exactly this.
    func fits(_ engine: Engine) throws -> Bool {
        guard try engine.contents() == rows else { return false }
        let snapshot = engine.snapshot()
        for object in rows.keys.sorted() {
            let row = try snapshot.row(TestDelegate.rows, ObjectID(object))
            var content: [UInt8]?
            if let row, case .blob(let reference) = try RowView(row.bytes).value(ColumnID(2)) {
                content = try snapshot.blob(reference)?.readAll()
                guard content != nil else { return false }
            }
            guard content == blobs[object] else { return false }
        }
        return true
    }
}

/// Random transactions on a simulated disk, with blobs, checkpoints, closes and kills.
private struct Workload {
    let disk: SimulatedDisk
    var random: SeededRandom
    var engine: Engine
    /// Engines of processes that were killed: kept, so that none of them closes its store.
    var killed: [Engine] = []
    var model = Model()
    var next: UInt64 = 0

    static func adjust(_ options: inout EngineOptions) {
        options.nodeWeightMax = 512
        options.tailRoomMin = 4096
        options.tailRoomMax = 8 << 10
        options.checkpointTailMin = 6 << 10
        options.checkpointTailMax = 6 << 10
        options.deltaBytesMax = 3 << 10
        options.earlyWriteBytes = 12 << 10
        options.inlineValueBytesMax = 256
        options.sortBytesMax = 1 << 10
        options.appendedBytesMax = 3 << 10
        options.changedBytesMax = 5 << 10
    }

    static func open(_ disk: SimulatedDisk) throws -> Engine {
        try Engine.openTest(disk.root, adjust)
    }

    init(_ disk: SimulatedDisk, seed: UInt64) throws {
        self.disk = disk
        random = SeededRandom(seed: seed)
        engine = try Self.open(disk)
    }

    mutating func reopen() throws {
        disk.kill()
        killed.append(engine)
        engine = try Self.open(disk)
    }

    /// A blob of few different contents, so that they meet again.
    private mutating func blob(_ pending: inout [PendingBlob]) throws -> BlobReference? {
        guard Int.random(in: 0..<3, using: &random) == 0 else { return nil }
        let size = [40, 90, 700, 900].randomElement(using: &random) ?? 40
        let letter = UInt8.random(in: 1...3, using: &random)
        let writer = try engine.makeBlobWriter(externalLimit: 500)
        try writer.append((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) &+ letter })
        pending.append(try writer.finish())
        return pending.last?.reference
    }

    /// Runs one transaction. `plan` gets what the store holds if it commits, before it does.
    mutating func step(_ plan: (Model) -> Void) throws -> Model {
        var after = model
        var pending: [PendingBlob] = []
        var live = model.rows.keys.sorted()
        var changes: [(WriteTransaction) throws -> Void] = []
        // Now and then so much that pages are written early.
        let isLarge = Int.random(in: 0..<8, using: &random) == 0
        for _ in 0..<(isLarge ? 60 : Int.random(in: 1...8, using: &random)) {
            let length = Int.random(in: 0..<10, using: &random) == 0 ? 600 : 12
            let text = String(
                (0..<length).map { _ in "abcdefgh".randomElement(using: &random) ?? "a" }
            )
            let int = Int64.random(in: 0...50, using: &random)
            let kind = Int.random(in: 0..<10, using: &random)
            let entity = TestDelegate.entity
            let reference = try blob(&pending)
            let content = try pending.last.flatMap { $0.reference == reference ? $0 : nil }?
                .open().readAll()
            if live.isEmpty || kind < 6 || isLarge {
                next += 1
                let object = next
                live.append(object)
                after.set(object, int, text, content)
                changes.append {
                    try $0.insert(entity, ObjectID(object), row: row(int, text, blob: reference))
                }
            } else {
                let index = Int.random(in: 0..<live.count, using: &random)
                let object = live[index]
                if kind < 8 {
                    after.set(object, int, text, content)
                    let patch = RowPatch.encode([
                        (ColumnID(0), .int(int)), (ColumnID(1), .text(text)),
                        (ColumnID(2), reference.map { .blob($0) } ?? .null),
                    ])
                    changes.append { try $0.update(entity, ObjectID(object), patch: patch) }
                } else {
                    live.remove(at: index)
                    after.rows[object] = nil
                    after.blobs[object] = nil
                    changes.append { try $0.delete(entity, ObjectID(object)) }
                }
            }
        }
        plan(after)
        _ = try engine.write { transaction in for change in changes { try change(transaction) } }
        return after
    }
}

@Suite(.verified) struct FaultTests {
    /// At calls that change the disk the power goes, then again while the next opening mends what
    /// that left: the store holds the last acknowledged state, or the one that was being saved.
    @Test(arguments: [UInt64(41), 42])
    func thePowerMayGoAtAnyCallAndAgainInTheRecovery(seed: UInt64) throws {
        let disk = SimulatedDisk()
        var work = try Workload(disk, seed: seed)
        var states = [Model()]
        disk.record()
        for step in 0..<26 {
            work.model = try work.step { states.append($0) }
            disk.note(states.count - 1)
            switch step % 9 {
            case 3: try work.engine.checkpoint()
            case 5:
                try work.engine.close()
                try work.reopen()
            case 8: try work.reopen()
            default: break
            }
        }
        #expect(try work.model.fits(work.engine))
        let history = disk.takeRecording()
        #expect(disk.violations == [])
        var random = SeededRandom(seed: seed)
        var cases = 0
        for (state, note) in history where Bool.random(using: &random) {
            let allowed = states[note...min(note + 1, states.count - 1)]
            let image = SimulatedDisk.powerCut(state, &random)
            image.record()
            let engine = try Workload.open(image)
            let found = try allowed.first { try $0.fits(engine) }
            #expect(found != nil, "call \(cases): neither acknowledged nor started")
            guard let found else { return }
            // What opened stays, wherever the power goes now.
            let recovery = Array(image.takeRecording())
            let settled = image.state
            let second = try Workload.open(SimulatedDisk.powerCut(settled, &random))
            #expect(try found.fits(second), "call \(cases): the answer changed")
            if let moment = recovery.randomElement(using: &random) {
                let third = try Workload.open(SimulatedDisk.powerCut(moment.state, &random))
                #expect(
                    try allowed.contains { try $0.fits(third) },
                    "call \(cases): a crash in the recovery"
                )
            }
            // And the store goes on.
            if cases % 4 == 0 {
                _ = try engine.write {
                    try $0.insert(TestDelegate.entity, ObjectID(1 << 40), row: row(1, "new"))
                }
                var more = found
                more.set(1 << 40, 1, "new", nil)
                let state = image.state
                let last = try Workload.open(SimulatedDisk.powerCut(state, &random))
                #expect(try more.fits(last), "call \(cases): the next commit is gone")
            }
            #expect(image.violations == [])
            cases += 1
        }
        #expect(cases > 80)
        print("power cuts \(cases), seed \(seed)")
    }

    /// The question may fail as any call may; then it is asked of the next opening.
    private static func ask(_ work: inout Workload, _ commit: CommitIdentity) -> CommitOutcome {
        for _ in 0..<1_000 {
            if let answer = try? work.engine.outcome(of: commit) { return answer }
            try? work.reopen()
        }
        return .unknown
    }

    /// Each call fails once, or again and again: what was acknowledged stays, what was refused is
    /// absent, what is unknown is known after the next opening, and a power cut changes no answer.
    @Test(arguments: [(UInt64(51), Int32(5), 1), (52, SimulatedDisk.noSpace, 3)])
    func anyCallMayFail(seed: UInt64, code: Int32, count: Int) throws {
        var calls = 1
        var first = 1
        var random = SeededRandom(seed: seed)
        var seen: [EngineError.Code: Int] = [:]
        var answered: [CommitOutcome: Int] = [:]
        while first <= calls {
            let disk = SimulatedDisk()
            var work = try Workload(disk, seed: seed)
            let start = disk.calls
            disk.setFault(SimulatedDisk.Fault(first: start + first, count: count, code: code))
            var answers: [CommitIdentity: CommitOutcome] = [:]
            for step in 0..<12 {
                var planned: Model?
                var unknown: CommitIdentity?
                do {
                    work.model = try work.step { planned = $0 }
                    if step % 5 == 2 { try work.engine.checkpoint() }
                    if step % 5 == 4 {
                        try work.engine.close()
                        try work.reopen()
                    }
                    continue
                } catch let error as EngineError {
                    seen[error.code, default: 0] += 1
                    #expect((error.code == .outcomeUnknown) == (error.commit != nil))
                    unknown = error.commit
                    if let commit = unknown {
                        #expect(try work.engine.outcome(of: commit) == .unknown, "call \(first)")
                    }
                    let isOpen = [.noSpace, .ioFailed].contains(error.code) && step % 5 != 4
                    if isOpen {
                        #expect(try work.model.fits(work.engine), "call \(first): half a refusal")
                        continue
                    }
                    if error.code == .outcomeUnknown || error.code == .poisoned {
                        #expect(try work.model.fits(work.engine), "call \(first): reads go on")
                    }
                }
                while true {
                    do {
                        try work.reopen()
                        break
                    } catch is EngineError {}
                }
                let isThere = try planned.map { try $0.fits(work.engine) } ?? false
                if let planned, isThere { work.model = planned }
                #expect(try work.model.fits(work.engine), "call \(first): not as acknowledged")
                if let commit = unknown {
                    let answer = Self.ask(&work, commit)
                    #expect(answer == (isThere ? .present : .absent), "call \(first): \(commit)")
                    answers[commit] = answer
                    answered[answer, default: 0] += 1
                }
            }
            #expect(try work.model.fits(work.engine))
            #expect(disk.violations == [], "call \(first)")
            let again = try Workload.open(disk.killed())
            #expect(try work.model.fits(again), "call \(first): lost by a kill")
            let cut = try Workload.open(SimulatedDisk.powerCut(disk.state, &random))
            #expect(try work.model.fits(cut), "call \(first): lost by a power cut")
            for (commit, answer) in answers {
                #expect(try again.outcome(of: commit) == answer, "call \(first): \(commit)")
                #expect(try cut.outcome(of: commit) == answer, "call \(first): \(commit)")
            }
            calls = max(calls, disk.calls - start)
            first += Int.random(in: 3...13, using: &random)
        }
        #expect(seen[.outcomeUnknown, default: 0] > 0)
        #expect(answered[.unknown] == nil)
        #expect(answered.values.reduce(0, +) == seen[.outcomeUnknown])
        print("failing calls \(calls), code \(code): \(seen), \(answered)")
    }
}
