// Attribute types of the standard library: Bool, integers, floating point, String.

public import VarveBase
public import VarveRecords

extension Bool: OrderedValue {
    /// No code but the library's.
    @inlinable public static var _isReadByLibrary: Bool { true }
    /// Stored as a Boolean.
    public static var attributeType: AttributeType { .bool }
    /// False.
    @inlinable public static var zeroValue: Bool { false }

    /// From a stored Boolean.
    public init?(stored: StoredValue) {
        guard case .bool(let value) = stored else { return nil }
        self = value
    }

    /// A stored Boolean.
    public var stored: StoredValue { .bool(self) }

    /// Without allocation.
    @inlinable public func write(_ column: ColumnID, to row: inout RecordRow) {
        row.set(column, bool: self)
    }

    /// Without allocation.
    @inlinable public static func readNullable(_ row: CachedRow, _ column: ColumnID) -> Bool?? {
        readable { () throws(RecordError) in try row.bool(column) }
    }
}

/// An integer type that fits the store's 64-bit signed integers.
public protocol StorableInteger: FixedWidthInteger, OrderedValue {
    /// The integer as the store orders it.
    @inlinable var storedInteger: Int64 { get }
    /// Nil if out of range.
    @inlinable init?(storedInteger: Int64)
}

extension StorableInteger {
    /// Zero.
    @inlinable public static var zeroValue: Self { 0 }
    /// As itself; all sizes but `UInt64` and `UInt`.
    @inlinable public var storedInteger: Int64 { Int64(truncatingIfNeeded: self) }
    /// Nil if out of range.
    @inlinable public init?(storedInteger: Int64) { self.init(exactly: storedInteger) }

    /// From a stored integer.
    @inlinable public init?(stored: StoredValue) {
        guard case .int(let value) = stored else { return nil }
        self.init(storedInteger: value)
    }

    /// A stored integer.
    @inlinable public var stored: StoredValue { .int(storedInteger) }

    /// Without allocation.
    @inlinable public func write(_ column: ColumnID, to row: inout RecordRow) {
        row.set(column, int: storedInteger)
    }

    /// Without allocation.
    @inlinable public static func readNullable(_ row: CachedRow, _ column: ColumnID) -> Self?? {
        guard let stored = readable({ () throws(RecordError) in try row.int(column) }) else {
            return .none
        }
        guard let stored else { return .some(nil) }
        guard let value = Self(storedInteger: stored) else { return .none }
        return .some(value)
    }
}

extension Int: StorableInteger {
    /// No code but the library's.
    @inlinable public static var _isReadByLibrary: Bool { true }
    /// 64 bits.
    public static var attributeType: AttributeType { .int64 }
}
extension Int8: StorableInteger {
    /// No code but the library's.
    @inlinable public static var _isReadByLibrary: Bool { true }
    /// 8 bits.
    public static var attributeType: AttributeType { .int8 }
}
extension Int16: StorableInteger {
    /// No code but the library's.
    @inlinable public static var _isReadByLibrary: Bool { true }
    /// 16 bits.
    public static var attributeType: AttributeType { .int16 }
}
extension Int32: StorableInteger {
    /// No code but the library's.
    @inlinable public static var _isReadByLibrary: Bool { true }
    /// 32 bits.
    public static var attributeType: AttributeType { .int32 }
}
extension Int64: StorableInteger {
    /// No code but the library's.
    @inlinable public static var _isReadByLibrary: Bool { true }
    /// 64 bits.
    public static var attributeType: AttributeType { .int64 }
}
extension UInt8: StorableInteger {
    /// No code but the library's.
    @inlinable public static var _isReadByLibrary: Bool { true }
    /// 8 bits, unsigned.
    public static var attributeType: AttributeType { .uint8 }
}
extension UInt16: StorableInteger {
    /// No code but the library's.
    @inlinable public static var _isReadByLibrary: Bool { true }
    /// 16 bits, unsigned.
    public static var attributeType: AttributeType { .uint16 }
}
extension UInt32: StorableInteger {
    /// No code but the library's.
    @inlinable public static var _isReadByLibrary: Bool { true }
    /// 32 bits, unsigned.
    public static var attributeType: AttributeType { .uint32 }
}
extension UInt64: StorableInteger {
    /// No code but the library's.
    @inlinable public static var _isReadByLibrary: Bool { true }
    /// 64 bits, unsigned.
    public static var attributeType: AttributeType { .uint64 }
    /// With the top bit turned, so that the order is kept.
    @inlinable public var storedInteger: Int64 { Int64(bitPattern: self ^ (1 << 63)) }
    /// The top bit turned back.
    @inlinable public init?(storedInteger: Int64) {
        self = UInt64(bitPattern: storedInteger) ^ (1 << 63)
    }
}
extension UInt: StorableInteger {
    /// No code but the library's.
    @inlinable public static var _isReadByLibrary: Bool { true }
    /// 64 bits, unsigned.
    public static var attributeType: AttributeType { .uint64 }
    /// With the top bit turned, so that the order is kept.
    @inlinable public var storedInteger: Int64 { Int64(bitPattern: UInt64(self) ^ (1 << 63)) }
    /// The top bit turned back; nil if this machine's integers are smaller.
    @inlinable public init?(storedInteger: Int64) {
        self.init(exactly: UInt64(bitPattern: storedInteger) ^ (1 << 63))
    }
}

