// FENCE: reading leaves of tuples where they lie.
//
// Invariants
// - Every load is compared with the end of the leaf: damage is an error, never a trap.

internal import SymbolTables

/// Reads leaves of tuples.
@safe final class TupleReader {
    var tables: [SymbolTable?] = []
    var tableBytes = 0
    private var scratch: UnsafeMutableBufferPointer<UInt8>
    private static let textBytesMax = 1 << 17

    init() {
        unsafe scratch = .allocate(capacity: Self.textBytesMax)
        // All of it is in use from now on.
        unsafe scratch.initialize(repeating: 0)
    }

    deinit {
        // Allocated by `init`.
        unsafe scratch.deallocate()
    }

    /// The parts of a leaf.
    struct Front {
        let columns: Int
        let tupleBits: Int
        let rows: Int
        let bases: Int
        let tuples: Int
        let heap: Int
        let dictionaries: Int
        let heapSlope: Int
        static let plans = 16
        static let heapPlan = 24
        static let columnPlans = 32

        @inline(__always)
        init(_ leaf: ByteView) throws(LeafError) {
            let word = try leaf.word(0)
            let second = try leaf.word(8)
            columns = Int(word & 0xFFFF)
            tupleBits = Int(word &>> 16 & 0xFFFF)
            rows = Int(word &>> 32 & 0xFFFF)
            bases = Self.columnPlans &+ 8 &* columns
            tuples = bases &+ 8 &* Int(word &>> 48)
            heapSlope = Int(second & 0xFFFF_FFFF)
            dictionaries = tuples &+ (rows &* tupleBits &+ 7) &>> 3
            heap = dictionaries &+ Int(Int32(truncatingIfNeeded: second &>> 32))
        }
    }

    /// Finds the row of a key.
    @inline(__always)
    func find(_ leaf: ByteView, _ front: Front, _ key: UInt64) throws(LeafError) -> Int {
        let plan = PlanWord(try leaf.word(Front.plans))
        let first = UInt64(bitPattern: try plan.base(leaf, front.bases))
        let slope = plan.scale
        // The base may lie below 0, so what counts is the distance.
        let distance = Int(truncatingIfNeeded: key &- first)
        guard plan.width <= 56, slope > 0 else { throw .damage }
        guard distance >= 0, front.rows > 0 else { throw .missingKey }
        if plan.width == 0 {
            let row = slope == 1 ? distance : distance / slope
            guard row < front.rows, row &* slope == distance else { throw .missingKey }
            return row
        }
        let position = front.tuples &* 8 &+ plan.bit
        let stride = front.tupleBits
        // The code of a row is at least 0 and at most the mask.
        let mask = Int(truncatingIfNeeded: ~(UInt64.max &<< UInt64(plan.width)))
        var high = min(distance / slope, front.rows &- 1)
        var low = min(high, max(0, distance &- mask) / slope)
        while low < high {
            let middle = (low &+ high &+ 1) &>> 1
            let code = try leaf.bits(position &+ middle &* stride, plan.width)
            if middle &* slope &+ Int(truncatingIfNeeded: code) <= distance {
                low = middle
            } else {
                high = middle &- 1
            }
        }
        let code = try leaf.bits(position &+ low &* stride, plan.width)
        let found = low &* slope &+ Int(truncatingIfNeeded: code)
        guard found == distance else { throw .missingKey }
        return low
    }

    /// Where the heap of a row begins.
    @inline(__always)
    func heap(
        _ leaf: ByteView,
        _ front: Front,
        _ row: Int,
        _ tuple: Int
    ) throws(LeafError) -> Int {
        let plan = PlanWord(try leaf.word(Front.heapPlan))
        let code = try leaf.bits(tuple &+ plan.bit, plan.width)
        return front.heap &+ row &* front.heapSlope &+ Int(truncatingIfNeeded: code)
    }

