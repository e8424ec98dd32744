// The stored schema as bytes (Format.md, "Schema").
//
// Invariants
// - Numbers of entities, columns and trees are given once and never again: the next free ones stand
//   here.
// - A stranger can read every row and index with this record alone.
// - Decoding bounds every count and checks that numbers are in use at most once and point
//   somewhere.

public import VarveBase

/// The schema of a store at one commit.
public struct SchemaRecord: Hashable, Sendable {
    /// First byte of the encoding.
    public static let layoutVersion: UInt8 = 1
    /// How index entries are derived from rows: a change of the rules raises it.
    public static let derivationVersion: UInt16 = 1
    /// The most entities, hidden ones included.
    public static let entitiesMax = 4_096
    /// The most indexes of one entity, and columns of one index.
    public static let indexesMax = 256
    /// The most bytes of a name.
    public static let nameBytesMax = 1_024
    /// The most bytes of an encoded default value.
    public static let defaultBytesMax = 65_536

    /// One attribute.
    public struct Attribute: Hashable, Sendable {
        /// Its column in the row.
        public var column: ColumnID
        /// Its name.
        public var name: String
        /// Number of its type: `AttributeType` of the records layer, table in Format.md.
        public var typeCode: UInt8
        /// Whether null is allowed.
        public var isOptional: Bool
        /// The value of rows that do not store the column.
        public var defaultValue: StoredValue
        /// Bytes above which a blob becomes a file; nil: the default.
        public var externalLimit: UInt64?

        /// Joins the parts.
        public init(
            column: ColumnID,
            name: String,
            typeCode: UInt8,
            isOptional: Bool,
            defaultValue: StoredValue,
            externalLimit: UInt64?
        ) {
            self.column = column
            self.name = name
            self.typeCode = typeCode
            self.isOptional = isOptional
            self.defaultValue = defaultValue
            self.externalLimit = externalLimit
        }
    }

    /// How the links of a relationship are kept.
    public enum Links: Hashable, Sendable {
        /// To-one: a reference in this column; the index in this tree leads back.
        case column(ColumnID, index: TreeID)
        /// To-many: the column of the inverse, nothing else.
        case inverse
        /// Rows of a hidden entity; `side` 0 when this entity's objects stand in its column 0, else
        /// 1.
        case rows(EntityID, side: UInt8)
    }

    /// One relationship.
    public struct Relationship: Hashable, Sendable {
        /// Its name.
        public var name: String
        /// The entity it leads to.
        public var target: EntityID
        /// Name of the relationship back.
        public var inverse: String?
        /// Whether it leads to many objects.
        public var isToMany: Bool
        /// Whether the many have an order of their own.
        public var isOrdered: Bool
        /// Number of its delete rule, table in Format.md.
        public var deleteRule: UInt8
        /// How its links are kept.
        public var links: Links

        /// Joins the parts.
        public init(
            name: String,
            target: EntityID,
            inverse: String?,
            isToMany: Bool,
            isOrdered: Bool,
            deleteRule: UInt8,
            links: Links
        ) {
            self.name = name
            self.target = target
            self.inverse = inverse
            self.isToMany = isToMany
            self.isOrdered = isOrdered
            self.deleteRule = deleteRule
            self.links = links
        }
    }

    /// One column of an index.
    public struct IndexTerm: Hashable, Sendable {
        /// The column.
        public var column: ColumnID
        /// Whether its bytes are complemented in the key.
        public var isDescending: Bool

        /// Joins a column and a direction.
        public init(column: ColumnID, isDescending: Bool) {
            self.column = column
            self.isDescending = isDescending
        }
    }

    /// One index. The tree after `tree` holds the keys in which a value was cut.
    public struct Index: Hashable, Sendable {
        /// The tree of its entries.
        public var tree: TreeID
        /// Its columns, most significant first.
        public var terms: [IndexTerm]
        /// Whether two rows may not have equal columns, all of them not null.
        public var isUnique: Bool

