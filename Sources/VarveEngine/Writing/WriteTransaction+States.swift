// States around a transaction: one frozen on the way, one of the past that comes back, and which
// objects differ between its beginning and its end.
//
// Invariants
// - What is frozen is complete: nothing of it waits, and every value lies in the file.

public import VarveBase
internal import VarveFormat

extension WriteTransaction {
    /// The state of now, kept beside what the transaction goes on to change. Rows, entries and
    /// blobs of it can be read until the transaction ends.
    ///
    /// - Throws: what the changes so far fail with, `noSpace`, `ioFailed`.
    /// - Complexity: O(what waits). Nodes that are changed afterwards are copied first.
    public func frozen() throws(EngineError) -> FrozenState {
        try placeValues()
        var state: StoreState?
        try change { () throws(EngineError) in state = try editor.freeze(next: takeStamp()) }
        guard let state else { preconditionFailure("a state was made, or an error thrown") }
        return FrozenState(state, spill.engine)
    }

    /// Writes the large values and small blobs of this transaction that are in memory only, so that
    /// they cost none. The commit then is one of trees.
    ///
    /// - Throws: `noSpace`, `ioFailed`: the transaction cannot go on.
    public func placeValues() throws(EngineError) {
        try change { () throws(EngineError) in
            if try spill.place(valuesOf: editor) { needsTree = true }
        }
    }

    /// Makes the rows, entries and values what they were at an earlier commit. The catalog stays.
    ///
    /// - Throws: `notRetained` when the file of one of its blobs is gone; `damaged`, `ioFailed`.
    /// - Complexity: O(pages and blobs that differ).
    ///
    /// - Parameters:
    ///   - past: the commit, of the store's present file.
    ///   - entities: the trees of rows of both schemas: their differences are what the commit
    ///     changes.
    public func restoreTrees(
        from past: Snapshot,
        entities: [(EntityID, TreeID)]
    ) throws(EngineError) {
        try change { () throws(EngineError) in
            needsTree = true
            for (entity, tree) in entities {
                var difference = TreeDifference(
                    from: try editor.tree(tree),
                    to: past.state.tree(tree, loader)
                )
                while let row = try difference.next() {
                    let object = try StateEditor.object(row.key)
                    switch (row.before, row.after) {
                    case (nil, _): changes[entity].inserted.add(object)
                    case (_, nil): changes[entity].deleted.add(object)
                    default: changes[entity].updated.add(object)
                    }
                    operationCount += 1
                }
            }
            try editor.restore(from: past.state, spill.engine.blobStore)
        }
    }

    // MARK: What changed

    /// Each changed object once: what a reader of the commit before must forget.
    func changedObjects() throws(EngineError) -> [ChangedObjects] {
        var lists: [ChangedObjects] = []
        func append(
            _ entity: EntityID,
            _ inserted: ObjectIDSet,
            _ updated: ObjectIDSet,
            _ deleted: ObjectIDSet
        ) {
            let parts: [(RowChangeKind, ObjectIDSet)] = [
                (.inserted, inserted), (.updated, updated), (.deleted, deleted),
            ]
            for (kind, objects) in parts where !objects.isEmpty {
                lists.append(ChangedObjects(entity: entity, kind: kind, objects: objects))
            }
        }
        for (entity, change) in changes.sorted {
            var change = change
            var inserted = change.inserted.finish()
            var deleted = change.deleted.finish()
            var updated = change.updated.finish().subtracting(inserted).subtracting(deleted)
            // What was both inserted and deleted here: only before and after count.
            let both = inserted.intersection(deleted)
            if !both.isEmpty {
                var kinds: [RowChangeKind: ObjectIDCollector] = [:]
                // An entity that came and went leaves nothing to tell.
                guard let tree = try? editor.rowTree(entity) else {
                    deleted = deleted.subtracting(both)
                    append(entity, ObjectIDSet(), ObjectIDSet(), deleted)
                    continue
                }
                let (old, new) = (editor.originTree(tree), try editor.tree(tree))
                for object in both {
                    let kind: RowChangeKind
                    switch (try old.row(object) != nil, try new.row(object) != nil) {
                    case (false, false): continue
                    case (false, true): kind = .inserted
                    case (true, true): kind = .updated
                    case (true, false): kind = .deleted
                    }
                    kinds[kind, default: ObjectIDCollector()].add(object)
                }
                func found(_ kind: RowChangeKind) -> ObjectIDSet {
                    kinds[kind]?.finish() ?? ObjectIDSet()
                }
                inserted = inserted.subtracting(both).union(found(.inserted))
                updated = updated.union(found(.updated))
                deleted = deleted.subtracting(both).union(found(.deleted))
            }
            append(entity, inserted, updated, deleted)
        }
        return lists
    }
}

/// The objects that one transaction changes.
struct TransactionChanges {
    struct Objects {
        var inserted = ObjectIDCollector()
        var updated = ObjectIDCollector()
        var deleted = ObjectIDCollector()
    }

    private var list: [(entity: EntityID, objects: Objects)] = []
    /// Where the one before went: rows of one entity come together.
    private var last = 0

    /// Those of one entity; it is among the changed ones then.
    subscript(entity: EntityID) -> Objects {
        mutating get { list[place(of: entity)].objects }
        _modify {
            let place = place(of: entity)
            yield &list[place].objects
        }
    }

    private mutating func place(of entity: EntityID) -> Int {
        if last < list.count, list[last].entity == entity { return last }
        if let place = list.firstIndex(where: { $0.entity == entity }) {
            last = place
        } else {
            last = list.count
            list.append((entity, Objects()))
        }
        return last
    }

    /// By entity.
    var sorted: [(entity: EntityID, objects: Objects)] { list.sorted { $0.entity < $1.entity } }
}
