// Blobs named by commits, in the log and in files, and their end.

import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite(.verified) struct BlobCommitTests {
    private let entity = TestDelegate.entity

    private func bytes(_ count: Int, _ seed: UInt64) -> [UInt8] {
        var random = SeededRandom(seed: seed)
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    private func write(_ engine: Engine, _ bytes: [UInt8]) throws -> PendingBlob {
        let writer = try engine.makeBlobWriter(externalLimit: 1000)
        for start in stride(from: 0, to: bytes.count, by: 300) {
            try writer.append(Array(bytes[start..<min(start + 300, bytes.count)]))
        }
        return try writer.finish()
    }

    private func files(_ directory: MemoryDirectory) throws -> [String] {
        guard try directory.exists("test.varve-blobs") else { return [] }
        return try directory.directory("test.varve-blobs", create: false).list()
    }

    @Test(arguments: [0, 1, 1000, 1001, 700_000])
    func aBlobIsReadAsItWasWritten(count: Int) throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory)
        let content = bytes(count, 7)
        var pending: PendingBlob? = try write(engine, content)
        let reference = try #require(pending?.reference)
        #expect(reference.length == UInt64(count))
        #expect(try pending?.open().readAll() == content)
        _ = try engine.write {
            try $0.insert(entity, ObjectID(1), row: row(1, "a", blob: reference))
        }
        pending = nil
        // A file exactly when the blob is above its limit.
        #expect(try files(directory).count == (count > 1000 ? 1 : 0))
        #expect(try engine.snapshot().blob(reference)?.readAll() == content)
        if count > 10 {
            let middle = UInt64(count / 2)
            #expect(
                try engine.snapshot().blob(reference)?.read(middle..<(middle + 5))
                    == Array(content[count / 2..<count / 2 + 5])
            )
        }
        try engine.close()
        let again = try Engine.openTest(directory)
        #expect(try again.snapshot().blob(reference)?.readAll() == content)
        #expect(try again.snapshot().row(TestDelegate.rows, ObjectID(1)) != nil)
    }

    /// A snapshot kept it from the last checkpoint; with nothing left to write, the close made no
    /// other one, and the file stayed for as long as the store was only opened and closed.
    @Test("A clean close takes dropped files that nobody reads any more")
    func aDroppedFileDoesNotSurviveAClose() throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory) { $0.maintenance = .inline }
        var pending: PendingBlob? = try write(engine, bytes(4000, 3))
        let reference = try #require(pending?.reference)
        _ = try engine.write {
            try $0.insert(entity, ObjectID(1), row: row(1, "a", blob: reference))
        }
        pending = nil
        var reader: Snapshot? = engine.snapshot()
        _ = try engine.write { try $0.delete(entity, ObjectID(1)) }
        try engine.checkpoint()
        #expect(try files(directory).count == 1)
        #expect(try reader?.blob(reference)?.readAll().count == 4000)
        reader = nil
        try engine.close()
        #expect(try files(directory).isEmpty)
        #expect(try Engine.openTest(directory).contents().isEmpty)
    }

    @Test func anEntryOfAnotherLengthThanItsValueIsDamage() throws {
        let address = PageAddress(offset: FileOffset(8_192), storedLength: 80, payloadHash: 5)
        func entry(_ length: UInt64, value: UInt64) -> [UInt8] {
            let place = ValuePlace(address: address, length: value)
            return BlobEntry(references: 1, length: length, place: .frame(place)).encoded()
        }
        #expect(try BlobEntry(decoding: entry(10, value: 10)).length == 10)
        for length in [UInt64(9), 11, 1 << 40, UInt64(Int64.max), .max] {
            let forged = entry(length, value: 10)
            #expect(throws: FormatError.self) { try BlobEntry(decoding: forged) }
        }
    }

    @Test func equalContentIsOneFileAndGoesWithItsLastRow() throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory)
        let content = bytes(5000, 8)
        let reference = try { () throws in
            let (first, second) = (try write(engine, content), try write(engine, content))
            #expect(first.reference == second.reference)
            _ = try engine.write {
                try $0.insert(entity, ObjectID(1), row: row(1, "a", blob: first.reference))
                try $0.insert(entity, ObjectID(2), row: row(2, "b", blob: second.reference))
            }
            return first.reference
        }()
        #expect(try files(directory).count == 1)
        _ = try engine.write { try $0.delete(entity, ObjectID(1)) }
        try engine.checkpoint()
        #expect(try files(directory).count == 1)
        let reader = engine.snapshot()
        _ = try engine.write { try $0.delete(entity, ObjectID(2)) }
        try engine.checkpoint()
        // A snapshot from before still reads it.
        #expect(try reader.blob(reference)?.readAll() == content)
        #expect(try files(directory).count == 1)
        withExtendedLifetime(reader) {}
        #expect(try engine.snapshot().blob(reference) == nil)
    }

    @Test func aDroppedBlobIsSweptWhenNobodyReadsItAnyMore() throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory)
        let content = bytes(5000, 9)
        let reference = try { () throws in try write(engine, content).reference }()
        // Held by nobody: a later writer of the same content keeps it.
        let pending = try write(engine, content)
        _ = try engine.write {
            try $0.insert(entity, ObjectID(1), row: row(1, "", blob: reference))
        }
        _ = try engine.write { try $0.delete(entity, ObjectID(1)) }
        try engine.checkpoint()
        #expect(try files(directory).count == 1, "a pending blob holds the file")
        withExtendedLifetime(pending) {}
        let again: PendingBlob? = nil
        _ = again
        try engine.close()
        let second = try Engine.openTest(directory)
        _ = try second.write { try $0.insert(entity, ObjectID(2), row: row(2, "")) }
        try second.close()
        #expect(try files(directory).isEmpty)
    }

    @Test func aRowMayNotNameABlobThatNobodyWrote() throws {
        let engine = try Engine.openTest(MemoryDirectory())
        let reference = BlobReference(digest: BlobDigest(1, 2, 3, 4), length: 5)
        let error = #expect(throws: EngineError.self) {
            try engine.write {
                try $0.insert(entity, ObjectID(1), row: row(1, "", blob: reference))
            }
        }
        #expect(error?.code == .blobMissing)
        #expect(try engine.contents().isEmpty)
        // The store goes on.
        _ = try engine.write { try $0.insert(entity, ObjectID(1), row: row(1, "")) }
    }

    @Test func aMissingFileFailsThatBlobOnly() throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory)
        let reference = try { () throws in
            let pending = try write(engine, bytes(3000, 10))
            _ = try engine.write {
                try $0.insert(entity, ObjectID(1), row: row(1, "a", blob: pending.reference))
            }
            return pending.reference
        }()
        let blobs = try directory.directory("test.varve-blobs", create: false)
        try blobs.remove(try blobs.list()[0])
        let error = #expect(throws: EngineError.self) { try engine.snapshot().blob(reference) }
        #expect(error?.code == .blobMissing)
        #expect(try engine.snapshot().row(TestDelegate.rows, ObjectID(1)) != nil)
    }
}
