// What an app declares: entities, attributes, relationships, indexes, constraints. Plain values.
//
// Invariants
// - Nothing here knows numbers of the store: names only. SchemaCatalog gives them numbers.

public import VarveBase

/// Everything that an app stores, as it declares it.
public struct SchemaDescription: Hashable, Sendable {
    /// The app's own number of this schema. A store with a higher one is opened with
    /// `schemaTooNew`.
    public var version: UInt32
    /// The entities, in any order.
    public var entities: [EntityDescription]

    /// Joins a version and entities.
    public init(version: UInt32, entities: [EntityDescription]) {
        self.version = version
        self.entities = entities
    }
}

/// One kind of object.
public struct EntityDescription: Hashable, Sendable {
    /// Name, unique in the schema.
    public var name: String
    /// Names that stores may still have it under, the latest first.
    public var originalNames: [String]
    /// Attributes. Their names and those of relationships are unique together.
    public var attributes: [AttributeDescription]
    /// Relationships to other objects.
    public var relationships: [RelationshipDescription]
    /// Indexes beyond those that relationships and constraints bring with them.
    public var indexes: [IndexDescription]
    /// Combinations of values that no two objects may share.
    public var uniqueConstraints: [UniqueConstraintDescription]

    /// Joins the parts of an entity.
    public init(
        name: String,
        originalNames: [String] = [],
        attributes: [AttributeDescription] = [],
        relationships: [RelationshipDescription] = [],
        indexes: [IndexDescription] = [],
        uniqueConstraints: [UniqueConstraintDescription] = []
    ) {
        self.name = name
        self.originalNames = originalNames
        self.attributes = attributes
        self.relationships = relationships
        self.indexes = indexes
        self.uniqueConstraints = uniqueConstraints
    }
}

/// One attribute of an entity.
public struct AttributeDescription: Hashable, Sendable {
    /// Name, unique among the entity's properties.
    public var name: String
    /// Names that stores may still have it under, the latest first.
    public var originalNames: [String]
    /// Type of its values.
    public var type: AttributeType
    /// Whether null is allowed.
    public var isOptional: Bool
    /// The value of rows written before the attribute existed; also the value of a new object.
    public var defaultValue: StoredValue
    /// Bytes above which a blob becomes a file of its own; nil: the store's default (102,400).
    public var externalLimit: UInt64?

    /// Joins the parts of an attribute.
    public init(
        name: String,
        originalNames: [String] = [],
        type: AttributeType,
        isOptional: Bool = false,
        defaultValue: StoredValue = .null,
        externalLimit: UInt64? = nil
    ) {
        self.name = name
        self.originalNames = originalNames
        self.type = type
        self.isOptional = isOptional
        self.defaultValue = defaultValue
        self.externalLimit = externalLimit
    }
}

/// What deleting an object does to the objects that a relationship leads to.
public enum DeleteRule: UInt8, Hashable, Sendable {
    case nullify = 1
    case cascade = 2
    case deny = 3
    case noAction = 4
}

/// One relationship of an entity.
public struct RelationshipDescription: Hashable, Sendable {
    /// Name, unique among the entity's properties.
    public var name: String
    /// Names that stores may still have it under, the latest first.
    public var originalNames: [String]
    /// Name of the entity it leads to.
    public var target: String
    /// Name of the relationship back, in the target entity.
    public var inverse: String?
    /// Whether it leads to many objects.
    public var isToMany: Bool
    /// Whether the many have an order of their own. To-many only.
    public var isOrdered: Bool
    /// What deleting the owner does.
    public var deleteRule: DeleteRule

    /// Joins the parts of a relationship.
    public init(
        name: String,
        originalNames: [String] = [],
        target: String,
        inverse: String? = nil,
        isToMany: Bool = false,
        isOrdered: Bool = false,
        deleteRule: DeleteRule = .nullify
    ) {
        self.name = name
        self.originalNames = originalNames
        self.target = target
        self.inverse = inverse
        self.isToMany = isToMany
        self.isOrdered = isOrdered
        self.deleteRule = deleteRule
    }
}

/// An index over one or several properties (attributes or to-one relationships) of an entity.
public struct IndexDescription: Hashable, Sendable {
    /// One property of an index.
    public struct Term: Hashable, Sendable {
        /// Name of an attribute or of a to-one relationship.
        public var property: String
        /// Whether this property runs from high to low. Only directions relative to each other
        /// matter: an index is read from both ends.
        public var isDescending: Bool

        /// Joins a property and a direction.
        public init(_ property: String, isDescending: Bool = false) {
            self.property = property
            self.isDescending = isDescending
        }
    }

    /// The properties, most significant first.
    public var terms: [Term]

    /// An index over `terms`.
    public init(_ terms: [Term]) {
        self.terms = terms
    }

    /// An index over `properties`, all ascending.
    public init(_ properties: String...) {
        self.terms = properties.map { Term($0) }
    }
}

/// What a save does with a new object whose unique values exist already.
public enum UniquenessPolicy: UInt8, Hashable, Sendable {
    /// The save fails and lists every violation.
    case error = 1
    /// The existing object takes the new one's values and keeps its own ID.
    case upsert = 2
    /// The new object is dropped.
    case ignore = 3
}

/// A combination of properties that no two objects of an entity may share.
/// Null equals nothing: an object with a null part is never a duplicate.
public struct UniqueConstraintDescription: Hashable, Sendable {
    /// Names of attributes or to-one relationships, compared together.
    public var properties: [String]
    /// What a save does on a duplicate. Not stored: it is the app's behaviour.
    public var policy: UniquenessPolicy

    /// Joins properties and a policy.
    public init(_ properties: [String], policy: UniquenessPolicy = .error) {
        self.properties = properties
        self.policy = policy
    }
}
