// The commits of a store and the store as it was at each of them, with the schema of that time.

public import VarveBase
public import VarveEngine

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

    private func past(
        _ open: () throws(EngineError) -> Snapshot
    ) throws(RecordError) -> RecordSnapshot {
        let storage = try RecordError.ofEngine(open)
        return RecordSnapshot(storage: storage, schema: try schema(storage.schema), store: self)
    }
}
