// The versions of one row, newest first: from the log, without the rest of the store.
//
// Invariants
// - From one checkpoint to the next only the row changes of this object are applied to its row.
//   Where it is the same at both, nothing between them is read.
// - It ends with the oldest version that the file still has; what is of before the newest change of
//   the schema is not shown, since its columns may mean something else.

public import VarveBase
internal import VarveFormat

/// One version of one row.
public struct RowVersion: Sendable {
    /// The commit that made it.
    public let number: CommitNumber
    /// What is known of that commit; nil: the file does not have it any more.
    public let commit: CommitSummary?
    /// The row; nil: the commit deleted it.
    public let row: StoredRow?
    /// A commit whose state shows it: that one, or the oldest that the file has.
    public let shownAt: CommitNumber
    /// Whether it is the oldest one that the file can show, of whatever came before.
    public let isOldest: Bool
    private let values: LargeValueSource

    fileprivate init(
        _ number: CommitNumber,
        _ commit: CommitSummary?,
        _ row: StoredRow?,
        shownAt: CommitNumber,
        isOldest: Bool = false,
        _ values: LargeValueSource
    ) {
        self.number = number
        self.commit = commit
        self.row = row
        self.shownAt = shownAt
        self.isOldest = isOldest
        self.values = values
    }

    /// A `String`'s UTF-8 or a `Data`'s bytes that this version keeps outside its row.
    ///
    /// - Throws: `damaged`, `ioFailed`.
    public func largeValue(
        entity: EntityID,
        object: ObjectID,
        column: ColumnID
    ) throws(EngineError) -> [UInt8] {
        try values.read(entity, object, column)
    }
}

/// Where a version's large values are.
private struct LargeValueSource: Sendable {
    /// The state from which the row changes begin.
    let state: StoreState
    /// Those that came after it.
    var places: [ColumnID: ValuePlace] = [:]

    func read(
        _ entity: EntityID,
        _ object: ObjectID,
        _ column: ColumnID
    ) throws(EngineError) -> [UInt8] {
        if let place = places[column] { return try state.generation.value(place) }
        let key = EngineKeys.largeValue(entity, object, column)
        return try LargeValues.read(
            key,
            in: state.tree(.largeValues, isPublished: true),
            state.generation.value
        )
    }
}

/// The versions of one row, newest first.
public struct RowVersions: Sendable {
    /// Holds the newest of them.
    private let snapshot: Snapshot
    private let chain: CommitChain
    private let replay: Replay
    private let entity: EntityID
    private let object: ObjectID
    private let tree: TreeID
    /// Where the next stretch ends; nil: there is none.
    private var later: FileOffset?
    /// The row there.
    private var laterRow: StoredRow?
    /// Versions of the stretch, the next one last.
    private var waiting: [RowVersion] = []
    /// Commit frames that were read so far: what it cost.
    public private(set) var framesRead = 0

    init(
        _ snapshot: Snapshot,
        entity: EntityID,
        tree: TreeID,
        object: ObjectID
    ) throws(EngineError) {
        self.snapshot = snapshot
        self.entity = entity
        self.object = object
        self.tree = tree
        chain = try CommitChain(snapshot.state).windowed()
        let engine = snapshot.engine
        replay = Replay(
            generation: snapshot.state.generation,
            delegate: engine.delegate,
            options: engine.options,
            counters: engine.counters,
            stamp: TreeNode.cleanStamp + 1
        )
        later = chain.newest
        laterRow = try snapshot.row(tree, object)
    }

    /// The next older version; nil after the oldest.
    ///
    /// - Throws: `damaged`, `ioFailed`.
    /// - Complexity: O(commits between the two checkpoints around it), and O(log n) for each
    ///   stretch in which nothing changed. Of a deleted object, each stretch is read.
    public mutating func next() throws(EngineError) -> RowVersion? {
        while waiting.isEmpty {
            guard let place = later else { return nil }
            later = nil
            let frame = try chain.commit(at: place)
            framesRead += 1
            guard let base = try chain.base(before: frame) else {
                try end(with: frame, isFirst: true)
                continue
            }
            framesRead += 1
            guard base.record.schemaVersion == snapshot.schemaVersion else {
                try end(with: frame, isFirst: false)
                continue
            }
            try read(from: base, to: frame)
            later = base.offset
        }
        return waiting.popLast()
    }

