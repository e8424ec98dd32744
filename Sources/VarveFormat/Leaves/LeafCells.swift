// FENCE: the rows of a leaf that is made, taken apart into columns.
//
// Invariants
// - Column 0 is the version, column c + 1 the row's column c. A cell lies at column * rows + row;
//   there is one for each column and row, whatever the row has.
// - A row is taken only if every tag has its shortest form and the bodies fill the row exactly, so
//   that each body lies inside the rows' bytes.

/// The cells of a leaf that is made. Lives as long as the rows' bytes are lent.
@safe final class LeafCells {
    let rows: Int
    /// With the version.
    let columns: Int
    /// The tag of each cell; that of an integer for versions.
    @unsafe let tags: UnsafeMutablePointer<UInt32>
    /// Where each cell's body lies in the rows' bytes.
    @unsafe let places: UnsafeMutablePointer<UInt32>
    /// Numbers: the value or its bits. Bytes: where they lie (low half) and how many they are.
    @unsafe let values: UnsafeMutablePointer<UInt64>
    /// The rows' bytes, and how many they are.
    @unsafe let source: UnsafeRawPointer
    let sourceCount: Int
    private(set) var plans: [LeafPlan] = []
    private(set) var rawBytes = 0
    private(set) var rowBytesMax = 0

    /// Takes rows apart; nil where they do not fit into layout 1.
    init?(_ rows: LeafRows, _ source: UnsafeRawBufferPointer) {
        guard let base = source.baseAddress, rows.count > 0, rows.count <= Int(UInt16.max),
            unsafe source.count + 10 * rows.count <= PackedLeaf.rawBytesLimit
        else { return nil }
        unsafe self.source = base
        sourceCount = source.count
        self.rows = rows.count
        var most = 0
        for index in 0..<rows.count {
            let range = rows.range(index)
            guard range.upperBound <= source.count, range.lowerBound < range.upperBound,
                unsafe range.count <= PackedLeaf.rowBytesLimit
            else { return nil }
            var at = range.lowerBound
            // Inside the rows' bytes.
            guard let count = unsafe Self.varint(base, &at, range.upperBound),
                count <= RowCoding.columnsMax
            else { return nil }
            most = max(most, Int(count))
        }
        columns = most + 1
        let cells = columns * rows.count
        guard unsafe cells <= PackedLeaf.cellsLimit else { return nil }
        // One of each for each cell; given back by `deinit`. Absent until a row says otherwise.
        unsafe tags = .allocate(capacity: cells)
        unsafe tags.initialize(repeating: UInt32(RowTag.absent), count: cells)
        unsafe places = .allocate(capacity: cells)
        unsafe places.initialize(repeating: 0, count: cells)
        unsafe values = .allocate(capacity: cells)
        unsafe values.initialize(repeating: 0, count: cells)
        guard take(rows) else { return nil }
    }

    deinit {
        // Allocated by `init`, and of types without a destructor.
        unsafe tags.deallocate()
        unsafe places.deallocate()
        unsafe values.deallocate()
    }

    /// Whether a cell holds a value.
    @inline(__always)
    func hasValue(_ cell: Int) -> Bool {
        assert(cell >= 0 && cell < rows * columns)
        // One of the cells.
        return unsafe tags[cell] > UInt32(RowTag.null)
    }

    /// Takes all rows apart and gives each column its type; false where one cannot be.
    private func take(_ all: LeafRows) -> Bool {
        var masks = [UInt32](repeating: 0, count: columns)
        for index in 0..<rows {
            // Column 0 has a cell for each row.
            unsafe tags[index] = UInt32(RowTag.int64)
            unsafe values[index] = all.versions[index]
            let range = all.range(index)
            rawBytes += range.count + ByteWriter.varintSize(all.versions[index])
            rowBytesMax = max(rowBytesMax, range.count)
            if !take(index, range, &masks) { return false }
        }
        masks[0] = 1 << UInt32(LeafType.int.rawValue)
        for column in 0..<columns {
            let plan = plan(masks[column])
            if !load(column, plan.type) { return false }
            plans.append(plan)
        }
        return true
    }

