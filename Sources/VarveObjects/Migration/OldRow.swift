// A row of before a stage, and a row of after it that is being written by names.
//
// Invariants
// - A row is lent: neither can be kept beyond the closure that gets it.
// - A name or a type that does not fit is an error that says what is there instead.

import VarveBase
import VarveEngine
import VarveRecords

/// A row as it was before a stage, by the names of that time: `try old["title"] as String`.
public struct OldRow: ~Copyable {
    let row: StageRow
    let migration: Migration

    /// The object's ID. It is that of the same object after the stage, if the entity stays.
    public var id: ManagedObjectID { migration.identity(row.entity.id, row.id) }

    /// The entity's name.
    public var entity: String { row.entity.name }

    /// Names of the attributes.
    public var attributes: [String] { row.entity.attributes.map(\.name) }

    /// The value of an attribute. Its type is that of the attribute, or a wider one; an optional
    /// where there may be none.
    ///
    /// - Throws: `StoreError`: `unknownAttribute`, `invalid` for another type, `missingValue` for a
    ///   type that is not optional where there is none; `damaged`, `ioFailed`.
    public subscript<Value: StorableValue>(name: String) -> Value {
        get throws {
            let attribute = try attribute(name, Value.self)
            let stored = try migration.translating { () throws(RecordError) in
                try row.value(attribute.column)
            }
            if stored == .null, !Value.isOptional { throw missing(name, Value.self) }
            guard let value = Value(stored: stored) else {
                throw migration.error(
                    .unreadableValue,
                    "\(entity).\(name) has a value that \(Value.self) does not know",
                    entity,
                    name,
                    id,
                    "Read it as \(attribute.type), and map it in the stage."
                )
            }
            return value
        }
    }

    /// The handle of a blob. It can be given to a row of any entity: no byte is copied.
    ///
    /// - Throws: as for other attributes.
    public subscript(name: String) -> Blob? {
        get throws {
            let attribute = try attribute(name, Blob?.self)
            let stored = try migration.translating { () throws(RecordError) in
                try row.value(attribute.column)
            }
            guard case .blob(let reference) = stored else { return nil }
            return migration.blob(reference)
        }
    }

    /// Whether an attribute has no value, or a to-one relationship leads to nobody.
    ///
    /// - Throws: `StoreError`: `unknownAttribute`, `damaged`, `ioFailed`.
    public func isNil(_ name: String) throws -> Bool {
        if row.entity.attribute(named: name) == nil { return try object(name) == nil }
        guard let attribute = row.entity.attribute(named: name) else { return true }
        return try migration.translating { () throws(RecordError) in
            try row.value(attribute.column) == .null
        }
    }

    /// The object that a to-one relationship led to.
    ///
    /// - Throws: `StoreError`: `unknownAttribute`, `damaged`, `ioFailed`.
    public func object(_ name: String) throws -> ManagedObjectID? {
        let relationship = try relationship(name)
        guard case .column(let column, _) = relationship.storage else {
            throw migration.error(
                .invalid,
                "\(entity).\(name) led to many objects",
                entity,
                name,
                id,
                "Read it with objects(\"\(name)\")."
            )
        }
        let target = try migration.translating { () throws(RecordError) in
            try row.reference(column)
        }
        return target.map { migration.identity(relationship.target, $0) }
    }

    /// The objects that a relationship led to, in its order.
    ///
    /// - Throws: `StoreError`: `unknownAttribute`, `damaged`, `ioFailed`.
    /// - Complexity: O(log n + members).
    public func objects(_ name: String) throws -> [ManagedObjectID] {
        let relationship = try relationship(name)
        let members = try migration.translating { () throws(RecordError) in
            try migration.change.members(row.entity, relationship, of: row.id)
        }
        return members.map { migration.identity(relationship.target, $0) }
    }

