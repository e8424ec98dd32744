// Rows from fields by name: what a decoder has under a property's name becomes its value.
//
// Invariants
// - What a field says is decoded outside of the store's lock; what a relationship leads to is
//   looked up in the transaction that writes the row.
// - The input is hostile: a field that is no property, or has another form, is an error.

import Foundation
import VarveBase
import VarveRecords

/// The fields of one row.
struct NamedFields: Decodable, Sendable {
    enum Value: Sendable {
        case attribute(StoredValue)
        case target(Target?)
        case targets([Target])
    }
    /// What a relationship leads to.
    indirect enum Target: Sendable {
        case id(ManagedObjectID)
        /// The values of a constraint.
        case key(RecordIndex, [(column: ColumnID, value: Value)])
    }

    let fields: [(slot: Int, value: Value)]

    init(fields: [(slot: Int, value: Value)]) { self.fields = fields }

    init(from decoder: any Decoder) throws {
        guard let reader = decoder.userInfo[FieldReader.key] as? FieldReader else {
            preconditionFailure("fields are read with a reader in the decoder's userInfo")
        }
        fields = try reader.fields(decoder, reader.model)
    }
}

/// Reads fields of the entities of a schema.
final class FieldReader: Sendable {
    static let key: CodingUserInfoKey = {
        guard let key = CodingUserInfoKey(rawValue: "varve.fields") else {
            preconditionFailure("a key has a name")
        }
        return key
    }()
    let model: EntityModel
    private let schema: SchemaModel
    private let ignoresUnknown: Bool
    private let slots: [String: Int]

    init(_ schema: SchemaModel, _ model: EntityModel, ignoresUnknown: Bool) {
        (self.schema, self.model, self.ignoresUnknown) = (schema, model, ignoresUnknown)
        slots = Dictionary(
            model.properties.enumerated().map { ($1.name, $0) },
            uniquingKeysWith: { first, _ in first }
        )
    }

    /// A decoder of lines of an entity.
    static func decoder(
        _ options: JSONLinesOptions,
        _ schema: SchemaModel,
        _ model: EntityModel
    ) -> JSONDecoder {
        let decoder = options.makeDecoder()
        decoder.userInfo[key] = FieldReader(
            schema,
            model,
            ignoresUnknown: options.ignoresUnknownFields
        )
        return decoder
    }

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { return nil }
    }

    /// Where a value is decoded from.
    private enum Source {
        case field(KeyedDecodingContainer<Name>, Name)
        case single(any SingleValueDecodingContainer)

        func read<Value: StorableValue & Decodable>(_ type: Value.Type) throws -> StoredValue {
            let value =
                switch self {
                case .field(let container, let key): try container.decode(type, forKey: key)
                case .single(let container): try container.decode(type)
                }
            if let refusal = value._refusal {
                throw StoreError(.invalid, "a field has a value that \(refusal)")
            }
            return value.stored
        }
    }

    func fields(
        _ decoder: any Decoder,
        _ model: EntityModel
    ) throws -> [(slot: Int, value: NamedFields.Value)] {
        let container = try decoder.container(keyedBy: Name.self)
        var fields: [(slot: Int, value: NamedFields.Value)] = []
        for key in container.allKeys {
            let name = key.stringValue
            guard let slot = model === self.model ? slots[name] : model.slot(named: name) else {
                if ignoresUnknown { continue }
                throw StoreError(
                    .invalid,
                    "\(name.prefix(64)) is no property of \(model.name)",
                    place: .init(entity: model.name, attribute: String(name.prefix(64))),
                    suggestion: "Name fields as the entity's properties, or pass them over: "
                        + "options.ignoresUnknownFields."
                )
            }
            fields.append((slot, try value(container, key, model, slot)))
        }
        return fields
    }

    private func value(
        _ container: KeyedDecodingContainer<Name>,
        _ key: Name,
        _ model: EntityModel,
        _ slot: Int
    ) throws -> NamedFields.Value {
        let property = model.properties[slot]
        if let attribute = property.attribute {
            if try container.decodeNil(forKey: key) { return .attribute(.null) }
            let value = try read(attribute.type, .field(container, key), model, key)
            // A number that no case of an enum has, a text that no codec has made.
            if let canRead = property.canRead, !canRead(value) {
                throw invalid(model, key, "is no value of the property")
            }
            return .attribute(value)
        }
        guard let relationship = property.relationship,
            let far = schema.entity(relationship.target)
        else { throw invalid(model, key, "is no stored property") }
        guard relationship.isToMany else {
            if try container.decodeNil(forKey: key) { return .target(nil) }
            return .target(try target(container.superDecoder(forKey: key), far, model, key))
        }
        if relationship.isKeptByInverse {
            throw invalid(model, key, "is what its inverse says: set that one")
        }
        var members = try container.nestedUnkeyedContainer(forKey: key)
        var targets: [NamedFields.Target] = []
        while !members.isAtEnd {
            targets.append(try target(members.superDecoder(), far, model, key))
        }
        return .targets(targets)
    }

    private func target(
        _ decoder: any Decoder,
        _ far: EntityModel,
        _ model: EntityModel,
        _ key: Name
    ) throws -> NamedFields.Target {
        if (try? decoder.container(keyedBy: Name.self)) != nil {
            let parts = try fields(decoder, far)
            let names = parts.map { far.properties[$0.slot].name }
            guard let index = far.constraint(over: names) else {
                throw invalid(
                    model,
                    key,
                    "does not name the properties of a #Unique of \(far.name): "
                        + far.constraintNames
                )
            }
            return .key(index, parts.map { (far.columns[$0.slot], $0.value) })
        }
        let single = try decoder.singleValueContainer()
        if let text = try? single.decode(String.self), let id = ManagedObjectID(uri: text) {
            return .id(id)
        }
        let indexes = far.record.indexes.filter { $0.uniqueness != nil && $0.names.count == 1 }
        guard indexes.count == 1, let slot = far.slot(named: indexes[0].names[0]),
            let attribute = far.properties[slot].attribute
        else {
            throw invalid(
                model,
                key,
                "must be an object with the values of a #Unique of \(far.name), or an ID's uri: "
                    + far.constraintNames
            )
        }
        let value = try read(attribute.type, .single(single), model, key)
        return .key(indexes[0], [(far.columns[slot], .attribute(value))])
    }

    private func read(
        _ type: AttributeType,
        _ source: Source,
        _ model: EntityModel,
        _ key: Name
    ) throws -> StoredValue {
        do {
            return try decode(type, source, model, key)
        } catch let error as StoreError {
            throw error
        } catch let error as DecodingError {
            guard case .dataCorrupted = error else { throw error }
        } catch {
            // Foundation's own, of a number that does not fit.
        }
        // Neither says where it was.
        throw invalid(model, key, "is out of range, or not in the form of its type")
    }

    private func decode(
        _ type: AttributeType,
        _ source: Source,
        _ model: EntityModel,
        _ key: Name
    ) throws -> StoredValue {
        switch type {
        case .bool: try source.read(Bool.self)
        case .int8: try source.read(Int8.self)
        case .int16: try source.read(Int16.self)
        case .int32: try source.read(Int32.self)
        case .int64: try source.read(Int64.self)
        case .uint8: try source.read(UInt8.self)
        case .uint16: try source.read(UInt16.self)
        case .uint32: try source.read(UInt32.self)
        case .uint64: try source.read(UInt64.self)
        case .float: try source.read(Float.self)
        case .double: try source.read(Double.self)
        case .date: try source.read(Date.self)
        case .text: try source.read(String.self)
        case .data: try source.read(Data.self)
        case .uuid: try source.read(UUID.self)
        case .decimal: try source.read(Decimal.self)
        case .url: try source.read(URL.self)
        case .blob:
            throw invalid(
                model,
                key,
                "is a blob: decode lines as a type and make it in the closure"
            )
        }
    }

    private func invalid(_ model: EntityModel, _ key: Name, _ reason: String) -> StoreError {
        StoreError(
            .invalid,
            "\(key.stringValue) \(reason)",
            place: .init(entity: model.name, attribute: key.stringValue)
        )
    }
}

