// The change of one row (Format.md, "Patches"): bitmap of changed columns, their tags, their
// bodies.
//
// Invariants
// - Built only from checked bytes: applying a patch to a checked row cannot fail half-way.
// - A patch says what the columns become, never what they were: applying it twice changes nothing.

public import VarveBase

/// A checked patch of a row. Not copied, as that would count references to its arrays.
public struct RowPatch: ~Copyable, Sendable {
    /// The encoding, or bytes of which a part is it.
    private let bytes: [UInt8]
    /// Where the encoding stands in `bytes`.
    private let range: Range<Int>
    /// The columns that change, ascending.
    public let columns: [ColumnID]
    /// Columns that the bitmap covers.
    private let count: Int
    private let tagsStart: Int
    private let bodiesStart: Int

    /// Checks the structure of a patch.
    public init(_ bytes: [UInt8]) throws(FormatError) { try self.init(bytes, bytes.indices) }

    /// Checks the structure of a patch that fills a range of an array.
    ///
    /// - Parameter like: columns that other patches change, so that this one needs no list of its
    ///   own if it changes the same.
    public init(
        _ bytes: [UInt8],
        _ range: Range<Int>,
        like others: [ColumnID] = []
    ) throws(FormatError) {
        var reader = ByteReader(bytes, range: range, place: "patch")
        let count = try reader.count("column count", limit: RowCoding.columnsMax)
        let bitmap = try reader.range(count: (count + 7) / 8, "bitmap")
        var columns: [ColumnID] = []
        // How many of the others it begins with; all others so far, while there is no own list.
        var same = 0
        for at in bitmap {
            var bits = bytes[at]
            while bits != 0 {
                let index = (at - bitmap.lowerBound) * 8 + bits.trailingZeroBitCount
                guard index < count else {
                    throw reader.error("bitmap", "a bit behind the last column", "zero")
                }
                let column = ColumnID(UInt16(index))
                if columns.isEmpty, same < others.count, others[same] == column {
                    same += 1
                } else {
                    if columns.isEmpty { columns += others[..<same] }
                    columns.append(column)
                }
                bits &= bits &- 1
            }
        }
        if columns.isEmpty { columns = same == others.count ? others : Array(others[..<same]) }
        let tagsStart = reader.position
        let total = try RowView.checkTags(&reader, columns.count)
        guard total == reader.remaining else {
            throw reader.error("bodies", "\(reader.remaining) bytes", "\(total)")
        }
        self.count = count
        self.tagsStart = tagsStart
        bodiesStart = reader.position
        self.bytes = bytes
        self.range = range
        self.columns = columns
    }

