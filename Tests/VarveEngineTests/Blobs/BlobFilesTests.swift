// Blob files: names, sharing, damage, leftovers. In memory and on disk.

import Foundation
import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO

@testable import VarveEngine

/// A folder in which another process makes the directory again whenever this one has synced it, as
/// one does that begins at the same time.
private final class ContestedFolder: StoreDirectory {
    private let base: any StoreDirectory
    private let contested: String
    private let left: Mutex<Int>
    private let made = Mutex(0)
    init(_ base: any StoreDirectory, _ contested: String, times: Int) {
        (self.base, self.contested) = (base, contested)
        left = Mutex(times)
    }

    /// How many contests are left; less than 0 once a sync met none.
    var contests: Int { left.withLock { $0 } }
    /// How often a directory was asked to be made.
    var makings: Int { made.withLock { $0 } }
    var name: String { base.name }
    func openFile(_ name: String, mode: OpenMode) throws(IOError) -> any StoreFile {
        try base.openFile(name, mode: mode)
    }
    func exists(_ name: String) throws(IOError) -> Bool { try base.exists(name) }
    func rename(_ from: String, to: String, replacing: Bool) throws(IOError) {
        try base.rename(from, to: to, replacing: replacing)
    }
    func remove(_ name: String) throws(IOError) { try base.remove(name) }
    func removeDirectory(_ name: String) throws(IOError) { try base.removeDirectory(name) }
    func list() throws(IOError) -> [String] { try base.list() }
    func sync() throws(IOError) {
        try base.sync()
        let isContested = left.withLock { left in
            left -= 1
            return left >= 0
        }
        guard isContested else { return }
        try base.removeDirectory(contested)
        _ = try base.directory(contested, create: true)
    }
    func directory(_ name: String, create: Bool) throws(IOError) -> any StoreDirectory {
        if create { made.withLock { $0 += 1 } }
        return try base.directory(name, create: create)
    }
    func lock(
        _ name: String,
        byte: UInt64,
        kind: LockKind,
        wait: Bool
    ) throws(IOError) -> any FileLock {
        try base.lock(name, byte: byte, kind: kind, wait: wait)
    }
}

@Suite(.verified) struct BlobFilesTests {
    private func withDirectories(_ body: (any StoreDirectory) throws -> Void) throws {
        try body(MemoryDirectory())
        let path =
            FileManager.default.temporaryDirectory.path
            + "/varve-blobs-\(SystemEnvironment().randomNumber())"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try body(try PosixDirectory.open(path: path, create: true))
    }

    private func files(in parent: any StoreDirectory) -> BlobFiles {
        BlobFiles(
            in: DirectoryNames(parent),
            name: "a.varve-blobs",
            environment: SystemEnvironment()
        )
    }