        /// Joins the parts.
        public init(tree: TreeID, terms: [IndexTerm], isUnique: Bool) {
            self.tree = tree
            self.terms = terms
            self.isUnique = isUnique
        }
    }

    /// One entity.
    public struct Entity: Hashable, Sendable {
        /// Its number.
        public var id: EntityID
        /// Its name; a hidden link entity's is for tools only.
        public var name: String
        /// The tree of its rows.
        public var tree: TreeID
        /// Whether its rows are the links of a relationship.
        public var isHiddenLink: Bool
        /// The next free column.
        public var nextColumn: UInt16
        /// Its attributes.
        public var attributes: [Attribute]
        /// Its relationships.
        public var relationships: [Relationship]
        /// Its indexes.
        public var indexes: [Index]

        /// Joins the parts.
        public init(
            id: EntityID,
            name: String,
            tree: TreeID,
            isHiddenLink: Bool,
            nextColumn: UInt16 = 0,
            attributes: [Attribute] = [],
            relationships: [Relationship] = [],
            indexes: [Index] = []
        ) {
            self.id = id
            self.name = name
            self.tree = tree
            self.isHiddenLink = isHiddenLink
            self.nextColumn = nextColumn
            self.attributes = attributes
            self.relationships = relationships
            self.indexes = indexes
        }
    }

    /// The app's number of the schema.
    public var version: UInt32
    /// Counts the schemas of this store: raised by every change.
    public var revision: UInt32
    /// The rules by which index entries were derived.
    public var derivation: UInt16
    /// The next free entity number.
    public var nextEntity: UInt16
    /// The next free tree number.
    public var nextTree: UInt32
    /// The entities, ascending by number.
    public var entities: [Entity]

    /// An empty schema.
    public init(version: UInt32) {
        self.version = version
        revision = 0
        derivation = Self.derivationVersion
        nextEntity = 1
        nextTree = TreeID.firstFree.rawValue
        entities = []
    }
}

// MARK: - Writing

extension SchemaRecord {
    /// The record as bytes. Equal records give equal bytes.
    public func encoded() -> [UInt8] {
        var writer = ByteWriter(capacity: 256)
        writer.u8(Self.layoutVersion)
        writer.u32(version)
        writer.u32(revision)
        writer.u16(derivation)
        writer.u16(nextEntity)
        writer.u32(nextTree)
        writer.count(entities.count)
        for entity in entities { Self.append(entity, to: &writer) }
        return writer.bytes
    }

    private static func append(_ entity: Entity, to writer: inout ByteWriter) {
        writer.u16(entity.id.rawValue)
        writer.sizedText(entity.name)
        writer.u32(entity.tree.rawValue)
        writer.u8(entity.isHiddenLink ? 1 : 0)
        writer.u16(entity.nextColumn)
        writer.count(entity.attributes.count)
        for attribute in entity.attributes {
            writer.u16(attribute.column.rawValue)
            writer.sizedText(attribute.name)
            writer.u8(attribute.typeCode)
            writer.u8((attribute.isOptional ? 1 : 0) | (attribute.externalLimit == nil ? 0 : 2))
            if let limit = attribute.externalLimit { writer.varint(limit) }
            writer.sizedBytes(RowCoding.encode([attribute.defaultValue]))
        }
        writer.count(entity.relationships.count)
        for relationship in entity.relationships {
            writer.sizedText(relationship.name)
            writer.u16(relationship.target.rawValue)
            var flags: UInt8 = relationship.isToMany ? 1 : 0
            if relationship.isOrdered { flags |= 2 }
            if relationship.inverse != nil { flags |= 4 }
            writer.u8(flags)
            if let inverse = relationship.inverse { writer.sizedText(inverse) }
            writer.u8(relationship.deleteRule)
            switch relationship.links {
            case .column(let column, let index):
                writer.u8(1)
                writer.u16(column.rawValue)
                writer.u32(index.rawValue)
            case .inverse: writer.u8(2)
            case .rows(let hidden, let side):
                writer.u8(3)
                writer.u16(hidden.rawValue)
                writer.u8(side)
            }
        }
        writer.count(entity.indexes.count)
        for index in entity.indexes {
            writer.u32(index.tree.rawValue)
            writer.u8(index.isUnique ? 1 : 0)
            writer.count(index.terms.count)
            for term in index.terms {
                writer.u16(term.column.rawValue)
                writer.u8(term.isDescending ? 1 : 0)
            }
        }
    }
}