extension BatchRow {
    /// Sets what a line says.
    mutating func take(_ line: NamedFields) throws {
        for (slot, value) in line.fields {
            switch value {
            case .attribute(let value): record.set(columns[slot], value)
            case .target(nil): record.setNull(columns[slot])
            case .target(let target?):
                record.set(columns[slot], reference: try find(target, slot))
            case .targets(let targets):
                var seen: Set<ObjectID> = []
                let ids = try targets.map { try find($0, slot) }
                links[slot] = ids.filter { seen.insert($0).inserted }
            }
        }
    }

    private func find(_ target: NamedFields.Target, _ slot: Int) throws -> ObjectID {
        guard let relationship = model.properties[slot].relationship,
            let far = container.schema.entity(relationship.target)
        else { preconditionFailure("\(model.properties[slot].name) leads nowhere") }
        return try find(target, far, model.properties[slot].name)
    }

    private func find(
        _ target: NamedFields.Target,
        _ far: EntityModel,
        _ name: String
    ) throws -> ObjectID {
        switch target {
        case .id(let id):
            guard try container.check(id) === far else {
                throw StoreError.wrongEntity(id, far.name)
            }
            return id.object
        case .key(let index, let parts):
            var values: [ColumnValue] = []
            for (column, value) in parts {
                values.append(ColumnValue(column, try stored(value, column, far)))
            }
            let found = try container.translating { () throws(RecordError) in
                try transaction.object(far, index, values)
            }
            if let found { return found }
            throw StoreError(
                .objectNotFound,
                "\(name) leads to a \(far.name) that is not there",
                place: .init(store: container.place, entity: model.name, attribute: name),
                suggestion: "Import what relationships lead to first."
            )
        }
    }

    /// The value of a part of a key, whose relationships are looked up as well.
    private func stored(
        _ value: NamedFields.Value,
        _ column: ColumnID,
        _ far: EntityModel
    ) throws -> StoredValue {
        switch value {
        case .attribute(let value): return value
        case .target(nil), .targets: return .null
        case .target(let target?):
            guard let slot = far.slotsByColumn[column],
                let relationship = far.properties[slot].relationship,
                let farther = container.schema.entity(relationship.target)
            else { return .null }
            return .reference(try find(target, farther, far.properties[slot].name))
        }
    }
}
