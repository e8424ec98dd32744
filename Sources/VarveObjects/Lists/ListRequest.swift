// A request with its names resolved: what says whether an object is in a list, and where.
//
// Invariants
// - An object is in the list when it passes the filter and lies between the request's cursors.
// - The place of an object is its values of the sort terms and its ID: two objects never share one.

import VarveBase
import VarveRecords

struct ListRequest {
    let model: EntityModel
    /// Requests inside its filter are answered: their objects stand in their place.
    let query: RecordQuery
    /// The filter as it was asked, if there are requests inside it; nil: there are none.
    private let asked: Predicate?
    /// Whether unsaved edits may have been counted when requests inside the filter were answered.
    private let countedEdits: Bool
    /// The relationships that filter and order go along.
    let paths: PathTree
    let includesPending: Bool
    let sort: CompiledSort
    let window: ListWindow
    private let filter: CompiledPredicate

    /// - Parameters:
    ///   - plan: the request.
    ///   - sectionTerm: goes in front of the sort terms.
    ///   - context: whose edits count.
    ///   - snapshot: answers the requests inside the filter.
    init(
        _ plan: RequestPlan,
        sectionTerm: VarveRecords.SortTerm? = nil,
        _ context: ManagedObjectContext,
        _ snapshot: RecordSnapshot
    ) throws(RecordError) {
        var query = plan.query
        query.predicate = plan.filter
        if let sectionTerm { query.sort.insert(sectionTerm, at: 0) }
        try self.init(
            query,
            plan.model,
            includesPending: plan.includesPendingChanges,
            context,
            snapshot
        )
    }

    private init(
        _ asked: RecordQuery,
        _ model: EntityModel,
        includesPending: Bool,
        _ context: ManagedObjectContext,
        _ snapshot: RecordSnapshot
    ) throws(RecordError) {
        self.model = model
        self.includesPending = includesPending
        self.asked = asked.predicate.hasRequests ? asked.predicate : nil
        countedEdits = self.asked != nil && includesPending && context.hasEdits
        var query = asked
        if self.asked != nil {
            query =
                includesPending
                ? try context.answered(asked, snapshot) : try snapshot.answered(asked)
        }
        self.query = query
        paths = PathTree(query)
        window = ListWindow(query)
        sort = try CompiledSort(query.sort, entity: model.record, schema: snapshot.schema)
        filter = try CompiledPredicate(
            query.predicate,
            entity: model.record,
            schema: snapshot.schema
        )
    }

    /// The entities whose commits and edits can change the list.
    func entities(_ context: ManagedObjectContext) -> Set<EntityID> {
        let all = LiveStep.entities(paths, model, context.schema)
        return asked.map { all.union(context.entities(insideOf: $0)) } ?? all
    }

    /// Whether the list may change when unsaved edits go, whatever objects they reach.
    var dependsOnEdits: Bool { countedEdits }

    /// Whether there are requests inside the filter.
    var hasRequests: Bool { asked != nil }

    /// The request as it is at another commit, or with other edits; nil: nothing inside it changed.
    func renewed(
        _ context: ManagedObjectContext,
        _ snapshot: RecordSnapshot
    ) throws(RecordError) -> ListRequest? {
        guard let asked else { return nil }
        var query = query
        query.predicate = asked
        let newer = try ListRequest(
            query,
            model,
            includesPending: includesPending,
            context,
            snapshot
        )
        return newer.query.predicate == self.query.predicate ? nil : newer
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
