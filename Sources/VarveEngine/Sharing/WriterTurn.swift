// Whose turn it is to write: one process at a time, by a lock that ends with its holder.
//
// Invariants
// - A process that writes to the store file, if only zeros, holds the writer's byte.
// - A process takes the byte `next` first, then the writer's byte, and then gives `next` back. So a
//   process that gives its turn up cannot have it back before those that waited for it.
// - `isHeld` says whether this process has the writer's byte; it changes together with it.
// - The threads of a process wait for one lock call, made by a thread of its own, so that each of
//   them can give up waiting. A turn that comes when nobody waits any more is given back.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

/// Who else has the store open.
enum Company: Comparable {
    /// No process that this one knows of.
    case alone
    /// Processes that read.
    case readers
    /// Processes that may write.
    case writers
    /// A process that waits to write.
    case waiting
}

final class WriterTurn: Sendable {
    private struct State {
        var isHeld = false
        /// Whether the lock call is under way.
        var isAsking = false
        var isClosed = false
        /// Nobody gets the turn, and no lock is asked for.
        var isSuspended = false
        var hasThread = false
        var waiters: [Parker] = []
        var failure: IOError?
    }
    let page: SharedPage
    private let locks: any LockBytes
    private let state = Mutex(State())
    private let work = Parker()
    /// Whether the engine stands on what the turn gave it: readers need not look at the page.
    private let writing = Atomic<Bool>(false)
    /// Whether somebody who waits can make himself heard, so that a turn may be kept when idle.
    private let hears = Atomic<Bool>(false)

    /// The turns of a store; nil where the system cannot lock bytes.
    init?(_ page: SharedPage) {
        guard let locks = page.locks else { return nil }
        self.locks = locks
        self.page = page
    }

    var isWriting: Bool {
        get { writing.load(ordering: .acquiring) }
        set { writing.store(newValue, ordering: .releasing) }
    }
    var isHeard: Bool { hears.load(ordering: .relaxed) }

    /// Whoever knocks is heard from now on, unless the turn was suspended meanwhile: that ended the
    /// watch.
    func hear() {
        state.withLock { if !$0.isSuspended { hears.store(true, ordering: .relaxed) } }
    }

    var isSuspended: Bool { state.withLock { $0.isSuspended } }
    var isHeld: Bool { state.withLock { $0.isHeld } }

    /// Who else is there now.
    /// - Complexity: one system call when nobody is, at most three.
    func company() -> Company {
        guard locks.isLockedByOther(LockByte.reading..<LockByte.count) else { return .alone }
        if locks.isLockedByOther(LockByte.next..<LockByte.count) { return .waiting }
        return locks.isLockedByOther(LockByte.writing..<LockByte.next) ? .writers : .readers
    }

    /// Whether somebody waits for this process to give its turn up. Where nobody could make himself
    /// heard it is always assumed.
    var isWanted: Bool {
        !isHeard || locks.isLockedByOther(LockByte.next..<LockByte.count)
    }

    /// Whether no other process has joined. Called with the turn held.
    var isLastWriter: Bool { !locks.isLockedByOther(LockByte.writing..<LockByte.next) }

    /// Whether the lock file is still the one that others find.
    func isNamed() throws(IOError) -> Bool { try locks.isNamed() }

    /// Joins those who may write. Called with the turn held.
    func join() throws(IOError) {
        _ = try locks.tryLock(LockByte.writing, .shared)
        // It goes on following when it may write no more.
        _ = try locks.tryLock(LockByte.reading, .shared)
    }

    /// Leaves them: whoever comes next may be alone.
    func leave() { locks.unlock(LockByte.writing) }

    // MARK: Taking

