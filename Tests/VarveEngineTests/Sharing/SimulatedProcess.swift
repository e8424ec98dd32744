// Processes that share a simulated disk: each has locks of its own and can be killed at any call.

import Synchronization
import VarveBase
import VarveIO
import VarveTesting

@testable import VarveEngine

/// Locks on bytes of the files of one simulated system.
final class SimulatedLockTable: Sendable {
    private struct Holder: Hashable {
        var process: Int
        var opening: Int
    }
    private struct State {
        var locks: [String: [UInt64: [Holder: LockKind]]] = [:]
        var openings = 0
    }
    private let state = Mutex(State())

    func open() -> Int {
        state.withLock { state in
            state.openings += 1
            return state.openings
        }
    }

    func tryLock(_ name: String, _ byte: UInt64, _ kind: LockKind, _ who: (Int, Int)) -> Bool {
        let holder = Holder(process: who.0, opening: who.1)
        return state.withLock { state in
            let others = (state.locks[name]?[byte] ?? [:]).filter { $0.key != holder }
            let goes =
                kind == .exclusive ? others.isEmpty : !others.values.contains { $0 == .exclusive }
            if goes { state.locks[name, default: [:]][byte, default: [:]][holder] = kind }
            return goes
        }
    }

    func unlock(_ name: String, _ byte: UInt64, _ who: (Int, Int)) {
        let holder = Holder(process: who.0, opening: who.1)
        state.withLock { $0.locks[name]?[byte]?[holder] = nil }
    }

    func isLocked(_ name: String, _ bytes: Range<UInt64>, except who: (Int, Int)) -> Bool {
        let holder = Holder(process: who.0, opening: who.1)
        return state.withLock { state in
            (state.locks[name] ?? [:]).contains { byte, holders in
                bytes.contains(byte) && holders.contains { $0.key != holder }
            }
        }
    }

    /// What the system does when a process ends.
    func drop(process: Int) {
        state.withLock { state in
            for (name, bytes) in state.locks {
                for (byte, holders) in bytes {
                    state.locks[name]?[byte] = holders.filter { $0.key.process != process }
                }
            }
        }
    }
}

/// A process: what it calls after its death fails, and its locks are gone.
final class SimulatedProcess: Sendable {
    let disk: SimulatedDisk
    let table: SimulatedLockTable
    let id: Int
    private struct State {
        var isDead = false
        /// Changing calls until it dies.
        var callsLeft: Int?
        /// Writes to the lock file until they fail.
        var lockWritesLeft: Int?
    }
    private let state = Mutex(State())

    init(_ disk: SimulatedDisk, _ table: SimulatedLockTable, _ id: Int) {
        self.disk = disk
        self.table = table
        self.id = id
    }

    var root: ProcessDirectory { ProcessDirectory(disk.root, self) }
    var isDead: Bool { state.withLock { $0.isDead } }

    func kill() {
        state.withLock { $0.isDead = true }
        table.drop(process: id)
    }
    func kill(afterCalls count: Int) { state.withLock { $0.callsLeft = count } }

    /// The system refuses what is written to the lock file, after so many writes.
    func failLockWrites(after count: Int?) { state.withLock { $0.lockWritesLeft = count } }

    func checkWrite(_ name: String) throws(IOError) {
        try check()
        let fails = state.withLock { state in
            guard name.hasSuffix("-lock"), let left = state.lockWritesLeft else { return false }
            state.lockWritesLeft = max(left - 1, 0)
            return left <= 0
        }
        if fails { throw Self.ended }
    }

    static let ended = IOError(
        kind: .other,
        code: 4,
        operation: "call",
        name: "process",
        reason: "killed"
    )

    func check(changes: Bool = true) throws(IOError) {
        let dies = state.withLock { state in
            guard changes, !state.isDead, let left = state.callsLeft else { return false }
            state.callsLeft = left - 1
            return left <= 0
        }
        if dies { kill() }
        if isDead { throw Self.ended }
    }
}

