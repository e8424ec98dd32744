// The threads of background tasks: each body that waits has a thread as long as there may be more.

import Foundation
import Synchronization
import Testing

@testable import VarveObjects

@Suite("Threads of background tasks", .verified) struct WorkerPoolTests {
    /// Runs a body and returns when its thread has nothing to do any more.
    private func leaveIdle(_ pool: WorkerPool, _ count: Int) {
        let begun = DispatchSemaphore(value: 0)
        let ends = DispatchSemaphore(value: 0)
        for _ in 0..<count {
            pool.submit {
                begun.signal()
                ends.wait()
            }
        }
        for _ in 0..<count { begun.wait() }
        for _ in 0..<count { ends.signal() }
        while pool.idleThreads < count { Thread.sleep(forTimeInterval: 0.0005) }
    }

    /// One idle thread was counted on for both: the second body began when the first gave up.
    @Test("A body that waits for the next one does not keep it from running")
    func twoBodiesAtOnce() {
        // The idle thread may be so quick that it is not idle any more for the second body.
        for round in 0..<50 {
            let pool = WorkerPool(limit: 2)
            leaveIdle(pool, 1)
            let isDone = DispatchSemaphore(value: 0)
            let second = DispatchSemaphore(value: 0)
            let hasRun = Mutex(false)
            pool.submit {
                let result = second.wait(timeout: .now() + 20)
                hasRun.withLock { $0 = result == .success }
                isDone.signal()
            }
            pool.submit { second.signal() }
            isDone.wait()
            guard hasRun.withLock({ $0 }) else {
                Issue.record("the second body did not run, round \(round)")
                return
            }
        }
    }

    @Test("As many bodies run at once as may, whatever is idle", arguments: [0, 1, 2, 3, 5])
    func asManyAsMay(idle: Int) {
        let limit = 5
        let pool = WorkerPool(limit: limit)
        leaveIdle(pool, idle)
        let inside = DispatchSemaphore(value: 0)
        let ends = DispatchSemaphore(value: 0)
        let now = Atomic<Int>(0)
        let most = Atomic<Int>(0)
        let count = 3 * limit
        for _ in 0..<count {
            pool.submit {
                most.max(now.add(1, ordering: .relaxed).newValue, ordering: .relaxed)
                inside.signal()
                ends.wait()
                now.subtract(1, ordering: .relaxed)
            }
        }
        for _ in 0..<limit { #expect(inside.wait(timeout: .now() + 60) == .success) }
        #expect(most.load(ordering: .relaxed) == limit)
        for _ in 0..<count { ends.signal() }
        for _ in limit..<count { #expect(inside.wait(timeout: .now() + 60) == .success) }
        #expect(most.load(ordering: .relaxed) == limit)
    }
}
