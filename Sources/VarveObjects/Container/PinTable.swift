// Which commits the contexts of a container hold, and the changes that they have not seen yet.
//
// Invariants
// - The feed keeps every commit behind the oldest one that a context holds, unless that grows too
//   long; it knows what it dropped, and then answers nil, which means "check every object".

import Synchronization
import VarveBase
import VarveEngine

#if VARVE_THREAD_SANITIZER
/// In the whole module: the thread sanitizer sees nothing of the other one.
typealias Mutex = TracedMutex
#endif

/// The commits that contexts read.
final class PinTable: Sendable {
    private struct State {
        var next = 1
        var commits: [Int: CommitNumber] = [:]
    }
    private let state = Mutex(State())

    func makeToken() -> Int {
        state.withLock { state in
            defer { state.next += 1 }
            return state.next
        }
    }

    func set(_ token: Int, _ commit: CommitNumber?) {
        state.withLock { state in state.commits[token] = commit }
    }

    var oldest: CommitNumber? { state.withLock { $0.commits.values.min() } }
}

/// Objects of an entity that a commit changed, or deleted.
struct ObjectChanges: Sendable {
    var entity: EntityID
    var objects: ObjectIDSet
    var isDeletion: Bool
}

/// The changes of recent commits.
final class CommitFeed: Sendable {
    private struct State {
        var commits: [(number: CommitNumber, changes: [ObjectChanges], runs: Int)] = []
        /// Runs of consecutive objects in all of them: what they cost.
        var total = 0
        /// Commits up to this one are not in the list.
        var droppedThrough: CommitNumber
        var newest: CommitNumber
    }
    private let state: Mutex<State>
    private let changesMax: Int

    init(newest: CommitNumber, changesMax: Int) {
        state = Mutex(State(droppedThrough: newest, newest: newest))
        self.changesMax = changesMax
    }

    /// Adds a commit; drops those that every context has seen.
    func append(_ number: CommitNumber, _ changes: [ObjectChanges], seenByAll: CommitNumber?) {
        state.withLock { state in
            guard number > state.newest else { return }
            state.newest = number
            let runs = changes.reduce(0) { $0 + $1.objects.runs.count }
            state.commits.append((number, changes, runs))
            state.total += runs
            let limit = seenByAll ?? number
            while let first = state.commits.first,
                first.number <= limit || state.total > changesMax
            {
                state.commits.removeFirst()
                state.total -= first.runs
                state.droppedThrough = first.number
            }
        }
    }

    /// What changed up to a commit is not known: whoever is behind it looks at every object.
    func forget(through number: CommitNumber) {
        state.withLock { state in
            state.newest = max(state.newest, number)
            state.droppedThrough = state.newest
            state.commits = []
            state.total = 0
        }
    }

    /// The newest commit that the feed has heard of.
    var newest: CommitNumber { state.withLock { $0.newest } }

    /// What the commits behind `after` and up to `through` changed, in their order. Nil: not known
    /// any more, or not yet.
    func changes(after: CommitNumber, through: CommitNumber) -> [ObjectChanges]? {
        state.withLock { state in
            guard after >= state.droppedThrough, through <= state.newest else { return nil }
            return state.commits.filter { $0.number > after && $0.number <= through }
                .flatMap(\.changes)
        }
    }
}
