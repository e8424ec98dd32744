// Which Swift types an attribute can have, and how each becomes a stored value and comes back.
//
// Invariants
// - `Value(stored: value.stored)` is `value` again, for every value of every type.
// - A stored value of another type, or one that this build does not know, gives nil, never a trap.

public import VarveBase
public import VarveRecords

/// A Swift type that an attribute can have.
///
/// Conforming: Bool, all integer sizes, Float, Double, String, Date, UUID, URL, Data, Decimal,
/// `Blob`, enums through `StoredEnum`, and Optional of each.
public protocol StorableValue: Sendable {
    /// How the store keeps it.
    static var attributeType: AttributeType { get }
    /// Whether nil is a value.
    static var isOptional: Bool { get }
    /// What a getter returns where nothing can be read: zero, empty, the first case.
    static var zeroValue: Self { get }
    /// Nil if `stored` is no value of this type.
    init?(stored: StoredValue)
    /// The stored form.
    var stored: StoredValue { get }
    /// Reads a column without going through `StoredValue`: the outer nil says that it cannot be
    /// read this way, the inner one that the column is null.
    static func readNullable(_ row: CachedRow, _ column: ColumnID) -> Self??
    /// Reads a column; nil: not readable this way.
    static func read(_ row: CachedRow, _ column: ColumnID) -> Self?
    /// Sets a column of a row that is being built.
    func write(_ column: ColumnID, to row: inout RecordRow)
    /// Whether `read` runs no code but the library's. For the library's own types: code of an app
    /// could let the row go while it is read.
    static var _isReadByLibrary: Bool { get }
    /// Why a store cannot keep this value, as the end of a sentence; nil: it can. Setters keep out
    /// what has one. For the library's own types.
    var _refusal: String? { get }
}

extension StorableValue {
    /// Most types have code of their own.
    @inlinable public static var _isReadByLibrary: Bool { false }

    /// Most types have no value that a store cannot keep.
    @inlinable public var _refusal: String? { nil }

    /// Values of most types are not optional.
    @inlinable public static var isOptional: Bool { false }

    /// Through `StoredValue`.
    @inlinable public static func readNullable(_ row: CachedRow, _ column: ColumnID) -> Self?? {
        guard let stored = try? row.value(column) else { return .none }
        if stored == .null { return .some(nil) }
        guard let value = Self(stored: stored) else { return .none }
        return .some(value)
    }

    /// Through `StoredValue`.
    @inlinable public func write(_ column: ColumnID, to row: inout RecordRow) {
        row.set(column, stored)
    }

    /// Null gives the zero value.
    @inlinable public static func read(_ row: CachedRow, _ column: ColumnID) -> Self? {
        guard let value = readNullable(row, column) else { return nil }
        return value ?? zeroValue
    }
}

/// Keeps null (inner nil) apart from a failed read (outer nil), which `try?` would join.
@inlinable func readable<Value>(_ read: () throws(RecordError) -> Value?) -> Value?? {
    do { return .some(try read()) } catch { return .none }
}

/// A value that filters can compare for equality. Blobs are not: compare `.length` or `.digest`.
public protocol FilterableValue: StorableValue, Equatable {}

/// A value that filters can put in order.
public protocol OrderedValue: FilterableValue {}

extension Optional: StorableValue where Wrapped: StorableValue {
    /// As the wrapped type.
    @inlinable public static var attributeType: AttributeType { Wrapped.attributeType }
    /// As the wrapped type.
    @inlinable public static var _isReadByLibrary: Bool { Wrapped._isReadByLibrary }
    /// Nil is a value.
    @inlinable public static var isOptional: Bool { true }
    /// Nil.
    @inlinable public static var zeroValue: Wrapped? { nil }

    /// Null is nil.
    @inlinable public init?(stored: StoredValue) {
        if stored == .null {
            self = .none
        } else if let value = Wrapped(stored: stored) {
            self = .some(value)
        } else {
            return nil
        }
    }

    /// Nil is null.
    @inlinable public var stored: StoredValue { self?.stored ?? .null }

    /// As the wrapped value.
    @inlinable public var _refusal: String? { self?._refusal }

    /// Nil is null.
    @inlinable public func write(_ column: ColumnID, to row: inout RecordRow) {
        if let self { self.write(column, to: &row) } else { row.setNull(column) }
    }

    /// As the wrapped type.
    @inlinable public static func readNullable(_ row: CachedRow, _ column: ColumnID) -> Wrapped??? {
        guard let value = Wrapped.readNullable(row, column) else { return .none }
        return .some(.some(value))
    }

    /// As the wrapped type.
    @inlinable public static func read(_ row: CachedRow, _ column: ColumnID) -> Wrapped?? {
        Wrapped.readNullable(row, column)
    }
}

extension Optional: FilterableValue where Wrapped: FilterableValue {}

/// An enum with raw values that filters and sorts by its raw value. Raw types: integers and String.
///
/// A raw value that this build does not know (a newer build's case) fails that property only: its
/// getter returns the first case and the object's `readFailure` says `unreadableValue`.
public protocol StoredEnum: RawRepresentable, CaseIterable, Hashable, OrderedValue
where RawValue: OrderedValue {}

extension StoredEnum {
    /// As the raw value.
    @inlinable public static var attributeType: AttributeType { RawValue.attributeType }

    /// The first case.
    @inlinable public static var zeroValue: Self {
        guard let first = allCases.first else {
            preconditionFailure("\(Self.self) has no cases, so it has no value to return")
        }
        return first
    }

    /// From a stored raw value.
    @inlinable public init?(stored: StoredValue) {
        guard let raw = RawValue(stored: stored) else { return nil }
        self.init(rawValue: raw)
    }

    /// As the raw value.
    @inlinable public var _refusal: String? { rawValue._refusal }

    /// The raw value, stored.
    @inlinable public var stored: StoredValue { rawValue.stored }

    /// The raw value.
    @inlinable public func write(_ column: ColumnID, to row: inout RecordRow) {
        rawValue.write(column, to: &row)
    }

    /// Through the raw value.
    @inlinable public static func readNullable(_ row: CachedRow, _ column: ColumnID) -> Self?? {
        guard let raw = RawValue.readNullable(row, column) else { return .none }
        guard let raw else { return .some(nil) }
        guard let value = Self(rawValue: raw) else { return .none }
        return .some(value)
    }
}

/// Does nothing: what a macro writes so that the compiler checks a type.
public func _requireStorable<Value: StorableValue>(_: Value.Type) {}

/// Does nothing: what the compiler finds for a type that no attribute can have.
@available(
    *,
    unavailable,
    message: """
        an attribute's type is Bool, an integer, Double, Float, String, Date, UUID, URL, Data, \
        Decimal or Blob?, or an array or dictionary of these; an enum with raw values becomes one \
        by ': StoredEnum', a Codable type by ': StoredCodable', a struct by '@Composite' and \
        '@Attribute(.composite)'; another entity is led to with @Relationship, many of them with \
        'ToMany'; a property that is not stored is marked @Transient
        """
)
@_disfavoredOverload public func _requireStorable<Value>(_: Value.Type) {}
