// Deleting many rows without objects, with the relationships' rules.
//
// Invariants
// - What a cascade reaches is known before the first row changes, so `deny` is judged on the whole.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// Deletes every row that a request finds, without making objects.
    ///
    /// Delete rules hold as for objects: cascades are followed, inverses forget the deleted rows,
    /// and a `deny` that stands fails the batch. `prepareForDeletion` is not called. The request is
    /// answered by the newest commit; unsaved edits of this context do not count.
    ///
    /// - Parameters:
    ///   - request: which rows.
    ///   - rowsPerCommit: see `batchInsert`.
    /// - Throws: `deleteDenied`, and what `fetch` and `batchInsert` throw.
    /// - Complexity: O(log n) per row, index entry and related row.
    @discardableResult
    public func batchDelete<Entity: ManagedObject>(
        _ request: FetchDescriptor<Entity>,
        rowsPerCommit: Int? = nil
    ) throws -> BatchResult {
        let query = try RequestPlan(request, in: self).query
        return try deleteRows(Entity.self, rowsPerCommit) { transaction in
            try transaction.fetchIDs(query)
        }
    }

    /// Deletes the rows with these IDs; those that are gone are skipped.
    @discardableResult
    public func batchDelete<Entity: ManagedObject>(
        _ ids: [TypedObjectID<Entity>],
        rowsPerCommit: Int? = nil
    ) throws -> BatchResult {
        let objects = try batchObjects(ids)
        return try deleteRows(Entity.self, rowsPerCommit) { _ in objects }
    }

    private func deleteRows<Entity: ManagedObject>(
        _ type: Entity.Type,
        _ rowsPerCommit: Int?,
        _ find: (RecordTransaction) throws -> [ObjectID]
    ) throws -> BatchResult {
        let batch = try BatchWriter<Entity>(self, rowsPerCommit)
        return try batch.traced(.delete) {
            // In the order of IDs each page of rows is come to once.
            try batch.commitPieces({ try find($0).sorted() }) { transaction, ids in
                if container.schema.standsAlone(batch.model) {
                    let entity = batch.model.record.id
                    for id in ids {
                        if try transaction.deleteIfPresent(entity, id) {
                            batch.pending.deleted += 1
                        } else {
                            batch.pending.skipped += 1
                        }
                    }
                    return
                }
                var deletion = BatchDeletion(container, transaction)
                try deletion.add(batch.model, ids)
                try deletion.checkDenials()
                try deletion.addOwners(to: &batch.counted)
                try deletion.detach()
                try deletion.deleteRows()
                batch.pending.deleted += deletion.deleted
                batch.pending.updated += deletion.updated
                batch.pending.skipped += deletion.missing
            }
        }
    }
}

/// The rows that one commit of a batch deletes, and what that means for others.
struct BatchDeletion {
    private let container: PersistentContainer
    private let transaction: RecordTransaction
    private var order: [(model: EntityModel, id: ObjectID)] = []
    private var doomed: Set<ObjectID> = []
    private(set) var missing = 0
    private(set) var deleted = 0
    private(set) var updated = 0

    init(_ container: PersistentContainer, _ transaction: RecordTransaction) {
        self.container = container
        self.transaction = transaction
    }

    /// Takes rows in, and what their cascades reach.
    mutating func add(_ model: EntityModel, _ ids: ArraySlice<ObjectID>) throws {
        var next = 0
        order.reserveCapacity(ids.count)
        for id in ids {
            guard try transaction.version(model.record.id, id) != nil else {
                missing += 1
                continue
            }
            order.append((model, id))
            doomed.insert(id)
        }
        while next < order.count {
            let (model, id) = order[next]
            next += 1
            for slot in model.relationshipSlots {
                guard let relationship = model.properties[slot].relationship,
                    relationship.rule == .cascade,
                    let target = container.schema.entity(relationship.target)
                else { continue }
                for object in try targets(model, relationship, id)
                where doomed.insert(object).inserted {
                    order.append((target, object))
                }
            }
        }
    }

    /// The objects that a relationship leads to, those that exist.
    private func targets(
        _ model: EntityModel,
        _ relationship: RelationshipModel,
        _ id: ObjectID
    ) throws -> [ObjectID] {
        try transaction.relatedIDs(model.record, relationship.record, of: id).filter { object in
            try transaction.version(relationship.target, object) != nil
        }
    }

    /// Throws if a row with the rule `deny` leads to one that stays.
    func checkDenials() throws {
        var details: [StoreError.Detail] = []
        for (model, id) in order {
            for slot in model.relationshipSlots {
                guard let relationship = model.properties[slot].relationship,
                    relationship.rule == .deny,
                    let target = container.schema.entity(relationship.target),
                    let standing = try targets(model, relationship, id).first(where: {
                        !doomed.contains($0)
                    })
                else { continue }
                let owner = identity(model, id)
                let other = identity(target, standing)
                let name = model.properties[slot].name
                details.append(
                    StoreError.Detail(
                        code: .deleteDenied,
                        message:
                            "\(owner) of \(model.name) cannot be deleted: its \(name) leads to "
                            + "\(other) of \(target.name)",
                        place: .init(entity: model.name, attribute: name, object: owner),
                        objects: [owner, other]
                    )
                )
            }
        }
        guard let first = details.first else { return }
        throw StoreError(
            .deleteDenied,
            details.count == 1
                ? first.message : "\(details.count) rules deny it; the first: \(first.message)",
            place: first.place,
            details: details,
            suggestion: "The commit that the rows belong to was not written. Delete or lead "
                + "elsewhere what the details name, and do the batch again."
        )
    }

    private func identity(_ model: EntityModel, _ id: ObjectID) -> ManagedObjectID {
        container.identity(model, id)
    }

    /// Notes the objects that have fewer in their relationships afterwards.
    func addOwners(to owners: inout CountedOwners) throws {
        guard container.schema.hasCounts else { return }
        for (model, id) in order {
            try owners.add(losing: id, model, container.schema, transaction)
        }
    }

    /// Makes the rows that stay forget the deleted ones. Link rows go with their objects.
    mutating func detach() throws {
        for (model, id) in order {
            for slot in model.relationshipSlots {
                guard let relationship = model.properties[slot].relationship,
                    relationship.rule != .noAction, !relationship.inverseIsToMany,
                    let inverse = relationship.inverseSlot,
                    let target = container.schema.entity(relationship.target)
                else { continue }
                for object in try targets(model, relationship, id) {
                    try forget(id, in: object, target, target.columns[inverse])
                }
            }
            for (owner, slot) in container.schema.incoming(model.record.id) {
                guard owner.properties[slot].relationship?.rule != .noAction else { continue }
                let query = RecordQuery(
                    entity: owner.record.id,
                    predicate: .compare(
                        PropertyPath(owner.properties[slot].name),
                        .equal,
                        .reference(id)
                    )
                )
                for object in try transaction.fetchIDs(query) {
                    try forget(id, in: object, owner, owner.columns[slot])
                }
            }
        }
    }

    private mutating func forget(
        _ id: ObjectID,
        in object: ObjectID,
        _ model: EntityModel,
        _ column: ColumnID
    ) throws {
        guard !doomed.contains(object),
            try transaction.row(model.record.id, object)?.reference(column) == id
        else { return }
        try transaction.update(model.record.id, object, [ColumnValue(column, .null)])
        updated += 1
    }

    mutating func deleteRows() throws {
        for (model, id) in order { try transaction.delete(model.record.id, id) }
        deleted = order.count
    }
}