    /// Encodes changes; nil makes a column absent. Of several changes of a column the last counts.
    public static func encode(
        _ changes: [(column: ColumnID, value: StoredValue?)]
    ) -> [UInt8] {
        let last = changes.reduce(-1) { max($0, Int($1.column.rawValue)) }
        var encoder = RowEncoder()
        encoder.begin(columns: last + 1)
        for change in changes {
            let column = Int(change.column.rawValue)
            if let value = change.value {
                encoder.set(column, value)
            } else {
                encoder.setAbsent(column)
            }
        }
        var patch: [UInt8] = []
        encoder.encodePatch(into: &patch)
        return patch
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
    /// - Complexity: O(bytes of both); one allocation.
    public func applied(to row: [UInt8]) throws(FormatError) -> [UInt8] {
        let layout = try RowLayout(row.span)
        var result: [UInt8] = []
        apply(to: row.span, layout, into: &result)
        return result
    }

    /// Appends the row that the patch makes of a checked one.
    /// - Complexity: O(bytes of both).
    public func apply(to row: Span<UInt8>, _ layout: RowLayout, into result: inout [UInt8]) {
        let length = resultLength(row, layout)
        var writer = ByteWriter(appendingTo: result)
        result = []
        writer.reserve(2 + 10 * columns.count + row.count + range.count)
        writer.count(length)
        eachColumn(length, row, layout) { slot, _ in writer.varint(slot.tag) }
        // Bodies of neighbours lie side by side: they are copied together.
        var run = 0..<0
        var runIsPatch = false
        eachColumn(length, row, layout) { slot, isPatch in
            let body = slot.body
            if body.isEmpty { return }
            if isPatch == runIsPatch, run.upperBound == body.lowerBound {
                run = run.lowerBound..<body.upperBound
                return
            }
            writer.raw(runIsPatch ? bytes.span : row, run)
            run = body
            runIsPatch = isPatch
        }
        writer.raw(runIsPatch ? bytes.span : row, run)
        result = writer.bytes
    }

    /// Columns of the new row: absent ones at the end are left out.
    private func resultLength(_ row: Span<UInt8>, _ layout: RowLayout) -> Int {
        var length = 0
        var index = 0
        eachColumn(max(count, layout.columnCount), row, layout) { slot, _ in
            index += 1
            if !slot.isAbsent { length = index }
        }
        return length
    }

    /// Calls `body` for the first columns of the new row: where each lies, whether in the patch.
    private func eachColumn(
        _ length: Int,
        _ row: Span<UInt8>,
        _ layout: RowLayout,
        _ body: (RowSlot, Bool) -> Void
    ) {
        var old = RowSlotWalk(layout)
        var new = RowSlotWalk(tagsStart: tagsStart, bodiesStart: bodiesStart)
        var next = 0
        for column in 0..<length {
            let before =
                column < layout.columnCount
                ? old.next(row) : RowSlot(tag: RowTag.absent, offset: 0)
            if next < columns.count, Int(columns[next].rawValue) == column {
                next += 1
                body(new.next(bytes.span), true)
            } else {
                body(before, false)
            }
        }
    }

    /// Takes texts and data of more than `limit` bytes (at least 256) out of the patch.
    public func movingOutside(
        above limit: Int
    ) throws(FormatError) -> (patch: [UInt8], moved: [MovedValue]) {
        // Most patches are shorter than any value that would have to go.
        if range.count <= limit { return (encoding, []) }
        var changed = RawColumns(count: count)
        var walk = RowSlotWalk(tagsStart: tagsStart, bodiesStart: bodiesStart)
        for column in columns {
            let slot = walk.next(bytes.span)
            changed.columns[Int(column.rawValue)] = RawColumns.Column(
                tag: slot.tag,
                source: bytes,
                body: slot.body
            )
        }
        let moved = changed.moveOutside(above: limit)
        return moved.isEmpty ? (encoding, []) : (changed.patch(), moved)
    }

    private var encoding: [UInt8] {
        range.count == bytes.count ? bytes : Array(bytes[range])
    }

    /// Whether the patch sets a column to a blob or to a value kept outside the row.
    public var holdsContentElsewhere: Bool {
        var walk = RowSlotWalk(tagsStart: tagsStart, bodiesStart: bodiesStart)
        for _ in columns {
            let tag = walk.next(bytes.span).tag
            if tag >= RowTag.blob, tag <= RowTag.outsideData { return true }
        }
        return false
    }

    /// Applies a patch to a row.
    public static func apply(
        _ patch: [UInt8],
        to row: [UInt8]
    ) throws(FormatError) -> [UInt8] {
        try RowPatch(patch).applied(to: row)
    }
}

/// Steps over checked tags, one column after the other.
struct RowSlotWalk {
    private var at: Int
    private var offset: Int

    init(_ layout: RowLayout) {
        self.init(tagsStart: layout.tagsStart, bodiesStart: layout.bodiesStart)
    }

    init(tagsStart: Int, bodiesStart: Int) {
        at = tagsStart
        offset = bodiesStart
    }

    /// The next column; the caller knows that there is one.
    @inline(__always)
    mutating func next(_ bytes: Span<UInt8>) -> RowSlot {
        var tag = UInt64(ByteReader.load8(bytes, at))
        at &+= 1
        if tag >= 0x80 {
            tag &= 0x7F
            var shift: UInt64 = 7
            while true {
                let byte = ByteReader.load8(bytes, at)
                at &+= 1
                tag |= UInt64(byte & 0x7F) &<< shift
                shift &+= 7
                if byte < 0x80 { break }
            }
        }
        defer { offset &+= RowTag.bodySize(tag) }
        return RowSlot(tag: tag, offset: offset)
    }
}
