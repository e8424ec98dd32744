// Files whose names change while a process opens them, or ends.

import Foundation
import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO

@testable import VarveEngine

/// A folder in which something happens when the lock file is opened first: that is behind the early
/// opening of the store's file. Its syncs can fail, and its process can end in a renaming.
private final class BusyFolder: StoreDirectory {
    private let base: PosixDirectory
    private let happens: Mutex<(@Sendable () throws -> Void)?>
    let failsSyncs = Mutex(false)
    /// The process ends before a file gets its name.
    private let endsInRenaming: Bool
    private let hasEnded = Mutex(false)

    init(
        _ path: String,
        endsInRenaming: Bool = false,
        happens: @escaping @Sendable () throws -> Void = {}
    ) throws {
        base = try PosixDirectory.open(path: path)
        self.endsInRenaming = endsInRenaming
        self.happens = Mutex(happens)
    }

    private func check() throws(IOError) {
        if hasEnded.withLock({ $0 }) { throw Self.ended }
    }

    private static let ended = IOError(
        kind: .other,
        code: 5,
        operation: "call",
        name: "folder",
        reason: "the process has ended"
    )

    var name: String { base.name }
    var isSharedBetweenProcesses: Bool { true }
    func openFile(_ name: String, mode: OpenMode) throws(IOError) -> any StoreFile {
        try check()
        return try base.openFile(name, mode: mode)
    }
    func exists(_ name: String) throws(IOError) -> Bool { try base.exists(name) }
    func rename(_ from: String, to: String, replacing: Bool) throws(IOError) {
        if endsInRenaming { hasEnded.withLock { $0 = true } }
        try check()
        try base.rename(from, to: to, replacing: replacing)
    }
    func remove(_ name: String) throws(IOError) {
        try check()
        try base.remove(name)
    }
    func removeDirectory(_ name: String) throws(IOError) { try base.removeDirectory(name) }
    func list() throws(IOError) -> [String] { try base.list() }
    func sync() throws(IOError) {
        try check()
        if failsSyncs.withLock({ $0 }) { throw Self.ended }
        try base.sync()
    }
    func directory(_ name: String, create: Bool) throws(IOError) -> any StoreDirectory {
        try base.directory(name, create: create)
    }
    func isNamed(_ name: String, _ file: any StoreFile) throws(IOError) -> Bool? {
        try base.isNamed(name, file)
    }
    func openLocks(_ name: String, isReader: Bool) throws(IOError) -> (any LockBytes)? {
        let act = happens.withLock { act in
            defer { act = nil }
            return act
        }
        #expect(throws: Never.self) { try act?() }
        return try base.openLocks(name, isReader: isReader)
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

@Suite("Files that are replaced while they are opened", .verified) struct ReplacedFileTests {
    private static let modes: [StoreOpenMode] = [.createIfMissing, .existing, .readOnly]
    private static let id = ObjectID(1)

    /// A closed store with a row.
    private func store() throws -> WritersFolder {
        let folder = try WritersFolder()
        let engine = try folder.open()
        _ = try engine.write { try $0.insert(TestDelegate.entity, Self.id, row: row(1, "old")) }
        try engine.close()
        return folder
    }

    @Test("An opening reads the file that has the name when it has the lock", arguments: modes)
    func replaced(_ mode: StoreOpenMode) throws {
        let folder = try store()
        let path = folder.path
        let busy = try BusyFolder(path) {
            // Another process compacts.
            let other = try Engine.openTest(PosixDirectory.open(path: path))
            let change = patch(2, "new")
            _ = try other.write { try $0.update(TestDelegate.entity, Self.id, patch: change) }
            _ = try other.compact()
            try other.close()
        }
        let engine = try Engine.openTest(busy, mode: mode)
        let expected = try folder.open(.readOnly).contents()
        #expect(expected[Self.id.rawValue]?.contains("new") == true)
        #expect(try engine.contents() == expected)
        if case .readOnly = mode { return try engine.close() }
        // What is written now is in the file that has the name.
        let change = patch(3, "newest")
        _ = try engine.write { try $0.update(TestDelegate.entity, Self.id, patch: change) }
        try engine.close()
        let last = try folder.open(.existing)
        #expect(try last.contents()[Self.id.rawValue]?.contains("newest") == true)
        try last.close()
    }

    @Test("A file that goes is missing, and made anew where that is wanted", arguments: modes)
    func removed(_ mode: StoreOpenMode) throws {
        let folder = try store()
        let path = folder.path
        let busy = try BusyFolder(path) {
            try FileManager.default.removeItem(atPath: path + "/test.varve")
        }
        if case .createIfMissing = mode {
            let engine = try Engine.openTest(busy, mode: mode)
            #expect(try engine.contents().isEmpty)
            _ = try engine.write { try $0.insert(TestDelegate.entity, Self.id, row: row(5, "a")) }
            try engine.close()
            let again = try folder.open(.existing)
            #expect(try again.contents().count == 1)
            return try again.close()
        }
        do {
            try Engine.openTest(busy, mode: mode).close()
            Issue.record("a store without a file was opened")
        } catch let error as EngineError {
            #expect(error.code == .missing)
        }
        #expect(!FileManager.default.fileExists(atPath: path + "/test.varve"))
    }

    /// A compaction whose sync of the folder failed leaves a file whose name nothing proves.
    @Test("Openings that end while they write the store once more leave one file, not one each")
    func copies() throws {
        let folder = try WritersFolder()
        let first = try BusyFolder(folder.path)
        let engine = try Engine.openTest(first) { $0.compactsAutomatically = false }
        _ = try engine.write { try $0.insert(TestDelegate.entity, Self.id, row: row(1, "old")) }
        first.failsSyncs.withLock { $0 = true }
        #expect(throws: EngineError.self) { try engine.compact() }
        try? engine.close()
        for _ in 0..<3 {
            let dying = try BusyFolder(folder.path, endsInRenaming: true)
            #expect(throws: EngineError.self) { try Engine.openTest(dying) }
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(names.filter { Engine.isTemporary($0, of: "test") }.count == 1)
        }
        let last = try folder.open(.existing)
        #expect(try last.contents().count == 1)
        try last.close()
    }
}
