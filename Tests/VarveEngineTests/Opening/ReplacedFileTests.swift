// A store whose file changes its name while another process opens it.

import Foundation
import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO

@testable import VarveEngine

/// A folder in which something happens when the lock file is opened first: that is behind the early
/// opening of the store's file.
private final class BusyFolder: StoreDirectory {
    private let base: PosixDirectory
    private let happens: Mutex<(@Sendable () throws -> Void)?>

    init(_ path: String, happens: @escaping @Sendable () throws -> Void) throws {
        base = try PosixDirectory.open(path: path)
        self.happens = Mutex(happens)
    }

    var name: String { base.name }
    var isSharedBetweenProcesses: Bool { true }
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
    func sync() throws(IOError) { try base.sync() }
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
}
