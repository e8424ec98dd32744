// The schema as the store has it.

import VarveBase
import VarveEngine
import VarveRecords

/// The stored schema.
public struct SchemaReport: Hashable, Sendable {
    /// One attribute.
    public struct Attribute: Hashable, Sendable {
        /// Its name.
        public var name: String
        /// The type, as it is written in Swift.
        public var type: String
        /// Whether null is allowed.
        public var isOptional: Bool
        /// The value of rows that do not store it; nil when that is null.
        public var defaultValue: InspectedValue?
        /// Bytes above which a blob becomes a file.
        public var externalLimit: UInt64?
    }

    /// One relationship.
    public struct Relationship: Hashable, Sendable {
        /// Its name.
        public var name: String
        /// The entity it leads to.
        public var target: String
        /// The name of the relationship back.
        public var inverse: String?
        /// Whether it leads to many objects.
        public var isToMany: Bool
        /// Whether the many have an order.
        public var isOrdered: Bool
        /// What deleting the owner does.
        public var deleteRule: String
    }

    /// One index.
    public struct Index: Hashable, Sendable {
        /// Properties, with "-" in front of those kept from high to low.
        public var properties: [String]
        /// Whether duplicates are refused.
        public var isUnique: Bool
    }

    /// One entity.
    public struct Entity: Hashable, Sendable {
        /// Its name.
        public var name: String
        /// Its rows.
        public var rows: UInt64
        /// Its attributes.
        public var attributes: [Attribute]
        /// Its relationships.
        public var relationships: [Relationship]
        /// Its indexes.
        public var indexes: [Index]
    }

    /// The app's number of the schema.
    public var version: UInt32
    /// Entities by name.
    public var entities: [Entity]

    /// The answer as JSON.
    public var json: JSON {
        .members([
            ("format", .int(1)), ("version", .uint(UInt64(version))),
            ("entities", .array(entities.map(\.json))),
        ])
    }
}

extension SchemaReport.Entity {
    fileprivate var json: JSON {
        .members([
            ("name", .string(name)), ("rows", .uint(rows)),
            (
                "attributes",
                .array(
                    attributes.map {
                        .members([
                            ("name", .string($0.name)), ("type", .string($0.type)),
                            ("optional", .bool($0.isOptional)),
                            ("default", $0.defaultValue?.json),
                            ("externalLimit", $0.externalLimit.map { .uint($0) }),
                        ])
                    }
                )
            ),
            (
                "relationships",
                .array(
                    relationships.map {
                        .members([
                            ("name", .string($0.name)), ("target", .string($0.target)),
                            ("inverse", $0.inverse.map { .string($0) }),
                            ("toMany", .bool($0.isToMany)), ("ordered", .bool($0.isOrdered)),
                            ("deleteRule", .string($0.deleteRule)),
                        ])
                    }
                )
            ),
            (
                "indexes",
                .array(
                    indexes.map {
                        .members([
                            ("properties", .array($0.properties.map { .string($0) })),
                            ("unique", .bool($0.isUnique)),
                        ])
                    }
                )
            ),
        ])
    }
}

extension StoreObserver {
    /// The stored schema.
    ///
    /// - Throws: `damaged` when no commit can be read.
    public func schema() throws(InspectionError) -> SchemaReport {
        let snapshot = try shown().snapshot
        return SchemaReport(
            version: snapshot.schema.version,
            entities: snapshot.schema.entities.map { entity in
                SchemaReport.Entity(
                    name: entity.name,
                    rows: snapshot.storage.count(entity.tree),
                    attributes: entity.attributes.map { attribute(entity, $0) },
                    relationships: entity.relationships.map { relationship in
                        SchemaReport.Relationship(
                            name: relationship.name,
                            target: names.name(relationship.target),
                            inverse: relationship.inverse,
                            isToMany: relationship.isToMany,
                            isOrdered: relationship.isOrdered,
                            deleteRule: "\(relationship.deleteRule)"
                        )
                    },
                    indexes: entity.indexes.map { index in
                        SchemaReport.Index(
                            properties: zip(index.names, index.terms).map { name, term in
                                (term.isDescending ? "-" : "") + name
                            },
                            isUnique: index.uniqueness != nil
                        )
                    }
                )
            }
        )
    }

    private func attribute(
        _ entity: RecordEntity,
        _ attribute: RecordAttribute
    ) -> SchemaReport.Attribute {
        let value = inspected(attribute.defaultValue, attribute.type, target: nil)
        return SchemaReport.Attribute(
            name: attribute.name,
            type: "\(attribute.type)",
            isOptional: attribute.isOptional,
            defaultValue: value == .null ? nil : value,
            externalLimit: attribute.externalLimit
        )
    }
}
