// The schema that most tests of this layer use, and shorthand for its rows.

import VarveBase
import VarveEngine
import VarveIO

@testable import VarveRecords

/// Cities, countries, tags: to-one with inverse, many-to-many, ordered, one-to-one.
enum Cities {
    static let country = EntityDescription(
        name: "Country",
        attributes: [AttributeDescription(name: "name", type: .text)],
        relationships: [
            RelationshipDescription(
                name: "cities",
                target: "City",
                inverse: "country",
                isToMany: true
            )
        ],
        uniqueConstraints: [UniqueConstraintDescription(["name"])]
    )

    static let city = EntityDescription(
        name: "City",
        attributes: [
            AttributeDescription(name: "name", type: .text, defaultValue: .text("")),
            AttributeDescription(name: "population", type: .int64, isOptional: true),
            AttributeDescription(name: "latitude", type: .double, defaultValue: .double(0)),
            AttributeDescription(name: "note", type: .text, isOptional: true),
            AttributeDescription(name: "founded", type: .date, isOptional: true),
            AttributeDescription(name: "isCapital", type: .bool, defaultValue: .bool(false)),
        ],
        relationships: [
            RelationshipDescription(name: "country", target: "Country", inverse: "cities"),
            RelationshipDescription(name: "tags", target: "Tag", inverse: "cities", isToMany: true),
            RelationshipDescription(
                name: "stops",
                target: "City",
                isToMany: true,
                isOrdered: true
            ),
        ],
        indexes: [
            IndexDescription("name"),
            IndexDescription([.init("population", isDescending: true)]),
            IndexDescription([.init("country"), .init("population")]),
        ]
    )

    static let tag = EntityDescription(
        name: "Tag",
        attributes: [AttributeDescription(name: "name", type: .text)],
        relationships: [
            RelationshipDescription(name: "cities", target: "City", inverse: "tags", isToMany: true)
        ]
    )

    static let schema = SchemaDescription(version: 1, entities: [country, city, tag])

    static func store(
        _ schema: SchemaDescription = schema,
        unreferencedRowBytes: Int = 8 << 20,
        _ change: (inout EngineOptions) -> Void = { _ in }
    ) throws -> RecordStore {
        var engine = EngineOptions()
        change(&engine)
        return try RecordStore.open(
            .memory,
            schema: schema,
            options: RecordOptions(engine: engine, unreferencedRowBytes: unreferencedRowBytes)
        )
    }
}

extension RecordSchema {
    /// The entity of a test's schema.
    func require(_ name: String) throws -> RecordEntity {
        guard let entity = entity(named: name) else { throw RecordError.unknownEntity(name) }
        return entity
    }
}

extension RecordEntity {
    /// The column of an attribute or to-one of a test's schema.
    func column(_ name: String) -> ColumnID {
        if let attribute = attribute(named: name) { return attribute.column }
        if case .column(let column, _)? = relationship(named: name)?.storage { return column }
        preconditionFailure("no column \(name)")
    }

    /// Values by name.
    func values(_ values: [(String, StoredValue)]) -> [ColumnValue] {
        values.map { ColumnValue(column($0.0), $0.1) }
    }
}

extension RecordStore {
    /// Inserts one object in a commit of its own.
    @discardableResult
    func insert(_ entity: String, _ values: [(String, StoredValue)] = []) throws -> ObjectID {
        let id = allocateObjectIDs(1)
        let entity = try schema.require(entity)
        _ = try write { try $0.insert(entity.id, id, entity.values(values)) }
        return id
    }

    /// A request for an entity by name.
    func query(_ entity: String) throws -> RecordQuery {
        RecordQuery(entity: try schema.require(entity).id)
    }
}

/// A store that can be opened again, with another schema.
struct TestDirectory {
    private let directory = MemoryDirectory()

    /// Where the store is.
    var location: StoreLocation { .directory(directory, name: "test") }

    /// Opens the store, or makes it.
    func open(_ schema: SchemaDescription, removing: Set<String> = []) throws -> RecordStore {
        try RecordStore.open(
            location,
            schema: schema,
            options: RecordOptions(removing: removing)
        )
    }
}
