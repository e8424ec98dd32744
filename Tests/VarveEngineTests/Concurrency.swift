// Threads, gates and a clock for tests that interleave savers, readers and maintenance.

import Synchronization
import VarveBase
import VarveIO

#if VARVE_THREAD_SANITIZER
/// In the whole module: the thread sanitizer sees nothing of the other one.
typealias Mutex = TracedMutex
#endif

/// Runs `body` on that many threads at once and waits for all.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let done = (0..<count).map { _ in Parker() }
    for index in 0..<count {
        let isStarted = BackgroundThread.start {
            body(index)
            done[index].unpark()
        }
        precondition(isStarted, "a thread for a test")
    }
    for parker in done { parker.park() }
}

/// A thread that the test goes on beside.
struct TestThread {
    private let done = Parker()

    init(_ body: @escaping @Sendable () -> Void) {
        let done = done
        let isStarted = BackgroundThread.start {
            body()
            done.unpark()
        }
        precondition(isStarted, "a thread for a test")
    }
    func join() { done.park() }
}

/// An environment whose yield points call the test.
struct GatedEnvironment: Environment {
    private let system = SystemEnvironment()
    let onYield: @Sendable (YieldPoint) -> Void

    func randomBytes(_ count: Int) -> [UInt8] { system.randomBytes(count) }
    func monotonicNanoseconds() -> UInt64 { system.monotonicNanoseconds() }
    func wallClockMicroseconds() -> Int64 { system.wallClockMicroseconds() }
    func processID() -> Int32 { system.processID() }
    func yield(_ point: YieldPoint) { onYield(point) }
}

/// Holds the first thread that comes to a point until the test lets it go.
final class Gate: Sendable {
    private let point: YieldPoint
    private let isArmed = Mutex(false)
    private let reached = Parker()
    private let opened = Parker()

    init(_ point: YieldPoint) { self.point = point }

    func arm() { isArmed.withLock { $0 = true } }
    func yield(_ passed: YieldPoint) {
        guard passed == point else { return }
        let holds = isArmed.withLock { isArmed in
            defer { isArmed = false }
            return isArmed
        }
        guard holds else { return }
        reached.unpark()
        opened.park()
    }
    /// Waits until a thread is held.
    func waitUntilReached() { reached.park() }
    func open() { opened.unpark() }
}
