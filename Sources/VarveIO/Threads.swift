// FENCE: a thread that waits and is woken, a lock, a thread of our own. pthread stays inside this
// file.
//
// Invariants
// - A wake before the wait is not lost: `unpark` leaves a token, `park` takes it.
// - The memory of mutex and condition lives as long as the parker and never moves.
// - A background thread holds its body until the body returns, and nothing else.

import CVarve

#if canImport(Darwin)
import Darwin
#elseif canImport(Android)
import Android
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// One place where one thread waits for others.
@safe public final class Parker {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    /// Guarded by `mutex`.
    private let token: UnsafeMutablePointer<Bool>

    /// A parker without a token.
    public init() {
        unsafe mutex = .allocate(capacity: 1)
        unsafe condition = .allocate(capacity: 1)
        unsafe token = .allocate(capacity: 1)
        // Memory of our own, used by pthread calls alone from here on.
        unsafe mutex.initialize(to: pthread_mutex_t())
        unsafe condition.initialize(to: pthread_cond_t())
        unsafe token.initialize(to: false)
        var made = unsafe pthread_mutex_init(mutex, nil)
        #if canImport(Darwin)
        made += unsafe pthread_cond_init(condition, nil)
        #else
        // Waits end by a clock that nobody sets.
        var attributes = pthread_condattr_t()
        made += unsafe pthread_condattr_init(&attributes)
        made += unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        made += unsafe pthread_cond_init(condition, &attributes)
        made += unsafe pthread_condattr_destroy(&attributes)
        #endif
        precondition(made == 0, "the system has no mutex left")
    }

    deinit {
        // Nobody waits here: a waiting thread holds a reference.
        _ = unsafe pthread_cond_destroy(condition)
        _ = unsafe pthread_mutex_destroy(mutex)
        unsafe token.deallocate()
        unsafe condition.deallocate()
        unsafe mutex.deallocate()
    }

    /// Waits for a token and takes it.
    public func park() {
        _ = unsafe pthread_mutex_lock(mutex)
        while unsafe !token.pointee { _ = unsafe pthread_cond_wait(condition, mutex) }
        unsafe token.pointee = false
        _ = unsafe pthread_mutex_unlock(mutex)
    }

    /// Waits for a token, but not longer than `milliseconds`; false when none came.
    public func park(milliseconds: Int) -> Bool {
        // Whoever sets the wall clock neither ends a wait nor makes it longer.
        let (now, wait) = (SystemCalls.monotonicNanoseconds(), UInt64(max(0, milliseconds)))
        let end = now &+ wait &* 1_000_000
        _ = unsafe pthread_mutex_lock(mutex)
        var code: Int32 = 0
        while code == 0, unsafe !token.pointee {
            #if canImport(Darwin)
            let left = end &- min(end, SystemCalls.monotonicNanoseconds())
            var time = Self.time(left)
            code = unsafe pthread_cond_timedwait_relative_np(condition, mutex, &time)
            #else
            var time = Self.time(end)
            code = unsafe pthread_cond_timedwait(condition, mutex, &time)
            #endif
        }
        let wasWoken = unsafe token.pointee
        unsafe token.pointee = false
        _ = unsafe pthread_mutex_unlock(mutex)
        return wasWoken
    }

    private static func time(_ nanoseconds: UInt64) -> timespec {
        var time = timespec()
        time.tv_sec = Int(nanoseconds / 1_000_000_000)
        time.tv_nsec = Int(nanoseconds % 1_000_000_000)
        return time
    }

    /// Leaves a token, and wakes the thread that waits.
    public func unpark() {
        _ = unsafe pthread_mutex_lock(mutex)
        unsafe token.pointee = true
        _ = unsafe pthread_mutex_unlock(mutex)
        // Not before: who wakes would find the mutex taken and sleep again. The caller's reference
        // keeps the condition alive.
        _ = unsafe pthread_cond_signal(condition)
    }
}

