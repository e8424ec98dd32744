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
    /// A new file; the name must be free. It has the rights of the directory's new files: only the
    /// user may read or write it, if not said otherwise.
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
    /// Removes a directory inside that holds nothing.
    /// - Throws: `exists` when something is in it.
    func removeDirectory(_ name: String) throws(IOError)
    /// Whether other processes can open the same files.
    var isSharedBetweenProcesses: Bool { get }
    /// Whether a name is still that of an open file; nil where nobody can change that, or tell.
    func isNamed(_ name: String, _ file: any StoreFile) throws(IOError) -> Bool?
    /// Tells of writes to a file; nil where the system or the directory cannot.
    func watch(_ name: String) -> FileWatch?
    /// Opens a lock file for locks on several of its bytes; nil where locks belong to processes or
    /// to whole files. It is created if missing, but not for a reader, who gets nil.
    func openLocks(_ name: String, isReader: Bool) throws(IOError) -> (any LockBytes)?
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

    /// Nobody can tell.
    public func isNamed(_ name: String, _ file: any StoreFile) throws(IOError) -> Bool? { nil }

    /// Tells of writes to a file; nil where the system or the directory cannot.
    public func watch(_ name: String) -> FileWatch? { nil }

    /// Without other processes there is nothing to share.
    public func openLocks(_ name: String, isReader: Bool) throws(IOError) -> (any LockBytes)? {
        nil
    }

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

/// An open lock file. Its locks belong to this opening, one for each byte, and end with `close`,
/// with the last reference, or with the process.
public protocol LockBytes: AnyObject, Sendable {
    /// Takes a lock on one byte; false when another opening has one that does not go with it.
    func tryLock(_ byte: UInt64, _ kind: LockKind) throws(IOError) -> Bool
    /// Takes a lock on one byte, and waits for as long as others have it.
    func lock(_ byte: UInt64, _ kind: LockKind) throws(IOError)
    /// Gives the lock on a byte up.
    func unlock(_ byte: UInt64)
    /// Whether another opening has a lock on one of the bytes; true when that cannot be told.
    func isLockedByOther(_ bytes: Range<UInt64>) -> Bool
    /// Whether the file still has its name: locks on one that lost it protect nothing.
    func isNamed() throws(IOError) -> Bool
    /// The bytes of the same opening; nil: they need one of their own.
    var file: (any StoreFile)? { get }
    /// Gives all locks up.
    func close()
}

extension LockBytes {
    /// They need an opening of their own.
    public var file: (any StoreFile)? { nil }
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