    private func content(_ count: Int, seed: UInt8 = 1) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) ^ seed }
    }

    @Test(arguments: [0, 1, 1000, 256 << 10, (256 << 10) + 1, 700_001])
    func whatIsWrittenIsRead(count: Int) throws {
        try withDirectories { parent in
            let blobs = files(in: parent)
            let bytes = content(count)
            let writer = try blobs.makeWriter()
            var at = 0
            while at < count {
                let next = min(count, at + 90_000)
                try writer.append(Array(bytes[at..<next]))
                at = next
            }
            #expect(writer.length == UInt64(count))
            let reference = try writer.finish()
            try blobs.publish()
            #expect(
                reference
                    == BlobReference(
                        digest: BlobHasher.digest(of: bytes),
                        length: UInt64(count)
                    )
            )
            let reader = try blobs.open(reference)
            #expect(try reader.readAll() == bytes)
            try reader.verify()
            var pieces: [UInt8] = []
            try reader.forEachPiece { pieces += $0 }
            #expect(pieces == bytes)
            let start = count / 3
            #expect(
                try reader.read(UInt64(start)..<UInt64(count)) == Array(bytes[start...])
            )
            #expect(throws: BlobError.self) { try reader.read(0..<UInt64(count) + 1) }
            #expect(try blobs.exists(reference))
            #expect(try blobs.list() == [reference.digest])
            #expect(
                try parent.directory("a.varve-blobs", create: false).list()
                    == [reference.digest.hexText]
            )
        }
    }

    @Test func nothingExistsBeforeTheFirstBlob() throws {
        try withDirectories { parent in
            let blobs = files(in: parent)
            let reference = BlobReference(digest: BlobHasher.digest(of: [1]), length: 1)
            #expect(try blobs.list().isEmpty)
            #expect(try !blobs.exists(reference))
            #expect(try !blobs.remove(reference.digest))
            #expect(try blobs.removeLeftovers() == 0)
            try blobs.publish()
            #expect(throws: BlobError.self) { try blobs.open(reference) }
            #expect(try parent.list().isEmpty)
        }
    }

    @Test func equalBlobsShareOneFile() throws {
        try withDirectories { parent in
            let blobs = files(in: parent)
            let one = try blobs.write(content(5000))
            let two = try blobs.write(content(5000))
            let other = try blobs.write(content(5000, seed: 2))
            #expect(one == two)
            #expect(try blobs.list() == [one.digest, other.digest].sorted())
            #expect(try parent.directory("a.varve-blobs", create: false).list().count == 2)
        }
    }

    @Test func writingAgainHealsADamagedFile() throws {
        try withDirectories { parent in
            let blobs = files(in: parent)
            for damage in 0..<2 {
                let bytes = content(300_000, seed: UInt8(10 + damage))
                let reference = try blobs.write(bytes)
                let directory = try parent.directory("a.varve-blobs", create: false)
                let file = try directory.openFile(reference.digest.hexText, mode: .readWrite)
                if damage == 0 {
                    try file.write([~bytes[280_000]], at: FileOffset(280_000))
                } else {
                    try file.cut(to: 100)
                }
                #expect(throws: BlobError.self) { try blobs.open(reference).readAll() }
                #expect(try blobs.write(bytes) == reference)
                #expect(try blobs.open(reference).readAll() == bytes)
            }
        }
    }

    @Test func damageIsReportedAsDamageAndAbsenceAsAbsence() throws {
        try withDirectories { parent in
            let blobs = files(in: parent)
            let reference = try blobs.write(content(1000))
            let directory = try parent.directory("a.varve-blobs", create: false)
            let longer = BlobReference(digest: reference.digest, length: 1001)
            #expect { try blobs.open(longer) } throws: { Self.isDamaged($0) }
            let file = try directory.openFile(reference.digest.hexText, mode: .readWrite)
            try file.write([0xEE], at: FileOffset(500))
            let reader = try blobs.open(reference)
            #expect { try reader.readAll() } throws: { Self.isDamaged($0) }
            #expect { try reader.verify() } throws: { Self.isDamaged($0) }
            try file.cut(to: 10)
            #expect { try reader.read(0..<1000) } throws: { Self.isDamaged($0) }
            #expect(try !blobs.exists(reference))
            #expect(try blobs.remove(reference.digest))
            #expect { try blobs.open(reference) } throws: {
                if case BlobError.missing = $0 { true } else { false }
            }
        }
    }

    @Test func foreignEntriesAreIgnoredAndLeftAlone() throws {
        try withDirectories { parent in
            let blobs = files(in: parent)
            let reference = try blobs.write([1, 2, 3])
            let directory = try parent.directory("a.varve-blobs", create: false)
            let foreign = [
                ".DS_Store", "notes.txt", reference.digest.hexText.uppercased(), "new-1",
                "new-0123456789abcdeF", "new-0123456789abcdef0",
            ]
            for name in foreign + ["new-0123456789abcdef"] {
                _ = try directory.openFile(name, mode: .createExclusive)
            }
            #expect(try blobs.list() == [reference.digest])
            #expect(try blobs.removeLeftovers() == 1)
            #expect(
                try Set(directory.list()) == Set(foreign + [reference.digest.hexText])
            )
        }
    }

    @Test func anUnfinishedWriterLeavesNothing() throws {
        try withDirectories { parent in
            let blobs = files(in: parent)
            do {
                let writer = try blobs.makeWriter()
                try writer.append(content(600_000))
            }
            let writer = try blobs.makeWriter()
            try writer.append([1])
            writer.cancel()
            #expect(throws: BlobError.self) { try writer.append([2]) }
            #expect(throws: BlobError.self) { try writer.finish() }
            #expect(try parent.directory("a.varve-blobs", create: false).list().isEmpty)
        }
    }

    @Test func aFinishedWriterKeepsItsFile() throws {
        try withDirectories { parent in
            let blobs = files(in: parent)
            let writer = try blobs.makeWriter()
            try writer.append([1, 2])
            let reference = try writer.finish()
            writer.cancel()
            #expect(throws: BlobError.self) { try writer.append([3]) }
            #expect(try blobs.open(reference).readAll() == [1, 2])
        }
    }

    /// Processes that began at once took each other's empty directory away, in step, until one of
    /// them gave up: a save failed where nothing was wrong.
    @Test func processesThatBeginAtOnceGetADirectory() throws {
        try withDirectories { parent in
            let folder = ContestedFolder(parent, "a.varve-blobs", times: 10)
            let blobs = files(in: folder)
            let reference = try blobs.write(content(5000))
            try blobs.publish()
            #expect(folder.contests < 0)
            #expect(try blobs.open(reference).readAll() == content(5000))
        }
    }

    /// Nobody contests a folder that is gone: waiting for others would only hold the caller up.
    @Test func aStoreWhoseFolderIsGoneFailsAtOnce() throws {
        let path =
            FileManager.default.temporaryDirectory.path
            + "/varve-blobs-\(SystemEnvironment().randomNumber())"
        let folder = ContestedFolder(
            try PosixDirectory.open(path: path, create: true),
            "a.varve-blobs",
            times: 0
        )
        try FileManager.default.removeItem(atPath: path)
        let blobs = files(in: folder)
        #expect(throws: BlobError.self) { try blobs.write(content(5000)) }
        #expect(folder.makings == 8)
    }

    /// Several processes begin with one store that has no blobs yet.
    @Test func allOfManyThatBeginAtOnceGetADirectory() async throws {
        let path =
            FileManager.default.temporaryDirectory.path
            + "/varve-blobs-\(SystemEnvironment().randomNumber())"
        for round in 0..<20 {
            let folder = "\(path)-\(round)"
            defer { try? FileManager.default.removeItem(atPath: folder) }
            _ = try PosixDirectory.open(path: folder, create: true)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<4 {
                    group.addTask {
                        let blobs = files(in: try PosixDirectory.open(path: folder))
                        let bytes = content(3000, seed: UInt8(number))
                        let reference = try blobs.write(bytes)
                        try blobs.publish()
                        #expect(try blobs.open(reference).readAll() == bytes)
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    private static func isDamaged(_ error: any Error) -> Bool {
        if case BlobError.damaged = error { true } else { false }
    }
}
