// Columns: how an entity names its stored attributes, typed by entity and value.
//
// Invariants
// - A column is one reference, so that handing it to an accessor costs nothing.
// - `slot` is set once, before the first container with the entity opens, and never changes.

public import Synchronization
import VarveBase
import VarveRecords

/// What a column or relationship declares. One per property and process; a path through a to-one
/// makes one that has no slot.
public final class PropertyDefinition: Sendable {
    /// Attribute or relationship, with what belongs to it.
    enum Kind: Sendable {
        case attribute(AttributeDefinition)
        case toOne(RelationshipDefinition)
        case toMany(RelationshipDefinition)
    }
    struct AttributeDefinition: Sendable {
        var type: AttributeType
        var isOptional: Bool
        /// Nil: the attribute has no default, so it must be set before a save.
        var makeDefault: (@Sendable () -> StoredValue)?
        var externalLimit: UInt64?
        var rules: AttributeRules?
        /// Whether a value of the stored type is one of the property's; nil: all are.
        var canRead: (@Sendable (StoredValue) -> Bool)?
        /// Makes a derived value of what stands in other slots.
        var derive: DeriveValue?
        /// Of an optional composite attribute.
        var member: CompositeMember?
    }
    struct RelationshipDefinition: Sendable {
        var target: any ManagedObject.Type
        var inverse: String?
        var deleteRule: DeleteRule
        var isOrdered: Bool
        var count: CountRule?
    }

    let path: PropertyPath
    /// Names that stores may still have it under, the latest first.
    let originalNames: [String]
    let kind: Kind
    /// Position among the entity's properties; -1 until the entity is registered, and for paths.
    @usableFromInline let slotNumber: Atomic<Int>

    init(path: PropertyPath, originalNames: [String], kind: Kind) {
        self.path = path
        self.originalNames = originalNames
        self.kind = kind
        self.slotNumber = Atomic(-1)
    }

    /// The property's own name.
    var name: String { path.names.last ?? "" }

    /// Position among the entity's properties.
    @inlinable var slot: Int { slotNumber.load(ordering: .relaxed) }

    /// The same property, seen through relationships.
    func behind(_ prefix: PropertyPath) -> PropertyDefinition {
        PropertyDefinition(
            path: PropertyPath(prefix.names + path.names, part: path.part),
            originalNames: [],
            kind: kind
        )
    }
}

/// A stored attribute of an entity, or, in a request, an attribute that a to-one relationship leads
/// to.
///
/// Declared once per attribute in the entity's `Columns`; requests use it to filter and sort.
public struct Column<Root: ManagedObject, Value: StorableValue>: Sendable {
    /// The declaration behind it.
    @usableFromInline let definition: PropertyDefinition

    init(definition: PropertyDefinition) { self.definition = definition }

    /// An attribute with a default, evaluated for each new object.
    /// - Parameters:
    ///   - name: the property's name, as it is stored.
    ///   - value: the value of a new object, and of rows older than the attribute: one for all of
    ///     them if it is always the same, one for each if it is not, as with `UUID()`.
    ///   - rules: what values must satisfy when they are saved.
    ///   - originalName: names that stores may still have it under, the latest first.
    public init(
        _ name: String,
        default value: @autoclosure @escaping @Sendable () -> Value,
        rules: AttributeRules? = nil,
        originalName: String...
    ) {
        self.init(
            definition: PropertyDefinition(
                path: PropertyPath(name),
                originalNames: originalName,
                kind: .attribute(
                    .init(
                        type: Value.attributeType,
                        isOptional: Value.isOptional,
                        makeDefault: { value().stored },
                        rules: rules,
                        canRead: StoredForms.check(of: Value.self)
                    )
                )
            )
        )
    }

    /// An attribute without default: an optional one begins as nil, any other must be set before
    /// the first save (`missingValue`).
    /// - Parameters:
    ///   - name: the property's name, as it is stored.
    ///   - rules: what values must satisfy when they are saved.
    ///   - originalName: names that stores may still have it under, the latest first.
    public init(_ name: String, rules: AttributeRules? = nil, originalName: String...) {
        self.init(
            definition: PropertyDefinition(
                path: PropertyPath(name),
                originalNames: originalName,
                kind: .attribute(
                    .init(
                        type: Value.attributeType,
                        isOptional: Value.isOptional,
                        makeDefault: Value.isOptional ? Self.makeNull : nil,
                        rules: rules,
                        canRead: StoredForms.check(of: Value.self)
                    )
                )
            )
        )
    }
}

extension Column {
    private static var makeNull: @Sendable () -> StoredValue { { .null } }
}

extension Column where Value == Blob? {
    /// A blob attribute.
    /// - Parameters:
    ///   - name: the property's name, as it is stored.
    ///   - limit: bytes; a blob with more of them becomes a file of its own, others stay in the
    ///     store.
    ///   - rules: what blobs must satisfy when they are saved.
    ///   - originalName: names that stores may still have it under, the latest first.
    public init(
        _ name: String,
        externalStorageAbove limit: Int = 102_400,
        rules: AttributeRules? = nil,
        originalName: String...
    ) {
        self.init(
            definition: PropertyDefinition(
                path: PropertyPath(name),
                originalNames: originalName,
                kind: .attribute(
                    .init(
                        type: .blob,
                        isOptional: true,
                        makeDefault: { .null },
                        externalLimit: UInt64(Swift.max(0, limit)),
                        rules: rules
                    )
                )
            )
        )
    }
}

/// A column or relationship, its types forgotten: what an entity's declaration is read from.
protocol AnyProperty: Sendable {
    /// One, or one for each column of a composite.
    var anyDefinitions: [PropertyDefinition] { get }
}

extension Column: AnyProperty {
    var anyDefinitions: [PropertyDefinition] { [definition] }
}
