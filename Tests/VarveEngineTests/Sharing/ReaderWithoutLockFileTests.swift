// Readers that open a store while its lock file is absent.

import Foundation
import Testing
import VarveBase
import VarveFormat
import VarveIO

@testable import VarveEngine

/// A folder in which this process may make nothing.
private final class ForeignFolder: StoreDirectory {
    private let base: PosixDirectory
    init(_ path: String) throws { base = try PosixDirectory.open(path: path) }

    private func refuse(_ name: String) -> IOError {
        IOError(
            kind: .permission,
            code: 13,
            operation: "open",
            name: name,
            reason: "Permission denied"
        )
    }
    var name: String { base.name }
    var isSharedBetweenProcesses: Bool { true }
    func openFile(_ name: String, mode: OpenMode) throws(IOError) -> any StoreFile {
        if mode != .read { throw refuse(name) }
        return try base.openFile(name, mode: mode)
    }
    func exists(_ name: String) throws(IOError) -> Bool { try base.exists(name) }
    func rename(_ from: String, to: String, replacing: Bool) throws(IOError) {
        throw refuse(from)
    }
    func remove(_ name: String) throws(IOError) { throw refuse(name) }
    func removeDirectory(_ name: String) throws(IOError) { throw refuse(name) }
    func list() throws(IOError) -> [String] { try base.list() }
    func sync() throws(IOError) { try base.sync() }
    func directory(_ name: String, create: Bool) throws(IOError) -> any StoreDirectory {
        if create { throw refuse(name) }
        return try base.directory(name, create: false)
    }
    func openLocks(_ name: String, isReader: Bool) throws(IOError) -> (any LockBytes)? {
        try base.openLocks(name, isReader: true)
    }
    func lock(
        _ name: String,
        byte: UInt64,
        kind: LockKind,
        wait: Bool
    ) throws(IOError) -> any FileLock {
        throw refuse(name)
    }
}

@Suite("Readers without a lock file", .verified) struct ReaderWithoutLockFileTests {
    private static let content = [UInt8](repeating: 5, count: 3000)

    /// A store with one row that has a blob file, closed, its lock file gone.
    private func store(
        in folder: WritersFolder
    ) throws -> (id: ObjectID, blob: BlobReference) {
        let engine = try folder.open { $0.maintenance = .inline }
        let writer = try engine.makeBlobWriter(externalLimit: 1000)
        try writer.append(Self.content)
        let pending = try writer.finish()
        let id = engine.allocateObjectIDs(1)
        _ = try engine.write {
            try $0.insert(TestDelegate.entity, id, row: row(1, "a", blob: pending.reference))
        }
        try engine.close()
        try FileManager.default.removeItem(atPath: folder.path + "/test.varve-lock")
        return (id, pending.reference)
    }

    private func dropBlob(_ id: ObjectID, in folder: WritersFolder) throws -> EngineStatistics {
        let writer = try folder.open { $0.maintenance = .inline }
        _ = try writer.write { try $0.delete(TestDelegate.entity, id) }
        try writer.checkpoint()
        let statistics = writer.statistics
        try writer.close()
        return statistics
    }

    /// It never followed, and the writer, who did not know of it, swept the blobs that it read.
    @Test("A reader makes the lock file, follows, and keeps its blobs")
    func makesIt() throws {
        let folder = try WritersFolder()
        let (id, blob) = try store(in: folder)
        let reader = try folder.open(.readOnly)
        #expect(!reader.readsOneMoment)
        let before = reader.snapshot()
        let writer = try folder.open { $0.maintenance = .inline }
        _ = try writer.write {
            try $0.insert(TestDelegate.entity, ObjectID(1 << 40), row: row(2, "b"))
        }
        #expect(try reader.contents() == writer.contents())
        _ = try writer.write { try $0.delete(TestDelegate.entity, id) }
        try writer.checkpoint()
        #expect(writer.statistics.blobFilesSwept == 0)
        #expect(try before.blob(blob)?.readAll() == Self.content)
        #expect(try reader.contents() == writer.contents())
        try writer.close()
        #expect(try before.blob(blob)?.readAll() == Self.content)
        withExtendedLifetime(before) {}
    }

    @Test("Two readers and a writer that come one after another share one file")
    func oneFile() throws {
        let folder = try WritersFolder()
        _ = try store(in: folder)
        let readers = try (0..<2).map { _ in try folder.open(.readOnly) }
        let writer = try folder.open { $0.maintenance = .inline }
        _ = try writer.write {
            try $0.insert(TestDelegate.entity, ObjectID(1 << 40), row: row(2, "b"))
        }
        for reader in readers { #expect(try reader.contents() == writer.contents()) }
    }

    @Test("One that may not make it reads one moment, says so, and misses no blob in silence")
    func mayNot() throws {
        let folder = try WritersFolder()
        let (id, blob) = try store(in: folder)
        let reader = try Engine.openTest(ForeignFolder(folder.path), mode: .readOnly)
        #expect(reader.readsOneMoment)
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/test.varve-lock"))
        let before = try reader.contents()
        #expect(try reader.snapshot().blob(blob)?.readAll() == Self.content)
        let swept = try dropBlob(id, in: folder).blobFilesSwept
        #expect(swept == 1)
        // Its moment stays.
        #expect(try reader.contents() == before)
        let error = #expect(throws: EngineError.self) { try reader.snapshot().blob(blob) }
        #expect(error?.code == .blobSwept)
        #expect(error?.message.contains("open the store again") == true)
        // The advice helps.
        let again = try Engine.openTest(ForeignFolder(folder.path), mode: .readOnly)
        #expect(!again.readsOneMoment)
        #expect(try again.contents() == [:])
        #expect(try again.snapshot().blob(blob) == nil)
    }

    @Test("A store in memory is nobody else's: its readers do not read one moment")
    func inMemory() throws {
        let directory = MemoryDirectory()
        try Engine.openTest(directory).close()
        let reader = try Engine.openTest(directory, mode: .readOnly)
        #expect(!reader.readsOneMoment)
    }

    @Test("A reader makes nothing beside a store that is not there")
    func noStore() throws {
        let folder = try WritersFolder()
        let error = #expect(throws: EngineError.self) { try folder.open(.readOnly) }
        #expect(error?.code == .missing)
        #expect(try PosixDirectory.open(path: folder.path).list() == [])
    }
}