    /// Gives all columns of a row to a sink.
    @inline(__always)
    func read<Sink: RowSink>(
        _ leaf: ByteView,
        _ front: Front,
        _ row: Int,
        _ sink: inout Sink
    ) throws(LeafError) {
        let tuple = front.tuples &* 8 &+ row &* front.tupleBits
        var heap = try heap(leaf, front, row, tuple)
        for index in 0..<front.columns {
            let plan = PlanWord(try leaf.word(Front.columnPlans &+ 8 &* index))
            // The first one is the commit.
            let column = index == 0 ? 2000 : index &- 1
            if plan.coding == UInt64(ColumnCoding.raw.rawValue) {
                let at = (tuple &+ plan.bit) &>> 3
                let word = try leaf.word(at)
                if plan.type == UInt64(ColumnType.uuid.rawValue) {
                    sink.add(column, high: word, low: try leaf.word(at &+ 8))
                } else if plan.type == UInt64(ColumnType.double.rawValue) {
                    sink.add(column, double: word)
                } else {
                    sink.add(column, int: Int64(bitPattern: word), isBool: false)
                }
                continue
            }
            let width = plan.isSparse ? plan.stateWidth : plan.width
            let code = try leaf.bits(tuple &+ plan.bit, width)
            let specials = plan.specials
            if code < specials {
                try special(leaf, front, plan, code, column, &sink)
                continue
            }
            let offset = Int64(bitPattern: code &- specials)
            switch plan.coding {
            case 0:
                let int = try plan.base(leaf, front.bases) &+ offset
                sink.add(column, int: int, isBool: plan.type == 0)
            case 1, 2:
                let integer = try plan.base(leaf, front.bases) &+ offset
                sink.add(column, double: try plan.double(integer, isDecimal: plan.coding == 1))
            case 7:
                let length = Int(truncatingIfNeeded: offset)
                try text(leaf, plan.tableNumber, heap, length, column, &sink)
                heap &+= length
            case 8: try entry(leaf, front, plan, Int(truncatingIfNeeded: offset), column, &sink)
            default:
                try sparse(leaf, front, plan, &heap, column, &sink)
            }
        }
    }

    /// Nil, absent, or the base.
    @inline(__always)
    private func special<Sink: RowSink>(
        _ leaf: ByteView,
        _ front: Front,
        _ plan: PlanWord,
        _ code: UInt64,
        _ column: Int,
        _ sink: inout Sink
    ) throws(LeafError) {
        if code == 0 && plan.hasNil { return sink.addNil(column) }
        if plan.hasCommon && code &+ 1 == plan.specials {
            let base = try plan.base(leaf, front.bases)
            if plan.coding == 4 { return sink.add(column, int: base, isBool: plan.type == 0) }
            sink.add(column, double: try plan.double(base, isDecimal: plan.coding == 5))
            return
        }
        sink.addAbsent(column)
    }

    @inline(__always)
    func text<Sink: RowSink>(
        _ leaf: ByteView,
        _ number: Int,
        _ at: Int,
        _ length: Int,
        _ column: Int,
        _ sink: inout Sink
    ) throws(LeafError) {
        let stored = try unsafe leaf.buffer(at, length)
        if number == 0 {
            // Inside the leaf.
            unsafe sink.add(column, text: stored)
            return
        }
        guard number <= tables.count, let table = tables[number &- 1] else { throw .damage }
        guard let count = unsafe table.decode(stored, into: scratch) else { throw .damage }
        // The decoder wrote `count` bytes.
        unsafe sink.add(
            column,
            text: UnsafeBufferPointer(rebasing: UnsafeBufferPointer(scratch)[..<count])
        )
    }

    /// A text of a dictionary.
    @inline(__always)
    private func entry<Sink: RowSink>(
        _ leaf: ByteView,
        _ front: Front,
        _ plan: PlanWord,
        _ number: Int,
        _ column: Int,
        _ sink: inout Sink
    ) throws(LeafError) {
        guard number < plan.scale else { throw .damage }
        let offset = Int(truncatingIfNeeded: try plan.base(leaf, front.bases))
        let start = front.dictionaries &+ offset
        // The end of the text before, or the number of the table, and the text's own end.
        let ends = try leaf.word(start &+ 2 &* number)
        let table = number == 0 ? Int(ends & 0xFFFF) : Int(try leaf.word(start) & 0xFFFF)
        let from = number == 0 ? 0 : Int(ends & 0xFFFF)
        let to = Int(ends &>> 16 & 0xFFFF)
        guard from <= to else { throw .damage }
        let at = start &+ 2 &+ 2 &* plan.scale &+ from
        try text(leaf, table, at, to &- from, column, &sink)
    }

    @inline(never)
    private func sparse<Sink: RowSink>(
        _ leaf: ByteView,
        _ front: Front,
        _ plan: PlanWord,
        _ heap: inout Int,
        _ column: Int,
        _ sink: inout Sink
    ) throws(LeafError) {
        let word = try leaf.word(heap)
        let bytes = (plan.width &+ 7) &>> 3
        heap &+= bytes
        if plan.type == UInt64(ColumnType.uuid.rawValue) {
            sink.add(column, high: word, low: try leaf.word(heap &- 8))
            return
        }
        guard bytes <= 8 else { throw .damage }
        let code = bytes == 8 ? word : word & ~(UInt64.max &<< UInt64(8 &* bytes))
        let integer = try plan.base(leaf, front.bases) &+ Int64(bitPattern: code)
        if plan.coding == 4 && plan.type == UInt64(ColumnType.double.rawValue) {
            sink.add(column, double: UInt64(bitPattern: integer))
        } else if plan.coding == 4 {
            sink.add(column, int: integer, isBool: plan.type == 0)
        } else {
            sink.add(column, double: try plan.double(integer, isDecimal: plan.coding == 5))
        }
    }
}

