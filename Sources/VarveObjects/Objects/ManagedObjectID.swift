// Permanent identities of objects: untyped (`ManagedObjectID`) and typed by entity (`Item.ID`).
//
// Invariants
// - An ID is final at insert and never given to another object.
// - Hashing, comparing and printing need no store.

import Foundation
import VarveBase
import VarveRecords

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
    /// Numbers of entity and object, as `1/12`; `PersistentContainer.objectID` reads it.
    public var description: String { "\(entity.rawValue)/\(ObjectNumber.text(object))" }
}

/// The number of an object as people read it.
///
/// Each process that has a store open hands out numbers from a range of its own, 2^32 long. So a
/// number is written as the count of ranges before it and the number in the range, `8-16744`, and
/// one of the first range as itself.
enum ObjectNumber {
    private static let range: UInt64 = 1 << 32

    static func text(_ object: ObjectID) -> String {
        let (before, number) = object.rawValue.quotientAndRemainder(dividingBy: range)
        return before == 0 ? "\(number)" : "\(before)-\(number)"
    }

    /// Reads `12`, `8-16744` and `34359755112`; nil for anything else.
    static func read(_ text: Substring) -> ObjectID? {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        let isDigits = parts.allSatisfy { part in
            !part.isEmpty && part.utf8.allSatisfy { (0x30...0x39).contains($0) }
        }
        guard isDigits, let last = parts.last, let number = UInt64(last) else { return nil }
        switch parts.count {
        case 1: return number == 0 ? nil : ObjectID(number)
        case 2:
            guard let before = UInt64(parts[0]), (1..<range).contains(before), number < range
            else { return nil }
            return ObjectID(before * range + number)
        default: return nil
        }
    }
}

extension PersistentContainer {
    /// The ID that a text names: `Note/12` with the entity's name, as the description of a typed
    /// ID; `1/12` with its number, as that of an untyped one; `Note:12`, as the tool `varve` prints
    /// it; or the text form that begins with `varve:`.
    ///
    /// - Returns: nil when the text is no ID of this store's. There may be no such object.
    public func objectID(_ text: String) -> ManagedObjectID? {
        if let id = ManagedObjectID(uri: text) { return id.store == identity ? id : nil }
        guard let slash = text.lastIndex(where: { $0 == "/" || $0 == ":" }),
            let object = ObjectNumber.read(text[text.index(after: slash)...])
        else { return nil }
        let name = text[..<slash]
        let model = schema.entities.first { $0.name == name || "\($0.record.id.rawValue)" == name }
        return model.map {
            ManagedObjectID(store: identity, entity: $0.record.id, object: object)
        }
    }

    /// The ID of an object of this entity that a text names.
    ///
    /// - Returns: nil when the text is no ID, or one of another entity.
    public func id<Entity: ManagedObject>(_ text: String, of type: Entity.Type) -> Entity.ID? {
        guard let id = objectID(text), let model = schema.entity(of: type),
            id.entity == model.record.id
        else { return nil }
        return TypedObjectID(id)
    }
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
    /// Entity name and object number, as `Note/12`; `PersistentContainer.id(_:of:)` reads it.
    public var description: String { "\(Entity.entityName)/\(ObjectNumber.text(objectID.object))" }
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
