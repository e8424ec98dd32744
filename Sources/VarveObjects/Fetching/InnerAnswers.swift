// Requests inside filters, answered as this context sees them: unsaved edits counted.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// Requests inside requests inside requests: no further.
    private static var nestingMax: Int { 16 }

    /// A query with the objects of the requests inside its filter in their place.
    /// - Complexity: that of the requests inside.
    func answered(
        _ query: RecordQuery,
        _ snapshot: RecordSnapshot,
        nesting: Int = 0
    ) throws(RecordError) -> RecordQuery {
        guard query.predicate.hasRequests else { return query }
        var query = query
        query.predicate = try query.predicate.answeringRequests { (inner) throws(RecordError) in
            if nesting >= Self.nestingMax {
                throw .unsupportedPredicate("requests are nested deeper than \(Self.nestingMax)")
            }
            let inside = try inner.query(snapshot.schema)
            guard inner.includesEdits, hasEdits else { return try snapshot.fetchIDs(inside) }
            guard let model = schema.entity(inside.entity) else {
                throw .unknownEntity(inner.entity)
            }
            let known = try answered(inside, snapshot, nesting: nesting + 1)
            return try overlaid(known, model, snapshot)
        }
        return query
    }

    /// The entities that the requests inside a filter look at.
    func entities(insideOf predicate: Predicate, nesting: Int = 0) -> Set<EntityID> {
        var all: Set<EntityID> = []
        predicate.eachRequest { inner in
            guard nesting < Self.nestingMax,
                let entity = schema.record.entity(named: inner.entity),
                let model = schema.entity(entity.id)
            else { return }
            var query = RecordQuery(entity: model.record.id, predicate: inner.predicate)
            query.sort = inner.sort
            all.formUnion(LiveStep.entities(PathTree(query), model, schema))
            all.formUnion(entities(insideOf: inner.predicate, nesting: nesting + 1))
        }
        return all
    }
}
