// The macros by which a model is declared. What they expand to stands in docs/PublicAPI.md.
#if Macros
public import VarveObjects

/// Makes a class an entity: a kind of object that the store keeps.
///
/// ```swift
/// @Entity final class Item: ManagedObject {
///     #Index<Item>([\.timestamp])
///     var timestamp: Date = .now
///     var title: String = ""
///     @Relationship(inverse: \Tag.items) var tags: ToMany<Tag>
///     @Transient var isExpanded = false
/// }
/// ```
///
/// Every `var` that stores something becomes an attribute or a relationship, unless it is marked
/// with ``Transient()``. Computed and static properties are left alone. The class names its
/// conformance to `ManagedObject` itself and is final.
///
/// - Parameter originalName: names that stores may still have the entity under, after renames, the
///   latest first.
@attached(
    member,
    names: named(entityName),
    named(originalEntityNames),
    named(Columns),
    named(columns),
    named(keyPaths),
    named(indexes),
    named(uniqueConstraints),
    named(storage),
    named(_checkTypes),
    named(_Derived),
    named(init)
)
@attached(memberAttribute)
@attached(extension, conformances: Sendable)
public macro Entity(originalName: String...) =
    #externalMacro(module: "VarveMacros", type: "EntityMacro")

/// Says more about an attribute than its declaration does. An attribute needs no mark otherwise.
///
/// - Parameters:
///   - options: where the value is kept, and whether it needs one before it is saved.
///   - originalName: names that stores may still have the attribute under, after renames, the
///     latest first.
@attached(accessor, names: named(get), named(set))
public macro Attribute(_ options: AttributeOption..., originalName: String...) =
    #externalMacro(module: "VarveMacros", type: "AttributeMacro")

/// Makes a property a relationship: to one object with the type `Picture?`, to many with
/// `ToMany<Tag>`.
///
/// - Parameters:
///   - inverse: the property that leads back, as a key path with its entity: `\Tag.items`. It is
///     kept equal. One side is enough to name it.
///   - deleteRule: what happens to the other side when this object is deleted.
///   - ordered: whether the objects of a to-many keep the order they were put in.
///   - count: to how many objects it must lead when it is saved: `1...5`, `1...`; `1...1` for one
///     that leads to one object and may not be missing.
///   - originalName: names that stores may still have the relationship under, after renames, the
///     latest first.
@attached(accessor, names: named(get), named(set))
public macro Relationship(
    inverse: AnyKeyPath? = nil,
    deleteRule: DeleteRule = .nullify,
    ordered: Bool = false,
    count: (any RangeExpression<Int>)? = nil,
    originalName: String...
) = #externalMacro(module: "VarveMacros", type: "RelationshipMacro")

/// The same with `ordered` before `deleteRule`, as in
/// `@Relationship(ordered: true, deleteRule: .cascade)`.
@attached(accessor, names: named(get), named(set))
public macro Relationship(
    inverse: AnyKeyPath? = nil,
    ordered: Bool,
    deleteRule: DeleteRule,
    count: (any RangeExpression<Int>)? = nil,
    originalName: String...
) = #externalMacro(module: "VarveMacros", type: "RelationshipMacro")

/// Keeps what a computed property gives, so that requests can filter, sort and index by it.
///
/// ```swift
/// var name: String = ""
/// @Derived var sortName: String { name.lowercased() }
/// ```
///
/// The getter goes on as it is: it gives the value for unsaved edits too. The kept value is made by
/// the same code whenever another attribute of the object changes, in batches and migrations too.
/// After a change of the rule `batchUpdate(Item.all) { _ in }` makes all values again.
/// So it is a function of the attributes of its own object: relationships and blobs do not compile
/// in it, and methods of the object do not either; functions and static members of other types do.
///
/// - Parameter originalName: names that stores may still have the attribute under, after renames,
///   the latest first.
@attached(peer)
public macro Derived(originalName: String...) =
    #externalMacro(module: "VarveMacros", type: "DerivedMacro")

