// The stored schema (Format.md, "The schema record"): which numbers stand for which names.
//
// Invariants
// - It is data: it names entities and columns, never a Swift type to load.
// - Numbers are never given twice: every number in use is below its `next...`.
// - Entities and columns stand in ascending order of their numbers, so equal schemas give equal
//   bytes. `decode` accepts only records that `check` accepts.

public import VarveBase

/// Entities, columns, relationships and indexes as a store keeps them.
public struct SchemaRecord: Hashable, Sendable {
    /// The app's own number of this schema.
    public var version: UInt32
    /// The number for the next new entity.
    public var nextEntity: EntityID
    /// The number for the next new tree.
    public var nextTree: TreeID
    /// Entities, ascending by number.
    public var entities: [Entity]

    /// Joins the parts.
    public init(
        version: UInt32,
        nextEntity: EntityID = EntityID(1),
        nextTree: TreeID = .firstFree,
        entities: [Entity] = []
    ) {
        self.version = version
        self.nextEntity = nextEntity
        self.nextTree = nextTree
        self.entities = entities
    }

    /// One kind of object, or of hidden link rows.
    public struct Entity: Hashable, Sendable {
        /// Its number.
        public var id: EntityID
        /// Its name; unique among entities.
        public var name: String
        /// The tree of its rows.
        public var tree: TreeID
        /// Whether its rows are links of a relationship, which no app sees.
        public var isHiddenLink: Bool
        /// The number for the next new column.
        public var nextColumn: ColumnID
        /// Columns in use, ascending by number.
        public var columns: [Column]
        /// Relationships, in any order.
        public var relationships: [Relationship]
        /// Indexes and unique constraints, in any order.
        public var indexes: [Index]

        /// Joins the parts.
        public init(
            id: EntityID,
            name: String,
            tree: TreeID,
            isHiddenLink: Bool = false,
            nextColumn: ColumnID = ColumnID(0),
            columns: [Column] = [],
            relationships: [Relationship] = [],
            indexes: [Index] = []
        ) {
            self.id = id
            self.name = name
            self.tree = tree
            self.isHiddenLink = isHiddenLink
            self.nextColumn = nextColumn
            self.columns = columns
            self.relationships = relationships
            self.indexes = indexes
        }
    }

    /// One column: an attribute, or the reference of a to-one relationship.
    public struct Column: Hashable, Sendable {
        /// Its number in the entity.
        public var id: ColumnID
        /// Its name; unique in the entity.
        public var name: String
        /// The attribute type's number, or `SchemaRecord.referenceType`.
        public var typeCode: UInt8
        /// Whether null is allowed.
        public var isOptional: Bool
        /// The value of rows in which the column is absent.
        public var defaultValue: StoredValue
        /// Bytes above which a blob becomes a file of its own; nil: the store's default.
        public var externalLimit: UInt64?

        /// Joins the parts.
        public init(
            id: ColumnID,
            name: String,
            typeCode: UInt8,
            isOptional: Bool = false,
            defaultValue: StoredValue = .null,
            externalLimit: UInt64? = nil
        ) {
            self.id = id
            self.name = name
            self.typeCode = typeCode
            self.isOptional = isOptional
            self.defaultValue = defaultValue
            self.externalLimit = externalLimit
        }
    }

    /// One relationship.
    public struct Relationship: Hashable, Sendable {
        /// Its name; unique in the entity, columns included unless the column is its own.
        public var name: String
        /// The entity it leads to.
        public var target: EntityID
        /// Name of the relationship back.
        public var inverse: String?
        /// Whether it leads to many.
        public var isToMany: Bool
        /// Whether the many have an order of their own.
        public var isOrdered: Bool
        /// Number of the delete rule.
        public var deleteRule: UInt8
        /// Where its links lie.
        public var storage: Storage

        /// Joins the parts.
        public init(
            name: String,
            target: EntityID,
            inverse: String? = nil,
            isToMany: Bool = false,
            isOrdered: Bool = false,
            deleteRule: UInt8,
            storage: Storage
        ) {
            self.name = name
            self.target = target
            self.inverse = inverse
            self.isToMany = isToMany
            self.isOrdered = isOrdered
            self.deleteRule = deleteRule
            self.storage = storage
        }
    }

