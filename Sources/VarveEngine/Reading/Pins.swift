// Which commits are held, by whom and since when.
//
// Invariants
// - The table is part of `Published` and guarded by its lock.
// - Every snapshot is counted exactly once: by its token when it has one; otherwise in `unnamed`
//   while its state is the published one, and under its publication in `older` afterwards.
// - A snapshot of the newest commit without a name costs one addition: no clock, no allocation, no
//   hashing. What it holds is found out when somebody asks.

internal import Synchronization
public import VarveBase
internal import VarveFormat
internal import VarveIO

/// A commit that is held, by whom, and what that keeps. Other processes' readers are not known.
public struct PinnedCommit: Sendable, Hashable {
    /// Those who hold a commit under the same name.
    public struct Holder: Sendable, Hashable {
        /// What they are, and their name.
        public var owner: PinOwner
        /// How many.
        public var count: Int
        /// When the first of them began, in nanoseconds of `Environment.monotonicNanoseconds`.
        ///
        /// Exact but for snapshots without a name of what is or was the newest commit: for those
        /// the moment at which it became the newest, so that they are at most that old.
        public var sinceNanoseconds: UInt64
        /// Nanoseconds from then until the statistics were taken.
        public var ageNanoseconds: UInt64
        /// Whether `sinceNanoseconds` is exact and not the earliest possible moment.
        public var isSinceExact: Bool
    }

    /// The commit.
    public var number: CommitNumber
    /// Who holds it, in the order of their beginnings.
    public var holders: [Holder]
    /// Bytes of a store file that compaction has replaced and that stays on disk for its readers.
    ///
    /// 0 for a commit in the file that is the store now: it grows by what is committed and by
    /// nothing else, whoever reads. All commits of a replaced file keep the same bytes together,
    /// so each says the whole: an upper bound.
    public var fileBytes: UInt64
    /// Bytes of blob files that the newest commit does not name any more and this one does. An
    /// upper bound: an older pin or `EngineOptions.retention` may keep them as well. Nil when a
    /// page that is needed to tell cannot be read.
    public var blobFileBytes: UInt64?
    /// Bytes of changed nodes in memory that this commit needs and the newest does not. An upper
    /// bound: held commits share nodes with each other. What was read from the file is not in it:
    /// that is `EngineStatistics.nodeCacheBytes`, whose budget is the same with and without pins.
    public var memoryBytes: UInt64
}

/// The held commits of an engine.
struct Pins: Sendable {
    private struct Unnamed {
        var state: StoreState
        var count: Int
        var since: UInt64
    }
    private struct Named {
        var state: StoreState
        var owner: PinOwner
        var since: UInt64
    }
    /// The token of a snapshot without a name.
    static let noToken: UInt64 = 0

    /// Snapshots without a name of the published state.
    var unnamed = 0
    /// When that state was published.
    private(set) var since: UInt64
    /// Snapshots without a name of states that were published before, by their publication.
    private var older: [UInt64: Unnamed] = [:]
    private var named: [UInt64: Named] = [:]
    private var nextToken = noToken + 1

    init(since: UInt64) { self.since = since }

    /// Another state takes the place of `state`.
    mutating func supersede(_ state: StoreState, at now: UInt64) {
        if unnamed > 0 {
            older[state.publication] = Unnamed(state: state, count: unnamed, since: since)
        }
        unnamed = 0
        since = now
    }

    mutating func add(_ state: StoreState, _ owner: PinOwner, at now: UInt64) -> UInt64 {
        defer { nextToken += 1 }
        named[nextToken] = Named(state: state, owner: owner, since: now)
        return nextToken
    }

    /// A snapshot that is not one of `unnamed` goes. It still holds its state: nothing is freed.
    mutating func remove(publication: UInt64, token: UInt64) {
        if token != Self.noToken {
            let removed = named.removeValue(forKey: token)
            precondition(removed != nil, "a named snapshot ends once")
            return
        }
        guard let count = older[publication]?.count else {
            preconditionFailure("a snapshot ends once")
        }
        if count > 1 { older[publication]?.count = count - 1 } else { older[publication] = nil }
    }

    /// Number of snapshots.
    var count: Int { older.values.reduce(unnamed + named.count) { $0 + $1.count } }

    /// The oldest commit that is held; `published` is the newest.
    func oldest(_ published: CommitNumber) -> CommitNumber? {
        let numbers = older.values.map(\.state.number) + named.values.map(\.state.number)
        return (unnamed > 0 ? numbers + [published] : numbers).min()
    }

    /// What is held, each with its state, in no order.
    func all(_ published: StoreState, now: UInt64) -> [(StoreState, PinnedCommit.Holder)] {
        func holder(_ owner: PinOwner, _ count: Int, _ since: UInt64, exact: Bool)
            -> PinnedCommit.Holder
        {
            PinnedCommit.Holder(
                owner: owner,
                count: count,
                sinceNanoseconds: since,
                ageNanoseconds: now - min(since, now),
                isSinceExact: exact
            )
        }
        var result = named.values.map { ($0.state, holder($0.owner, 1, $0.since, exact: true)) }
        let snapshot = PinOwner(.snapshot)
        result += older.values.map {
            ($0.state, holder(snapshot, $0.count, $0.since, exact: false))
        }
        if unnamed > 0 {
            result.append((published, holder(snapshot, unnamed, since, exact: false)))
        }
        return result
    }
}

