// Where the columns of a row lie, and reading them in place from borrowed bytes.
//
// Invariants
// - Made by one walk over the tags: count, known tags, bodies that fill the row exactly. After it
//   every slot lies inside the row; only the kind of a value and UTF-8 remain to be checked.
// - Holds no bytes: every reader is given the row again, and compares its place with the row's
//   size.
// - No reader allocates, but for text, data and decimals.

public import VarveBase

/// Where one column of a row lies, found once and read as often as needed.
@frozen public struct RowSlot: Sendable {
    /// What stands there: a `RowTag`.
    public let tag: UInt64
    /// Index of the body's first byte.
    public let offset: Int

    @inlinable @inline(__always)
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
    /// Where the body lies in the row.
    @inlinable public var body: Range<Int> {
        offset..<offset &+ max(0, RowTag.bodySize(tag))
    }
}

/// Where the columns of a checked row lie. A value of two words; the row's bytes are lent to each
/// call, so that rows are read where a leaf holds them.
///
/// Finding a column walks the tags in front of it: a few nanoseconds for the first ten.
@frozen public struct RowLayout: Sendable {
    // Half a word each: every cached row keeps its layout.
    @usableFromInline let columns: UInt32
    @usableFromInline let tags: UInt32
    @usableFromInline let bodies: UInt32
    /// Whether any column is a blob or a value kept outside the row. Most rows have none.
    public let holdsContentElsewhere: Bool

    /// Of a row of at most `rowBytesMax` bytes.
    init(columnCount: Int, tagsStart: Int, bodiesStart: Int, holdsContentElsewhere: Bool) {
        columns = UInt32(columnCount)
        tags = UInt32(tagsStart)
        bodies = UInt32(bodiesStart)
        self.holdsContentElsewhere = holdsContentElsewhere
    }

    /// Bytes of the largest row that has a layout; frames hold far less.
    static let rowBytesMax = Int(UInt32.max)

    /// Columns that the row knows; later ones count as absent.
    @inlinable public var columnCount: Int { Int(columns) }
    @inlinable var tagsStart: Int { Int(tags) }
    @inlinable var bodiesStart: Int { Int(bodies) }

    /// Checks the structure of a row that fills a span.
    /// - Complexity: O(columns), a nanosecond each.
    public init(_ row: Span<UInt8>) throws(FormatError) {
        guard let layout = RowLayout.walk(row) else { throw RowLayout.damage(row) }
        self = layout
    }

    /// The same row at a place further back.
    func moved(by distance: Int) -> RowLayout {
        RowLayout(
            columnCount: columnCount,
            tagsStart: tagsStart + distance,
            bodiesStart: bodiesStart + distance,
            holdsContentElsewhere: holdsContentElsewhere
        )
    }

    /// Finds a column; one beyond the row's own columns is absent.
    @inlinable @inline(__always)
    public func slot(_ column: ColumnID, in row: Span<UInt8>) -> RowSlot {
        slot(at: Int(column.rawValue), in: row)
    }

    /// Calls `body` for every column in order: its number and where it lies.
    /// - Complexity: O(columns).
    @inlinable @inline(__always)
    public func forEachSlot<E: Error>(
        in row: Span<UInt8>,
        _ body: (Int, RowSlot) throws(E) -> Void
    ) throws(E) {
        var at = tagsStart
        var offset = bodiesStart
        for column in 0..<columnCount {
            var tag = UInt64(ByteReader.load8(row, at))
            at &+= 1
            if tag >= 0x80 { tag = Self.longTag(UInt8(truncatingIfNeeded: tag), in: row, &at) }
            try body(column, RowSlot(tag: tag, offset: offset))
            offset &+= RowTag.bodySize(tag)
        }
    }

    /// The tag that begins with a byte of 0x80 or more; `at` is where the next byte is. The walk
    /// has found it to be a varint inside the row.
    @inlinable @inline(__always)
    static func longTag(_ first: UInt8, in row: Span<UInt8>, _ at: inout Int) -> UInt64 {
        let second = ByteReader.load8(row, at)
        at &+= 1
        let tag = UInt64(first & 0x7F) | UInt64(second & 0x7F) &<< 7
        // Texts and data of 48 to 8,175 bytes end here.
        if second < 0x80 { return tag }
        let rest = longerTag(tag, in: row, from: at)
        at = rest.end
        return rest.tag
    }

