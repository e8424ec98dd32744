// One row as bytes (Format.md, "Rows"): column count, one tag per column, then the bodies.
//
// Invariants
// - A row describes itself: it is decoded without the schema.
// - Equal values give equal bytes: shortest integers, no absent columns at the end.
// - Nothing here looks inside a blob or an outside value.

public import VarveBase

/// Encodes rows and rewrites them column by column.
public enum RowCoding {
    /// The most columns a row may have.
    public static let columnsMax = 1024

    /// Encodes a row; nil stands for a column that is not stored.
    /// Decimals must be canonical, and there may be at most `columnsMax` columns.
    public static func encode(_ values: [StoredValue?]) -> [UInt8] {
        var count = values.count
        while count > 0, values[count - 1] == nil { count -= 1 }
        precondition(count <= columnsMax, "more columns than a row may have")
        // Tags first, bodies behind them, in one block of the right size.
        var total = 2
        for index in 0..<count {
            let tag = RowTag.tag(of: values[index])
            total += (tag < 0x80 ? 1 : 10) + RowTag.bodySize(tag)
        }
        var writer = ByteWriter(capacity: total)
        writer.count(count)
        for index in 0..<count { writer.varint(RowTag.tag(of: values[index])) }
        for index in 0..<count { appendBody(values[index], to: &writer) }
        return writer.bytes
    }

    /// The references of all blob columns, in column order.
    public static func blobReferences(in row: [UInt8]) throws(FormatError) -> [BlobReference] {
        let view = try RowView(row)
        if !view.holdsContentElsewhere { return [] }
        var references: [BlobReference] = []
        for column in 0..<view.columnCount {
            let slot = view.slot(at: column)
            if slot.tag == RowTag.blob { references.append(try view.blob(slot)) }
        }
        return references
    }

    /// The columns whose value is kept outside the row.
    public static func outsideColumns(in row: [UInt8]) throws(FormatError) -> [ColumnID] {
        let view = try RowView(row)
        if !view.holdsContentElsewhere { return [] }
        var columns: [ColumnID] = []
        for column in 0..<view.columnCount
        where RowTag.isOutside(view.slot(at: column).tag) {
            columns.append(ColumnID(UInt16(column)))
        }
        return columns
    }

    /// Takes texts and data of more than `limit` bytes (at least 256) out of a row.
    /// - Returns: the row with tags that say so, and what was taken out, in column order.
    public static func movingOutside(
        _ row: [UInt8],
        above limit: Int
    ) throws(FormatError) -> (row: [UInt8], moved: [MovedValue]) {
        let view = try RowView(row)
        // Most rows are shorter than any value that would have to go.
        if row.count <= limit { return (row, []) }
        var columns = RawColumns(view)
        let moved = columns.moveOutside(above: limit)
        guard !moved.isEmpty else { return (row, []) }
        return (columns.row(), moved)
    }

    /// Puts values back that were taken out; the mirror of `movingOutside`.
    public static func movingInside(
        _ row: [UInt8],
        _ values: [MovedValue]
    ) throws(FormatError) -> [UInt8] {
        var columns = RawColumns(try RowView(row))
        for value in values { try columns.moveInside(value) }
        return columns.row()
    }

    /// Appends what stands behind the tags for a value; its form follows from `RowTag.tag(of:)`.
    static func appendBody(_ value: StoredValue?, to writer: inout ByteWriter) {
        switch value {
        case nil, .null, .bool: break
        case .int(let value):
            switch RowTag.tag(of: value) {
            case RowTag.int8: writer.u8(UInt8(truncatingIfNeeded: value))
            case RowTag.int16: writer.u16(UInt16(truncatingIfNeeded: value))
            case RowTag.int32: writer.u32(UInt32(truncatingIfNeeded: value))
            case RowTag.int64: writer.i64(value)
            default: break
            }
        case .float(let value): writer.f32(value)
        case .double(let value), .date(let value): writer.f64(value)
        case .text(let value): writer.text(value)
        case .data(let value): writer.raw(value)
        case .uuid(let value):
            writer.bigEndian64(value.high)
            writer.bigEndian64(value.low)
        case .decimal(let value): append(value, to: &writer)
        case .reference(let value):
            if let short = UInt32(exactly: value.rawValue) {
                writer.u32(short)
            } else {
                writer.u64(value.rawValue)
            }
        case .blob(let value):
            writer.digest(value.digest)
            writer.u64(value.length)
        }
    }

    private static func append(_ value: DecimalValue, to writer: inout ByteWriter) {
        precondition(value.isCanonical, "a decimal that is not canonical")
        let number = RowTag.number(of: value)
        writer.u8(value.isNegative ? 1 : 0)
        writer.u16(UInt16(bitPattern: value.exponent))
        writer.u64(UInt64(truncatingIfNeeded: number))
        if UInt64(exactly: number) == nil { writer.u64(UInt64(truncatingIfNeeded: number >> 64)) }
    }
}

extension ByteWriter {
    /// Appends the 32 bytes of a digest.
    public mutating func digest(_ digest: BlobDigest) {
        bigEndian64(digest.words.0)
        bigEndian64(digest.words.1)
        bigEndian64(digest.words.2)
        bigEndian64(digest.words.3)
    }
}

/// A value taken out of a row or patch by `movingOutside`.
public struct MovedValue: Hashable, Sendable {
    /// Its column.
    public var column: ColumnID
    /// Whether it is text rather than data.
    public var isText: Bool
    /// All of its bytes.
    public var bytes: [UInt8]

    /// Joins the three.
    public init(column: ColumnID, isText: Bool, bytes: [UInt8]) {
        self.column = column
        self.isText = isText
        self.bytes = bytes
    }
}
