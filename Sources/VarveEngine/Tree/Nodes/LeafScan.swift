// FENCE: a scan that reads some columns of packed leaves, and only rows that may pass a filter.
//
// Invariants
// - What it passes over is what the filter says no to. Of leaves that are not packed it passes over
//   nothing, and lends whole rows.
// - Rows are lent in memory of the scan, until the next one: nobody else has that memory.

public import VarveBase
public import VarveFormat

/// What a scan reads of rows.
public struct RowReading: Sendable {
    /// Columns that rows have which only may pass the filter; more where that is cheaper.
    public let tested: RowColumns
    /// Columns that rows have which are known to pass it; more where that is cheaper.
    public let wanted: RowColumns
    /// Rows that do not pass this may be left out.
    public let filter: LeafCondition?
    /// A column whose numbers are lent many at a time where a leaf can.
    public let numbers: ColumnID?

    /// - Parameters:
    ///   - columns: that whoever gets a row reads.
    ///   - filter: rows that do not pass it may be left out.
    ///   - tested: columns that whoever tests a row reads.
    ///   - numbers: a column whose numbers are lent many at a time where a leaf can.
    public init(
        _ columns: RowColumns,
        filter: LeafCondition? = nil,
        tested: RowColumns = .none,
        numbers: ColumnID? = nil
    ) {
        self.numbers = numbers
        wanted = columns
        self.filter = filter
        self.tested = filter == nil ? columns : columns.union(tested)
    }

    /// Whole rows, all of them.
    public static let whole = RowReading(.all)
}

/// Reads the rows of one packed leaf after another.
final class LeafScan {
    private let filter: LeafCondition?
    private let column: ColumnID?
    private var numbers = [Int64](repeating: 0, count: 64)
    private let tested: PackedRowReader
    private let passing: PackedRowReader

    init(_ reading: RowReading) {
        filter = reading.filter
        column = reading.numbers
        tested = PackedRowReader(reading.tested)
        passing = reading.tested == reading.wanted ? tested : PackedRowReader(reading.wanted)
    }

    /// Lends the rows from `first` up to `bound`, or down to it, without it. `body` hears whether a
    /// row is known to pass the filter; `many` gets the numbers of rows instead where it can.
    func visit(
        _ leaf: UnsafePointer<PackedLeaf>,
        from first: Int,
        to bound: Int,
        _ many: NumbersBody?,
        _ body: (ObjectID, CommitNumber, Span<UInt8>, Bool) -> Bool
    ) -> TreeNode.VisitEnd {
        unsafe tested.begin(leaf)
        if passing !== tested { unsafe passing.begin(leaf) }
        let isForward = first < bound
        var index = first
        while index != bound {
            let rows = min(unsafe PackedLeaf.answerRows, abs(bound - index))
            let start = isForward ? index : index - rows + 1
            let all = UInt64.max >> UInt64(64 - rows)
            var passes: UInt64 = 0
            var left = all
            if let filter {
                let answer = unsafe leaf.pointee.answer(
                    filter,
                    from: start,
                    rows: rows,
                    among: all
                )
                passes = answer.passes
                left = answer.mayPass
            }
            if let many, filter == nil || passes == left,
                unsafe lend(leaf, start, left, many)
            {
                left = 0
            }
            while left != 0 {
                let place = isForward ? left.trailingZeroBitCount : 63 - left.leadingZeroBitCount
                let bit: UInt64 = 1 << UInt64(place)
                left &= ~bit
                let isPassing = passes & bit != 0
                let reader = isPassing ? passing : tested
                guard let row = unsafe reader.row(start + place, of: leaf) else {
                    return .damaged(isKey: false)
                }
                let goesOn = unsafe body(
                    ObjectID(leaf.pointee.object(start + place)),
                    CommitNumber(leaf.pointee.version(start + place)),
                    row.typed.span,
                    isPassing
                )
                if !goesOn { return .enough(start + place) }
            }
            index += isForward ? rows : -rows
        }
        return .atBound
    }

    /// Lends the numbers of some rows; false: only the rows can tell them.
    private func lend(
        _ leaf: UnsafePointer<PackedLeaf>,
        _ first: Int,
        _ rows: UInt64,
        _ body: NumbersBody
    ) -> Bool {
        guard let column else { return false }
        if rows == 0 { return true }
        // Room for 64 numbers, while the closure runs.
        let found = unsafe numbers.withUnsafeMutableBufferPointer { room in
            unsafe room.baseAddress.flatMap { start in
                unsafe leaf.pointee.numbers(
                    Int(column.rawValue),
                    from: first,
                    among: rows,
                    into: start
                )
            }
        }
        guard let found else { return false }
        let values = numbers
        body(found.kind, values.span.extracting(0..<found.count), found.nulls)
        return true
    }
}

/// Gets the numbers of a column of some rows, in their order, and how many more rows have none.
public typealias NumbersBody = (LeafNumberKind, Span<Int64>, Int) -> Void
