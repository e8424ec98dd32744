// A value that many threads change for a short time each, behind a lock without a line of waiters.
//
// Invariants
// - The value is touched by the thread that has the lock, and by nobody else.
// - As `Mutex`: not to be entered twice by one thread.

internal import VarveBase
internal import VarveIO

#if VARVE_THREAD_SANITIZER
/// In the whole module: the thread sanitizer sees nothing of the other one.
typealias Mutex = TracedMutex
#endif

/// As `Mutex`, where savers queue: see `BargingLock` for the difference.
struct Guarded<Value: ~Copyable>: ~Copyable {
    private final class Box {
        var value: Value
        init(_ value: consuming Value) { self.value = value }
    }
    private let lock = BargingLock()
    private let box: Box

    init(_ value: consuming Value) { box = Box(value) }

    func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&box.value)
    }
}

// Nobody reaches the box but through the lock.
extension Guarded: @unchecked Sendable where Value: ~Copyable {}
