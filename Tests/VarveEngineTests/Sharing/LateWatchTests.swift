// The watch by which a process hears others: it comes late, or the system gives none.

import Foundation
import Synchronization
import Testing
import VarveBase
import VarveIO
import VarveTesting

@testable import VarveEngine

/// A folder whose watches are made by the test.
private final class WatchedFolder: StoreDirectory {
    private let base: PosixDirectory
    private let makes: @Sendable (PosixDirectory, String) -> FileWatch?

    init(
        _ path: String,
        makes: @escaping @Sendable (PosixDirectory, String) -> FileWatch?
    ) throws {
        base = try PosixDirectory.open(path: path)
        self.makes = makes
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
    func list() throws(IOError) -> [String] { try base.list() }
    func sync() throws(IOError) { try base.sync() }
    func directory(_ name: String, create: Bool) throws(IOError) -> any StoreDirectory {
        try base.directory(name, create: create)
    }
    func removeDirectory(_ name: String) throws(IOError) { try base.removeDirectory(name) }
    func isNamed(_ name: String, _ file: any StoreFile) throws(IOError) -> Bool? {
        try base.isNamed(name, file)
    }
    func watch(_ name: String) -> FileWatch? { makes(base, name) }
    func openLocks(_ name: String, isReader: Bool) throws(IOError) -> (any LockBytes)? {
        try base.openLocks(name, isReader: isReader)
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

@Suite("Watches that come late, or never", .verified) struct LateWatchTests {
    /// The thread that made the watch had the last reference, and its close waited for the watch.
    @Test("An engine that ends while its watch is made ends")
    func endsInTheMaking() throws {
        let store = try TemporaryStore("test")
        let (begun, mayGoOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let isHeldUp = Atomic<Bool>(false)
        let folder = try WatchedFolder(store.folder.path) { base, name in
            if isHeldUp.load(ordering: .relaxed) {
                begun.signal()
                _ = mayGoOn.wait(timeout: .now() + 600)
            }
            return base.watch(name)
        }
        var isShared = false
        do {
            let first = try Engine.openTest(folder) { $0.maintenance = .inline }
            _ = try first.write {
                try $0.insert(TestDelegate.entity, ObjectID(1), row: row(1, "one"))
            }
            isShared = first.role.turn != nil
            try first.close()
        }
        // Where locks belong to processes nobody is heard.
        if !isShared { return }
        // Opened once more it has written nothing, and hears nobody yet.
        // As long as its end is not done, the engine has this.
        var clock: FixedEnvironment? = FixedEnvironment()
        weak let kept = clock
        let engine = Mutex<Engine?>(nil)
        try engine.withLock {
            $0 = try Engine.openTest(folder) {
                $0.maintenance = .inline
                if let clock { $0.environment = clock }
            }
        }
        clock = nil
        isHeldUp.store(true, ordering: .relaxed)
        engine.withLock { $0?.followInBackground() }
        #expect(begun.wait(timeout: .now() + 600) == .success)
        // The last reference, unless the thread has one. Its close waits for the watch.
        let isDropped = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            _ = engine.withLock { $0.take() }
            isDropped.signal()
        }
        _ = isDropped.wait(timeout: .now() + 0.2)
        isHeldUp.store(false, ordering: .relaxed)
        mayGoOn.signal()
        for _ in 0..<60_000 where kept != nil { Thread.sleep(forTimeInterval: 0.001) }
        #expect(kept == nil, "the engine has not ended")
        let again = try Engine.openTest(folder) { $0.maintenance = .inline }
        #expect(try again.contents().count == 1)
        try again.close()
    }

    @Test("Where the system gives no watch, a save asks for one and starts no thread")
    func none() throws {
        let store = try TemporaryStore("test")
        let threads = Mutex<[UInt]>([])
        let folder = try WatchedFolder(store.folder.path) { _, _ in
            threads.withLock { $0.append(BackgroundThread.currentID) }
            return nil
        }
        let engine = try Engine.openTest(folder) { $0.maintenance = .inline }
        for number in 1...6 as ClosedRange<UInt64> {
            _ = try engine.write {
                try $0.insert(TestDelegate.entity, ObjectID(number), row: row(1, "row"))
            }
        }
        let asked = threads.withLock { $0 }
        #expect(asked.dropFirst().allSatisfy { $0 == BackgroundThread.currentID })
        // Where locks can be shared, that is.
        #expect(asked.count >= 2 || engine.role.turn == nil)
        try engine.close()
    }
}
