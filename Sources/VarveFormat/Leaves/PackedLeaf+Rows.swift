// FENCE: rows of a leaf of layout 1 as packed rows (Format.md, "Rows"), which layers above read.
//
// Invariants
// - A row comes back byte for byte.
// - Nothing is written behind `rowBytesMax` and 8 bytes more, whatever the leaf says: each body is
//   compared with what is left before it is written.
// - Tags are gathered apart, at most 3 bytes each, as bodies are bounded; then bodies are moved
//   where the tags took more than the least that they can take.

extension PackedLeaf {
    /// Columns whose tags fit on the stack.
    private static let columnsOnStack = 320
    private static let tagBytesMax = 3
    private static let stackBytes = 1024

    /// Writes the packed row at `target` and gives its length; nil where the bytes are damaged.
    /// The caller provides `rowBytesMax` bytes and 8 more. The row must be below `count`.
    /// - Complexity: O(columns + bytes of the row); no allocation up to 320 columns.
    @inline(__always)
    public func unpackRow(_ index: Int, into target: UnsafeMutableRawPointer) -> Int? {
        if unsafe columnCount <= Self.columnsOnStack {
            return unsafe unpackNarrow(index, target)
        }
        return unsafe unpackWide(index, target)
    }

    @inline(never)
    @usableFromInline func unpackNarrow(
        _ index: Int,
        _ target: UnsafeMutableRawPointer
    ) -> Int? {
        // Three bytes for each tag; the memory lives during the call.
        unsafe withUnsafeTemporaryAllocation(byteCount: Self.stackBytes, alignment: 8) { tags in
            guard let tags = tags.baseAddress else { return nil }
            return unsafe unpack(index, LeafRowWriter(target, tags, headLeast, rowBytesMax))
        }
    }

    @inline(never)
    @usableFromInline func unpackWide(_ index: Int, _ target: UnsafeMutableRawPointer) -> Int? {
        let bytes = unsafe Self.tagBytesMax * columnCount + 8
        // As above.
        return unsafe withUnsafeTemporaryAllocation(byteCount: bytes, alignment: 8) { tags in
            guard let tags = tags.baseAddress else { return nil }
            return unsafe unpack(index, LeafRowWriter(target, tags, headLeast, rowBytesMax))
        }
    }

    @inline(__always)
    private func unpack(_ index: Int, _ empty: LeafRowWriter) -> Int? {
        var writer = empty
        let tuple = unsafe tuples &+ index &* tupleBits
        var at = unsafe heapStart(index, tuple)
        unsafe at &+= versionBytes(tuple)
        var place = unsafe Self.frontLength &+ LeafPlan.length &* Self.frontPlans
        for _ in unsafe 0..<columnCount {
            // One of the plans, which were checked.
            let plan = unsafe LeafPlanWord(Self.word(base, place))
            place &+= LeafPlan.length
            guard unsafe cell(plan, tuple, &at, &writer) else { return nil }
        }
        return writer.finish()
    }

    /// One column of a row, whose bytes in the heap begin at `at`; false where they are damaged.
    @inline(__always)
    func cell(
        _ plan: LeafPlanWord,
        _ tuple: Int,
        _ at: inout Int,
        _ writer: inout LeafRowWriter
    ) -> Bool {
        if plan.coding == UInt64(LeafCoding.raw.rawValue) {
            return unsafe raw(plan, tuple, &writer)
        }
        let code = unsafe bits(tuple &+ plan.bit, plan.tupleWidth)
        let specials = plan.specials
        if code < specials { return unsafe special(plan, code, &writer) }
        return unsafe value(plan, code &- specials, &at, &writer)
    }

    /// Bytes of the version in the heap: it lies in front of all others.
    @inline(__always)
    func versionBytes(_ tuple: Int) -> Int {
        // The third plan.
        let plan = unsafe LeafPlanWord(Self.word(base, Self.frontLength &+ 16))
        if plan.isSparse, unsafe bits(tuple &+ plan.bit, plan.stateWidth) >= plan.specials {
            return (plan.width &+ 7) &>> 3
        }
        return 0
    }

    @inline(__always)
    private func raw(_ plan: LeafPlanWord, _ tuple: Int, _ writer: inout LeafRowWriter) -> Bool {
        let at = (tuple &+ plan.bit) &>> 3
        // 8 or 16 bytes of a tuple.
        let word = unsafe Self.word(base, at)
        if plan.type == UInt64(LeafType.uuid.rawValue) {
            return unsafe writer.uuid(word, Self.word(base, at &+ 8))
        }
        return writer.number(plan.type, Int64(bitPattern: word))
    }

    /// Nil, absent, or the base.
    @inline(__always)
    private func special(
        _ plan: LeafPlanWord,
        _ code: UInt64,
        _ writer: inout LeafRowWriter
    ) -> Bool {
        if code == 0, plan.hasNil {
            writer.tag(RowTag.null)
        } else if plan.hasCommon, code &+ 1 == plan.specials {
            var copy = writer
            defer { writer = copy }
            return unsafe sparse(plan, planBase(plan), &copy)
        } else {
            writer.tag(RowTag.absent)
        }
        return true
    }

