// What one saver's trouble must not do to another: failed syncs, full disks, reads of what waits.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Failures among savers", .verified) struct SharedFailureTests {
    static let entity = TestDelegate.entity

    static func insert(
        _ engine: Engine,
        _ objects: ClosedRange<UInt64>,
        length: Int = 4,
        durability: Durability = .full
    ) throws {
        _ = try engine.write(durability: durability) { transaction in
            for object in objects {
                // Nothing that compresses.
                var random = SeededRandom(seed: object)
                let text = (0..<length).map { _ in String(random.next(), radix: 36) }.joined()
                try transaction.insert(entity, ObjectID(object), row: row(Int64(object), text))
            }
        }
    }

    private static func code(_ body: () throws -> Void) -> EngineError.Code? {
        do { try body() } catch { return (error as? EngineError)?.code }
        return nil
    }

    static func objects(_ engine: Engine) throws -> [UInt64] {
        try engine.contents().keys.sorted()
    }

    private static func powerCut(_ disk: SimulatedDisk, _ seed: UInt64) throws -> Engine {
        var random = SeededRandom(seed: seed)
        let state = disk.state
        return try Engine.openTest(SimulatedDisk.powerCut(state, &random).root)
    }

    @Test("A sync that failed for another saver is nobody's success")
    func aFailedSyncOfAnotherSaverCounts() throws {
        let gate = Gate(.commitSync)
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root) {
            $0.environment = GatedEnvironment(onYield: { gate.yield($0) })
            $0.tailRoomMin = 4096
            $0.tailReserve = 0
            $0.deltaBytesMax = 2 << 10
            $0.earlyWriteBytes = 16 << 10
        }
        gate.arm()
        let first = Mutex<EngineError.Code?>(nil)
        let held = TestThread {
            let code = Self.code { try Self.insert(engine, 1...1) }
            first.withLock { $0 = code }
        }
        gate.waitUntilReached()
        // Zeros for the other's pages are written; their sync reports what the first one waits for.
        disk.setFault(SimulatedDisk.Fault(first: disk.calls + 2))
        #expect(Self.code { try Self.insert(engine, 100...600) } == .poisoned)
        #expect(disk.failures == 1)
        gate.open()
        held.join()
        #expect(first.withLock { $0 } == .outcomeUnknown)
        for seed in UInt64(1)...8 {
            let found = try Self.objects(try Self.powerCut(disk, seed))
            #expect(found == [] || found == [1])
        }
    }

    /// A row with a blob of 900 bytes in a file of its own; nothing holds it when this returns.
    private static func insertBlob(_ engine: Engine, _ id: ObjectID) throws -> BlobReference {
        let writer = try engine.makeBlobWriter(externalLimit: 500)
        try writer.append([UInt8](repeating: 7, count: 900))
        let blob = try writer.finish()
        _ = try engine.write {
            try $0.insert(entity, id, row: row(1, "one", blob: blob.reference))
        }
        return blob.reference
    }

    @Test("A blob that a relaxed commit dropped stays until that commit is on disk")
    func relaxedCommitsDropNoBlobFiles() throws {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root)
        let reference = try Self.insertBlob(engine, ObjectID(1))
        disk.record()
        _ = try engine.write(durability: .relaxed) {
            let gone = RowPatch.encode([(ColumnID(2), .null)])
            try $0.update(Self.entity, ObjectID(1), patch: gone)
        }
        try engine.checkpoint()
        try engine.checkpoint()
        #expect(engine.statistics.blobFilesSwept == 1)
        var random = SeededRandom(seed: 8)
        for (state, _) in disk.takeRecording() {
            for _ in 0..<6 {
                let cut = try Engine.openTest(SimulatedDisk.powerCut(state, &random).root)
                let snapshot = cut.snapshot()
                let row = try #require(try snapshot.row(TestDelegate.rows, ObjectID(1)))
                guard case .blob = try RowView(row.bytes).value(ColumnID(2)) else { continue }
                #expect(try snapshot.blob(reference)?.readAll().count == 900)
            }
        }
    }

    @Test("When the disk is full and a large value was refused, deletes go on")
    func deletesGoOnWhenTheDiskIsFull() throws {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root) {
            $0.inlineValueBytesMax = 256
            $0.tailRoomMin = 64 << 10
        }
        try Self.insert(engine, 1...3)
        let full = SimulatedDisk.Fault(
            first: 1,
            count: .max,
            code: SimulatedDisk.noSpace,
            writesFrom: 4096
        )
        disk.setFault(full)
        var object: UInt64 = 10
        var code: EngineError.Code?
        while code == nil {
            object += 1
            code = Self.code { try Self.insert(engine, object...object, length: 100) }
        }
        #expect(code == .noSpace)
        // Deletes use up what values may not, then a value is refused again.
        for gone in UInt64(11)...40 {
            _ = try engine.write { try $0.delete(Self.entity, ObjectID(gone)) }
        }
        #expect(Self.code { try Self.insert(engine, object...object, length: 100) } == .noSpace)
        _ = try engine.write { try $0.delete(Self.entity, ObjectID(1)) }
        #expect(try Self.objects(engine).prefix(3) == [2, 3, 41])
        let reopened = try Self.powerCut(disk, 3)
        #expect(try Self.objects(reopened) == Self.objects(engine))
    }

    /// Found by processes that fill a small disk, on a busy machine: a checkpoint that came between
    /// two deletes took all that was kept for them.
    @Test("When the disk is full a checkpoint in the background leaves room for deletes")
    func aCheckpointLeavesRoomForDeletes() throws {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root) { $0.tailRoomMin = 64 << 10 }
        for object in UInt64(1)...40 { try Self.insert(engine, object...object, length: 105) }
        func fill(writesFrom: Int) {
            disk.setFault(
                SimulatedDisk.Fault(
                    first: 1,
                    count: .max,
                    code: SimulatedDisk.noSpace,
                    writesFrom: writesFrom
                )
            )
        }
        // Zeros find no space; pages into what is prepared are no new space.
        fill(writesFrom: 64 << 10)
        var (count, code) = (Int64(0), EngineError.Code?.none)
        while code == nil {
            count += 1
            code = Self.code {
                _ = try engine.write {
                    try $0.update(Self.entity, ObjectID(40), patch: patch(count))
                }
            }
        }
        #expect(code == .noSpace)
        try engine.checkpointInBackground(MaintenanceThread())
        #expect(engine.statistics.backgroundPages > 0)
        fill(writesFrom: 4096)
        for gone in UInt64(1)...30 {
            _ = try engine.write { try $0.delete(Self.entity, ObjectID(gone)) }
        }
        #expect(try Self.objects(engine) == Array(31...40))
        let reopened = try Self.powerCut(disk, 3)
        #expect(try Self.objects(reopened) == Self.objects(engine))
    }

    /// An engine whose disk has no space beyond what is prepared, behind the save that found none.
    private static func full(
        _ disk: SimulatedDisk,
        length: Int = 20,
        _ adjust: (inout EngineOptions) -> Void
    ) throws -> Engine {
        let engine = try Engine.openTest(disk.root) {
            $0.tailRoomMin = 64 << 10
            adjust(&$0)
        }
        for object in UInt64(1)...40 { try insert(engine, object...object, length: length) }
        let size = try engine.writer.withLock { try $0.generation.file.size() }
        disk.setFault(
            SimulatedDisk.Fault(
                first: 1,
                count: .max,
                code: SimulatedDisk.noSpace,
                writesPast: Int(size)
            )
        )
        var (count, refusal) = (Int64(0), EngineError.Code?.none)
        while refusal == nil {
            count += 1
            // Every leaf.
            let object = ObjectID(UInt64(count % 40) + 1)
            refusal = code {
                _ = try engine.write { try $0.update(entity, object, patch: patch(count)) }
            }
        }
        #expect(refusal == .noSpace)
        return engine
    }

    /// Found by processes that fill a small disk: with a checkpoint overdue, which finds no room,
    /// each delete became pages, and found none either.
    @Test("With a full disk and a checkpoint overdue, deletes are row changes all the same")
    func deletesOnAFullDiskBecomeNoPages() throws {
        let disk = SimulatedDisk()
        // Pages of all rows are larger than what is ready.
        let engine = try Self.full(disk, length: 105) {
            $0.tailReserve = 8 << 10
            $0.checkpointTailMin = 4 << 10
            $0.checkpointTailMax = 4 << 10
        }
        let isOverdue = engine.writer.withLock { $0.log.tailBytes > 2 * engine.dueTail($0) }
        #expect(isOverdue)
        let (trees, checkpoints) = (engine.statistics.treeCommits, engine.statistics.checkpoints)
        for gone in UInt64(1)...30 {
            _ = try engine.write { try $0.delete(Self.entity, ObjectID(gone)) }
        }
        #expect(engine.statistics.treeCommits == trees)
        #expect(try Self.objects(engine) == Array(31...40))
        #expect(try Self.objects(try Self.powerCut(disk, 6)) == Array(31...40))
        // With space again what was overdue comes.
        disk.setFault(nil)
        try Self.insert(engine, 50...50, length: 2000)
        #expect(engine.statistics.checkpoints > checkpoints)
        #expect(engine.writer.withLock { $0.log.tailBytes <= 2 * engine.dueTail($0) })
    }

    /// Found by a reviewer: large pages, which extend the file themselves, took what was prepared
    /// before they found no space.
    @Test(
        "Pages that are overdue and find no space give way to row changes",
        arguments: [8, 4096]
    )
    func overduePagesGiveWay(tailRoomKilobytes: UInt64) throws {
        let disk = SimulatedDisk()
        let before = try Engine.openTest(disk.root)
        for object in UInt64(1)...40 { try Self.insert(before, object...object, length: 105) }
        // The log is whole, and its tail long: the opening writes nothing.
        try before.exclusively { writer throws(EngineError) in try before.witness(&writer) }
        let killed = disk.killed()
        let engine = try Engine.openTest(killed.root) {
            $0.checkpointTailMin = 4 << 10
            $0.checkpointTailMax = 4 << 10
            $0.tailRoomMin = 4 << 10
            $0.tailRoomMax = tailRoomKilobytes << 10
            $0.tailReserve = 4 << 10
        }
        #expect(engine.writer.withLock { $0.log.tailBytes > 2 * engine.dueTail($0) })
        let end = engine.writer.withLock { $0.log.end.rawValue }
        killed.setFault(
            SimulatedDisk.Fault(
                first: 1,
                count: .max,
                code: SimulatedDisk.noSpace,
                writesPast: Int(end) + (16 << 10)
            )
        )
        for gone in UInt64(1)...30 {
            _ = try engine.write { try $0.delete(Self.entity, ObjectID(gone)) }
        }
        #expect(engine.statistics.treeCommits == 0)
        #expect(engine.writer.withLock { $0.log.voids } == 0)
        #expect(try Self.objects(engine) == Array(31...40))
        #expect(try Self.objects(try Self.powerCut(killed, 8)) == Array(31...40))
    }

    @Test("A large body begins only where all of it fits, what is prepared included")
    func aLargeBodyBeginsOnlyWhereItFits() throws {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root) {
            $0.deltaBytesMax = 4 << 10
            $0.tailRoomMin = 64 << 10
            $0.tailRoomMax = 64 << 10
            $0.tailReserve = 8 << 10
        }
        try Self.insert(engine, 1...1)
        func fill(leaving bytes: UInt64) throws {
            let size = try engine.writer.withLock { try $0.generation.file.size() }
            disk.setFault(
                SimulatedDisk.Fault(
                    first: 1,
                    count: .max,
                    code: SimulatedDisk.noSpace,
                    writesPast: Int(size + bytes)
                )
            )
        }
        // It fits into what is prepared.
        try fill(leaving: 0)
        try Self.insert(engine, 2...50, length: 50)
        #expect(engine.statistics.treeCommits > 0)
        // The body would fit, and not the room behind its commit frame.
        try fill(leaving: 100 << 10)
        let before = engine.writer.withLock { $0.log.end }
        #expect(Self.code { try Self.insert(engine, 100...250, length: 60) } == .noSpace)
        #expect(engine.writer.withLock { $0.log.end } == before)
        #expect(engine.writer.withLock { $0.log.voids } == 0)
        _ = try engine.write { try $0.delete(Self.entity, ObjectID(2)) }
        #expect(disk.failures == 0)
        #expect(try Self.objects(engine) == [1] + Array(3...50))
        #expect(try Self.objects(try Self.powerCut(disk, 10)) == [1] + Array(3...50))
    }

    /// Found by the same: the checkpoint that shared their batch found no room, and they were
    /// refused with it.
    @Test("With a full disk a delete is not refused with the checkpoint that waits beside it")
    func aCheckpointWithoutRoomTakesNoDeleteWithIt() throws {
        let roomy = try Self.full(SimulatedDisk()) { $0.tailReserve = 64 << 10 }
        for object in UInt64(1)...2 {
            _ = try roomy.write { try $0.delete(Self.entity, ObjectID(object)) }
        }
        let before = roomy.writer.withLock { $0.log.end.rawValue }
        try roomy.checkpointInBackground(MaintenanceThread())
        let bytes = roomy.writer.withLock { $0.log.end.rawValue } - before
        try #require(roomy.statistics.checkpoints == 1)
        // There is a length of the reserve at which the pages find room and the CKPT does not.
        for half in stride(from: bytes - 500, to: bytes + 500, by: 60) {
            let gate = Gate(.commitSync)
            let behindPages = Mutex<(@Sendable () -> Void)?>(nil)
            let disk = SimulatedDisk()
            let engine = try Self.full(disk) {
                $0.environment = GatedEnvironment(onYield: { name in
                    gate.yield(name)
                    if name == .checkpointPages { behindPages.withLock { $0 }?() }
                })
                $0.tailReserve = 2 * half
            }
            let second = Mutex<TestThread?>(nil)
            let delete: @Sendable (UInt64) -> Void = { object in
                #expect(throws: Never.self) {
                    _ = try engine.write { try $0.delete(Self.entity, ObjectID(object)) }
                }
            }
            behindPages.withLock {
                $0 = {
                    second.withLock { $0 = TestThread { delete(2) } }
                    waitAMinute { engine.queue.count > 0 }
                }
            }
            gate.arm()
            let first = TestThread { delete(1) }
            gate.waitUntilReached()
            let hasEnded = Mutex(false)
            let third = TestThread {
                try? engine.checkpointInBackground(MaintenanceThread())
                hasEnded.withLock { $0 = true }
            }
            waitAMinute { engine.queue.count > 1 || hasEnded.withLock { $0 } }
            gate.open()
            first.join()
            third.join()
            if let second = second.withLock({ $0 }) { second.join() } else { delete(2) }
            #expect(try Self.objects(engine) == Array(3...40))
            #expect(try Self.objects(try Self.powerCut(disk, 7)) == Array(3...40))
        }
    }

    @Test("Behind an opening on a full disk, where no reserve is ready, deletes do with little")
    func deletesDoWithLittleBehindAnOpening() throws {
        let disk = SimulatedDisk()
        let before = try Engine.openTest(disk.root) { $0.tailRoomMin = 64 << 10 }
        try Self.insert(before, 1...40)
        // Cuts the zeros off: nothing is ready when it is opened again.
        try before.close()
        let engine = try Engine.openTest(disk.root) { $0.tailRoomMin = 64 << 10 }
        disk.setFault(
            SimulatedDisk.Fault(
                first: 1,
                count: .max,
                code: SimulatedDisk.noSpace,
                writesFrom: 8192
            )
        )
        #expect(Self.code { try Self.insert(engine, 50...50) } == .noSpace)
        _ = try engine.write { try $0.delete(Self.entity, ObjectID(7)) }
        let left = (1...40).map { UInt64($0) }.filter { $0 != 7 }
        #expect(try Self.objects(engine) == left)
        #expect(try Self.objects(try Self.powerCut(disk, 5)) == left)
    }

    @Test("A bulk load that fills the disk takes no other saver with it", arguments: [16, 1024])
    func aBulkLoadWithoutSpaceHarmsNoOther(earlyKilobytes: Int) throws {
        let gate = Gate(.commitSync)
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root) {
            $0.environment = GatedEnvironment(onYield: { gate.yield($0) })
            $0.deltaBytesMax = 16 << 10
            $0.earlyWriteBytes = earlyKilobytes << 10
            $0.tailRoomMin = 4 << 10
            $0.tailRoomMax = 8 << 10
        }
        gate.arm()
        let first = TestThread { _ = try? Self.insert(engine, 1...1) }
        gate.waitUntilReached()
        let codes = Mutex<[EngineError.Code?]>([])
        let second = TestThread {
            let code = Self.code { try Self.insert(engine, 2...2) }
            codes.withLock { $0.append(code) }
        }
        while engine.queue.count < 1 { _ = Parker().park(milliseconds: 1) }
        disk.setFault(
            SimulatedDisk.Fault(first: 1, code: SimulatedDisk.noSpace, writesFrom: 16 << 10)
        )
        #expect(Self.code { try Self.insert(engine, 100...2000) } == .noSpace)
        #expect(disk.failures == 1)
        gate.open()
        first.join()
        second.join()
        #expect(codes.withLock { $0 } == [nil])
        try Self.insert(engine, 3...3)
        #expect(try Self.objects(engine) == [1, 2, 3])
        #expect(disk.violations == [])
        #expect(try Self.objects(try Self.powerCut(disk, 4)) == [1, 2, 3])
    }

    @Test("Who read a commit that waits, and changed nothing, waits for it too")
    func readingWhatWaitsIsNoPromise() throws {
        let gate = Gate(.commitSync)
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root) {
            $0.environment = GatedEnvironment(onYield: { gate.yield($0) })
        }
        gate.arm()
        let first = TestThread { _ = try? Self.insert(engine, 1...1) }
        gate.waitUntilReached()
        let result = Mutex<(isDone: Bool, wasThere: Bool, code: EngineError.Code?)>(
            (false, false, nil)
        )
        let second = TestThread {
            let code = Self.code {
                _ = try engine.write {
                    let wasThere = try $0.row(TestDelegate.rows, ObjectID(1)) != nil
                    result.withLock { $0.wasThere = wasThere }
                }
            }
            result.withLock { ($0.isDone, $0.code) = (true, code) }
        }
        while !result.withLock({ $0.wasThere }) { _ = Parker().park(milliseconds: 1) }
        _ = Parker().park(milliseconds: 30)
        #expect(!result.withLock { $0.isDone }, "it would say what nobody knows yet")
        disk.setFault(SimulatedDisk.Fault(first: disk.calls + 1))
        gate.open()
        first.join()
        second.join()
        #expect(result.withLock { $0.code } == .poisoned)
    }

    @Test("Relaxed commits that keep coming are synced all the same")
    func relaxedCommitsAreSyncedWhileTheyCome() throws {
        let engine = try Engine.openTest(SimulatedDisk().root) {
            $0.maintenance = .background
            $0.idleMilliseconds = 60_000
        }
        let before = engine.statistics.syncs
        for object in UInt64(1)...120 {
            try Self.insert(engine, object...object, durability: .relaxed)
            _ = Parker().park(milliseconds: 5)
        }
        #expect(engine.statistics.syncs > before + 2)
    }
}
