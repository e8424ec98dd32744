// Commits on their way to the disk: savers that share one write and one sync.
//
// Invariants
// - A commit joins the queue under the writer lock, in the order of the chain.
// - One thread leads at a time: it takes all that waits, writes, syncs and publishes. Nobody else
//   writes commit frames or publishes meanwhile.
// - Each commit gets exactly one outcome, and its saver returns only after that.
// - Locks: the writer lock is taken before the queue's, never the other way round. A thread that
//   holds the writer lock never waits for the lead.

internal import Synchronization
internal import VarveBase
internal import VarveIO

/// One commit between its place in the log and its outcome.
final class QueuedCommit: Sendable {
    enum Outcome {
        case durable
        case failed(EngineError)
    }

    /// The opening that made it.
    let epoch: UInt64
    /// The state that its publishing makes the newest one.
    let state: StoreState
    /// What it changed; nil for a checkpoint, which changes nothing.
    let changes: CommitChanges?
    /// Its pages, for the cache; nil for a DELTA.
    let pages: PageWriter?
    let durability: Durability
    /// The end of its frame.
    let end: FileOffset
    let outcome = Mutex<Outcome?>(nil)
    /// Set by a saver that waits for another's lead.
    let waiter = Mutex<Parker?>(nil)

    init(
        epoch: UInt64,
        state: StoreState,
        changes: CommitChanges?,
        pages: PageWriter?,
        durability: Durability,
        end: FileOffset
    ) {
        self.epoch = epoch
        self.state = state
        self.changes = changes
        self.pages = pages
        self.durability = durability
        self.end = end
    }
}

/// Who waits, and who leads.
final class CommitQueue: Sendable {
    private struct State {
        var waiting: [QueuedCommit] = []
        var isLed = false
        /// The thread that took the lead last.
        var leader: UInt = 0
        /// Threads that want the lead for themselves, oldest first; they go before savers.
        var claims: [Parker] = []
        /// Whether the leader has the turn to give up before it ends the lead.
        var owesTurn = false
    }
    private let state = Guarded(State())

    /// Commits that wait for a leader.
    var count: Int { state.withLock { $0.waiting.count } }
    var isEmpty: Bool { count == 0 }

    /// Called under the writer lock.
    func add(_ commit: QueuedCommit) { state.withLock { $0.waiting.append(commit) } }

    /// Everything that waits; called by the leader under the writer lock.
    func takeAll() -> [QueuedCommit] {
        state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    /// Waits until `commit` has an outcome (nil), or takes the lead (true is returned).
    func waitOrLead(for commit: QueuedCommit) -> Bool {
        while true {
            let parker: Parker? = state.withLock { state in
                if commit.outcome.withLock({ $0 != nil }) { return nil }
                if !state.isLed {
                    state.isLed = true
                    state.leader = BackgroundThread.currentID
                    return nil
                }
                let parker = Parker()
                commit.waiter.withLock { $0 = parker }
                return parker
            }
            guard let parker else { return commit.outcome.withLock { $0 == nil } }
            parker.park()
        }
    }

    /// Takes the lead, waiting for whoever has it.
    func claimLead() {
        let parker: Parker? = state.withLock { state in
            if !state.isLed {
                state.isLed = true
                state.leader = BackgroundThread.currentID
                return nil
            }
            let parker = Parker()
            state.claims.append(parker)
            return parker
        }
        // Whoever gives up the lead hands it over to the oldest claim.
        guard let parker else { return }
        parker.park()
        state.withLock { $0.leader = BackgroundThread.currentID }
    }

    /// Whether the calling thread has the lead: it must not wait for it.
    var isLedByThisThread: Bool {
        state.withLock { $0.isLed && $0.leader == BackgroundThread.currentID }
    }

    /// Whether another thread leads, which has to give the turn up when it is done.
    func leavesTurnToLeader() -> Bool {
        state.withLock { state in
            guard state.isLed, state.leader != BackgroundThread.currentID else { return false }
            state.owesTurn = true
            return true
        }
    }

    /// Ends the lead, gives `done` their outcomes, and wakes who waits: the next leader first.
    ///
    /// - Returns: false when the turn has to be given up first. Nothing has changed then.
    func endLead(_ done: [(QueuedCommit, QueuedCommit.Outcome)]) -> Bool {
        let (next, hasEnded): (Parker?, Bool) = state.withLock { state in
            if state.owesTurn {
                state.owesTurn = false
                return (nil, false)
            }
            for (commit, outcome) in done { commit.outcome.withLock { $0 = outcome } }
            if !state.claims.isEmpty { return (state.claims.removeFirst(), true) }
            state.isLed = false
            for commit in state.waiting {
                if let parker = commit.waiter.withLock({ $0 }) { return (parker, true) }
            }
            return (nil, true)
        }
        guard hasEnded else { return false }
        next?.unpark()
        for (commit, _) in done { commit.waiter.withLock({ $0 })?.unpark() }
        return true
    }
}
