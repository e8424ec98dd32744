// What one save is about to write, gathered from a context in a fixed order.
//
// Invariants
// - Objects stand in the order of their IDs: no dictionary order reaches the store. Relationships
//   come from the journal, in the order of the app's calls.

import VarveBase
import VarveRecords

/// The objects with unsaved edits, sorted.
struct ChangeSet {
    var inserted: [any ManagedObject] = []
    var updated: [any ManagedObject] = []
    var deleted: [any ManagedObject] = []
    /// Those of `inserted` that others' commit put in the reach of a deletion. They are shown as
    /// deleted; the newest commit decides.
    var phantoms: Set<ObjectID> = []
    /// What checks say against them, should they be saved after all.
    var phantomFailures: [ObjectID: [StoreError.Detail]] = [:]
    /// Whether lists changed, or something was wanted that could not be had.
    var hasOtherEdits = false

    var isEmpty: Bool {
        inserted.isEmpty && updated.isEmpty && deleted.isEmpty && !hasOtherEdits
    }

    var onlyInserts: Bool { updated.isEmpty && deleted.isEmpty }
}

extension ManagedObjectContext {
    /// Throws when nothing may be saved at all: inside another save, read-only, edits refused.
    func checkSavable() throws(StoreError) {
        guard phase == .idle, hookObject == nil, !isDeleting, observersTold == 0 else {
            throw StoreError(
                .reentrantSave,
                "save was called inside a save, a hook or an observer of the same context",
                place: .init(store: container.place),
                suggestion: "Edit only: what willSave changes is saved with the rest; what didSave "
                    + "changes belongs to the next save, which begins when this one, or the "
                    + "observer, has returned."
            )
        }
        guard openTransactions == 0 else {
            throw StoreError(
                .reentrantSave,
                "save was called inside a transaction of the same context, which may still be "
                    + "taken back",
                place: .init(store: container.place),
                suggestion: "Save when transaction { } has returned."
            )
        }
        try checkWritable()
        try checkRefusals()
    }

    /// Throws when the store may not be written.
    func checkWritable() throws(StoreError) {
        try container.checkOpen()
        if branchState != nil { throw .branchWrites(container.place) }
        try checkIsOfThePresent()
        if container.options.isReadOnly {
            throw StoreError(
                .readOnly,
                "the store was opened for reading only",
                place: .init(store: container.place),
                suggestion: "Open it without isReadOnly to write."
            )
        }
    }

    /// Runs delete rules and calls `willSave`, which may change more objects, until nothing is
    /// added.
    func applyDeleteRules() {
        processPendingDeletions()
        var told: Set<ObjectID> = []
        var entries = -1
        while entries != changedEntries {
            entries = changedEntries
            let ids = changed.keys.filter { !told.contains($0) }.sorted()
            for id in ids {
                guard let object = changed[id], !isPhantom(object) else { continue }
                object.willSave()
            }
            processPendingDeletions()
            if entries != changedEntries { told.formUnion(ids) }
        }
    }

    /// Collects the edits, sorted. Throws if an implicit read failed: edits may rest on what was
    /// never read.
    func gatherChanges() throws(StoreError) -> ChangeSet {
        try checkFailures()
        try checkRefusals()
        var changes = ChangeSet()
        for id in changed.keys.sorted() {
            guard let object = changed[id] else { continue }
            if isPhantom(object), !has(.phantomsAreDeleted) {
                changes.inserted.append(object)
                changes.phantoms.insert(id)
            } else if object.storage.state.contains(.deleted) {
                changes.deleted.append(object)
            } else if object.isInserted {
                changes.inserted.append(object)
            } else {
                changes.updated.append(object)
            }
        }
        changes.hasOtherEdits = !toManyEdits.isEmpty || !lostTargets.isEmpty
        return changes
    }

    /// Whether an object is new, and others' commit put it in the reach of a deletion: those that
    /// this context itself deletes end at once.
    func isPhantom(_ object: any ManagedObject) -> Bool {
        object.isInserted && isDoomed(object.storage.object)
    }

    /// Throws if an implicit read failed.
    func checkFailures() throws(StoreError) {
        if let failure = failureList.first {
            throw StoreError(
                .contextFailed,
                "a value could not be read earlier, and edits may rest on it: "
                    + failure.error.message,
                place: failure.error.place,
                cause: failure.error,
                suggestion: "rollback() drops the edits; acknowledgeReadFailures() keeps those of "
                    + "other objects."
            )
        }
    }
}
