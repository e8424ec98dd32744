// The schema as a store has it: names joined with the numbers that rows and trees use.
//
// Invariants
// - Immutable. A migration makes a new one; a snapshot keeps the one of its commit.
// - Built from a stored schema record alone, so that every process and tool sees the same.

public import VarveBase

/// The schema of a store at one commit. Looking up by name costs O(1).
public final class RecordSchema: Sendable {
    /// The app's number of this schema.
    public let version: UInt32
    /// A hash over the stored schema: equal only if the schemas are.
    public let fingerprint: UInt64
    /// The entities an app sees, by name.
    public let entities: [RecordEntity]

    private let byName: [String: RecordEntity]
    /// By number: rows are read and written with it. Stores number their entities from 1 on.
    private let byID: [RecordEntity?]

    /// Joins entities; `all` includes hidden link entities.
    init(version: UInt32, fingerprint: UInt64, all: [RecordEntity]) {
        self.version = version
        self.fingerprint = fingerprint
        let visible = all.filter { !$0.isHiddenLink }
        self.entities = visible.sorted { $0.name < $1.name }
        self.byName = Dictionary(
            visible.map { ($0.name, $0) },
            uniquingKeysWith: { first, _ in first }
        )
        let end = all.map { Int($0.id.rawValue) + 1 }.max() ?? 0
        var byID = [RecordEntity?](repeating: nil, count: end)
        for entity in all.reversed() { byID[Int(entity.id.rawValue)] = entity }
        self.byID = byID
    }

    /// The entity of that name, unless it is a hidden one.
    public func entity(named name: String) -> RecordEntity? { byName[name] }

    /// The entity with that number, hidden link entities included.
    public func entity(_ id: EntityID) -> RecordEntity? {
        let number = Int(id.rawValue)
        return number < byID.count ? byID[number] : nil
    }

    /// The to-many relationships whose members are rows of the link entity `hidden`.
    public func relationships(
        linkedBy hidden: EntityID
    ) -> [(entity: RecordEntity, relationship: RecordRelationship)] {
        entities.flatMap { entity in
            entity.relationships.compactMap { relationship in
                guard case .link(let link) = relationship.storage, link.entity == hidden else {
                    return nil
                }
                return (entity, relationship)
            }
        }
    }

    /// All entities, hidden ones included, by number.
    public var all: [RecordEntity] { byID.compactMap { $0 } }
}

/// One entity of a store.
public final class RecordEntity: Sendable {
    /// Its number, which survives renaming.
    public let id: EntityID
    /// Its name.
    public let name: String
    /// The tree of its rows.
    public let tree: TreeID
    /// Whether it holds the links of a relationship and is hidden from apps.
    public let isHiddenLink: Bool
    /// One more than the highest column ever used: the length of a full row.
    public let columnCount: Int
    /// Its attributes, in the order of their columns.
    public let attributes: [RecordAttribute]
    /// Its relationships.
    public let relationships: [RecordRelationship]
    /// Its indexes, those of relationships and constraints included.
    public let indexes: [RecordIndex]

    /// What each column takes.
    let checks: [ColumnCheck]
    /// The attributes' defaults, by column.
    let defaults: [(column: Int, value: StoredValue)]
    /// Whether any index forbids duplicates.
    let hasUniqueIndex: Bool
    /// What the keys of its indexes are made of.
    let keyPlan: KeyPlan
    private let properties: [String: Property]
    private let columns: [RecordColumn?]

    /// What a name stands for: places among attributes and relationships. A forged schema may have
    /// one twice, for an attribute and for a relationship as well.
    private struct Property {
        var attribute: Int?
        var relationship: Int?
        /// The path to the whole value of an attribute or of a to-one relationship.
        var path: CompiledPath?
    }

    init(
        id: EntityID,
        name: String,
        tree: TreeID,
        isHiddenLink: Bool,
        columnCount: Int,
        attributes: [RecordAttribute],
        relationships: [RecordRelationship],
        indexes: [RecordIndex]
    ) {
        self.id = id
        self.name = name
        self.tree = tree
        self.isHiddenLink = isHiddenLink
        self.columnCount = columnCount
        self.attributes = attributes
        self.relationships = relationships
        self.indexes = indexes
        var columns = [RecordColumn?](repeating: nil, count: columnCount)
        var checks = [ColumnCheck](repeating: .nothing, count: columnCount)
        var properties: [String: Property] = [:]
        properties.reserveCapacity(attributes.count + relationships.count)
        for (place, attribute) in attributes.enumerated() {
            columns[Int(attribute.column.rawValue)] = .attribute(attribute)
            checks[Int(attribute.column.rawValue)] = ColumnCheck(attribute)
            let kind = CompiledPath.Kind.attribute(attribute.type)
            let path = CompiledPath(own: attribute.column, kind, name: attribute.name)
            // Of two the first.
            if properties[attribute.name] != nil { continue }
            properties[attribute.name] = Property(attribute: place, path: path)
        }
        for (place, relationship) in relationships.enumerated() {
            var path: CompiledPath?
            if case .column(let column, _) = relationship.storage {
                columns[Int(column.rawValue)] = .relationship(relationship)
                checks[Int(column.rawValue)] = .reference
                path = CompiledPath(own: column, .reference, name: relationship.name)
            }
            var property = properties[relationship.name] ?? Property()
            if property.relationship != nil { continue }
            property.relationship = place
            if property.path == nil { property.path = path }
            properties[relationship.name] = property
        }
        self.properties = properties
        self.columns = columns
        self.checks = checks
        defaults = attributes.map { (Int($0.column.rawValue), $0.defaultValue) }
        hasUniqueIndex = indexes.contains { $0.uniqueness != nil }
        keyPlan = KeyPlan(indexes)
    }

