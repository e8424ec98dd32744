// Tasks that wait for the writer without a thread: their actor goes on with other work meanwhile.
//
// Invariants
// - At most one reservation is granted. Whoever else wants to write waits for it, at most
//   `graceMilliseconds`: a task that cannot run (its actor waits for this very writer) must not
//   hold up anybody for good. A grant that was not used by then is taken back, and its task waits
//   again, in front of all others.
// - A task waits only while a body runs or its commit goes into the log, or while another
//   reservation is granted. Both end in `passOn`, and the first with the writer's lock free: who is
//   granted the writer takes that lock at once, on an actor that must not wait.
// - `count` is the number of tasks that wait or are granted. A writer stores that it is done before
//   it looks at `count`; a task counts itself before it looks for a body. So one of the two sees
//   the other.

internal import Synchronization
internal import VarveIO

/// Where tasks wait until nobody writes.
final class WriterGate: Sendable {
    /// How long a granted task may take until it begins, in milliseconds: more than a screen's
    /// frame, less than anybody notices.
    static let graceMilliseconds = 20

    private struct State {
        var waiting: [WriterReservation] = []
        var granted: WriterReservation?
        /// The thread that uses the grant; 0 before it does.
        var thread: UInt = 0
        var parked: [Parker] = []
    }
    private let state = Mutex(State())
    private let count = Atomic<Int>(0)

    /// Whether a task waits or is granted.
    var isInUse: Bool { count.load(ordering: .sequentiallyConsistent) > 0 }

    /// Waits for the grant, with `continuation`; `isFree` says whether no body runs.
    func enter(_ reservation: WriterReservation, isFree: () -> Bool) {
        state.withLock { $0.waiting.append(reservation) }
        count.add(1, ordering: .sequentiallyConsistent)
        if isFree() { passOn() }
    }

    /// Grants the next one, if nobody has the grant. Called when no body runs.
    func passOn() {
        let next = state.withLock { state -> WriterReservation? in
            guard state.granted == nil, !state.waiting.isEmpty else { return nil }
            state.granted = state.waiting.removeFirst()
            state.thread = 0
            return state.granted
        }
        next?.resume()
    }

    /// A writer's thread lets whoever has the grant go first.
    func letPass() {
        let parker = Parker()
        let waits = state.withLock { state in
            guard state.granted != nil, state.thread != BackgroundThread.currentID else {
                return false
            }
            state.parked.append(parker)
            return true
        }
        guard waits, !parker.park(milliseconds: Self.graceMilliseconds) else { return }
        state.withLock { state in
            state.parked.removeAll { $0 === parker }
            guard let late = state.granted, state.thread == 0 else { return }
            state.granted = nil
            state.waiting.insert(late, at: 0)
            late.isToWaitAgain()
        }
    }

    /// Uses the grant on this thread, until `leave`; false: it was taken back.
    func begin(_ reservation: WriterReservation) -> Bool {
        state.withLock { state in
            guard state.granted === reservation else { return false }
            state.thread = BackgroundThread.currentID
            return true
        }
    }

    /// The grant, or the wait for it, is over.
    func leave(_ reservation: WriterReservation) {
        let parked = state.withLock { state -> [Parker] in
            count.subtract(1, ordering: .sequentiallyConsistent)
            state.waiting.removeAll { $0 === reservation }
            guard state.granted === reservation else { return [] }
            state.granted = nil
            state.thread = 0
            defer { state.parked = [] }
            return state.parked
        }
        for parker in parked { parker.unpark() }
    }
}

/// One task's place in the line for the writer. See `Engine.reserveWriter`.
public final class WriterReservation: Sendable {
    private enum Step {
        case waiting
        case resumed
        case parked(CheckedContinuation<Void, Never>)
    }
    private let step = Mutex(Step.waiting)
    private let engine: Engine
    private let hasLeft = Atomic<Bool>(false)

    init(_ engine: Engine) { self.engine = engine }

    /// Returns when the writer was granted to this reservation, or when its task was cancelled.
    @concurrent func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = step.withLock { step in
                    if case .resumed = step { return true }
                    step = .parked(continuation)
                    return false
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            resume()
        }
    }

    func resume() {
        let continuation = step.withLock { step -> CheckedContinuation<Void, Never>? in
            defer { step = .resumed }
            if case .parked(let continuation) = step { return continuation }
            return nil
        }
        continuation?.resume()
    }

    /// The grant was taken back before it was used.
    func isToWaitAgain() {
        step.withLock { if case .resumed = $0 { $0 = .waiting } }
    }

    /// Uses the grant on the calling thread. False: it was taken back meanwhile, wait again.
    public func begin() -> Bool { engine.gate.begin(self) }

    /// Gives the place up, used or not. The first call counts.
    public func end() {
        guard !hasLeft.exchange(true, ordering: .relaxed) else { return }
        engine.gate.leave(self)
        engine.passOnWriter()
    }

    deinit { end() }
}

extension Engine {
    /// Joins the line for the writer, as a task: no thread waits. When `granted` has returned, no
    /// body of a write of this process runs, and none begins before `begin` and `end` of the
    /// reservation were called, at most for some milliseconds.
    public func reserveWriter() -> WriterReservation {
        let reservation = WriterReservation(self)
        gate.enter(reservation) { isBetweenBodies }
        return reservation
    }

    /// Waits until `reservation` is granted, and this process may write.
    ///
    /// - Throws: `CancellationError`; `EngineError` with `busy`, when another process writes for
    ///   too long, and what else `write` throws before its body.
    @concurrent public func granted(_ reservation: WriterReservation) async throws {
        await reservation.wait()
        try Task.checkCancellation()
        guard case .sharingWriter(_, let turn, _) = role, !turn.isHeld else { return }
        // Another process may keep its turn for long: a thread of its own waits for that.
        try await withCheckedThrowingContinuation { continuation in
            let isStarted = BackgroundThread.start { [self] in
                do throws(EngineError) {
                    try takeTurn()
                    continuation.resume()
                } catch {
                    continuation.resume(throwing: error)
                }
            }
            // Without a thread the save itself waits for the turn.
            if !isStarted { continuation.resume() }
        }
        try Task.checkCancellation()
    }

    /// Grants the writer to the next task in the line, when nobody runs a body.
    func passOnWriter() {
        if gate.isInUse, isBetweenBodies { gate.passOn() }
    }
}
