// Leaves of pure columns, made. Read in ColumnReader.swift.
//
//   u16 columns with the commit, u16 0, u16 rows, u16 bases
//   plans of 8 bytes: key, commit, then the columns
//   bases of 8 bytes, then for each plan where its column begins (u32)
//   the columns: [for raw values and texts with specials: a code for each row], then codes of the
//   plan's width; raw values; or where each text ends and the texts

internal import SymbolTables

/// Each column for itself, with texts coded by symbols.
public final class ColumnLeaves: LeafLayout {
    /// What it is called in the tables.
    public let name: String
    private let rowsMax: Int
    let reader = TupleReader()
    private var encoders: [SymbolEncoder?] = []

    /// Leaves of at most so many rows.
    public init(_ name: String, rows: Int) {
        self.name = name
        rowsMax = rows
    }

    /// Learns the tables.
    public func prepare(_ data: Dataset) {
        guard let tables = try? ColumnTables(data) else { return }
        encoders = tables.encoders
        reader.tables = tables.tables
        reader.tableBytes = tables.bytes
    }

    /// Makes all leaves of a dataset.
    public func encode(_ data: Dataset) throws(LeafError) -> Leaves {
        var leaves = Leaves()
        for range in TupleLeaves.split(data, rowsMax) {
            leaves.append(try leaf(data, range), firstKey: data.keys[range.lowerBound])
        }
        leaves.tableBytes = reader.tableBytes
        leaves.finish()
        return leaves
    }

    private func leaf(_ data: Dataset, _ range: Range<Int>) throws(LeafError) -> [UInt8] {
        var columns = try LeafColumns(data, range)
        columns.code(data, encoders)
        columns.plan(reader.tables, mayBeSparse: false)
        let firstKey = data.keys[range.lowerBound]
        let gaps = range.map { data.keys[$0] - firstKey - UInt64($0 - range.lowerBound) }
        var front = ColumnPlan(.int)
        front.base = Int64(bitPattern: firstKey)
        front.width = ColumnPlan.bits(gaps.last ?? 0)
        var parts = [Self.packed(gaps, front.width)]
        for column in columns.types.indices { parts.append(Self.part(&columns, column)) }
        let plans = [front] + columns.plans
        var bases: [Int64] = []
        let words = plans.map { $0.encoded(&bases) }
        var bytes: [UInt8] = []
        for number in [columns.types.count, 0, columns.rows, bases.count] {
            TupleLeaves.append(UInt64(number), 2, &bytes)
        }
        for word in words + bases.map({ UInt64(bitPattern: $0) }) {
            TupleLeaves.append(word, 8, &bytes)
        }
        var start = bytes.count + 4 * parts.count
        for part in parts {
            TupleLeaves.append(UInt64(start), 4, &bytes)
            start += part.count
        }
        for part in parts { bytes += part }
        return bytes
    }

    private static func packed(_ codes: [UInt64], _ width: Int) -> [UInt8] {
        var writer = BitWriter(capacity: (codes.count * width + 7) / 8)
        for code in codes { writer.append(code, width) }
        writer.align()
        return Array(writer.bytes)
    }

    /// The bytes of a column; sets the width of a text's ends.
    private static func part(_ columns: inout LeafColumns, _ column: Int) -> [UInt8] {
        let plan = columns.plans[column]
        let places = columns.places(column)
        if plan.coding != .raw && plan.coding != .text {
            return packed(columns.codes(column), plan.width)
        }
        var bytes: [UInt8] = []
        if plan.specials > 0 {
            bytes = packed(places.map { columns.state($0, plan) }, plan.specials)
        }
        if plan.coding == .raw {
            for place in places {
                TupleLeaves.append(columns.values[place], 8, &bytes)
                if plan.type == .uuid { TupleLeaves.append(columns.seconds[place], 8, &bytes) }
            }
            return bytes
        }
        var ends: [UInt64] = []
        var texts: [UInt8] = []
        for place in places {
            if columns.states[place] == .value { texts += columns.text(place) }
            ends.append(UInt64(texts.count))
        }
        columns.plans[column].width = ColumnPlan.bits(UInt64(texts.count))
        return bytes + packed(ends, columns.plans[column].width) + texts
    }
}