    /// Takes one row apart.
    private func take(_ index: Int, _ range: Range<Int>, _ masks: inout [UInt32]) -> Bool {
        let end = range.upperBound
        var at = range.lowerBound
        // Inside the rows' bytes, and read before: at most as many columns as there are cells.
        guard let count = unsafe Self.varint(source, &at, end) else { return false }
        var cell = rows + index
        var tag: UInt64 = RowTag.null
        var body = 0
        for column in 1..<Int(count) + 1 {
            guard let next = unsafe Self.varint(source, &at, end) else { return false }
            tag = next
            let size = RowTag.bodySize(tag)
            guard size >= 0, size <= end - range.lowerBound else { return false }
            // One of the cells; a tag is below 2^21, as its body fits the row.
            unsafe tags[cell] = UInt32(truncatingIfNeeded: tag)
            unsafe places[cell] = UInt32(truncatingIfNeeded: body)
            cell += rows
            body += size
            masks[column] |= 1 << Self.kind(tag)
        }
        // Absent columns at the end are not written; bodies fill the rest.
        guard tag != RowTag.absent, at + body == end else { return false }
        cell = rows + index
        for _ in 0..<Int(count) {
            // As above; before the end of the row.
            unsafe places[cell] &+= UInt32(truncatingIfNeeded: at)
            cell += rows
        }
        return true
    }

    private static let nilKind: UInt32 = 16
    private static let absentKind: UInt32 = 17

    /// The type of a tag's values.
    @inline(__always)
    private static func kind(_ tag: UInt64) -> UInt32 {
        if tag >= RowTag.textBase {
            return UInt32((tag & 1 == 0 ? LeafType.text : LeafType.data).rawValue)
        }
        switch tag {
        case RowTag.absent: return absentKind
        case RowTag.null: return nilKind
        case RowTag.false, RowTag.true: return UInt32(LeafType.bool.rawValue)
        case RowTag.zero...RowTag.int64: return UInt32(LeafType.int.rawValue)
        case RowTag.float: return UInt32(LeafType.float.rawValue)
        case RowTag.double: return UInt32(LeafType.double.rawValue)
        case RowTag.date: return UInt32(LeafType.date.rawValue)
        case RowTag.uuid: return UInt32(LeafType.uuid.rawValue)
        case RowTag.reference32, RowTag.reference64: return UInt32(LeafType.reference.rawValue)
        default: return UInt32(LeafType.any.rawValue)
        }
    }

    /// The beginning of a plan: type, nil and absent; of a column without values any type.
    private func plan(_ mask: UInt32) -> LeafPlan {
        let types = mask & 0xFFFF
        let first = LeafType(rawValue: UInt8(types.trailingZeroBitCount & 15)) ?? .bool
        var plan = LeafPlan(types == 0 ? .bool : types.nonzeroBitCount > 1 ? .any : first)
        plan.hasNil = mask >> Self.nilKind & 1 != 0
        // A row that ends in front of a column has no mask of it.
        plan.hasAbsent = mask >> Self.absentKind & 1 != 0
        return plan
    }

    /// Reads the values of a column; false where one is not in its shortest form.
    private func load(_ column: Int, _ type: LeafType) -> Bool {
        if column == 0 { return true }
        for cell in column * rows..<(column + 1) * rows where hasValue(cell) {
            // One of the cells; its body lies inside the rows' bytes.
            let tag = unsafe UInt64(tags[cell])
            let at = unsafe Int(places[cell])
            let size = RowTag.bodySize(tag)
            switch type {
            case .text, .data, .any, .uuid:
                if type == .any, !isShortest(tag, at) { return false }
                unsafe values[cell] = UInt64(at) | UInt64(size) << 32
            case .bool: unsafe values[cell] = tag &- RowTag.false
            case .int:
                let value = integer(tag, at)
                if RowTag.tag(of: value) != tag { return false }
                unsafe values[cell] = UInt64(bitPattern: value)
            case .double, .date, .float, .reference:
                let word = size == 4 ? UInt64(load32(at)) : load64(at)
                if tag == RowTag.reference64, word >> 32 == 0 { return false }
                unsafe values[cell] = word
            }
        }
        return true
    }

