// How a state of the past is made: the checkpoint before it, then the row changes up to it.
//
// Invariants
// - A state that is kept never changes: whoever goes on from it has a stamp of his own, and copies
//   each node that he changes.
// - Kept states belong to the file that is the store, or go at the next question; together they
//   keep at most `bytesMax` bytes of nodes. Others are known as long as somebody reads them.
// - Keeping is a matter of time only: with or without it every commit is shown the same.

internal import Synchronization
internal import VarveBase
internal import VarveFormat

/// States of the past that were made not long ago, or that somebody reads: a neighbour costs what
/// lies between.
final class PastStates: Sendable {
    private struct Reader {
        weak var snapshot: Snapshot?
    }
    private struct Known {
        /// Kept, the one that was used last at the end.
        var states: [StoreState] = []
        /// What somebody reads costs no memory of its own, however large it is.
        var readers: [Reader] = []
    }

    /// Bytes of nodes that the kept states may hold.
    static let bytesMax: UInt64 = 16 << 20
    private static let statesMax = 32

    private let known = Mutex(Known())
    /// Above those of transactions and of followers.
    private let stamp = Atomic<UInt64>(1 << 63)

    /// For one replay: no node has it yet.
    func takeStamp() -> UInt64 { stamp.add(1, ordering: .relaxed).newValue }

    /// The newest known state of a stretch that is not behind a frame.
    func nearest(
        _ base: FileOffset,
        upTo frame: FileOffset,
        in generation: Generation
    ) -> StoreState? {
        // Let go after the lock: the end of a snapshot takes another one.
        var living: [Snapshot] = []
        defer { withExtendedLifetime(living) {} }
        return known.withLock { known in
            living = known.readers.compactMap(\.snapshot)
            known.states.removeAll { $0.generation !== generation }
            func fits(_ state: StoreState) -> Bool {
                state.generation === generation && state.baseFrame == base && state.frame <= frame
            }
            let best = known.states.indices.filter { fits(known.states[$0]) }
                .max { known.states[$0].frame < known.states[$1].frame }
            let read = living.map(\.state).filter(fits).max { $0.frame < $1.frame }
            guard let best else { return read }
            let state = known.states[best]
            if let read, read.frame > state.frame { return read }
            known.states.append(known.states.remove(at: best))
            return state
        }
    }

    /// Keeps states of one replay, oldest first, as far as there is room: the earlier ones hold
    /// less.
    func keep(_ made: [StoreState]) {
        guard let generation = made.last?.generation else { return }
        let before = known.withLock { $0.states }
        var kept: [StoreState] = []
        var nodes = ChangedNodes()
        for state in made + before.reversed() where state.generation === generation {
            guard kept.count < Self.statesMax else { break }
            if kept.contains(where: { $0.frame == state.frame }) { continue }
            nodes.add(state)
            if nodes.bytes > Self.bytesMax { break }
            kept.append(state)
        }
        known.withLock { $0.states = kept.reversed() }
    }

    /// Somebody reads a state of the past.
    func note(_ snapshot: Snapshot) {
        known.withLock { known in
            known.readers.removeAll { $0.snapshot == nil }
            known.readers.append(Reader(snapshot: snapshot))
        }
    }

    /// Lets go of all: their file is the store no longer, or memory is short.
    func removeAll() {
        let states = known.withLock { known in
            defer { known.states = [] }
            return known.states
        }
        withExtendedLifetime(states) {}
    }

    /// States that are kept.
    var count: Int { known.withLock { $0.states.count } }
}

extension Engine {
    /// Lets states of the past go that nobody reads: for memory pressure.
    public func forgetPastStates() { pastStates.removeAll() }

    /// The state after the newest commit of a stretch that is early enough, pinned.
    ///
    /// - Complexity: O(commits of the stretch that are not early + row changes since the checkpoint
    ///   or the nearest kept state).
    func past(
        _ newest: Snapshot,
        _ chain: CommitChain,
        _ found: (base: ScannedCommit, later: ScannedCommit),
        _ owner: PinOwner,
        _ isEarly: (CommitRecord) -> Bool
    ) throws(EngineError) -> Snapshot {
        let generation = newest.state.generation
        let base = found.base.offset
        var state: StoreState?
        // Down the file to the state or checkpoint that is nearest.
        var commits: [ScannedCommit] = []
        let window = try chain.windowed()
        var frame = found.later
        while frame.offset > base {
            if frame.carriesChanges, isEarly(frame.record) {
                if commits.isEmpty {
                    state = pastStates.nearest(base, upTo: frame.offset, in: generation)
                }
                if state?.frame == frame.offset { break }
                // Of a commit that a follower saw and that never came to be on disk.
                if let kept = state, kept.frame > frame.offset { state = nil }
                commits.append(frame)
            }
            guard let next = try window.before(frame) else { break }
            frame = next
        }
        commits.reverse()
        if let state, commits.isEmpty { return noted(state, owner) }
        // Up again.
        var made: [StoreState] = []
        var current: StoreState
        if let state {
            current = state
        } else {
            current = try replay(generation).state(of: found.base)
        }
        var start = 0
        while start < commits.count {
            let end = min(commits.count, start + max(1, options.pastStateCommits))
            current = try replay(generation).apply(commits[start..<end], to: current)
            made.append(current)
            start = end
        }
        if !made.isEmpty { pastStates.keep(made) }
        return noted(current, owner)
    }

    private func noted(_ state: StoreState, _ owner: PinOwner) -> Snapshot {
        let past = pinned(state, for: owner)
        pastStates.note(past)
        return past
    }

    private func replay(_ generation: Generation) -> Replay {
        Replay(
            generation: generation,
            delegate: delegate,
            options: options,
            counters: counters,
            stamp: pastStates.takeStamp()
        )
    }
}
