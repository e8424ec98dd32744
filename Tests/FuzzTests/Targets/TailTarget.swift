// The target of the log's tail, the lock file and the counter file.
//
// The input is a seed store's number and edits: of the last bytes of its log, of its length, of the
// bytes of its sidecars. What must hold is what holds of any store (StoreChecks), and, when no byte
// in front of the tail was touched, that nothing but its tail is lost.

import VarveInspection
import VarveTesting

enum TailTarget {
    static func run(_ input: [UInt8]) throws {
        var reader = InputReader(input)
        let seeds = SeedStore.all
        let seed = seeds[Int(reader.byte()) % seeds.count]
        var bytes = seed.bytes
        let flags = reader.byte()
        var lock = SharedState(
            fileID: UUIDValue(high: 0, low: 0),
            generation: 1,
            number: CommitNumber(1),
            frame: FileOffset(8192),
            durableEnd: FileOffset(8192),
            sequence: 1,
            isComplete: true,
            logEnd: FileOffset(8192),
            preparedEnd: FileOffset(8192),
            nextObjectID: 1,
            process: 1
        )
        if bytes.count >= 4096, let header = try? FileHeader(decoding: Array(bytes[..<4096])) {
            lock.fileID = header.fileID
            lock.generation = header.generation
        }
        let end = bytes.count - (bytes.reversed().firstIndex { $0 != 0 } ?? 0)
        lock.frame = FileOffset(lastCommit(bytes) ?? 8192)
        lock.durableEnd = FileOffset(UInt64(end + 7 & ~7))
        lock.logEnd = lock.durableEnd
        lock.preparedEnd = lock.durableEnd
        var lockBytes: [UInt8]?
        while !reader.isAtEnd {
            switch reader.byte() % 8 {
            case 0, 1: edit(&bytes, end, &reader)
            case 2:
                if bytes.count > 8192 {
                    bytes.removeLast(min(bytes.count - 8192, reader.number16() % 2048))
                }
            case 3: bytes += [UInt8](repeating: 0, count: reader.number16() % 6000)
            case 4: bytes += reader.take(Int(reader.byte()))
            case 5: zeroSector(&bytes, end, &reader)
            case 6:
                change(&lock, &reader)
                lockBytes = lock.encoded()
            default:
                var changed = lockBytes ?? lock.encoded()
                let at = Int(reader.byte()) % changed.count
                changed[at] = reader.byte()
                lockBytes = changed
            }
        }
        guard bytes.count <= StoreChecks.bytesMax else { return }
        if let lockBytes {
            try beside(bytes, lock: lockBytes, hasOtherWriter: flags & 1 == 1)
        } else {
            try StoreChecks.run(on: bytes)
        }
    }

    private static func lastCommit(_ bytes: [UInt8]) -> UInt64? {
        LogParts(bytes)?.parts.last { (1...3).contains($0.kind) }?.oldOffset
    }

    /// A byte near the end of what is not zero.
    private static func edit(_ bytes: inout [UInt8], _ end: Int, _ reader: inout InputReader) {
        let back = reader.number16() % 1024
        let at = end - 1 - back
        let value = reader.byte()
        if bytes.indices.contains(at) { bytes[at] ^= value }
    }

    /// A sector that was never written.
    private static func zeroSector(_ bytes: inout [UInt8], _ end: Int, _ reader: inout InputReader)
    {
        let sector = max(0, end / 512 - Int(reader.byte() % 8))
        for at in (sector * 512)..<((sector + 1) * 512) where at < bytes.count { bytes[at] = 0 }
    }

    private static func change(_ lock: inout SharedState, _ reader: inout InputReader) {
        let value = reader.number64()
        switch reader.byte() % 10 {
        case 0: lock.number = CommitNumber(value)
        case 1: lock.frame = FileOffset(value)
        case 2: lock.durableEnd = FileOffset(value)
        case 3: lock.logEnd = FileOffset(value)
        case 4: lock.preparedEnd = FileOffset(value)
        case 5: lock.nextObjectID = value
        case 6: lock.generation = value
        case 7: lock.isComplete.toggle()
        case 8: lock.fileID = UUIDValue(high: value, low: value)
        default:
            // All of them a little further.
            lock.logEnd = FileOffset(lock.logEnd.rawValue &+ value % 9000)
            lock.preparedEnd = max(lock.preparedEnd, lock.logEnd)
        }
    }

    /// Opens for reading and for writing with a lock file that somebody else wrote.
    ///
    /// Beside another writer the page is believed as far as the log bears it out, so a page that
    /// lies well may cost the tail; it must not cost a trap, a hang, or bytes that were written.
    private static func beside(
        _ bytes: [UInt8],
        lock: [UInt8],
        hasOtherWriter: Bool
    ) throws {
        let disk = StoreChecks.disk(bytes)
        defer { disk.kill() }
        var state = disk.state
        state.apply(.create(folder: "", name: "test.varve-lock", file: 2))
        state.overwrite(2, at: 0, lock)
        state.apply(.create(folder: "", name: "test.varve-live", file: 3))
        state.overwrite(3, at: 0, lock)
        state.apply(.syncFolder(""))
        disk.state = state
        let directory = SharedDirectory(disk.root, hasOtherWriter: hasOtherWriter)
        let location = StoreLocation.directory(directory, name: "test")
        _ = try? StoreObserver.open(location).info()
        for mode in [StoreOpenMode.readOnly, .existing] {
            var options = StoreChecks.options(mode)
            options.engine.turnMilliseconds = 0
            guard let store = try? RecordStore.openAsStored(location, options: options) else {
                continue
            }
            do { try StoreChecks.scan(store) } catch let error where !(error is Violation) {}
            if case .existing = mode {
                do { try StoreChecks.commit(store) } catch let error where !(error is Violation) {}
            }
            try? store.close()
        }
        // Zeros that a lying page calls prepared are no bytes that were written.
        if let violation = disk.violations.first(where: { $0.contains("test.varve ") }) {
            throw Violation(violation)
        }
    }
}

/// A directory that other processes see, one of which may have the store open for writing.
private final class SharedDirectory: StoreDirectory {
    private let base: any StoreDirectory
    private let hasOtherWriter: Bool

    init(_ base: any StoreDirectory, hasOtherWriter: Bool) {
        self.base = base
        self.hasOtherWriter = hasOtherWriter
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
    func openLocks(_ name: String, isReader: Bool) throws(IOError) -> (any LockBytes)? {
        Locks(hasOtherWriter: hasOtherWriter)
    }
    func lock(
        _ name: String,
        byte: UInt64,
        kind: LockKind,
        wait: Bool
    ) throws(IOError) -> any FileLock { try base.lock(name, byte: byte, kind: kind, wait: wait) }

    private final class Locks: LockBytes {
        let hasOtherWriter: Bool
        init(hasOtherWriter: Bool) { self.hasOtherWriter = hasOtherWriter }
        func tryLock(_ byte: UInt64, _ kind: LockKind) throws(IOError) -> Bool { true }
        func lock(_ byte: UInt64, _ kind: LockKind) throws(IOError) {}
        func unlock(_ byte: UInt64) {}
        func isLockedByOther(_ bytes: Range<UInt64>) -> Bool {
            hasOtherWriter && bytes.contains(LockByte.writing)
        }
        func isNamed() throws(IOError) -> Bool { true }
        func close() {}
    }
}
