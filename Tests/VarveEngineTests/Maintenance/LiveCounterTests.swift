// The counter file: written now and then, never needed, and read with suspicion.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

/// Clocks that a test sets.
private final class CounterClock: Environment {
    let nanoseconds = Mutex<UInt64>(0)
    func randomBytes(_ count: Int) -> [UInt8] { SystemEnvironment().randomBytes(count) }
    func monotonicNanoseconds() -> UInt64 { nanoseconds.withLock { $0 } }
    func wallClockMicroseconds() -> Int64 {
        Int64(nanoseconds.withLock { $0 } / 1_000) + 1_000_000
    }
    func processID() -> Int32 { 4411 }
    func yield(_ point: YieldPoint) {}
    func advance(seconds: UInt64) { nanoseconds.withLock { $0 += seconds * 1_000_000_000 } }
}

@Suite(.verified) struct LiveCounterTests {
    private static let name = "test.varve-live"

    private func bytes(_ directory: any StoreDirectory) throws -> [UInt8] {
        let file = try directory.openFile(Self.name, mode: .read)
        return try file.read(at: FileOffset(0), count: LiveCounters.lengthMax)
    }

    private func insert(_ engine: Engine, _ object: UInt64) throws {
        _ = try engine.write {
            try $0.insert(TestDelegate.entity, ObjectID(object), row: row(1, "a"))
        }
    }

    @Test func theNamesFitTheStatistics() {
        var statistics = EngineStatistics()
        #expect(statistics.liveCounters.count == LiveCounters.names.count)
        #expect(Set(LiveCounters.names).count == LiveCounters.names.count)
        statistics.treeCommits = 2
        statistics.oldestPinnedCommit = 3
        statistics.syncTimes = [4]
        let values = Dictionary(
            uniqueKeysWithValues: zip(LiveCounters.names, statistics.liveCounters)
        )
        #expect(values["treeCommits"] == 2 && values["oldestPinnedCommit"] == 3)
        #expect(values["syncTimes0"] == 4 && values["syncTimes15"] == 0)
    }

    @Test func thereIsNoFileUnlessItIsAskedFor() throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory)
        try insert(engine, 1)
        try engine.close()
        #expect(try !directory.exists(Self.name))
    }

    @Test func countersAreWrittenAtMostOnceASecondAndAtTheEnd() throws {
        let directory = MemoryDirectory()
        let clock = CounterClock()
        let engine = try Engine.openTest(directory) {
            $0.environment = clock
            $0.writesLiveCounters = true
        }
        func counters() throws -> LiveCounters { try LiveCounters(decoding: bytes(directory)) }
        func value(_ name: String) throws -> UInt64? {
            try counters().named.first { $0.name == name }?.value
        }
        #expect(try counters().sequence == 1 && !counters().isClosed)
        #expect(try counters().processID == 4411 && counters().openedMicroseconds == 1_000_000)
        #expect(try counters().fileID == engine.snapshot().state.generation.header.fileID)
        try insert(engine, 1)
        engine.writeLiveCounters()
        #expect(try counters().sequence == 1)
        clock.advance(seconds: 1)
        engine.writeLiveCounters()
        #expect(try counters().sequence == 2)
        #expect(try value("newestCommit") == engine.statistics.newestCommit)
        #expect(try value("bytesWritten") == engine.statistics.bytesWritten)
        // Nothing happened: no write, but for a sign of life.
        clock.advance(seconds: 2)
        engine.writeLiveCounters()
        #expect(try counters().sequence == 2)
        clock.advance(seconds: 10)
        engine.writeLiveCounters()
        #expect(try counters().sequence == 3 && counters().writtenMicroseconds == 14_000_000)
        try engine.close()
        #expect(try counters().isClosed && counters().sequence == 4)
        try engine.close()
        #expect(try counters().sequence == 4)
        // The next opening takes the file over.
        let again = try Engine.openTest(directory) {
            $0.environment = clock
            $0.writesLiveCounters = true
        }
        #expect(try !counters().isClosed && counters().sequence == 1)
        try again.close()
    }

    /// The file's name is taken by something that cannot be written: the store does not care.
    @Test func aFailureToWriteFailsNothing() throws {
        let directory = MemoryDirectory()
        _ = try directory.directory(Self.name, create: true)
        let clock = CounterClock()
        let engine = try Engine.openTest(directory) {
            $0.environment = clock
            $0.writesLiveCounters = true
        }
        for object in UInt64(1)...5 {
            clock.advance(seconds: 2)
            try insert(engine, object)
            engine.writeLiveCounters()
        }
        try engine.close()
        #expect(try Engine.openTest(directory).contents().count == 5)
    }

    @Test(arguments: [UInt64(21), 22]) func hostileBytesAreErrors(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let counters = LiveCounters(
            isClosed: false,
            fileID: UUIDValue(high: 1, low: 2),
            processID: 3,
            openedMicroseconds: 4,
            writtenMicroseconds: 5,
            sequence: 6,
            values: (0..<45).map { UInt64($0) }
        )
        let good = counters.encoded()
        #expect(try LiveCounters(decoding: good) == counters)
        for length in 0..<good.count {
            #expect(throws: FormatError.self, "length \(length)") {
                try LiveCounters(decoding: Array(good[..<length]))
            }
        }
        for _ in 0..<2_000 {
            var bad = good
            let count = Int.random(in: 1...4, using: &random)
            for _ in 0..<count {
                let place = Int.random(in: 0..<bad.count, using: &random)
                bad[place] ^= UInt8.random(in: 1...255, using: &random)
            }
            if bad == good { continue }
            #expect(throws: FormatError.self, "seed \(seed)") { try LiveCounters(decoding: bad) }
        }
        for _ in 0..<200 {
            let noise = (0..<Int.random(in: 0..<600, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            #expect(throws: FormatError.self) { try LiveCounters(decoding: noise) }
            #expect(throws: FormatError.self) {
                try LiveCounters(decoding: LiveCounters.magic + noise)
            }
        }
        #expect(throws: FormatError.self) { try LiveCounters(decoding: good + [0]) }
        // A newer library has more counters: those that are known are read.
        var more = counters
        more.values += [7, 8, 9]
        #expect(try LiveCounters(decoding: more.encoded()).named.count == LiveCounters.names.count)
    }
}
