// The sides of a conflict as values, and what brings back an object that others deleted.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    func targetModel(_ model: EntityModel, _ slot: Int) -> EntityModel? {
        model.properties[slot].relationship.flatMap { schema.entity($0.target) }
    }

    /// What the context began with, what it has now, and what the newest commit has.
    func describe(
        _ object: any ManagedObject,
        _ isDeletion: Bool,
        _ graph: TransactionGraph
    ) throws -> SaveConflict {
        let model = object.storage.model
        let id = object.objectID
        var theirs: [StoredValue]?
        if let stored = try graph.row(object.storage.object, model) {
            theirs = try container.translating { () throws(RecordError) in
                try Self.values(of: stored, model) { column throws(RecordError) in
                    try graph.transaction.value(of: stored, column)
                }
            }
        }
        var base = theirs ?? model.properties.map { _ in .null }
        if let row = try baseRow(of: object) {
            base = try Self.values(of: row, model) { column throws(StoreError) in
                try self.value(in: row, column)
            }
        }
        var mine = base
        for slot in mine.indices {
            if let edited = object.storage.edits?.values[slot] { mine[slot] = edited }
        }
        if object.storage.state.contains(.gone), !isDeletion {
            // Relationships that are edited behind the deletion show nowhere else.
            let links = try wantedLinks(of: object, journal.intents)
            for slot in model.relationshipSlots
            where model.properties[slot].relationship?.isToMany == false {
                mine[slot] = links.targets[slot].map { .reference($0) } ?? .null
            }
        }
        func side(_ values: [StoredValue], _ blobs: BlobSource?) -> ConflictValues {
            ConflictValues(
                model: model,
                object: id,
                values: values,
                blobs: values.contains(where: \.isBlob) ? blobs : nil,
                pendingBlobs: pendingBlobs(in: values)
            )
        }
        return SaveConflict(
            object: id,
            entity: model.name,
            base: side(base, blobSource),
            mine: isDeletion ? nil : side(mine, blobSource),
            theirs: theirs.map { side($0, .newest(of: container)) }
        )
    }

    /// The row that edits stand on: the object's own, or that of the context's commit.
    private func baseRow(of object: any ManagedObject) throws(StoreError) -> CachedRow? {
        if let row = object.storage.row { return row }
        let snapshot = try currentSnapshot()
        return try container.translating { () throws(RecordError) in
            try snapshot.row(object.storage.model.record.id, object.storage.object)
        }
    }

    private static func values<Failure: Error>(
        of row: CachedRow,
        _ model: EntityModel,
        _ read: (ColumnID) throws(Failure) -> StoredValue
    ) throws(Failure) -> [StoredValue] {
        var values: [StoredValue] = []
        for property in model.properties {
            guard let column = property.column else {
                values.append(.null)
                continue
            }
            values.append(try read(column))
        }
        return values
    }

    // MARK: Bringing back

    /// The relationships that an object had, before its own edits, as far as their other ends
    /// exist and are free: so that it comes back whole.
    func intents(
        thatBringBack object: any ManagedObject,
        into graph: TransactionGraph
    ) throws(StoreError) -> [Intent] {
        let (model, id) = (object.storage.model, object.storage.object)
        let row = try baseRow(of: object)
        var intents: [Intent] = []
        for slot in model.relationshipSlots {
            guard let relationship = model.properties[slot].relationship,
                let far = schema.entity(relationship.target)
            else { continue }
            guard relationship.isToMany else {
                let stored = try container.translating { () throws(RecordError) in
                    try row?.reference(model.columns[slot])
                }
                guard let target = stored, try graph.isAlive(target, far) else { continue }
                if let inverse = relationship.inverseSlot, !relationship.inverseIsToMany,
                    try graph.reference(target, far, inverse) != nil
                {
                    continue
                }
                intents.append(.relate(model, id, slot: slot, to: target))
                intents += place(of: id, in: target, far, relationship)
                continue
            }
            for member in try savedMembers(of: object, slot: slot)
            where try graph.isAlive(member, far) {
                if relationship.isKeptByInverse, let inverse = relationship.inverseSlot,
                    try graph.reference(member, far, inverse) != nil
                {
                    continue
                }
                intents.append(.link(model, id, slot: slot, member, .end))
                intents += place(of: id, in: member, far, relationship)
            }
        }
        return intents + (try incoming(model, id, graph))
    }

    /// Where an object stood in the ordered list of `owner`.
    private func place(
        of id: ObjectID,
        in owner: ObjectID,
        _ model: EntityModel,
        _ relationship: RelationshipModel
    ) -> [Intent] {
        guard relationship.inverseIsOrdered, let slot = relationship.inverseSlot else { return [] }
        let key = ToManyKey(owner: owner, slot: slot)
        guard let place = lastPlaces[id]?[key] ?? savedPlace(of: id, in: owner, model, slot) else {
            return []
        }
        return [.link(model, owner, slot: slot, id, place)]
    }

    private func savedPlace(
        of id: ObjectID,
        in owner: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) -> LinkPlace? {
        guard let relationship = model.properties[slot].relationship, let snapshot,
            let ids = try? snapshot.relatedIDs(model.record, relationship.record, of: owner),
            let index = ids.firstIndex(of: id)
        else { return nil }
        return .between(
            index > 0 ? ids[index - 1] : nil,
            index + 1 < ids.count ? ids[index + 1] : nil
        )
    }

    /// Remembers where an object with edits stands in others' lists, before its row is lost: a
    /// policy may bring it back.
    func keepPlaces(of object: any ManagedObject) {
        let (model, id) = (object.storage.model, object.storage.object)
        guard changed[id] != nil || linkedAndGone[id] != nil else { return }
        var places: [ToManyKey: LinkPlace] = [:]
        for slot in model.relationshipSlots {
            guard let relationship = model.properties[slot].relationship,
                relationship.inverseIsOrdered, let inverse = relationship.inverseSlot,
                let far = schema.entity(relationship.target), let snapshot,
                let owners = try? snapshot.relatedIDs(
                    model.record,
                    relationship.record,
                    of: id
                )
            else { continue }
            for owner in owners {
                let key = ToManyKey(owner: owner, slot: inverse)
                places[key] = savedPlace(of: id, in: owner, far, inverse)
            }
        }
        lastPlaces[id] = places
    }

    /// Relationships without inverse that led to the object in the context's commit.
    private func incoming(
        _ model: EntityModel,
        _ id: ObjectID,
        _ graph: TransactionGraph
    ) throws(StoreError) -> [Intent] {
        guard let snapshot else { return [] }
        var intents: [Intent] = []
        for owner in schema.entities {
            for slot in owner.relationshipSlots {
                guard let relationship = owner.properties[slot].relationship,
                    relationship.inverseSlot == nil, relationship.target == model.record.id
                else { continue }
                let owners = try container.translating { () throws(RecordError) in
                    try snapshot.owners(owner.record, relationship.record, of: id)
                }
                for other in owners where other != id {
                    guard try graph.isAlive(other, owner) else { continue }
                    if relationship.isToMany {
                        let place =
                            relationship.isOrdered
                            ? savedPlace(of: id, in: other, owner, slot) ?? .end : .end
                        intents.append(.link(owner, other, slot: slot, id, place))
                    } else if try graph.reference(other, owner, slot) == nil {
                        intents.append(.relate(owner, other, slot: slot, to: id))
                    }
                }
            }
        }
        return intents
    }
}

extension StoredValue {
    var isBlob: Bool {
        if case .blob = self { return true }
        return false
    }
}