    private func attribute<Value: StorableValue>(
        _ name: String,
        _: Value.Type
    ) throws(StoreError) -> RecordAttribute {
        guard let attribute = row.entity.attribute(named: name) else {
            throw migration.unknown(name, of: row.entity, isOld: true)
        }
        let wanted = Value.attributeType
        if attribute.type == wanted || attribute.type.widens(to: wanted) { return attribute }
        throw migration.error(
            .invalid,
            "\(entity).\(name) is \(attribute.type) in the store and was read as \(Value.self)",
            entity,
            name,
            id,
            "Read it as \(attribute.type)\(attribute.isOptional ? "?" : ""), and convert it."
        )
    }

    private func missing(_ name: String, _ type: Any.Type) -> StoreError {
        migration.error(
            .missingValue,
            "\(entity).\(name) of object \(id) has no value and was read as \(type)",
            entity,
            name,
            id,
            "Read it as \(type)?, and say what stands for no value."
        )
    }

    private func relationship(_ name: String) throws(StoreError) -> RecordRelationship {
        if let relationship = row.entity.relationship(named: name) { return relationship }
        throw migration.unknown(name, of: row.entity, isOld: true)
    }
}

/// A row of the schema after a stage, by names: `try new.set("position", to: 5)`.
///
/// What is not set stays as it is; in a new row it gets its default.
public struct NewRow: ~Copyable {
    var record: RecordRow
    var links: [(RecordRelationship, [ObjectID])] = []
    let migration: Migration

    init(_ entity: RecordEntity, _ migration: Migration) {
        record = RecordRow(entity)
        self.migration = migration
    }

    mutating func begin() {
        record.begin()
        if !links.isEmpty { links = [] }
    }

    /// The entity's name.
    public var entity: String { record.entity.name }

    /// Sets an attribute.
    ///
    /// - Throws: `StoreError`: `unknownAttribute`, `invalid` for another type or a value that no
    ///   store keeps, `missingValue` for nil where a value must be.
    public mutating func set<Value: StorableValue>(_ name: String, to value: Value) throws {
        let attribute = try attribute(name)
        let given = Value.attributeType
        guard attribute.type == given || given.widens(to: attribute.type) else {
            throw migration.error(
                .invalid,
                "\(entity).\(name) is \(attribute.type) in the new schema and was set to a "
                    + "\(Value.self)",
                entity,
                name,
                nil,
                "Convert the value to \(attribute.type) first."
            )
        }
        if given == .blob { return try set(name, to: (value as? Blob?) ?? nil) }
        if let refusal = value._refusal {
            throw migration.error(
                .invalid,
                "\(entity).\(name) was to be set to a value that \(refusal)",
                entity,
                name,
                nil,
                "Set \(name) to a value that can be stored."
            )
        }
        if Value.isOptional, value.stored == .null { return try setNil(name) }
        value.write(attribute.column, to: &record)
    }

    /// Sets a blob attribute: a handle of an old row, or one that `Migration.makeBlob` made.
    ///
    /// - Throws: as for other attributes; `crossContext` for a blob of an open container.
    public mutating func set(_ name: String, to blob: Blob?) throws {
        let attribute = try attribute(name)
        guard attribute.type == .blob else {
            throw migration.error(
                .invalid,
                "\(entity).\(name) is \(attribute.type) in the new schema and was set to a Blob",
                entity,
                name,
                nil,
                "Read the blob's bytes and set those, or declare the attribute as Blob?."
            )
        }
        guard let blob else { return try setNil(name) }
        try migration.keep(blob, entity, name)
        record.set(attribute.column, blob.stored)
    }

    /// Makes an attribute nil, or a to-one relationship lead to nobody.
    ///
    /// - Throws: `StoreError`: `unknownAttribute`, `missingValue` for an attribute that must have a
    ///   value.
    public mutating func setNil(_ name: String) throws {
        if let relationship = record.entity.relationship(named: name) {
            return try set(relationship, name, nil)
        }
        let attribute = try attribute(name)
        guard attribute.isOptional else {
            throw migration.error(
                .missingValue,
                "\(entity).\(name) must have a value and was set to nil",
                entity,
                name,
                nil,
                "Set it to a value, or declare it optional."
            )
        }
        record.setNull(attribute.column)
    }

