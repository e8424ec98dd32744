// The threads that background tasks run on: few, the container's own, never Swift's cooperative
// ones.
//
// Invariants
// - At most `limit` bodies run at once; the others wait in order.
// - No body waits while fewer run: each has an idle thread of its own, or a new one.
// - A thread that found no work for a while ends, so an idle container has none.

import Foundation

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
    /// `@concurrent`, and the only place that makes a continuation: in a function that runs on its
    /// caller's actor the optimiser of Swift 6.3.1 leaves out the way back to that actor behind a
    /// continuation. Code on the main actor then went on elsewhere, in release builds only.
    @concurrent func run<Result: Sendable>(
        _ body: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            submit { continuation.resume(with: Swift.Result { try body() }) }
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