/// Makes a struct one that an attribute can have, with fields that are filtered, sorted and indexed
/// one by one.
///
/// A property of such a type is marked `@Attribute(.composite)`; an index over a field is written
/// `#Index<Person>([\.address.city])`. The article <doc:Modelling> has an example.
///
/// Every field is a `var` with a default or an optional one. A field that is added later gets its
/// default in older rows.
///
/// - Parameter originalNames: for fields that were renamed, the name that stores may still have
///   them under: `["city": "town"]`.
@attached(member, names: named(Fields), named(fields), named(_checkTypes))
@attached(extension, conformances: StoredComposite)
public macro Composite(originalNames: [String: String] = [:]) =
    #externalMacro(module: "VarveMacros", type: "CompositeMacro")

/// Keeps a property out of the store: it lives as long as its object and never marks it changed.
///
/// Observers hear of its changes, unless it is `lazy` or `weak` or has observers of its own.
@attached(peer)
public macro Transient() = #externalMacro(module: "VarveMacros", type: "TransientMacro")

/// What `@Entity` adds to transient properties, so that they tell observers. Not for apps.
@attached(accessor, names: named(get), named(set), named(_modify))
@attached(peer, names: prefixed(_))
public macro _ObservedTransient() =
    #externalMacro(module: "VarveMacros", type: "ObservedTransientMacro")

/// Indexes: one per list, over the properties of the list, most significant first.
///
/// An index serves filters and sorts that begin with its first properties, in both directions.
///
/// - Parameters:
///   - properties: lists of stored attributes and to-one relationships of the entity.
///   - descending: those that run from the largest to the smallest value. Needed only where one
///     index mixes directions.
@freestanding(declaration)
public macro Index<Entity: ManagedObject>(
    _ properties: [PartialKeyPath<Entity>]...,
    descending: [PartialKeyPath<Entity>] = []
) = #externalMacro(module: "VarveMacros", type: "IndexMacro")

/// Constraints: no two objects have the same values in all properties of a list. Nil equals
/// nothing.
///
/// - Parameters:
///   - properties: lists of stored attributes and to-one relationships of the entity.
///   - onConflict: what a save does with a new object whose values exist already.
@freestanding(declaration)
public macro Unique<Entity: ManagedObject>(
    _ properties: [PartialKeyPath<Entity>]...,
    onConflict: UniquenessPolicy = .error
) = #externalMacro(module: "VarveMacros", type: "UniqueMacro")

/// What ``Attribute(_:originalName:)`` can say about an attribute.
public struct AttributeOption: Sendable {
    /// A `Blob?` with more bytes than `limit` becomes a file beside the store; others stay inside.
    public static func externalStorage(above limit: Int = 102_400) -> AttributeOption {
        AttributeOption()
    }

    /// The attribute has neither default nor nil: a new object cannot be saved before it is set.
    public static var required: AttributeOption { AttributeOption() }

    /// The type is a struct marked with `@Composite`: each of its fields is kept by itself.
    public static var composite: AttributeOption { AttributeOption() }

    /// The type is kept as what `codec` makes of it.
    public static func coded<Codec: ValueCodec>(by codec: Codec.Type) -> AttributeOption {
        AttributeOption()
    }

    /// Only values within `range` can be saved: `.range(0...5)`.
    public static func range<Range: RangeExpression>(_ range: Range) -> AttributeOption {
        AttributeOption()
    }

    /// Only texts with so many characters, or data and blobs with so many bytes, can be saved:
    /// `.length(1...80)`.
    public static func length<Range: RangeExpression>(
        _ range: Range
    ) -> AttributeOption where Range.Bound == Int {
        AttributeOption()
    }

    /// Only texts that `regex` matches as a whole can be saved: `.pattern(/[A-Z]{2}/)`.
    public static func pattern<Pattern: RegexComponent>(_ regex: Pattern) -> AttributeOption {
        AttributeOption()
    }

    /// Only values for which `isValid` is true can be saved. Its parameter says its type:
    /// `.check("even") { (number: Int) in number.isMultiple(of: 2) }`.
    ///
    /// - Parameters:
    ///   - requirement: what a value must be, as the end of "must be …": it stands in the error.
    ///   - isValid: whether a value may be saved.
    public static func check<Value>(
        _ requirement: String,
        _ isValid: @Sendable (Value) -> Bool
    ) -> AttributeOption {
        AttributeOption()
    }
}
#endif
