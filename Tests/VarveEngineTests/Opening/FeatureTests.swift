// Stores of versions to come: refused as a whole, or read and not written, never misread.

import Testing
import VarveBase
import VarveFormat
import VarveIO

@testable import VarveEngine

@Suite(.verified) struct FeatureTests {
    private func directory(
        rows: UInt64,
        _ adjust: (inout CommitRecord) -> Void
    ) throws -> MemoryDirectory {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory)
        for object in 1...rows {
            _ = try engine.write {
                try $0.insert(TestDelegate.entity, ObjectID(object), row: row(1, "a"))
            }
        }
        try engine.close()
        let file = try directory.openFile("test.varve", mode: .readWrite)
        let header = try FileHeader(decoding: file.read(at: FileOffset(0), count: 4096))
        let reader = LogReader(file: file, seed: header.fileSeed)
        let found = try Recovery(scan: LogScan(log: reader, size: file.size())).run()
        var log = LogWriter(
            file: file,
            seed: header.fileSeed,
            options: EngineOptions(),
            counters: EngineCounters(),
            end: found.newest.end,
            durableEnd: found.durableEnd,
            lastCommit: found.proven.offset,
            lastCommitHash: found.proven.header.payloadHash,
            checkpoint: found.base.offset
        )
        let roots = try Replay.roots(of: found.base)
        var record = found.base.record
        adjust(&record)
        var body = ByteWriter()
        TreeRoots.append(roots, to: &body)
        log.appendCommit(.checkpoint, flags: [], record: record, body: body.bytes)
        try log.flush()
        try log.sync()
        return directory
    }

    private func size(_ directory: MemoryDirectory) throws -> UInt64 {
        try directory.openFile("test.varve", mode: .read).size()
    }

    /// Before, the commit counted as torn and was passed over: what a newer version had saved was
    /// lost at the next save of an older one.
    @Test(
        .damagesStores("a commit says that it is of a newer version"),
        arguments: [UInt32(1), 0x8000, 0x0001_0001]
    )
    func aFeatureThatReadersMustKnowRefusesTheStore(flags: UInt32) throws {
        let directory = try directory(rows: 3) { $0.flags = flags }
        let before = try size(directory)
        for mode in [StoreOpenMode.existing, .readOnly] {
            let error = #expect(throws: EngineError.self) {
                try Engine.openTest(directory, mode: mode)
            }
            #expect(error?.code == .formatTooNew)
        }
        #expect(try size(directory) == before)
    }

    @Test func aFeatureThatWritersMustKnowLeavesReading() throws {
        let directory = try directory(rows: 3) { $0.flags = 0x0001_0000 }
        let before = try size(directory)
        let error = #expect(throws: EngineError.self) {
            try Engine.openTest(directory, mode: .existing)
        }
        #expect(error?.code == .formatTooNew)
        #expect(try size(directory) == before)
        let engine = try Engine.openTest(directory, mode: .readOnly)
        #expect(try engine.contents().count == 3)
    }

    @Test func aHeaderThatOnlyWritersMustUnderstandLeavesReading() throws {
        let directory = try directory(rows: 2) { _ in }
        let file = try directory.openFile("test.varve", mode: .readWrite)
        var header = try FileHeader(decoding: file.read(at: FileOffset(0), count: 4096))
        header.writerNeeds = FileHeader.newestVersion + 1
        try file.write(header.encoded() + header.encoded(), at: FileOffset(0))
        let error = #expect(throws: EngineError.self) {
            try Engine.openTest(directory, mode: .existing)
        }
        #expect(error?.code == .formatTooNew)
        let engine = try Engine.openTest(directory, mode: .readOnly)
        #expect(try engine.contents().count == 2)
    }

    @Test func whatLaterVersionsPutIntoTheEnginesTreesIsKept() throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory)
        let key = Array("later".utf8)
        _ = try engine.write {
            try $0.put(TreeID(5), [1], [2])
            try $0.put(.catalog, key, [3])
            try $0.insert(TestDelegate.entity, ObjectID(1), row: row(1, "a"))
        }
        try engine.checkpoint()
        _ = try engine.compact()
        _ = try engine.write { try $0.delete(TestDelegate.entity, ObjectID(1)) }
        try engine.close()
        let snapshot = try Engine.openTest(directory, mode: .existing).snapshot()
        #expect(try snapshot.value(TreeID(5), [1]) == [2])
        #expect(try snapshot.value(.catalog, key) == [3])
        #expect(snapshot.schemaVersion == 1)
    }

    /// The header's spare bytes are for later versions that this one need not know of.
    @Test func spareBytesOfTheHeaderAreNotLookedAt() throws {
        let directory = try directory(rows: 2) { _ in }
        let file = try directory.openFile("test.varve", mode: .readWrite)
        var bytes = try file.read(at: FileOffset(0), count: 4096)
        for place in [20, 137, 4087] { bytes[place] = 7 }
        let hash = FrameHash.xxh64(bytes, range: 0..<4088, seed: 0)
        for index in 0..<8 { bytes[4088 + index] = UInt8(truncatingIfNeeded: hash >> (8 * index)) }
        try file.write(bytes + bytes, at: FileOffset(0))
        #expect(try Engine.openTest(directory, mode: .existing).contents().count == 2)
    }

    @Test func whatStandsBehindTheCountsOfARecordIsPassedOver() throws {
        var record = CommitRecord()
        record.number = CommitNumber(7)
        record.author = "me"
        record.entityCounts = [.init(entity: EntityID(1), added: 1, changed: 0, deleted: 0)]
        var bytes = record.encoded()
        let length = bytes.count - CommitRecord.fixedLength
        bytes += [1, 2, 3, 4, 5]
        bytes[92] = UInt8(length + 5)
        let decoded = try CommitRecord.decode(bytes, offset: FileOffset(8192))
        #expect(decoded.record == record && decoded.length == bytes.count)
    }
}
