// A request with its names resolved: what says whether an object is in a list, and where.
//
// Invariants
// - An object is in the list when it passes the filter and lies between the request's cursors.
// - The place of an object is its values of the sort terms and its ID: two objects never share one.

import VarveBase
import VarveRecords

struct ListRequest {
    let model: EntityModel
    let query: RecordQuery
    /// The relationships that filter and order go along.
    let paths: PathTree
    let includesPending: Bool
    let sort: CompiledSort
    let window: ListWindow
    private let filter: CompiledPredicate

    /// - Parameter sectionTerm: goes in front of the sort terms.
    init(
        _ plan: RequestPlan<some ManagedObject>,
        sectionTerm: VarveRecords.SortTerm? = nil,
        _ schema: RecordSchema
    ) throws(RecordError) {
        var query = plan.query
        if let sectionTerm { query.sort.insert(sectionTerm, at: 0) }
        model = plan.model
        self.query = query
        paths = PathTree(query)
        includesPending = plan.descriptor.includesPendingChanges
        window = ListWindow(query)
        let entity = plan.model.record
        sort = try CompiledSort(query.sort, entity: entity, schema: schema)
        filter = try CompiledPredicate(query.predicate, entity: entity, schema: schema)
    }

    /// Where an object is in the list; nil: it is not in it.
    func place(
        _ values: some RecordValues,
        _ resolver: some RecordResolver
    ) throws(RecordError) -> KeysetPosition? {
        guard try filter.matches(values, resolver) else { return nil }
        let key = try sort.key(values, resolver)
        if let after = query.after, !sort.precedes(after, key) { return nil }
        if let before = query.before, !sort.precedes(key, before) { return nil }
        return key
    }

    /// Where the row of a commit is in that commit's list.
    func place(
        _ row: CachedRow?,
        _ snapshot: RecordSnapshot
    ) throws(RecordError) -> KeysetPosition? {
        guard let row else { return nil }
        return try place(SnapshotRow(row: row, snapshot: snapshot), snapshot)
    }

    /// The place of an object that is in the list of a commit.
    func key(
        of id: ObjectID,
        _ snapshot: RecordSnapshot
    ) throws(RecordError) -> KeysetPosition {
        if query.sort.isEmpty { return KeysetPosition(values: [], object: id) }
        guard let row = try snapshot.row(model.record.id, id) else {
            throw .objectNotFound(entity: model.name, object: id)
        }
        return try sort.key(SnapshotRow(row: row, snapshot: snapshot), snapshot)
    }

    /// How many stored objects come before a place.
    func rank(
        of place: KeysetPosition,
        in source: ListSource,
        _ snapshot: RecordSnapshot
    ) throws(RecordError) -> Int {
        try source.rank(of: place, sort) { id throws(RecordError) in try key(of: id, snapshot) }
    }

    /// How many objects of a patched list come before a place, without regard to the window.
    func offset(
        of place: KeysetPosition,
        in list: ObjectList,
        _ snapshot: RecordSnapshot
    ) throws(RecordError) -> Int {
        let rank = try rank(of: place, in: list.source, snapshot)
        let inserted = list.patch.inserted.firstPlace { !sort.precedes($0.key, place) }
        return rank - list.patch.removed(below: rank) + inserted
    }
}

extension ManagedObjectContext {
    /// What the unsaved edits make of a stored list.
    /// - Complexity: O(edits that reach it x log n).
    func patch(
        _ request: ListRequest,
        over source: ListSource,
        _ snapshot: RecordSnapshot
    ) throws(RecordError) -> ListPatch {
        var patch = ListPatch()
        guard request.includesPending, hasEdits else { return patch }
        let resolver = OverlayResolver(context: self, snapshot: snapshot)
        let entity = request.model.record.id
        patch.reached = try reach(request.paths, request.model, snapshot)
        for id in patch.reached {
            if !isUnsaved(id),
                let stored = try request.place(try snapshot.row(entity, id), snapshot)
            {
                let rank = try request.rank(of: stored, in: source, snapshot)
                guard rank < source.count else {
                    throw .invalidRequest("an index does not agree with the rows of the list")
                }
                patch.removed.append(rank)
            }
            guard let values = try resolver.values(entity, id),
                let key = try request.place(values, resolver)
            else { continue }
            patch.inserted.append((key, try request.rank(of: key, in: source, snapshot)))
        }
        patch.removed.sort()
        patch.inserted.sort { request.sort.precedes($0.key, $1.key) }
        return patch
    }

    /// The list of a request at a commit, unsaved edits laid over.
    func list(
        _ request: ListRequest,
        _ snapshot: RecordSnapshot,
        following feed: LiveFeed? = nil
    ) throws(RecordError) -> ObjectList {
        let source = try ListSource.find(request.query, snapshot, following: feed)
        return ObjectList(
            source: source,
            patch: try patch(request, over: source, snapshot),
            window: request.window
        )
    }
}