// The token is guarded by the mutex; the pointers never change.
extension Parker: @unchecked Sendable {}

/// A lock that whoever is running takes when it is free, whoever has waited for it longest.
///
/// `Mutex` of the standard library inherits priorities on Linux, for which the kernel hands it over
/// to the thread that waits: nobody has it until that thread runs, and with many short holders each
/// of them costs a change of threads.
@safe public final class BargingLock {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>

    /// A lock that is free.
    public init() {
        var attributes = pthread_mutexattr_t()
        unsafe mutex = .allocate(capacity: 1)
        // Memory of our own, used by pthread calls alone from here on.
        unsafe mutex.initialize(to: pthread_mutex_t())
        var made = unsafe pthread_mutexattr_init(&attributes)
        #if canImport(Glibc)
        // Looks for a while whether it becomes free before it sleeps.
        made += unsafe pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_ADAPTIVE_NP))
        #endif
        made += unsafe pthread_mutex_init(mutex, &attributes)
        made += unsafe pthread_mutexattr_destroy(&attributes)
        precondition(made == 0, "the system has no mutex left")
    }

    deinit {
        _ = unsafe pthread_mutex_destroy(mutex)
        unsafe mutex.deallocate()
    }

    /// Waits until it is free and takes it. Not to be taken twice by one thread.
    public func lock() { _ = unsafe pthread_mutex_lock(mutex) }

    /// Gives it back; by the thread that took it.
    public func unlock() { _ = unsafe pthread_mutex_unlock(mutex) }
}

// The pointer never changes; what it points to is the system's.
extension BargingLock: @unchecked Sendable {}

/// Threads for work that blocks.
public enum BackgroundThread {
    private final class Body {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Runs `body` on a new thread.
    /// - Returns: false when the system gives no thread.
    public static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
        let context = unsafe Unmanaged.passRetained(Body(body))
        #if canImport(Darwin)
        var thread: pthread_t?
        #else
        var thread = pthread_t()
        #endif
        // The new thread takes over the reference; when there is none, it is given back below.
        let code = unsafe pthread_create(
            &thread,
            nil,
            { argument in
                #if canImport(Darwin)
                let body = unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
                #else
                guard let argument = unsafe argument else { return nil }
                let body = unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
                #endif
                body.run()
                return nil
            },
            context.toOpaque()
        )
        guard code == 0 else {
            unsafe context.release()
            return false
        }
        #if canImport(Darwin)
        if let thread = unsafe thread { unsafe pthread_detach(thread) }
        #else
        _ = pthread_detach(thread)
        #endif
        return true
    }

    /// Processors that run threads of this process, at least 1.
    public static let processors = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))

    /// A number of the calling thread that no other live thread has.
    public static var currentID: UInt {
        #if canImport(Darwin)
        UInt(bitPattern: unsafe pthread_self())
        #else
        UInt(pthread_self())
        #endif
    }
}

extension SystemCalls {
    // MARK: Memory

    /// The beginning of a file as text, at most 16 KiB; nil when it cannot be read.
    static func beginning(of path: String) -> String? {
        // The buffer and the C string live for the call.
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 16 << 10) { buffer, count in
            count = unsafe varve_read_beginning(path, buffer.baseAddress, buffer.count)
        }
        return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }

    // MARK: Time

    static func monotonicNanoseconds() -> UInt64 { clock(CLOCK_MONOTONIC) }

    static func wallClockMicroseconds() -> Int64 {
        Int64(truncatingIfNeeded: clock(CLOCK_REALTIME) / 1000)
    }

    private static func clock(_ clock: clockid_t) -> UInt64 {
        var now = timespec()
        // The structure lives for the length of the call.
        _ = unsafe clock_gettime(clock, &now)
        return UInt64(max(0, now.tv_sec)) &* 1_000_000_000 &+ UInt64(max(0, now.tv_nsec))
    }

    static func sleepMillisecond() { _ = usleep(1000) }

    static func processID() -> Int32 { getpid() }
}
