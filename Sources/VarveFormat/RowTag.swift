// The tags of a row (Format.md, "Rows"): one per column, in front of all bodies.
//
// Invariants
// - A tag alone tells how long its body is, so a column is found without reading any body.
// - Unknown tags are damage; none is skipped.

public import VarveBase

/// What stands in a row for one column.
public enum RowTag {
    /// The column is not stored: its declared default applies. No body.
    public static let absent: UInt64 = 0
    /// No value. No body.
    public static let null: UInt64 = 1
    /// Boolean false. No body.
    public static let `false`: UInt64 = 2
    /// Boolean true. No body.
    public static let `true`: UInt64 = 3
    /// The integer 0. No body.
    public static let zero: UInt64 = 4
    /// The integer 1. No body.
    public static let one: UInt64 = 5
    /// A signed integer of 1 byte.
    public static let int8: UInt64 = 6
    /// A signed integer of 2 bytes.
    public static let int16: UInt64 = 7
    /// A signed integer of 4 bytes.
    public static let int32: UInt64 = 8
    /// A signed integer of 8 bytes.
    public static let int64: UInt64 = 9
    /// A 32-bit float.
    public static let float: UInt64 = 10
    /// A 64-bit float.
    public static let double: UInt64 = 11
    /// A date: seconds since 2001-01-01 00:00:00 UTC as a 64-bit float.
    public static let date: UInt64 = 12
    /// A UUID: 16 bytes in the order of its text form.
    public static let uuid: UInt64 = 13
    /// A decimal whose digits fit 64 bits: sign, exponent, digits as a number.
    public static let decimal64: UInt64 = 14
    /// A decimal whose digits fit 128 bits.
    public static let decimal128: UInt64 = 15
    /// An object number below 2^32.
    public static let reference32: UInt64 = 16
    /// An object number.
    public static let reference64: UInt64 = 17
    /// A blob: 32 bytes of digest, 8 bytes of length.
    public static let blob: UInt64 = 18
    /// A text kept outside the row: 8 bytes of length, its first 256 bytes.
    public static let outsideText: UInt64 = 19
    /// Data kept outside the row: 8 bytes of length, its first 256 bytes.
    public static let outsideData: UInt64 = 20
    /// A text of n bytes has the tag `textBase + 2 n`.
    public static let textBase: UInt64 = 32
    /// Data of n bytes has the tag `dataBase + 2 n`.
    public static let dataBase: UInt64 = 33

    /// Bytes of a value that stay in the row when the value itself is kept outside.
    public static let outsidePrefixBytes = 256

    /// Bytes of the body that a tag announces; -1 for an unknown tag.
    @inlinable @inline(__always)
    public static func bodySize(_ tag: UInt64) -> Int {
        // Half of 64 bits always fits.
        if tag >= textBase { return Int(truncatingIfNeeded: (tag &- textBase) &>> 1) }
        switch tag {
        case absent, null, `false`, `true`, zero, one: return 0
        case int8: return 1
        case int16: return 2
        case int32, float, reference32: return 4
        case int64, double, date, reference64: return 8
        case uuid: return 16
        case decimal64: return 11
        case decimal128: return 19
        case blob: return 40
        case outsideText, outsideData: return 8 &+ outsidePrefixBytes
        default: return -1
        }
    }

    /// The tag of a value; nil stands for a column that is not stored.
    static func tag(of value: StoredValue?) -> UInt64 {
        switch value {
        case nil: absent
        case .null: null
        case .bool(let value): value ? `true` : `false`
        case .int(let value): tag(of: value)
        case .float: float
        case .double: double
        case .date: date
        case .text(let value): textBase + 2 * UInt64(value.utf8.count)
        case .data(let value): dataBase + 2 * UInt64(value.count)
        case .uuid: uuid
        case .decimal(let value):
            UInt64(exactly: number(of: value)) == nil ? decimal128 : decimal64
        case .reference(let value):
            UInt32(exactly: value.rawValue) == nil ? reference64 : reference32
        case .blob: blob
        }
    }

    /// The tag of an integer: its shortest form.
    @inline(__always)
    static func tag(of value: Int64) -> UInt64 {
        // Bits that are not copies of the sign.
        let bits = 64 - (value ^ (value &>> 63)).leadingZeroBitCount
        if bits >= 32 { return int64 }
        if bits >= 16 { return int32 }
        if bits >= 8 { return int16 }
        if value == 0 { return zero }
        return value == 1 ? one : int8
    }

    /// A decimal's digits as one number; those of canonical decimals fit 128 bits.
    static func number(of value: DecimalValue) -> UInt128 {
        value.digits.reduce(UInt128(0)) { $0 * 10 + UInt128($1) }
    }

    /// Whether a tag is that of text with its body in the row.
    @inlinable @inline(__always)
    public static func isText(_ tag: UInt64) -> Bool { tag >= textBase && tag & 1 == 0 }
    /// Whether a tag is that of data with its body in the row.
    @inlinable @inline(__always)
    public static func isData(_ tag: UInt64) -> Bool { tag >= dataBase && tag & 1 == 1 }
    /// Whether a tag is that of a text or data kept outside the row.
    @inlinable @inline(__always)
    public static func isOutside(_ tag: UInt64) -> Bool {
        tag == outsideText || tag == outsideData
    }
}

/// A text or data value that the store keeps outside its row.
public struct OutsideValue: Hashable, Sendable {
    /// Whether it is text rather than data.
    public var isText: Bool
    /// Bytes of the whole value.
    public var length: UInt64
    /// Its first 256 bytes. A text's may end inside a character.
    public var prefix: [UInt8]

    /// Joins the three.
    public init(isText: Bool, length: UInt64, prefix: [UInt8]) {
        self.isText = isText
        self.length = length
        self.prefix = prefix
    }
}

/// All that a row can say about one column.
public enum RowContent: Hashable, Sendable {
    /// Not stored: the declared default applies.
    case absent
    /// A value, perhaps null.
    case value(StoredValue)
    /// A value that is kept outside the row.
    case outside(OutsideValue)
}
