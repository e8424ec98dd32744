// The types that an attribute can have, and how each is kept as a stored value.
//
// Invariants
// - The raw value is what the schema record keeps: a number is never given to another type.
// - `accepts` is the only place that says which stored value belongs to which type.

public import VarveBase

/// The type of an attribute as an app declares it. An enum is declared as the type of its raw
/// value.
public enum AttributeType: UInt8, Hashable, Sendable, CaseIterable {
    case bool = 1
    case int8 = 2
    case int16 = 3
    case int32 = 4
    case int64 = 5
    case uint8 = 6
    case uint16 = 7
    case uint32 = 8
    /// Kept as `Int64(bitPattern: value ^ 1 << 63)`, so that the stored order is the order of the
    /// numbers.
    case uint64 = 9
    case float = 10
    case double = 11
    /// Seconds since 2001-01-01 00:00:00 UTC.
    case date = 12
    case text = 13
    case data = 14
    case uuid = 15
    case decimal = 16
    /// Kept as its text.
    case url = 17
    /// Digest and length of bytes that live outside the row.
    case blob = 18

    /// Whether `value` has the form in which this type is stored; null is accepted here.
    public func accepts(_ value: StoredValue) -> Bool {
        switch value {
        case .null: true
        case .bool: self == .bool
        case .int: isInteger
        case .float: self == .float
        case .double: self == .double
        case .date: self == .date
        case .text: self == .text || self == .url
        case .data: self == .data
        case .uuid: self == .uuid
        case .decimal: self == .decimal
        case .reference: false
        case .blob: self == .blob
        }
    }

    /// Whether the stored form is `StoredValue.int`.
    public var isInteger: Bool {
        switch self {
        case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32, .uint64: true
        default: false
        }
    }

    /// Whether the stored form of every value of this type is a value of `other`, unchanged: then a
    /// migration changes the declaration only and touches no row.
    public func widens(to other: AttributeType) -> Bool {
        if self == other { return true }
        return switch (self, other) {
        case (.int8, .int16), (.int8, .int32), (.int8, .int64): true
        case (.int16, .int32), (.int16, .int64), (.int32, .int64): true
        case (.uint8, .uint16), (.uint8, .uint32), (.uint16, .uint32): true
        case (.uint8, .int16), (.uint8, .int32), (.uint8, .int64): true
        case (.uint16, .int32), (.uint16, .int64), (.uint32, .int64): true
        case (.url, .text): true
        default: false
        }
    }
}

extension AttributeType: CustomStringConvertible {
    /// The type's name as it is written in code.
    public var description: String {
        switch self {
        case .bool: "Bool"
        case .int8: "Int8"
        case .int16: "Int16"
        case .int32: "Int32"
        case .int64: "Int64"
        case .uint8: "UInt8"
        case .uint16: "UInt16"
        case .uint32: "UInt32"
        case .uint64: "UInt64"
        case .float: "Float"
        case .double: "Double"
        case .date: "Date"
        case .text: "String"
        case .data: "Data"
        case .uuid: "UUID"
        case .decimal: "Decimal"
        case .url: "URL"
        case .blob: "Blob"
        }
    }
}
