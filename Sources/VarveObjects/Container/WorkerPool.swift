// The threads that background tasks run on: few, the container's own, never Swift's cooperative
// ones.
//
// Invariants
// - At most `limit` bodies run at once; the others wait in order.
// - No body waits while fewer run: each has an idle thread of its own, or a new one.
// - A thread that found no work for a while ends, so an idle container has none.
// - A body that was cancelled while it waited never runs, and its task learns that at once.

import Foundation
import Synchronization

final class WorkerPool {
    private let condition = NSCondition()
    private let limit: Int
    private var queue: [@Sendable () -> Void] = []
    private var head = 0
    private var threads = 0
    private var idle = 0

    init(limit: Int) { self.limit = max(1, limit) }

    /// Threads that wait for work.
    var idleThreads: Int {
        condition.lock()
        defer { condition.unlock() }
        return idle
    }

    /// Bodies that wait for a thread, those that were cancelled included.
    var waitingBodies: Int {
        condition.lock()
        defer { condition.unlock() }
        return queue.count - head
    }

    /// Runs `work` on a thread of the pool, after everything that waits already.
    func submit(_ work: @escaping @Sendable () -> Void) {
        condition.lock()
        defer { condition.unlock() }
        queue.append(work)
        // A thread that was woken counts as idle until it runs, and its body as waiting.
        if queue.count - head <= idle || threads >= limit {
            condition.signal()
        } else {
            threads += 1
            let thread = Thread { [self] in runBodies() }
            thread.stackSize = 1 << 20
            thread.start()
        }
    }

    /// Runs `body` on a thread of the pool and waits for it without holding up a thread.
    ///
    /// A body that has begun runs to its end, also when the task is cancelled.
    /// - Parameter isCancellable: whether a cancelled task takes back a body that has not begun,
    ///   and throws `CancellationError` at once. What must happen, as a close, is not.
    ///
    /// `@concurrent`, and the only place that makes a continuation: in a function that runs on its
    /// caller's actor the optimiser of Swift 6.3.1 leaves out the way back to that actor behind a
    /// continuation. Code on the main actor then went on elsewhere, in release builds only.
    @concurrent func run<Result: Sendable>(
        isCancellable: Bool = false,
        _ body: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        let waiting = WaitingBody<Result>()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // The thread that comes to it finds nothing to do when the task was cancelled.
                if waiting.wait(body, continuation) { submit { waiting.run() } }
            }
        } onCancel: {
            if isCancellable { waiting.cancel() }
        }
    }

    private func runBodies() {
        Thread.current.name = "varve worker"
        condition.lock()
        while true {
            if head < queue.count {
                let body = queue[head]
                head += 1
                if head == queue.count {
                    queue = []
                    head = 0
                }
                condition.unlock()
                body()
                condition.lock()
                continue
            }
            idle += 1
            let isWoken = condition.wait(until: Date(timeIntervalSinceNow: 5))
            idle -= 1
            if !isWoken, head == queue.count { break }
        }
        threads -= 1
        condition.unlock()
    }
}

// Every access to its state holds `condition`.
extension WorkerPool: @unchecked Sendable {}

/// A body that waits for a thread, and the task that waits for the body.
///
/// Whoever takes it out, a thread or the end of the wait, resumes the task, once.
private final class WaitingBody<Result: Sendable>: Sendable {
    private struct Wait {
        let body: @Sendable () throws -> Result
        let task: CheckedContinuation<Result, any Error>
    }

    private enum State {
        case new
        case waiting(Wait)
        case over
    }

    private let state = Mutex(State.new)

    /// - Returns: false when the task was cancelled before.
    func wait(
        _ body: @escaping @Sendable () throws -> Result,
        _ task: CheckedContinuation<Result, any Error>
    ) -> Bool {
        let isNew = state.withLock { state in
            guard case .new = state else { return false }
            state = .waiting(Wait(body: body, task: task))
            return true
        }
        if !isNew { task.resume(throwing: CancellationError()) }
        return isNew
    }

    func run() {
        guard let wait = takeOut() else { return }
        wait.task.resume(with: Swift.Result { try wait.body() })
    }

    func cancel() { takeOut()?.task.resume(throwing: CancellationError()) }

    private func takeOut() -> Wait? {
        state.withLock { state in
            defer { state = .over }
            guard case .waiting(let wait) = state else { return nil }
            return wait
        }
    }
}
