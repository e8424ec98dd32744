// Objects by their IDs: registered, promised, existing (F10).

import VarveBase
import VarveRecords

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
    public func existingObject<Entity>(with id: TypedObjectID<Entity>) throws -> Entity? {
        let model = try container.check(id)
        return try existing(id.objectID.object, model) as? Entity
    }

    /// The object with that ID, filled; nil if this commit has no such row. Reads it if it must.
    public func existingObject(with id: ManagedObjectID) throws -> (any ManagedObject)? {
        try existing(id.object, try container.check(id))
    }

    private func existing(
        _ id: ObjectID,
        _ model: EntityModel
    ) throws(StoreError) -> (any ManagedObject)? {
        if let object = registered(id), object.storage.model === model {
            if object.isInserted { return object }
            if object.isDeleted || object.storage.state.contains(.invalid) { return nil }
            if !object.isFault { return object }
        }
        let snapshot = try currentSnapshot()
        let row = try container.translating { () throws(RecordError) in
            try snapshot.row(model.record.id, id, pin: true)
        }
        guard let row else { return nil }
        let object = object(id, model)
        take(row, for: object)
        return object
    }
}