    /// The rest of a tag of three bytes or more, and where it ends.
    @inline(never) @usableFromInline
    static func longerTag(
        _ beginning: UInt64,
        in row: Span<UInt8>,
        from start: Int
    ) -> (tag: UInt64, end: Int) {
        var (tag, shift, at): (UInt64, UInt64, Int) = (beginning, 14, start)
        while true {
            let byte = ByteReader.load8(row, at)
            at &+= 1
            tag |= UInt64(byte & 0x7F) &<< shift
            shift &+= 7
            if byte < 0x80 { return (tag, at) }
        }
    }

    /// What is wrong with a row that the walk refused.
    @inline(never)
    private static func damage(_ row: Span<UInt8>) -> FormatError {
        let bytes = ByteReader.copy(row, 0..<row.count)
        var reader = ByteReader(bytes, place: "row")
        do throws(FormatError) {
            let count = try reader.count("column count", limit: RowCoding.columnsMax)
            let total = try RowView.checkTags(&reader, count)
            return reader.error("bodies", "\(reader.remaining) bytes", "\(total)")
        } catch {
            return error
        }
    }
}

// MARK: - Values

extension RowSlot {
    /// What the row says about the column.
    public func content(in row: Span<UInt8>) throws(FormatError) -> RowContent {
        if isAbsent { return .absent }
        if isOutside { return .outside(try outside(in: row)) }
        return .value(try value(in: row) ?? .null)
    }

    /// The value; nil when the column is not stored.
    /// - Throws: also when the value is kept outside the row: see `content`.
    public func value(in row: Span<UInt8>) throws(FormatError) -> StoredValue? {
        switch tag {
        case RowTag.absent: return nil
        case RowTag.null: return .null
        case RowTag.false: return .bool(false)
        case RowTag.true: return .bool(true)
        case RowTag.zero...RowTag.int64: return .int(try int(in: row))
        case RowTag.float: return .float(try float(in: row))
        case RowTag.double: return .double(try double(in: row))
        case RowTag.date: return .date(try date(in: row))
        case RowTag.uuid: return .uuid(try uuid(in: row))
        case RowTag.decimal64, RowTag.decimal128: return .decimal(try decimal(in: row))
        case RowTag.reference32, RowTag.reference64: return .reference(try reference(in: row))
        case RowTag.blob: return .blob(try blob(in: row))
        default:
            if RowTag.isText(tag) { return .text(try text(in: row)) }
            if RowTag.isData(tag) { return .data(try data(in: row)) }
            throw unexpected("a value in the row")
        }
    }

    /// Reads a boolean.
    @inlinable @inline(__always)
    public func bool(in row: Span<UInt8>) throws(FormatError) -> Bool {
        if tag == RowTag.true { return true }
        if tag == RowTag.false { return false }
        throw unexpected("a boolean")
    }

    /// Reads an integer of any width.
    @inlinable @inline(__always)
    public func int(in row: Span<UInt8>) throws(FormatError) -> Int64 {
        switch tag {
        case RowTag.zero: return 0
        case RowTag.one: return 1
        case RowTag.int8: return Int64(Int8(bitPattern: ByteReader.load8(row, offset)))
        case RowTag.int16: return Int64(Int16(bitPattern: ByteReader.load16(row, offset)))
        case RowTag.int32: return Int64(Int32(bitPattern: ByteReader.load32(row, offset)))
        case RowTag.int64: return Int64(bitPattern: ByteReader.load64(row, offset))
        default: throw unexpected("an integer")
        }
    }

    /// Reads a 32-bit float.
    @inlinable
    public func float(in row: Span<UInt8>) throws(FormatError) -> Float {
        guard tag == RowTag.float else { throw unexpected("a float") }
        return Float(bitPattern: ByteReader.load32(row, offset))
    }

    /// Reads a 64-bit float.
    @inlinable @inline(__always)
    public func double(in row: Span<UInt8>) throws(FormatError) -> Double {
        guard tag == RowTag.double else { throw unexpected("a double") }
        return Double(bitPattern: ByteReader.load64(row, offset))
    }

