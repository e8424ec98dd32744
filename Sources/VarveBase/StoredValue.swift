// The values that a column can hold, as every layer from the format up names them.

/// SHA-256 digest and length of a blob: all that a row keeps of it.
public struct BlobReference: Hashable, Sendable {
    /// SHA-256 of the content, as four big-endian words.
    public var digest: BlobDigest
    /// Bytes of content.
    public var length: UInt64

    /// Joins a digest and a length.
    public init(digest: BlobDigest, length: UInt64) {
        self.digest = digest
        self.length = length
    }
}

/// A SHA-256 digest: 32 bytes, kept as four words so that it needs no allocation.
public struct BlobDigest: Hashable, Comparable, Sendable {
    /// The digest's bytes 0..<8, 8..<16, 16..<24 and 24..<32, each big-endian.
    public var words: (UInt64, UInt64, UInt64, UInt64) {
        (first, second, third, fourth)
    }
    private var first, second, third, fourth: UInt64

    /// Joins four big-endian words.
    public init(_ first: UInt64, _ second: UInt64, _ third: UInt64, _ fourth: UInt64) {
        self.first = first
        self.second = second
        self.third = third
        self.fourth = fourth
    }

    /// Orders as the 32 bytes compare.
    public static func < (left: BlobDigest, right: BlobDigest) -> Bool {
        left.words < right.words
    }
}

/// 128 bits of a UUID, in the order of its text form.
public struct UUIDValue: Hashable, Comparable, Sendable {
    /// The first 8 bytes, big-endian.
    public var high: UInt64
    /// The last 8 bytes, big-endian.
    public var low: UInt64

    /// Joins two big-endian words.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Orders as the 16 bytes compare.
    public static func < (left: UUIDValue, right: UUIDValue) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }
}

/// One value of one column.
///
/// Smaller integers widen to `int`; `UInt64` keeps its order as `Int64(bitPattern: value ^ 1 <<
/// 63)`. A URL is its text. Which Swift type a value came from is the schema's knowledge.
public enum StoredValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    case float(Float)
    case double(Double)
    /// Seconds since 2001-01-01 00:00:00 UTC (Foundation's reference date).
    case date(Double)
    case text(String)
    case data([UInt8])
    case uuid(UUIDValue)
    case decimal(DecimalValue)
    case reference(ObjectID)
    case blob(BlobReference)
}

/// A decimal number: sign, digits, exponent. `Foundation.Decimal` converts to and from it exactly.
///
/// Canonical: no leading or trailing zero digit, at most 39 digits, which fit 128
/// bits as a number; zero has no digits,
/// exponent 0 and is not negative.
public struct DecimalValue: Hashable, Sendable {
    /// Whether the number is below zero.
    public var isNegative: Bool
    /// Power of ten of the last digit.
    public var exponent: Int16
    /// Digits 0...9, most significant first.
    public var digits: [UInt8]

    /// Joins the parts; the caller keeps them canonical.
    public init(isNegative: Bool, exponent: Int16, digits: [UInt8]) {
        self.isNegative = isNegative
        self.exponent = exponent
        self.digits = digits
    }
}
