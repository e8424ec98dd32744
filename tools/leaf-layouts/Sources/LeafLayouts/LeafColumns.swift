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
            let encoder = encoders[column - 1]
            for place in places(column) where states[place] == .value {
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

    /// Where the values of a column are.
    func places(_ column: Int) -> Range<Int> { column * rows..<(column + 1) * rows }

    /// The stored bytes of a text.
    func text(_ place: Int) -> ArraySlice<UInt8> {
        let start = Int(values[place] & 0xFFFF_FFFF)
        return coded[start..<start + Int(values[place] >> 32)]
    }

    /// What the tuple holds for a value whose plan is not raw.
    func code(_ place: Int, _ plan: ColumnPlan) -> UInt64 {
        switch states[place] {
        case .null: return 0
        case .absent: return plan.hasNil ? 1 : 0
        case .value: break
        }
        if plan.coding == .text { return values[place] >> 32 &+ UInt64(plan.specials) }
        if plan.coding == .dictionary { return values[place] &+ UInt64(plan.specials) }
        let offset = values[place] &- UInt64(bitPattern: plan.base)
        if plan.coding.isSparse {
            let isCommon = plan.hasCommon && offset == 0
            return UInt64(plan.specials) - (isCommon ? 1 : 0)
        }
        return offset &+ UInt64(plan.specials)
    }

    /// Nil, absent, or that there is a value, of columns that keep this apart from the value.
    func state(_ place: Int, _ plan: ColumnPlan) -> UInt64 {
        switch states[place] {
        case .null: 0
        case .absent: plan.hasNil ? 1 : 0
        case .value: UInt64(plan.specials)
        }
    }

    /// Whether a sparse value is in the heap.
    func isInHeap(_ place: Int, _ plan: ColumnPlan) -> Bool {
        states[place] == .value && code(place, plan) == UInt64(plan.specials)
    }
}
