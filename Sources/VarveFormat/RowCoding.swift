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
        var encoder = RowEncoder()
        encoder.begin(columns: values.count)
        for column in values.indices {
            if let value = values[column] { encoder.set(column, value) }
        }
        var row: [UInt8] = []
        encoder.encode(into: &row)
        return row
    }

    /// The references of all blob columns, in column order.
    public static func blobReferences(in row: [UInt8]) throws(FormatError) -> [BlobReference] {
        let view = try RowView(row)
        if !view.holdsContentElsewhere { return [] }
        var references: [BlobReference] = []
        try view.layout.forEachSlot(in: row.span) { _, slot throws(FormatError) in
            if slot.tag == RowTag.blob { references.append(try view.blob(slot)) }
        }
        return references
    }

    /// The columns whose value is kept outside the row.
    public static func outsideColumns(in row: [UInt8]) throws(FormatError) -> [ColumnID] {
        let view = try RowView(row)
        if !view.holdsContentElsewhere { return [] }
        var columns: [ColumnID] = []
        view.layout.forEachSlot(in: row.span) { column, slot in
            if slot.isOutside { columns.append(ColumnID(UInt16(column))) }
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
