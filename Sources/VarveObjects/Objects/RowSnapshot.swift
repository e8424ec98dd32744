// The values of one object at one moment, as a Sendable value.

import VarveBase
import VarveRecords

/// The attributes and to-one relationships of one object at one moment, unsaved edits included. It
/// reads columns by name: `snapshot.title`.
@dynamicMemberLookup
public struct RowSnapshot<Entity: ManagedObject>: Sendable {
    /// The object.
    public let id: Entity.ID
    let values: [StoredValue]
    let blobs: BlobSource?
    /// Blobs that no commit names yet.
    var pendingBlobs: [BlobReference: Blob] = [:]

    /// An attribute.
    public subscript<Value>(dynamicMember column: KeyPath<Entity.Columns, Column<Entity, Value>>)
        -> Value
    {
        Value(stored: value(Entity.columns[keyPath: column].definition)) ?? Value.zeroValue
    }

    /// A blob attribute: a handle.
    public subscript(dynamicMember column: KeyPath<Entity.Columns, Column<Entity, Blob?>>) -> Blob?
    {
        guard case .blob(let reference) = value(Entity.columns[keyPath: column].definition) else {
            return nil
        }
        return pendingBlobs[reference] ?? Blob(reference: reference, source: blobs)
    }

    /// A to-one relationship: the target's ID.
    public subscript<Target>(
        dynamicMember column: KeyPath<Entity.Columns, ToOneColumn<Entity, Target>>
    ) -> Target.ID? {
        let definition = Entity.columns[keyPath: column]._definition
        guard case .reference(let object) = value(definition),
            let target = targets[definition.slot]
        else { return nil }
        return TypedObjectID(
            ManagedObjectID(store: id.objectID.store, entity: target, object: object)
        )
    }

    /// Entities that the to-one relationships lead to, by slot.
    let targets: [Int: EntityID]

    private func value(_ definition: PropertyDefinition) -> StoredValue {
        let slot = definition.slot
        return values.indices.contains(slot) ? values[slot] : .null
    }
}

extension ManagedObject {
    /// The values of an object as a Sendable value.
    public typealias Snapshot = RowSnapshot<Self>

    /// The values that the object has now. Fills a fault; a failed read gives zero values and is
    /// remembered.
    public func snapshot() -> RowSnapshot<Self> {
        let model = storage.model
        let context = storage.core.context
        var values: [StoredValue] = []
        var targets: [Int: EntityID] = [:]
        values.reserveCapacity(model.properties.count)
        for (slot, property) in model.properties.enumerated() {
            let value = property.column == nil ? .null : looseValue(slot) ?? .null
            values.append(value)
            if let relationship = property.relationship { targets[slot] = relationship.target }
        }
        // Only handles hold the commit.
        let hasBlobs = values.contains(where: \.isBlob)
        let container = storage.core.container
        var snapshot = RowSnapshot(
            id: id,
            values: values,
            blobs: hasBlobs ? context?.blobSource ?? .newest(of: container) : nil,
            targets: targets
        )
        if hasBlobs, let context { snapshot.pendingBlobs = context.pendingBlobs(in: values) }
        return snapshot
    }
}
