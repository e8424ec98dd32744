// A row that keeps its bytes: `RowLayout` and the array it was made of.
//
// Invariants
// - The layout was made of these bytes, so every slot lies inside them.

public import VarveBase

/// A checked row with its bytes. Where the bytes are lent for a call only, `RowLayout` reads them
/// in place.
public struct RowView: Sendable {
    /// The bytes that hold the row.
    public let bytes: [UInt8]
    /// Where its columns lie in `bytes`.
    public let layout: RowLayout

    /// Checks the structure of a row that fills an array.
    /// - Complexity: O(columns).
    public init(_ bytes: [UInt8]) throws(FormatError) {
        layout = try RowLayout(bytes.span)
        self.bytes = bytes
    }

    /// Checks the structure of a row that fills a range of an array.
    public init(_ bytes: [UInt8], range: Range<Int>) throws(FormatError) {
        layout = try RowLayout(bytes.span.extracting(range)).moved(by: range.lowerBound)
        self.bytes = bytes
    }

    /// Columns that the row knows; later ones count as absent.
    @inlinable public var columnCount: Int { layout.columnCount }

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
    @inlinable
    public func slot(at column: Int) -> RowSlot { layout.slot(at: column, in: bytes.span) }

    /// Whether any column is a blob or a value kept outside the row. Most rows have none, and every
    /// row that is written is asked.
    public var holdsContentElsewhere: Bool { layout.holdsContentElsewhere }

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
        try layout.forEachSlot(in: bytes.span) { _, slot throws(FormatError) in
            contents.append(try content(slot))
        }
        return contents
    }

    /// Checks what the initialiser does not: text, decimals, lengths of outside values.
    public func validate() throws(FormatError) {
        try layout.forEachSlot(in: bytes.span) { _, slot throws(FormatError) in
            _ = try content(slot)
        }
    }
}

// MARK: - Single columns

extension RowView {
    /// What the row says about a slot.
    public func content(_ slot: RowSlot) throws(FormatError) -> RowContent {
        try slot.content(in: bytes.span)
    }

    /// The value of a slot; nil when it is not stored.
    public func value(_ slot: RowSlot) throws(FormatError) -> StoredValue? {
        try slot.value(in: bytes.span)
    }

    /// Reads a boolean.
    @inlinable
    public func bool(_ slot: RowSlot) throws(FormatError) -> Bool {
        try slot.bool(in: bytes.span)
    }

    /// Reads an integer of any width.
    @inlinable
    public func int(_ slot: RowSlot) throws(FormatError) -> Int64 {
        try slot.int(in: bytes.span)
    }

    /// Reads a 32-bit float.
    @inlinable
    public func float(_ slot: RowSlot) throws(FormatError) -> Float {
        try slot.float(in: bytes.span)
    }

    /// Reads a 64-bit float.
    @inlinable
    public func double(_ slot: RowSlot) throws(FormatError) -> Double {
        try slot.double(in: bytes.span)
    }

    /// Reads a date: seconds since 2001-01-01 00:00:00 UTC.
    @inlinable
    public func date(_ slot: RowSlot) throws(FormatError) -> Double {
        try slot.date(in: bytes.span)
    }

    /// Reads an object number.
    @inlinable
    public func reference(_ slot: RowSlot) throws(FormatError) -> ObjectID {
        try slot.reference(in: bytes.span)
    }

    /// Reads a UUID.
    @inlinable
    public func uuid(_ slot: RowSlot) throws(FormatError) -> UUIDValue {
        try slot.uuid(in: bytes.span)
    }

    /// Reads validated UTF-8.
    public func text(_ slot: RowSlot) throws(FormatError) -> String {
        try slot.text(in: bytes.span)
    }

    /// Copies data out.
    public func data(_ slot: RowSlot) throws(FormatError) -> [UInt8] {
        try slot.data(in: bytes.span)
    }

    /// Reads a decimal and checks that it is canonical.
    public func decimal(_ slot: RowSlot) throws(FormatError) -> DecimalValue {
        try slot.decimal(in: bytes.span)
    }

    /// Reads a blob's digest and length.
    public func blob(_ slot: RowSlot) throws(FormatError) -> BlobReference {
        try slot.blob(in: bytes.span)
    }

    /// Reads what the row keeps of a value outside it.
    public func outside(_ slot: RowSlot) throws(FormatError) -> OutsideValue {
        try slot.outside(in: bytes.span)
    }

    /// Where the body of a slot lies in `bytes`.
    @inlinable
    public func bodyRange(_ slot: RowSlot) -> Range<Int> { slot.body }
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
