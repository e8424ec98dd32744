// A directory in memory. See MemoryFile.swift for the invariants.

import Synchronization

/// One directory in memory, with its files.
public final class MemoryDirectory: StoreDirectory {
    private enum Entry {
        case file(MemoryContents)
        case directory(MemoryDirectory)
    }
    private struct LockKey: Hashable {
        var name: String
        var byte: UInt64
    }
    private struct State {
        var entries: [String: Entry] = [:]
        /// Holders of each lock: -1 for an exclusive one.
        var locks: [LockKey: Int] = [:]
        var lastIdentity: UInt64 = 0
        /// Its name was removed: it takes no entries, like one of the system's.
        var isRemoved = false
    }

    /// What errors call it.
    public let name: String
    private let state = Mutex(State())

    /// An empty directory.
    public init(name: String = "memory") { self.name = name }

    /// Opens a file.
    public func openFile(_ name: String, mode: OpenMode) throws(IOError) -> any StoreFile {
        try FileName.check(name, "open")
        let contents = try state.withLock { state throws(IOError) in
            switch (state.entries[name], mode) {
            case (.directory, _):
                throw IOError(
                    kind: .notRegular,
                    code: 0,
                    operation: "open",
                    name: name,
                    reason: "not a regular file"
                )
            case (.file, .createExclusive):
                throw SystemCalls.error(SystemCalls.existsCode, "open", name)
            case (.file(let contents), _): return contents
            case (nil, .createExclusive) where !state.isRemoved:
                return Self.addFile(name, to: &state)
            case (nil, _): throw SystemCalls.error(SystemCalls.missingCode, "open", name)
            }
        }
        return MemoryFile(contents, name: name, isWritable: mode != .read) { [weak self] in
            self?.links(to: contents) ?? 1
        }
    }

    /// Whether anything has this name.
    public func exists(_ name: String) throws(IOError) -> Bool {
        try FileName.check(name, "stat")
        return state.withLock { $0.entries[name] != nil }
    }

    /// Renames inside the directory.
    public func rename(_ from: String, to: String, replacing: Bool) throws(IOError) {
        try FileName.check(from, "rename")
        try FileName.check(to, "rename")
        try state.withLock { state throws(IOError) in
            guard let entry = state.entries[from] else {
                throw SystemCalls.error(SystemCalls.missingCode, "rename", from)
            }
            if from == to && replacing { return }
            if let old = state.entries[to] {
                guard replacing, case .file = old, case .file = entry else {
                    throw SystemCalls.error(SystemCalls.existsCode, "rename", from)
                }
            }
            state.entries[to] = entry
            state.entries[from] = nil
        }
    }

    /// Removes a file's name.
    public func remove(_ name: String) throws(IOError) {
        try FileName.check(name, "remove")
        try state.withLock { state throws(IOError) in
            switch state.entries[name] {
            case .file: state.entries[name] = nil
            case .directory:
                throw IOError(
                    kind: .notRegular,
                    code: 0,
                    operation: "remove",
                    name: name,
                    reason: "a directory"
                )
            case nil: throw SystemCalls.error(SystemCalls.missingCode, "remove", name)
            }
        }
    }

    /// Names of all entries, sorted.
    public func list() throws(IOError) -> [String] {
        state.withLock { $0.entries.keys.sorted() }
    }

    /// Nothing to do.
    public func sync() throws(IOError) {}

    /// Opens a directory inside, or creates it.
    public func directory(_ name: String, create: Bool) throws(IOError) -> any StoreDirectory {
        try FileName.check(name, "open")
        return try state.withLock { state throws(IOError) in
            switch state.entries[name] {
            case .directory(let directory): return directory
            case .file:
                throw IOError(
                    kind: .notRegular,
                    code: 0,
                    operation: "open",
                    name: name,
                    reason: "not a directory"
                )
            case nil:
                guard create, !state.isRemoved else {
                    throw SystemCalls.error(SystemCalls.missingCode, "open", name)
                }
                let directory = MemoryDirectory(name: name)
                state.entries[name] = .directory(directory)
                return directory
            }
        }
    }

    /// Removes a directory inside that holds nothing.
    public func removeDirectory(_ name: String) throws(IOError) {
        try FileName.check(name, "remove")
        try state.withLock { state throws(IOError) in
            switch state.entries[name] {
            case .directory(let directory):
                let isRemoved = directory.state.withLock { state in
                    state.isRemoved = state.entries.isEmpty
                    return state.isRemoved
                }
                guard isRemoved else {
                    throw SystemCalls.error(SystemCalls.existsCode, "remove", name)
                }
                state.entries[name] = nil
            case .file:
                throw IOError(
                    kind: .notRegular,
                    code: 0,
                    operation: "remove",
                    name: name,
                    reason: "not a directory"
                )
            case nil: throw SystemCalls.error(SystemCalls.missingCode, "remove", name)
            }
        }
    }

    /// Locks one byte of a lock file.
    public func lock(
        _ name: String,
        byte: UInt64,
        kind: LockKind,
        wait: Bool
    ) throws(IOError) -> any FileLock {
        try FileName.check(name, "lock")
        let key = LockKey(name: name, byte: byte)
        while true {
            let isTaken = try state.withLock { state throws(IOError) in
                switch state.entries[name] {
                case .file: break
                case nil: _ = Self.addFile(name, to: &state)
                case .directory:
                    throw IOError(
                        kind: .notRegular,
                        code: 0,
                        operation: "lock",
                        name: name,
                        reason: "not a regular file"
                    )
                }
                let holders = state.locks[key] ?? 0
                guard kind == .shared ? holders >= 0 : holders == 0 else { return false }
                state.locks[key] = kind == .shared ? holders + 1 : -1
                return true
            }
            if isTaken { return MemoryLock { self.unlock(key) } }
            guard wait else { throw SystemCalls.held(name) }
            SystemCalls.sleepMillisecond()
        }
    }

    private func unlock(_ key: LockKey) {
        state.withLock { state in
            let holders = state.locks[key] ?? 0
            state.locks[key] = holders > 1 ? holders - 1 : nil
        }
    }

    private static func addFile(_ name: String, to state: inout State) -> MemoryContents {
        state.lastIdentity += 1
        let contents = MemoryContents(identity: state.lastIdentity)
        state.entries[name] = .file(contents)
        return contents
    }

    private func links(to contents: MemoryContents) -> UInt64 {
        state.withLock { state in
            let isNamed = state.entries.values.contains {
                if case .file(let other) = $0 { other === contents } else { false }
            }
            return isNamed ? 1 : 0
        }
    }
}

private final class MemoryLock: FileLock {
    private let unlock: Mutex<(@Sendable () -> Void)?>

    init(_ unlock: @escaping @Sendable () -> Void) { self.unlock = Mutex(unlock) }

    deinit { release() }

    func release() {
        let action = unlock.withLock { action in
            defer { action = nil }
            return action
        }
        action?()
    }
}
