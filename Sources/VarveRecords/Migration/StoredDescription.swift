// The description of a stored schema: what an app would have to declare to get it.
//
// Invariants
// - `resolve(description, stored: record)` changes nothing, where no index of the record is one
//   that a relationship brings with it.
// - Numbers of the store are left out; so are the policies of constraints, which no store keeps.

import VarveBase
import VarveFormat

extension SchemaDescription {
    /// What a record says, in the words of a declaration.
    init(_ record: SchemaRecord) {
        self.init(version: record.version, entities: [])
        let names = Dictionary(
            record.entities.map { ($0.id, $0.name) },
            uniquingKeysWith: { first, _ in first }
        )
        for entity in record.entities.sorted(by: { $0.name < $1.name }) where !entity.isHiddenLink {
            entities.append(EntityDescription(entity, names))
        }
    }
}

extension EntityDescription {
    fileprivate init(_ entity: SchemaRecord.Entity, _ names: [EntityID: String]) {
        self.init(name: entity.name)
        attributes = entity.attributes.map { attribute in
            AttributeDescription(
                name: attribute.name,
                type: AttributeType(rawValue: attribute.typeCode) ?? .data,
                isOptional: attribute.isOptional,
                defaultValue: attribute.defaultValue,
                externalLimit: attribute.externalLimit
            )
        }
        relationships = entity.relationships.map { relationship in
            RelationshipDescription(
                name: relationship.name,
                target: names[relationship.target] ?? "",
                inverse: relationship.inverse,
                isToMany: relationship.isToMany,
                isOrdered: relationship.isOrdered,
                deleteRule: DeleteRule(rawValue: relationship.deleteRule) ?? .nullify
            )
        }
        let links = Set(
            entity.relationships.compactMap { relationship in
                if case .column(_, let index) = relationship.links { return index }
                return nil
            }
        )
        for index in entity.indexes {
            let columns = index.terms.map { entity.name(of: $0.column) }
            if index.isUnique { uniqueConstraints.append(UniqueConstraintDescription(columns)) }
            if index.isUnique || links.contains(index.tree) { continue }
            indexes.append(
                IndexDescription(
                    zip(columns, index.terms).map {
                        IndexDescription.Term($0, isDescending: $1.isDescending)
                    }
                )
            )
        }
    }
}
