// The commits of a store and the store as it was at each of them.
//
// Invariants
// - A snapshot of the past pins its commit like any other, so that blob files it names stay.
// - What the log does not hold is refused by name; no neighbour is shown in its place.

public import VarveBase
public import VarveFormat

/// What is known of one commit without its rows.
public struct CommitSummary: Hashable, Sendable {
    /// How a commit stands in the log.
    public enum Form: String, Sendable {
        /// As row changes.
        case rowChanges
        /// As trees: large transactions and changes of the schema.
        case trees
        /// Written again after a crash, perhaps together with others: only the newest of them can
        /// be shown as it was, and `counts` is empty.
        case settled
        /// The oldest commit that a compaction kept: its state is there, its changes are not.
        case kept
    }

    /// Its number.
    public let number: CommitNumber
    /// Random number of the opening that made it; with `number` it names the commit for ever.
    public let epoch: UInt64
    /// Wall clock in microseconds since 1970.
    public let timeMicroseconds: Int64
    /// Who made it; empty when not said.
    public let author: String
    /// How it stands in the log.
    public let form: Form
    /// Bytes of the log that it took: its frame, large values and pages.
    public let bytes: UInt64
    /// Version of the stored schema.
    public let schemaVersion: UInt32
    /// Rows added, changed and deleted by entity.
    public let counts: [CommitRecord.EntityCounts]
}

extension CommitSummary {
    /// Whether the commit changed rows of one of these entities; true when the store does not say.
    public func mayChange(_ entities: Set<EntityID>) -> Bool {
        counts.isEmpty || counts.contains { entities.contains($0.entity) }
    }

    init(_ frame: ScannedCommit, _ form: Form) {
        self.init(
            number: frame.number,
            epoch: frame.record.epoch,
            timeMicroseconds: frame.record.clockMicroseconds,
            author: frame.record.author,
            form: form,
            bytes: frame.end.rawValue - frame.record.bodyStart.rawValue,
            schemaVersion: frame.record.schemaVersion,
            counts: frame.record.entityCounts
        )
    }
}

extension Engine {
    // MARK: Lists

    /// Calls `body` with the commits that the store file holds, newest first, until it says stop.
    ///
    /// - Parameter limit: only commits below this one; nil begins with the newest.
    /// - Throws: `damaged`, `ioFailed`.
    /// - Complexity: O(checkpoints above `limit`), then O(bytes of the commits visited). One frame
    ///   is in memory at a time.
    public func forEachCommit(
        below limit: CommitNumber? = nil,
        _ body: (CommitSummary) -> Bool
    ) throws(EngineError) {
        let snapshot = snapshot()
        let chain = try CommitChain(snapshot.state)
        var next: ScannedCommit? = try chain.commit(at: chain.newest)
        if let limit, snapshot.number >= limit {
            guard limit.rawValue > 0,
                let (_, later) = try chain.stretch({ $0.number < limit })
            else { return }
            next = later
        }
        while let frame = next {
            for commit in try Self.summaries(of: frame).reversed()
            where limit.map({ commit.number < $0 }) ?? true {
                guard body(commit) else { return }
            }
            next = try chain.before(frame)
        }
    }

    /// The commits that the store file holds, newest first.
    ///
    /// - Parameters:
    ///   - count: at most so many.
    ///   - limit: only commits below this one; nil begins with the newest.
    /// - Throws: `damaged`, `ioFailed`.
    /// - Complexity: as `forEachCommit`.
    public func commits(
        _ count: Int = 100,
        below limit: CommitNumber? = nil
    ) throws(EngineError) -> [CommitSummary] {
        var list: [CommitSummary] = []
        if count <= 0 { return list }
        try forEachCommit(below: limit) { commit in
            list.append(commit)
            return list.count < count
        }
        return list
    }

    /// The commits of one frame, oldest first; none for a checkpoint.
    static func summaries(
        of frame: ScannedCommit
    ) throws(EngineError) -> [CommitSummary] {
        guard frame.carriesChanges else {
            // A compaction gives its first checkpoint the epoch, clock and author of its commit.
            let isKept = frame.isFirst && frame.number.rawValue > 0
            return isKept ? [CommitSummary(frame, .kept)] : []
        }
        guard frame.header.flags.contains(.settle) else {
            return [CommitSummary(frame, frame.header.kind == .delta ? .rowChanges : .trees)]
        }
        var commits = try CommitChain.absorbed(by: frame)
        if let last = commits.popLast() {
            commits.append(
                CommitSummary(
                    number: last.number,
                    epoch: last.epoch,
                    timeMicroseconds: last.timeMicroseconds,
                    author: last.author,
                    form: .settled,
                    bytes: frame.end.rawValue - frame.record.bodyStart.rawValue,
                    schemaVersion: last.schemaVersion,
                    counts: []
                )
            )
        }
        return commits
    }