    /// The oldest version that can be shown: of the first frame, or of the newest schema's.
    private mutating func end(with frame: ScannedCommit, isFirst: Bool) throws(EngineError) {
        // Without a base before it the newest frame is one itself.
        guard frame.isBase, let row = laterRow else { return }
        let state = try replay.state(of: frame)
        let commits = try Engine.summaries(of: frame)
        waiting.append(
            RowVersion(
                row.version,
                commits.first { $0.number == row.version },
                row,
                shownAt: frame.number,
                isOldest: true,
                LargeValueSource(state: state)
            )
        )
    }

    /// The versions that came to be behind one checkpoint and up to another one, or the newest
    /// commit.
    private mutating func read(
        from base: ScannedCommit,
        to end: ScannedCommit
    ) throws(EngineError) {
        let state = try replay.state(of: base)
        let before = try state.tree(tree).row(object)
        let after = laterRow
        laterRow = before
        if let before, let after, before.version == after.version { return }
        let wasHandedOut = object.rawValue < end.record.objectIDHighWater
        if before == nil, after == nil, !wasHandedOut { return }
        var row = before
        var values = LargeValueSource(state: state)
        for frame in try deltas(from: base, to: end) {
            guard try apply(frame, &row, &values) else { continue }
            let commit = try Engine.summaries(of: frame).last
            waiting.append(
                RowVersion(frame.number, commit, row, shownAt: frame.number, values)
            )
        }
        if end.header.kind == .tree, row?.version != after?.version {
            let commits = try Engine.summaries(of: end)
            let commit = commits.first { $0.number == after?.version } ?? commits.last
            let values = LargeValueSource(state: try replay.state(of: end))
            waiting.append(
                RowVersion(
                    commit?.number ?? end.number,
                    commit,
                    after,
                    shownAt: end.number,
                    values
                )
            )
        }
    }

    /// The DELTA frames of a stretch that may name the object, oldest first.
    private mutating func deltas(
        from base: ScannedCommit,
        to end: ScannedCommit
    ) throws(EngineError) -> [ScannedCommit] {
        var frames: [ScannedCommit] = []
        var frame = end
        while frame.offset > base.offset {
            // One that stands for several says of no entity what it changed.
            let counts = frame.record.entityCounts
            let mayName = counts.isEmpty || counts.contains { $0.entity == entity }
            if frame.header.kind == .delta, mayName { frames.append(frame) }
            guard let next = try chain.before(frame) else { break }
            framesRead += 1
            frame = next
        }
        return frames.reversed()
    }

    /// Applies what a commit did to the object; whether it did something.
    private func apply(
        _ frame: ScannedCommit,
        _ row: inout StoredRow?,
        _ values: inout LargeValueSource
    ) throws(EngineError) -> Bool {
        do throws(FormatError) {
            var isChanged = false
            var reader = try Replay.bodyReader(frame)
            for place in try DeltaOps.decodePlaces(&reader, below: frame.offset) {
                if case .largeValue(entity, object, let column, let place) = place {
                    values.places[column] = place
                }
            }
            for _ in 0..<(try reader.varint("operation count")) {
                switch try DeltaOps.decodeOperation(&reader) {
                case .insert(entity, object, let bytes):
                    row = StoredRow(version: frame.number, bytes: bytes)
                case .update(entity, object, let patch):
                    guard let old = row else {
                        throw reader.error("change", "of a row that is not there", "a row")
                    }
                    let bytes = try RowPatch(patch).applied(to: old.bytes)
                    row = StoredRow(version: frame.number, bytes: bytes)
                case .delete(entity, object): row = nil
                default: continue
                }
                isChanged = true
            }
            return isChanged
        } catch {
            throw .damaged(error, place: frame.offset)
        }
    }
}

extension Engine {
    /// The versions of one row that the file has, newest first, since the newest change of the
    /// schema.
    ///
    /// - Parameter tree: that of the entity's rows.
    /// - Throws: `damaged`, `ioFailed`.
    /// - Complexity: O(log n); see `RowVersions.next`.
    public func versions(
        of object: ObjectID,
        entity: EntityID,
        tree: TreeID
    ) throws(EngineError) -> RowVersions {
        try RowVersions(snapshot(), entity: entity, tree: tree, object: object)
    }
}
