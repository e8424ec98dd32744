// Leaves of fixed-width tuples, made. Read in TupleReader.swift.
//
//   u16 columns, u16 bytes of a tuple, u16 rows, u16 bases
//   plans of 8 bytes: key, commit, heap, then the columns
//   bases of 8 bytes
//   the tuples, then the heap: for each row the bytes of its texts and sparse values
//
// A key is the first key, plus the number of the row, plus a gap that never falls.

internal import SymbolTables

/// Fixed-width tuples, with raw texts or texts coded by symbols.
public final class TupleLeaves: LeafLayout {
    /// What it is called in the tables.
    public let name: String
    private let rowsMax: Int
    private let codesTexts: Bool
    let reader: TupleReader
    private var encoders: [SymbolEncoder?] = []

    /// A leaf ends behind so many raw bytes, however few rows they are.
    static let rawBytesMax = 32 * 1024

    /// Leaves of at most so many rows.
    public init(_ name: String, rows: Int, codesTexts: Bool) {
        self.name = name
        rowsMax = rows
        self.codesTexts = codesTexts
        reader = TupleReader()
    }

    /// Learns the tables.
    public func prepare(_ data: Dataset) {
        guard codesTexts, let tables = try? ColumnTables(data) else {
            encoders = data.types.map { _ in nil }
            reader.tables = data.types.map { _ in nil }
            return
        }
        encoders = tables.encoders
        reader.tables = tables.tables
        reader.tableBytes = tables.bytes
    }

    /// Makes all leaves of a dataset.
    public func encode(_ data: Dataset) throws(LeafError) -> Leaves {
        var leaves = Leaves()
        for range in Self.split(data, rowsMax) {
            leaves.append(try leaf(data, range), firstKey: data.keys[range.lowerBound])
        }
        leaves.tableBytes = reader.tableBytes
        leaves.finish()
        return leaves
    }

    /// The rows of each leaf.
    static func split(_ data: Dataset, _ rowsMax: Int) -> [Range<Int>] {
        var result: [Range<Int>] = []
        var first = 0
        while first < data.count {
            var end = first + 1
            let start = data.range(first).lowerBound
            while end < data.count, end - first < rowsMax,
                data.range(end).upperBound - start <= rawBytesMax
            {
                end += 1
            }
            result.append(first..<end)
            first = end
        }
        return result
    }

    private func leaf(_ data: Dataset, _ range: Range<Int>) throws(LeafError) -> [UInt8] {
        var columns = try LeafColumns(data, range)
        columns.code(data, encoders)
        columns.plan(reader.tables, mayBeSparse: true)
        let heap = Heap(columns)
        let firstKey = data.keys[range.lowerBound]
        let gaps = range.map { data.keys[$0] - firstKey - UInt64($0 - range.lowerBound) }
        let commits = data.commits[range]
        var front = [ColumnPlan](repeating: ColumnPlan(.int), count: 3)
        front[0].base = Int64(firstKey)
        front[0].width = ColumnPlan.bits(gaps.last ?? 0)
        let leastCommit = commits.min() ?? 0
        front[1].base = Int64(leastCommit)
        front[1].width = ColumnPlan.bits((commits.max() ?? 0) - leastCommit)
        front[2].width = ColumnPlan.bits(UInt64(heap.starts.last ?? 0))

        // Whole bytes first, so that they begin at whole bytes.
        var bit = 0
        let raw = columns.plans.indices.filter { columns.plans[$0].coding == .raw }
        let packed = columns.plans.indices.filter { columns.plans[$0].coding != .raw }
        for column in raw { place(&columns.plans[column], &bit) }
        for index in 0..<3 { place(&front[index], &bit) }
        for column in packed { place(&columns.plans[column], &bit) }

        var writer = BitWriter()
        for row in 0..<columns.rows {
            for column in raw {
                let place = column * columns.rows + row
                writer.append(columns.values[place], 64)
                if columns.types[column] == .uuid { writer.append(columns.seconds[place], 64) }
            }
            writer.append(gaps[row], front[0].width)
            writer.append(commits[range.lowerBound + row] - leastCommit, front[1].width)
            writer.append(UInt64(heap.starts[row]), front[2].width)
            for column in packed {
                let plan = columns.plans[column]
                let place = column * columns.rows + row
                writer.append(
                    plan.coding.isSparse
                        ? columns.sparseState(place, plan) : columns.code(place, plan),
                    plan.tupleBits
                )
            }
            writer.align()
        }
        return Self.join(front + columns.plans, columns.rows, (bit + 7) / 8, writer.bytes, heap)
    }

    private func place(_ plan: inout ColumnPlan, _ bit: inout Int) {
        plan.bit = bit
        bit += plan.tupleBits
    }

    private static func join(
        _ plans: [ColumnPlan],
        _ rows: Int,
        _ tupleBytes: Int,
        _ tuples: [UInt8],
        _ heap: Heap
    ) -> [UInt8] {
        var bases: [Int64] = []
        let words = plans.map { $0.encoded(&bases) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(8 * (1 + words.count + bases.count) + tuples.count + heap.bytes.count)
        for number in [plans.count - 3, tupleBytes, rows, bases.count] {
            bytes.append(UInt8(number & 255))
            bytes.append(UInt8(number >> 8))
        }
        for word in words + bases.map({ UInt64(bitPattern: $0) }) { append(word, 8, &bytes) }
        return bytes + tuples + heap.bytes
    }

    static func append(_ word: UInt64, _ count: Int, _ bytes: inout [UInt8]) {
        for index in 0..<count { bytes.append(UInt8(truncatingIfNeeded: word >> (8 * index))) }
    }
}

/// Texts and sparse values, row by row.
struct Heap {
    private(set) var bytes: [UInt8] = []
    /// Where each row begins.
    private(set) var starts: [Int] = []

    init(_ columns: LeafColumns) {
        let there = columns.plans.indices.filter {
            columns.plans[$0].coding == .text || columns.plans[$0].coding.isSparse
        }
        bytes.reserveCapacity(columns.coded.count + 64)
        for row in 0..<columns.rows {
            starts.append(bytes.count)
            for column in there {
                let place = column * columns.rows + row
                guard columns.states[place] == .value else { continue }
                let plan = columns.plans[column]
                if plan.coding == .text {
                    let start = Int(columns.values[place] & 0xFFFF_FFFF)
                    bytes += columns.coded[start..<start + Int(columns.values[place] >> 32)]
                } else if plan.type == .uuid {
                    TupleLeaves.append(columns.values[place], 8, &bytes)
                    TupleLeaves.append(columns.seconds[place], 8, &bytes)
                } else {
                    let code = columns.values[place] &- UInt64(bitPattern: plan.base)
                    TupleLeaves.append(code, plan.heapBytes, &bytes)
                }
            }
        }
    }
}

extension LeafColumns {
    /// What the tuple says of a sparse column: the special, or that there is a value.
    func sparseState(_ place: Int, _ plan: ColumnPlan) -> UInt64 {
        switch states[place] {
        case .null: 0
        case .absent: plan.hasNil ? 1 : 0
        case .value: UInt64(plan.specials)
        }
    }
}
