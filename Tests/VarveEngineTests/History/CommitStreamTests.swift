// The commits after one of them, oldest first: against a model, behind a crash, and what they cost.

import Testing
import VarveBase
import VarveFormat
import VarveIO

@testable import VarveEngine

@Suite(.verified) struct CommitStreamTests {
    private static func all(
        _ engine: Engine,
        after number: CommitNumber?
    ) throws -> [HistoryEntry] {
        var stream = try engine.commits(after: number)
        var entries: [HistoryEntry] = []
        while let entry = try stream.next() { entries.append(entry) }
        return entries
    }

    @Test(arguments: [UInt64(81), 82, 83])
    func `What comes after each commit is what the model says`(seed: UInt64) throws {
        let directory = MemoryDirectory()
        func open() throws -> Engine {
            try Engine.openTest(directory) { RandomHistory.adjust(&$0) }
        }
        var engine = try open()
        var history = RandomHistory(seed: seed)
        for step in 0..<60 {
            try history.commit(engine)
            if step % 13 == 5 { try engine.checkpoint() }
            if step % 17 == 9 {
                try engine.close()
                engine = try open()
            }
        }
        let numbers = history.states.keys.sorted()
        for number in [CommitNumber(1)] + numbers {
            let entries = try Self.all(engine, after: number)
            #expect(entries.map(\.summary.number) == numbers.filter { $0 > number })
            for entry in entries {
                var found: [RowChangeKind: Set<UInt64>] = [:]
                for list in entry.changes.objects {
                    found[list.kind] = Set(list.objects.map(\.rawValue))
                }
                #expect(found == history.changes[entry.summary.number], "seed \(seed)")
                #expect(entry.known == .exactly && !entry.changes.schemaChanged)
            }
        }
        let whole = try Self.all(engine, after: nil)
        #expect(whole.map(\.summary) == (try engine.commits(1_000)).reversed())
        #expect(whole.first?.changes.schemaChanged == true)
    }

    /// Commits that a crash left without proof are written again as one: what they changed is told
    /// once, by the last of them.
    @Test func `Commits that were written again together are told together`() throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory) {
            $0.maintenance = .inline
            $0.relaxedSyncMilliseconds = 100_000
        }
        func insert(_ object: UInt64, _ durability: Durability) throws {
            _ = try engine.write(author: "author \(object)", durability: durability) {
                try $0.insert(TestDelegate.entity, ObjectID(object), row: row(1, "a"))
            }
        }
        try insert(1, .full)
        for object in UInt64(2)...4 { try insert(object, .relaxed) }
        let again = try Engine.openTest(directory.copyForCrash(), mode: .existing)
        let entries = try Self.all(again, after: CommitNumber(1))
        #expect(entries.map(\.summary.number.rawValue) == [2, 3, 4, 5])
        let last = try #require(entries.last)
        guard case .together(let first) = last.known else {
            Issue.record("\(last.known)")
            return
        }
        for entry in entries
        where entry.summary.number >= first && entry.summary.number.rawValue < 5 {
            #expect(entry.known == .later(in: CommitNumber(5)))
            #expect(entry.changes.objects.isEmpty)
        }
        let told = entries.flatMap(\.changes.objects).flatMap { Array($0.objects) }
        #expect(told.map(\.rawValue).sorted() == [1, 2, 3, 4])
        #expect(entries.map(\.summary.author) == (1...4).map { "author \($0)" })
        // Whoever remembers one of them is told of everything after it.
        let epoch = entries[1].summary.epoch
        let standing = try again.standing(of: CommitIdentity(epoch: epoch, number: 3))
        #expect(standing == .retained)
        #expect(try Self.all(again, after: CommitNumber(3)).last?.known == last.known)
    }

    @Test func `The end of a long history costs what it is`() throws {
        for count in [2_000, 4_000] {
            let engine = try Engine.openTest(MemoryDirectory()) {
                $0.maintenance = .inline
                $0.checkpointTailMin = 32 << 10
                $0.checkpointTailMax = 32 << 10
            }
            for object in 1...UInt64(count) {
                _ = try engine.write {
                    try $0.insert(TestDelegate.entity, ObjectID(object), row: row(1, "a"))
                }
            }
            func cost(_ commits: Int, taking taken: Int? = nil) throws -> Int {
                let newest = engine.snapshot().number.rawValue
                var stream = try engine.commits(after: CommitNumber(newest - UInt64(commits)))
                var found = 0
                while found < taken ?? .max, try stream.next() != nil { found += 1 }
                #expect(found == taken ?? commits)
                return stream.framesRead
            }
            // Each is read twice, and the walk ends at the commit before.
            for commits in [10, 20, 40] { #expect(try cost(commits) <= 2 * commits + 6) }
            let (all, twice) = (try cost(count / 2), try cost(count - 10))
            #expect(all <= count + count / 20 && twice <= 2 * all + 64)
            // The first of many: the commits up to the next checkpoint, and the checkpoints.
            let checkpoints = Int(engine.statistics.checkpoints)
            #expect(checkpoints > 4)
            #expect(try cost(count - 10, taking: 1) < 2 * count / checkpoints + 4 * checkpoints)
        }
    }

    @Test func `A commit that never was is told from one that is gone`() throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory)
        func insert(_ engine: Engine, _ object: UInt64) throws -> CommitIdentity {
            _ = try engine.write {
                try $0.insert(TestDelegate.entity, ObjectID(object), row: row(1, "a"))
            }
            return try engine.snapshot().identity()
        }
        let first = try insert(engine, 1)
        #expect(try engine.standing(of: first) == .retained)
        try engine.checkpoint()
        let before = try directory.copyForCrash()
        let lost = try insert(engine, 2)
        #expect(lost.number == first.number + 1 && lost.epoch == first.epoch)
        let restored = try Engine.openTest(before, mode: .existing)
        #expect(try restored.standing(of: first) == .retained)
        #expect(try restored.standing(of: lost) == .neverThere)
        let other = try insert(restored, 3)
        #expect(other.number == lost.number && other.epoch != lost.epoch)
        #expect(try restored.standing(of: lost) == .neverThere)
        #expect(try restored.standing(of: other) == .retained)
        try restored.close()
        _ = try insert(engine, 4)
        _ = try engine.compact()
        let newest = engine.snapshot().number
        #expect(try engine.standing(of: lost) == .expired(oldest: newest))
        let wrong = CommitIdentity(epoch: other.epoch, number: lost.number)
        #expect(try engine.standing(of: wrong) == .neverThere)
        let now = try engine.snapshot().identity()
        #expect(try engine.standing(of: now) == .retained)
        let error = #expect(throws: EngineError.self) {
            _ = try engine.commits(after: CommitNumber(lost.number))
        }
        #expect(error?.code == .notRetained)
        // Of the commit that a compaction kept nothing but the state is known.
        let entries = try Self.all(engine, after: nil)
        #expect(entries.map(\.known) == [.unknown])
        #expect(entries.first?.changes.isUnknown == true)
        #expect(try Self.all(engine, after: newest).isEmpty)
    }
}
