// The change of one row (Format.md, "Patches"): bitmap of changed columns, their tags, their
// bodies.
//
// Invariants
// - Built only from checked bytes: applying a patch to a checked row cannot fail half-way.
// - A patch says what the columns become, never what they were: applying it twice changes nothing.

public import VarveBase

/// A checked patch of a row.
public struct RowPatch: Sendable {
    /// The encoding.
    public let bytes: [UInt8]
    /// The columns that change, ascending.
    public let columns: [ColumnID]
    private let raw: RawColumns

    /// Checks the structure of a patch.
    public init(_ bytes: [UInt8]) throws(FormatError) {
        var reader = ByteReader(bytes, place: "patch")
        let count = try reader.count("column count", limit: RowCoding.columnsMax)
        let bitmap = try reader.range(count: (count + 7) / 8, "bitmap")
        var columns: [ColumnID] = []
        for index in 0..<bitmap.count * 8 {
            let byte = bytes[bitmap.lowerBound + index / 8]
            guard byte &>> UInt8(index & 7) & 1 == 1 else { continue }
            guard index < count else {
                throw reader.error("bitmap", "a bit behind the last column", "zero")
            }
            columns.append(ColumnID(UInt16(index)))
        }
        var tags = reader
        let total = try RowView.checkTags(&reader, columns.count)
        guard total == reader.remaining else {
            throw reader.error("bodies", "\(reader.remaining) bytes", "\(total)")
        }
        var raw = RawColumns(count: count)
        var offset = reader.position
        for column in columns {
            let tag = try tags.varint("tag")
            let size = max(0, RowTag.bodySize(tag))
            raw.columns[Int(column.rawValue)] = RawColumns.Column(
                tag: tag,
                source: bytes,
                body: offset..<offset + size
            )
            offset += size
        }
        self.bytes = bytes
        self.columns = columns
        self.raw = raw
    }

    /// Encodes changes; nil makes a column absent. No column may come twice.
    public static func encode(
        _ changes: [(column: ColumnID, value: StoredValue?)]
    ) -> [UInt8] {
        let sorted = changes.sorted { $0.column < $1.column }
        let count = sorted.last.map { Int($0.column.rawValue) + 1 } ?? 0
        precondition(count <= RowCoding.columnsMax, "more columns than a row may have")
        var bitmap = [UInt8](repeating: 0, count: (count + 7) / 8)
        var tags = ByteWriter(capacity: 64)
        var bodies = ByteWriter(capacity: 64)
        for change in sorted {
            let index = Int(change.column.rawValue)
            let bit: UInt8 = 1 &<< UInt8(index & 7)
            precondition(bitmap[index / 8] & bit == 0, "a column that changes twice")
            bitmap[index / 8] |= bit
            tags.varint(RowTag.tag(of: change.value))
            RowCoding.appendBody(change.value, to: &bodies)
        }
        var writer = ByteWriter(capacity: 2 + bitmap.count + tags.count + bodies.count)
        writer.count(count)
        writer.raw(bitmap)
        writer.raw(tags.bytes)
        writer.raw(bodies.bytes)
        return writer.bytes
    }

    /// The patch that turns one row into another, or nil when they say the same.
    public static func difference(
        from old: [UInt8],
        to new: [UInt8]
    ) throws(FormatError) -> [UInt8]? {
        let from = RawColumns(try RowView(old))
        let to = RawColumns(try RowView(new))
        var patch = RawColumns(count: max(from.columns.count, to.columns.count))
        let absent = RawColumns.Column(tag: RowTag.absent, source: [], body: 0..<0)
        for index in patch.columns.indices {
            let before = index < from.columns.count ? from.columns[index] ?? absent : absent
            let after = index < to.columns.count ? to.columns[index] ?? absent : absent
            if before.tag == after.tag,
                ByteReader.compare(before.source, before.body, after.source, after.body) == 0
            {
                continue
            }
            patch.columns[index] = after
        }
        if patch.columns.allSatisfy({ $0 == nil }) { return nil }
        return patch.patch()
    }

    /// Applies the patch.
    /// - Complexity: O(bytes of both).
    public func applied(to row: [UInt8]) throws(FormatError) -> [UInt8] {
        var result = RawColumns(try RowView(row))
        while result.columns.count < raw.columns.count { result.columns.append(nil) }
        for column in columns {
            let index = Int(column.rawValue)
            result.columns[index] = raw.columns[index]
        }
        return result.row()
    }

    /// Takes texts and data of more than `limit` bytes (at least 256) out of the patch.
    public func movingOutside(
        above limit: Int
    ) throws(FormatError) -> (patch: [UInt8], moved: [MovedValue]) {
        var changed = raw
        let moved = changed.moveOutside(above: limit)
        return moved.isEmpty ? (bytes, []) : (changed.patch(), moved)
    }

    /// Applies a patch to a row.
    public static func apply(
        _ patch: [UInt8],
        to row: [UInt8]
    ) throws(FormatError) -> [UInt8] {
        try RowPatch(patch).applied(to: row)
    }
}
