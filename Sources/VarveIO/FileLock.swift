// A lock on one byte of a lock file.
//
// Invariants
// - The lock belongs to an open file description of its own: closing any other descriptor of the
//   same file, which drops classic POSIX locks, leaves it alone, and a second opening in this
//   process is refused like one of another process.
// - A lock on a file that has lost its name protects nothing: the name is checked after locking.

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
        _ wait: Bool
    ) throws(IOError) -> PosixFileLock {
        while true {
            let descriptor = Descriptor(
                try SystemCalls.openLockFile(directory, name),
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