extension Engine {
    /// The newest commit, pinned for somebody with a name until the snapshot goes; otherwise as
    /// `snapshot()`.
    public func snapshot(for owner: PinOwner) -> Snapshot {
        follow()
        let now = options.environment.monotonicNanoseconds()
        let (state, token) = published.withLock { published in
            (published.shown, published.pins.add(published.state, owner, at: now))
        }
        return Snapshot(state, engine: self, token: token)
    }

    /// A state that somebody holds already, or one of the past, pinned until the snapshot goes.
    func pinned(_ state: PublishedState, for owner: PinOwner) -> Snapshot {
        let now = options.environment.monotonicNanoseconds()
        let token = published.withLock { $0.pins.add(state.state, owner, at: now) }
        return Snapshot(state, engine: self, token: token)
    }

    /// Who holds which commits, oldest first, and what that keeps.
    ///
    /// - Complexity: O(holders + changed nodes in memory + blobs dropped since the oldest). Reads
    ///   pages only when blobs were dropped since a held commit.
    func pinnedCommits() -> [PinnedCommit] {
        let now = options.environment.monotonicNanoseconds()
        let (newest, held) = published.withLock { published in
            (published.state, published.pins.all(published.state, now: now))
        }
        if held.isEmpty { return [] }
        let kept = KeptByPins(newest)
        // Several states of one commit: a checkpoint and a compaction put another in its place.
        let commits = Dictionary(grouping: held) { $0.0.number }
        return commits.sorted { $0.key < $1.key }.map { number, pins in
            var states: [UInt64: StoreState] = [:]
            var holders: [PinOwner: PinnedCommit.Holder] = [:]
            for (state, holder) in pins {
                states[state.publication] = state
                let same = holders[holder.owner] ?? holder
                holders[holder.owner] = holders[holder.owner] == nil ? holder : same + holder
            }
            return PinnedCommit(
                number: number,
                holders: holders.values.sorted {
                    ($0.sinceNanoseconds, $0.owner.kind.rawValue, $0.owner.label)
                        < ($1.sinceNanoseconds, $1.owner.kind.rawValue, $1.owner.label)
                },
                fileBytes: kept.fileBytes(states.values),
                blobFileBytes: kept.blobFileBytes(states.values),
                memoryBytes: kept.memoryBytes(states.values)
            )
        }
    }
}

extension PinnedCommit.Holder {
    fileprivate static func + (first: Self, second: Self) -> Self {
        var both = first.sinceNanoseconds <= second.sinceNanoseconds ? first : second
        both.count = first.count + second.count
        both.isSinceExact = first.isSinceExact && second.isSinceExact
        return both
    }
}

/// What states keep that the newest one does not need.
private struct KeptByPins {
    private let newest: StoreState
    private let needed: Set<ObjectIdentifier>

    init(_ newest: StoreState) {
        self.newest = newest
        var nodes = ChangedNodes()
        nodes.add(newest)
        needed = nodes.seen
    }

    func fileBytes(_ states: some Sequence<StoreState>) -> UInt64 {
        var files: [ObjectIdentifier: UInt64] = [:]
        for state in states where state.generation !== newest.generation {
            files[ObjectIdentifier(state.generation)] = (try? state.generation.log.size()) ?? 0
        }
        return files.values.reduce(0, +)
    }

    func memoryBytes(_ states: some Sequence<StoreState>) -> UInt64 {
        var nodes = ChangedNodes(seen: needed)
        for state in states where state.publication != newest.publication { nodes.add(state) }
        return nodes.bytes
    }

    /// The list of dropped blobs is ascending by the commit that dropped them.
    func blobFileBytes(_ states: some Sequence<StoreState>) -> UInt64? {
        guard let state = states.first(where: { _ in true }), state.number < newest.number,
            newest.trees[.droppedBlobs] != nil
        else { return 0 }
        let (blobs, named) = (state.tree(.blobs), newest.tree(.blobs))
        var seen: Set<BlobDigest> = []
        var bytes: UInt64 = 0
        do throws(EngineError) {
            var cursor = TreeCursor(newest.tree(.droppedBlobs))
            var from: [UInt8] = []
            KeyCoding.appendObjectID(ObjectID(state.number.next.rawValue), to: &from)
            var hasEntry = try cursor.seek(atOrAfter: from)
            while hasEntry {
                let key = cursor.key
                let digest = try decoded { () throws(FormatError) in
                    try EngineKeys.dropped(decoding: key).digest
                }
                let blob = EngineKeys.digest(digest)
                if seen.insert(digest).inserted, try named.value(blob) == nil,
                    let value = try blobs.value(blob)
                {
                    let entry = try decoded { () throws(FormatError) in
                        try BlobEntry(decoding: value)
                    }
                    if entry.place == .file { bytes += min(entry.length, .max - bytes) }
                }
                hasEntry = try cursor.next()
            }
        } catch {
            return nil
        }
        return bytes
    }
}

/// Nodes that are in memory because they were changed, each counted once.
struct ChangedNodes {
    private(set) var seen: Set<ObjectIdentifier> = []
    private(set) var bytes: UInt64 = 0

    init(seen: Set<ObjectIdentifier> = []) { self.seen = seen }

    mutating func add(_ state: StoreState) {
        for root in state.trees.values { if let node = root.node { add(node) } }
    }

    /// What is below a node that was seen was seen with it. Depth: that of a tree, at most 16.
    private mutating func add(_ node: TreeNode) {
        guard seen.insert(ObjectIdentifier(node)).inserted else { return }
        bytes += UInt64(node.footprint)
        if node.isLeaf { return }
        for child in node.children { if let node = child.node { add(node) } }
    }
}
