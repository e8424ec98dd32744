// How a state of the past is made: the checkpoint before it, then the row changes up to it.
//
// Invariants
// - A state that is kept never changes: whoever goes on from it has a stamp of his own, and copies
//   each node that he changes.
// - Kept states belong to the file that is the store, or go at the next question; together they
//   keep at most `bytesMax` bytes of nodes.
// - Keeping is a matter of time only: with or without it every commit is shown the same.

internal import Synchronization
internal import VarveBase
internal import VarveFormat

/// States of the past that were made not long ago: a neighbour costs what lies between.
final class PastStates: Sendable {
    /// Bytes of nodes that the kept states may hold.
    static let bytesMax: UInt64 = 16 << 20
    private static let statesMax = 32

    /// The states, the one that was used last at the end.
    private let states = Mutex<[StoreState]>([])
    /// Above those of transactions and of followers.
    private let stamp = Atomic<UInt64>(1 << 63)

    /// For one replay: no node has it yet.
    func takeStamp() -> UInt64 { stamp.add(1, ordering: .relaxed).newValue }

    /// The newest kept state of a stretch that is not behind a frame.
    func nearest(
        _ base: FileOffset,
        upTo frame: FileOffset,
        in generation: Generation
    ) -> StoreState? {
        states.withLock { states in
            states.removeAll { $0.generation !== generation }
            let fitting = states.indices.filter {
                states[$0].baseFrame == base && states[$0].frame <= frame
            }
            guard let best = fitting.max(by: { states[$0].frame < states[$1].frame }) else {
                return nil
            }
            let state = states.remove(at: best)
            states.append(state)
            return state
        }
    }

    /// Keeps states, oldest first, as far as there is room.
    func keep(_ made: [StoreState]) {
        guard let generation = made.last?.generation else { return }
        let before = states.withLock { $0 }
        var kept: [StoreState] = []
        var nodes = ChangedNodes()
        for state in (before + made).reversed() where state.generation === generation {
            guard kept.count < Self.statesMax else { break }
            if kept.contains(where: { $0.frame == state.frame }) { continue }
            nodes.add(state)
            if nodes.bytes > Self.bytesMax { break }
            kept.append(state)
        }
        states.withLock { $0 = kept.reversed() }
    }

    /// Lets go of all: their file is the store no longer, or memory is short.
    func removeAll() {
        let all = states.withLock { states in
            defer { states = [] }
            return states
        }
        withExtendedLifetime(all) {}
    }

    /// States that are kept.
    var count: Int { states.withLock { $0.count } }
}

extension Engine {
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
        if let state, commits.isEmpty { return pinned(state, for: owner) }
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
        return pinned(current, for: owner)
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
