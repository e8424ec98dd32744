// Leaves of fixed-width tuples, made. Read in TupleReader.swift.
//
//   u16 columns with the commit, u16 bits of a tuple, u16 rows, u16 bases
//   u32 slope of the heap, i32 base of the heap
//   plans of 8 bytes: key, heap, commit, then the columns
//   bases of 8 bytes
//   the tuples, bit after bit; in whole bytes where a leaf has raw columns
//   the heap: dictionaries, then for each row its sparse values and texts
//
// A key is the base, plus the number of the row times a slope (the scale of its plan), plus the
// tuple's number. A row's heap begins in the same way. So keys without gaps take no bits.

internal import SymbolTables

/// Fixed-width tuples, with raw texts or texts coded by symbols.
public final class TupleLeaves: LeafLayout {
    /// What it is called in the tables.
    public let name: String
    private let rowsMax: Int
    private let codesTexts: Bool
    private let hasDictionaries: Bool
    private let learnsFromFirstRows: Int
    let reader: TupleReader
    private var encoders: [SymbolEncoder?] = []

    /// A leaf ends behind so many raw bytes, however few rows they are.
    static let rawBytesMax = 32 * 1024

    /// Keys further apart are in different leaves, so that their codes fit.
    static let keyRangeMax: UInt64 = 1 << 48

    /// Leaves of at most so many rows.
    public init(
        _ name: String,
        rows: Int,
        codesTexts: Bool,
        hasDictionaries: Bool = false,
        learnsFromFirstRows: Int = .max
    ) {
        self.hasDictionaries = hasDictionaries
        self.learnsFromFirstRows = learnsFromFirstRows
        self.name = name
        rowsMax = rows
        self.codesTexts = codesTexts
        reader = TupleReader()
    }

    /// Learns the tables.
    public func prepare(_ data: Dataset) {
        guard codesTexts, let tables = try? ColumnTables(data, firstRows: learnsFromFirstRows)
        else {
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
                data.range(end).upperBound - start <= rawBytesMax,
                data.keys[end] - data.keys[first] < keyRangeMax
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
        columns.plan(reader.tables, mayBeSparse: true, hasDictionaries: hasDictionaries)
        // Whatever is not in its place in a tuple.
        let codes = columns.plans.indices.map {
            columns.plans[$0].coding == .raw ? [] : columns.codes($0)
        }
        let heap = Heap(columns, codes)
        let keys = KeyCodes(data.keys[range])
        var front = [ColumnPlan](repeating: ColumnPlan(.int), count: 2)
        front[0].base = Int64(bitPattern: keys.base)
        front[0].scale = keys.slope
        front[0].width = ColumnPlan.bits(keys.codes.max() ?? 0)
        front[1].width = ColumnPlan.bits(heap.codes.max() ?? 0)

        // Whole bytes first, so that they begin at whole bytes.
        var bit = 0
        let raw = columns.plans.indices.filter { columns.plans[$0].coding == .raw }
        let packed = columns.plans.indices.filter { columns.plans[$0].coding != .raw }
        for column in raw { Self.place(&columns.plans[column], &bit) }
        for index in 0..<2 { Self.place(&front[index], &bit) }
        for column in packed { Self.place(&columns.plans[column], &bit) }

        // With whole bytes in front, the next tuple begins with whole bytes, too.
        if !raw.isEmpty { bit = (bit + 7) / 8 * 8 }
        precondition(bit < 65536, "a row that is too wide for the laboratory")
        let fields = packed.map { (column: $0, bits: columns.plans[$0].tupleBits) }
        var writer = BitWriter(capacity: bit * columns.rows / 8 + 8)
        for row in 0..<columns.rows {
            for column in raw {
                let place = column * columns.rows + row
                writer.append(columns.values[place], 64)
                if columns.types[column] == .uuid { writer.append(columns.seconds[place], 64) }
            }
            writer.append(keys.codes[row], front[0].width)
            writer.append(heap.codes[row], front[1].width)
            for field in fields { writer.append(codes[field.column][row], field.bits) }
            if !raw.isEmpty { writer.align() }
        }
        writer.align()
        return Self.join(front + columns.plans, columns.rows, bit, writer.bytes, heap)
    }

    private static func place(_ plan: inout ColumnPlan, _ bit: inout Int) {
        plan.bit = bit
        bit += plan.tupleBits
    }

    private static func join(
        _ plans: [ColumnPlan],
        _ rows: Int,
        _ tupleBits: Int,
        _ tuples: ArraySlice<UInt8>,
        _ heap: Heap
    ) -> [UInt8] {
        var bases: [Int64] = []
        let words = plans.map { $0.encoded(&bases) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(8 * (2 + words.count + bases.count) + tuples.count + heap.bytes.count)
        for number in [plans.count - 2, tupleBits, rows, bases.count] {
            append(UInt64(number), 2, &bytes)
        }
        append(UInt64(heap.slope), 4, &bytes)
        append(UInt64(bitPattern: Int64(heap.base)), 4, &bytes)
        for word in words { append(word, 8, &bytes) }
        for base in bases { append(UInt64(bitPattern: base), 8, &bytes) }
        bytes += tuples
        bytes += heap.bytes
        return bytes
    }

    static func append(_ word: UInt64, _ count: Int, _ bytes: inout [UInt8]) {
        for index in 0..<count { bytes.append(UInt8(truncatingIfNeeded: word >> (8 * index))) }
    }
}

/// The keys of a leaf as distances from a straight line.
struct KeyCodes {
    let slope: Int
    let base: UInt64
    let codes: [UInt64]

    /// Ascending keys.
    init(_ keys: ArraySlice<UInt64>) {
        let first = keys[keys.startIndex]
        let last = keys[keys.endIndex - 1]
        let slope = keys.count == 1 ? 1 : min(255, max(1, (last - first) / UInt64(keys.count - 1)))
        let line = keys.enumerated().map { (Int64($1 - first), Int64(slope) * Int64($0)) }
        let least = line.map { $0 - $1 }.min() ?? 0
        self.slope = Int(slope)
        base = UInt64(bitPattern: Int64(bitPattern: first) + least)
        codes = line.map { UInt64($0 - $1 - least) }
    }
}
