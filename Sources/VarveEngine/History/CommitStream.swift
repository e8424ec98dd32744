// The commits of a store from an early one on, oldest first, read as they are asked for.
//
// Invariants
// - It ends with the commit that was the newest when it began, and keeps that one pinned, so that
//   a compaction takes nothing from it.
// - Frames lead backward only. So it goes from one checkpoint to the next: of the commits between
//   two it notes the places on the way down, and reads them again on the way up. Nothing but those
//   places, 8 bytes each, and one frame is in memory.

public import VarveBase
internal import VarveFormat

/// What a store still knows of the changes of a commit.
public enum KnownChanges: Hashable, Sendable {
    /// All of them, and nothing else.
    case exactly
    /// After a crash it was written again together with those before it: these are the changes of
    /// all, from this commit on.
    case together(since: CommitNumber)
    /// They are among those of this later commit, with which it was written again.
    case later(in: CommitNumber)
    /// A compaction kept its state and nothing of what led to it.
    case unknown
}

/// One commit of a `CommitStream`.
public struct HistoryEntry: Sendable {
    /// The commit.
    public let summary: CommitSummary
    /// What it changed; empty unless `known` says otherwise.
    public let changes: CommitChanges
    /// What is known of that.
    public let known: KnownChanges
}

/// The commits after an early one, oldest first.
public struct CommitStream: Sendable {
    /// Holds the newest of them.
    private let snapshot: Snapshot
    private let chain: CommitChain
    /// Nil: from the oldest that is there on.
    private let after: CommitNumber?
    /// Ends of the stretches to come, the next one last: TREE and CKPT frames, and the newest one.
    private var ends: [FileOffset] = []
    /// Where the next stretch begins: its commits lie behind this frame.
    private var base = FileOffset(0)
    /// Commits of the stretch, the next one last.
    private var places: [FileOffset] = []
    /// Commits of the frame, the next one last.
    private var waiting: [HistoryEntry] = []
    /// The commit before the next frame.
    private var last: CommitNumber
    private var schemaVersion: UInt32 = 0
    /// Commit frames that were read so far: what it cost.
    public private(set) var framesRead = 0

    /// - Complexity: O(checkpoints since `after`).
    init(_ snapshot: Snapshot, after: CommitNumber?) throws(EngineError) {
        self.snapshot = snapshot
        self.after = after
        last = after ?? CommitNumber(0)
        let newest = try CommitChain(snapshot.state)
        chain = try newest.windowed()
        var frame = try chain.commit(at: chain.newest)
        framesRead = 1
        if let after, snapshot.number <= after { return }
        ends.append(frame.offset)
        while let before = try chain.base(before: frame) {
            framesRead += 1
            if let after, before.number <= after {
                base = before.offset
                schemaVersion = before.record.schemaVersion
                break
            }
            ends.append(before.offset)
            frame = before
        }
    }

    /// The next commit; nil after the newest.
    ///
    /// - Parameter wants: asked before the changes of a commit are read; those that are not wanted
    ///   are passed over. What was written again together is not asked for.
    /// - Throws: `damaged`, `ioFailed`.
    /// - Complexity: two frames for each commit that is passed.
    public mutating func next(
        _ wants: (CommitSummary) -> Bool = { _ in true }
    ) throws(EngineError) -> HistoryEntry? {
        while true {
            if let entry = waiting.popLast() { return entry }
            if let place = places.popLast() {
                try read(chain.commit(at: place), wants)
                framesRead += 1
            } else if try !enterStretch() {
                return nil
            }
        }
    }

    /// Notes the places of the next stretch's commits.
    private mutating func enterStretch() throws(EngineError) -> Bool {
        guard let end = ends.popLast() else { return false }
        var frame = try chain.commit(at: end)
        framesRead += 1
        while frame.offset > base {
            if let after, frame.number <= after { break }
            let isKept = frame.isFirst && frame.number.rawValue > 0
            if frame.carriesChanges || isKept { places.append(frame.offset) }
            guard let before = try chain.before(frame) else { break }
            framesRead += 1
            frame = before
        }
        base = end
        return true
    }

