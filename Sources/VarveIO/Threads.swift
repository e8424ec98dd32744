// FENCE: a thread that waits and is woken, a lock, a thread of our own. pthread stays inside this
// file.
//
// Invariants
// - A wake before the wait is not lost: `unpark` leaves a token, `park` takes it.
// - The memory of mutex and condition lives as long as the parker and never moves.
// - A background thread holds its body until the body returns, and nothing else.

public import Synchronization

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
        let made = unsafe pthread_mutex_init(mutex, nil) + pthread_cond_init(condition, nil)
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
        var now = timespec()
        // The clock that pthread_cond_timedwait compares with by default.
        _ = unsafe clock_gettime(CLOCK_REALTIME, &now)
        let nanoseconds = Int(now.tv_nsec) + milliseconds % 1000 * 1_000_000
        var end = timespec()
        end.tv_sec = now.tv_sec + milliseconds / 1000 + nanoseconds / 1_000_000_000
        end.tv_nsec = nanoseconds % 1_000_000_000
        _ = unsafe pthread_mutex_lock(mutex)
        var code: Int32 = 0
        while code == 0, unsafe !token.pointee {
            code = unsafe pthread_cond_timedwait(condition, mutex, &end)
        }
        let wasWoken = unsafe token.pointee
        unsafe token.pointee = false
        _ = unsafe pthread_mutex_unlock(mutex)
        return wasWoken
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

/// Work that several threads share: each takes the next few inputs until none is left.
///
/// Who wants the outputs works as well, and waits only for inputs that another thread has taken: a
/// thread that gets no processor costs nothing but its start. When it comes at last it finds
/// neither work nor anything of the caller's.
///
/// `@inlinable`, as `BackgroundThread.map`: unspecialized, each piece would ask the runtime for its
/// generic types, 3 % of a compaction.
@usableFromInline
final class SharedWork<Input: Sendable, Output: Sendable>: Sendable {
    @usableFromInline
    struct Job: Sendable {
        @usableFromInline let inputs: [Input]
        @usableFromInline let transform: @Sendable (Input) -> Output

        @inlinable
        init(_ inputs: [Input], _ transform: @escaping @Sendable (Input) -> Output) {
            self.inputs = inputs
            self.transform = transform
        }
    }
    @usableFromInline
    struct Part: Sendable {
        @usableFromInline let start: Int
        @usableFromInline let outputs: [Output]

        @inlinable
        init(_ start: Int, _ outputs: [Output]) {
            self.start = start
            self.outputs = outputs
        }
    }
    @usableFromInline
    struct State {
        @usableFromInline var job: Job?
        @usableFromInline var next = 0
        @usableFromInline var parts: [Part] = []
        @usableFromInline var done = 0
        @usableFromInline var isTaken = false

        @inlinable
        init(_ job: Job) { self.job = job }
    }

    @usableFromInline let count: Int
    @usableFromInline let together: Int
    @usableFromInline let state: Mutex<State>
    @usableFromInline let isFinished = Atomic<Bool>(false)
    @usableFromInline let finished = Parker()
    /// Looks at `isFinished` before the caller sleeps: some 20 microseconds, which is what sleeping
    /// and waking cost. The last input of another thread is often done in less.
    @inlinable static var looksMax: Int { 20_000 }

    /// At least one input.
    @inlinable
    init(
        _ inputs: [Input],
        _ together: Int,
        _ transform: @escaping @Sendable (Input) -> Output
    ) {
        count = inputs.count
        self.together = together
        state = Mutex(State(Job(inputs, transform)))
    }

    @inlinable
    func work() {
        while let part = nextPart() {
            let isLast = state.withLock { state in
                state.parts.append(part)
                state.done += part.outputs.count
                return state.done == count
            }
            if isLast {
                isFinished.store(true, ordering: .releasing)
                finished.unpark()
            }
        }
    }

    /// A function of its own, so that the job is let go before its outputs are seen.
    @inlinable
    @inline(never)
    func nextPart() -> Part? {
        let claim: (job: Job, range: Range<Int>)? = state.withLock { state in
            guard let job = state.job, state.next < count else { return nil }
            let start = state.next
            state.next = min(start + together, count)
            return (job, start..<state.next)
        }
        guard let claim else { return nil }
        return Part(
            claim.range.lowerBound,
            claim.job.inputs[claim.range].map(claim.job.transform)
        )
    }

    /// Nobody wants the outputs: who works ends with what he has begun.
    @inlinable
    func giveUp() { state.withLock { $0.job = nil } }

