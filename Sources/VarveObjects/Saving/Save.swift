// THE SAVE PATH. One function of numbered steps; the work is in the steps.
//
// Invariants
// - A save that throws before its commit changes nothing: edits stand (C6).
// - When it returns, the commit is on disk, and the context reads it.

public import VarveBase
import VarveRecords

/// What a save did.
public struct SaveResult: Hashable, Sendable {
    /// The commit; nil if there was nothing to write.
    public let commit: CommitNumber?
    /// New objects that a constraint with `.upsert` or `.ignore` replaced, and the objects that
    /// stand in their place.
    public let replaced: [ManagedObjectID: ManagedObjectID]
}

extension ManagedObjectContext {
    /// Writes all unsaved edits as one commit. Durable when it returns. Afterwards the context
    /// reads the newest commit, this one included.
    ///
    /// - Parameter mergePolicy: what to do with objects that others changed meanwhile.
    /// - Throws: `StoreError`: `conflict`, `notUnique`, `missingValue`, `invalid`, `deleteDenied`,
    ///   `contextFailed`, `crossContext`, `readOnly`, `closed`, `diskFull`, `ioFailed`,
    ///   `outcomeUnknown`. Unless `outcome` says otherwise, nothing was saved and the edits stand.
    @discardableResult
    public func save(mergePolicy: MergePolicy = .error) throws -> SaveResult {
        // 1. checkSavable: a context that may not save says so before it does anything.
        try checkSavable()
        // 2. applyDeleteRules: cascade, nullify, deny and `willSave`, until nothing is added.
        applyDeleteRules()
        // 3. gatherChanges: inserted, changed, deleted objects and relationships, sorted.
        var changes = try gatherChanges()
        if changes.isEmpty { return SaveResult(commit: nil, replaced: [:]) }
        // 4. validate: all failures are collected into one error.

        try validate(changes)
        let writer = SaveWriter(context: self, policy: mergePolicy)
        let commit: CommitNumber?
        do {
            // 5. beginWrite: the writer lock; a transaction on the newest commit.
            (_, commit) = try container.store.write(author: author) { transaction in
                // 6. resolveConflicts: versions this context read against those in the store.
                try writer.resolveConflicts(changes, in: transaction)
                // 7. resolveDuplicates: new objects that a constraint replaces by existing ones.
                try writer.resolveDuplicates(changes, in: transaction)
                // 8. apply: rows and links change in the transaction.
                try writer.apply(changes, in: transaction)
                // 9. commit: leaving the closure writes and syncs, or nothing happened.
            }
        } catch {
            throw StoreError.translatingAny(error, in: container)
        }
        // 10. settle: objects become saved ones, the context moves on, others' changes are merged.
        try settle(&changes, writer)
        return SaveResult(commit: commit, replaced: writer.replacedIDs)
    }

}
