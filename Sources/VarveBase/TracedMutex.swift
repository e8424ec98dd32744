// FENCE: `Mutex` for builds with the thread sanitizer, which it can see through.
//
// Invariants
// - In builds without VARVE_THREAD_SANITIZER (Package.swift) there is nothing here.
// - It locks just as `Mutex` does, and tells the sanitizer so: after taking, in front of giving.
//
// Why: where threads meet, `Mutex` leaves the lock to the kernel (a futex), and the sanitizer sees
// nothing of it: each value behind a contended lock was a race to it. Modules that use `Mutex` name
// this one in its place.

#if VARVE_THREAD_SANITIZER
import Synchronization

@_silgen_name("__tsan_acquire")
private func tsanAcquire(_ address: UnsafeMutableRawPointer)

@_silgen_name("__tsan_release")
private func tsanRelease(_ address: UnsafeMutableRawPointer)

/// As `Mutex`.
public struct TracedMutex<Value: ~Copyable>: ~Copyable, Sendable {
    /// What the sanitizer knows the lock by.
    private final class Token: Sendable {
        func acquire() { unsafe tsanAcquire(Unmanaged.passUnretained(self).toOpaque()) }
        func release() { unsafe tsanRelease(Unmanaged.passUnretained(self).toOpaque()) }
    }

    private let mutex: Synchronization.Mutex<Value>
    private let token = Token()

    /// As `Mutex`.
    public init(_ value: consuming sending Value) {
        mutex = Synchronization.Mutex(value)
    }

    /// As `Mutex`.
    public borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try mutex.withLock { value throws(Failure) in
            token.acquire()
            defer { token.release() }
            return try body(&value)
        }
    }

    /// As `Mutex`.
    public borrowing func withLockIfAvailable<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result? {
        try mutex.withLockIfAvailable { value throws(Failure) in
            token.acquire()
            defer { token.release() }
            return try body(&value)
        }
    }
}
#endif