    /// Reads a date: seconds since 2001-01-01 00:00:00 UTC.
    @inlinable @inline(__always)
    public func date(in row: Span<UInt8>) throws(FormatError) -> Double {
        guard tag == RowTag.date else { throw unexpected("a date") }
        return Double(bitPattern: ByteReader.load64(row, offset))
    }

    /// Reads an object number.
    @inlinable @inline(__always)
    public func reference(in row: Span<UInt8>) throws(FormatError) -> ObjectID {
        switch tag {
        case RowTag.reference32: return ObjectID(UInt64(ByteReader.load32(row, offset)))
        case RowTag.reference64: return ObjectID(ByteReader.load64(row, offset))
        default: throw unexpected("a reference")
        }
    }

    /// Reads a UUID.
    @inlinable
    public func uuid(in row: Span<UInt8>) throws(FormatError) -> UUIDValue {
        guard tag == RowTag.uuid else { throw unexpected("a UUID") }
        return UUIDValue(
            high: ByteReader.load64(row, offset).byteSwapped,
            low: ByteReader.load64(row, offset &+ 8).byteSwapped
        )
    }

    /// Reads validated UTF-8.
    public func text(in row: Span<UInt8>) throws(FormatError) -> String {
        guard RowTag.isText(tag) else { throw unexpected("a text") }
        // Half of the tag: no overflow.
        let end = offset &+ Int(truncatingIfNeeded: (tag &- RowTag.textBase) &>> 1)
        guard let text = ByteReader.text(row, offset..<end) else {
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
    public func data(in row: Span<UInt8>) throws(FormatError) -> [UInt8] {
        guard RowTag.isData(tag) else { throw unexpected("data") }
        return ByteReader.copy(row, body)
    }

    /// Reads a decimal and checks that it is canonical.
    public func decimal(in row: Span<UInt8>) throws(FormatError) -> DecimalValue {
        guard tag == RowTag.decimal64 || tag == RowTag.decimal128 else {
            throw unexpected("a decimal")
        }
        var number = UInt128(ByteReader.load64(row, offset + 3))
        if tag == RowTag.decimal128 {
            number |= UInt128(ByteReader.load64(row, offset + 11)) << 64
        }
        var digits: [UInt8] = []
        while number != 0 {
            let (rest, digit) = number.quotientAndRemainder(dividingBy: 10)
            digits.append(UInt8(digit))
            number = rest
        }
        digits.reverse()
        let sign = ByteReader.load8(row, offset)
        let value = DecimalValue(
            isNegative: sign == 1,
            exponent: Int16(bitPattern: ByteReader.load16(row, offset + 1)),
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
    public func blob(in row: Span<UInt8>) throws(FormatError) -> BlobReference {
        guard tag == RowTag.blob else { throw unexpected("a blob") }
        return BlobReference(
            digest: BlobDigest(
                ByteReader.load64(row, offset).byteSwapped,
                ByteReader.load64(row, offset + 8).byteSwapped,
                ByteReader.load64(row, offset + 16).byteSwapped,
                ByteReader.load64(row, offset + 24).byteSwapped
            ),
            length: ByteReader.load64(row, offset + 32)
        )
    }

    /// Reads what the row keeps of a value outside it.
    public func outside(in row: Span<UInt8>) throws(FormatError) -> OutsideValue {
        guard isOutside else { throw unexpected("an outside value") }
        let length = ByteReader.load64(row, offset)
        guard length >= UInt64(RowTag.outsidePrefixBytes) else {
            throw FormatError(
                place: "row",
                field: "outside length",
                found: "\(length)",
                expected: "at least \(RowTag.outsidePrefixBytes)"
            )
        }
        let start = offset + 8
        return OutsideValue(
            isText: tag == RowTag.outsideText,
            length: length,
            prefix: ByteReader.copy(row, start..<start + RowTag.outsidePrefixBytes)
        )
    }

    @inline(never) @usableFromInline
    func unexpected(_ expected: String) -> FormatError {
        FormatError(place: "row", field: "tag", found: "\(tag)", expected: expected)
    }
}
