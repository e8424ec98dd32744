// Objects by their IDs: registered, promised, existing.

public import VarveBase
public import VarveRecords

extension ManagedObjectContext {
    /// The object with that ID if it lives in this context. No I/O.
    public func registeredObject<Entity>(with id: TypedObjectID<Entity>) -> Entity? {
        registeredObject(with: id.objectID) as? Entity
    }

    /// The object with that ID if it lives in this context. No I/O.
    public func registeredObject(with id: ManagedObjectID) -> (any ManagedObject)? {
        guard id.store == container.identity else { return nil }
        return registered(id.object)
    }

    /// The object with that ID, as a fault unless it is registered. No I/O, so the row may be
    /// missing.
    /// - Throws: `foreignID`, `wrongEntity`, `unknownEntity`.
    public func object<Entity>(with id: TypedObjectID<Entity>) throws -> Entity {
        let model = try container.check(id)
        guard let object = object(id.objectID.object, model) as? Entity else {
            throw StoreError.wrongEntity(id.objectID, Entity.entityName)
        }
        return object
    }

    /// The object with that ID, as a fault unless it is registered. No I/O, so the row may be
    /// missing.
    /// - Throws: `foreignID`, `unknownEntity`.
    public func object(with id: ManagedObjectID) throws -> any ManagedObject {
        object(id.object, try container.check(id))
    }

    /// The object with that ID, filled; nil if this commit has no such row. Reads it if it must.
    /// - Throws: `foreignID`, `wrongEntity`, `unknownEntity`, and what a failed read throws.
    @inlinable public func existingObject<Entity>(
        with id: TypedObjectID<Entity>
    ) throws -> Entity? {
        let model = try container.check(id)
        let number = id.objectID.object
        if let known = core.registry.find(number, entity: model.number, as: Entity.self) {
            return try isExisting(known) ? known : nil
        }
        guard let row = try pinnedRow(number, model) else { return nil }
        let object: Entity = makeObject(number, model, row: row)
        noteFilled([], 1)
        object.awakeFromFetch()
        return object
    }

    /// The object with that ID, filled; nil if this commit has no such row. Reads it if it must.
    public func existingObject(with id: ManagedObjectID) throws -> (any ManagedObject)? {
        let model = try container.check(id)
        if let object = registered(id.object), object.storage.model === model {
            return try isExisting(object) ? object : nil
        }
        guard let row = try pinnedRow(id.object, model) else { return nil }
        let object = object(id.object, model)
        take(row, for: object)
        return object
    }

    /// Whether a living object has a row, or will have; fills it.
    @usableFromInline func isExisting(_ object: any ManagedObject) throws(StoreError) -> Bool {
        if object.storage.isDeleted || object.storage.state.contains(.invalid) { return false }
        if object.isInserted { return true }
        if !object.isFault { return true }
        guard let row = try pinnedRow(object.storage.object, object.storage.model) else {
            return false
        }
        take(row, for: object)
        return true
    }

    /// The row of an object, pinned; nil if this commit has none.
    @usableFromInline func pinnedRow(
        _ id: ObjectID,
        _ model: EntityModel
    ) throws(StoreError) -> CachedRow? {
        let snapshot = try currentSnapshot()
        return try container.translating { () throws(RecordError) in
            try snapshot.row(model.record.id, id, pin: true)
        }
    }
}
