// How each column of a leaf is stored best.

internal import SymbolTables

extension LeafColumns {
    /// Decides for each column how it is stored; sparse columns only where rows have a heap.
    mutating func plan(
        _ tables: [SymbolTable?],
        mayBeSparse: Bool,
        hasDictionaries: Bool = false
    ) {
        plans = types.indices.map { column in
            var plan = ColumnPlan(types[column])
            let places = places(column)
            for place in places {
                if states[place] == .null { plan.hasNil = true }
                if states[place] == .absent { plan.hasAbsent = true }
            }
            switch types[column] {
            case .text:
                planTexts(places, &plan)
                // The commit is column 0, so no table has the number 0.
                plan.base = tables[column - 1] == nil ? 0 : Int64(column)
                if hasDictionaries { takeDictionary(column, &plan) }
            case .uuid:
                plan.width = 128
                plan.coding = .raw
            case .double: planDoubles(places, &plan)
            case .bool, .int: planIntegers(places, &plan)
            }
            if types[column] != .text && mayBeSparse { settle(places, &plan) }
            return plan
        }
    }

    private func planTexts(_ places: Range<Int>, _ plan: inout ColumnPlan) {
        var most: UInt64 = 0
        var isThere = false
        for place in places where states[place] == .value {
            most = max(most, values[place] >> 32)
            isThere = true
        }
        plan.coding = .text
        plan.width = ColumnPlan.bits(
            isThere ? most + UInt64(plan.specials) : UInt64(plan.specials) - 1
        )
    }

    /// Keeps each text once where that is shorter.
    private mutating func takeDictionary(_ column: Int, _ plan: inout ColumnPlan) {
        guard let dictionary = TextDictionary(self, column) else { return }
        var bytes = 0
        for place in places(column) where states[place] == .value {
            bytes += Int(values[place] >> 32)
        }
        let width = ColumnPlan.bits(UInt64(dictionary.places.count - 1 + plan.specials))
        let size = rows * width + 8 * dictionary.byteCount
        if size >= rows * plan.width + 8 * bytes { return }
        plan.coding = .dictionary
        plan.width = width
        plan.scale = dictionary.places.count
        let encoded = dictionary.encoded(self, table: Int(plan.base))
        // From the beginning of the heap, in front of the rows' bytes.
        plan.base = Int64(dictionaries.count)
        dictionaries += encoded
        for (place, number) in zip(places(column), dictionary.numbers) {
            values[place] = UInt64(number)
        }
    }

    /// Puts integers in the place of doubles where the doubles come back.
    private mutating func planDoubles(_ places: Range<Int>, _ plan: inout ColumnPlan) {
        let there = places.filter { states[$0] == .value }
        let doubles = there.map { Double(bitPattern: values[$0]) }
        guard let best = DoubleScale.best(doubles) else {
            plan.coding = .raw
            plan.width = 64
            return
        }
        for (place, integer) in zip(there, best.integers) {
            values[place] = UInt64(bitPattern: integer)
        }
        planIntegers(places, &plan)
        switch best.scale {
        case _ where plan.coding == .raw:
            // Two integers too far apart: the doubles' own bytes.
            for (place, double) in zip(there, doubles) { values[place] = double.bitPattern }
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

    /// Whether the heap is the better place for the values, or for those that are not the least.
    private func settle(_ places: Range<Int>, _ plan: inout ColumnPlan) {
        var there = 0
        var others = 0
        for place in places where states[place] == .value {
            there += 1
            if values[place] != UInt64(bitPattern: plan.base) { others += 1 }
        }
        if there == 0 {
            plan.coding = .packed
            plan.width = ColumnPlan.bits(UInt64(max(0, plan.specials - 1)))
            return
        }
        if plan.coding == .raw {
            if plan.specials > 0 { plan.coding = .sparse }
            return
        }
        let dense = rows * plan.width
        let bytes = 8 * ((plan.width + 7) / 8)
        let plain = rows * ColumnPlan.bits(UInt64(plan.specials)) + there * bytes
        let common = rows * ColumnPlan.bits(UInt64(plan.specials + 1)) + others * bytes
        if min(plain, common) >= dense { return }
        plan.hasCommon = common < plain
        switch plan.coding {
        case .decimal: plan.coding = .sparseDecimal
        case .binary: plan.coding = .sparseBinary
        default: plan.coding = .sparse
        }
    }
}
