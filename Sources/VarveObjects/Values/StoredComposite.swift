// Composite values: a struct whose fields are attributes of the row, each with a column of its own.
//
// Invariants
// - A composite is nothing in the store: its fields are, under the names "address.city". So all
//   that attributes can do, filters, indexes, conflicts and history by field, holds for them.
// - Fields are told apart by name. Their order in the struct means nothing.

import VarveBase
import VarveRecords

/// A struct that an attribute can have and whose fields are kept, filtered, sorted and indexed one
/// by one. `@Composite` writes the conformance.
public protocol StoredComposite: Sendable {
    /// The struct of the fields; `@Composite` makes it.
    associatedtype Fields: Sendable
    /// One for each stored property.
    static var fields: Fields { get }
    /// A value with every field at its default.
    init()
}

/// One field of a composite.
public struct CompositeField<Composite: StoredComposite, Value: StorableValue>: Sendable {
    let erased: AnyField

    /// Declares a field. `@Composite` calls this.
    /// - Parameters:
    ///   - name: the property's name, as it is stored behind that of the attribute.
    ///   - value: its value in a new object, and in rows older than the field.
    ///   - originalName: names that stores may still have it under, the latest first.
    ///   - get: reads the property.
    ///   - set: sets it.
    public init(
        _ name: String,
        default value: @autoclosure @escaping @Sendable () -> Value,
        originalName: String...,
        get: @escaping @Sendable (Composite) -> Value,
        set: @escaping @Sendable (inout Composite, Value) -> Void
    ) {
        erased = AnyField(
            name: name,
            originalNames: originalName,
            type: Value.attributeType,
            isOptional: Value.isOptional,
            makeDefault: { value().stored },
            canRead: StoredForms.check(of: Value.self),
            get: { composite in
                guard let composite = composite as? Composite else { return .null }
                return get(composite).stored
            },
            refusal: { composite in (composite as? Composite).flatMap { get($0)._refusal } },
            set: { composite, stored in
                guard var typed = composite as? Composite else { return false }
                if stored == .null, !Value.isOptional { return true }  // stays at its default
                guard let value = Value(stored: stored) else { return false }
                set(&typed, value)
                composite = typed
                return true
            }
        )
    }
}

/// A field, its types forgotten.
struct AnyField: Sendable {
    let name: String
    let originalNames: [String]
    let type: AttributeType
    let isOptional: Bool
    let makeDefault: @Sendable () -> StoredValue
    /// As in `PropertyDefinition`.
    let canRead: (@Sendable (StoredValue) -> Bool)?
    let get: @Sendable (any StoredComposite) -> StoredValue
    let refusal: @Sendable (any StoredComposite) -> String?
    /// False: the stored value is none of the field's type.
    let set: @Sendable (inout any StoredComposite, StoredValue) -> Bool
}

/// What reflection finds in `Fields`.
protocol ErasedField: Sendable {
    var erased: AnyField { get }
}

extension CompositeField: ErasedField {}

extension StoredComposite {
    /// The fields in the order of declaration.
    static func allFields() -> [AnyField] {
        Mirror(reflecting: fields).children.compactMap { ($0.value as? any ErasedField)?.erased }
    }
}
