// Attribute types of an app's own, kept as another value: conversions and codecs.
//
// Invariants
// - What a filter compares and an index orders is the stored form.
// - A stored form that the app cannot turn back fails that property only (`unreadableValue`).

public import VarveBase
public import VarveRecords

/// A type of the app's own that is kept as one value of another type.
///
/// ```swift
/// struct Money: StoredConvertible, OrderedValue {
///     var cents: Int
///     static let zeroValue = Money(cents: 0)
///     var storedForm: Int { cents }
///     init?(storedForm: Int) { cents = storedForm }
///     init(cents: Int) { self.cents = cents }
/// }
/// ```
///
/// With `OrderedValue` it can be compared and sorted, in the order of its stored form. For types of
/// others there is ``ValueCodec``.
public protocol StoredConvertible: FilterableValue {
    /// What the store keeps.
    associatedtype StoredForm: FilterableValue
    /// Nil: no value of this type has that form.
    init?(storedForm: StoredForm)
    /// The value as the store keeps it. `init?(storedForm:)` gives the same value back.
    var storedForm: StoredForm { get }
}

extension StoredConvertible {
    /// As the stored form.
    public static var attributeType: AttributeType { StoredForm.attributeType }
    /// As the stored form.
    public static var isOptional: Bool { StoredForm.isOptional }
    /// As the stored form.
    public var _refusal: String? { storedForm._refusal }
    /// The stored form, stored.
    public var stored: StoredValue { storedForm.stored }

    /// From the stored form.
    public init?(stored: StoredValue) {
        guard let form = StoredForm(stored: stored) else { return nil }
        self.init(storedForm: form)
    }

    /// As the stored form.
    public func write(_ column: ColumnID, to row: inout RecordRow) {
        storedForm.write(column, to: &row)
    }
}

/// How values of a type that the app does not own are kept: `@Attribute(.coded(by: …))`.
///
/// ```swift
/// enum DurationCodec: ValueCodec {
///     static let zeroValue = Duration.zero
///     static func encode(_ value: Duration) -> Double { value / .seconds(1) }
///     static func decode(_ stored: Double) -> Duration? { .seconds(stored) }
/// }
/// ```
public protocol ValueCodec: SendableMetatype {
    /// The property's type, without its optional.
    associatedtype Value: Sendable
    /// What the store keeps.
    associatedtype StoredForm: FilterableValue
    /// What a getter returns where nothing can be read.
    static var zeroValue: Value { get }
    /// The value as the store keeps it. Equal values must have one form: a request finds the form,
    /// and another form is an edit.
    static func encode(_ value: Value) -> StoredForm
    /// Nil: no value has that form.
    static func decode(_ stored: StoredForm) -> Value?
}

/// A value that a codec keeps. Requests and batch rows name it: `$0.length == Coded(.seconds(3))`.
public struct Coded<Codec: ValueCodec>: FilterableValue {
    /// The value as the app uses it.
    public var value: Codec.Value

    /// A value to compare with, or to set in a batch.
    public init(_ value: Codec.Value) { self.value = value }

    /// As the stored form.
    public static var attributeType: AttributeType { Codec.StoredForm.attributeType }
    /// The codec's.
    public static var zeroValue: Coded { Coded(Codec.zeroValue) }
    /// As the stored form.
    public var _refusal: String? { Codec.encode(value)._refusal }
    /// The encoded value.
    public var stored: StoredValue { Codec.encode(value).stored }

    /// Nil if it cannot be decoded.
    public init?(stored: StoredValue) {
        guard let form = Codec.StoredForm(stored: stored), let value = Codec.decode(form) else {
            return nil
        }
        self.value = value
    }

    /// Whether both are kept as the same value.
    public static func == (left: Coded, right: Coded) -> Bool {
        Codec.encode(left.value) == Codec.encode(right.value)
    }
}

extension Coded: OrderedValue where Codec.StoredForm: OrderedValue {}

extension ManagedObject {
    /// Reads an attribute with a codec. For accessors only.
    public func storedValue<Codec: ValueCodec>(
        _ column: Column<Self, Coded<Codec>>,
        _ keyPath: @autoclosure () -> KeyPath<Self, Codec.Value>
    ) -> Codec.Value {
        readValue(column, keyPath()).value
    }

    /// Reads an optional attribute with a codec. For accessors only.
    public func storedValue<Codec: ValueCodec>(
        _ column: Column<Self, Coded<Codec>?>,
        _ keyPath: @autoclosure () -> KeyPath<Self, Codec.Value?>
    ) -> Codec.Value? {
        readValue(column, keyPath())?.value
    }

    /// Sets an attribute with a codec. For accessors only.
    public func setStoredValue<Codec: ValueCodec>(
        _ value: Codec.Value,
        _ column: Column<Self, Coded<Codec>>,
        _ keyPath: @autoclosure () -> KeyPath<Self, Codec.Value>
    ) {
        setAttribute(Coded<Codec>(value), column.definition)
    }

    /// Sets an optional attribute with a codec. For accessors only.
    public func setStoredValue<Codec: ValueCodec>(
        _ value: Codec.Value?,
        _ column: Column<Self, Coded<Codec>?>,
        _ keyPath: @autoclosure () -> KeyPath<Self, Codec.Value?>
    ) {
        setAttribute(value.map { Coded<Codec>($0) }, column.definition)
    }
}
