// FENCE: waiting until another process writes to a file, without asking again and again.
//
// Invariants
// - The descriptor is closed with the last reference; who waits holds one.
// - A change between two waits is not lost: the system keeps it.

#if canImport(Glibc) || canImport(Musl) || canImport(Android)

#if canImport(Android)
import Android
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Tells of writes to one file by anyone.
public final class FileWatch: Sendable {
    private let events: Int32
    private let watch: Int32

    /// A watch of the open file `descriptor`; nil when the system gives none.
    init?(_ descriptor: Int32) {
        let events = inotify_init1(Int32(IN_CLOEXEC))
        guard events >= 0 else { return nil }
        // The path is passed as a C string for the length of the call.
        let path = "/proc/self/fd/\(descriptor)"
        let watch = unsafe inotify_add_watch(events, path, UInt32(IN_MODIFY | IN_ATTRIB))
        guard watch >= 0 else {
            _ = close(events)
            return nil
        }
        self.events = events
        self.watch = watch
    }

    deinit { _ = close(events) }

    /// Waits for a write; false when `stop` was called.
    public func wait() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe read(events, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            // An event: watch (4 bytes), mask (4), cookie (4), length of a name (4), the name.
            guard count >= 16 else { return false }
            var position = 0
            while position + 16 <= count {
                let mask = Self.load(buffer, position + 4)
                // The watch is gone: by `stop`, or with the file.
                if mask & UInt32(IN_IGNORED) != 0 { return false }
                position += 16 + Int(Self.load(buffer, position + 12))
            }
            // Any number of writes is one change.
            return true
        }
    }

    private static func load(_ bytes: [UInt8], _ at: Int) -> UInt32 {
        (0..<4).reduce(0) { $0 | UInt32(bytes[at + $1]) << UInt32(8 * $1) }
    }

    /// Ends the waiting, now and for ever.
    public func stop() { _ = inotify_rm_watch(events, watch) }
}

#else

/// Not offered here: a reader learns of commits at its next transaction.
public final class FileWatch: Sendable {
    init?(_ descriptor: Int32) { return nil }
    /// Never waits.
    public func wait() -> Bool { false }
    /// Does nothing.
    public func stop() {}
}

#endif
