// Files, directories and locks of a simulated disk, as the engine sees them.

internal import Foundation
internal import Synchronization
internal import VarveBase
internal import VarveIO

#if VARVE_THREAD_SANITIZER
/// In the whole module: the thread sanitizer sees nothing of the other one.
typealias Mutex = TracedMutex
#endif

final class SimulatedDirectory: StoreDirectory {
    let disk: SimulatedDisk
    let path: String
    private let process: Int

    init(disk: SimulatedDisk, path: String) {
        self.disk = disk
        self.path = path
        process = disk.core.withLock { $0.process }
    }

    var name: String { path.isEmpty ? "disk" : path }

    private func entry(_ name: String, _ call: String) throws(IOError) -> SimulatedDisk.Entry? {
        try disk.core.withLock { core throws(IOError) in
            try SimulatedDisk.check(core, process, call, name)
            return core.state.folders[path]?.cache[name]
        }
    }

    func openFile(_ name: String, mode: OpenMode) throws(IOError) -> any StoreFile {
        switch (try entry(name, "open"), mode) {
        case (.file(let number), .read), (.file(let number), .readWrite):
            return SimulatedFile(disk, number, name, process)
        case (nil, .createExclusive):
            let number = disk.core.withLock { core in
                core.state.lastFile += 1
                return core.state.lastFile
            }
            try disk.change(
                "create",
                name,
                process: process,
                .create(folder: path, name: name, file: number)
            )
            return SimulatedFile(disk, number, name, process)
        case (nil, _): throw SimulatedDisk.missing("open", name)
        default: throw SimulatedDisk.exists("open", name)
        }
    }

    func exists(_ name: String) throws(IOError) -> Bool { try entry(name, "stat") != nil }

    func rename(_ from: String, to: String, replacing: Bool) throws(IOError) {
        guard let moved = try entry(from, "rename") else {
            throw SimulatedDisk.missing("rename", from)
        }
        let isTaken = try entry(to, "rename") != nil
        if isTaken && !replacing { throw SimulatedDisk.exists("rename", to) }
        let changes = [
            SimulatedDisk.NameChange(from, nil), SimulatedDisk.NameChange(to, moved),
        ]
        try disk.change("rename", from, process: process, .name(folder: path, changes))
    }

    func remove(_ name: String) throws(IOError) {
        guard try entry(name, "remove") != nil else { throw SimulatedDisk.missing("remove", name) }
        let changes = [SimulatedDisk.NameChange(name, nil)]
        try disk.change("remove", name, process: process, .name(folder: path, changes))
    }

    func list() throws(IOError) -> [String] {
        try disk.core.withLock { core throws(IOError) in
            try SimulatedDisk.check(core, process, "list", name)
            return core.state.folders[path]?.cache.keys.sorted() ?? []
        }
    }

    func sync() throws(IOError) {
        // Names that a failed sync was to make durable stay in the cache, and no later one helps.
        try disk.change(
            "sync",
            name,
            process: process,
            .syncFolder(path),
            failing: .loseFolderSync(path)
        )
    }

    func directory(_ name: String, create: Bool) throws(IOError) -> any StoreDirectory {
        if try entry(name, "open") == nil {
            guard create else { throw SimulatedDisk.missing("open", name) }
            try disk.change("create", name, process: process, .createFolder(name))
        }
        return SimulatedDirectory(disk: disk, path: name)
    }

    func removeDirectory(_ name: String) throws(IOError) {
        guard case .folder(let key) = try entry(name, "remove") else {
            throw SimulatedDisk.missing("remove", name)
        }
        let isEmpty = disk.core.withLock { $0.state.folders[key]?.cache.isEmpty ?? true }
        guard isEmpty else { throw SimulatedDisk.exists("remove", name) }
        let changes = [SimulatedDisk.NameChange(name, nil)]
        try disk.change("remove", name, process: process, .name(folder: path, changes))
    }

    func lock(
        _ name: String,
        byte: UInt64,
        kind: LockKind,
        wait: Bool
    ) throws(IOError) -> any FileLock {
        let key = SimulatedDisk.LockKey(folder: path, name: name, byte: byte)
        while true {
            let isTaken = try disk.core.withLock { core throws(IOError) in
                try SimulatedDisk.check(core, process, "lock", name)
                let holders = core.locks[key] ?? 0
                guard kind == .shared ? holders >= 0 : holders == 0 else { return false }
                core.locks[key] = kind == .shared ? holders + 1 : -1
                return true
            }
            if isTaken { return SimulatedLock(disk, key, process) }
            guard wait else {
                throw IOError(
                    kind: .held,
                    code: 11,
                    operation: "lock",
                    name: name,
                    reason: "held"
                )
            }
            Thread.sleep(forTimeInterval: 0.001)
        }
    }
}