    /// Waits for the turn, at most so long. Several threads may wait; when this returns, it was
    /// theirs together, and one of them may have given it up again.
    ///
    /// - Throws: `busy` when the time is over, `ioFailed`.
    func take(milliseconds: Int) throws(EngineError) {
        let parker = Parker()
        let (isDone, asks) = try state.withLock { state throws(EngineError) -> (Bool, Bool) in
            if state.isHeld { return (true, false) }
            if state.isSuspended { throw Suspension.error }
            state.waiters.append(parker)
            state.failure = nil
            defer { state.isAsking = true }
            return (false, !state.isAsking)
        }
        if isDone { return }
        if asks { ask() }
        let isWoken = parker.park(milliseconds: milliseconds)
        let (isHeld, failure) = state.withLock { state in
            state.waiters.removeAll { $0 === parker }
            return (state.isHeld, state.failure)
        }
        if isHeld { return }
        if let failure { throw .io(failure) }
        if isWoken { return }
        let holder = page.read().map { " (process \($0.process) had it last)" } ?? ""
        throw EngineError(
            .busy,
            "another process has been writing to the store for \(milliseconds) ms\(holder)"
        )
    }

    /// At once when nobody has it; else on the thread that may wait for ever.
    private func ask() {
        do throws(IOError) {
            if try locks.tryLock(LockByte.next, .exclusive) {
                if try locks.tryLock(LockByte.writer, .exclusive) {
                    locks.unlock(LockByte.next)
                    return arrive()
                }
                // Given back: the thread asks for it again, with whoever waits by then.
                locks.unlock(LockByte.next)
            }
        } catch {
            return fail(error)
        }
        let starts = state.withLock { state in
            defer { state.hasThread = true }
            return !state.hasThread
        }
        if !starts { return work.unpark() }
        let isStarted = BackgroundThread.start { [self] in
            repeat {
                askAndWait()
                work.park()
            } while !state.withLock({ $0.isClosed })
        }
        if !isStarted {
            state.withLock { $0.hasThread = false }
            fail(SystemCallsRefused.noThread)
        }
    }

    private func askAndWait() {
        do throws(IOError) {
            try locks.lock(LockByte.next, .exclusive)
            if try !locks.tryLock(LockByte.writer, .exclusive) {
                // Whoever keeps it without need looks up.
                page.wakeOthers()
                try locks.lock(LockByte.writer, .exclusive)
            }
            locks.unlock(LockByte.next)
            arrive()
        } catch {
            locks.unlock(LockByte.next)
            fail(error)
        }
    }

    private func arrive() {
        let waiters = state.withLock { state -> [Parker] in
            state.isAsking = false
            state.isHeld = !state.waiters.isEmpty && !state.isClosed
            if !state.isHeld { locks.unlock(LockByte.writer) }
            return state.waiters
        }
        for waiter in waiters { waiter.unpark() }
    }

    private func fail(_ error: IOError) {
        let waiters = state.withLock { state -> [Parker] in
            state.isAsking = false
            state.failure = error
            return state.waiters
        }
        for waiter in waiters { waiter.unpark() }
    }

    // MARK: Giving up

    /// Gives the turn up. Nothing may be written to the store file any more.
    func release() {
        isWriting = false
        state.withLock { state in
            guard state.isHeld else { return }
            state.isHeld = false
            locks.unlock(LockByte.writer)
        }
    }

    /// Gives everything up but the opening of the lock file. Until `resume` nobody gets the turn.
    /// Called with the turn held, or after it was given up for ever: no lock call is under way.
    func suspend() {
        state.withLock {
            $0.isSuspended = true
            hears.store(false, ordering: .relaxed)
        }
        leave()
        release()
    }

    func resume() { state.withLock { $0.isSuspended = false } }

    /// Gives up everything.
    func close() {
        leave()
        release()
        state.withLock { $0.isClosed = true }
        work.unpark()
        page.close()
    }
}

private enum SystemCallsRefused {
    static let noThread = IOError(
        kind: .other,
        code: 0,
        operation: "wait",
        name: "writer's lock",
        reason: "the system gives no thread"
    )
}