// MARK: - Reading

extension SchemaRecord {
    /// Reads and checks a record.
    public init(decoding bytes: [UInt8]) throws(FormatError) {
        var reader = ByteReader(bytes, place: "schema")
        let layout = try reader.u8("layout version")
        guard layout == Self.layoutVersion else {
            throw reader.error("layout version", "\(layout)", "\(Self.layoutVersion)")
        }
        version = try reader.u32("version")
        revision = try reader.u32("revision")
        derivation = try reader.u16("derivation version")
        nextEntity = try reader.u16("next entity")
        nextTree = try reader.u32("next tree")
        let count = try reader.count("entities", limit: Self.entitiesMax)
        entities = []
        for _ in 0..<count { entities.append(try Self.entity(&reader)) }
        try reader.finish("schema")
        try check(reader)
    }

    private static func entity(_ reader: inout ByteReader) throws(FormatError) -> Entity {
        var entity = Entity(
            id: EntityID(try reader.u16("entity")),
            name: try reader.sizedText("entity name", limit: nameBytesMax),
            tree: TreeID(try reader.u32("entity tree")),
            isHiddenLink: try flag(&reader, "hidden"),
            nextColumn: try reader.u16("next column")
        )
        guard Int(entity.nextColumn) <= RowCoding.columnsMax else {
            throw reader.error(
                "next column",
                "\(entity.nextColumn)",
                "at most \(RowCoding.columnsMax)"
            )
        }
        for _ in 0..<(try reader.count("attributes", limit: RowCoding.columnsMax)) {
            entity.attributes.append(try attribute(&reader))
        }
        for _ in 0..<(try reader.count("relationships", limit: RowCoding.columnsMax)) {
            entity.relationships.append(try relationship(&reader))
        }
        for _ in 0..<(try reader.count("indexes", limit: indexesMax)) {
            entity.indexes.append(try index(&reader))
        }
        return entity
    }

    private static func flag(
        _ reader: inout ByteReader,
        _ field: StaticString
    ) throws(FormatError) -> Bool {
        try flags(&reader, field, below: 2) == 1
    }

    private static func flags(
        _ reader: inout ByteReader,
        _ field: StaticString,
        below limit: UInt8
    ) throws(FormatError) -> UInt8 {
        let value = try reader.u8(field)
        guard value < limit else { throw reader.error(field, "\(value)", "below \(limit)") }
        return value
    }

    private static func attribute(_ reader: inout ByteReader) throws(FormatError) -> Attribute {
        let column = ColumnID(try reader.u16("column"))
        let name = try reader.sizedText("attribute name", limit: nameBytesMax)
        let typeCode = try reader.u8("type")
        let flags = try flags(&reader, "attribute flags", below: 4)
        let limit = flags & 2 == 0 ? nil : try reader.varint("external limit")
        let view = try RowView(try reader.sizedBytes("default", limit: defaultBytesMax))
        guard view.columnCount == 1, let value = try view.value(ColumnID(0)) else {
            throw reader.error("default", "\(view.columnCount) columns", "one value")
        }
        return Attribute(
            column: column,
            name: name,
            typeCode: typeCode,
            isOptional: flags & 1 == 1,
            defaultValue: value,
            externalLimit: limit
        )
    }

