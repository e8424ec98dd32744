// A thread that does the same again and again, beside what is measured.
//
// Invariant: what the passes made is read after the thread has ended.

import Foundation

/// Repeats a piece of work on a thread of its own until it is told to stop.
final class BackgroundLoop: @unchecked Sendable {
    private let pass: (Int) throws -> Void
    private let condition = NSCondition()
    private var isStopping = false
    private var hasEnded = false
    private var failure: (any Error)?
    private var passesEnded = 0
    private var seconds = 0.0

    /// - Parameter pass: called with 0, 1, 2 … on the thread; the first error ends the loop.
    init(_ pass: @escaping (Int) throws -> Void) { self.pass = pass }

    /// How many passes have ended.
    var passes: Int { locked { passesEnded } }

    /// Whether the loop has ended by itself, which it does when a pass fails.
    var hasFailed: Bool { locked { failure != nil } }

    /// Begins with the first pass.
    func start() {
        let thread = Thread { [self] in
            let start = monotonicNanoseconds()
            var found: (any Error)?
            do {
                repeat {
                    try pass(passes)
                    locked { passesEnded += 1 }
                } while !locked({ isStopping })
            } catch {
                found = error
            }
            locked {
                failure = found
                seconds = Double(monotonicNanoseconds() &- start) / 1e9
                hasEnded = true
            }
        }
        thread.stackSize = 1 << 20
        thread.start()
    }

    /// Lets the pass end that is under way. At least one pass was made.
    ///
    /// - Returns: the passes and the seconds from the first one's beginning to the last one's end.
    func stop() throws -> (passes: Int, seconds: Double) {
        condition.lock()
        defer { condition.unlock() }
        isStopping = true
        while !hasEnded { condition.wait() }
        if let failure { throw failure }
        return (passesEnded, seconds)
    }

    private func locked<R>(_ body: () -> R) -> R {
        condition.lock()
        defer {
            condition.broadcast()
            condition.unlock()
        }
        return body()
    }
}
