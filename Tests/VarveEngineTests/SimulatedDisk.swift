// A disk that forgets what was not synced: cache, durable bytes, names, failures.

import Synchronization
import VarveBase
import VarveIO

/// A disk behind a system's cache: writes and names are pending until a sync, calls can be made to
/// fail, and what a power cut may leave can be built at every call.
///
/// A failed sync leaves its bytes in the cache, clean and not on disk: as ext4 and XFS do.
final class SimulatedDisk: Sendable {
    enum Change {
        case write(Int, [UInt8])
        case cut(Int)
    }
    struct File {
        var cache: [UInt8] = []
        var durable: [UInt8] = []
        var pending: [Change] = []
    }
    enum Entry: Hashable {
        case file(Int)
        case folder(String)
    }
    struct Folder {
        var cache: [String: Entry] = [:]
        var durable: [String: Entry] = [:]
        /// Names set or removed, each group at once.
        var pending: [[(String, Entry?)]] = []
    }
    struct State {
        var files: [Int: File] = [:]
        var folders: [String: Folder] = ["": Folder()]
        var lastFile = 0
    }
    /// Calls from number `first` on that fail, `count` of them.
    struct Fault {
        var first: Int
        var count = 1
        var code: Int32 = 5
        /// Only writes of at least this many bytes.
        var writesFrom: Int?
    }
    static let noSpace: Int32 = 28

    struct Core {
        var state = State()
        var calls = 0
        var fault: Fault?
        var failures = 0
        var note = 0
        var history: [(state: State, note: Int)]?
        var violations: [String] = []
    }
    let core: Mutex<Core>

    init(_ state: State = State()) { core = Mutex(Core(state: state)) }

    var root: SimulatedDirectory { SimulatedDirectory(disk: self, path: "") }
    var calls: Int { core.withLock { $0.calls } }
    var failures: Int { core.withLock { $0.failures } }
    var violations: [String] { core.withLock { $0.violations } }
    func setFault(_ fault: Fault?) { core.withLock { $0.fault = fault } }
    func record() { core.withLock { $0.history = [] } }
    func note(_ value: Int) { core.withLock { $0.note = value } }
    func takeHistory() -> [(state: State, note: Int)] {
        core.withLock { core in
            defer { core.history = nil }
            return core.history ?? []
        }
    }

    /// The process dies, the system lives: the cache stays.
    func killed() -> SimulatedDisk { SimulatedDisk(core.withLock { $0.state }) }

    /// The power goes: pending changes arrive or not, whole or torn at sectors.
    static func powerCut(_ state: State, _ random: inout SeededGenerator) -> SimulatedDisk {
        var state = state
        let chance = [0, 2, 5, 8, 10].randomElement(using: &random) ?? 5
        for id in state.files.keys.sorted() {
            guard var file = state.files[id] else { continue }
            for change in file.pending {
                let arrives = Int.random(in: 0..<10, using: &random) < chance
                switch change {
                case .cut(let size): if arrives { resize(&file.durable, size) }
                case .write(let start, let bytes):
                    let isTorn = Int.random(in: 0..<3, using: &random) == 0
                    var position = 0
                    while position < bytes.count {
                        let end = min(bytes.count, ((start + position) / 512 + 1) * 512 - start)
                        if isTorn ? Bool.random(using: &random) : arrives {
                            put(Array(bytes[position..<end]), at: start + position, &file.durable)
                        }
                        position = end
                    }
                }
            }
            state.files[id] = File(cache: file.durable, durable: file.durable)
        }
        for path in state.folders.keys.sorted() {
            guard var folder = state.folders[path] else { continue }
            for group in folder.pending where Int.random(in: 0..<10, using: &random) < chance {
                for (name, entry) in group { folder.durable[name] = entry }
            }
            state.folders[path] = Folder(cache: folder.durable, durable: folder.durable)
        }
        return SimulatedDisk(state)
    }

