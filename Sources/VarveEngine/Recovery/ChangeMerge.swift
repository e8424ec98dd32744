// Several changes of one object as one.
//
// Invariants
// - An object is in at most one of the three sets of its entity. What `few` says comes after them.
// - What a transaction inserted and another deleted is in none.

internal import VarveBase
internal import VarveFormat

/// Changes of many commits, oldest first, each object once.
///
/// Few objects at a time are kept one by one, many as sets: a commit of ten million rows costs what
/// its list costs.
struct ChangeMerge {
    private struct Sets {
        var inserted = ObjectIDSet()
        var updated = ObjectIDSet()
        var deleted = ObjectIDSet()
    }
    private var sets: [EntityID: Sets] = [:]
    private var few: [EntityID: [ObjectID: RowChangeKind]] = [:]
    private var fewCount = 0
    /// Runs of all sets at the last merge.
    private var runCount = 0

    /// Lists of more objects are merged as sets, and so are as many objects that came one by one.
    static let fewMax = 1 << 16

    /// Adds the changes of a commit, which is behind all that were added before.
    /// - Complexity: O(objects) for few of them, else O(runs of all sets).
    mutating func add(_ list: ChangedObjects) {
        if list.objects.count > Self.fewMax {
            mergeFew()
            merge(list)
        } else {
            for object in list.objects { add(list.entity, object, list.kind) }
        }
    }

    /// Adds one change.
    mutating func add(_ entity: EntityID, _ object: ObjectID, _ kind: RowChangeKind) {
        let merged: RowChangeKind? =
            switch (few[entity]?[object], kind) {
            case (nil, _): kind
            case (.inserted, .deleted): nil
            case (.inserted, _): .inserted
            case (.deleted, .inserted): .updated
            case (_, .deleted): .deleted
            case (.updated, _), (.deleted, .updated): .updated
            }
        few[entity, default: [:]][object] = merged
        fewCount += 1
        // As many as the sets have runs: each merge goes through all of them.
        if fewCount > max(Self.fewMax, runCount / 2) { mergeFew() }
    }

    /// Ascending by entity, kind and object.
    var lists: [ChangedObjects] {
        var whole = self
        whole.mergeFew()
        return whole.sets.keys.sorted().flatMap { entity in
            let sets = whole.sets[entity] ?? Sets()
            let parts: [(RowChangeKind, ObjectIDSet)] = [
                (.inserted, sets.inserted), (.updated, sets.updated), (.deleted, sets.deleted),
            ]
            return parts.filter { !$0.1.isEmpty }.map { kind, objects in
                ChangedObjects(entity: entity, kind: kind, objects: objects)
            }
        }
    }

    private mutating func mergeFew() {
        for (entity, kinds) in few {
            // In any order: each object is in one list.
            for kind in [RowChangeKind.inserted, .updated, .deleted] {
                let objects = ObjectIDSet(kinds.lazy.filter { $0.value == kind }.map(\.key))
                merge(ChangedObjects(entity: entity, kind: kind, objects: objects))
            }
        }
        few = [:]
        fewCount = 0
        runCount = sets.values.reduce(0) {
            $0 + $1.inserted.runs.count + $1.updated.runs.count + $1.deleted.runs.count
        }
    }

    private mutating func merge(_ list: ChangedObjects) {
        let objects = list.objects
        if objects.isEmpty { return }
        var now = sets[list.entity] ?? Sets()
        switch list.kind {
        case .inserted:
            let again = now.deleted.intersection(objects)
            now.deleted = now.deleted.subtracting(again)
            now.inserted = now.inserted.union(objects.subtracting(again).subtracting(now.updated))
            now.updated = now.updated.union(again)
        case .updated:
            now.deleted = now.deleted.subtracting(objects)
            now.updated = now.updated.union(objects.subtracting(now.inserted))
        case .deleted:
            let gone = now.inserted.intersection(objects)
            now.inserted = now.inserted.subtracting(gone)
            now.updated = now.updated.subtracting(objects)
            now.deleted = now.deleted.union(objects.subtracting(gone))
        }
        sets[list.entity] = now
    }
}