    /// Whether a cell among those of other types is in its shortest form.
    private func isShortest(_ tag: UInt64, _ at: Int) -> Bool {
        switch tag {
        case RowTag.int8...RowTag.int64: RowTag.tag(of: integer(tag, at)) == tag
        case RowTag.reference64: load64(at) >> 32 != 0
        default: true
        }
    }

    @inline(__always)
    private func integer(_ tag: UInt64, _ at: Int) -> Int64 {
        switch tag {
        case RowTag.zero: return 0
        case RowTag.one: return 1
        case RowTag.int8:
            // A body of one byte, which lies inside the rows' bytes.
            return unsafe Int64(source.load(fromByteOffset: at, as: Int8.self))
        case RowTag.int16:
            // As above.
            let word = unsafe source.loadUnaligned(fromByteOffset: at, as: UInt16.self)
            return Int64(Int16(bitPattern: word.littleEndian))
        case RowTag.int32: return Int64(Int32(bitPattern: load32(at)))
        default: return Int64(bitPattern: load64(at))
        }
    }

    @inline(__always)
    private func load32(_ at: Int) -> UInt32 {
        // A body of 4 bytes, which lies inside the rows' bytes.
        unsafe source.loadUnaligned(fromByteOffset: at, as: UInt32.self).littleEndian
    }

    @inline(__always)
    func load64(_ at: Int) -> UInt64 {
        // A body of at least 8 bytes, which lies inside the rows' bytes.
        unsafe source.loadUnaligned(fromByteOffset: at, as: UInt64.self).littleEndian
    }

    /// A varint below 2^21 in its shortest form; nil: another one, or none before the end.
    @inline(__always)
    private static func varint(_ base: UnsafeRawPointer, _ at: inout Int, _ end: Int) -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while at < end, shift < 21 {
            // In front of the end.
            let byte = unsafe UInt64(base.load(fromByteOffset: at, as: UInt8.self))
            at &+= 1
            value |= (byte & 0x7F) &<< shift
            if byte < 0x80 { return byte == 0 && shift != 0 ? nil : value }
            shift &+= 7
        }
        return nil
    }

    /// Decides how each column is stored.
    func plan(_ texts: LeafTexts) {
        for column in 0..<columns {
            var plan = plans[column]
            // Rows that end in front of the column.
            if !plan.hasAbsent, column > 0 { plan.hasAbsent = lacksCells(column) }
            let place = column * rows
            switch plan.type {
            case .text, .data: texts.plan(self, column, &plan)
            case .any: planBodies(column, &plan)
            case .uuid:
                plan.width = 128
                plan.coding = plan.specials > 0 ? .sparse : .raw
            default: planNumbers(place, &plan)
            }
            plans[column] = plan
        }
    }

    private func lacksCells(_ column: Int) -> Bool {
        for cell in column * rows..<(column + 1) * rows {
            // One of the cells.
            if unsafe tags[cell] == UInt32(RowTag.absent) { return true }
        }
        return false
    }

    private func planBodies(_ column: Int, _ plan: inout LeafPlan) {
        var most = 0
        for cell in column * rows..<(column + 1) * rows where hasValue(cell) {
            // One of the cells.
            let (tag, value) = unsafe (tags[cell], values[cell])
            most = max(most, Int(value >> 32) + ByteWriter.varintSize(UInt64(tag)))
        }
        plan.coding = .body
        plan.width = LeafPlan.bits(UInt64(most + plan.specials))
    }
}