    // Block copies: element by element, unoptimised tests would spend most of their time here.
    static func put(_ bytes: [UInt8], at start: Int, _ target: inout [UInt8]) {
        if target.count < start + bytes.count { resize(&target, start + bytes.count) }
        target.overwrite(at: start, with: bytes, 0..<bytes.count)
    }
    static func resize(_ bytes: inout [UInt8], _ size: Int) {
        if size < bytes.count {
            bytes.removeLast(bytes.count - size)
        } else {
            bytes += [UInt8](repeating: 0, count: size - bytes.count)
        }
    }

    /// One call that changes the disk. `failing` is what an error leaves behind.
    func call<R>(
        _ operation: String,
        _ name: String,
        writes: Int? = nil,
        failing: (inout State) -> Void = { _ in },
        _ body: (inout Core) throws(IOError) -> R
    ) throws(IOError) -> R {
        try core.withLock { core throws(IOError) in
            core.calls += 1
            core.history?.append((core.state, core.note))
            if let fault = core.fault, core.calls >= fault.first,
                core.failures < fault.count, fault.writesFrom.map({ (writes ?? 0) >= $0 }) ?? true
            {
                core.failures += 1
                failing(&core.state)
                throw IOError(
                    kind: fault.code == Self.noSpace ? .noSpace : .other,
                    code: fault.code,
                    operation: operation,
                    name: name,
                    reason: "simulated"
                )
            }
            return try body(&core)
        }
    }

    static func missing(_ operation: String, _ name: String) -> IOError {
        IOError(kind: .missing, code: 2, operation: operation, name: name, reason: "missing")
    }
}

final class SimulatedDirectory: StoreDirectory {
    let disk: SimulatedDisk
    let path: String
    init(disk: SimulatedDisk, path: String) {
        self.disk = disk
        self.path = path
    }
    var name: String { path.isEmpty ? "disk" : path }

    private func entry(_ name: String) -> SimulatedDisk.Entry? {
        disk.core.withLock { $0.state.folders[path]?.cache[name] }
    }
    private static func set(
        _ core: inout SimulatedDisk.Core,
        _ path: String,
        _ group: [(String, SimulatedDisk.Entry?)]
    ) {
        for (name, entry) in group { core.state.folders[path]?.cache[name] = entry }
        core.state.folders[path]?.pending.append(group)
    }

    func openFile(_ name: String, mode: OpenMode) throws(IOError) -> any StoreFile {
        switch (entry(name), mode) {
        case (.file(let id), .read), (.file(let id), .readWrite):
            return SimulatedFile(disk: disk, id: id, name: name)
        case (nil, .createExclusive):
            let id = try disk.call("create", name) { core throws(IOError) in
                core.state.lastFile += 1
                core.state.files[core.state.lastFile] = SimulatedDisk.File()
                Self.set(&core, path, [(name, .file(core.state.lastFile))])
                return core.state.lastFile
            }
            return SimulatedFile(disk: disk, id: id, name: name)
        case (nil, _): throw SimulatedDisk.missing("open", name)
        default:
            throw IOError(kind: .exists, code: 17, operation: "open", name: name, reason: "exists")
        }
    }
    func exists(_ name: String) throws(IOError) -> Bool { entry(name) != nil }
    func rename(_ from: String, to: String, replacing: Bool) throws(IOError) {
        guard let moved = entry(from) else { throw SimulatedDisk.missing("rename", from) }
        if !replacing && entry(to) != nil {
            throw IOError(kind: .exists, code: 17, operation: "rename", name: to, reason: "exists")
        }
        try disk.call("rename", from) { core throws(IOError) in
            Self.set(&core, path, [(from, nil), (to, moved)])
        }
    }
    func remove(_ name: String) throws(IOError) {
        guard entry(name) != nil else { throw SimulatedDisk.missing("remove", name) }
        try disk.call("remove", name) { core throws(IOError) in
            Self.set(&core, path, [(name, nil)])
        }
    }
    func list() throws(IOError) -> [String] {
        disk.core.withLock { $0.state.folders[path]?.cache.keys.sorted() ?? [] }
    }
    func sync() throws(IOError) {
        // The root's names stay pending: the engine gives names again in the blob directory only.
        let failing: (inout SimulatedDisk.State) -> Void = { [path] state in
            if !path.isEmpty { state.folders[path]?.pending = [] }
        }
        try disk.call("sync", name, failing: failing) {
            core throws(IOError) in
            guard let folder = core.state.folders[path] else { return }
            core.state.folders[path]?.pending = []
            for (name, entry) in folder.pending.joined() {
                core.state.folders[path]?.durable[name] = entry
            }
        }
    }
    func directory(_ name: String, create: Bool) throws(IOError) -> any StoreDirectory {
        if entry(name) == nil {
            guard create else { throw SimulatedDisk.missing("open", name) }
            try disk.call("create", name) { core throws(IOError) in
                core.state.folders[name] = SimulatedDisk.Folder()
                Self.set(&core, path, [(name, .folder(name))])
            }
        }
        return SimulatedDirectory(disk: disk, path: name)
    }
    func lock(
        _ name: String,
        byte: UInt64,
        kind: LockKind,
        wait: Bool
    ) throws(IOError) -> any FileLock { SimulatedLock() }
}