final class ProcessDirectory: StoreDirectory {
    let base: any StoreDirectory
    let process: SimulatedProcess
    init(_ base: any StoreDirectory, _ process: SimulatedProcess) {
        self.base = base
        self.process = process
    }
    var name: String { base.name }
    var isSharedBetweenProcesses: Bool { true }

    func openFile(_ name: String, mode: OpenMode) throws(IOError) -> any StoreFile {
        try process.check(changes: mode == .createExclusive)
        return ProcessFile(try base.openFile(name, mode: mode), process)
    }
    func exists(_ name: String) throws(IOError) -> Bool { try base.exists(name) }
    func rename(_ from: String, to: String, replacing: Bool) throws(IOError) {
        try process.check()
        try base.rename(from, to: to, replacing: replacing)
    }
    func remove(_ name: String) throws(IOError) {
        try process.check()
        try base.remove(name)
    }

    func removeDirectory(_ name: String) throws(IOError) {
        try process.check()
        try base.removeDirectory(name)
    }
    func list() throws(IOError) -> [String] { try base.list() }
    func sync() throws(IOError) {
        try process.check()
        try base.sync()
    }
    func directory(_ name: String, create: Bool) throws(IOError) -> any StoreDirectory {
        try process.check(changes: create)
        return ProcessDirectory(try base.directory(name, create: create), process)
    }
    func lock(
        _ name: String,
        byte: UInt64,
        kind: LockKind,
        wait: Bool
    ) throws(IOError) -> any FileLock { try base.lock(name, byte: byte, kind: kind, wait: wait) }

    func openLocks(_ name: String, isReader: Bool) throws(IOError) -> (any LockBytes)? {
        if try !base.exists(name) {
            if isReader { return nil }
            try process.check()
            _ = try base.openFile(name, mode: .createExclusive)
        }
        return ProcessLocks(name, process)
    }
}

private final class ProcessLocks: LockBytes {
    let name: String
    let process: SimulatedProcess
    let opening: Int
    init(_ name: String, _ process: SimulatedProcess) {
        self.name = name
        self.process = process
        opening = process.table.open()
    }
    deinit { close() }
    private var who: (Int, Int) { (process.id, opening) }

    func tryLock(_ byte: UInt64, _ kind: LockKind) throws(IOError) -> Bool {
        try process.check(changes: false)
        return process.table.tryLock(name, byte, kind, who)
    }
    func lock(_ byte: UInt64, _ kind: LockKind) throws(IOError) {
        while true {
            if try tryLock(byte, kind) { return }
            _ = Parker().park(milliseconds: 1)
        }
    }
    func unlock(_ byte: UInt64) { process.table.unlock(name, byte, who) }
    func isLockedByOther(_ bytes: Range<UInt64>) -> Bool {
        process.table.isLocked(name, bytes, except: who)
    }
    func isNamed() throws(IOError) -> Bool { true }
    func close() { for byte in 0..<LockByte.count { unlock(byte) } }
}

private final class ProcessFile: StoreFile {
    let base: any StoreFile
    let process: SimulatedProcess
    init(_ base: any StoreFile, _ process: SimulatedProcess) {
        self.base = base
        self.process = process
    }
    var name: String { base.name }
    func read(at offset: FileOffset, count: Int) throws(IOError) -> [UInt8] {
        try process.check(changes: false)
        return try base.read(at: offset, count: count)
    }
    func size() throws(IOError) -> UInt64 { try base.size() }
    func identity() throws(IOError) -> FileIdentity { try base.identity() }
    func adviseDontNeed() { base.adviseDontNeed() }
    func close() {}
    func write(_ bytes: [UInt8], at offset: FileOffset) throws(IOError) {
        try process.checkWrite(name)
        try base.write(bytes, at: offset)
    }
    func syncData() throws(IOError) {
        try process.check()
        try base.syncData()
    }
    func syncAll() throws(IOError) { try syncData() }
    func cut(to size: UInt64) throws(IOError) {
        try process.check()
        try base.cut(to: size)
    }
}
