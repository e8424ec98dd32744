// Unproven commits for whose settle a full disk has no room: they are written again in place.

import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Commits without proof on a full disk", .verified) struct FullDiskSettleTests {
    /// What nothing proves.
    enum Load: Sendable {
        /// A row: it has room.
        case row
        /// Row changes of one transaction.
        case rows
        /// Pages that a transaction wrote on its way.
        case pages
        /// Texts that leave their rows, and blobs.
        case values
        /// Many saves that nothing synced.
        case relaxed

        /// Those that are larger than all that a full disk has left.
        static let large: [Load] = [.rows, .pages, .values, .relaxed]
    }

    private static func adjust(_ options: inout EngineOptions) {
        options.maintenance = .inline
        options.relaxedSyncMilliseconds = 3_600_000
        options.tailRoomMin = 32 << 10
        options.tailRoomMax = 64 << 10
        options.tailReserve = 16 << 10
        options.earlyWriteBytes = 32 << 10
    }

    private static func open(_ disk: SimulatedDisk) throws -> Engine {
        try Engine.openTest(disk.root, adjust)
    }

    private static func insert(
        _ engine: Engine,
        _ objects: ClosedRange<UInt64>,
        letters: Int = 40,
        blobs: [PendingBlob] = [],
        _ durability: Durability = .full
    ) throws {
        var random = SeededRandom(seed: objects.lowerBound)
        _ = try engine.write(durability: durability) { transaction in
            for object in objects {
                // Nothing that LZ4 makes short.
                let text = random.bytes(letters).map { String(UnicodeScalar(33 + $0 % 90)) }
                let blob = blobs.isEmpty ? nil : blobs[Int(object) % blobs.count].reference
                try transaction.insert(
                    TestDelegate.entity,
                    ObjectID(object),
                    row: row(Int64(object), text.joined(), blob: blob)
                )
            }
        }
    }

    private static func blob(_ engine: Engine, _ seed: UInt64) throws -> PendingBlob {
        var random = SeededRandom(seed: seed)
        let writer = try engine.makeBlobWriter(externalLimit: 8 << 10)
        try writer.append(random.bytes(seed % 2 == 0 ? 4 << 10 : 12 << 10))
        return try writer.finish()
    }

    /// A store with some rows on disk for sure, and a load behind them that was written and whose
    /// sync did not begin.
    private struct Crash {
        let state: SimulatedDisk.State
        let file: Int
        let acknowledged: [UInt64: String]
        let written: [UInt64: String]

        init(_ load: Load) throws {
            let disk = SimulatedDisk()
            let engine = try Engine.openTest(disk.root) {
                FullDiskSettleTests.adjust(&$0)
                $0.deltaBytesMax = load == .pages ? 4 << 10 : 1 << 20
            }
            try insert(engine, 1...40)
            try engine.checkpoint()
            try insert(engine, 41...50)
            acknowledged = try engine.contents()
            disk.record()
            switch load {
            case .row: try insert(engine, 100...100)
            case .rows: try insert(engine, 100...1_000)
            case .pages: try insert(engine, 100...1_500, letters: 100)
            case .values:
                let blobs = try (1...6).map { try blob(engine, $0) }
                try insert(engine, 100...115, letters: 5_000, blobs: blobs)
            case .relaxed:
                for save in UInt64(0)..<60 {
                    let first = 100 + save * 20
                    try insert(engine, first...(first + 19), .relaxed)
                }
            }
            written = try engine.contents()
            let recording = disk.takeRecording()
            var state = disk.state
            if load != .relaxed {
                let last = recording.steps.lastIndex {
                    if case .sync = $0.operation { true } else { false }
                }
                state = recording.state(before: try #require(last))
            }
            self.state = state
            file = try #require(state.file("test.varve"))
            disk.kill()
            withExtendedLifetime(engine) {}
        }

        /// The next process's disk: not a byte more than what the file has finds space.
        func full(_ change: (inout SimulatedDisk.State) -> Void = { _ in }) -> SimulatedDisk {
            var state = state
            change(&state)
            let disk = SimulatedDisk(state)
            disk.setFault(
                SimulatedDisk.Fault(
                    first: 1,
                    count: .max,
                    code: SimulatedDisk.noSpace,
                    writesPast: state.files[file]?.cache.count ?? 0
                )
            )
            return disk
        }
    }

    /// Every settle writes behind the log, and found no room there: the store was not opened, and
    /// nothing could be deleted.
    @Test("They are there, things are deleted, and the store shrinks", arguments: Load.large)
    func deletes(_ load: Load) throws {
        let crash = try Crash(load)
        let disk = crash.full()
        var engine = try Self.open(disk)
        #expect(engine.statistics.settledInPlace > 0)
        #expect(try engine.contents() == crash.written)
        var expected = crash.written
        for round in 0..<3 {
            let objects = expected.keys.sorted().dropFirst(5).prefix(round == 2 ? 1_000 : 10)
            _ = try engine.write { transaction in
                for object in objects {
                    try transaction.delete(TestDelegate.entity, ObjectID(object))
                }
            }
            for object in objects { expected[object] = nil }
            let before = engine
            disk.kill()
            engine = try Self.open(disk)
            withExtendedLifetime(before) {}
            #expect(try engine.contents() == expected, "round \(round)")
        }
        let error = #expect(throws: EngineError.self) {
            try Self.insert(engine, 5_000...5_999)
        }
        #expect(error?.code == .noSpace)
        _ = try engine.compact()
        try Self.insert(engine, 5_000...5_009)
        expected = try engine.contents()
        try engine.close()
        disk.kill()
        let last = try Self.open(disk)
        #expect(last.statistics.settledCommits == 0)
        #expect(try last.contents() == expected)
        try last.close()
        #expect(disk.violations == [])
    }

    /// What an opening has shown stays, and what was acknowledged is there, wherever the power
    /// goes.
    @Test("The power goes at each call of the opening, and behind it", arguments: Load.large)
    func power(_ load: Load) throws {
        let crash = try Crash(load)
        let disk = crash.full()
        disk.record()
        let engine = try Self.open(disk)
        #expect(engine.statistics.settledInPlace > 0)
        var random = SeededRandom(seed: 7)
        let recording = disk.takeRecording()
        #expect(recording.steps.count >= 3)
        for (state, _) in recording {
            for _ in 0..<6 {
                let found = try Self.open(SimulatedDisk.powerCut(state, &random)).contents()
                for (object, row) in crash.acknowledged { #expect(found[object] == row) }
                for (object, row) in found { #expect(crash.written[object] == row) }
                if load != .relaxed {
                    #expect([crash.acknowledged.count, crash.written.count].contains(found.count))
                }
            }
        }
        for _ in 0..<4 {
            let left = SimulatedDisk(disk.state.after(CrashImage()))
            #expect(try Self.open(left).contents() == crash.written)
        }
        // A commit behind it proves them, and is lost alone.
        disk.record()
        _ = try engine.write { try $0.delete(TestDelegate.entity, ObjectID(1)) }
        var after = crash.written
        after[1] = nil
        for (state, _) in disk.takeRecording() {
            for _ in 0..<6 {
                let found = try Self.open(SimulatedDisk.powerCut(state, &random)).contents()
                #expect([after, crash.written].contains(found))
            }
        }
        #expect(disk.violations == [])
    }

    /// The system shows what a failed sync has lost, forgets some of it at any time, and no sync
    /// writes it: only what is written again counts.
    @Test("A sync failed before", arguments: Load.large)
    func failedSync(_ load: Load) throws {
        let crash = try Crash(load)
        var shown: Set<Int> = []
        for number in 0..<8 {
            let disk = crash.full { $0.apply(.loseSync(file: crash.file)) }
            // Which pages the system forgets hangs on the calls so far.
            let folder = disk.root
            for other in 0..<number { _ = try folder.openFile("x\(other)", mode: .createExclusive) }
            let engine = try Self.open(disk)
            let found = try engine.contents()
            shown.insert(found.count)
            for (object, row) in crash.acknowledged { #expect(found[object] == row) }
            let left = SimulatedDisk(disk.state.after(CrashImage()))
            #expect(try Self.open(left).contents() == found, "case \(number)")
            _ = try engine.write { try $0.delete(TestDelegate.entity, ObjectID(1)) }
            let later = try engine.contents()
            let end = SimulatedDisk(disk.state.after(CrashImage()))
            #expect(try Self.open(end).contents() == later, "case \(number)")
            #expect(disk.violations == [])
        }
        #expect(shown.contains(crash.written.count), "one of them shows all")
    }

    /// The system forgets a page between the reading of the log and its writing: what was read
    /// cannot be made certain any more.
    @Test("A body that is not the one that was read is not written again")
    func bytesThatGo() throws {
        let crash = try Crash(.pages)
        // Reads of the opening, counted.
        let first = crash.full()
        _ = try Self.open(first)
        let reads = first.reads
        var refusals = 0
        // Those of its end, and some of the others.
        let others = stride(from: 1, to: max(2, reads - 40), by: max(1, reads / 20))
        for read in Array(others) + (max(1, reads - 40)...reads) {
            let disk = crash.full()
            disk.setReadFault(SimulatedDisk.ReadFault(first: read, kind: .zeros))
            do {
                let engine = try Self.open(disk)
                let found = try engine.contents()
                #expect([crash.written, crash.acknowledged].contains(found))
            } catch let error as EngineError where error.code == .ioFailed {
                refusals += 1
            } catch let error as EngineError {
                #expect([.damaged, .notAStore].contains(error.code), "read \(read): \(error)")
            }
            disk.setReadFault(nil)
            // Nothing wrong was written.
            let left = SimulatedDisk(disk.state.after(.everything(of: disk.state)))
            #expect(try Self.open(left).contents() == crash.written, "read \(read)")
            #expect(disk.violations == [])
        }
        #expect(refusals > 0)
        print("refused \(refusals), reads \(reads)")
    }

    /// The sync of a settle said that there is no space, and the same commits were written once
    /// more behind that settle, which held them already: the next opening called the store damaged.
    @Test("A sync that finds no space ends the opening", arguments: [Load.row, .rows, .relaxed])
    func syncWithoutSpace(_ load: Load) throws {
        let crash = try Crash(load)
        let counted = SimulatedDisk(crash.state)
        _ = try Self.open(counted)
        let calls = counted.calls
        #expect(calls > 3)
        for call in 1...calls {
            let disk = SimulatedDisk(crash.state)
            disk.setFault(SimulatedDisk.Fault(first: call, code: SimulatedDisk.noSpace))
            do {
                #expect(try Self.open(disk).contents() == crash.written, "call \(call)")
            } catch let error as EngineError {
                #expect([.noSpace, .poisoned].contains(error.code), "call \(call): \(error)")
            }
            disk.setFault(nil)
            disk.kill()
            let again = try Self.open(disk)
            let found = try again.contents()
            for (object, row) in crash.acknowledged { #expect(found[object] == row) }
            for (object, row) in found { #expect(crash.written[object] == row) }
            let left = SimulatedDisk(disk.state.after(CrashImage()))
            #expect(try Self.open(left).contents() == found, "call \(call)")
        }
    }

    /// The last 8 bytes of the newest frame did not arrive, so the data seems to end with a page:
    /// the log would have gone on inside that frame, and the next commit named one that reaches
    /// into its body.
    @Test("The log goes on behind a frame whose tail word did not arrive")
    func tailWord() throws {
        for letters in 3_000..<3_600 {
            let disk = SimulatedDisk()
            let engine = try Self.open(disk)
            try Self.insert(engine, 1...1, letters: 10)
            try Self.insert(engine, 2...4, letters: 1_000)
            try Self.insert(engine, 5...5, letters: letters % 1_500)
            let expected = try engine.contents()
            let file = try #require(disk.state.file("test.varve"))
            let bytes = try #require(disk.state.files[file]?.cache)
            let end = bytes.countWithoutTrailingZeros
            guard end > 0, (end + 7) & ~7 & 4095 == 8 else { continue }
            let next = disk.killed()
            next.state.overwrite(file, at: (end + 7) & ~7 - 8, [UInt8](repeating: 0, count: 8))
            next.setFault(
                SimulatedDisk.Fault(
                    first: 1,
                    count: .max,
                    code: SimulatedDisk.noSpace,
                    writesPast: end
                )
            )
            let again = try Self.open(next)
            #expect(again.statistics.settledInPlace == 1)
            #expect(try again.contents() == expected)
            next.setFault(nil)
            try Self.insert(again, 6...6)
            let more = try again.contents()
            let last = try Self.open(SimulatedDisk(next.state.after(CrashImage())))
            #expect(try last.contents() == more)
            #expect(next.violations == [])
            return
        }
        Issue.record("no frame ends so")
    }
}