    /// Makes a to-one relationship lead to an object. Its inverse follows.
    ///
    /// - Throws: `StoreError`: `unknownAttribute`, `wrongEntity`, `foreignID`, `invalid` for a
    ///   to-many. One that leads to nobody fails the stage in its end.
    public mutating func set(_ name: String, to object: ManagedObjectID?) throws {
        try set(try relationship(name), name, object)
    }

    /// The same with a typed ID.
    public mutating func set<Entity>(_ name: String, to object: TypedObjectID<Entity>?) throws {
        try set(name, to: object?.objectID)
    }

    /// Makes the members of a many-to-many or ordered relationship exactly these, in this order.
    /// Each counts once.
    ///
    /// - Throws: `StoreError`: `unknownAttribute`, `wrongEntity`, `foreignID`, `invalid` where the
    ///   inverse is a to-one: set that one.
    public mutating func set(_ name: String, to objects: [ManagedObjectID]) throws {
        let relationship = try relationship(name)
        let inverse = relationship.inverse.flatMap {
            migration.change.new.entity(relationship.target)?.relationship(named: $0)
        }
        guard relationship.isToMany, inverse.map(\.isToMany) ?? true else {
            throw migration.error(
                .invalid,
                relationship.isToMany
                    ? "\(entity).\(name) cannot be set: it is what its inverse says"
                    : "\(entity).\(name) leads to one object",
                entity,
                name,
                nil,
                relationship.isToMany
                    ? "Set the to-one on the other side." : "Set it to one ID."
            )
        }
        var seen: Set<ObjectID> = []
        var members: [ObjectID] = []
        for object in objects {
            let member = try migration.number(of: object, for: relationship, entity, name)
            if seen.insert(member).inserted { members.append(member) }
        }
        links.append((relationship, members))
    }

    /// Takes over what an old row has under the same names, where type or target are the same:
    /// attributes, blobs, to-one relationships.
    ///
    /// - Parameters:
    ///   - old: a row of any entity.
    ///   - names: what is left out.
    /// - Throws: `StoreError`: `damaged`, `ioFailed`, and `missingValue` for nil where a value must
    ///   be.
    public mutating func copy(_ old: borrowing OldRow, except names: Set<String> = []) throws {
        for attribute in record.entity.attributes where !names.contains(attribute.name) {
            guard let before = old.row.entity.attribute(named: attribute.name),
                before.type == attribute.type || before.type.widens(to: attribute.type)
            else { continue }
            let row = old.row
            let value = try migration.translating { () throws(RecordError) in
                try row.value(before.column)
            }
            if value == .null {
                try setNil(attribute.name)
            } else {
                record.set(attribute.column, value)
            }
        }
        for relationship in record.entity.relationships where !names.contains(relationship.name) {
            guard case .column(let column, _) = relationship.storage,
                let before = old.row.entity.relationship(named: relationship.name),
                case .column(let from, _) = before.storage, before.target == relationship.target
            else { continue }
            let row = old.row
            let target = try migration.translating { () throws(RecordError) in
                try row.reference(from)
            }
            if let target { record.set(column, reference: target) } else { record.setNull(column) }
        }
    }

    private mutating func set(
        _ relationship: RecordRelationship,
        _ name: String,
        _ object: ManagedObjectID?
    ) throws {
        guard case .column(let column, _) = relationship.storage else {
            throw migration.error(
                .invalid,
                "\(entity).\(name) leads to many objects",
                entity,
                name,
                nil,
                "Set it to an array of IDs, or set the to-one on the other side."
            )
        }
        guard let object else { return record.setNull(column) }
        record.set(
            column,
            reference: try migration.number(of: object, for: relationship, entity, name)
        )
    }

    private func attribute(_ name: String) throws(StoreError) -> RecordAttribute {
        if let attribute = record.entity.attribute(named: name) { return attribute }
        throw migration.unknown(name, of: record.entity, isOld: false)
    }

    private func relationship(_ name: String) throws(StoreError) -> RecordRelationship {
        if let relationship = record.entity.relationship(named: name) { return relationship }
        throw migration.unknown(name, of: record.entity, isOld: false)
    }
}