private final class SimulatedLock: FileLock {
    private let disk: SimulatedDisk
    private let key: SimulatedDisk.LockKey
    private let process: Int
    private let isHeld = Mutex(true)

    init(_ disk: SimulatedDisk, _ key: SimulatedDisk.LockKey, _ process: Int) {
        self.disk = disk
        self.key = key
        self.process = process
    }

    deinit { release() }

    func release() {
        let wasHeld = isHeld.withLock { isHeld in
            defer { isHeld = false }
            return isHeld
        }
        guard wasHeld else { return }
        disk.core.withLock { core in
            // A killed process has lost its locks already.
            guard core.process == process else { return }
            let holders = core.locks[key] ?? 0
            core.locks[key] = holders > 1 ? holders - 1 : nil
        }
    }
}

private final class SimulatedFile: StoreFile {
    private let disk: SimulatedDisk
    private let number: Int
    let name: String
    private let process: Int
    private struct Handle {
        var isClosed = false
        /// Failed syncs that this descriptor knows of.
        var knownFailures: Int
    }
    private let handle: Mutex<Handle>

    init(_ disk: SimulatedDisk, _ number: Int, _ name: String, _ process: Int) {
        self.disk = disk
        self.number = number
        self.name = name
        self.process = process
        let known = disk.core.withLock { $0.state.files[number]?.failedSyncs ?? 0 }
        handle = Mutex(Handle(knownFailures: known))
    }

    private func check(_ call: String) throws(IOError) {
        guard handle.withLock({ $0.isClosed }) else { return }
        throw IOError(kind: .closed, code: 0, operation: call, name: name, reason: "closed")
    }

    func read(at offset: FileOffset, count: Int) throws(IOError) -> [UInt8] {
        try check("read")
        return try disk.read(number, name, process: process, at: offset.rawValue, count: count)
    }

    func size() throws(IOError) -> UInt64 {
        try disk.core.withLock { core throws(IOError) in
            try SimulatedDisk.check(core, process, "stat", name)
            return UInt64(core.state.files[number]?.cache.count ?? 0)
        }
    }

    /// As far as a fault says that the disk is full.
    func freeBytes() -> UInt64? {
        disk.core.withLock { core in
            guard let fault = core.fault, fault.code == SimulatedDisk.noSpace,
                core.calls + 1 >= fault.first, core.failures < fault.count,
                let end = fault.writesPast
            else { return nil }
            return UInt64(max(0, end - (core.state.files[number]?.cache.count ?? 0)))
        }
    }

    func identity() throws(IOError) -> FileIdentity {
        FileIdentity(device: 0, inode: UInt64(number), links: 1, size: try size())
    }

    func adviseDontNeed() {
        let hasLostBytes = disk.core.withLock { $0.state.files[number]?.hasLostBytes ?? false }
        guard hasLostBytes else { return }
        let seed = UInt64(disk.calls) &* 0x9E37_79B9_7F4A_7C15 ^ UInt64(number)
        let operation = DiskOperation.dropClean(file: number, seed: seed)
        // A hint: what stands in its way is no failure.
        disk.core.withLock { core in
            guard core.process == process else { return }
            core.recording?.add(operation, core.note)
            core.state.apply(operation)
        }
    }

    func close() { handle.withLock { $0.isClosed = true } }

    func write(_ bytes: [UInt8], at offset: FileOffset) throws(IOError) {
        try check("write")
        let start = Int(offset.rawValue)
        try disk.change(
            "write",
            name,
            process: process,
            .write(file: number, at: start, bytes),
            // The first half arrives.
            failing: .write(file: number, at: start, Array(bytes[..<(bytes.count / 2)]))
        )
    }

    func syncData() throws(IOError) {
        try check("sync")
        let known = handle.withLock { $0.knownFailures }
        let failures = disk.core.withLock { $0.state.files[number]?.failedSyncs ?? 0 }
        if failures > known {
            handle.withLock { $0.knownFailures = failures }
            throw SimulatedDisk.refusal(SimulatedDisk.inputOutput, "sync", name)
        }
        do throws(IOError) {
            try disk.change(
                "sync",
                name,
                process: process,
                .sync(file: number),
                failing: .loseSync(file: number)
            )
        } catch {
            let failures = disk.core.withLock { $0.state.files[number]?.failedSyncs ?? 0 }
            handle.withLock { $0.knownFailures = failures }
            throw error
        }
    }

    func syncAll() throws(IOError) { try syncData() }

    func cut(to size: UInt64) throws(IOError) {
        try check("cut")
        try disk.change("cut", name, process: process, .cut(file: number, to: Int(size)))
    }
}
