// The edges of turns: what happens between them, without them, and when their end goes wrong.

import Foundation
import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("The edges of turns", .verified) struct TurnTests {
    static let entity = TestDelegate.entity

    /// Tells the test of commits before they can be seen.
    private struct TellingDelegate: EngineDelegate {
        let tell: @Sendable (CommitChanges) -> Void
        func makeDeriver(schema: [UInt8]) throws(FormatError) -> any IndexDeriver {
            TestDelegate.Deriver()
        }
        func willPublish(_ changes: CommitChanges) { tell(changes) }
        func didPublish(_ changes: CommitChanges) {}
    }

    private static func open(
        _ folder: WritersFolder,
        _ tell: @escaping @Sendable (CommitChanges) -> Void
    ) throws -> Engine {
        var options = EngineOptions()
        adjustSmall(&options)
        return try Engine.open(
            .directory(PosixDirectory.open(path: folder.path), name: "test"),
            options: options,
            delegate: TellingDelegate(tell: tell)
        )
    }

    @discardableResult
    private static func insert(_ engine: Engine, _ text: String) throws -> ObjectID {
        let id = engine.allocateObjectIDs(1)
        _ = try engine.write { try $0.insert(entity, id, row: row(1, text)) }
        return id
    }

    private static func endTurn(_ engine: Engine) {
        engine.queue.claimLead()
        engine.writer.withLock { engine.giveTurn(&$0) }
        engine.endLead([])
    }

    private static func page(_ directory: any StoreDirectory) throws -> SharedState? {
        let file = try directory.openFile("test.varve-lock", mode: .read)
        return SharedState(decoding: try file.read(at: FileOffset(0), count: SharedState.length))
    }

    // MARK: Who has the turn

    @Test("A turn that came to nothing is not kept from those who knocked too early")
    func anEmptyTurn() throws {
        let folder = try WritersFolder()
        let watched = try #require(
            try PosixDirectory.open(path: folder.path).openLocks("test.varve-lock", isReader: false)
        )
        let waits = Mutex(false)
        let begins = Parker()
        let first = try Self.open(folder) { _ in
            guard waits.withLock({ $0 }) else { return }
            waits.withLock { $0 = false }
            // The turn has come and has not begun: until somebody else is next, and has knocked.
            begins.unpark()
            waitAMinute { watched.isLockedByOther(LockByte.next..<LockByte.count) }
            _ = Parker().park(milliseconds: 50)
        }
        let second = try folder.open { $0.maintenance = .inline }
        try Self.insert(second, "news")
        Self.endTurn(second)
        waits.withLock { $0 = true }
        let other = TestThread {
            begins.park()
            _ = try? Self.insert(second, "waited")
        }
        _ = try first.write { _ in }
        other.join()
        #expect(try first.contents().count == 2)
    }

    @Test("Savers who never pause give way to another process")
    func noPause() throws {
        let folder = try WritersFolder()
        let saving = Mutex<Engine?>(nil)
        let first = try folder.open {
            $0.maintenance = .inline
            // At each sync somebody else has queued already, as long as anybody may.
            $0.environment = GatedEnvironment { point in
                guard point == .commitSync, let engine = saving.withLock({ $0 }) else { return }
                for _ in 0..<300 where engine.queue.isEmpty { _ = Parker().park(milliseconds: 1) }
            }
        }
        let second = try folder.open {
            $0.maintenance = .inline
            $0.turnMilliseconds = 30_000
        }
        saving.withLock { $0 = first }
        let savers = (0..<2).map { saver in
            TestThread {
                while saving.withLock({ $0 != nil }) { _ = try? Self.insert(first, "\(saver)") }
            }
        }
        waitAMinute { first.statistics.batches > 3 }
        #expect(throws: Never.self) { try Self.insert(second, "other") }
        saving.withLock { $0 = nil }
        for saver in savers { saver.join() }
    }

    @Test("Who has only opened the store holds nobody up, and neither does who is idle")
    func whoIsIdle() throws {
        let folder = try WritersFolder()
        let first = try folder.open {
            $0.maintenance = .background
            $0.idleMilliseconds = 10
        }
        let second = try folder.open { $0.maintenance = .inline }
        try Self.insert(second, "a")
        Self.endTurn(second)
        let third = try folder.open { $0.maintenance = .inline }
        // As if they were stopped: none of their threads can give a turn up.
        try second.writer.withLock { _ in
            try third.writer.withLock { _ in _ = try Self.insert(first, "b") }
        }
        waitAMinute { !first.writer.withLock { $0.hasTurn } }
        try first.writer.withLock { _ in _ = try Self.insert(second, "c") }
        #expect(try first.contents().count == 3)
    }

    @Test("A process that is alone and idle checkpoints and compacts")
    func aloneAndIdle() throws {
        let folder = try WritersFolder()
        let engine = try folder.open {
            $0.maintenance = .background
            $0.idleMilliseconds = 10
            $0.idleTailBytes = 1 << 10
            $0.checkpointTailMin = 1 << 20
            $0.checkpointTailMax = 1 << 20
            $0.compactsAutomatically = true
            $0.compactionDeadBytesMin = 8 << 10
        }
        let id = try Self.insert(engine, "a")
        for step in 0..<200 {
            _ = try engine.write {
                try $0.update(
                    Self.entity,
                    id,
                    patch: patch(Int64(step), String(repeating: "x", count: 200))
                )
            }
        }
        waitAMinute { engine.statistics.compactions > 0 }
        #expect(try engine.contents().count == 1)
    }

    @Test("Without the file that says whose turn it is nobody writes")
    func theLockFileIsGone() throws {
        let folder = try WritersFolder()
        let first = try folder.open { $0.maintenance = .inline }
        try Self.insert(first, "a")
        Self.endTurn(first)
        try PosixDirectory.open(path: folder.path).remove("test.varve-lock")
        let second = try folder.open { $0.maintenance = .inline }
        try Self.insert(second, "b")
        let error = #expect(throws: EngineError.self) { try Self.insert(first, "c") }
        #expect(error?.message.contains("test.varve-lock was removed") == true)
        try Self.insert(second, "d")
        #expect(try second.contents().count == 3)
    }

    // MARK: Between turns

    @Test("No zeros come from a process whose turn is over")
    func noZerosLater() throws {
        let folder = try WritersFolder()
        let first = try folder.open { $0.maintenance = .inline }
        let second = try folder.open { $0.maintenance = .inline }
        try Self.insert(first, "a")
        let (room, end, file) = first.writer.withLock { ($0.log.room, $0.log.end, $0.log.file) }
        Self.endTurn(first)
        for step in 0..<40 { try Self.insert(second, "\(step)") }
        let before = try file.read(at: FileOffset(0), count: Int(try file.size()))
        let far = FileOffset(end.rawValue + 1 << 20)
        #expect(try !room.growOnePiece(behind: far, file: file))
        #expect(try file.read(at: FileOffset(0), count: Int(try file.size())) == before)
        #expect(try first.contents().count == 41)
        try Self.insert(first, "b")
        #expect(try second.contents().count == 42)
    }

    @Test("An engine may be let go in a callback of another process's commit")
    func closedInACallback() throws {
        let folder = try WritersFolder()
        let other = try folder.open()
        let engine = Mutex<Engine?>(nil)
        let closes = Mutex(false)
        let first = try Self.open(folder) { _ in
            guard closes.withLock({ $0 }) else { return }
            engine.withLock { $0 }?.closeForOwner()
        }
        engine.withLock { $0 = first }
        closes.withLock { $0 = true }
        try Self.insert(other, "a")
        #expect(try first.contents().count == 1)
        try waitAMinute {
            do {
                _ = try first.write { _ in }
                return false
            } catch let error as EngineError {
                return error.code == .closed
            }
        }
        engine.withLock { $0 = nil }
        try Self.insert(other, "b")
    }

    @Test("A failed sync elsewhere ends no turn while a batch is on its way")
    func poisonBesideABatch() throws {
        let folder = try WritersFolder()
        let gate = Gate(.commitPublish)
        let engine = try folder.open {
            $0.maintenance = .inline
            $0.environment = GatedEnvironment { gate.yield($0) }
        }
        gate.arm()
        let saver = TestThread { _ = try? Self.insert(engine, "a") }
        gate.waitUntilReached()
        let poisoner = TestThread {
            _ = engine.poisonIfSyncFailed(EngineError(.poisoned, "a sync failed"))
        }
        _ = Parker().park(milliseconds: 50)
        #expect(engine.role.turn?.isHeld == true)
        gate.open()
        saver.join()
        poisoner.join()
        #expect(engine.role.turn?.isHeld == false)
        #expect(try folder.open().contents().count == 1)
    }

    @Test("Blob files that others may read stay")
    func blobsOfOthers() throws {
        let folder = try WritersFolder()
        let first = try folder.open { $0.maintenance = .inline }
        let content = [UInt8](repeating: 5, count: 3000)
        let writer = try first.makeBlobWriter(externalLimit: 1000)
        try writer.append(content)
        var pending: PendingBlob? = try writer.finish()
        let reference = try #require(pending?.reference)
        let id = first.allocateObjectIDs(1)
        _ = try first.write {
            try $0.insert(Self.entity, id, row: row(1, "a", blob: reference))
        }
        pending = nil
        let second = try folder.open { $0.maintenance = .inline }
        let snapshot = second.snapshot()
        _ = try first.write { try $0.delete(Self.entity, id) }
        try first.checkpoint()
        try first.close()
        #expect(try snapshot.blob(reference)?.readAll() == content)
        #expect(second.statistics.blobFilesSwept == 0)
        // It goes with the last one.
        withExtendedLifetime(snapshot) {}
    }

    @Test("Of two compactions at once the second ends, and nothing is lost")
    func twoCompactions() throws {
        let folder = try WritersFolder()
        let gate = Gate(.compactionCopied)
        let first = try folder.open {
            $0.maintenance = .inline
            $0.environment = GatedEnvironment { gate.yield($0) }
        }
        let second = try folder.open { $0.maintenance = .inline }
        for step in 0..<20 { try Self.insert(step % 2 == 0 ? first : second, "\(step)") }
        gate.arm()
        let code = Mutex<EngineError.Code?>(nil)
        let compacts = TestThread {
            do throws(EngineError) { _ = try first.compact() } catch {
                code.withLock { $0 = error.code }
            }
        }
        gate.waitUntilReached()
        try Self.insert(second, "between")
        _ = try second.compact()
        try Self.insert(second, "behind")
        gate.open()
        compacts.join()
        #expect(code.withLock { $0 } == .busy)
        try Self.insert(first, "last")
        #expect(try second.contents().count == 23)
        #expect(try first.contents().count == 23)
        // Now it can.
        _ = try first.compact()
        try Self.insert(second, "more")
        #expect(try first.contents().count == 24)
    }

    @Test("A turn ends with everything on disk, and only the last one closes the log")
    func whatIsLeft() throws {
        let folder = try WritersFolder()
        let directory = try PosixDirectory.open(path: folder.path)
        let first = try folder.open { $0.maintenance = .inline }
        for step in 0..<3 {
            let id = first.allocateObjectIDs(1)
            _ = try first.write(durability: .relaxed) {
                try $0.insert(Self.entity, id, row: row(1, "\(step)"))
            }
        }
        Self.endTurn(first)
        let told = try #require(try Self.page(directory))
        #expect(told.isComplete && told.durableEnd == told.logEnd)
        #expect(told.frame == first.snapshot().state.frame)
        let second = try folder.open { $0.maintenance = .inline }
        try Self.insert(second, "a")
        try first.close()
        #expect(try Self.page(directory)?.isComplete == true)
        let store = try directory.openFile("test.varve", mode: .read)
        let scan = LogScan(
            log: second.snapshot().state.generation.log,
            size: try store.size()
        )
        #expect(try !Recovery(scan: scan).run().isClosed)
        try Self.insert(second, "b")
        try second.close()
        let again = try folder.open()
        #expect(again.statistics.replayedOperations == 0)
        #expect(try again.contents().count == 5)
    }

    @Test("Who missed more than one compaction is told that anything may have changed")
    func missedCompactions() throws {
        let folder = try WritersFolder()
        let told = Mutex<[(number: UInt64, isUnknown: Bool)]>([])
        let first = try Self.open(folder) { changes in
            told.withLock { $0.append((changes.number.rawValue, changes.isUnknown)) }
        }
        let second = try folder.open { $0.maintenance = .inline }
        let id = try Self.insert(second, "a")
        #expect(try first.contents().count == 1)
        told.withLock { $0 = [] }
        for step in 0..<3 {
            _ = try second.write {
                try $0.update(Self.entity, id, patch: patch(Int64(step), "b"))
            }
            _ = try second.compact()
        }
        #expect(try first.contents() == second.contents())
        #expect(told.withLock { $0.last?.number } == second.snapshot().number.rawValue)
        #expect(told.withLock { $0.contains { $0.isUnknown } })
        // It may also be its own turn that shows it.
        for step in 0..<3 {
            _ = try second.write {
                try $0.update(Self.entity, id, patch: patch(Int64(step), "c"))
            }
            _ = try second.compact()
        }
        told.withLock { $0 = [] }
        _ = try first.write { try $0.update(Self.entity, id, patch: patch(7, "d")) }
        #expect(told.withLock { $0.map(\.isUnknown).suffix(2) } == [true, false])
        #expect(try first.contents() == second.contents())
    }

    // MARK: A turn that ends badly

    @Test("Object IDs that could not be told of are nobody else's")
    func idsThatWereNotTold() throws {
        let (disk, table) = (SimulatedDisk(), SimulatedLockTable())
        let process = SimulatedProcess(disk, table, 1)
        let first = try Engine.openTest(process.root, adjustSmall)
        try Self.insert(first, "a")
        // Half of what it has is used up, so this turn sets aside more.
        _ = first.allocateObjectIDs(Int(ObjectIDs.lease / 2))
        process.failLockWrites(after: 1)
        _ = try first.write { try $0.insert(Self.entity, ObjectID(7), row: row(1, "b")) }
        process.failLockWrites(after: nil)
        let second = try Engine.openTest(SimulatedProcess(disk, table, 2).root, adjustSmall)
        let theirs = second.allocateObjectIDs(1)
        let ours = first.allocateObjectIDs(Int(ObjectIDs.lease) - 10)
        #expect(theirs.rawValue > ours.rawValue + ObjectIDs.lease - 10)
        try Self.insert(second, "c")
        try Self.insert(first, "d")
        #expect(try second.contents().count == 4)
    }

    @Test("A process that dies in a compaction leads nobody to the old file")
    func killedInACompaction() throws {
        for calls in 0..<100 {
            let (disk, table) = (SimulatedDisk(), SimulatedLockTable())
            let processes = (1...2).map { SimulatedProcess(disk, table, $0) }
            let engines = try processes.map { try Engine.openTest($0.root, adjustSmall) }
            for step in 0..<6 { try Self.insert(engines[step % 2], "\(step)") }
            processes[1].kill(afterCalls: calls)
            let isDone = (try? engines[1].compact()) != nil
            processes[1].kill()
            try Self.insert(engines[0], "later")
            processes[0].kill()
            let again = try Engine.openTest(SimulatedProcess(disk, table, 3).root, adjustSmall)
            #expect(try again.contents().count == 7, "killed after \(calls) calls")
            if isDone { return }
        }
        Issue.record("a compaction has more calls than that")
    }

    @Test("A page from before is not believed by who is alone")
    func aPageFromBefore() throws {
        let (disk, table) = (SimulatedDisk(), SimulatedLockTable())
        let process = SimulatedProcess(disk, table, 1)
        let first = try Engine.openTest(process.root, adjustSmall)
        try Self.insert(first, "a")
        let told = try #require(try Self.page(disk.root))
        #expect(told.isComplete)
        // A commit of which the power cut left only the end.
        let store = try disk.root.openFile("test.varve", mode: .readWrite)
        let blob = FileOffset(told.logEnd.rawValue + 8192)
        try store.write([UInt8](repeating: 7, count: 64), at: blob)
        process.kill()
        let second = try Engine.openTest(SimulatedProcess(disk, table, 2).root, adjustSmall)
        #expect(second.writer.withLock { $0.log.end } > blob)
        #expect(try second.contents().count == 1)
        // Nor is one that says nothing but zeros follow, where something does.
        try Self.insert(second, "b")
        #expect(try store.read(at: blob, count: 64) == [UInt8](repeating: 7, count: 64))
    }
}