    /// Whether the caller is the first who wants the outputs.
    @inlinable
    func claimResult() -> Bool {
        state.withLock { state in
            defer { state.isTaken = true }
            return !state.isTaken
        }
    }

    /// All outputs, in the order of their inputs. Called once.
    @inlinable
    func result() -> [Output] {
        var looks = 0
        while !isFinished.load(ordering: .acquiring) {
            looks += 1
            if looks > Self.looksMax {
                finished.park()
                break
            }
        }
        let parts = state.withLock { state in
            state.job = nil
            defer { state.parts = [] }
            return state.parts
        }
        if parts.count == 1 { return parts[0].outputs }
        return parts.sorted { $0.start < $1.start }.flatMap { $0.outputs }
    }
}

/// Work that others do while its owner does something else. Who drops it gives it up.
public final class WorkUnderWay<Input: Sendable, Output: Sendable>: Sendable {
    @usableFromInline let work: SharedWork<Input, Output>

    @inlinable
    init(_ work: SharedWork<Input, Output>) { self.work = work }

    @inlinable deinit { work.giveUp() }

    /// Does what nobody has begun, and waits for the rest.
    /// - Returns: the outputs, in the order of their inputs; nil when they were taken before.
    @inlinable
    public func take() -> [Output]? {
        guard work.claimResult() else { return nil }
        work.work()
        return work.result()
    }
}

/// Calls a function when everybody has left.
@usableFromInline
final class LastOneOut: Sendable {
    @usableFromInline let inside = Atomic<Int>(1)
    @usableFromInline let call: @Sendable () -> Void

    @inlinable
    init(_ call: @escaping @Sendable () -> Void) { self.call = call }

    @inlinable
    func enter() { inside.add(1, ordering: .relaxed) }

    @inlinable
    func leave() {
        if inside.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { call() }
    }
}

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

    /// Threads of all calls of `map` and `begin` that have not ended. On a machine with more to do
    /// they may not have begun when their work is done.
    private static let helpers = Atomic<Int>(0)
    private static let helpersMax = 4 * processors

    /// Transforms each input, on this thread and others; outputs in the order of their inputs. With
    /// fewer threads when the system gives none, or no processor for them.
    /// - Parameter together: inputs that a thread takes at once.
    /// - Complexity: O(inputs); a new thread costs some 20 microseconds.
    @inlinable
    public static func map<Input: Sendable, Output: Sendable>(
        _ inputs: [Input],
        threads: Int,
        together: Int = 8,
        _ transform: @escaping @Sendable (Input) -> Output
    ) -> [Output] {
        if inputs.isEmpty { return [] }
        let work = SharedWork(inputs, together, transform)
        let useful = min(threads, (inputs.count + together - 1) / together)
        for _ in 1..<max(1, useful) {
            guard startHelper({ work.work() }) else { break }
        }
        work.work()
        return work.result()
    }

    /// Begins to transform each input, on other threads than this one.
    /// - Parameters:
    ///   - inputs: at least one.
    ///   - threads: how many, at most; with none, all is done by who takes the outputs.
    ///   - together: inputs that a thread takes at once.
    ///   - atEnd: called when none of the threads does anything more, by the last of them.
    /// - Complexity: a new thread costs some 20 microseconds.
    @inlinable
    public static func begin<Input: Sendable, Output: Sendable>(
        _ inputs: [Input],
        threads: Int,
        together: Int = 8,
        atEnd: @escaping @Sendable () -> Void,
        _ transform: @escaping @Sendable (Input) -> Output
    ) -> WorkUnderWay<Input, Output> {
        precondition(!inputs.isEmpty, "there is something to do")
        let work = SharedWork(inputs, together, transform)
        let end = LastOneOut(atEnd)
        for _ in 0..<threads {
            end.enter()
            let isStarted = startHelper {
                work.work()
                end.leave()
            }
            if !isStarted {
                end.leave()
                break
            }
        }
        end.leave()
        return WorkUnderWay(work)
    }

    /// A thread for work that somebody else does when there is none.
    @usableFromInline
    static func startHelper(_ body: @escaping @Sendable () -> Void) -> Bool {
        if helpers.add(1, ordering: .relaxed).newValue <= helpersMax,
            start({
                body()
                helpers.subtract(1, ordering: .relaxed)
            })
        {
            return true
        }
        helpers.subtract(1, ordering: .relaxed)
        return false
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
