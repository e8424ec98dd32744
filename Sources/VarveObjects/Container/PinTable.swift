// Which commits the contexts of a container hold, and the changes that they have not seen yet.
//
// Invariants
// - The feed keeps every commit after the oldest one that a context holds, unless that grows too
//   long; it knows what it dropped, and then answers nil, which means "check every object".
// - Of what several commits changed in the same way it may keep the last one only: so a context
//   that lags costs what is different, not the commits behind which it lags.
// - Adding a commit costs its own changes, amortised, however many are kept.

import Synchronization
import VarveBase
import VarveEngine
import VarveRecords

#if VARVE_THREAD_SANITIZER
/// In the whole module: the thread sanitizer sees nothing of the other one.
typealias Mutex = TracedMutex
#endif

/// What one holder has of a `PinTable`: a commit, or none.
struct HeldCommit {
    fileprivate(set) var commit: CommitNumber?
}

/// The commits that contexts read.
final class PinTable: Sendable {
    private struct State {
        /// The commits that are held, ascending, each once with how many hold it.
        var held: [(commit: CommitNumber, count: Int)] = []

        /// Where a commit stands or would stand. What moves on goes to the end: looked at first.
        func place(_ commit: CommitNumber) -> Int {
            guard let last = held.last, last.commit >= commit else { return held.count }
            return held.firstPlace { $0.commit >= commit }
        }

        mutating func hold(_ commit: CommitNumber) {
            let place = place(commit)
            if place < held.count, held[place].commit == commit {
                held[place].count += 1
            } else {
                held.insert((commit, 1), at: place)
            }
        }

        mutating func letGo(_ commit: CommitNumber) {
            let place = place(commit)
            held[place].count -= 1
            if held[place].count == 0 { held.remove(at: place) }
        }
    }
    private let state = Mutex(State())

    /// Makes the commit of a holder another one, or none: at the latest in the holder's end.
    func set(_ held: inout HeldCommit, _ commit: CommitNumber?) {
        let before = held.commit
        if before == commit { return }
        held.commit = commit
        state.withLock { state in
            if let before { state.letGo(before) }
            if let commit { state.hold(commit) }
        }
    }

    /// - Complexity: O(1).
    var oldest: CommitNumber? { state.withLock { $0.held.first?.commit } }
}

/// Objects of an entity that a commit changed, or deleted.
struct ObjectChanges: Sendable {
    var entity: EntityID
    var objects: ObjectIDSet
    var isDeletion: Bool
}

extension CommitChanges {
    var objectChanges: [ObjectChanges] {
        var changes: [ObjectChanges] = []
        forEachGroup { entity, objects, change in
            let isDeletion = change == .deleted
            changes.append(ObjectChanges(entity: entity, objects: objects, isDeletion: isDeletion))
        }
        return changes
    }
}

/// The changes of recent commits.
final class CommitFeed: Sendable {
    fileprivate struct Entry {
        let number: CommitNumber
        var changes: [ObjectChanges]
        /// Runs of consecutive objects in it: what it costs.
        var runs: Int
    }

    private struct State {
        /// Ascending; those before `first` are dropped.
        var entries: [Entry] = []
        var first = 0
        /// Runs of all entries.
        var total = 0
        /// Runs from which on it is worth looking for what later commits changed again.
        var foldFrom = CommitFeed.foldMin
        /// Entries up to this one lack what others up to it changed again.
        var foldedThrough: CommitNumber
        /// Commits up to this one are not in the list.
        var droppedThrough: CommitNumber
        var newest: CommitNumber
        /// Entries that were looked at: what all this cost so far.
        var steps = 0

        init(_ newest: CommitNumber) {
            (foldedThrough, droppedThrough, self.newest) = (newest, newest, newest)
        }

        mutating func dropFirst() {
            steps += 1
            total -= entries[first].runs
            droppedThrough = entries[first].number
            entries[first].changes = []
            first += 1
            if first > 64, first > entries.count / 2 {
                entries.removeFirst(first)
                first = 0
            }
        }

