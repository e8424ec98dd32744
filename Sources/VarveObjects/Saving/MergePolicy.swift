// What a save does when somebody else changed the same objects.

import VarveBase
import VarveRecords

/// What a save does with objects that this context changed or deleted, and another one changed or
/// deleted since the commit that this one reads. Partners and cascades of edits count as changed.
///
/// With every policy but `error`, an edit that leads to an object which is gone leads nowhere, and
/// rows that only the newest commit puts into an edit's reach are no conflicts.
public struct MergePolicy: Sendable {
    enum Kind: Sendable {
        case error, objectWinsByProperty, storeWinsByProperty, overwrite, rollback
        case custom(@Sendable (SaveConflict) throws -> ConflictResolution)
    }
    let kind: Kind

    /// The save fails with `conflict` and lists every one: also rows that only the newest commit
    /// puts into an edit's reach, and edits that lead to an object which is gone.
    public static let error = MergePolicy(kind: .error)
    /// A property changed on both sides takes the value of this context; one changed on a single
    /// side keeps that change. An object deleted in the store comes back whole under its ID, with
    /// its relationships as far as their other ends exist and are free. A deletion counts.
    public static let objectWinsByProperty = MergePolicy(kind: .objectWinsByProperty)
    /// A property changed on both sides takes the value of the store. An object deleted there stays
    /// so; one that this context deletes and others changed stays there.
    public static let storeWinsByProperty = MergePolicy(kind: .storeWinsByProperty)
    /// All attributes and to-one relationships as this context has them replace the store's. An
    /// object deleted there comes back as with `objectWinsByProperty`. A deletion counts.
    public static let overwrite = MergePolicy(kind: .overwrite)
    /// This context's edits of the object, or its deletion, are given up. Of a one-to-one the other
    /// side is given up, too.
    public static let rollback = MergePolicy(kind: .rollback)
    /// Decides object by object. `decide` runs with the writer lock held: it must be short.
    public static func custom(
        _ decide: @escaping @Sendable (SaveConflict) throws -> ConflictResolution
    ) -> MergePolicy {
        MergePolicy(kind: .custom(decide))
    }
}

/// How one conflict is settled.
public enum ConflictResolution: Sendable {
    /// As `MergePolicy.objectWinsByProperty`.
    case objectWinsByProperty
    /// As `MergePolicy.storeWinsByProperty`.
    case storeWinsByProperty
    /// As `MergePolicy.overwrite`.
    case overwrite
    /// As `MergePolicy.rollback`.
    case rollback
    /// The save fails with `conflict`.
    case fail
}

/// One object that this context changed or deleted, and somebody else changed or deleted since the
/// commit that this context reads.
public struct SaveConflict: Sendable {
    /// The object.
    public let object: ManagedObjectID
    /// Its entity by name.
    public let entity: String
    /// The values that this context began with.
    public let base: ConflictValues
    /// The values of this context; nil: it deletes the object.
    public let mine: ConflictValues?
    /// The values in the store; nil: the object was deleted there.
    public let theirs: ConflictValues?
}

/// The values of one side of a conflict.
public struct ConflictValues: Sendable {
    let model: EntityModel
    let object: ManagedObjectID
    /// By slot.
    let values: [StoredValue]
    let blobs: BlobSource?
    let pendingBlobs: [BlobReference: Blob]

    /// The values, typed; nil if the conflict is about another entity.
    public func snapshot<Entity: ManagedObject>(of type: Entity.Type) -> RowSnapshot<Entity>? {
        guard model.type == type else { return nil }
        var targets: [Int: EntityID] = [:]
        for slot in model.relationshipSlots {
            targets[slot] = model.properties[slot].relationship?.target
        }
        return RowSnapshot(
            id: TypedObjectID(object),
            values: values,
            blobs: blobs,
            pendingBlobs: pendingBlobs,
            targets: targets
        )
    }
}
