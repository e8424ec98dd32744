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
        var tags = ByteWriter(capacity: 1 + count + 64)
        tags.count(count)
        var bodies = ByteWriter(capacity: 64)
        for index in 0..<count { append(values[index], tags: &tags, bodies: &bodies) }
        tags.raw(bodies.bytes)
        return tags.bytes
    }

    /// The references of all blob columns, in column order.
    public static func blobReferences(in row: [UInt8]) throws(FormatError) -> [BlobReference] {
        let view = try RowView(row)
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

    static func append(
        _ value: StoredValue?,
        tags: inout ByteWriter,
        bodies: inout ByteWriter
    ) {
        guard let value else { return tags.varint(RowTag.absent) }
        switch value {
        case .null: tags.varint(RowTag.null)
        case .bool(let value): tags.varint(value ? RowTag.true : RowTag.false)
        case .int(let value): append(value, &tags, &bodies)
        case .float(let value):
            tags.varint(RowTag.float)
            bodies.f32(value)
        case .double(let value):
            tags.varint(RowTag.double)
            bodies.f64(value)
        case .date(let value):
            tags.varint(RowTag.date)
            bodies.f64(value)
        case .text(let value):
            tags.varint(RowTag.textBase + 2 * UInt64(value.utf8.count))
            bodies.text(value)
        case .data(let value):
            tags.varint(RowTag.dataBase + 2 * UInt64(value.count))
            bodies.raw(value)
        case .uuid(let value):
            tags.varint(RowTag.uuid)
            bodies.bigEndian64(value.high)
            bodies.bigEndian64(value.low)
        case .decimal(let value): append(value, &tags, &bodies)
        case .reference(let value):
            if let short = UInt32(exactly: value.rawValue) {
                tags.varint(RowTag.reference32)
                bodies.u32(short)
            } else {
                tags.varint(RowTag.reference64)
                bodies.u64(value.rawValue)
            }
        case .blob(let value):
            tags.varint(RowTag.blob)
            bodies.digest(value.digest)
            bodies.u64(value.length)
        }
    }

    private static func append(
        _ value: Int64,
        _ tags: inout ByteWriter,
        _ bodies: inout ByteWriter
    ) {
        if value == 0 {
            tags.varint(RowTag.zero)
        } else if value == 1 {
            tags.varint(RowTag.one)
        } else if let short = Int8(exactly: value) {
            tags.varint(RowTag.int8)
            bodies.u8(UInt8(bitPattern: short))
        } else if let short = Int16(exactly: value) {
            tags.varint(RowTag.int16)
            bodies.u16(UInt16(bitPattern: short))
        } else if let short = Int32(exactly: value) {
            tags.varint(RowTag.int32)
            bodies.u32(UInt32(bitPattern: short))
        } else {
            tags.varint(RowTag.int64)
            bodies.i64(value)
        }
    }

    private static func append(
        _ value: DecimalValue,
        _ tags: inout ByteWriter,
        _ bodies: inout ByteWriter
    ) {
        precondition(value.isCanonical, "a decimal that is not canonical")
        let number = value.digits.reduce(UInt128(0)) { $0 * 10 + UInt128($1) }
        let short = UInt64(exactly: number)
        tags.varint(short == nil ? RowTag.decimal128 : RowTag.decimal64)
        bodies.u8(value.isNegative ? 1 : 0)
        bodies.u16(UInt16(bitPattern: value.exponent))
        bodies.u64(UInt64(truncatingIfNeeded: number))
        if short == nil { bodies.u64(UInt64(truncatingIfNeeded: number >> 64)) }
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
