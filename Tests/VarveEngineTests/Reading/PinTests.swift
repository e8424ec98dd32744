// Who holds which commits, since when, and what that keeps: against a model.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

/// A monotonic clock that stands still until a test moves it.
private final class StandingClock: Environment {
    let nanoseconds = Mutex<UInt64>(1_000)
    func randomBytes(_ count: Int) -> [UInt8] { SystemEnvironment().randomBytes(count) }
    func monotonicNanoseconds() -> UInt64 { nanoseconds.withLock { $0 } }
    func wallClockMicroseconds() -> Int64 { 5 }
    func processID() -> Int32 { 1 }
    func yield(_ point: YieldPoint) {}
    func advance() -> UInt64 {
        nanoseconds.withLock {
            $0 += 1_000
            return $0
        }
    }
}

@Suite(.verified) struct PinTests {
    private let entity = TestDelegate.entity

    private struct Held {
        var snapshot: Snapshot
        var number: CommitNumber
        var owner: PinOwner
        /// Bounds of the moment that the statistics may name.
        var since: ClosedRange<UInt64>
    }

    private func holders(_ engine: Engine) -> [CommitNumber: [PinOwner: PinnedCommit.Holder]] {
        var result: [CommitNumber: [PinOwner: PinnedCommit.Holder]] = [:]
        for pin in engine.statistics.pins {
            for holder in pin.holders { result[pin.number, default: [:]][holder.owner] = holder }
        }
        return result
    }

    @Test(arguments: [UInt64(11), 12, 13])
    func pinsAreWhatAModelSays(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let clock = StandingClock()
        let engine = try Engine.openTest(MemoryDirectory()) {
            $0.environment = clock
            $0.retention = .all
            $0.inlineValueBytesMax = 300
            $0.nodeWeightMax = 1 << 10
        }
        let owners = [
            PinOwner(.context, label: "view"), PinOwner(.context, label: "import"),
            PinOwner(.snapshot), PinOwner(.blob, label: "b"), PinOwner(.backup),
        ]
        var held: [Held] = []
        // When the newest state became the newest: an unnamed pin may be that old.
        var publishedAt = clock.monotonicNanoseconds()
        var object: UInt64 = 0
        for step in 0..<400 {
            let now = clock.advance()
            switch Int.random(in: 0..<10, using: &random) {
            case 0...2:
                _ = try engine.write {
                    object += 1
                    try $0.insert(entity, ObjectID(object), row: row(1, "row \(object)"))
                }
                publishedAt = now
            case 3:
                try engine.checkpoint()
                publishedAt = max(publishedAt, now)
            case 4, 5:
                let snapshot = engine.snapshot()
                // Its own moment may be a checkpoint's, which comes after the commit's.
                held.append(
                    Held(
                        snapshot: snapshot,
                        number: snapshot.number,
                        owner: PinOwner(.snapshot),
                        since: 0...now
                    )
                )
            case 6:
                let owner = owners[Int.random(in: 0..<owners.count, using: &random)]
                let snapshot = engine.snapshot(for: owner)
                held.append(
                    Held(
                        snapshot: snapshot,
                        number: snapshot.number,
                        owner: owner,
                        since: now...now
                    )
                )
            case 7 where object > 2:
                let oldest = try engine.retainedCommits().lowerBound
                let newest = engine.snapshot().number
                let number = CommitNumber(
                    UInt64.random(in: oldest.rawValue...newest.rawValue, using: &random)
                )
                let owner = PinOwner(.context, label: "past")
                held.append(
                    Held(
                        snapshot: try engine.snapshot(at: number, for: owner),
                        number: number,
                        owner: owner,
                        since: now...now
                    )
                )
            case 8 where step % 40 == 8:
                _ = try engine.compact()
                publishedAt = now
            default:
                if !held.isEmpty {
                    held.remove(at: Int.random(in: 0..<held.count, using: &random))
                }
            }
            let found = holders(engine)
            let expected = Dictionary(grouping: held, by: \.number)
                .mapValues { Dictionary(grouping: $0, by: \.owner) }
            #expect(
                found.mapValues { $0.mapValues(\.count) }
                    == expected.mapValues { $0.mapValues(\.count) },
                "step \(step) of seed \(seed)"
            )
            for (number, byOwner) in expected {
                for (owner, those) in byOwner {
                    let holder = try #require(found[number]?[owner])
                    let first = those.map(\.since.upperBound).min() ?? 0
                    #expect(holder.sinceNanoseconds <= first)
                    if holder.isSinceExact { #expect(holder.sinceNanoseconds == first) }
                    if owner.kind != .snapshot { #expect(holder.isSinceExact) }
                    #expect(holder.ageNanoseconds == now - holder.sinceNanoseconds)
                }
            }
            let statistics = engine.statistics
            #expect(statistics.pinnedSnapshots == held.count)
            let newest = engine.snapshot().number
            #expect(
                statistics.oldestPinnedCommit == (held.map(\.number).min() ?? newest).rawValue
            )
            #expect(statistics.pins.map(\.number) == statistics.pins.map(\.number).sorted())
        }
        held.removeAll()
        #expect(engine.statistics.pins.isEmpty)
    }

    @Test func aPinOfTheNewestCommitKeepsNothing() throws {
        let engine = try Engine.openTest(MemoryDirectory())
        _ = try engine.write { try $0.insert(entity, ObjectID(1), row: row(1, "a")) }
        let snapshot = engine.snapshot(for: PinOwner(.context, label: "view"))
        let pin = try #require(engine.statistics.pins.first)
        #expect(pin.number == snapshot.number)
        #expect(pin.fileBytes == 0 && pin.blobFileBytes == 0 && pin.memoryBytes == 0)
        withExtendedLifetime(snapshot) {}
    }

