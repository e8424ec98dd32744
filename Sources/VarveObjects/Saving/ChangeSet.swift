// What one save is about to write, gathered from a context in a fixed order.
//
// Invariants
// - Objects stand in the order of their IDs, relationships in that of owner and slot: no dictionary
//   order reaches the store.

import VarveBase
import VarveRecords

/// The unsaved edits of a context, sorted.
struct ChangeSet {
    var inserted: [any ManagedObject] = []
    var updated: [any ManagedObject] = []
    var deleted: [any ManagedObject] = []
    var relationships: [ToManyEdit] = []
    var denials: [StoreError.Detail] = []

    var isEmpty: Bool {
        inserted.isEmpty && updated.isEmpty && deleted.isEmpty && relationships.isEmpty
    }
}

extension ManagedObjectContext {
    /// Throws when nothing may be saved at all: read-only, closed, objects of two contexts joined.
    func checkSavable() throws(StoreError) {
        try checkWritable()
        if let misuse { throw misuse }
    }

    /// Throws when the store may not be written.
    func checkWritable() throws(StoreError) {
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
        processPendingChanges()
        var told: Set<ObjectID> = []
        var entries = -1
        while entries != changedEntries {
            entries = changedEntries
            let ids = changed.keys.filter { !told.contains($0) }.sorted()
            for id in ids { changed[id]?.willSave() }
            processPendingChanges()
            if entries != changedEntries { told.formUnion(ids) }
        }
    }

    /// Collects the edits, sorted. Throws if an implicit read failed: edits may rest on what was
    /// never read.
    func gatherChanges() throws(StoreError) -> ChangeSet {
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
        var changes = ChangeSet()
        for id in changed.keys.sorted() {
            guard let object = changed[id] else { continue }
            if object.storage.state.contains(.deleted) {
                changes.deleted.append(object)
            } else if object.isInserted {
                changes.inserted.append(object)
            } else {
                changes.updated.append(object)
            }
        }
        changes.relationships = toManyEdits.sorted {
            ($0.key.owner, $0.key.slot) < ($1.key.owner, $1.key.slot)
        }.map(\.value)
        changes.denials = standingDenials()
        return changes
    }
}
