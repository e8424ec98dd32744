// How a loop over changes or commits waits: without a thread, and without missing what comes while
// it looks.
//
// Invariants
// - A task that waits goes on when the signal was woken after the moment that it names.
// - Waiting is `@concurrent`: see ContinuationTests.

import Synchronization

/// Wakes the tasks that wait for it: one, unless copies of an iterator are used at once.
final class LiveSignal: Sendable {
    private struct State {
        var heard = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }
    private let state = Mutex(State())

    /// How often it was woken.
    var heard: Int { state.withLock { $0.heard } }

    func wake() {
        let waiting = state.withLock { state in
            state.heard += 1
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Returns once it was woken more often than `heard`, or the task is cancelled.
    @concurrent func wait(after heard: Int) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isWoken = state.withLock { state in
                    if state.heard > heard { return true }
                    state.waiting.append(continuation)
                    return false
                }
                if isWoken { continuation.resume() }
            }
        } onCancel: {
            wake()
        }
    }
}

/// The signals of a container's loops: woken by each commit, and when it is closed.
final class LiveSignals: Sendable {
    private let all = Mutex<[ObjectIdentifier: LiveSignal]>([:])

    func add(_ signal: LiveSignal) { all.withLock { $0[ObjectIdentifier(signal)] = signal } }
    func remove(_ signal: LiveSignal) { all.withLock { $0[ObjectIdentifier(signal)] = nil } }
    func wake() { for signal in all.withLock({ Array($0.values) }) { signal.wake() } }
}
