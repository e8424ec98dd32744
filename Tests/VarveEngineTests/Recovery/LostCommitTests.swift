// Ways in which an acknowledged commit was once lost, or could be.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

/// Ways in which an acknowledged commit was once lost, or could be.
@Suite(.verified) struct LostCommitTests {
    private let entity = TestDelegate.entity

    private func insert(_ engine: Engine, _ objects: ClosedRange<UInt64>) throws {
        _ = try engine.write { transaction in
            for object in objects {
                try transaction.insert(entity, ObjectID(object), row: row(1, "text \(object)"))
            }
        }
    }

    private func bytes(_ disk: SimulatedDisk) throws -> [UInt8] {
        let file = try disk.root.openFile("test.varve", mode: .read)
        return try file.read(at: FileOffset(0), count: Int(try file.size()))
    }

    /// A copy of the disk with other bytes at one place.
    private func changed(_ disk: SimulatedDisk, at: Int, _ bytes: [UInt8]) throws -> SimulatedDisk {
        let copy = disk.killed()
        let id = try #require(copy.state.file("test.varve"))
        copy.state.overwrite(id, at: at, bytes)
        return copy
    }

    private func dataEnd(_ bytes: [UInt8]) -> Int {
        (bytes.lastIndex { $0 != 0 } ?? 0) + 1
    }

    /// Length of the frame that ends at `end`, by its tail word.
    private func frameLength(_ bytes: [UInt8], endingAt end: Int) throws -> Int {
        Int(try #require(FrameHeader.tailWord(bytes, at: end - FrameHeader.tailLength)))
    }

    /// The pages of a torn settle name the commit before the one that was to be settled.
    @Test func aTornSettleLosesNotTheCommitItSettles() throws {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root)
        try insert(engine, 1...5)
        try insert(engine, 6...9)
        let expected = try engine.contents()
        let killed = disk.killed()
        killed.record()
        let second = try Engine.openTest(killed.root, mode: .existing)
        #expect(second.statistics.settledCommits == 1)
        var random = SeededRandom(seed: 1)
        for (state, _) in killed.takeRecording() {
            for _ in 0..<8 {
                let cut = SimulatedDisk.powerCut(state, &random)
                let third = try Engine.openTest(cut.root, mode: .existing)
                #expect(try third.contents() == expected)
            }
        }
    }

