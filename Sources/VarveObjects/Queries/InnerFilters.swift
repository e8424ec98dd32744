// Filters over the objects that another request gives: `$0.folder.isIn(Folder.where { ... })`.

import VarveBase
import VarveRecords

extension ToOneColumn {
    /// The relationship leads to one of the objects that a request gives; nil leads to none.
    ///
    /// The request is answered once for each fetch, by its own plan. Unsaved edits count on both
    /// sides, unless either says `includingPendingChanges(false)`. How its objects come is of no
    /// account.
    /// - Parameter request: which objects; order, limit and offset included.
    /// - Complexity: that of the request, and O(log n) for each of its objects with an index of the
    ///   relationship.
    public func isIn(_ request: FetchDescriptor<Target>) -> TypedPredicate<Root> {
        TypedPredicate(.isInRequest(_definition.path, InnerRequest(request)))
    }

    /// The relationship leads to one of these objects; nil leads to none.
    public func isIn(_ ids: some Sequence<Target.ID>) -> TypedPredicate<Root> {
        TypedPredicate(.isIn(_definition.path, ids.map { .reference($0.objectID.object) }))
    }
}

extension TypedPredicate {
    /// The object is one of those that a request gives: `Item.where { _ in .isIn(newest) }`.
    /// - Parameter request: which objects; order, limit and offset included.
    /// - Complexity: that of the request.
    public static func isIn(_ request: FetchDescriptor<Root>) -> TypedPredicate {
        TypedPredicate(.isInRequest(.object, InnerRequest(request)))
    }

    /// The object is one of these.
    public static func isIn(_ ids: some Sequence<Root.ID>) -> TypedPredicate {
        TypedPredicate(.isIn(.object, ids.map { .reference($0.objectID.object) }))
    }
}

extension InnerRequest {
    init<Entity>(_ request: FetchDescriptor<Entity>) {
        self.init(entity: Entity.entityName, predicate: request.filter.predicate)
        sort = request.storedOrder
        (limit, offset) = (request.limit, request.offset)
        includesEdits = request.includesPendingChanges
        let fingerprint = RequestPlan.fingerprint(predicate, sort)
        func place(_ cursor: FetchCursor?) -> KeysetPosition? {
            guard let cursor else { return nil }
            if cursor.entity == Entity.entityName, cursor.fingerprint == fingerprint {
                return cursor.position
            }
            // Of another request: with a value too many it is refused as such when it is asked.
            let values = Array(repeating: StoredValue.null, count: sort.count + 1)
            return KeysetPosition(values: values, object: cursor.position.object)
        }
        (after, before) = (place(request.afterCursor), place(request.beforeCursor))
    }
}
