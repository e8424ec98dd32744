// Seam: one directory. Names are single components, checked before any call.
//
// Invariants
// - No call follows a symbolic link at a name, or leaves the directory.
// - What was created, renamed or removed is durable only after `sync`.

/// How a file is opened.
public enum OpenMode: Sendable {
    /// An existing file, for reading.
    case read
    /// An existing file, for reading and writing.
    case readWrite
    /// A new file; the name must be free. Only the user may read or write it.
    case createExclusive
}

/// One directory.
public protocol StoreDirectory: AnyObject, Sendable {
    /// What errors call it.
    var name: String { get }
    /// Opens a regular file.
    func openFile(_ name: String, mode: OpenMode) throws(IOError) -> any StoreFile
    /// Whether anything has this name.
    func exists(_ name: String) throws(IOError) -> Bool
    /// Renames inside the directory. Without `replacing`, a taken name is an error.
    func rename(_ from: String, to: String, replacing: Bool) throws(IOError)
    /// Removes a file's name.
    func remove(_ name: String) throws(IOError)
    /// Names of all entries, sorted.
    func list() throws(IOError) -> [String]
    /// Makes names durable.
    func sync() throws(IOError)
    /// Opens a directory inside, or creates it for this user alone.
    func directory(_ name: String, create: Bool) throws(IOError) -> any StoreDirectory
    /// Whether other processes can open the same files.
    var isSharedBetweenProcesses: Bool { get }
    /// Tells of writes to a file; nil where the system or the directory cannot.
    func watch(_ name: String) -> FileWatch?
    /// Locks one byte of a lock file, which is created if missing and never removed.
    /// The lock ends with `release`, with the last reference to it, or with the process.
    /// - Throws: `held` when someone else, in this process or another, has it and `wait` is false.
    func lock(
        _ name: String,
        byte: UInt64,
        kind: LockKind,
        wait: Bool
    ) throws(IOError) -> any FileLock
}

extension StoreDirectory {
    /// Whether other processes can open the same files.
    public var isSharedBetweenProcesses: Bool { false }

    /// Tells of writes to a file; nil where the system or the directory cannot.
    public func watch(_ name: String) -> FileWatch? { nil }

    /// Locks the first byte of a lock file for one holder.
    public func lockExclusive(_ name: String, wait: Bool) throws(IOError) -> any FileLock {
        try lock(name, byte: 0, kind: .exclusive, wait: wait)
    }
}

/// Who else may hold a lock.
public enum LockKind: Sendable {
    /// Other shared holders.
    case shared
    /// Nobody.
    case exclusive
}

/// A lock that is held until it is released or forgotten.
public protocol FileLock: AnyObject, Sendable {
    /// Gives the lock up. Further calls do nothing.
    func release()
}

/// The check of names that both implementations share.
enum FileName {
    static let bytesMax = 255

    static func check(_ name: String, _ operation: String) throws(IOError) {
        guard !name.isEmpty, name != ".", name != "..", name.utf8.count <= bytesMax,
            !name.utf8.contains(0x2F), !name.utf8.contains(0)
        else {
            throw IOError(
                kind: .badName,
                code: 0,
                operation: operation,
                name: name,
                reason: "not one plain name"
            )
        }
    }
}
