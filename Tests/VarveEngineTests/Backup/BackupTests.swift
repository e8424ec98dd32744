// Backups opened and compared with the store, whole ones and increments.

import Dispatch
import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite(.verified) struct BackupTests {
    private static func open(_ directory: any StoreDirectory) throws -> Engine {
        try CompactionTests.open(directory, .all)
    }

    private static func back(
        _ engine: Engine,
        to directory: any StoreDirectory
    ) throws -> BackupReport {
        try engine.backup(to: .directory(directory, name: "test"))
    }

    /// A backup opens as a closed store with every commit; increments bring it up to date.
    @Test(arguments: [UInt64(161), 162])
    func aBackupIsTheStore(seed: UInt64) throws {
        let directory = MemoryDirectory()
        let target = MemoryDirectory()
        let engine = try Self.open(directory)
        var history = RandomHistory(seed: seed)
        for round in 0..<5 {
            for _ in 0..<8 { try history.commit(engine) }
            if round == 2 { try engine.checkpoint() }
            let report = try Self.back(engine, to: target)
            #expect(report.commit == engine.snapshot().number)
            #expect(report.isIncrement == (round > 0))
            if round > 0 { #expect(report.bytesCopied < engine.statistics.logBytes - 8192) }
            #expect(try !target.list().contains { $0.contains("-new-") })
            // Opened elsewhere, so that the backup stays as it is.
            let copy = try Self.open(target.copyWithBlobs())
            #expect(copy.storeID == engine.storeID)
            #expect(copy.statistics.settledCommits == 0)
            try CompactionTests.check(copy, history, from: CommitNumber(0))
            try copy.close()
        }
        // Nothing new: nothing to copy.
        let again = try Self.back(engine, to: target)
        #expect(again.bytesCopied == 0 && again.blobsCopied == 0)
        // After a compaction the earlier backup is another file's.
        _ = try engine.compact()
        let refused = #expect(throws: EngineError.self) { try Self.back(engine, to: target) }
        #expect(refused?.code == .invalid)
        #expect(refused?.message.contains("compaction") == true)
        let other = MemoryDirectory()
        _ = try Self.back(engine, to: other)
        try CompactionTests.check(try Self.open(other), history, from: CommitNumber(0))
    }

    /// A backup that was written to is a store of its own: no increment touches it.
    @Test func aBackupThatWentItsOwnWayIsLeftAlone() throws {
        let target = MemoryDirectory()
        let engine = try Self.open(MemoryDirectory())
        var history = RandomHistory(seed: 171)
        for _ in 0..<6 { try history.commit(engine) }
        _ = try Self.back(engine, to: target)
        let copy = try Self.open(target)
        let busy = #expect(throws: EngineError.self) { try Self.back(engine, to: target) }
        #expect(busy?.code == .busy)
        _ = try copy.write {
            try $0.insert(TestDelegate.entity, ObjectID(1 << 40), row: row(1, "x"))
        }
        let contents = try copy.contents()
        try copy.close()
        try history.commit(engine)
        let refused = #expect(throws: EngineError.self) { try Self.back(engine, to: target) }
        #expect(refused?.code == .invalid)
        #expect(try Self.open(target).contents() == contents)
        let stranger = MemoryDirectory()
        try Self.open(stranger).close()
        let other = #expect(throws: EngineError.self) { try Self.back(engine, to: stranger) }
        #expect(other?.code == .invalid)
    }

    /// While a writer commits: each backup is one of the states that were committed.
    @Test func aBackupIsMadeBesideAWriter() throws {
        let engine = try Self.open(MemoryDirectory())
        let model = Mutex(RandomHistory(seed: 181))
        _ = try model.withLock { try $0.commit(engine) }
        let failures = Mutex<[String]>([])
        let isOver = Atomic(false)
        let threads = DispatchGroup()
        DispatchQueue.global().async(group: threads) {
            do {
                for _ in 0..<40 { _ = try model.withLock { try $0.commit(engine) } }
            } catch {
                failures.withLock { $0.append("\(error)") }
            }
            isOver.store(true, ordering: .relaxed)
        }
        var copies: [(MemoryDirectory, CommitNumber)] = []
        repeat {
            let target = MemoryDirectory()
            copies.append((target, try Self.back(engine, to: target).commit))
        } while !isOver.load(ordering: .relaxed) && copies.count < 30
        threads.wait()
        #expect(failures.withLock { $0 } == [])
        let states = model.withLock { $0.states }
        for (target, number) in copies {
            let copy = try Self.open(target)
            #expect(copy.snapshot().number == number)
            #expect(try copy.snapshot().everything() == states[number])
        }
        print("backups beside a writer \(copies.count)")
    }

    /// No space, a failed rename or sync, a cancel: the store and an earlier name are untouched.
    @Test func aBackupThatFailsLeavesNothing() throws {
        let engine = try Self.open(MemoryDirectory())
        var history = RandomHistory(seed: 191)
        for _ in 0..<12 { try history.commit(engine) }
        var call = 1
        var whole = 0
        while true {
            let disk = SimulatedDisk()
            disk.setFault(SimulatedDisk.Fault(first: call, code: SimulatedDisk.noSpace))
            var failure: EngineError?
            do { _ = try Self.back(engine, to: disk.root) } catch {
                failure = error as? EngineError
            }
            if disk.failures == 0 { break }
            if failure == nil {
                // What was to say that the name is durable failed: the backup is whole.
                whole += 1
                let copy = try Self.open(disk.root)
                #expect(try copy.snapshot().everything() == history.newest, "call \(call)")
            }
            #expect(try !disk.root.list().contains { $0.contains("-new-") }, "call \(call)")
            call += 1
        }
        #expect(call > 5 && whole == 2)
        let target = MemoryDirectory()
        let cancelled = #expect(throws: EngineError.self) {
            try engine.backup(to: .directory(target, name: "test"), isCancelled: { true })
        }
        #expect(cancelled?.code == .cancelled)
        #expect(try !target.exists("test.varve"))
        #expect(try engine.snapshot().everything() == history.newest)
    }
}
