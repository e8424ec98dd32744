// Attribute types of Foundation: Date, UUID, URL, Data, Decimal.

public import Foundation
public import VarveBase
public import VarveRecords

extension Date: OrderedValue {
    /// No code but the library's.
    @inlinable public static var _isReadByLibrary: Bool { true }
    /// Stored as seconds since the reference date, exactly.
    public static var attributeType: AttributeType { .date }
    /// The reference date, 2001-01-01.
    public static var zeroValue: Date { Date(timeIntervalSinceReferenceDate: 0) }

    /// From a stored date.
    public init?(stored: StoredValue) {
        guard case .date(let seconds) = stored else { return nil }
        self.init(timeIntervalSinceReferenceDate: seconds)
    }

    /// A stored date.
    public var stored: StoredValue { .date(timeIntervalSinceReferenceDate) }

    /// Without allocation.
    public func write(_ column: ColumnID, to row: inout RecordRow) {
        row.set(column, date: timeIntervalSinceReferenceDate)
    }

    /// Without allocation.
    public static func readNullable(_ row: CachedRow, _ column: ColumnID) -> Date?? {
        guard let seconds = readable({ () throws(RecordError) in try row.date(column) }) else {
            return .none
        }
        return .some(seconds.map { Date(timeIntervalSinceReferenceDate: $0) })
    }
}

extension UUID: OrderedValue {
    /// Stored as 16 bytes.
    public static var attributeType: AttributeType { .uuid }
    /// All zero.
    public static var zeroValue: UUID { UUID(UUIDValue(high: 0, low: 0)) }

    /// From a stored UUID.
    public init?(stored: StoredValue) {
        guard case .uuid(let value) = stored else { return nil }
        self.init(value)
    }

    /// A stored UUID.
    public var stored: StoredValue { .uuid(UUIDValue(self)) }

    init(_ value: UUIDValue) {
        func byte(_ word: UInt64, _ index: UInt64) -> UInt8 {
            UInt8(truncatingIfNeeded: word >> (56 - 8 * index))
        }
        let (high, low) = (value.high, value.low)
        self.init(
            uuid: (
                byte(high, 0), byte(high, 1), byte(high, 2), byte(high, 3),
                byte(high, 4), byte(high, 5), byte(high, 6), byte(high, 7),
                byte(low, 0), byte(low, 1), byte(low, 2), byte(low, 3),
                byte(low, 4), byte(low, 5), byte(low, 6), byte(low, 7)
            )
        )
    }
}

extension UUIDValue {
    init(_ uuid: UUID) {
        func word(
            _ bytes: (UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8)
        ) -> UInt64 {
            let upper =
                UInt64(bytes.0) << 56 | UInt64(bytes.1) << 48 | UInt64(bytes.2) << 40
                | UInt64(bytes.3) << 32
            let lower =
                UInt64(bytes.4) << 24 | UInt64(bytes.5) << 16 | UInt64(bytes.6) << 8
                | UInt64(bytes.7)
            return upper | lower
        }
        let all = uuid.uuid
        self.init(
            high: word((all.0, all.1, all.2, all.3, all.4, all.5, all.6, all.7)),
            low: word((all.8, all.9, all.10, all.11, all.12, all.13, all.14, all.15))
        )
    }
}

extension URL: OrderedValue {
    /// Stored as its text; one that is relative to a base as its own text, a space, which no URL
    /// has in it, and the base's.
    public static var attributeType: AttributeType { .url }
    /// `about:blank`.
    public static var zeroValue: URL {
        URL(string: "about:blank") ?? URL(filePath: "/")
    }

    /// From a stored text.
    public init?(stored: StoredValue) {
        guard case .text(let text) = stored else { return nil }
        guard let space = text.utf8.firstIndex(of: UInt8(ascii: " ")) else {
            self.init(string: text)
            return
        }
        let base = URL(string: String(text[text.index(after: space)...]))
        guard let base, let url = URL(string: String(text[..<space]), relativeTo: base) else {
            return nil
        }
        self = url
    }

    /// A stored text.
    public var stored: StoredValue { .text(storedText) }

    private var storedText: String {
        guard let baseURL else { return absoluteString }
        let text = "\(relativeString) \(baseURL.absoluteString)"
        // What Foundation does not make again from its parts is kept as what it means.
        return URL(stored: .text(text)) == self ? text : absoluteString
    }

    /// Orders by the stored text.
    public static func < (left: URL, right: URL) -> Bool {
        left.storedText < right.storedText
    }
}

extension Data: FilterableValue {
    /// Stored as its bytes.
    public static var attributeType: AttributeType { .data }
    /// Empty.
    public static var zeroValue: Data { Data() }

    /// From stored bytes.
    public init?(stored: StoredValue) {
        guard case .data(let bytes) = stored else { return nil }
        self.init(bytes)
    }

    /// Stored bytes.
    public var stored: StoredValue { .data([UInt8](self)) }
}

extension Decimal: OrderedValue {
    /// Stored as sign, digits and exponent.
    public static var attributeType: AttributeType { .decimal }
    /// Zero.
    public static var zeroValue: Decimal { 0 }

    /// From a stored decimal; nil if out of `Decimal`'s range.
    public init?(stored: StoredValue) {
        guard case .decimal(let value) = stored, value.isCanonical else { return nil }
        var number = value.digits.reduce(UInt128(0)) { $0 * 10 + UInt128($1) }
        var exponent = Int(value.exponent)
        // The canonical form has no zeros at the end; a large number of few digits needs them back.
        while exponent > 127 {
            let (more, overflow) = number.multipliedReportingOverflow(by: 10)
            guard !overflow, number != 0 else { return nil }
            number = more
            exponent -= 1
        }
        guard exponent >= -128 else { return nil }
        let low = Decimal(UInt64(truncatingIfNeeded: number))
        let high = UInt64(truncatingIfNeeded: number >> 64)
        self.init(
            sign: value.isNegative ? .minus : .plus,
            exponent: exponent,
            significand: high == 0 ? low : Decimal(high) * Self.word + low
        )
    }

    /// 2 to the power of 64.
    private static let word = Decimal(UInt64.max) + 1

    /// A stored decimal, all digits of it; not-a-number is null, and setters refuse it.
    public var stored: StoredValue {
        if isNaN { return .null }
        let digits = "\(magnitude.significand)".utf8.map { $0 - UInt8(ascii: "0") }
        let value = DecimalValue(normalizing: sign == .minus, digits: digits, exponent: exponent)
        return value.map { .decimal($0) } ?? .null
    }

    /// Not-a-number is no value that a store keeps.
    public var _refusal: String? {
        isNaN ? "is not-a-number, and a decimal in a store is always a number" : nil
    }
}