    /// Some bytes of a write that failed did arrive: the next commit must not be written over them,
    /// and their pages must not lead the next opening to the commit before it.
    @Test func aBulkLoadThatFillsTheDiskCostsNoLaterCommit() throws {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root) {
            $0.deltaBytesMax = 16 << 10
            $0.earlyWriteBytes = 16 << 10
            $0.tailRoomMin = 4 << 10
            $0.tailRoomMax = 8 << 10
        }
        try insert(engine, 1...3)
        disk.setFault(
            SimulatedDisk.Fault(first: 1, code: SimulatedDisk.noSpace, writesFrom: 16 << 10)
        )
        let error = #expect(throws: EngineError.self) { try insert(engine, 100...9000) }
        #expect(error?.code == .noSpace)
        #expect(disk.failures == 1)
        try insert(engine, 4...6)
        let expected = try engine.contents()
        #expect(expected.count == 6)
        #expect(disk.violations == [])
        let again = try Engine.openTest(disk.killed().root, mode: .existing)
        #expect(try again.contents() == expected)
        try again.close()
    }

    /// Between an unclean end and the first commit behind it lies a gap up to the next 4 KiB.
    @Test(.damagesStores("a byte is changed"))
    func aBadByteInTheFirstCommitAfterAnUncleanEndIsRefused() throws {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root)
        try insert(engine, 1...3)
        try engine.checkpoint()
        let killed = disk.killed()
        let second = try Engine.openTest(killed.root, mode: .existing)
        try insert(second, 4...4)
        let expected = try second.contents()
        let before = try bytes(killed)
        let end = dataEnd(before)
        let length = try frameLength(before, endingAt: end)
        for place in stride(from: end - length, to: end, by: 3) {
            let copy = try changed(killed, at: place, [before[place] ^ 0x10])
            do {
                let third = try Engine.openTest(copy.root, mode: .existing)
                #expect(try third.contents() == expected, "byte \(place - end + length)")
            } catch let error as EngineError {
                #expect([.damaged, .newestCommitDamaged].contains(error.code))
            }
        }
    }

    @Test func aTailWordThatLeadsPastTheNewestCommitIsNotFollowed() throws {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root)
        try insert(engine, 1...3)
        try insert(engine, 4...4)
        let before = try bytes(disk)
        let end = dataEnd(before)
        let newest = try frameLength(before, endingAt: end)
        let both = newest + (try frameLength(before, endingAt: end - newest))
        var word = ByteWriter()
        word.u32(UInt32(both / 8))
        let copy = try changed(disk, at: end - FrameHeader.tailLength, word.bytes)
        let again = try Engine.openTest(copy.root, mode: .existing)
        #expect(try again.contents() == engine.contents())
    }

    /// The bytes of the newest commit are gone, but the half of a later one names it.
    @Test(.damagesStores("a commit is taken out")) func aCommitThatATornFrameNamesIsMissed() throws
    {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root)
        try insert(engine, 1...3)
        let end = dataEnd(try bytes(disk))
        let length = try frameLength(try bytes(disk), endingAt: end)
        try insert(engine, 4...30)
        let zeros = [UInt8](repeating: 0, count: length)
        let wiped = try changed(disk, at: end - length, zeros)
        let last = dataEnd(try bytes(disk))
        let torn = try changed(wiped, at: last - 100, [UInt8](repeating: 0, count: 100))
        let error = #expect(throws: EngineError.self) {
            try Engine.openTest(torn.root, mode: .existing)
        }
        #expect(error?.code == .damaged)
    }

    /// A process that makes a store dies before it syncs the directory; the next one goes on.
    @Test func theNameOfAStoreIsOnDiskBeforeACommitIsAcknowledged() throws {
        let disk = SimulatedDisk()
        disk.record()
        let first = try Engine.openTest(disk.root)
        for (state, _) in disk.takeRecording() {
            let next = SimulatedDisk(state)
            let engine = try Engine.openTest(next.root)
            try insert(engine, 1...1)
            var lost = next.state
            for id in lost.files.keys { lost.files[id]!.cache = lost.files[id]!.durable }
            for path in lost.folders.keys {
                lost.folders[path]!.cache = lost.folders[path]!.durable
            }
            let again = try Engine.openTest(SimulatedDisk(lost).root, mode: .existing)
            #expect(try again.contents().count == 1)
        }
        withExtendedLifetime(first) {}
    }

    @Test func aChangeThatFailedCannotBeCommitted() throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory)
        try insert(engine, 1...1)
        let expected = try engine.contents()
        let error = #expect(throws: EngineError.self) {
            _ = try engine.write { transaction in
                // The caller goes on as if nothing were.
                try? transaction.insert(entity, ObjectID(1), row: row(9, "another"))
                try transaction.insert(entity, ObjectID(2), row: row(2, "b"))
            }
        }
        #expect(error?.code == .invalid)
        #expect(try engine.contents() == expected)
        try insert(engine, 2...2)
        #expect(try engine.contents().count == 2)
    }

    @Test func aCheckpointThatFailsHalfWayTakesNoCommitBack() throws {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root)
        try insert(engine, 1...3)
        // The checkpoint's write, then its sync.
        disk.setFault(SimulatedDisk.Fault(first: disk.calls + 2))
        let error = #expect(throws: EngineError.self) { try engine.checkpoint() }
        #expect(error?.code == .poisoned)
        #expect(try engine.contents().count == 3)
        let later = #expect(throws: EngineError.self) { try insert(engine, 4...4) }
        #expect(later?.code == .poisoned)
        #expect(try Engine.openTest(disk.killed().root).contents().count == 3)
    }

    @Test func idsHandedOutWithoutACommitAreNotHandedOutAgain() throws {
        let directory = MemoryDirectory()
        try Engine.openTest(directory).close()
        let second = try Engine.openTest(directory)
        let ids = second.allocateObjectIDs(10)
        try second.close()
        let third = try Engine.openTest(directory)
        #expect(third.allocateObjectIDs(1).rawValue == ids.rawValue + 10)
    }

    /// Bytes that do not compress grow when a run of zeros asks for compression: the longest value
    /// must still fit what a reader accepts.
    @Test func theLongestValueFitsItsFrame() throws {
        let limit = EngineOptions.valueBytesMax
        #expect(limit + limit / 255 + 16 + ValueHeader.length <= FrameKind.value.payloadBytesMax)
        let engine = try Engine.openTest(MemoryDirectory())
        let row = RowCoding.encode([.int(1), .data([UInt8](repeating: 1, count: limit + 1))])
        let error = #expect(throws: EngineError.self) {
            try engine.write { try $0.insert(entity, ObjectID(1), row: row) }
        }
        #expect(error?.code == .limitExceeded)
        try insert(engine, 1...1)
    }

    @Test func aBlobDroppedTwiceIsKeptForTheSnapshotInBetween() throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory)
        let writer = try engine.makeBlobWriter(externalLimit: 10)
        let content = (0..<500).map { UInt8(truncatingIfNeeded: $0) }
        try writer.append(content)
        var pending: PendingBlob? = try writer.finish()
        let reference = try #require(pending?.reference)
        for object in [UInt64(1), 2] {
            _ = try engine.write {
                try $0.insert(entity, ObjectID(object), row: row(1, "", blob: reference))
            }
            if object == 1 {
                _ = try engine.write { try $0.delete(entity, ObjectID(1)) }
            }
        }
        let between = engine.snapshot()
        pending = nil
        _ = try engine.write { try $0.delete(entity, ObjectID(2)) }
        try engine.checkpoint()
        #expect(try between.blob(reference)?.readAll() == content)
    }
}