        /// Takes out what a later commit says, too.
        mutating func fold() {
            var seen: Set<FoldKey> = []
            var kept: [Entry] = []
            total = 0
            for index in (first..<entries.count).reversed() {
                steps += 1
                var entry = entries[index]
                entry.fold(&seen)
                if entry.runs > 0 { kept.append(entry) }
                total += entry.runs
            }
            entries = kept.reversed()
            first = 0
            foldedThrough = newest
            setFoldFrom()
        }

        mutating func setFoldFrom() { foldFrom = max(CommitFeed.foldMin, 2 * total) }
    }

    /// A run of an entity. That one deletes it and another one changes it makes no difference: the
    /// last word counts.
    fileprivate struct FoldKey: Hashable {
        let entity: EntityID
        let run: ObjectIDSet.Run
    }

    private static let foldMin = 1024
    /// Entries that one commit drops because all have seen them: many are dropped by many.
    private static let dropsMax = 64

    private let state: Mutex<State>
    private let changesMax: Int

    init(newest: CommitNumber, changesMax: Int) {
        state = Mutex(State(newest))
        self.changesMax = changesMax
    }

    /// Adds a commit; drops some of those that every context has seen.
    /// - Complexity: O(runs of its changes), amortised.
    func append(_ number: CommitNumber, _ changes: [ObjectChanges], seenByAll: CommitNumber?) {
        state.withLock { state in
            guard number > state.newest else { return }
            state.newest = number
            let runs = changes.reduce(0) { $0 + $1.objects.runs.count }
            if runs > 0 {
                state.entries.append(Entry(number: number, changes: changes, runs: runs))
                state.total += runs
            }
            let limit = seenByAll ?? number
            var drops = 0
            while state.first < state.entries.count, drops < Self.dropsMax,
                state.entries[state.first].number <= limit
            {
                state.dropFirst()
                drops += 1
            }
            if state.total < state.foldFrom / 4 { state.setFoldFrom() }
            if state.total > state.foldFrom { state.fold() }
            while state.first < state.entries.count, state.total > changesMax { state.dropFirst() }
        }
    }

    /// What changed up to a commit is not known: whoever is behind it looks at every object.
    func forget(through number: CommitNumber) {
        state.withLock { state in
            let steps = state.steps
            state = State(max(state.newest, number))
            state.steps = steps
        }
    }

    /// The newest commit that the feed has heard of.
    var newest: CommitNumber { state.withLock { $0.newest } }
    /// Entries that were looked at so far.
    var steps: Int { state.withLock { $0.steps } }

    /// What the commits after `after` and up to `through` changed, in their order; what several
    /// changed may stand with the last of them only. Nil: not known any more, or not yet.
    /// - Complexity: O(log n) and what it returns.
    func changes(after: CommitNumber, through: CommitNumber) -> [ObjectChanges]? {
        state.withLock { state in
            guard after >= state.droppedThrough, through <= state.newest else { return nil }
            if after >= through { return [] }
            // The last word about an object may stand after `through`.
            guard through >= state.foldedThrough else { return nil }
            let known = state.entries[state.first...]
            let from = known.firstPlace { $0.number > after }
            let to = known.firstPlace { $0.number > through }
            state.steps += to - from
            return state.entries[from..<to].flatMap(\.changes)
        }
    }
}

extension CommitFeed.Entry {
    fileprivate mutating func fold(_ seen: inout Set<CommitFeed.FoldKey>) {
        var left = 0
        for index in changes.indices.reversed() {
            var objects = ObjectIDSet()
            for run in changes[index].objects.runs
            where seen.insert(CommitFeed.FoldKey(entity: changes[index].entity, run: run)).inserted
            {
                objects.append(run.first, through: run.last)
            }
            left += objects.runs.count
            changes[index].objects = objects
        }
        guard left < runs else { return }
        runs = left
        changes.removeAll { $0.objects.isEmpty }
    }
}
