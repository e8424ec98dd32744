// What every schema record must fulfil, before it is written and after it is read.

import VarveBase

extension SchemaRecord {
    /// Checks numbers, names, limits, and that everything referred to exists.
    /// - Complexity: O(n).
    public func check() throws(FormatError) {
        guard entities.count <= Self.entitiesMax else {
            throw Self.error("entity count", "\(entities.count)", "at most \(Self.entitiesMax)")
        }
        var byNumber: [EntityID: Entity] = [:]
        var names = Set<String>()
        var trees = Set<TreeID>()
        var last: EntityID?
        for entity in entities {
            if let last, entity.id <= last {
                throw Self.error("entity number", "\(entity.id.rawValue)", "a rising one")
            }
            last = entity.id
            guard entity.id < nextEntity else {
                throw Self.error(
                    "entity number",
                    "\(entity.id.rawValue)",
                    "below \(nextEntity.rawValue)"
                )
            }
            try Self.checkName(entity.name)
            guard names.insert(entity.name).inserted else {
                throw Self.error("entity name", "one twice", "different names")
            }
            byNumber[entity.id] = entity
            try use(entity.tree, &trees)
            try checkColumns(of: entity)
            try checkIndexes(of: entity, &trees)
        }
        for entity in entities {
            try checkRelationships(of: entity, byNumber)
        }
    }

    private func use(_ tree: TreeID, _ trees: inout Set<TreeID>) throws(FormatError) {
        guard tree >= .firstFree, tree < nextTree, trees.insert(tree).inserted else {
            throw Self.error("tree", "\(tree.rawValue)", "a free number of its own")
        }
    }

    private func checkColumns(of entity: Entity) throws(FormatError) {
        guard entity.columns.count <= RowCoding.columnsMax,
            Int(entity.nextColumn.rawValue) <= RowCoding.columnsMax
        else {
            throw Self.error("columns", "more", "at most \(RowCoding.columnsMax)")
        }
        var names = Set<String>()
        var last: ColumnID?
        for column in entity.columns {
            if let last, column.id <= last {
                throw Self.error("column number", "\(column.id.rawValue)", "a rising one")
            }
            last = column.id
            guard column.id < entity.nextColumn else {
                throw Self.error(
                    "column number",
                    "\(column.id.rawValue)",
                    "below \(entity.nextColumn.rawValue)"
                )
            }
            try Self.checkName(column.name)
            guard names.insert(column.name).inserted else {
                throw Self.error("column name", "one twice", "different names")
            }
            guard column.typeCode >= 1, column.typeCode <= Self.referenceType else {
                throw Self.error("column type", "\(column.typeCode)", "a known type")
            }
            let bytes = RowCoding.encode([column.defaultValue]).count
            guard bytes <= Self.defaultBytesMax else {
                throw Self.error(
                    "default value", "\(bytes) bytes", "at most \(Self.defaultBytesMax)")
            }
        }
    }

    private func checkIndexes(
        of entity: Entity,
        _ trees: inout Set<TreeID>
    ) throws(FormatError) {
        guard entity.indexes.count <= Self.indexesMax else {
            throw Self.error(
                "index count",
                "\(entity.indexes.count)",
                "at most \(Self.indexesMax)"
            )
        }
        let columns = Set(entity.columns.map(\.id))
        for index in entity.indexes {
            try use(index.tree, &trees)
            guard (1...Self.termsMax).contains(index.terms.count) else {
                throw Self.error(
                    "index terms",
                    "\(index.terms.count)",
                    "1 to \(Self.termsMax)"
                )
            }
            guard index.terms.allSatisfy({ columns.contains($0.column) }) else {
                throw Self.error("index term", "another column", "one of the entity")
            }
        }
    }

    private func checkRelationships(
        of entity: Entity,
        _ byNumber: [EntityID: Entity]
    ) throws(FormatError) {
        guard entity.relationships.count <= Self.relationshipsMax else {
            throw Self.error(
                "relationship count",
                "\(entity.relationships.count)",
                "at most \(Self.relationshipsMax)"
            )
        }
        var names = Set<String>()
        for relationship in entity.relationships {
            try Self.checkName(relationship.name)
            if let inverse = relationship.inverse { try Self.checkName(inverse) }
            guard names.insert(relationship.name).inserted else {
                throw Self.error("relationship name", "one twice", "different names")
            }
            guard byNumber[relationship.target] != nil else {
                throw Self.error(
                    "relationship target",
                    "\(relationship.target.rawValue)",
                    "an entity"
                )
            }
            switch relationship.storage {
            case .column(let column, let index):
                try Self.checkReference(column, index, in: entity)
            case .inverseColumn(let owner, let column, let index):
                try Self.checkReference(column, index, in: byNumber[owner])
            case .link(let link):
                let hidden = byNumber[link.entity]
                guard hidden?.isHiddenLink == true else {
                    throw Self.error(
                        "link entity",
                        "\(link.entity.rawValue)",
                        "a hidden entity"
                    )
                }
                try Self.checkReference(link.owner, link.ownerIndex, in: hidden)
                try Self.checkReference(link.target, link.targetIndex, in: hidden)
                guard hidden?.columns.contains(where: { $0.id == link.position }) == true else {
                    throw Self.error(
                        "link position",
                        "\(link.position.rawValue)",
                        "a column"
                    )
                }
            }
        }
    }

    /// A reference column, and an index that begins with it.
    private static func checkReference(
        _ column: ColumnID,
        _ tree: TreeID,
        in entity: Entity?
    ) throws(FormatError) {
        let found = entity?.columns.first { $0.id == column }
        guard found?.typeCode == referenceType else {
            throw error("reference column", "\(column.rawValue)", "a reference")
        }
        let index = entity?.indexes.first { $0.tree == tree }
        guard index?.terms.first?.column == column else {
            throw error("reference index", "\(tree.rawValue)", "an index of the reference")
        }
    }

    private static func checkName(_ name: String) throws(FormatError) {
        guard (1...nameBytesMax).contains(name.utf8.count) else {
            throw error("name", "\(name.utf8.count) bytes", "1 to \(nameBytesMax)")
        }
    }

    static func error(_ field: String, _ found: String, _ expected: String) -> FormatError {
        FormatError(place: "schema", field: field, found: found, expected: expected)
    }
}
