// Locks on bytes of a lock file.
//
// Invariants
// - The lock belongs to an open file description of its own: closing any other descriptor of the
//   same file, which drops classic POSIX locks, leaves it alone, and a second opening in this
//   process is refused like one of another process.
// - A lock on a file that has lost its name protects nothing: the name is checked after locking.

internal import VarveBase

/// The bytes of a lock file and what a lock on them says.
public enum LockByte {
    /// Exclusive: whoever writes to the store.
    public static let writer: UInt64 = 0
    /// Shared: whoever has the store open for reading and wants to hear of commits.
    public static let reading: UInt64 = 1
    /// Shared: whoever has the store open for writing.
    public static let writing: UInt64 = 2
    /// Exclusive: whoever is next to write.
    public static let next: UInt64 = 3
    /// Number of these bytes.
    public static let count: UInt64 = 4
}

/// A lock that ends with `release`, or with its descriptor.
final class PosixFileLock: FileLock {
    private let descriptor: Descriptor

    private let byte: UInt64

    private init(_ descriptor: Descriptor, _ byte: UInt64) {
        self.descriptor = descriptor
        self.byte = byte
    }

    deinit { release() }

    static func take(
        _ directory: Int32,
        _ name: String,
        _ byte: UInt64,
        _ kind: LockKind,
        _ wait: Bool,
        _ rights: FileRights
    ) throws(IOError) -> PosixFileLock {
        while true {
            let descriptor = Descriptor(
                try SystemCalls.openLockFile(directory, name, rights),
                name
            )
            let isCurrent = try descriptor.use { number throws(IOError) in
                let locked = try SystemCalls.regularIdentity(number, name)
                try SystemCalls.lock(number, byte, kind, wait, name)
                let named = try SystemCalls.identity(directory, name)
                return named?.isSameFile(as: locked) ?? false
            }
            if isCurrent { return PosixFileLock(descriptor, byte) }
        }
    }

    func release() {
        // Closing is not enough: a child that was forked at this moment has a copy of the
        // descriptor until it runs its program. After the first call nothing is open here.
        try? descriptor.use { number throws(IOError) in SystemCalls.unlock(number, byte) }
        descriptor.close()
    }
}

/// Locks on several bytes of one lock file that stays open.
final class PosixLockBytes: LockBytes {
    private let directory: Descriptor
    private let descriptor: Descriptor
    private let name: String
    /// Which file it is: that never changes while it is open.
    private let identity: FileIdentity

    private init(
        _ directory: Descriptor,
        _ descriptor: Descriptor,
        _ name: String,
        _ identity: FileIdentity
    ) {
        self.directory = directory
        self.descriptor = descriptor
        self.name = name
        self.identity = identity
    }

    deinit { close() }

    static func open(
        _ directory: Descriptor,
        _ name: String,
        isReader: Bool,
        _ rights: FileRights
    ) throws(IOError) -> PosixLockBytes? {
        let opened: Int32
        do throws(IOError) {
            opened = try directory.use { directory throws(IOError) in
                isReader
                    ? try SystemCalls.open(directory, name, .read)
                    : try SystemCalls.openLockFile(directory, name, rights)
            }
        } catch {
            if isReader { return nil }
            throw error
        }
        let descriptor = Descriptor(opened, name)
        return try descriptor.use { number throws(IOError) in
            let identity = try SystemCalls.regularIdentity(number, name)
            let canTell = SystemCalls.isLockedByOther(number, 0..<1) != nil
            return canTell ? PosixLockBytes(directory, descriptor, name, identity) : nil
        }
    }

    var file: (any StoreFile)? { PosixFile(descriptor, name: name, identity) }

    func tryLock(_ byte: UInt64, _ kind: LockKind) throws(IOError) -> Bool {
        do throws(IOError) {
            try descriptor.use { number throws(IOError) in
                try SystemCalls.lock(number, byte, kind, false, name)
            }
            return true
        } catch {
            if error.isHeld { return false }
            throw error
        }
    }

    func lock(_ byte: UInt64, _ kind: LockKind) throws(IOError) {
        try descriptor.use { number throws(IOError) in
            try SystemCalls.lock(number, byte, kind, true, name)
        }
    }

    func unlock(_ byte: UInt64) {
        try? descriptor.use { number throws(IOError) in SystemCalls.unlock(number, byte) }
    }

    func isLockedByOther(_ bytes: Range<UInt64>) -> Bool {
        let isLocked = try? descriptor.use { number throws(IOError) in
            SystemCalls.isLockedByOther(number, bytes)
        }
        return (isLocked ?? nil) ?? true
    }

    func isNamed() throws(IOError) -> Bool {
        let named = try directory.use { directory throws(IOError) in
            try SystemCalls.identity(directory, name)
        }
        return named?.isSameFile(as: identity) ?? false
    }

    func close() {
        // A child that was forked may have a copy of the descriptor: closing alone is not enough.
        for byte in 0..<LockByte.count { unlock(byte) }
        descriptor.close()
    }
}
