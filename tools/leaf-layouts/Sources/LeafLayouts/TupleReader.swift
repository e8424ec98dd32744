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
        let tupleBytes: Int
        let rows: Int
        let bases: Int
        let tuples: Int
        let heap: Int
        static let plans = 8
        static let columnPlans = 8 + 3 * 8

        @inline(__always)
        init(_ leaf: ByteView) throws(LeafError) {
            let word = try leaf.word(0)
            columns = Int(word & 0xFFFF)
            tupleBytes = Int(word &>> 16 & 0xFFFF)
            rows = Int(word &>> 32 & 0xFFFF)
            bases = Self.columnPlans &+ 8 &* columns
            tuples = bases &+ 8 &* Int(word &>> 48)
            heap = tuples &+ rows &* tupleBytes
        }
    }

    /// Finds the row of a key.
    @inline(__always)
    func find(_ leaf: ByteView, _ front: Front, _ key: UInt64) throws(LeafError) -> Int {
        let plan = PlanWord(try leaf.word(Front.plans))
        let first = UInt64(bitPattern: try plan.base(leaf, front.bases))
        guard key >= first, front.rows > 0 else { throw .missingKey }
        let distance = Int(truncatingIfNeeded: key &- first)
        if plan.width == 0 {
            guard distance < front.rows else { throw .missingKey }
            return distance
        }
        guard plan.width <= 56, distance >= 0 else { throw .damage }
        let position = front.tuples &* 8 &+ plan.bit
        let stride = front.tupleBytes &* 8
        // Rows of a greater number have greater keys; a row is never behind its distance.
        var high = min(distance, front.rows &- 1)
        var low = max(0, distance &- Int(truncatingIfNeeded: ~(UInt64.max &<< UInt64(plan.width))))
        while low < high {
            let middle = (low &+ high &+ 1) &>> 1
            let gap = try leaf.bits(position &+ middle &* stride, plan.width)
            if middle &+ Int(truncatingIfNeeded: gap) <= distance {
                low = middle
            } else {
                high = middle &- 1
            }
        }
        guard low < front.rows else { throw .missingKey }
        let gap = try leaf.bits(position &+ low &* stride, plan.width)
        guard low &+ Int(truncatingIfNeeded: gap) == distance else { throw .missingKey }
        return low
    }

    /// A packed number of the front: a commit, or where a row's heap begins.
    @inline(__always)
    func number(
        _ leaf: ByteView,
        _ front: Front,
        _ index: Int,
        _ tuple: Int
    ) throws(LeafError) -> Int64 {
        let plan = PlanWord(try leaf.word(Front.plans &+ 8 &* index))
        let code = try leaf.bits(tuple &+ plan.bit, plan.width)
        return try plan.base(leaf, front.bases) &+ Int64(bitPattern: code)
    }

    /// Adds all columns of a row to a digest.
    @inline(__always)
    func read(
        _ leaf: ByteView,
        _ front: Front,
        _ row: Int,
        _ digest: inout Digest
    ) throws(LeafError) {
        let tuple = (front.tuples &+ row &* front.tupleBytes) &* 8
        digest.add(2000, int: try number(leaf, front, 1, tuple))
        var heap = front.heap &+ Int(truncatingIfNeeded: try number(leaf, front, 2, tuple))
        for column in 0..<front.columns {
            let plan = PlanWord(try leaf.word(Front.columnPlans &+ 8 &* column))
            if plan.coding == UInt64(ColumnCoding.raw.rawValue) {
                let at = (tuple &+ plan.bit) &>> 3
                let word = try leaf.word(at)
                if plan.type == UInt64(ColumnType.uuid.rawValue) {
                    digest.add(column, high: word, low: try leaf.word(at &+ 8))
                } else {
                    digest.add(column, word: word)
                }
                continue
            }
            let isSparse = plan.coding >= 4 && plan.coding <= 6
            let width = isSparse ? plan.stateWidth : plan.width
            let code = try leaf.bits(tuple &+ plan.bit, width)
            let specials = plan.specials
            if code < specials {
                if code == 0 && plan.hasNil {
                    digest.addNil(column)
                } else {
                    digest.addAbsent(column)
                }
                continue
            }
            switch plan.coding {
            case 0:
                let offset = Int64(bitPattern: code &- specials)
                digest.add(column, int: try plan.base(leaf, front.bases) &+ offset)
            case 1, 2:
                let offset = Int64(bitPattern: code &- specials)
                let integer = try plan.base(leaf, front.bases) &+ offset
                digest.add(column, word: try plan.double(integer, isDecimal: plan.coding == 1))
            case 7:
                let length = Int(truncatingIfNeeded: code &- specials)
                try text(leaf, plan, heap, length, column, &digest)
                heap &+= length
            default:
                try sparse(leaf, front, plan, &heap, column, &digest)
            }
        }
    }

    @inline(__always)
    func text(
        _ leaf: ByteView,
        _ plan: PlanWord,
        _ at: Int,
        _ length: Int,
        _ column: Int,
        _ digest: inout Digest
    ) throws(LeafError) {
        let stored = try unsafe leaf.buffer(at, length)
        let number = Int(truncatingIfNeeded: plan.word &>> 48)
        if number == 0 {
            // Inside the leaf.
            unsafe digest.add(column, text: stored)
            return
        }
        guard number <= tables.count, let table = tables[number &- 1] else { throw .damage }
        guard let count = unsafe table.decode(stored, into: scratch) else { throw .damage }
        // The decoder wrote `count` bytes.
        unsafe digest.add(
            column,
            text: UnsafeBufferPointer(rebasing: UnsafeBufferPointer(scratch)[..<count])
        )
    }

    @inline(never)
    private func sparse(
        _ leaf: ByteView,
        _ front: Front,
        _ plan: PlanWord,
        _ heap: inout Int,
        _ column: Int,
        _ digest: inout Digest
    ) throws(LeafError) {
        let word = try leaf.word(heap)
        let bytes = (plan.width &+ 7) &>> 3
        heap &+= bytes
        if plan.type == UInt64(ColumnType.uuid.rawValue) {
            digest.add(column, high: word, low: try leaf.word(heap &- 8))
            return
        }
        guard bytes <= 8 else { throw .damage }
        let code = bytes == 8 ? word : word & ~(UInt64.max &<< UInt64(8 &* bytes))
        let integer = try plan.base(leaf, front.bases) &+ Int64(bitPattern: code)
        if plan.coding == 4 {
            digest.add(column, int: integer)
        } else {
            digest.add(column, word: try plan.double(integer, isDecimal: plan.coding == 5))
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
            let position = (front.tuples &+ row &* front.tupleBytes) &* 8 &+ keys.bit
            let gap = try leaf.bits(position, keys.width)
            digest.add(2001, word: first &+ UInt64(row) &+ gap)
            try reader.read(leaf, front, row, &digest)
        }
    }

    /// Counts the rows whose integer column is above a value.
    public func count(_ leaf: ByteView, column: Int, above: Int64) throws(LeafError) -> Int {
        let front = try TupleReader.Front(leaf)
        let plan = PlanWord(try leaf.word(TupleReader.Front.columnPlans &+ 8 &* column))
        let position = front.tuples &* 8 &+ plan.bit
        let stride = 8 &* front.tupleBytes
        guard plan.coding == 0, plan.type <= 1 else { throw .damage }
        let base = try plan.base(leaf, front.bases)
        let specials = Int64(plan.specials)
        let (distance, overflow) = above.subtractingReportingOverflow(base)
        if overflow { return above < 0 ? front.rows : 0 }
        // Codes of values begin at the number of specials.
        let limit = distance < 0 ? specials - 1 : distance &+ specials
        if limit < 0 { return front.rows }
        return try leaf.count(
            above: UInt64(limit),
            position: position,
            stride: stride,
            width: plan.width,
            rows: front.rows
        )
    }
}