extension TupleLeaves {
    /// Reads the row of a key with all its columns.
    public func row(
        _ leaf: ByteView,
        firstKey: UInt64,
        _ key: UInt64,
        _ digest: inout Digest
    ) throws(LeafError) {
        let front = try TupleReader.Front(leaf)
        try reader.read(leaf, front, try reader.find(leaf, front, key), &digest)
    }

    /// Reads all rows with all their columns.
    public func scan(_ leaf: ByteView, _ digest: inout Digest) throws(LeafError) {
        let front = try TupleReader.Front(leaf)
        let keys = PlanWord(try leaf.word(TupleReader.Front.plans))
        let first = UInt64(bitPattern: try keys.base(leaf, front.bases))
        for row in 0..<front.rows {
            let position = front.tuples &* 8 &+ row &* front.tupleBits &+ keys.bit
            let code = try leaf.bits(position, keys.width)
            digest.add(2001, word: first &+ UInt64(row) &* UInt64(keys.scale) &+ code)
            try reader.read(leaf, front, row, &digest)
        }
    }

    /// Counts the rows whose integer column is above a value.
    public func count(_ leaf: ByteView, column: Int, above: Int64) throws(LeafError) -> Int {
        let front = try TupleReader.Front(leaf)
        let place = TupleReader.Front.columnPlans &+ 8 &* (column &+ 1)
        let plan = PlanWord(try leaf.word(place))
        guard plan.type <= 1 else { throw .damage }
        if plan.coding != UInt64(ColumnCoding.packed.rawValue) {
            var sum = 0
            for row in 0..<front.rows {
                let value = try reader.int(leaf, front, row, column &+ 1)
                sum += (value ?? .min) > above ? 1 : 0
            }
            return sum
        }
        let base = try plan.base(leaf, front.bases)
        guard let least = plan.least(above: above, base) else { return 0 }
        return try leaf.count(
            atLeast: least,
            position: front.tuples &* 8 &+ plan.bit,
            stride: front.tupleBits,
            width: plan.width,
            rows: front.rows
        )
    }
}

extension TupleReader {
    /// One integer of a row that is raw or sparse; nil when it has no value.
    func int(
        _ leaf: ByteView,
        _ front: Front,
        _ row: Int,
        _ index: Int
    ) throws(LeafError) -> Int64? {
        let tuple = front.tuples &* 8 &+ row &* front.tupleBits
        let plan = PlanWord(try leaf.word(Front.columnPlans &+ 8 &* index))
        if plan.coding == UInt64(ColumnCoding.raw.rawValue) {
            return Int64(bitPattern: try leaf.word((tuple &+ plan.bit) &>> 3))
        }
        guard plan.coding == UInt64(ColumnCoding.sparse.rawValue) else { throw .damage }
        let state = try leaf.bits(tuple &+ plan.bit, plan.stateWidth)
        let base = try plan.base(leaf, front.bases)
        if state < plan.specials {
            return plan.hasCommon && state &+ 1 == plan.specials ? base : nil
        }
        // What the columns in front of it have in the heap.
        var at = try heap(leaf, front, row, tuple)
        for other in 0..<index {
            let plan = PlanWord(try leaf.word(Front.columnPlans &+ 8 &* other))
            if plan.isSparse {
                let state = try leaf.bits(tuple &+ plan.bit, plan.stateWidth)
                if state >= plan.specials { at &+= (plan.width &+ 7) &>> 3 }
            } else if plan.coding == UInt64(ColumnCoding.text.rawValue) {
                let code = try leaf.bits(tuple &+ plan.bit, plan.width)
                if code >= plan.specials { at &+= Int(truncatingIfNeeded: code &- plan.specials) }
            }
        }
        let bytes = (plan.width &+ 7) &>> 3
        guard bytes <= 8 else { throw .damage }
        let word = try leaf.word(at)
        let code = bytes == 8 ? word : word & ~(UInt64.max &<< UInt64(8 &* bytes))
        return base &+ Int64(bitPattern: code)
    }
}

extension PlanWord {
    /// The least code of a value above a limit; nil when there can be none.
    func least(above: Int64, _ base: Int64) -> UInt64? {
        if above < base { return specials }
        let (code, overflow) = UInt64(bitPattern: above &- base)
            .addingReportingOverflow(specials &+ 1)
        return overflow ? nil : code
    }
}
