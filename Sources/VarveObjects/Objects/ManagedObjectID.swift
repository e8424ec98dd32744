// Permanent identities of objects: untyped (`ManagedObjectID`) and typed by entity (`Item.ID`).
//
// Invariants
// - An ID is final at insert and never given to another object (I1).
// - Hashing, comparing and printing need no store.

import Foundation
import VarveBase

/// Identity of one object in one store. Sendable, Codable; survives restart, compaction and backup.
public struct ManagedObjectID: Hashable, Sendable {
    /// The store that gave the ID out.
    let store: UUIDValue
    /// Number of the entity in that store.
    let entity: EntityID
    /// Number of the object in that store.
    @usableFromInline let object: ObjectID

    init(store: UUIDValue, entity: EntityID, object: ObjectID) {
        self.store = store
        self.entity = entity
        self.object = object
    }

    /// Text form `varve:STORE/ENTITY/OBJECT`: the store as a UUID, entity and object as numbers.
    public var uri: String {
        "varve:\(UUID(store).uuidString)/\(entity.rawValue)/\(object.rawValue)"
    }

    /// Reads the text form; nil if `uri` is none.
    public init?(uri: String) {
        let scheme = "varve:"
        guard uri.hasPrefix(scheme) else { return nil }
        let parts = uri.dropFirst(scheme.count).split(
            separator: "/",
            omittingEmptySubsequences: false
        )
        guard parts.count == 3, let uuid = UUID(uuidString: String(parts[0])),
            let entity = UInt16(parts[1]), let object = UInt64(parts[2]), object > 0
        else { return nil }
        self.init(
            store: UUIDValue(uuid),
            entity: EntityID(entity),
            object: ObjectID(object)
        )
    }
}

extension ManagedObjectID: CustomStringConvertible {
    /// Entity and object number, as `varve` prints them.
    public var description: String { "\(entity.rawValue)/\(object.rawValue)" }
}

extension ManagedObjectID: Comparable {
    /// Orders by store, then by time of insertion.
    public static func < (left: ManagedObjectID, right: ManagedObjectID) -> Bool {
        (left.store, left.object) < (right.store, right.object)
    }
}

extension ManagedObjectID: Codable {
    /// Reads the text form.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let id = ManagedObjectID(uri: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "not the text form of an object ID"
            )
        }
        self = id
    }

    /// Writes the text form.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(uri)
    }
}

/// Identity of an object of a known entity: `Item.ID`. An ID of another entity does not compile in
/// its place.
public struct TypedObjectID<Entity: ManagedObject>: Hashable, Sendable {
    /// The untyped identity.
    public let objectID: ManagedObjectID

    init(_ objectID: ManagedObjectID) { self.objectID = objectID }
}

extension TypedObjectID: CustomStringConvertible {
    /// Entity name and object number.
    public var description: String { "\(Entity.entityName)/\(objectID.object.rawValue)" }
}

extension TypedObjectID: Comparable {
    /// Orders by store, then by time of insertion.
    public static func < (left: TypedObjectID, right: TypedObjectID) -> Bool {
        left.objectID < right.objectID
    }
}

extension TypedObjectID: Codable {
    /// Reads the text form. Whether it names this entity is checked where the ID is used
    /// (`wrongEntity`).
    public init(from decoder: any Decoder) throws {
        self.init(try ManagedObjectID(from: decoder))
    }

    /// Writes the text form.
    public func encode(to encoder: any Encoder) throws {
        try objectID.encode(to: encoder)
    }
}