    /// Oldest and newest commit that `snapshot(at:)` can show.
    ///
    /// - Throws: `damaged`, `ioFailed`.
    /// - Complexity: O(checkpoints).
    public func retainedCommits() throws(EngineError) -> ClosedRange<CommitNumber> {
        let snapshot = snapshot()
        return try CommitChain(snapshot.state).oldest().number...snapshot.number
    }

    /// What one commit changed.
    ///
    /// - Throws: `notRetained` when the store no longer knows it, `damaged`, `ioFailed`.
    /// - Complexity: O(checkpoints since + commits between two of them + changes).
    public func changes(of number: CommitNumber) throws(EngineError) -> CommitChanges {
        let snapshot = snapshot()
        let chain = try CommitChain(snapshot.state)
        guard let frame = try chain.frame(of: number) else {
            throw try notRetained("the changes of commit \(number.rawValue) are", chain)
        }
        let before = try chain.before(frame)
        return CommitChanges(
            number: number,
            author: frame.record.author,
            timeMicroseconds: frame.record.clockMicroseconds,
            objects: try Replay.changes(of: frame),
            schemaChanged: before?.record.schemaVersion != frame.record.schemaVersion
        )
    }

    // MARK: Snapshots of the past

    /// The store as of an earlier commit, with the schema of that time.
    ///
    /// Any commit that the file still holds can be shown; which ones a compaction keeps is
    /// `EngineOptions.retention`. Files of blobs that were dropped since may be gone when the
    /// retention does not cover the commit.
    ///
    /// - Parameter owner: who holds it, for statistics.
    /// - Throws: `notRetained` when the store no longer has it; the message says which it has.
    ///   `damaged`, `ioFailed`.
    /// - Complexity: O(checkpoints since), then O(row changes between two checkpoints), which are
    ///   also what it holds in memory. A commit near one that was shown before costs what lies
    ///   between the two (`PastStates`).
    public func snapshot(
        at number: CommitNumber,
        for owner: PinOwner = PinOwner(.snapshot)
    ) throws(EngineError) -> Snapshot {
        let newest = snapshot(for: owner)
        if newest.number == number { return newest }
        let chain = try CommitChain(newest.state)
        let found = try chain.stretch { $0.number <= number }
        guard number < newest.number, let found else {
            throw try notRetained("commit \(number.rawValue) is", chain)
        }
        let past = try self.past(newest, chain, found, owner) { $0.number <= number }
        guard past.number == number else {
            // Written again together with later ones after a crash.
            throw try notRetained("the state of commit \(number.rawValue) is", chain)
        }
        return past
    }

    /// The store as it was at a moment: the newest commit whose clock says at most that.
    ///
    /// Where the clock was set back between commits, one of those that fit.
    ///
    /// - Parameters:
    ///   - time: microseconds since 1970.
    ///   - owner: who holds it, for statistics.
    /// - Throws: `notRetained` when every commit that the store has is later, `damaged`,
    ///   `ioFailed`.
    /// - Complexity: as `snapshot(at:)`.
    public func snapshot(
        atTime time: Int64,
        for owner: PinOwner = PinOwner(.snapshot)
    ) throws(EngineError) -> Snapshot {
        let newest = snapshot()
        let chain = try CommitChain(newest.state)
        let isNow = try chain.commit(at: chain.newest).record.clockMicroseconds <= time
        if isNow { return newest.held(for: owner) }
        guard let found = try chain.stretch({ $0.clockMicroseconds <= time }) else {
            throw try notRetained("a commit of that time is", chain)
        }
        return try past(newest, chain, found, owner) { $0.clockMicroseconds <= time }
    }

    func notRetained(
        _ what: String,
        _ chain: CommitChain
    ) throws(EngineError) -> EngineError {
        let (oldest, newest) = (
            try chain.oldest().number, try chain.commit(at: chain.newest).number
        )
        return EngineError(
            .notRetained,
            "\(what) not in the store, which keeps commits \(oldest.rawValue) to "
                + "\(newest.rawValue)"
        )
    }
}
