// Taking back what a commit did, and giving an object the values of an earlier commit.
//
// Invariants
// - A revert is an unsaved edit of the calling context and one step to undo: hooks, conflicts and
//   saves treat it like any other.
// - Objects that a revert brings back have the IDs that they had.
// - What is decided is decided before anything is done: a revert that throws has changed nothing.

public import VarveBase
import VarveEngine
import VarveRecords

extension ManagedObjectContext {
    /// Takes back what a commit did, in this context and without a save: what it inserted is
    /// deleted, what it changed has the values of before, what it deleted comes back under its ID
    /// with its relationships. Members that it added to lists leave them, members that it took out
    /// come back at their places; what others added or moved since stays.
    ///
    /// A property or object that was changed again since is a conflict: see `policy`. Relationships
    /// that would lead to an object which is gone are left out and told. No hook is called for
    /// objects that are deleted.
    ///
    /// A commit that a crash has joined with those before it (`HistoryCommit.Known.together`) is
    /// reverted with them.
    ///
    /// - Parameters:
    ///   - number: the commit; this context must read it or a later one.
    ///   - policy: what to do with what was changed again.
    ///   - undoActionName: the name of the step that `undo()` takes back.
    /// - Returns: what was left as it is.
    /// - Throws: `StoreError`: `revertConflict`, with a detail for each; `commitExpired` when the
    ///   store does not know its changes or the state before it any more; `unknownCommit`;
    ///   `schemaMismatch` when it, or the commit before, is from before the newest change of the
    ///   schema; `invalidRequest` when this context reads an earlier commit; `reentrantSave` inside
    ///   a save, a hook or an observer; `damaged`, `ioFailed`, `closed`. Then nothing was reverted.
    /// - Complexity: that of `newContext(at:)`, twice, and O(log n) for each changed row.
    @discardableResult
    public func revert(
        commit number: CommitNumber,
        policy: RevertPolicy = .error,
        undoActionName: String = ""
    ) throws -> [SkippedEdit] {
        try checkRevertable()
        processPendingDeletions()
        let shown = try currentSnapshot()
        let entry = try container.historyEntry(of: number)
        guard number <= shown.number else {
            throw StoreError(
                .invalidRequest,
                "commit \(number.rawValue) was to be reverted in a context that reads commit "
                    + "\(shown.number.rawValue)",
                place: .init(store: container.place, commit: number),
                suggestion: "Call advance() first."
            )
        }
        var first = number
        if case .together(let since) = entry.known { first = since }
        let owner = PinOwner(.context, label: "revert")
        let before = try container.pastSnapshot(
            at: .commit(CommitNumber(first.rawValue - 1)),
            for: owner
        )
        let after = try container.pastSnapshot(at: .commit(number), for: owner)
        var maker = CommitDelta(self, before: before, after: after)
        let delta = try maker.make(of: entry.changes)
        let plan = plan(delta, to: .before, overwrites: policy.kind == .overwrite)
        if policy.kind == .error, !plan.conflicts.isEmpty {
            throw revertConflict(plan.conflicts, number)
        }
        withUndoGroup(undoActionName) { _ = lay(plan, of: delta) }
        return plan.conflicts.map(skippedEdit)
    }

    /// Gives an object the attributes, relationships and orders that it had at an earlier commit,
    /// in this context and without a save. An object that was deleted comes back under its ID.
    ///
    /// What it has now is overwritten. Relationships that would lead to an object which is gone are
    /// left as they are, and told; members that are gone are left out.
    ///
    /// - Parameters:
    ///   - id: the object.
    ///   - point: the commit, moment or token.
    ///   - undoActionName: the name of the step that `undo()` takes back.
    /// - Returns: what was left as it is.
    /// - Throws: `StoreError`: `objectNotFound` when the object did not exist then; what
    ///   `newContext(at:)` throws; `wrongEntity`, `unknownEntity`; `reentrantSave` inside a save, a
    ///   hook or an observer. Then nothing was reverted.
    /// - Complexity: that of `newContext(at:)`, and O(members) for each to-many relationship.
    @discardableResult
    public func revert<Entity>(
        _ id: TypedObjectID<Entity>,
        to point: HistoryPoint,
        undoActionName: String = ""
    ) throws -> [SkippedEdit] {
        try revert(id.objectID.object, try container.check(id), to: point, undoActionName)
    }

    /// The same for an object of this context.
    /// - Throws: as for an ID; `crossContext` for an object of another context.
    @discardableResult
    public func revert(
        _ object: some ManagedObject,
        to point: HistoryPoint,
        undoActionName: String = ""
    ) throws -> [SkippedEdit] {
        guard object.storage.core === core else {
            throw StoreError(
                .crossContext,
                "an object of another context was to be reverted",
                place: .init(store: container.place, object: object.objectID),
                suggestion: "Revert it by its ID."
            )
        }
        let model = try container.check(object.objectID)
        return try revert(object.storage.object, model, to: point, undoActionName)
    }

    private func revert(
        _ id: ObjectID,
        _ model: EntityModel,
        to point: HistoryPoint,
        _ undoActionName: String
    ) throws -> [SkippedEdit] {
        try checkRevertable()
        processPendingDeletions()
        _ = try currentSnapshot()
        let past = try container.pastSnapshot(
            at: point,
            for: PinOwner(.context, label: "revert")
        )
        guard let delta = try delta(of: id, model, from: past) else {
            throw StoreError(
                .objectNotFound,
                "commit \(past.number.rawValue) has no such \(model.name)",
                place: .init(
                    store: container.place,
                    entity: model.name,
                    object: identity(model, id),
                    commit: past.number
                )
            )
        }
        let plan = plan(delta, to: .before, overwrites: true)
        withUndoGroup(undoActionName) { _ = lay(plan, of: delta) }
        return plan.conflicts.map(skippedEdit)
    }
}

extension PersistentContainer {
    /// What the log says of one commit, if it still says what it changed.
    func historyEntry(of number: CommitNumber) throws(StoreError) -> HistoryEntry {
        try checkOpen()
        let newest = try translating { () throws(RecordError) in try store.snapshot().number }
        guard number.rawValue > 0, number <= newest else {
            throw StoreError.unknownCommit(number, newest, self)
        }
        let oldest = try translating { () throws(RecordError) in
            try store.retainedCommits().lowerBound
        }
        let gone = StoreError.expired("what commit \(number.rawValue) changed", oldest, self)
        if number <= oldest { throw gone }
        var stream = try translating { () throws(RecordError) in
            try store.commits(after: CommitNumber(number.rawValue - 1))
        }
        let entry: HistoryEntry?
        do throws(EngineError) {
            entry = try stream.next()
        } catch {
            throw StoreError.translating(error, .init(store: place))
        }
        guard let entry, entry.summary.number == number else { throw gone }
        switch entry.known {
        case .exactly, .together: return entry
        case .later, .unknown: throw gone
        }
    }
}
