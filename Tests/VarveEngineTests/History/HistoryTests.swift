// The list of commits, snapshots of the past and what each commit changed, against a model.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO

@testable import VarveEngine

@Suite(.verified) struct HistoryTests {
    @Test(arguments: [UInt64(61), 62])
    func everyCommitCanBeSeenAsItWas(seed: UInt64) throws {
        let directory = MemoryDirectory()
        let clock = SetClock()
        func open() throws -> Engine {
            try Engine.openTest(directory) {
                RandomHistory.adjust(&$0)
                $0.environment = clock
            }
        }
        var engine = try open()
        var history = RandomHistory(seed: seed)
        // Dropped blobs in files would be swept: this store keeps its newest commit only.
        history.externalLimit = 4 << 10
        var times: [CommitNumber: Int64] = [:]
        for step in 0..<60 {
            clock.advance()
            let number = try history.commit(engine)
            times[number] = clock.wallClockMicroseconds()
            if step % 13 == 5 { try engine.checkpoint() }
            if step % 17 == 9 {
                try engine.close()
                engine = try open()
            }
        }
        #expect(engine.statistics.treeCommits > 0 && engine.statistics.deltaCommits > 0)
        let numbers = history.states.keys.sorted()
        for number in numbers.shuffled(using: &history.random) {
            let past = try engine.snapshot(at: number)
            #expect(past.number == number)
            #expect(past.schema == [1])
            #expect(try past.everything() == history.states[number], "commit \(number.rawValue)")
            let then = try engine.snapshot(atTime: try #require(times[number]) + 500)
            #expect(then.number == number)
            let changes = try engine.changes(of: number)
            var found: [RowChangeKind: Set<UInt64>] = [:]
            for list in changes.objects { found[list.kind] = Set(list.objects.map(\.rawValue)) }
            #expect(found == history.changes[number])
            #expect(changes.timeMicroseconds == times[number])
        }
        // 0 is the empty store that was created, 1 the schema.
        #expect(try engine.snapshot(at: CommitNumber(0)).schema == [])
        #expect(try engine.retainedCommits() == CommitNumber(0)...numbers[numbers.count - 1])

        let list = try engine.commits(1_000)
        #expect(list.map(\.number) == ([CommitNumber(1)] + numbers).reversed())
        for commit in list where commit.number.rawValue > 1 && commit.form != .settled {
            #expect(commit.timeMicroseconds == times[commit.number])
            #expect(commit.author.hasPrefix("author"))
            #expect(commit.bytes > 0)
            let changed = history.changes[commit.number]
            #expect(commit.counts.first?.added ?? 0 == UInt64(changed?[.inserted]?.count ?? 0))
            #expect(commit.counts.first?.deleted ?? 0 == UInt64(changed?[.deleted]?.count ?? 0))
        }
        let middle = numbers[numbers.count / 2]
        let older = try engine.commits(5, below: middle)
        #expect(older.map(\.number.rawValue) == (1...5).map { middle.rawValue - UInt64($0) })
        print("history of \(numbers.count) commits, seed \(seed)")
    }

    /// The commit in between was made by a clock that was ahead: it is part of what came after it.
    @Test func aMomentShowsWholeCommitsThoughTheClockWasSetBack() throws {
        let clock = SetClock()
        let engine = try Engine.openTest(MemoryDirectory()) { $0.environment = clock }
        for (object, time) in [(UInt64(1), Int64(2_000_000)), (2, 9_000_000), (3, 3_000_000)] {
            clock.microseconds.withLock { $0 = time }
            _ = try engine.write {
                try $0.insert(TestDelegate.entity, ObjectID(object), row: row(1, "a"))
            }
        }
        clock.microseconds.withLock { $0 = 20_000_000 }
        _ = try engine.write {
            try $0.update(TestDelegate.entity, ObjectID(2), patch: patch(5))
        }
        #expect(try engine.snapshot(atTime: 2_500_000).contents().count == 1)
        #expect(try engine.snapshot(atTime: 4_000_000).contents().count == 3)
        #expect(try engine.snapshot(atTime: 10_000_000).contents().count == 3)
        let now = try engine.snapshot(atTime: 20_000_000)
        #expect(now.number == engine.snapshot().number)
    }

    @Test func whatIsNotInTheStoreIsRefusedByName() throws {
        let engine = try Engine.openTest(MemoryDirectory())
        let later = #expect(throws: EngineError.self) { try engine.snapshot(at: CommitNumber(9)) }
        #expect(later?.code == .notRetained)
        #expect(later?.message.contains("commits 0 to 1") == true)
        let early = #expect(throws: EngineError.self) { try engine.snapshot(atTime: 5) }
        #expect(early?.code == .notRetained)
        let changes = #expect(throws: EngineError.self) { try engine.changes(of: CommitNumber(0)) }
        #expect(changes?.code == .notRetained)
    }

    /// A commit that a crash left without proof is written again: it stays in the list under its
    /// own author and can be shown.
    @Test func aSettledCommitKeepsItsPlaceInTheHistory() throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory)
        _ = try engine.write(author: "first") {
            try $0.insert(TestDelegate.entity, ObjectID(1), row: row(1, "a"))
        }
        _ = try engine.write(author: "second") {
            try $0.insert(TestDelegate.entity, ObjectID(2), row: row(2, "b"))
        }
        let again = try Engine.openTest(directory.copyForCrash(), mode: .existing)
        #expect(again.statistics.settledCommits == 1)
        _ = try again.write(author: "third") { try $0.delete(TestDelegate.entity, ObjectID(1)) }
        let list = try again.commits()
        #expect(list.map(\.author) == ["third", "second", "first", ""])
        #expect(list[1].form == .settled)
        #expect(try again.snapshot(at: list[1].number).contents().count == 2)
        #expect(try again.snapshot(at: list[2].number).contents().count == 1)
    }

    /// The past pins what it shows: files of blobs stay until the snapshot goes.
    @Test func aSnapshotOfThePastKeepsItsBlobs() throws {
        let engine = try Engine.openTest(MemoryDirectory())
        let bytes = [UInt8](repeating: 7, count: 900)
        func insertWithBlob() throws -> (BlobReference, CommitNumber?) {
            let writer = try engine.makeBlobWriter(externalLimit: 100)
            try writer.append(bytes)
            let pending = try writer.finish()
            let (_, commit) = try engine.write {
                try $0.insert(
                    TestDelegate.entity,
                    ObjectID(1),
                    row: row(1, "a", blob: pending.reference)
                )
            }
            return (pending.reference, commit)
        }
        let (reference, first) = try insertWithBlob()
        _ = try engine.write { try $0.insert(TestDelegate.entity, ObjectID(2), row: row(2, "b")) }
        let past = try engine.snapshot(at: try #require(first))
        _ = try engine.write { try $0.delete(TestDelegate.entity, ObjectID(1)) }
        try engine.checkpoint()
        #expect(try past.blob(reference)?.readAll() == bytes)
        #expect(engine.statistics.oldestPinnedCommit == first?.rawValue)
    }
}