    /// A number of a sparse column.
    @inline(never)
    private func sparse(
        _ plan: LeafPlanWord,
        _ integer: Int64,
        _ writer: inout LeafRowWriter
    ) -> Bool {
        if plan.coding == UInt64(LeafCoding.sparse.rawValue) {
            return writer.number(plan.type, integer)
        }
        let isDecimal = plan.coding == UInt64(LeafCoding.sparseDecimal.rawValue)
        let bits = ScaledDoubles.bits(integer, plan.scale, isDecimal: isDecimal)
        return writer.number(plan.type, Int64(bitPattern: bits))
    }

    /// A value by its code without the specials.
    @inline(__always)
    private func value(
        _ plan: LeafPlanWord,
        _ offset: UInt64,
        _ at: inout Int,
        _ writer: inout LeafRowWriter
    ) -> Bool {
        switch plan.coding {
        case UInt64(LeafCoding.packed.rawValue):
            let integer = unsafe planBase(plan) &+ Int64(bitPattern: offset)
            return writer.number(plan.type, integer)
        case UInt64(LeafCoding.text.rawValue):
            let length = Int(truncatingIfNeeded: offset)
            defer { at &+= length }
            return unsafe text(plan.type, plan.last, at, length, &writer)
        case UInt64(LeafCoding.dictionary.rawValue):
            return unsafe entry(plan, Int(truncatingIfNeeded: offset), &writer)
        case UInt64(LeafCoding.decimal.rawValue), UInt64(LeafCoding.binary.rawValue):
            let integer = unsafe planBase(plan) &+ Int64(bitPattern: offset)
            let isDecimal = plan.coding == UInt64(LeafCoding.decimal.rawValue)
            let bits = ScaledDoubles.bits(integer, plan.scale, isDecimal: isDecimal)
            return writer.number(plan.type, Int64(bitPattern: bits))
        case UInt64(LeafCoding.body.rawValue):
            let length = Int(truncatingIfNeeded: offset)
            defer { at &+= length }
            // A copy, so that the writer itself has no address and stays in registers.
            var copy = writer
            defer { writer = copy }
            return unsafe body(at, length, &copy)
        default:
            let start = at
            at &+= (plan.width &+ 7) &>> 3
            var copy = writer
            defer { writer = copy }
            return unsafe sparseValue(plan, start, &copy)
        }
    }

    /// A text or data of the heap.
    @inline(__always)
    private func text(
        _ type: UInt64,
        _ table: Int,
        _ at: Int,
        _ length: Int,
        _ writer: inout LeafRowWriter
    ) -> Bool {
        guard unsafe at >= heap, unsafe at <= end &- length else { return false }
        // Inside the heap; the table is one of those that were counted.
        if table == 0 { return unsafe writer.bytes(type, base + at, length) }
        guard let tables = unsafe tables else { return false }
        return unsafe writer.coded(
            tables + (table &- 1) &* SymbolMemory.tableBytes,
            base + at,
            length
        )
    }

    /// A text of a dictionary.
    @inline(__always)
    private func entry(
        _ plan: LeafPlanWord,
        _ number: Int,
        _ writer: inout LeafRowWriter
    ) -> Bool {
        if number >= plan.scale { return false }
        let (at, length) = unsafe entry(plan, number)
        return unsafe text(plan.type, dictionaryTable(plan), at, length, &writer)
    }

    /// A tag and a body of the heap.
    @inline(never)
    private func body(_ at: Int, _ length: Int, _ writer: inout LeafRowWriter) -> Bool {
        guard unsafe at >= heap, length > 0, unsafe at <= end &- length else { return false }
        var tag: UInt64 = 0
        var read = 0
        while true {
            if unsafe read == min(length, Self.tagBytesMax) { return false }
            // Inside the heap.
            let byte = unsafe UInt64(base.load(fromByteOffset: at &+ read, as: UInt8.self))
            tag |= (byte & 0x7F) &<< UInt64(7 &* read)
            read &+= 1
            if byte < 0x80 {
                // The shortest form ends in no zero.
                if byte == 0, read > 1 { return false }
                break
            }
        }
        // Nothing and no value have codes of their own.
        guard tag > RowTag.null, RowTag.bodySize(tag) == length &- read else { return false }
        // Inside the heap.
        return unsafe writer.body(tag, base + at + read, length &- read)
    }

    @inline(never)
    private func sparseValue(
        _ plan: LeafPlanWord,
        _ start: Int,
        _ writer: inout LeafRowWriter
    ) -> Bool {
        if plan.type == UInt64(LeafType.uuid.rawValue) {
            guard unsafe start >= heap, unsafe start <= end &- 16 else { return false }
            // 16 bytes of the heap.
            return unsafe writer.uuid(Self.word(base, start), Self.word(base, start &+ 8))
        }
        guard let code = unsafe sparseCode(plan, start) else { return false }
        return unsafe sparse(plan, planBase(plan) &+ Int64(bitPattern: code), &writer)
    }
}