    private static func relationship(
        _ reader: inout ByteReader
    ) throws(FormatError) -> Relationship {
        let name = try reader.sizedText("relationship name", limit: nameBytesMax)
        let target = EntityID(try reader.u16("target"))
        let flags = try flags(&reader, "relationship flags", below: 8)
        let inverse = flags & 4 == 0 ? nil : try reader.sizedText("inverse", limit: nameBytesMax)
        let rule = try reader.u8("delete rule")
        let links: Links
        switch try reader.u8("links") {
        case 1:
            let column = ColumnID(try reader.u16("column"))
            links = .column(column, index: TreeID(try reader.u32("index tree")))
        case 2: links = .inverse
        case 3:
            let hidden = EntityID(try reader.u16("link entity"))
            links = .rows(hidden, side: try Self.flags(&reader, "side", below: 2))
        case let other: throw reader.error("links", "\(other)", "1, 2 or 3")
        }
        return Relationship(
            name: name,
            target: target,
            inverse: inverse,
            isToMany: flags & 1 == 1,
            isOrdered: flags & 2 == 2,
            deleteRule: rule,
            links: links
        )
    }

    private static func index(_ reader: inout ByteReader) throws(FormatError) -> Index {
        let tree = TreeID(try reader.u32("index tree"))
        let isUnique = try flag(&reader, "unique")
        let count = try reader.count("index columns", limit: indexesMax)
        var terms: [IndexTerm] = []
        for _ in 0..<count {
            let column = ColumnID(try reader.u16("index column"))
            terms.append(IndexTerm(column: column, isDescending: try flag(&reader, "descending")))
        }
        guard !terms.isEmpty else { throw reader.error("index columns", "none", "at least one") }
        return Index(tree: tree, terms: terms, isUnique: isUnique)
    }

    /// What single fields cannot show: numbers in use twice, references to nothing.
    private func check(_ reader: ByteReader) throws(FormatError) {
        var trees: Set<TreeID> = []
        var ids: Set<EntityID> = []
        func claim(_ tree: TreeID) throws(FormatError) {
            guard tree >= .firstFree, tree.rawValue < nextTree, trees.insert(tree).inserted else {
                throw reader.error(
                    "tree",
                    "\(tree.rawValue)",
                    "a number of its own below \(nextTree)"
                )
            }
        }
        for entity in entities {
            guard entity.id.rawValue < nextEntity, ids.insert(entity.id).inserted else {
                throw reader.error("entity", "\(entity.id.rawValue)", "a number of its own")
            }
            try claim(entity.tree)
            var columns: Set<ColumnID> = []
            for attribute in entity.attributes { columns.insert(attribute.column) }
            guard columns.count == entity.attributes.count else {
                throw reader.error("column", "twice", "a number of its own")
            }
            for relationship in entity.relationships {
                if case .column(let column, _) = relationship.links,
                    !columns.insert(column).inserted
                {
                    throw reader.error("column", "\(column.rawValue)", "a number of its own")
                }
            }
            for column in columns where column.rawValue >= entity.nextColumn {
                throw reader.error("column", "\(column.rawValue)", "below \(entity.nextColumn)")
            }
            for index in entity.indexes {
                try claim(index.tree)
                // The one of the keys that were cut, whether the index has texts or not.
                try claim(TreeID(index.tree.rawValue + 1))
                for term in index.terms where !columns.contains(term.column) {
                    throw reader.error("index column", "\(term.column.rawValue)", "a column")
                }
            }
        }
        for entity in entities {
            for relationship in entity.relationships where !ids.contains(relationship.target) {
                throw reader.error("target", "\(relationship.target.rawValue)", "an entity")
            }
            for relationship in entity.relationships {
                guard case .rows(let hidden, _) = relationship.links else { continue }
                guard entities.contains(where: { $0.id == hidden && $0.isHiddenLink }) else {
                    throw reader.error("link entity", "\(hidden.rawValue)", "a hidden entity")
                }
            }
        }
    }
}
