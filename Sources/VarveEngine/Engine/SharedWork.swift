// Work that several threads do together, and work that others do meanwhile.
//
// Invariants
// - Outputs come in the order of their inputs, however many threads there are.
// - Nobody waits for a thread that has not begun: the one that wants the outputs does what is left.
// - A thread that ends holds nothing of the caller's.
//
// In this module and not below it: specialized for its callers. Unspecialized, each piece asked the
// runtime for its generic types, which was 3 % of a compaction.

internal import Synchronization
internal import VarveBase
internal import VarveIO

/// Work that several threads share: each takes the next few inputs until none is left.
///
/// The thread that wants the outputs works as well, and waits only for inputs that another one has
/// taken: a thread that gets no processor costs nothing but its start. When it comes at last it
/// finds neither work nor anything of the caller's.
final class SharedWork<Input: Sendable, Output: Sendable>: Sendable {
    private struct Job: Sendable {
        let inputs: [Input]
        let transform: @Sendable (Input) -> Output
    }
    private struct Part: Sendable {
        let start: Int
        let outputs: [Output]
    }
    private struct State {
        var job: Job?
        var next = 0
        var parts: [Part] = []
        var done = 0
        var isTaken = false
        var isGivenUp = false
    }

    private let count: Int
    private let together: Int
    private let state: Mutex<State>
    private let isFinished = Atomic<Bool>(false)
    private let finished = Parker()
    /// Looks at `isFinished` before the caller sleeps: some 20 microseconds, which is what sleeping
    /// and waking cost. The last input of another thread is often done in less.
    private static var looksMax: Int { 20_000 }

    /// At least one input.
    init(
        _ inputs: [Input],
        _ together: Int,
        _ transform: @escaping @Sendable (Input) -> Output
    ) {
        count = inputs.count
        self.together = together
        state = Mutex(State(job: Job(inputs: inputs, transform: transform)))
    }

    func work() {
        while let part = nextPart() {
            let isLast = state.withLock { state in
                if !state.isGivenUp { state.parts.append(part) }
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
    @inline(never)
    private func nextPart() -> Part? {
        let claim: (job: Job, range: Range<Int>)? = state.withLock { state in
            guard let job = state.job, state.next < count else { return nil }
            let start = state.next
            state.next = min(start + together, count)
            return (job, start..<state.next)
        }
        guard let claim else { return nil }
        return Part(
            start: claim.range.lowerBound,
            outputs: claim.job.inputs[claim.range].map(claim.job.transform)
        )
    }

    /// Nobody wants the outputs: threads end with what they have begun.
    func giveUp() {
        // Let go outside the lock: a thread that has not begun holds this, and nothing else.
        let gone = state.withLock { state in
            state.isGivenUp = true
            defer { (state.job, state.parts) = (nil, []) }
            return (state.job, state.parts)
        }
        withExtendedLifetime(gone) {}
    }

    /// Whether the caller is the first who wants the outputs.
    func claimResult() -> Bool {
        state.withLock { state in
            defer { state.isTaken = true }
            return !state.isTaken
        }
    }

    /// All outputs, in the order of their inputs. Called once.
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

/// Work that others do while its owner does something else. To drop it is to give it up.
final class WorkUnderWay<Input: Sendable, Output: Sendable>: Sendable {
    private let work: SharedWork<Input, Output>

    init(_ work: SharedWork<Input, Output>) { self.work = work }

    deinit { work.giveUp() }

    /// Does what nobody has begun, and waits for the rest.
    /// - Returns: the outputs, in the order of their inputs; nil when they were taken before.
    func take() -> [Output]? {
        guard work.claimResult() else { return nil }
        work.work()
        return withExtendedLifetime(self) { work.result() }
    }
}

/// Calls a function when everybody has left.
private final class LastOneOut: Sendable {
    private let inside = Atomic<Int>(1)
    private let call: @Sendable () -> Void

    init(_ call: @escaping @Sendable () -> Void) { self.call = call }

    func enter() { inside.add(1, ordering: .relaxed) }

    func leave() {
        if inside.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { call() }
    }
}

extension BackgroundThread {
    /// Threads of all calls of `map` and `begin` that have not ended. On a machine with more to do
    /// they may not have begun when their work is done.
    private static let helpers = Atomic<Int>(0)
    private static let helpersMax = 4 * processors

    /// Transforms each input, on this thread and others; outputs in the order of their inputs. With
    /// fewer threads when the system gives none, or no processor for them.
    /// - Parameter together: inputs that a thread takes at once.
    /// - Complexity: O(inputs); a new thread costs some 20 microseconds.
    static func map<Input: Sendable, Output: Sendable>(
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
    ///   - threads: how many, at most; with none, the caller of `take` does all of it.
    ///   - together: inputs that a thread takes at once.
    ///   - atEnd: called when none of the threads does anything more, by the last of them.
    /// - Complexity: a new thread costs some 20 microseconds.
    static func begin<Input: Sendable, Output: Sendable>(
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
    private static func startHelper(_ body: @escaping @Sendable () -> Void) -> Bool {
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
}
