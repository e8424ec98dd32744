// Reading a row without decoding all of it.
//
// Invariants
// - The initialiser walks the tags once: count, known tags, bodies that fill the row exactly. After
//   it every slot lies inside the bytes; only the kind of a value and UTF-8 remain to be checked.
// - No reader allocates, but for text, data and decimals.

public import VarveBase

/// Where one column of a row lies, found once and read as often as needed.
public struct RowSlot: Sendable {
    /// What stands there: a `RowTag`.
    public let tag: UInt64
    /// Index of the body's first byte.
    public let offset: Int

    @inlinable
    init(tag: UInt64, offset: Int) {
        self.tag = tag
        self.offset = offset
    }

    /// Whether the column is not stored, so that its declared default applies.
    @inlinable public var isAbsent: Bool { tag == RowTag.absent }
    /// Whether the column holds no value.
    @inlinable public var isNull: Bool { tag == RowTag.null }
    /// Whether the value is kept outside the row.
    @inlinable public var isOutside: Bool { RowTag.isOutside(tag) }
}

/// A checked row.
///
/// Finding a column walks the tags in front of it: a few nanoseconds for the first ten.
public struct RowView: Sendable {
    /// The bytes that hold the row.
    public let bytes: [UInt8]
    /// Columns that the row knows; later ones count as absent.
    public let columnCount: Int
    @usableFromInline let tagsStart: Int
    @usableFromInline let bodiesStart: Int

    /// Checks the structure of a row that fills an array.
    /// - Complexity: O(columns).
    public init(_ bytes: [UInt8]) throws(FormatError) {
        try self.init(bytes, range: 0..<bytes.count)
    }

    /// Checks the structure of a row that fills a range of an array.
    public init(_ bytes: [UInt8], range: Range<Int>) throws(FormatError) {
        var reader = ByteReader(bytes, range: range, place: "row")
        columnCount = try reader.count("column count", limit: RowCoding.columnsMax)
        tagsStart = reader.position
        let total = try RowView.checkTags(&reader, columnCount)
        guard total == reader.remaining else {
            throw reader.error("bodies", "\(reader.remaining) bytes", "\(total)")
        }
        bodiesStart = reader.position
        self.bytes = bytes
    }

    /// Walks tags; returns the bytes of their bodies.
    static func checkTags(
        _ reader: inout ByteReader,
        _ count: Int
    ) throws(FormatError) -> Int {
        var total = 0
        for _ in 0..<count {
            let tag = try reader.varint("tag")
            let size = RowTag.bodySize(tag)
            guard size >= 0 else { throw reader.error("tag", "\(tag)", "a known tag") }
            guard size <= reader.end - total else {
                throw reader.error("bodies", "\(reader.remaining) bytes", "\(total) and \(size)")
            }
            total += size
        }
        return total
    }

    /// Finds a column; one beyond the row's own columns is absent.
    @inlinable
    public func slot(_ column: ColumnID) -> RowSlot { slot(at: Int(column.rawValue)) }

    /// Finds a column by its number.
    public func slot(at column: Int) -> RowSlot {
        guard column < columnCount else { return RowSlot(tag: RowTag.absent, offset: 0) }
        var at = tagsStart
        var offset = bodiesStart
        var left = column
        while true {
            var tag = UInt64(bytes[at])
            at &+= 1
            if tag >= 0x80 {
                // Checked by the initialiser to be a varint inside the row.
                tag &= 0x7F
                var shift: UInt64 = 7
                while true {
                    let byte = bytes[at]
                    at &+= 1
                    tag |= UInt64(byte & 0x7F) &<< shift
                    shift &+= 7
                    if byte < 0x80 { break }
                }
            }
            if left == 0 { return RowSlot(tag: tag, offset: offset) }
            left &-= 1
            offset &+= RowTag.bodySize(tag)
        }
    }

    /// Whether any column is a blob or a value kept outside the row. Most rows have none, and every
    /// row that is written is asked.
    /// - Complexity: O(columns), without reading any body.
    var holdsContentElsewhere: Bool {
        var at = tagsStart
        for _ in 0..<columnCount {
            let first = bytes[at]
            // These tags are below 0x80: one byte each.
            if first >= UInt8(RowTag.blob), first <= UInt8(RowTag.outsideData) { return true }
            while bytes[at] >= 0x80 { at &+= 1 }
            at &+= 1
        }
        return false
    }

    /// What the row says about a column.
    public func content(_ column: ColumnID) throws(FormatError) -> RowContent {
        try content(slot(column))
    }

