// A directory of the operating system.
//
// Invariants
// - Every name is opened relative to one descriptor: renaming the directory, or a path above it,
//   while the store is open leads no call elsewhere.
// - What is opened is a regular file, checked on the descriptor and not on the name.

public import VarveBase

/// One directory of the operating system.
public final class PosixDirectory: StoreDirectory {
    /// Its path, or its name inside its parent.
    public let name: String
    private let descriptor: Descriptor
    /// Of what is made here.
    private let rights: FileRights

    private init(_ descriptor: Descriptor, name: String, _ rights: FileRights) {
        self.descriptor = descriptor
        self.name = name
        self.rights = rights
    }

    /// Opens a directory by its path. With `create`, it and missing ones above it are made for
    /// this user alone.
    public static func open(
        path: String,
        create: Bool = false,
        rights: FileRights = FileRights()
    ) throws(IOError) -> PosixDirectory {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw IOError(
                kind: .badName,
                code: 0,
                operation: "open",
                name: path,
                reason: "not a path"
            )
        }
        do {
            return PosixDirectory(
                Descriptor(try SystemCalls.openRoot(path), path),
                name: path,
                rights
            )
        } catch {
            guard create, error.isMissing else { throw error }
        }
        if let slash = path.lastIndex(of: "/"), slash != path.startIndex {
            // Makes what is missing above, and proves that it is a directory.
            _ = try open(path: String(path[..<slash]), create: true)
        }
        do {
            try SystemCalls.makeDirectory(nil, path)
        } catch {
            // Another process may have made it meanwhile; "a/b/" makes it one level deeper.
            if !error.isExisting { throw error }
        }
        return PosixDirectory(Descriptor(try SystemCalls.openRoot(path), path), name: path, rights)
    }

    /// Opens a regular file.
    public func openFile(_ name: String, mode: OpenMode) throws(IOError) -> any StoreFile {
        try FileName.check(name, "open")
        let opened = try descriptor.use { directory throws(IOError) in
            try SystemCalls.open(directory, name, mode)
        }
        let file = Descriptor(opened, name)
        return try file.use { number throws(IOError) in
            let identity = try SystemCalls.regularIdentity(number, name)
            if mode == .createExclusive {
                try SystemCalls.give(rights, rights.mode, number, name)
            }
            return PosixFile(file, name: name, identity)
        }
    }

    /// Whether anything has this name.
    public func exists(_ name: String) throws(IOError) -> Bool {
        try FileName.check(name, "stat")
        return try descriptor.use { directory throws(IOError) in
            try SystemCalls.identity(directory, name) != nil
        }
    }

    /// Renames inside the directory.
    public func rename(_ from: String, to: String, replacing: Bool) throws(IOError) {
        try FileName.check(from, "rename")
        try FileName.check(to, "rename")
        try descriptor.use { directory throws(IOError) in
            try SystemCalls.rename(directory, from, to, replacing: replacing)
        }
    }

    /// Removes a file's name.
    public func remove(_ name: String) throws(IOError) {
        try FileName.check(name, "remove")
        try descriptor.use { directory throws(IOError) in
            try SystemCalls.remove(directory, name)
        }
    }

    /// Names of all entries, sorted. Names that are not UTF-8 are left out: none of ours is.
    public func list() throws(IOError) -> [String] {
        try descriptor.use { directory throws(IOError) in
            try SystemCalls.list(directory, name)
        }
    }

    /// Makes names durable.
    public func sync() throws(IOError) {
        try descriptor.use { directory throws(IOError) in
            try SystemCalls.syncDirectory(directory, name)
        }
    }

    /// Opens a directory inside, or creates it for this user alone.
    public func directory(_ name: String, create: Bool) throws(IOError) -> any StoreDirectory {
        try FileName.check(name, "open")
        let opened = try descriptor.use { directory throws(IOError) in
            var isMade = false
            if create {
                do throws(IOError) {
                    try SystemCalls.makeDirectory(directory, name)
                    isMade = true
                } catch {
                    if !error.isExisting { throw error }
                }
            }
            let opened = try SystemCalls.open(directory, name, nil)
            guard isMade, !rights.isDefault else { return opened }
            do throws(IOError) {
                try SystemCalls.give(rights, rights.folderMode, opened, name)
            } catch {
                SystemCalls.close(opened)
                throw error
            }
            return opened
        }
        return PosixDirectory(Descriptor(opened, name), name: name, rights)
    }

    /// Removes a directory inside that holds nothing.
    public func removeDirectory(_ name: String) throws(IOError) {
        try FileName.check(name, "remove")
        try descriptor.use { directory throws(IOError) in
            try SystemCalls.remove(directory, name, isDirectory: true)
        }
    }

    /// Any process can open what is here.
    public var isSharedBetweenProcesses: Bool { true }

    /// Whether a name is still that of an open file.
    /// - Complexity: one system call, and one more the first time.
    public func isNamed(_ name: String, _ file: any StoreFile) throws(IOError) -> Bool? {
        try FileName.check(name, "stat")
        let named = try descriptor.use { directory throws(IOError) in
            try SystemCalls.identity(directory, name)
        }
        return try named.map { (found) throws(IOError) in try file.isSameFile(as: found) } ?? false
    }

    /// Tells of writes to a file; nil where the system cannot.
    public func watch(_ name: String) -> FileWatch? {
        do throws(IOError) {
            try FileName.check(name, "open")
            let opened = try descriptor.use { directory throws(IOError) in
                try SystemCalls.open(directory, name, .read)
            }
            defer { SystemCalls.close(opened) }
            return FileWatch(opened)
        } catch {
            return nil
        }
    }

    /// Opens a lock file for locks on several of its bytes.
    public func openLocks(_ name: String, isReader: Bool) throws(IOError) -> (any LockBytes)? {
        try FileName.check(name, "lock")
        return try PosixLockBytes.open(descriptor, name, isReader: isReader, rights)
    }

    /// Locks one byte of a lock file.
    public func lock(
        _ name: String,
        byte: UInt64,
        kind: LockKind,
        wait: Bool
    ) throws(IOError) -> any FileLock {
        try FileName.check(name, "lock")
        return try descriptor.use { directory throws(IOError) in
            try PosixFileLock.take(directory, name, byte, kind, wait, rights)
        }
    }
}
