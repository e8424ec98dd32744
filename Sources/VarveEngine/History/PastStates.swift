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

/// Where a commit is.
struct PastPlace {
    let offset: FileOffset
    let number: CommitNumber
    let clockMicroseconds: Int64

    init(_ commit: ScannedCommit) {
        offset = commit.offset
        number = commit.number
        clockMicroseconds = commit.record.clockMicroseconds
    }
}

/// States of the past that were made not long ago, or that somebody reads: a neighbour costs what
/// lies between.
final class PastStates: Sendable {
    private struct Reader {
        weak var snapshot: Snapshot?
    }
    /// The commits behind one checkpoint, as far as somebody looked.
    private struct Stretch {
        let generation: Generation
        let base: FileOffset
        var places: [PastPlace]
    }
    private struct Known {
        var stretches: [Stretch] = []
        /// Kept, the one that was used last at the end.
        var states: [StoreState] = []
        /// What somebody reads costs no memory of its own, however large it is.
        var readers: [Reader] = []
    }

    /// Bytes of nodes that the kept states may hold.
    static let bytesMax: UInt64 = 16 << 20
    private static let statesMax = 32
    /// Places of commits that are kept, 24 bytes each.
    private static let placesMax = 1 << 17

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

    /// The places of commits behind a checkpoint that are known, oldest first.
    func places(_ base: FileOffset, in generation: Generation) -> [PastPlace] {
        known.withLock { known in
            known.stretches.first { $0.generation === generation && $0.base == base }?.places ?? []
        }
    }

    /// Keeps the places of a stretch; those of others go when they are many.
    func keep(_ places: [PastPlace], behind base: FileOffset, in generation: Generation) {
        known.withLock { known in
            known.stretches.removeAll { $0.generation !== generation || $0.base == base }
            known.stretches.append(
                Stretch(generation: generation, base: base, places: places)
            )
            var count = 0
            let first = known.stretches.lastIndex { stretch in
                count += stretch.places.count
                return count > Self.placesMax
            }
            if let first { known.stretches.removeFirst(first + 1) }
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
        let all = known.withLock { known in
            defer { (known.states, known.stretches) = ([], []) }
            return (known.states, known.stretches)
        }
        withExtendedLifetime(all) {}
    }

    /// States that are kept.
    var count: Int { known.withLock { $0.states.count } }
}

extension Engine {
    /// Lets states of the past go that nobody reads: for memory pressure.
    public func forgetPastStates() { pastStates.removeAll() }

    /// The state after the newest commit of a stretch that is early enough, pinned.
    ///
    /// - Complexity: O(commits of the stretch whose places are not known + row changes since the
    ///   checkpoint or the nearest known state).
    func past(
        _ newest: Snapshot,
        _ chain: CommitChain,
        _ found: (base: ScannedCommit, later: ScannedCommit),
        _ owner: PinOwner,
        _ isEarly: (PastPlace) -> Bool
    ) throws(EngineError) -> Snapshot {
        let generation = newest.state.generation
        let base = found.base.offset
        let window = try chain.windowed()
        let (places, read) = try stretch(found, window, generation)
        // What lies below the newest early commit is part of it, whatever the clock said then.
        let end = (places.lastIndex(where: isEarly) ?? -1) + 1
        var start = 0
        var current: StoreState?
        if end > 0 {
            let kept = pastStates.nearest(base, upTo: places[end - 1].offset, in: generation)
            // One that is met nowhere is of a commit that a follower saw and that never came to be
            // on disk.
            if let kept, let place = places[..<end].lastIndex(where: { $0.offset == kept.frame }) {
                (current, start) = (kept, place + 1)
            }
        }
        if let current, start == end { return noted(current, owner) }
        var state: StoreState
        if let current {
            state = current
        } else {
            state = try replay(generation).state(of: found.base)
        }
        var made: [StoreState] = []
        while start < end {
            let next = min(end, start + max(1, options.pastStateCommits))
            var commits: [ScannedCommit] = []
            for place in places[start..<next] {
                if let commit = read[place.offset] {
                    commits.append(commit)
                } else {
                    commits.append(try window.commit(at: place.offset))
                }
            }
            state = try replay(generation).apply(commits[...], to: state)
            made.append(state)
            start = next
        }
        if !made.isEmpty { pastStates.keep(made) }
        return noted(state, owner)
    }

    /// The places of a stretch's commits, oldest first, and those commits that were read for it.
    private func stretch(
        _ found: (base: ScannedCommit, later: ScannedCommit),
        _ chain: CommitChain,
        _ generation: Generation
    ) throws(EngineError) -> (places: [PastPlace], read: [FileOffset: ScannedCommit]) {
        let base = found.base.offset
        var known = pastStates.places(base, in: generation)
        var places: [PastPlace] = []
        var read: [FileOffset: ScannedCommit] = [:]
        var frame = found.later
        while frame.offset > base {
            // Below it all are known; one that is met nowhere was never on disk.
            while let last = known.last, last.offset > frame.offset { known.removeLast() }
            if known.last?.offset == frame.offset { break }
            if frame.carriesChanges {
                places.append(PastPlace(frame))
                read[frame.offset] = frame
            }
            guard let next = try chain.before(frame) else { break }
            frame = next
        }
        if frame.offset <= base { known = [] }
        if places.isEmpty { return (known, read) }
        let all = known + places.reversed()
        pastStates.keep(all, behind: base, in: generation)
        return (all, read)
    }

    private func noted(_ state: StoreState, _ owner: PinOwner) -> Snapshot {
        let past = pinned(PublishedState(state), for: owner)
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
