// FENCE: the numbers of one column of a leaf of layout 1, up to 64 rows at a time.
//
// Invariants
// - Gives what the rows hold, in their order, or nothing at all: a column of another kind, one that
//   some rows do not store, and damage are left to whoever reads rows.
// - Reads what `PackedLeaf` checked; places in the heap are compared with its end.

internal import VarveBase

/// What the numbers of a column are.
public enum LeafNumberKind: Sendable {
    /// Signed integers.
    case int
    /// The bits of 64-bit floats.
    case double
    /// The bits of 64-bit floats that are dates.
    case date
}

extension PackedLeaf {
    /// Writes the numbers of some of at most 64 rows.
    ///
    /// - Parameters:
    ///   - column: number of the column.
    ///   - first: the row of the lowest bit.
    ///   - among: the rows that are asked for; all of them are rows of the leaf.
    ///   - target: room for 64 numbers.
    /// - Returns: how many numbers there are, and how many rows without a value; nil: only the rows
    ///   can tell.
    /// - Complexity: O(rows), and the columns in front of one whose numbers are in the heap.
    public func numbers(
        _ column: Int,
        from first: Int,
        among: UInt64,
        into target: UnsafeMutablePointer<Int64>
    ) -> (kind: LeafNumberKind, count: Int, nulls: Int)? {
        guard unsafe column < columnCount else { return nil }
        precondition(
            unsafe first >= 0 && first + (64 - among.leadingZeroBitCount) <= count,
            "rows of the leaf"
        )
        let plan = unsafe plan(column)
        let kind: LeafNumberKind
        switch plan.type {
        case UInt64(LeafType.int.rawValue): kind = .int
        case UInt64(LeafType.double.rawValue): kind = .double
        case UInt64(LeafType.date.rawValue): kind = .date
        default: return nil
        }
        if plan.hasAbsent { return nil }
        let counts: (count: Int, nulls: Int)?
        switch plan.coding {
        case UInt64(LeafCoding.raw.rawValue):
            counts = unsafe (raw(plan, first, among, target), 0)
        case UInt64(LeafCoding.packed.rawValue), UInt64(LeafCoding.decimal.rawValue),
            UInt64(LeafCoding.binary.rawValue):
            counts = unsafe inTuples(plan, first, among, target)
        default:
            if !plan.isSparse { return nil }
            counts = unsafe inHeap(column, plan, first, among, target)
        }
        return counts.map { (kind, $0.count, $0.nulls) }
    }

    private func raw(
        _ plan: LeafPlanWord,
        _ first: Int,
        _ among: UInt64,
        _ target: UnsafeMutablePointer<Int64>
    ) -> Int {
        var count = 0
        var left = among
        while left != 0 {
            let row = first &+ left.trailingZeroBitCount
            left &= left &- 1
            let bit = unsafe tuples &+ row &* tupleBits &+ plan.bit
            // A whole byte of a tuple; there is room for one number of each row.
            unsafe target[count] = Int64(bitPattern: Self.word(base, bit &>> 3))
            count &+= 1
        }
        return count
    }

    private func inTuples(
        _ plan: LeafPlanWord,
        _ first: Int,
        _ among: UInt64,
        _ target: UnsafeMutablePointer<Int64>
    ) -> (count: Int, nulls: Int) {
        let least = unsafe planBase(plan)
        let specials = plan.specials
        let width = plan.width
        var count = 0
        var nulls = 0
        var left = among
        while left != 0 {
            let row = first &+ left.trailingZeroBitCount
            left &= left &- 1
            let code = unsafe bits(tuples &+ row &* tupleBits &+ plan.bit, width)
            let isNull = code < specials
            // As above: a row without a value is written over by the next one.
            unsafe target[count] = least &+ Int64(bitPattern: code &- specials)
            count &+= isNull ? 0 : 1
            nulls &+= isNull ? 1 : 0
        }
        if plan.coding != UInt64(LeafCoding.packed.rawValue) {
            for place in 0..<count {
                // Written above.
                unsafe target[place] = plan.doubleBits(of: target[place])
            }
        }
        return (count, nulls)
    }

    private func inHeap(
        _ column: Int,
        _ plan: LeafPlanWord,
        _ first: Int,
        _ among: UInt64,
        _ target: UnsafeMutablePointer<Int64>
    ) -> (count: Int, nulls: Int)? {
        let least = unsafe planBase(plan)
        let specials = plan.specials
        let isBase = plan.hasCommon ? specials &- 1 : UInt64.max
        return unsafe withHeapPlans(before: column) { plans in
            var count = 0
            var nulls = 0
            var left = among
            while left != 0 {
                let row = first &+ left.trailingZeroBitCount
                left &= left &- 1
                let tuple = unsafe tuples &+ row &* tupleBits
                let state = unsafe bits(tuple &+ plan.bit, plan.tupleWidth)
                var number = least
                if state != isBase {
                    if state < specials {
                        nulls &+= 1
                        continue
                    }
                    let place = unsafe heapPlace(row, tuple, after: plans)
                    guard let code = unsafe sparseCode(plan, place) else { return nil }
                    number = least &+ Int64(bitPattern: code)
                }
                // As above.
                unsafe target[count] = plan.doubleBits(of: number)
                count &+= 1
            }
            return (count, nulls)
        }
    }
}

extension LeafPlanWord {
    /// The bits of the double that an integer stands for; of other columns the number itself.
    @inline(__always)
    func doubleBits(of number: Int64) -> Int64 {
        switch coding {
        case UInt64(LeafCoding.decimal.rawValue), UInt64(LeafCoding.sparseDecimal.rawValue):
            Int64(bitPattern: ScaledDoubles.bits(number, scale, isDecimal: true))
        case UInt64(LeafCoding.binary.rawValue), UInt64(LeafCoding.sparseBinary.rawValue):
            Int64(bitPattern: ScaledDoubles.bits(number, scale, isDecimal: false))
        default: number
        }
    }
}
