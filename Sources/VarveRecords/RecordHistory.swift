// The commits of a store and the store as it was at each of them, with the schema of that time.

public import VarveBase
public import VarveEngine
internal import VarveFormat

extension RecordStore {
    /// The commits that the store file holds, newest first; see `Engine.commits`.
    public func commits(
        _ count: Int = 100,
        below limit: CommitNumber? = nil
    ) throws(RecordError) -> [CommitSummary] {
        try RecordError.ofEngine { () throws(EngineError) in
            try engine.commits(count, below: limit)
        }
    }

    /// What became of a commit that failed with `outcomeUnknown`; see `Engine.outcome(of:)`.
    public func outcome(of commit: CommitIdentity) throws(RecordError) -> CommitOutcome {
        try RecordError.ofEngine { () throws(EngineError) in try engine.outcome(of: commit) }
    }

    /// What one commit changed; see `Engine.changes(of:)`.
    public func changes(of number: CommitNumber) throws(RecordError) -> CommitChanges {
        try RecordError.ofEngine { () throws(EngineError) in try engine.changes(of: number) }
    }

    /// The store as of an earlier commit, with the schema of that time. Throws `engine` with
    /// `notRetained` when the store no longer has it; see `Engine.snapshot(at:)`.
    public func snapshot(
        at number: CommitNumber,
        for owner: PinOwner = PinOwner(.snapshot)
    ) throws(RecordError) -> RecordSnapshot {
        try past { () throws(EngineError) in try engine.snapshot(at: number, for: owner) }
    }

    /// The store as it was at a moment, in microseconds since 1970; see `Engine.snapshot(atTime:)`.
    public func snapshot(
        atTime time: Int64,
        for owner: PinOwner = PinOwner(.snapshot)
    ) throws(RecordError) -> RecordSnapshot {
        try past { () throws(EngineError) in try engine.snapshot(atTime: time, for: owner) }
    }

    /// The commits after one of them, oldest first; see `Engine.commits(after:)`.
    public func commits(after number: CommitNumber?) throws(RecordError) -> CommitStream {
        try RecordError.ofEngine { () throws(EngineError) in try engine.commits(after: number) }
    }

    /// How a remembered commit stands to the store; see `Engine.standing(of:)`.
    public func standing(of commit: CommitIdentity) throws(RecordError) -> RememberedCommit {
        try RecordError.ofEngine { () throws(EngineError) in try engine.standing(of: commit) }
    }

    /// Oldest and newest commit that can be shown.
    public func retainedCommits() throws(RecordError) -> ClosedRange<CommitNumber> {
        try RecordError.ofEngine { () throws(EngineError) in try engine.retainedCommits() }
    }

    /// The versions of one row, newest first, since the newest change of the schema; see
    /// `Engine.versions(of:entity:tree:)`.
    public func versions(
        of id: ObjectID,
        in entity: RecordEntity
    ) throws(RecordError) -> RecordVersions {
        let rows = try RecordError.ofEngine { () throws(EngineError) in
            try engine.versions(of: id, entity: entity.id, tree: entity.tree)
        }
        return RecordVersions(rows: rows, entity: entity, id: id)
    }

    private func past(
        _ open: () throws(EngineError) -> Snapshot
    ) throws(RecordError) -> RecordSnapshot {
        let storage = try RecordError.ofEngine(open)
        return RecordSnapshot(storage: storage, schema: try schema(storage.schema), store: self)
    }
}

extension RecordSnapshot {
    /// Number and epoch of this commit; see `Snapshot.identity()`.
    public func identity() throws(RecordError) -> CommitIdentity {
        try RecordError.ofEngine { () throws(EngineError) in try storage.identity() }
    }

    /// Number and epoch of this commit or one before it; see `Snapshot.identity(of:)`.
    public func identity(of number: CommitNumber) throws(RecordError) -> CommitIdentity {
        try RecordError.ofEngine { () throws(EngineError) in try storage.identity(of: number) }
    }
}

/// The versions of one row, newest first.
public struct RecordVersions: Sendable {
    private var rows: RowVersions
    private let entity: RecordEntity
    private let id: ObjectID

    init(rows: RowVersions, entity: RecordEntity, id: ObjectID) {
        (self.rows, self.entity, self.id) = (rows, entity, id)
    }

    /// Commit frames that were read so far.
    public var framesRead: Int { rows.framesRead }

    /// The next older version; nil after the oldest. See `RowVersions.next`.
    public mutating func next() throws(RecordError) -> RecordVersion? {
        let version: RowVersion?
        do throws(EngineError) { version = try rows.next() } catch { throw .engine(error) }
        guard let version else { return nil }
        return RecordVersion(
            version: version,
            row: try version.row.map { row throws(RecordError) in
                try CachedRow(entity, id, row)
            }
        )
    }
}

/// One version of one row.
public struct RecordVersion {
    private let version: RowVersion
    /// The row; nil: the commit deleted it.
    public let row: CachedRow?

    init(version: RowVersion, row: CachedRow?) { (self.version, self.row) = (version, row) }

    /// The commit that made it.
    public var number: CommitNumber { version.number }
    /// What is known of that commit; nil: the file does not have it any more.
    public var commit: CommitSummary? { version.commit }
    /// A commit whose state shows it.
    public var shownAt: CommitNumber { version.shownAt }
    /// Whether it is the oldest one that the file can show, of whatever came before.
    public var isOldest: Bool { version.isOldest }

    /// The value of a column, read from where it lies outside the row.
    public func value(of row: CachedRow, _ column: ColumnID) throws(RecordError) -> StoredValue {
        let slot = row.slot(column)
        guard slot.isOutside else { return try row.value(column) }
        let bytes = try RecordError.ofEngine { () throws(EngineError) in
            try version.largeValue(entity: row.entity.id, object: row.id, column: column)
        }
        return try slot.outsideValue(bytes)
    }
}