    /// Changed nodes that the newest commit shares are not the pin's; those it does not are, and go
    /// with it.
    @Test func memoryOfAPinIsWhatTheNewestCommitDoesNotNeed() throws {
        let engine = try Engine.openTest(MemoryDirectory()) { $0.nodeWeightMax = 1 << 10 }
        _ = try engine.write {
            for object in UInt64(1)...400 {
                try $0.insert(entity, ObjectID(object), row: row(Int64(object), "row \(object)"))
            }
        }
        try engine.checkpoint()
        _ = try engine.write {
            for object in UInt64(1)...400 {
                try $0.update(entity, ObjectID(object), patch: patch(nil, "changed \(object)"))
            }
        }
        var all: Snapshot? = engine.snapshot(for: PinOwner(.context, label: "all"))
        func bytes() -> UInt64 { engine.statistics.pins.first?.memoryBytes ?? 0 }
        #expect(bytes() == 0)
        // One row more: the few nodes on its way.
        _ = try engine.write {
            try $0.update(entity, ObjectID(7), patch: patch(nil, "again"))
        }
        let few = bytes()
        #expect(few > 0)
        // Everything is in the file: every changed node is there for the pin alone.
        try engine.checkpoint()
        let many = bytes()
        #expect(many > 4 * few)
        // Two holders of one state do not keep it twice.
        let second = all?.held(for: PinOwner(.blob, label: "b"))
        #expect(bytes() == many)
        #expect(engine.statistics.pins.first?.holders.map(\.count) == [1, 1])
        withExtendedLifetime(second) { all = nil }
    }

    @Test func aLongReaderMakesNoFileGrow() throws {
        var sizes: [UInt64] = []
        for holds in [false, true] {
            let directory = MemoryDirectory()
            let engine = try Engine.openTest(directory) { $0.checkpointTailMin = 4 << 10 }
            _ = try engine.write { try $0.insert(entity, ObjectID(1), row: row(0, "a")) }
            let snapshot = holds ? engine.snapshot() : nil
            for count in 0..<300 {
                _ = try engine.write {
                    try $0.update(entity, ObjectID(1), patch: patch(Int64(count), "b"))
                }
            }
            sizes.append(engine.statistics.logBytes)
            #expect(engine.statistics.pins.allSatisfy { $0.fileBytes == 0 })
            withExtendedLifetime(snapshot) {}
            try engine.close()
        }
        #expect(sizes[0] == sizes[1])
    }

    @Test func aPinFromBeforeACompactionKeepsTheOldFile() throws {
        let engine = try Engine.openTest(MemoryDirectory())
        for object in UInt64(1)...50 {
            _ = try engine.write {
                try $0.insert(entity, ObjectID(object), row: row(1, "row \(object)"))
            }
        }
        var old: Snapshot? = engine.snapshot()
        let size = try #require(try old?.state.generation.log.size())
        #expect(engine.statistics.pins.map(\.fileBytes) == [0])
        _ = try engine.compact()
        #expect(engine.statistics.pins.map(\.fileBytes) == [size])
        #expect(try old?.contents().count == 50)
        // The same commit in both files: still one pinned commit, with both holders.
        let new = engine.snapshot(for: PinOwner(.context, label: "view"))
        #expect(engine.statistics.pins.map(\.number) == [new.number])
        #expect(engine.statistics.pins.first?.holders.count == 2)
        old = nil
        #expect(engine.statistics.pins.map(\.fileBytes) == [0])
        withExtendedLifetime(new) {}
    }

    @Test func blobFilesDroppedSinceArePartOfWhatAPinKeeps() throws {
        let engine = try Engine.openTest(MemoryDirectory())
        func blob(_ count: Int, _ byte: UInt8) throws -> PendingBlob {
            let writer = try engine.makeBlobWriter(externalLimit: 1000)
            try writer.append([UInt8](repeating: byte, count: count))
            return try writer.finish()
        }
        let blobs = [try blob(5_000, 1), try blob(7_000, 2), try blob(300, 3), try blob(9_000, 4)]
        _ = try engine.write {
            for (index, blob) in blobs.enumerated() {
                try $0.insert(
                    entity,
                    ObjectID(UInt64(index) + 1),
                    row: row(1, "x", blob: blob.reference)
                )
            }
        }
        var snapshot: Snapshot? = engine.snapshot()
        func bytes() -> UInt64?? { engine.statistics.pins.first?.blobFileBytes }
        #expect(bytes() == 0)
        // One file, and a small one in the log, which is no file.
        for object: UInt64 in [1, 3] {
            _ = try engine.write { try $0.delete(entity, ObjectID(object)) }
        }
        #expect(bytes() == 5_000)
        _ = try engine.write { try $0.delete(entity, ObjectID(2)) }
        #expect(bytes() == 12_000)
        // Named again: the newest commit keeps it by itself.
        _ = try engine.write {
            try $0.insert(entity, ObjectID(9), row: row(1, "x", blob: blobs[0].reference))
        }
        #expect(bytes() == 7_000)
        try engine.checkpoint()
        #expect(bytes() == 7_000)
        let reader = try #require(try snapshot?.blob(blobs[1].reference))
        #expect(
            engine.statistics.pins.flatMap(\.holders).map(\.owner.kind).sorted {
                $0.rawValue < $1.rawValue
            } == [.blob, .snapshot]
        )
        snapshot = nil
        #expect(bytes() == 7_000)
        #expect(try reader.readAll() == [UInt8](repeating: 2, count: 7_000))
    }
}