    /// Where the links of a relationship lie.
    public enum Storage: Hashable, Sendable {
        /// In a reference column of the owner, with an index (target, owner).
        case column(ColumnID, index: TreeID)
        /// In a reference column of the target, found through its index.
        case inverseColumn(EntityID, ColumnID, index: TreeID)
        /// In rows of a hidden link entity.
        case link(Link)
    }

    /// Rows (owner, target, position) of a hidden link entity, seen from one of its two sides.
    public struct Link: Hashable, Sendable {
        /// The hidden entity.
        public var entity: EntityID
        /// Its column with this side's object.
        public var owner: ColumnID
        /// Its column with the other side's object.
        public var target: ColumnID
        /// Its column with the position.
        public var position: ColumnID
        /// Its index that begins with this side's object.
        public var ownerIndex: TreeID
        /// Its index that begins with the other side's object.
        public var targetIndex: TreeID

        /// Joins the parts.
        public init(
            entity: EntityID,
            owner: ColumnID,
            target: ColumnID,
            position: ColumnID,
            ownerIndex: TreeID,
            targetIndex: TreeID
        ) {
            self.entity = entity
            self.owner = owner
            self.target = target
            self.position = position
            self.ownerIndex = ownerIndex
            self.targetIndex = targetIndex
        }
    }

    /// One index of an entity; a unique constraint is one too.
    public struct Index: Hashable, Sendable {
        /// The tree of its entries.
        public var tree: TreeID
        /// Columns, most significant first.
        public var terms: [Term]
        /// Whether no two objects may share its values.
        public var isUnique: Bool
        /// Version of the function that derives its entries from rows.
        public var derivation: UInt32

        /// Joins the parts.
        public init(
            tree: TreeID,
            terms: [Term],
            isUnique: Bool = false,
            derivation: UInt32 = 1
        ) {
            self.tree = tree
            self.terms = terms
            self.isUnique = isUnique
            self.derivation = derivation
        }
    }

    /// One column of an index.
    public struct Term: Hashable, Sendable {
        /// The column.
        public var column: ColumnID
        /// Whether it runs from high to low.
        public var isDescending: Bool

        /// Joins the parts.
        public init(column: ColumnID, isDescending: Bool = false) {
            self.column = column
            self.isDescending = isDescending
        }
    }
}

// MARK: - Limits and constants

extension SchemaRecord {
    /// First byte of every record.
    public static let encodingVersion: UInt8 = 1
    /// Type number of a reference column; attribute types are below it.
    public static let referenceType: UInt8 = 64
    /// The most entities, hidden ones included.
    public static let entitiesMax = 4096
    /// The most relationships of an entity.
    public static let relationshipsMax = 1024
    /// The most indexes of an entity.
    public static let indexesMax = 256
    /// The most columns of an index.
    public static let termsMax = 16
    /// The most bytes of a name.
    public static let nameBytesMax = 255
    /// The most bytes of an encoded default value.
    public static let defaultBytesMax = 65_536
    /// The most bytes of a record.
    public static let bytesMax = 16 << 20

    /// Bit of an entity's flags: rows are hidden links.
    public static let hiddenLinkFlag: UInt8 = 1
    /// Bit of a column's flags: null is allowed.
    public static let optionalFlag: UInt8 = 1
    /// Bit of a column's flags: an external limit follows.
    public static let externalLimitFlag: UInt8 = 2
    /// Bit of a relationship's flags: it leads to many.
    public static let toManyFlag: UInt8 = 1
    /// Bit of a relationship's flags: the many are ordered.
    public static let orderedFlag: UInt8 = 2
    /// Bit of an index's flags: no two objects share its values.
    public static let uniqueFlag: UInt8 = 1

    /// Storage in a column of the owner.
    public static let columnStorage: UInt8 = 1
    /// Storage in a column of the target.
    public static let inverseColumnStorage: UInt8 = 2
    /// Storage in link rows.
    public static let linkStorage: UInt8 = 3
}