    /// An entity that no store has, for an object that belongs to none.
    public static func unlisted(_ name: String) -> RecordEntity {
        RecordEntity(
            id: EntityID(.max),
            name: name,
            tree: TreeID(.max),
            isHiddenLink: false,
            columnCount: 0,
            attributes: [],
            relationships: [],
            indexes: []
        )
    }

    /// The attribute of that name.
    public func attribute(named name: String) -> RecordAttribute? {
        properties[name]?.attribute.map { attributes[$0] }
    }

    /// The relationship of that name.
    public func relationship(named name: String) -> RecordRelationship? {
        properties[name]?.relationship.map { relationships[$0] }
    }

    /// The path to the whole value of an attribute or of a to-one relationship.
    func path(_ name: String) -> CompiledPath? { properties[name]?.path }

    /// The value of a column that a row does not store; null for dropped and unknown columns.
    public func defaultValue(_ column: ColumnID) -> StoredValue {
        guard case .attribute(let attribute)? = self.column(column) else { return .null }
        return attribute.defaultValue
    }

    /// What a column holds; nil when it was dropped or never existed.
    public func column(_ column: ColumnID) -> RecordColumn? {
        let index = Int(column.rawValue)
        return index < columns.count ? columns[index] : nil
    }
}

/// What a column of a row belongs to.
public enum RecordColumn: Sendable {
    case attribute(RecordAttribute)
    /// A to-one relationship: a reference or null.
    case relationship(RecordRelationship)

    /// The property's name.
    public var name: String {
        switch self {
        case .attribute(let attribute): attribute.name
        case .relationship(let relationship): relationship.name
        }
    }
}

/// One attribute of an entity in a store.
public struct RecordAttribute: Hashable, Sendable {
    /// Its column.
    public let column: ColumnID
    /// Its name.
    public let name: String
    /// Type of its values.
    public let type: AttributeType
    /// Whether null is allowed.
    public let isOptional: Bool
    /// The value of rows that do not store the column.
    public let defaultValue: StoredValue
    /// Bytes above which a blob becomes a file; nil: the default.
    public let externalLimit: UInt64?
}

/// One relationship of an entity in a store.
public struct RecordRelationship: Hashable, Sendable {
    /// How the links are kept.
    public enum Storage: Hashable, Sendable {
        /// To-one: a reference column of the owner's row, and an index over it.
        case column(ColumnID, index: TreeID)
        /// To-many whose inverse is to-one: the inverse's column, in rows of this entity, and its
        /// index.
        case inverseColumn(EntityID, ColumnID, index: TreeID)
        /// Rows of a hidden entity: many-to-many, without inverse, or ordered.
        case link(RecordLink)
    }

    /// Its name.
    public let name: String
    /// The entity it leads to.
    public let target: EntityID
    /// Name of the relationship back.
    public let inverse: String?
    /// Whether it leads to many objects.
    public let isToMany: Bool
    /// Whether the many have an order of their own.
    public let isOrdered: Bool
    /// What deleting the owner does.
    public let deleteRule: DeleteRule
    /// How the links are kept.
    public let storage: Storage
}

/// One side's view of a hidden link entity. A link row has four columns: the two objects and the
/// position of each among the other's members. Seen from here, `own` is this side and `other` the
/// far one.
public struct RecordLink: Hashable, Sendable {
    /// The hidden entity.
    public let entity: EntityID
    /// Column of the object on this side.
    public let ownColumn: ColumnID
    /// Column of the object on the far side.
    public let otherColumn: ColumnID
    /// Column of the far object's position among this side's members.
    public let positionColumn: ColumnID
    /// Index (own, position if ordered, other).
    public let index: TreeID
    /// The far side's index (other, its position if ordered, own).
    public let otherIndex: TreeID
    /// Whether this side's members have an order.
    public let isOrdered: Bool
    /// Whether the far side's members have an order.
    public let isOtherOrdered: Bool
}

/// One index of an entity in a store: keys are the columns, then the object ID.
public struct RecordIndex: Hashable, Sendable {
    /// One column of an index.
    public struct Term: Hashable, Sendable {
        /// The column.
        public let column: ColumnID
        /// Whether it is kept from high to low. The last term never is: see SchemaCatalog.
        public let isDescending: Bool
        /// Longest encoded text or data that a key keeps whole; longer ones are cut.
        public let byteLimit: Int
    }

    /// The tree of its entries.
    public let tree: TreeID
    /// The tree of the keys in which a text or data was cut; nil when no column can be cut.
    public let cutTree: TreeID?
    /// Its columns, most significant first.
    public let terms: [Term]
    /// Names of the columns.
    public let names: [String]
    /// What a duplicate does; nil when duplicates are allowed.
    public let uniqueness: UniquenessPolicy?
}
