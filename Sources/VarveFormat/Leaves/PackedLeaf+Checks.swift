// FENCE: what is checked of a leaf of layout 1 when it is loaded, and of all its rows.
//
// Invariants
// - After `check(_:tableCount:)` every code of every tuple lies inside the tuples, every far base
//   and every table is there, and no scale is beyond its limits.

extension PackedLeaf {
    /// What a leaf says of its rows, before anything is made room for.
    static func checkSizes(
        _ place: FormatPlace,
        _ count: Int,
        _ columns: Int,
        _ bytes: (raw: Int, rowMax: Int)
    ) throws(FormatError) {
        guard unsafe (columns + 1) * count <= cellsLimit else {
            throw unsafe error(
                place,
                "columns",
                "\(columns) of \(count) rows",
                "at most \(cellsLimit) cells, the versions among them"
            )
        }
        guard bytes.rowMax > 0, unsafe bytes.rowMax <= rowBytesLimit,
            bytes.raw <= count * (bytes.rowMax + 10), bytes.raw >= count * 2,
            unsafe bytes.raw <= rawBytesLimit
        else {
            throw unsafe error(
                place,
                "bytes of rows",
                "\(bytes.raw), \(bytes.rowMax)",
                "those of rows"
            )
        }
    }

    /// The base of a plan that was not checked; 0 where it is not there.
    @unsafe static func farOrNear(
        _ base: UnsafeRawPointer,
        _ plan: LeafPlanWord,
        _ bases: Int,
        _ tuples: Int
    ) -> Int64 {
        if !plan.isFar { return plan.nearBase }
        let at = bases + 8 * plan.last
        // Inside the far bases, which end inside the body.
        return at < tuples ? unsafe Int64(bitPattern: word(base, at)) : 0
    }

    /// What every row's count and tags take at least: those of the last column that no row lacks,
    /// and of the columns in front of it.
    @unsafe static func headLeast(_ base: UnsafeRawPointer, _ columns: Int) -> Int {
        var column = columns
        while column > 0 {
            // One of the plans.
            let plan = unsafe LeafPlanWord(
                word(base, frontLength + LeafPlan.length * (frontPlans + column - 1))
            )
            if !plan.hasAbsent { break }
            column -= 1
        }
        return ByteWriter.varintSize(UInt64(column)) + column
    }

    /// Checks all plans.
    func check(_ place: FormatPlace, tableCount: Int) throws(FormatError) {
        for index in unsafe 0..<Self.frontPlans + columnCount {
            // One of the plans.
            let plan = unsafe LeafPlanWord(
                Self.word(base, Self.frontLength + LeafPlan.length * index)
            )
            let isSound: Bool
            switch index {
            case 0: isSound = unsafe isLine(plan) && plan.scale > 0
            case 1:
                isSound =
                    unsafe isLine(plan) && plan.scale == 0 && plan.flags == 0
                    && plan.last == 0
            case 2:
                isSound =
                    unsafe plan.type == 1 && !plan.hasNil && !plan.hasAbsent
                    && isColumn(plan, tableCount)
            default: isSound = unsafe isColumn(plan, tableCount)
            }
            guard isSound else {
                throw unsafe Self.error(
                    place,
                    "plan \(index)",
                    String(plan.word, radix: 16),
                    "a plan of layout 1"
                )
            }
        }
    }

    /// Whether the plan of the keys or of the heap is sound.
    private func isLine(_ plan: LeafPlanWord) -> Bool {
        unsafe plan.type == 1 && plan.coding == 0 && plan.width <= LeafPlan.widthMax
            && plan.flags & ~LeafPlan.farFlag == 0 && hasPlace(plan)
    }

    /// Whether a plan's bits are in the tuples and its far base is there.
    private func hasPlace(_ plan: LeafPlanWord) -> Bool {
        if unsafe plan.bit + plan.tupleWidth > tupleBits { return false }
        return unsafe !plan.isFar || bases + 8 * plan.last < tuples >> 3
    }

    /// Whether a column's plan is sound.
    private func isColumn(_ plan: LeafPlanWord, _ tableCount: Int) -> Bool {
        guard let type = LeafType(rawValue: UInt8(plan.type)),
            let coding = LeafCoding(rawValue: UInt8(plan.coding)), unsafe hasPlace(plan),
            plan.flags & 0x78 == 0, !plan.hasCommon || coding.isSparse
        else { return false }
        let isDouble = type == .double || type == .date
        let isInteger = type == .bool || type == .int || type == .float || type == .reference
        switch coding {
        case .packed:
            // Columns without a value have no type of their own.
            return isInteger && plan.width <= LeafPlan.widthMax && plan.scale == 0
        case .decimal, .binary:
            return unsafe isDouble && plan.width <= LeafPlan.widthMax && Self.isScale(plan, coding)
        case .raw:
            guard plan.width == (type == .uuid ? 128 : 64), plan.flags == 0, plan.scale == 0,
                plan.last == 0
            else { return false }
            return unsafe (isDouble || type == .int || type == .reference || type == .uuid)
                && plan.bit & 7 == 0 && tupleBits & 7 == 0
        case .sparse:
            if plan.scale != 0 { return false }
            if type == .uuid {
                return plan.width == 128 && plan.last == 0 && !plan.hasCommon && !plan.isFar
            }
            return (isInteger || isDouble) && plan.width <= 64
        case .sparseDecimal, .sparseBinary:
            return unsafe isDouble && plan.width <= 64 && Self.isScale(plan, coding)
        case .text:
            return plan.width <= 32 && plan.scale == 0 && !plan.isFar
                && (type == .text && plan.last <= tableCount || type == .data && plan.last == 0)
        case .dictionary: return unsafe isDictionary(plan, type, tableCount)
        case .body:
            return type == .any && plan.width <= 32 && plan.scale == 0 && plan.last == 0
                && !plan.isFar
        }
    }

