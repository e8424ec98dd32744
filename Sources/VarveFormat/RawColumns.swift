// Columns as tags and undecoded bodies: rows and patches are rewritten without decoding values.
//
// Invariants
// - Built from checked bytes only, so every body range lies inside its array.

import VarveBase

/// The columns of a row, or of a patch, in order.
struct RawColumns {
    struct Column {
        var tag: UInt64
        var source: [UInt8]
        var body: Range<Int>
    }

    /// Index = position in the row; nil in a patch means "unchanged".
    var columns: [Column?]

    init(_ view: RowView) {
        columns = []
        columns.reserveCapacity(view.columnCount)
        view.layout.forEachSlot(in: view.bytes.span) { _, slot in
            columns.append(Column(tag: slot.tag, source: view.bytes, body: slot.body))
        }
    }

    init(count: Int) { columns = Array(repeating: nil, count: count) }

    mutating func moveOutside(above limit: Int) -> [MovedValue] {
        precondition(limit >= RowTag.outsidePrefixBytes)
        var moved: [MovedValue] = []
        for (index, column) in columns.enumerated() {
            guard let column, column.tag >= RowTag.textBase, column.body.count > limit else {
                continue
            }
            let isText = RowTag.isText(column.tag)
            moved.append(
                MovedValue(
                    column: ColumnID(UInt16(index)),
                    isText: isText,
                    bytes: Array(column.source[column.body])
                )
            )
            var body = ByteWriter(capacity: 8 + RowTag.outsidePrefixBytes)
            body.u64(UInt64(column.body.count))
            body.raw(column.source[column.body].prefix(RowTag.outsidePrefixBytes))
            columns[index] = Column(
                tag: isText ? RowTag.outsideText : RowTag.outsideData,
                source: body.bytes,
                body: 0..<body.count
            )
        }
        return moved
    }

    mutating func moveInside(_ value: MovedValue) throws(FormatError) {
        let index = Int(value.column.rawValue)
        let tag = value.isText ? RowTag.outsideText : RowTag.outsideData
        guard index < columns.count, let column = columns[index], column.tag == tag,
            ByteReader.load64(column.source, column.body.lowerBound)
                == UInt64(value.bytes.count)
        else {
            throw FormatError(
                place: "row",
                field: "outside value",
                found: "\(value.bytes.count) bytes",
                expected: "the length that the row names"
            )
        }
        let base = value.isText ? RowTag.textBase : RowTag.dataBase
        columns[index] = Column(
            tag: base + 2 * UInt64(value.bytes.count),
            source: value.bytes,
            body: 0..<value.bytes.count
        )
    }

    /// The row; columns that are nil count as absent.
    func row() -> [UInt8] {
        var count = columns.count
        while count > 0, (columns[count - 1]?.tag ?? RowTag.absent) == RowTag.absent {
            count -= 1
        }
        var writer = ByteWriter(capacity: 2 + 2 * count + bodyBytes(count))
        writer.count(count)
        for column in columns[..<count] { writer.varint(column?.tag ?? RowTag.absent) }
        appendBodies(count, to: &writer)
        return writer.bytes
    }

    /// The patch: bitmap of the columns that are not nil, their tags, their bodies.
    func patch() -> [UInt8] {
        var count = columns.count
        while count > 0, columns[count - 1] == nil { count -= 1 }
        var writer = ByteWriter(capacity: 2 + 3 * count + bodyBytes(count))
        writer.count(count)
        var bits: UInt8 = 0
        for index in 0..<count {
            if columns[index] != nil { bits |= 1 &<< UInt8(index & 7) }
            if index & 7 == 7 || index == count - 1 {
                writer.u8(bits)
                bits = 0
            }
        }
        for column in columns[..<count] {
            if let column { writer.varint(column.tag) }
        }
        appendBodies(count, to: &writer)
        return writer.bytes
    }

    private func bodyBytes(_ count: Int) -> Int {
        columns[..<count].reduce(0) { $0 + ($1?.body.count ?? 0) }
    }

    private func appendBodies(_ count: Int, to writer: inout ByteWriter) {
        for column in columns[..<count] {
            if let column { writer.raw(column.source[column.body]) }
        }
    }
}
