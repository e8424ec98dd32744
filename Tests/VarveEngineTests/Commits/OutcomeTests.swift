// What became of a commit: told by epoch and number, for good, whatever happens to its frame.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Outcomes of commits", .verified) struct OutcomeTests {
    private static func save(
        _ engine: Engine,
        _ object: UInt64,
        _ durability: Durability = .full
    ) throws -> CommitIdentity {
        let (_, number) = try engine.write(durability: durability) {
            try $0.insert(TestDelegate.entity, ObjectID(object), row: row(1, "row \(object)"))
        }
        let epoch = try #require(try engine.commits(1).first).epoch
        return CommitIdentity(epoch: epoch, number: try #require(number).rawValue)
    }

    private static func stranger(_ commit: CommitIdentity) -> CommitIdentity {
        CommitIdentity(epoch: commit.epoch ^ 1, number: commit.number)
    }

    @Test("Openings, compactions and relaxed commits do not change an answer")
    func answersStay() throws {
        let directory = MemoryDirectory()
        var commits: [CommitIdentity] = []
        var missing: [CommitIdentity] = []
        for opening in 0..<6 {
            let engine = try Engine.openTest(directory)
            for commit in missing { #expect(try engine.outcome(of: commit) == .absent) }
            for step in 0..<3 {
                let durability: Durability = step == 1 ? .relaxed : .full
                commits.append(try Self.save(engine, UInt64(opening * 10 + step), durability))
                // Asking makes it durable.
                #expect(try engine.outcome(of: try #require(commits.last)) == .present)
                #expect(engine.published.withLock { $0.durable == $0.state.number })
            }
            if opening % 3 == 1 { _ = try engine.compact() }
            if opening % 3 == 2 { try engine.checkpoint() }
            for commit in commits {
                #expect(try engine.outcome(of: commit) == .present)
                #expect(try engine.outcome(of: Self.stranger(commit)) == .absent)
            }
            let last = try #require(commits.last)
            let next = CommitIdentity(epoch: last.epoch, number: last.number + 1)
            // It may still come to be, in this opening alone.
            #expect(try engine.outcome(of: next) == .unknown)
            missing += [next, CommitIdentity(epoch: last.epoch, number: .max)]
            try engine.close()
            #expect(throws: EngineError.self) { try engine.outcome(of: Self.stranger(last)) }
        }
        #expect(Set(commits.map(\.epoch)).count == 6)
        let reader = try Engine.openTest(directory, mode: .readOnly)
        for commit in commits {
            #expect(try reader.outcome(of: commit) == .present)
            // It cannot make sure that it stays so.
            #expect(try reader.outcome(of: Self.stranger(commit)) == .unknown)
        }
    }

    /// A commit whose sync failed, on every disk that a power cut can leave: whoever answers, the
    /// next opening gives the same answer, after another power cut, too.
    @Test("The first answer is the last, whatever the disk kept of it", arguments: [true, false])
    func theFirstAnswerStays(isClean: Bool) throws {
        var random = SeededRandom(seed: 61)
        var answers: [CommitOutcome: Int] = [:]
        var settled: UInt64 = 0
        for trial in 0..<80 {
            let disk = SimulatedDisk()
            let engine = try Engine.openTest(disk.root)
            _ = try Self.save(engine, 1)
            // With a base in front of it, an opening that finds it torn has nothing to write.
            if isClean { try engine.checkpoint() }
            // The write itself, or the sync behind it, when all its bytes may be there.
            disk.setFault(SimulatedDisk.Fault(first: disk.calls + 1 + trial % 4, count: 1, code: 5))
            disk.record()
            var failed: CommitIdentity?
            do { _ = try Self.save(engine, 2) } catch let error as EngineError {
                failed = error.commit
            }
            guard let failed else { continue }
            #expect(try engine.outcome(of: failed) == .unknown)
            // A sync that failed may have brought all of it to the disk, or none.
            let states = disk.takeRecording().map(\.0).suffix(2)
            let state = try #require(states.randomElement(using: &random))
            let cut = SimulatedDisk.powerCut(state, &random)
            let reader = try Engine.openTest(cut.root, mode: .readOnly)
            #expect(try reader.outcome(of: failed) == .unknown, "it may not last")
            let next = try Engine.openTest(cut.root)
            settled += next.statistics.settledCommits
            let answer = try next.outcome(of: failed)
            answers[answer, default: 0] += 1
            #expect((try next.contents()[2] != nil) == (answer == .present))
            #expect(try next.outcome(of: failed) == answer)
            let again = try Engine.openTest(SimulatedDisk.powerCut(cut.state, &random).root)
            #expect(try again.outcome(of: failed) == answer)
            #expect(cut.violations == [])
        }
        #expect(answers[.unknown] == nil)
        #expect(answers[.present, default: 0] > 2 && answers[.absent, default: 0] > 2, "\(answers)")
        #expect(settled > 2, "a commit that was there had to be made sure of")
    }

    /// A commit of which all but one sector arrived, and that sector after the answer.
    @Test("Bytes that arrive after the answer do not change it")
    func lateBytes() throws {
        var answers = 0
        for trial in 0..<6 {
            let disk = SimulatedDisk()
            let engine = try Engine.openTest(disk.root)
            _ = try Self.save(engine, 1)
            try engine.checkpoint()
            let before = disk.state
            let file = try #require(before.file("test.varve"))
            let frameMax = 64 << 10
            let old = before.read(file, at: 0, count: frameMax)
            disk.setFault(SimulatedDisk.Fault(first: disk.calls + 2))
            let error = #expect(throws: EngineError.self) {
                try engine.write {
                    let text = String(repeating: "text ", count: 100 * (trial + 1))
                    try $0.insert(TestDelegate.entity, ObjectID(2), row: row(1, text))
                }
            }
            let failed = try #require(error?.commit)
            // As if every byte had been on its way, but for one sector.
            let new = disk.state.read(file, at: 0, count: frameMax)
            let changed = new.indices.filter { $0 >= old.count || old[$0] != new[$0] }
            let first = try #require(changed.first)
            let sector = (first / 512 + 1) * 512..<(first / 512 + 2) * 512
            guard try #require(changed.last) >= sector.lowerBound else { continue }
            var state = disk.killed().state
            let late = Array(new[sector])
            state.overwrite(file, at: sector.lowerBound, [UInt8](repeating: 0, count: 512))
            let torn = SimulatedDisk(state)
            let next = try Engine.openTest(torn.root)
            #expect(try next.outcome(of: failed) == .absent, "trial \(trial)")
            state = torn.killed().state
            state.overwrite(file, at: sector.lowerBound, late)
            let again = try Engine.openTest(SimulatedDisk(state).root)
            #expect(try again.outcome(of: failed) == .absent, "trial \(trial)")
            #expect(try again.contents()[2] == nil)
            answers += 1
        }
        #expect(answers > 2)
    }

    @Test("The first save of a store may fail, be refused, or be large")
    func firstSaves() throws {
        // Failed, before the account has begun.
        func open(_ disk: SimulatedDisk) throws -> Engine {
            try Engine.open(
                .directory(disk.root, name: "test"),
                options: EngineOptions(),
                delegate: TestDelegate()
            )
        }
        var unknown = 0
        for call in 1...6 {
            let disk = SimulatedDisk()
            let engine = try open(disk)
            disk.setFault(SimulatedDisk.Fault(first: disk.calls + call))
            do {
                _ = try engine.write { try $0.replaceSchema([1], version: 1) }
            } catch let error as EngineError {
                guard let failed = error.commit else { continue }
                unknown += 1
                var random = SeededRandom(seed: UInt64(call))
                let next = try open(SimulatedDisk.powerCut(disk.state, &random))
                #expect(try next.outcome(of: failed) == .absent, "call \(call)")
            }
        }
        #expect(unknown > 0)

        // Refused: the entry comes with the next one.
        let full = SimulatedDisk()
        let refused = try Engine.openTest(full.root) {
            $0.deltaBytesMax = 16 << 10
            $0.tailRoomMin = 4 << 10
            $0.tailRoomMax = 8 << 10
        }
        try refused.close()
        let next = try Engine.openTest(full.root)
        full.setFault(SimulatedDisk.Fault(first: 1, count: .max, code: 28, writesFrom: 4096))
        let refusal = #expect(throws: EngineError.self) {
            try next.write { transaction in
                for object in UInt64(10)..<9_000 {
                    let text = String(repeating: "\(object)", count: 20)
                    try transaction.insert(
                        TestDelegate.entity,
                        ObjectID(object),
                        row: row(1, text)
                    )
                }
            }
        }
        #expect(refusal?.code == .noSpace && refusal?.commit == nil)
        full.setFault(nil)
        let saved = try Self.save(next, 5)
        #expect(try next.outcome(of: saved) == .present)
        #expect(try next.outcome(of: Self.stranger(saved)) == .absent)

        // Large: a TREE.
        let large = try Engine.openTest(full.killed().root) { $0.deltaBytesMax = 4 << 10 }
        let (_, number) = try large.write { transaction in
            for object in UInt64(100)..<3_000 {
                try transaction.insert(
                    TestDelegate.entity,
                    ObjectID(object),
                    row: row(2, "row \(object)")
                )
            }
        }
        let newest = try #require(try large.commits(1).first)
        #expect(newest.number == number)
        let tree = CommitIdentity(epoch: newest.epoch, number: newest.number.rawValue)
        #expect(tree.epoch != saved.epoch)
        #expect(try large.outcome(of: tree) == .present)
        #expect(try large.outcome(of: saved) == .present)
    }

    @Test("A recovered store says nothing of commits that were of the damaged one")
    func recoveredStores() throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory) { $0.newStoreID = UUIDValue(high: 7, low: 9) }
        let commit = try Self.save(engine, 1)
        #expect(try engine.outcome(of: commit) == .present)
        let old = CommitIdentity(epoch: commit.epoch ^ 5, number: 1)
        #expect(try engine.outcome(of: old) == .unknown)
        #expect(try engine.outcome(of: .init(epoch: old.epoch, number: 1_000)) == .unknown)
        try engine.close()
        let next = try Engine.openTest(directory)
        #expect(try next.outcome(of: old) == .unknown)
        #expect(try next.outcome(of: commit) == .present)
    }

    @Test("Processes in turn tell of each other's commits")
    func processesInTurn() throws {
        let folder = try WritersFolder()
        var random = SeededRandom(seed: 62)
        var engines = [try folder.open(), try folder.open(), try folder.open()]
        var commits: [CommitIdentity] = []
        for step in 0..<40 {
            let index = Int.random(in: 0..<3, using: &random)
            commits.append(try Self.save(engines[index], 1_000 + UInt64(step)))
            switch Int.random(in: 0..<8, using: &random) {
            case 0: _ = try engines[index].compact()
            case 1:
                try engines[index].close()
                engines[index] = try folder.open()
            default: break
            }
            let commit = try #require(commits.randomElement(using: &random))
            let asked = engines[Int.random(in: 0..<3, using: &random)]
            #expect(try asked.outcome(of: commit) == .present, "step \(step)")
            #expect(try asked.outcome(of: Self.stranger(commit)) == .absent, "step \(step)")
        }
        #expect(Set(commits.map(\.epoch)).count >= 3)
        for engine in engines {
            for commit in commits { #expect(try engine.outcome(of: commit) == .present) }
            try engine.close()
        }
    }

    @Test("The account reaches back for some openings and says where it ends")
    func theAccountIsBounded() throws {
        let engine = try Engine.openTest(MemoryDirectory())
        // As 5,000 openings would have written it.
        var first: UInt64 = 0
        for _ in 0..<5_000 {
            _ = try engine.write { transaction in
                first = first == 0 ? transaction.number.rawValue : first
                try transaction.noteEpoch(transaction.number.rawValue &* 31)
            }
        }
        let newest = engine.snapshot().number.rawValue
        #expect(newest - first == 4_999)
        let catalog = engine.snapshot().state.tree(.catalog)
        #expect(try EpochAccount.epoch(of: newest, in: catalog) == newest &* 31)
        #expect(catalog.root.rows <= EpochAccount.entriesMax + 4)
        let old = CommitIdentity(epoch: first &* 31, number: first)
        #expect(try engine.outcome(of: old) == .unknown)
        let kept = newest - EpochAccount.entriesMax + 1
        let oldest = CommitIdentity(epoch: kept &* 31, number: kept)
        #expect(try engine.outcome(of: oldest) == .present)
    }

    @Test("An idle pause adds nothing to the account, and a delete stays one with its entry")
    func notesAreFew() throws {
        let engine = try Engine.openTest(MemoryDirectory())
        _ = try Self.save(engine, 1)
        func entries() throws -> Int {
            try EpochAccount.keys(in: engine.snapshot().state.tree(.catalog)).count
        }
        let before = try entries()
        for object in 2...20 {
            // As the end of a turn leaves it.
            engine.writer.withLock { $0.turns += 1 }
            _ = try Self.save(engine, UInt64(object))
        }
        #expect(try entries() == before && before > 0)
        _ = try engine.write { transaction in
            try transaction.delete(TestDelegate.entity, ObjectID(1))
            try transaction.noteEpoch(7)
            #expect(transaction.onlyDeletes)
        }
        _ = try engine.write { transaction in
            try transaction.insert(TestDelegate.entity, ObjectID(99), row: row(1, "a row"))
            try transaction.noteEpoch(8)
            #expect(!transaction.onlyDeletes)
        }
    }
}