    /// The value of a column; nil when it is not stored.
    /// - Throws: also when the value is kept outside the row: see `content`.
    public func value(_ column: ColumnID) throws(FormatError) -> StoredValue? {
        try value(slot(column))
    }

    /// All columns in order.
    public func decodeAll() throws(FormatError) -> [RowContent] {
        var contents: [RowContent] = []
        contents.reserveCapacity(columnCount)
        for column in 0..<columnCount { contents.append(try content(slot(at: column))) }
        return contents
    }

    /// Checks what the initialiser does not: text, decimals, lengths of outside values.
    public func validate() throws(FormatError) {
        for column in 0..<columnCount { _ = try content(slot(at: column)) }
    }
}

// MARK: - One value

extension RowView {
    /// What stands in a slot of this row.
    public func content(_ slot: RowSlot) throws(FormatError) -> RowContent {
        if slot.isOutside { return .outside(try outside(slot)) }
        if let value = try value(slot) { return .value(value) }
        return .absent
    }

    /// The value in a slot of this row; nil when it is not stored.
    public func value(_ slot: RowSlot) throws(FormatError) -> StoredValue? {
        switch slot.tag {
        case RowTag.absent: return nil
        case RowTag.null: return .null
        case RowTag.false: return .bool(false)
        case RowTag.true: return .bool(true)
        case RowTag.zero...RowTag.int64: return .int(try int(slot))
        case RowTag.float: return .float(try float(slot))
        case RowTag.double: return .double(try double(slot))
        case RowTag.date: return .date(try date(slot))
        case RowTag.uuid: return .uuid(try uuid(slot))
        case RowTag.decimal64, RowTag.decimal128: return .decimal(try decimal(slot))
        case RowTag.reference32, RowTag.reference64: return .reference(try reference(slot))
        case RowTag.blob: return .blob(try blob(slot))
        default:
            if RowTag.isText(slot.tag) { return .text(try text(slot)) }
            if RowTag.isData(slot.tag) { return .data(try data(slot)) }
            throw unexpected(slot, "a value in the row")
        }
    }

    /// Reads a boolean.
    @inlinable
    public func bool(_ slot: RowSlot) throws(FormatError) -> Bool {
        if slot.tag == RowTag.true { return true }
        if slot.tag == RowTag.false { return false }
        throw unexpected(slot, "a boolean")
    }

    /// Reads an integer of any width.
    @inlinable
    public func int(_ slot: RowSlot) throws(FormatError) -> Int64 {
        switch slot.tag {
        case RowTag.zero: return 0
        case RowTag.one: return 1
        case RowTag.int8: return Int64(Int8(bitPattern: ByteReader.load8(bytes, slot.offset)))
        case RowTag.int16: return Int64(Int16(bitPattern: ByteReader.load16(bytes, slot.offset)))
        case RowTag.int32: return Int64(Int32(bitPattern: ByteReader.load32(bytes, slot.offset)))
        case RowTag.int64: return Int64(bitPattern: ByteReader.load64(bytes, slot.offset))
        default: throw unexpected(slot, "an integer")
        }
    }

    /// Reads a 32-bit float.
    @inlinable
    public func float(_ slot: RowSlot) throws(FormatError) -> Float {
        guard slot.tag == RowTag.float else { throw unexpected(slot, "a float") }
        return Float(bitPattern: ByteReader.load32(bytes, slot.offset))
    }

    /// Reads a 64-bit float.
    @inlinable
    public func double(_ slot: RowSlot) throws(FormatError) -> Double {
        guard slot.tag == RowTag.double else { throw unexpected(slot, "a double") }
        return Double(bitPattern: ByteReader.load64(bytes, slot.offset))
    }

    /// Reads a date: seconds since 2001-01-01 00:00:00 UTC.
    @inlinable
    public func date(_ slot: RowSlot) throws(FormatError) -> Double {
        guard slot.tag == RowTag.date else { throw unexpected(slot, "a date") }
        return Double(bitPattern: ByteReader.load64(bytes, slot.offset))
    }

    /// Reads an object number.
    @inlinable
    public func reference(_ slot: RowSlot) throws(FormatError) -> ObjectID {
        switch slot.tag {
        case RowTag.reference32:
            return ObjectID(UInt64(ByteReader.load32(bytes, slot.offset)))
        case RowTag.reference64: return ObjectID(ByteReader.load64(bytes, slot.offset))
        default: throw unexpected(slot, "a reference")
        }
    }

