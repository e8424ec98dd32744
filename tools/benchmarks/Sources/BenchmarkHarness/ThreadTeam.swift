// Threads that begin together.
//
// Invariant: results are written under one lock and read after every thread has ended.

import Foundation

/// Threads that make ready one by one, begin together, and are waited for.
public final class ThreadTeam: Sendable {
    private let count: Int

    /// A team of so many threads.
    public init(count: Int) { self.count = count }

    /// Runs work on every thread of the team.
    ///
    /// - Parameter prepare: called on each thread with its number; what it returns is the timed
    ///   work.
    /// - Returns: seconds from the common beginning to the end of the last one.
    public func run(_ prepare: @escaping @Sendable (Int) throws -> () throws -> Void) throws
        -> Double
    {
        let state = State(count: count)
        for index in 0..<count {
            let thread = Thread {
                do {
                    let work: () throws -> Void
                    do {
                        work = try prepare(index)
                    } catch {
                        state.arrive()
                        throw error
                    }
                    state.arrive()
                    state.waitForStart()
                    try work()
                } catch {
                    state.fail(error)
                }
                state.leave()
            }
            thread.stackSize = 1 << 20
            thread.start()
        }
        let start = state.start()
        let end = state.waitForEnd()
        if let error = state.failure { throw error }
        return Double(end &- start) / 1e9
    }

    /// Counts arrivals and departures.
    private final class State: @unchecked Sendable {
        private let condition = NSCondition()
        private var waiting: Int
        private var running: Int
        private var hasBegun = false
        private var end: UInt64 = 0
        private(set) var failure: (any Error)?

        init(count: Int) {
            waiting = count
            running = count
        }

        func arrive() { change { waiting -= 1 } }

        func waitForStart() {
            condition.lock()
            while !hasBegun { condition.wait() }
            condition.unlock()
        }

        func start() -> UInt64 {
            condition.lock()
            while waiting > 0 { condition.wait() }
            hasBegun = true
            let now = monotonicNanoseconds()
            condition.broadcast()
            condition.unlock()
            return now
        }

        func fail(_ error: any Error) { change { failure = failure ?? error } }

        func leave() {
            let now = monotonicNanoseconds()
            change {
                running -= 1
                end = max(end, now)
            }
        }

        func waitForEnd() -> UInt64 {
            condition.lock()
            defer { condition.unlock() }
            while running > 0 { condition.wait() }
            return end
        }

        private func change(_ body: () -> Void) {
            condition.lock()
            body()
            condition.broadcast()
            condition.unlock()
        }
    }
}
