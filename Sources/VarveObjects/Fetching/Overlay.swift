// Unsaved edits of a context laid over what the store answers.
//
// Invariants
// - The list is the one that a save followed by a fetch would give.
// - Without edits of the entity the store's answer is used as it is.

import VarveBase
import VarveRecords

/// The values of an object of this context, edits first.
struct EditedValues: RecordValues {
    let object: any ManagedObject
    let snapshot: RecordSnapshot

    var objectID: ObjectID { object.storage.object }

    func value(_ column: ColumnID) throws(RecordError) -> StoredValue {
        if let slot = object.storage.model.slotsByColumn[column],
            let edited = object.storage.edits?.values[slot]
        {
            return edited
        }
        if object.isInserted { return .null }
        // An object with edits may be a fault: where a hook stands in the middle of a refresh.
        var stored = object.storage.row
        if stored == nil { stored = try snapshot.row(object.storage.model.record.id, objectID) }
        guard let row = stored else { return .null }
        if row.isOutside(column) { return try snapshot.value(of: row, column) }
        return try row.value(column)
    }
}

/// A row of the store, or an object with edits.
enum OverlayValues: RecordValues {
    case row(CachedRow, RecordSnapshot)
    case object(EditedValues)

    var objectID: ObjectID {
        switch self {
        case .row(let row, _): row.id
        case .object(let values): values.objectID
        }
    }

    func value(_ column: ColumnID) throws(RecordError) -> StoredValue {
        switch self {
        case .row(let row, let snapshot):
            if row.isOutside(column) { return try snapshot.value(of: row, column) }
            return try row.value(column)
        case .object(let values): return try values.value(column)
        }
    }
}

/// How a filter reaches other objects: edited ones first, then the store.
struct OverlayResolver: RecordResolver {
    let context: ManagedObjectContext
    let snapshot: RecordSnapshot

    func values(_ entity: EntityID, _ id: ObjectID) throws(RecordError) -> OverlayValues? {
        if let object = context.changed[id] {
            if object.storage.isDeleted { return nil }
            return .object(EditedValues(object: object, snapshot: snapshot))
        }
        return try snapshot.row(entity, id).map { .row($0, snapshot) }
    }

    func related(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        of id: ObjectID
    ) throws(RecordError) -> [ObjectID] {
        let model = context.container.schema.entity(entity.id)
        if let model, let slot = model.slot(named: relationship.name) {
            let isNew = context.changed[id]?.isInserted ?? false
            if relationship.isToMany {
                let base = isNew ? [] : try snapshot.relatedIDs(entity, relationship, of: id)
                let edit = context.toManyEdits[ToManyKey(owner: id, slot: slot)]
                let ids = edit?.members(over: base, commit: snapshot.number) ?? base
                return context.doomed.isEmpty
                    ? ids : ids.filter { context.doomed[$0] == nil }
            }
            if let object = context.changed[id] {
                let column = model.columns[slot]
                let values = EditedValues(object: object, snapshot: snapshot)
                guard case .reference(let target) = try values.value(column) else { return [] }
                return [target]
            }
            if isNew { return [] }
        }
        return try snapshot.relatedIDs(entity, relationship, of: id)
    }
}

extension ManagedObjectContext {
    /// Whether unsaved edits can change the answer.
    func touchesPending(_ plan: RequestPlan) -> Bool {
        guard plan.includesPendingChanges, hasEdits else { return false }
        processPendingDeletions()
        return plan.looksAtOthers || changed.values.contains { $0.storage.model === plan.model }
    }

    /// The place of an object in a request's order; edits count if the request includes them.
    func key(
        of id: ObjectID,
        _ plan: RequestPlan,
        _ snapshot: RecordSnapshot
    ) throws(StoreError) -> KeysetPosition {
        try container.translating { () throws(RecordError) in
            let entity = plan.model.record
            let sort = try CompiledSort(plan.query.sort, entity: entity, schema: snapshot.schema)
            func key(_ resolver: some RecordResolver) throws(RecordError) -> KeysetPosition {
                guard let values = try resolver.values(entity.id, id) else {
                    return KeysetPosition(values: [], object: id)
                }
                return try sort.key(values, resolver)
            }
            if !plan.includesPendingChanges { return try key(snapshot) }
            return try key(OverlayResolver(context: self, snapshot: snapshot))
        }
    }

    /// The store's list without the objects that edits reach, and those of them that match put in
    /// at their places.
    /// - Complexity: that of the stored list, and O(log n) for each object that edits reach.
    func overlaid(
        _ request: RecordQuery,
        _ model: EntityModel,
        _ snapshot: RecordSnapshot
    ) throws(RecordError) -> [ObjectID] {
        let request = try answered(request, snapshot)
        let resolver = OverlayResolver(context: self, snapshot: snapshot)
        let entity = model.record
        let filter = try CompiledPredicate(
            request.predicate,
            entity: entity,
            schema: snapshot.schema
        )
        let sort = try CompiledSort(request.sort, entity: entity, schema: snapshot.schema)
        let edited = try reach(PathTree(request), model, snapshot)
        var matching: [KeysetPosition] = []
        for id in edited {
            guard let values = try resolver.values(entity.id, id),
                try filter.matches(values, resolver)
            else { continue }
            let key = try sort.key(values, resolver)
            if !has(.windowIgnoresTheCursor) {
                if let after = request.after, !sort.precedes(after, key) { continue }
                if let before = request.before, !sort.precedes(key, before) { continue }
            }
            matching.append(key)
        }
        var query = request
        query.offset = 0
        query.limit = request.limit.map { limit in
            let rest = request.offset.addingReportingOverflow(edited.count)
            let all = limit.addingReportingOverflow(rest.partialValue)
            return rest.overflow || all.overflow ? Int.max : all.partialValue
        }
        let stored = try snapshot.fetchIDs(query).filter { !edited.contains($0) }
        matching.sort { sort.precedes($0, $1) }
        // Matching objects go in from the front; each is found by halving what is left.
        var merged: [ObjectID] = []
        merged.reserveCapacity(stored.count + matching.count)
        var start = 0
        for key in matching {
            var (low, high) = (start, stored.count)
            while low < high {
                let middle = (low + high) / 2
                let other = try storedKey(stored[middle], request, model, sort, snapshot)
                if sort.precedes(other, key) { low = middle + 1 } else { high = middle }
            }
            merged += stored[start..<low]
            merged.append(key.object)
            start = low
        }
        merged += stored[start...]
        return request.cut(merged)
    }

    private func storedKey(
        _ id: ObjectID,
        _ request: RecordQuery,
        _ model: EntityModel,
        _ sort: CompiledSort,
        _ snapshot: RecordSnapshot
    ) throws(RecordError) -> KeysetPosition {
        guard !request.sort.isEmpty, let row = try snapshot.row(model.record.id, id) else {
            return KeysetPosition(values: [], object: id)
        }
        return try sort.key(OverlayValues.row(row, snapshot), snapshot)
    }
}
