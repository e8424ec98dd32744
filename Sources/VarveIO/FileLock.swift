// A lock on one byte of a lock file.
//
// Invariants
// - The lock belongs to an open file description of its own: closing any other descriptor of the
//   same file, which drops classic POSIX locks, leaves it alone, and a second opening in this
//   process is refused like one of another process.
// - A lock on a file that has lost its name protects nothing: the name is checked after locking.

/// A lock that ends with its descriptor.
final class PosixFileLock: FileLock {
    private let descriptor: Descriptor

    private init(_ descriptor: Descriptor) { self.descriptor = descriptor }

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
            if isCurrent { return PosixFileLock(descriptor) }
        }
    }

    func release() { descriptor.close() }
}
