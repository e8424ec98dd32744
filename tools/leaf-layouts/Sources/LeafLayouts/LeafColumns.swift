// The rows of one leaf taken apart into columns: what tuples and pure columns are made from.

internal import SymbolTables

/// The columns of a leaf that is made. The first one is the commit, then those of the dataset.
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
    private(set) var seconds: [UInt64]
    private(set) var states: [State]
    /// The texts' bytes as they are stored.
    private(set) var coded: [UInt8] = []
    var plans: [ColumnPlan] = []
    /// The dictionaries of texts, one after the other.
    var dictionaries: [UInt8] = []

    /// Takes rows apart.
    init(_ data: Dataset, _ range: Range<Int>) throws(LeafError) {
        let count = range.count
        rows = count
        types = [.int] + data.types
        var values = [UInt64](repeating: 0, count: types.count * count)
        var seconds = types.contains(.uuid) ? values : []
        var states = [State](repeating: .absent, count: types.count * count)
        try ByteView.lend(data.rows) { (view) throws(LeafError) in
            for index in 0..<count {
                let row = range.lowerBound + index
                values[index] = data.commits[row]
                states[index] = .value
                let start = data.range(row).lowerBound
                try PackedRow.forEach(view, start) { (column, value) throws(LeafError) in
                    let place = (column &+ 1) &* count &+ index
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

    /// Codes the texts with the dataset's tables, or copies them.
    mutating func code(_ data: Dataset, _ encoders: [SymbolEncoder?]) {
        for column in types.indices where types[column] == .text {
            var texts: [Range<Int>] = []
            texts.reserveCapacity(rows)
            for place in places(column) where states[place] == .value {
                let at = Int(values[place] & 0xFFFF_FFFF)
                texts.append(at..<at + Int(values[place] >> 32))
            }
            var start = coded.count
            var ends: [Int] = []
            if let encoder = encoders[column - 1] {
                ends = encoder.encode(texts, of: data.rows, into: &coded)
            } else {
                for text in texts {
                    coded += data.rows[text]
                    ends.append(coded.count)
                }
            }
            var next = 0
            for place in places(column) where states[place] == .value {
                values[place] = UInt64(start) | UInt64(ends[next] - start) << 32
                start = ends[next]
                next += 1
            }
        }
    }

    /// Where the values of a column are.
    func places(_ column: Int) -> Range<Int> { column * rows..<(column + 1) * rows }

    /// The stored bytes of a text.
    func text(_ place: Int) -> ArraySlice<UInt8> {
        let start = Int(values[place] & 0xFFFF_FFFF)
        return coded[start..<start + Int(values[place] >> 32)]
    }

    /// What the tuples hold of a column whose plan is not raw, row by row.
    func codes(_ column: Int) -> [UInt64] {
        let plan = plans[column]
        let specials = UInt64(plan.specials)
        let absent: UInt64 = plan.hasNil ? 1 : 0
        let base = UInt64(bitPattern: plan.base)
        var codes: [UInt64] = []
        codes.reserveCapacity(rows)
        for place in places(column) {
            if states[place] != .value {
                codes.append(states[place] == .null ? 0 : absent)
                continue
            }
            let value = values[place]
            switch plan.coding {
            case .text: codes.append(value >> 32 &+ specials)
            case .dictionary: codes.append(value &+ specials)
            case .sparse, .sparseDecimal, .sparseBinary:
                codes.append(plan.hasCommon && value == base ? specials - 1 : specials)
            default: codes.append(value &- base &+ specials)
            }
        }
        return codes
    }

    /// Nil, absent, or that there is a value, of columns that keep this apart from the value.
    func state(_ place: Int, _ plan: ColumnPlan) -> UInt64 {
        switch states[place] {
        case .null: 0
        case .absent: plan.hasNil ? 1 : 0
        case .value: UInt64(plan.specials)
        }
    }
}
