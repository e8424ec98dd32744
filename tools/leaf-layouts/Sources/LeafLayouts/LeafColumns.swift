// The rows of one leaf taken apart into columns, and the plan for each: what tuples and pure
// columns are made from.

internal import SymbolTables

/// The columns of a leaf that is made.
struct LeafColumns {
    /// What stands for a value.
    enum State: UInt8 {
        case value, null, absent
    }

    let rows: Int
    let types: [ColumnType]
    /// Column by column. Numbers: the value; texts: where they lie (low half) and their length.
    var values: [UInt64]
    /// The other half of UUIDs.
    var seconds: [UInt64]
    var states: [State]
    /// What texts lie in: the dataset's rows, or coded bytes.
    var coded: [UInt8] = []
    var plans: [ColumnPlan] = []

    /// Takes rows apart.
    init(_ data: Dataset, _ range: Range<Int>) throws(LeafError) {
        let count = range.count
        rows = count
        types = data.types
        values = [UInt64](repeating: 0, count: data.types.count * count)
        seconds = data.types.contains(.uuid) ? values : []
        states = [State](repeating: .absent, count: data.types.count * count)
        var values = values
        var seconds = seconds
        var states = states
        try ByteView.lend(data.rows) { (view) throws(LeafError) in
            for row in range {
                let start = data.range(row).lowerBound
                try PackedRow.forEach(view, start) { (column, value) throws(LeafError) in
                    let place = column * count + row - range.lowerBound
                    states[place] = .value
                    switch value {
                    case .absent: states[place] = .absent
                    case .null: states[place] = .null
                    case .int(let int): values[place] = UInt64(bitPattern: int)
                    case .double(let bits): values[place] = bits
                    case .uuid(let high, let low):
                        values[place] = high
                        seconds[place] = low
                    case .text(let at, let length):
                        values[place] = UInt64(at) | UInt64(length) << 32
                    }
                }
            }
        }
        self.values = values
        self.seconds = seconds
        self.states = states
    }

    /// Codes the texts with their tables, or copies them.
    mutating func code(_ data: Dataset, _ encoders: [SymbolEncoder?]) {
        for column in types.indices where types[column] == .text {
            let encoder = encoders[column]
            for place in column * rows..<(column + 1) * rows where states[place] == .value {
                let at = Int(values[place] & 0xFFFF_FFFF)
                let length = Int(values[place] >> 32)
                let start = coded.count
                if let encoder {
                    encoder.encode(data.rows.span.extracting(at..<at + length), into: &coded)
                } else {
                    coded += data.rows[at..<at + length]
                }
                values[place] = UInt64(start) | UInt64(coded.count - start) << 32
            }
        }
    }

    /// Decides for each column how it is stored; sparse columns only where there is a heap of rows.
    mutating func plan(_ tables: [SymbolTable?], mayBeSparse: Bool) {
        plans = types.indices.map { column in
            var plan = ColumnPlan(types[column])
            let places = column * rows..<(column + 1) * rows
            plan.hasNil = places.contains { states[$0] == .null }
            plan.hasAbsent = places.contains { states[$0] == .absent }
            switch types[column] {
            case .text:
                let most = places.map { states[$0] == .value ? values[$0] >> 32 : 0 }.max() ?? 0
                plan.coding = .text
                plan.width = ColumnPlan.bits(most + UInt64(plan.specials))
                plan.base = tables[column] == nil ? 0 : Int64(column) + 1
                if places.allSatisfy({ states[$0] != .value }) {
                    plan.width = ColumnPlan.bits(UInt64(max(0, plan.specials - 1)))
                }
            case .uuid:
                plan.width = 128
                plan.coding = .raw
            case .double: planDoubles(places, &plan)
            case .bool, .int: planIntegers(places, &plan)
            }
            if types[column] != .text { settle(places, mayBeSparse, &plan) }
            return plan
        }
    }

    private mutating func planDoubles(_ places: Range<Int>, _ plan: inout ColumnPlan) {
        let there = places.filter { states[$0] == .value }
        guard let best = DoubleScale.best(there.map { Double(bitPattern: values[$0]) }) else {
            plan.coding = .raw
            plan.width = 64
            return
        }
        for (place, integer) in zip(there, best.integers) {
            values[place] = UInt64(bitPattern: integer)
        }
        planIntegers(places, &plan)
        if plan.coding == .raw {
            // 53 bits and a sign: integers of doubles always fit, but for two far apart.
            for (place, integer) in zip(there, best.integers) {
                values[place] = best.scale.value(integer).bitPattern
            }
            return
        }
        switch best.scale {
        case .decimal(let scale):
            plan.coding = .decimal
            plan.scale = scale
        case .binary(let scale):
            plan.coding = .binary
            plan.scale = scale
        }
    }

    private func planIntegers(_ places: Range<Int>, _ plan: inout ColumnPlan) {
        var least = Int64.max
        var most = Int64.min
        for place in places where states[place] == .value {
            least = min(least, Int64(bitPattern: values[place]))
            most = max(most, Int64(bitPattern: values[place]))
        }
        if least > most {
            plan.width = ColumnPlan.bits(UInt64(max(0, plan.specials - 1)))
            return
        }
        plan.base = least
        let (top, overflow) = UInt64(bitPattern: most &- least)
            .addingReportingOverflow(UInt64(plan.specials))
        plan.width = ColumnPlan.bits(top)
        if overflow || plan.width > 56 {
            plan.coding = .raw
            plan.width = 64
            plan.base = 0
        }
    }

    /// Whether the heap is the better place.
    private func settle(_ places: Range<Int>, _ mayBeSparse: Bool, _ plan: inout ColumnPlan) {
        if plan.specials == 0 || !mayBeSparse { return }
        let there = places.count { states[$0] == .value }
        if there == 0 {
            plan.coding = .packed
            plan.width = ColumnPlan.bits(UInt64(plan.specials - 1))
            return
        }
        let dense = rows * plan.width
        let sparse = rows * plan.specials + there * 8 * ((plan.width + 7) / 8)
        switch plan.coding {
        case .raw: plan.coding = .sparse
        case .packed where sparse < dense: plan.coding = .sparse
        case .decimal where sparse < dense: plan.coding = .sparseDecimal
        case .binary where sparse < dense: plan.coding = .sparseBinary
        default: break
        }
    }

    /// The code of a value, of which `plan` says how it is stored.
    @inline(__always)
    func code(_ place: Int, _ plan: ColumnPlan) -> UInt64 {
        switch states[place] {
        case .null: return 0
        case .absent: return plan.hasNil ? 1 : 0
        case .value:
            if plan.coding == .text { return values[place] >> 32 &+ UInt64(plan.specials) }
            if plan.coding == .raw { return values[place] }
            return values[place] &- UInt64(bitPattern: plan.base) &+ UInt64(plan.specials)
        }
    }
}