    /// Reads a UUID.
    @inlinable
    public func uuid(_ slot: RowSlot) throws(FormatError) -> UUIDValue {
        guard slot.tag == RowTag.uuid else { throw unexpected(slot, "a UUID") }
        return UUIDValue(
            high: ByteReader.loadBigEndian64(bytes, slot.offset),
            low: ByteReader.loadBigEndian64(bytes, slot.offset &+ 8)
        )
    }

    /// Reads validated UTF-8.
    public func text(_ slot: RowSlot) throws(FormatError) -> String {
        guard RowTag.isText(slot.tag) else { throw unexpected(slot, "a text") }
        guard let text = ByteReader.text(bytes, bodyRange(slot)) else {
            throw FormatError(
                place: "row",
                field: "text",
                found: "other bytes",
                expected: "valid UTF-8"
            )
        }
        return text
    }

    /// Copies data out.
    public func data(_ slot: RowSlot) throws(FormatError) -> [UInt8] {
        guard RowTag.isData(slot.tag) else { throw unexpected(slot, "data") }
        return Array(bytes[bodyRange(slot)])
    }

    /// Reads a decimal and checks that it is canonical.
    public func decimal(_ slot: RowSlot) throws(FormatError) -> DecimalValue {
        guard slot.tag == RowTag.decimal64 || slot.tag == RowTag.decimal128 else {
            throw unexpected(slot, "a decimal")
        }
        var number = UInt128(ByteReader.load64(bytes, slot.offset + 3))
        if slot.tag == RowTag.decimal128 {
            number |= UInt128(ByteReader.load64(bytes, slot.offset + 11)) << 64
        }
        var digits: [UInt8] = []
        while number != 0 {
            let (rest, digit) = number.quotientAndRemainder(dividingBy: 10)
            digits.append(UInt8(digit))
            number = rest
        }
        digits.reverse()
        let sign = ByteReader.load8(bytes, slot.offset)
        let value = DecimalValue(
            isNegative: sign == 1,
            exponent: Int16(bitPattern: ByteReader.load16(bytes, slot.offset + 1)),
            digits: digits
        )
        guard sign <= 1, value.isCanonical else {
            throw FormatError(
                place: "row",
                field: "decimal",
                found: "another form",
                expected: "canonical"
            )
        }
        return value
    }

    /// Reads a blob's digest and length.
    public func blob(_ slot: RowSlot) throws(FormatError) -> BlobReference {
        guard slot.tag == RowTag.blob else { throw unexpected(slot, "a blob") }
        return BlobReference(
            digest: ByteReader.digest(bytes, slot.offset),
            length: ByteReader.load64(bytes, slot.offset + 32)
        )
    }

    /// Reads what the row keeps of a value outside it.
    public func outside(_ slot: RowSlot) throws(FormatError) -> OutsideValue {
        guard slot.isOutside else { throw unexpected(slot, "an outside value") }
        let length = ByteReader.load64(bytes, slot.offset)
        guard length >= UInt64(RowTag.outsidePrefixBytes) else {
            throw FormatError(
                place: "row",
                field: "outside length",
                found: "\(length)",
                expected: "at least \(RowTag.outsidePrefixBytes)"
            )
        }
        let start = slot.offset + 8
        return OutsideValue(
            isText: slot.tag == RowTag.outsideText,
            length: length,
            prefix: Array(bytes[start..<start + RowTag.outsidePrefixBytes])
        )
    }

    /// Where the body of a slot lies in `bytes`.
    @inlinable
    public func bodyRange(_ slot: RowSlot) -> Range<Int> {
        slot.offset..<slot.offset &+ max(0, RowTag.bodySize(slot.tag))
    }

    @inline(never) @usableFromInline
    func unexpected(_ slot: RowSlot, _ expected: String) -> FormatError {
        FormatError(place: "row", field: "tag", found: "\(slot.tag)", expected: expected)
    }
}

extension ByteReader {
    /// The 32 bytes of a digest at an index that the caller has checked.
    public static func digest(_ bytes: [UInt8], _ at: Int) -> BlobDigest {
        BlobDigest(
            loadBigEndian64(bytes, at),
            loadBigEndian64(bytes, at + 8),
            loadBigEndian64(bytes, at + 16),
            loadBigEndian64(bytes, at + 24)
        )
    }

    /// Reads the 32 bytes of a digest.
    public mutating func digest(
        _ field: StaticString = "digest"
    ) throws(FormatError) -> BlobDigest {
        let range = try range(count: BlobDigest.byteCount, field)
        return ByteReader.digest(bytes, range.lowerBound)
    }
}
