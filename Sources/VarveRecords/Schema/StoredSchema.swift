// From the stored schema record to the schema that the other files work with.

internal import VarveBase
internal import VarveFormat

extension RecordSchema {
    /// Joins what a record says. `description` adds what is not stored: the policies of
    /// constraints.
    convenience init(
        record: SchemaRecord,
        description: SchemaDescription? = nil
    ) throws(FormatError) {
        let bytes = record.encoded()
        var all: [RecordEntity] = []
        for entity in record.entities {
            let declared = description?.entities.first { $0.name == entity.name }
            all.append(try Self.entity(entity, record, declared))
        }
        self.init(
            version: record.version,
            fingerprint: FrameHash.xxh64(bytes, seed: 0),
            all: all
        )
    }

    private static func entity(
        _ entity: SchemaRecord.Entity,
        _ record: SchemaRecord,
        _ declared: EntityDescription?
    ) throws(FormatError) -> RecordEntity {
        var attributes: [RecordAttribute] = []
        for attribute in entity.attributes {
            guard let type = AttributeType(rawValue: attribute.typeCode) else {
                throw error("attribute type", "\(attribute.typeCode)", "a known type")
            }
            guard type.accepts(attribute.defaultValue) else {
                throw error("default of \(attribute.name)", "another type", "\(type)")
            }
            attributes.append(
                RecordAttribute(
                    column: attribute.column,
                    name: attribute.name,
                    type: type,
                    isOptional: attribute.isOptional,
                    defaultValue: attribute.defaultValue,
                    externalLimit: attribute.externalLimit
                )
            )
        }
        var relationships: [RecordRelationship] = []
        for relationship in entity.relationships {
            guard let rule = DeleteRule(rawValue: relationship.deleteRule) else {
                throw error("delete rule", "\(relationship.deleteRule)", "1 to 4")
            }
            relationships.append(
                RecordRelationship(
                    name: relationship.name,
                    target: relationship.target,
                    inverse: relationship.inverse,
                    isToMany: relationship.isToMany,
                    isOrdered: relationship.isOrdered,
                    deleteRule: rule,
                    storage: try storage(relationship, record)
                )
            )
        }
        attributes.sort { $0.column < $1.column }
        var indexes: [RecordIndex] = []
        for index in entity.indexes { indexes.append(try self.index(of: entity, index, declared)) }
        if entity.isHiddenLink { try checkLink(entity) }
        return RecordEntity(
            id: entity.id,
            name: entity.name,
            tree: entity.tree,
            isHiddenLink: entity.isHiddenLink,
            columnCount: Int(entity.nextColumn),
            attributes: attributes,
            relationships: relationships,
            indexes: indexes
        )
    }

    private static func storage(
        _ relationship: SchemaRecord.Relationship,
        _ record: SchemaRecord
    ) throws(FormatError) -> RecordRelationship.Storage {
        switch relationship.links {
        case .column(let column, let index):
            return .column(column, index: index)
        case .inverse:
            let target = record.entities.first { $0.id == relationship.target }
            let back = target?.relationships.first { $0.name == relationship.inverse }
            guard case .column(let column, let index)? = back?.links else {
                throw error("inverse of \(relationship.name)", "none", "a to-one relationship")
            }
            return .inverseColumn(relationship.target, column, index: index)
        case .rows(let hidden, let side):
            guard let link = record.entities.first(where: { $0.id == hidden }),
                link.isHiddenLink, link.indexes.count == 2, side < 2
            else { throw error("link entity \(hidden.rawValue)", "another form", "two indexes") }
            let own = link.indexes[Int(side)]
            let other = link.indexes[1 - Int(side)]
            return .link(
                RecordLink(
                    entity: hidden,
                    ownColumn: ColumnID(UInt16(side)),
                    otherColumn: ColumnID(UInt16(1 - side)),
                    positionColumn: ColumnID(UInt16(2 + side)),
                    index: own.tree,
                    otherIndex: other.tree,
                    isOrdered: own.terms.count == 3,
                    isOtherOrdered: other.terms.count == 3
                )
            )
        }
    }

    /// What the code for links relies on: two references, two positions, an index from either side.
    private static func checkLink(_ entity: SchemaRecord.Entity) throws(FormatError) {
        var isSound =
            entity.relationships.count == 2 && entity.indexes.count == 2 && entity.nextColumn >= 4
        for side in 0..<2 where isSound {
            let columns = entity.indexes[side].terms.map { Int($0.column.rawValue) }
            isSound = columns == [side, 1 - side] || columns == [side, 2 + side, 1 - side]
            if case .column(let column, _) = entity.relationships[side].links {
                isSound = isSound && Int(column.rawValue) == side
            } else {
                isSound = false
            }
            if entity.indexes[side].terms.contains(where: \.isDescending) { isSound = false }
        }
        if !isSound {
            throw error("link entity \(entity.id.rawValue)", "another form", "two sides")
        }
    }

    private static func index(
        of entity: SchemaRecord.Entity,
        _ index: SchemaRecord.Index,
        _ declared: EntityDescription?
    ) throws(FormatError) -> RecordIndex {
        let names = index.terms.map { term in entity.name(of: term.column) }
        let sizes = index.terms.map { term in entity.keySize(of: term.column) }
        let limit = IndexKeys.byteLimit(sizes: sizes)
        guard !sizes.contains(nil) || limit >= IndexKeys.byteLimitMin,
            index.tree.rawValue < UInt32.max
        else { throw error("index of \(entity.name)", "too many columns", "fewer") }
        var policy: UniquenessPolicy?
        if index.isUnique {
            let constraint = declared?.uniqueConstraints.first { $0.properties == names }
            policy = constraint?.policy ?? .error
        }
        let terms = index.terms.map { term in
            RecordIndex.Term(
                column: term.column,
                isDescending: term.isDescending,
                byteLimit: limit
            )
        }
        return RecordIndex(
            tree: index.tree,
            cutTree: sizes.contains(nil) ? TreeID(index.tree.rawValue + 1) : nil,
            terms: terms,
            names: names,
            uniqueness: policy
        )
    }

    private static func error(
        _ field: String,
        _ found: String,
        _ expected: String
    ) -> FormatError {
        FormatError(place: "schema", field: field, found: found, expected: expected)
    }
}

extension SchemaRecord.Entity {
    /// The name of the property that a column belongs to.
    func name(of column: ColumnID) -> String {
        if let attribute = attributes.first(where: { $0.column == column }) {
            return attribute.name
        }
        let relationship = relationships.first { relationship in
            if case .column(column, _) = relationship.links { return true }
            return false
        }
        return relationship?.name ?? "column \(column.rawValue)"
    }

    /// Bytes of a column's value in a key; nil when that varies.
    func keySize(of column: ColumnID) -> Int? {
        guard let attribute = attributes.first(where: { $0.column == column }) else { return 9 }
        guard let type = AttributeType(rawValue: attribute.typeCode) else { return 41 }
        return IndexKeys.fixedSize(type)
    }
}
