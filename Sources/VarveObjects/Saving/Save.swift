// THE SAVE PATH. One function of numbered steps; the work is in the steps.
//
// Invariants
// - A save that throws before its commit changes nothing: edits stand.
// - When it returns, the commit is on disk, and the context reads it.

public import VarveBase
import VarveRecords

/// What a save did.
public struct SaveResult: Hashable, Sendable {
    /// The commit; nil if nothing was written: there were no edits, or a policy gave all up.
    public let commit: CommitNumber?
    /// New objects that a constraint with `.upsert` or `.ignore` replaced, and the objects that
    /// stand in their place.
    public let replaced: [ManagedObjectID: ManagedObjectID]
}

extension ManagedObjectContext {
    /// Writes all unsaved edits as one commit. Durable when it returns. Afterwards the context
    /// reads the newest commit, this one included.
    ///
    /// The edits are judged on the newest commit: what others saved meanwhile counts.
    ///
    /// - Parameter mergePolicy: what to do with objects that others changed or deleted meanwhile.
    /// - Throws: `StoreError`: `conflict`, `notUnique`, `missingValue`, `invalid`, `deleteDenied`,
    ///   `contextFailed`, `readOnly`, `busy`, `closed`, `diskFull`, `ioFailed`, `outcomeUnknown`;
    ///   of refused edits `objectDeleted`, `crossContext`, `reentrantSave`, `invalid`,
    ///   `invalidRequest`, `unknownEntity`; `reentrantSave` inside a save or `prepareForDeletion`
    ///   of this context, in observers of what its delete rules do, and in closures that run while
    ///   the store is being written; what a custom policy throws. Unless `outcome` says
    ///   otherwise, nothing was saved and the edits stand.
    /// - Complexity: O(edits), and what deletions reach; O(log n) for each row and index entry.
    @discardableResult
    public func save(mergePolicy: MergePolicy = .error) throws -> SaveResult {
        var timer = SaveTimer(self)
        do { return try save(mergePolicy, &timer) } catch {
            // Nothing, if it failed behind its commit: that was told already.
            timer?.end(nil, error)
            throw error
        }
    }

    private func save(
        _ mergePolicy: MergePolicy,
        _ timer: inout SaveTimer?
    ) throws -> SaveResult {
        // 1. checkSavable: a context that may not save says so before it does anything.
        try checkSavable()
        phase = .preparing
        defer {
            phase = .idle
            moveLive()
        }
        // 2. applyDeleteRules: cascade, nullify and `willSave`, until nothing is added.
        applyDeleteRules()
        try container.checkOpen()
        // 3. gatherChanges: inserted, changed, deleted objects, sorted; failed reads are said.
        var changes = try gatherChanges()
        if changes.isEmpty { return savedNothing() }
        phase = .writing
        timer?.counts(changes)
        // 4. validate: `deny` and the app's own checks; all failures in one error.
        try validate(&changes)
        timer?.waits()
        var plan: SavePlan?
        var reached: ReachedDeletions?
        let commit: CommitNumber?
        do {
            // 5. beginWrite: the writer lock; a transaction on the newest commit.
            (_, commit) = try container.store.write(author: author) { transaction in
                timer?.beginsToWrite()
                // 6. plan: the journal over the newest commit; conflicts, duplicates and delete
                //    rules are judged there.
                var planner = SavePlanner(self, mergePolicy, changes, transaction)
                let decided = try planner.plan()
                (plan, changes.updated) = (decided, changes.updated + decided.linked)
                reached = try reachedDeletions(decided, changes)
                // 7. write: rows and links change in the transaction.
                let writer = SaveWriter(
                    context: self,
                    changes: changes,
                    plan: decided,
                    transaction: transaction
                )
                try writer.write()
                // 8. commit: leaving the closure writes and syncs, or nothing happened.
            }
        } catch {
            throw StoreError.translatingAny(error, in: container)
        }
        timer?.end(commit)
        guard let plan else { preconditionFailure("a transaction ran without its body") }
        // 9. finishSave: objects become saved ones, the context moves on and merges what others
        //    changed.
        let replaced = replacedIDs(changes, plan.rulings)
        phase = .settled
        try finishSave(&changes, plan, commit, reached)
        return SaveResult(commit: commit, replaced: replaced)
    }

    /// A save without a commit ends and moves what every save does.
    private func savedNothing() -> SaveResult {
        relied = [:]
        advance()
        return SaveResult(commit: nil, replaced: [:])
    }

    private func replacedIDs(
        _ changes: ChangeSet,
        _ rulings: Rulings
    ) -> [ManagedObjectID: ManagedObjectID] {
        var ids: [ManagedObjectID: ManagedObjectID] = [:]
        for object in changes.inserted {
            guard let other = rulings.replaced[object.storage.object] else { continue }
            ids[object.objectID] = identity(object.storage.model, other)
        }
        return ids
    }
}