extension Double: OrderedValue {
    /// No code but the library's.
    @inlinable public static var _isReadByLibrary: Bool { true }
    /// Stored as it is.
    public static var attributeType: AttributeType { .double }
    /// Zero.
    @inlinable public static var zeroValue: Double { 0 }

    /// From a stored double.
    public init?(stored: StoredValue) {
        guard case .double(let value) = stored else { return nil }
        self = value
    }

    /// A stored double.
    public var stored: StoredValue { .double(self) }

    /// Without allocation.
    @inlinable public func write(_ column: ColumnID, to row: inout RecordRow) {
        row.set(column, double: self)
    }

    /// Without allocation.
    @inlinable public static func readNullable(_ row: CachedRow, _ column: ColumnID) -> Double?? {
        readable { () throws(RecordError) in try row.double(column) }
    }
}

extension Float: OrderedValue {
    /// No code but the library's.
    @inlinable public static var _isReadByLibrary: Bool { true }
    /// Stored as it is.
    public static var attributeType: AttributeType { .float }
    /// Zero.
    @inlinable public static var zeroValue: Float { 0 }

    /// From a stored float.
    public init?(stored: StoredValue) {
        guard case .float(let value) = stored else { return nil }
        self = value
    }

    /// A stored float.
    public var stored: StoredValue { .float(self) }

    /// Without allocation.
    @inlinable public func write(_ column: ColumnID, to row: inout RecordRow) {
        row.set(column, float: self)
    }

    /// Without allocation.
    @inlinable public static func readNullable(_ row: CachedRow, _ column: ColumnID) -> Float?? {
        readable { () throws(RecordError) in try row.float(column) }
    }
}

extension String: OrderedValue {
    /// No code but the library's.
    @inlinable public static var _isReadByLibrary: Bool { true }
    /// Stored as UTF-8.
    public static var attributeType: AttributeType { .text }
    /// Empty.
    @inlinable public static var zeroValue: String { "" }

    /// From a stored text.
    public init?(stored: StoredValue) {
        guard case .text(let value) = stored else { return nil }
        self = value
    }

    /// A stored text.
    public var stored: StoredValue { .text(self) }

    /// One copy of the bytes.
    @inlinable public func write(_ column: ColumnID, to row: inout RecordRow) {
        row.set(column, text: self)
    }

    /// One copy of the bytes.
    @inlinable public static func readNullable(_ row: CachedRow, _ column: ColumnID) -> String?? {
        readable { () throws(RecordError) in try row.text(column) }
    }
}