    private static func isScale(_ plan: LeafPlanWord, _ coding: LeafCoding) -> Bool {
        let isDecimal = coding == .decimal || coding == .sparseDecimal
        return plan.scale <= (isDecimal ? ScaledDoubles.decimalMax : ScaledDoubles.binaryMax)
    }

    /// Whether a dictionary lies in the heap, with texts that end in their order.
    private func isDictionary(_ plan: LeafPlanWord, _ type: LeafType, _ tableCount: Int) -> Bool {
        let offset = unsafe planBase(plan)
        guard type == .text || type == .data, plan.width <= 32, plan.scale > 0, offset >= 0,
            unsafe offset <= Int64(end - heap)
        else { return false }
        let start = unsafe heap + Int(offset)
        let texts = start + 2 + 2 * plan.scale
        if unsafe texts > end { return false }
        // In front of the texts; behind the body 8 bytes may be read.
        let table = unsafe Self.word(base, start) & 0xFFFF
        if table > (type == .text ? UInt64(tableCount) : 0) { return false }
        var last = 0
        for number in 1...plan.scale {
            // As above.
            let to = unsafe Int(Self.word(base, start + 2 * number) & 0xFFFF)
            if to < last { return false }
            last = to
        }
        return unsafe texts + last <= end
    }

    /// Checks that keys ascend.
    func checkKeys(_ place: FormatPlace) throws(FormatError) {
        if unsafe keyMask == 0 {
            // All on the line, unless it goes beyond the last number.
            let length = unsafe UInt64((count - 1) * keySlope)
            if unsafe !keyBase.addingReportingOverflow(length).overflow { return }
        }
        var last = unsafe object(0)
        for index in unsafe 1..<max(1, count) {
            let next = unsafe object(index)
            guard next > last else {
                throw unsafe Self.error(place, "key \(index)", "a lower one", "ascending keys")
            }
            last = next
        }
    }

    /// Unpacks every row: rows are canonical, and the sums of the front are exact.
    /// - Complexity: O(bytes of the rows).
    public func check(place: FormatPlace) throws(FormatError) {
        let room = unsafe UnsafeMutableRawBufferPointer.allocate(
            byteCount: rowBytesMax + 8,
            alignment: 8
        )
        // Allocated above.
        defer { unsafe room.deallocate() }
        guard let target = room.baseAddress else { return }
        var sum = 0
        var largest = 0
        for index in unsafe 0..<count {
            // The room is as `unpackRow` wants it.
            guard let length = unsafe unpackRow(index, into: target),
                let version = unsafe soundVersion(index)
            else {
                throw unsafe Self.error(place, "row \(index)", "damaged bytes", "a row")
            }
            let row = unsafe UnsafeRawBufferPointer(start: target, count: length)
                .assumingMemoryBound(to: UInt8.self).span
            let layout: RowLayout
            do throws(FormatError) { layout = try RowLayout(row) } catch {
                throw error.at(place.text)
            }
            guard unsafe Self.isCanonical(row, layout) else {
                throw unsafe Self.error(place, "row \(index)", "another form", "the shortest form")
            }
            sum += length + ByteWriter.varintSize(version)
            largest = max(largest, length)
        }
        guard unsafe sum == rawBytes, unsafe largest == rowBytesMax else {
            throw unsafe Self.error(
                place,
                "bytes of rows",
                unsafe "\(rawBytes), \(rowBytesMax)",
                "\(sum), \(largest)"
            )
        }
    }

    /// Whether numbers have their shortest form, and the last column is there.
    private static func isCanonical(_ row: Span<UInt8>, _ layout: RowLayout) -> Bool {
        var isCanonical = true
        var last = RowTag.null
        layout.forEachSlot(in: row) { _, slot in
            last = slot.tag
            switch slot.tag {
            case RowTag.int8:
                let value = Int64(Int8(bitPattern: ByteReader.load8(row, slot.offset)))
                if RowTag.tag(of: value) != slot.tag { isCanonical = false }
            case RowTag.int16:
                let value = Int64(Int16(bitPattern: ByteReader.load16(row, slot.offset)))
                if RowTag.tag(of: value) != slot.tag { isCanonical = false }
            case RowTag.int32:
                let value = Int64(Int32(bitPattern: ByteReader.load32(row, slot.offset)))
                if RowTag.tag(of: value) != slot.tag { isCanonical = false }
            case RowTag.int64:
                let value = Int64(bitPattern: ByteReader.load64(row, slot.offset))
                if RowTag.tag(of: value) != slot.tag { isCanonical = false }
            case RowTag.reference64:
                if ByteReader.load64(row, slot.offset) <= UInt64(UInt32.max) { isCanonical = false }
            default: break
            }
        }
        return isCanonical && last != RowTag.absent
    }
}