    private mutating func read(
        _ frame: ScannedCommit,
        _ wants: (CommitSummary) -> Bool
    ) throws(EngineError) {
        let commits = try Engine.summaries(of: frame)
        let isSchemaChanged = frame.record.schemaVersion != schemaVersion
        schemaVersion = frame.record.schemaVersion
        guard let newest = commits.last else { return }
        // A DELTA for several commits says nothing of the others: their numbers are missing.
        let first = last.next
        last = newest.number
        let isTogether = commits.count > 1 || newest.number > first && newest.form != .kept
        guard isTogether || wants(newest) else { return }
        for commit in commits.dropLast() where after.map({ commit.number > $0 }) ?? true {
            waiting.append(entry(commit, .later(in: newest.number), [], false))
        }
        let known: KnownChanges =
            if newest.form == .kept {
                .unknown
            } else if isTogether {
                .together(since: min(commits[0].number, first))
            } else {
                .exactly
            }
        let changes = try Replay.changes(of: frame)
        waiting.append(entry(newest, known, changes, isSchemaChanged))
        waiting.reverse()
    }

    private func entry(
        _ commit: CommitSummary,
        _ known: KnownChanges,
        _ objects: [ChangedObjects],
        _ isSchemaChanged: Bool
    ) -> HistoryEntry {
        HistoryEntry(
            summary: commit,
            changes: CommitChanges(
                number: commit.number,
                author: commit.author,
                timeMicroseconds: commit.timeMicroseconds,
                objects: objects,
                schemaChanged: isSchemaChanged,
                isUnknown: known == .unknown
            ),
            known: known
        )
    }
}

/// How a commit that somebody remembers stands to a store.
public enum RememberedCommit: Hashable, Sendable {
    /// It is there, and so is everything after it.
    case retained
    /// It was there; the store has nothing before this one.
    case expired(oldest: CommitNumber)
    /// It never was there: another commit has its number, or none.
    case neverThere
}

extension Engine {
    /// The commits after one of them, oldest first, up to the newest; nil: all that the file holds.
    ///
    /// - Throws: `notRetained` when the file does not reach back so far, `damaged`, `ioFailed`.
    /// - Complexity: O(checkpoints since).
    public func commits(after number: CommitNumber?) throws(EngineError) -> CommitStream {
        let snapshot = snapshot()
        if let number {
            let chain = try CommitChain(snapshot.state)
            guard number <= snapshot.number, try chain.stretch({ $0.number <= number }) != nil
            else { throw try notRetained("what came after commit \(number.rawValue) is", chain) }
        }
        return try CommitStream(snapshot, after: number)
    }

    /// What became of a commit that somebody remembers by number and epoch; by number alone where
    /// the epoch is 0.
    ///
    /// - Throws: `damaged`, `ioFailed`.
    /// - Complexity: O(log n + checkpoints since); where the store's account of its openings does
    ///   not reach back, that of `changes(of:)`.
    public func standing(of commit: CommitIdentity) throws(EngineError) -> RememberedCommit {
        let snapshot = snapshot()
        let number = CommitNumber(commit.number)
        if number > snapshot.number { return .neverThere }
        let chain = try CommitChain(snapshot.state)
        let isRetained = try chain.stretch { $0.number <= number } != nil
        let known = try EpochAccount.epoch(
            of: commit.number,
            in: snapshot.state.tree(.catalog)
        )
        if let known, known != commit.epoch, commit.epoch != 0 { return .neverThere }
        guard isRetained else { return .expired(oldest: try chain.oldest().number) }
        if known == nil, commit.epoch != 0,
            let epoch = try Self.epoch(of: number, in: chain), epoch != commit.epoch
        {
            return .neverThere
        }
        return .retained
    }

    /// The epoch that the log gives for a commit; nil when it says nothing of that commit.
    private static func epoch(
        of number: CommitNumber,
        in chain: CommitChain
    ) throws(EngineError) -> UInt64? {
        guard let (_, later) = try chain.stretch({ $0.number <= number }) else { return nil }
        var next: ScannedCommit? = later
        while let frame = next, frame.number >= number {
            let commits = try summaries(of: frame)
            if let commit = commits.first(where: { $0.number == number }) { return commit.epoch }
            next = try chain.before(frame)
        }
        return nil
    }
}

extension Snapshot {
    /// Number and epoch of the commit that it shows.
    ///
    /// - Throws: `damaged`, `ioFailed`.
    /// - Complexity: O(log n).
    public func identity() throws(EngineError) -> CommitIdentity {
        try identity(of: number)
    }

    /// Number and epoch of this commit or one before it.
    ///
    /// The epoch is 0 when the store's account of its openings does not reach back so far.
    /// - Throws: `damaged`, `ioFailed`.
    /// - Complexity: O(log n).
    public func identity(of number: CommitNumber) throws(EngineError) -> CommitIdentity {
        let catalog = state.tree(.catalog)
        let epoch = try EpochAccount.epoch(of: number.rawValue, in: catalog)
        return CommitIdentity(epoch: epoch ?? 0, number: number.rawValue)
    }
}