/// Each simulated process has a disk of its own, so nobody contends.
private final class SimulatedLock: FileLock { func release() {} }

final class SimulatedFile: StoreFile {
    let disk: SimulatedDisk
    let id: Int
    let name: String
    init(disk: SimulatedDisk, id: Int, name: String) {
        self.disk = disk
        self.id = id
        self.name = name
    }

    func read(at offset: FileOffset, count: Int) throws(IOError) -> [UInt8] {
        disk.core.withLock { core in
            guard let bytes = core.state.files[id]?.cache,
                let start = Int(exactly: offset.rawValue),
                start < bytes.count
            else { return [] }
            return Array(bytes[start..<min(bytes.count, start + count)])
        }
    }
    func size() throws(IOError) -> UInt64 {
        disk.core.withLock { UInt64($0.state.files[id]?.cache.count ?? 0) }
    }
    func identity() throws(IOError) -> FileIdentity {
        FileIdentity(device: 0, inode: UInt64(id), links: 1, size: try size())
    }
    func adviseDontNeed() {}
    func close() {}

    func write(_ bytes: [UInt8], at offset: FileOffset) throws(IOError) {
        let start = Int(offset.rawValue)
        let half = bytes.count / 2
        try disk.call(
            "write",
            name,
            writes: bytes.count,
            // The first half arrives.
            failing: { Self.put(Array(bytes[..<half]), at: start, id: self.id, &$0) }
        ) { core throws(IOError) in
            let old = core.state.files[id]?.cache ?? []
            for index in stride(from: start, to: min(old.count, start + bytes.count), by: 1)
            where old[index] != 0 {
                core.violations.append("byte \(index) of \(name) is written again")
                break
            }
            Self.put(bytes, at: start, id: id, &core.state)
        }
    }
    private static func put(
        _ bytes: [UInt8],
        at start: Int,
        id: Int,
        _ state: inout SimulatedDisk.State
    ) {
        guard state.files[id] != nil else { return }
        SimulatedDisk.put(bytes, at: start, &state.files[id]!.cache)
        state.files[id]!.pending.append(.write(start, bytes))
    }
    func syncData() throws(IOError) {
        try disk.call("sync", name, failing: { [id] in $0.files[id]?.pending = [] }) {
            core throws(IOError) in
            guard var file = core.state.files.removeValue(forKey: id) else { return }
            for change in file.pending {
                switch change {
                case .write(let start, let bytes):
                    SimulatedDisk.put(bytes, at: start, &file.durable)
                case .cut(let size): SimulatedDisk.resize(&file.durable, size)
                }
            }
            file.pending = []
            core.state.files[id] = file
        }
    }
    func syncAll() throws(IOError) { try syncData() }
    func cut(to size: UInt64) throws(IOError) {
        try disk.call("cut", name) { core throws(IOError) in
            let size = Int(size)
            if let old = core.state.files[id]?.cache, old.count > size,
                old.countWithoutTrailingZeros > size
            {
                core.violations.append("bytes of \(name) are cut off")
            }
            guard core.state.files[id] != nil else { return }
            SimulatedDisk.resize(&core.state.files[id]!.cache, size)
            core.state.files[id]!.pending.append(.cut(size))
        }
    }
}
