// FENCE: how the numbers of a column are stored best: how wide, scaled, and where.
//
// Invariants
// - Doubles become integers only where every one comes back with the same bits.
// - Values that are stored in place of others have the same cells.

extension LeafCells {
    /// Plans a column of numbers whose cells begin at a place.
    func planNumbers(_ first: Int, _ plan: inout LeafPlan) {
        switch plan.type {
        case .double, .date: planDoubles(first, &plan)
        default: planIntegers(first, &plan)
        }
        settle(first, &plan)
    }

    /// Puts integers in the place of doubles where the doubles come back.
    private func planDoubles(_ first: Int, _ plan: inout LeafPlan) {
        let decimal = decimals(first)
        // Integers come back by a power of two as well.
        let binary = decimal?.scale == 0 ? nil : binaries(first)
        var best: (scale: Int, integers: [Int64], isDecimal: Bool)?
        if let decimal { best = (decimal.scale, decimal.integers, true) }
        if let binary, best.map({ Self.range(binary.integers) < Self.range($0.integers) }) ?? true {
            best = (binary.scale, binary.integers, false)
        }
        guard let best else {
            plan.coding = .raw
            plan.width = 64
            return
        }
        var doubles: [UInt64] = []
        exchange(first, best.integers) { doubles.append($0) }
        planIntegers(first, &plan)
        if plan.coding == .raw {
            // Two integers too far apart: the doubles' own bytes.
            exchange(first, doubles.map { Int64(bitPattern: $0) }) { _ in }
            return
        }
        plan.coding = best.isDecimal ? .decimal : .binary
        plan.scale = best.scale
    }

    /// Puts numbers in the place of a column's values, which it hands out.
    private func exchange(_ first: Int, _ numbers: [Int64], _ body: (UInt64) -> Void) {
        var next = 0
        for cell in first..<first + rows where hasValue(cell) {
            // One of the cells.
            unsafe body(values[cell])
            unsafe values[cell] = UInt64(bitPattern: numbers[next])
            next += 1
        }
    }

    private static func range(_ integers: [Int64]) -> Int64 {
        var least = Int64.max
        var most = Int64.min
        for integer in integers {
            least = min(least, integer)
            most = max(most, integer)
        }
        // Below 2^53 each.
        return most &- least
    }

    /// The doubles as integers by a power of ten, or nil.
    private func decimals(_ first: Int) -> (scale: Int, integers: [Int64])? {
        var integers: [Int64] = []
        integers.reserveCapacity(rows)
        var scale = 0
        var cell = first
        while cell < first + rows {
            guard hasValue(cell) else {
                cell += 1
                continue
            }
            // One of the cells.
            let value = unsafe Double(bitPattern: values[cell])
            if let integer = Self.decimal(value, scale) {
                integers.append(integer)
                cell += 1
                continue
            }
            repeat {
                scale += 1
                if scale > ScaledDoubles.decimalMax { return nil }
            } while Self.decimal(value, scale) == nil
            // A greater scale may not do for what a smaller one did.
            integers.removeAll(keepingCapacity: true)
            cell = first
        }
        return (scale, integers)
    }

    @inline(__always)
    private static func decimal(_ value: Double, _ scale: Int) -> Int64? {
        let scaled = value * ScaledDoubles.powerOfTen(scale)
        guard abs(scaled) < ScaledDoubles.integerLimit else { return nil }
        let integer = Int64(scaled + (scaled < 0 ? -0.5 : 0.5))
        let bits = ScaledDoubles.bits(integer, scale, isDecimal: true)
        return bits == value.bitPattern ? integer : nil
    }

    /// The doubles as integers by a power of two, or nil.
    private func binaries(_ first: Int) -> (scale: Int, integers: [Int64])? {
        var scale = 0
        for cell in first..<first + rows where hasValue(cell) {
            // One of the cells.
            let bits = unsafe values[cell]
            if bits == 0 { continue }
            let exponent = Int(bits >> 52 & 0x7FF)
            // Not -0.0, no subnormal, infinity or NaN.
            if exponent == 0 || exponent == 0x7FF { return nil }
            let zeros = (bits | 1 << 52).trailingZeroBitCount
            scale = max(scale, 1075 - exponent - zeros)
            if scale > ScaledDoubles.binaryMax { return nil }
        }
        var integers: [Int64] = []
        integers.reserveCapacity(rows)
        let power = ScaledDoubles.powerOfTwo(scale)
        for cell in first..<first + rows where hasValue(cell) {
            // As above.
            let value = unsafe Double(bitPattern: values[cell])
            let scaled = value * power
            guard abs(scaled) < ScaledDoubles.integerLimit else { return nil }
            integers.append(Int64(scaled))
        }
        return (scale, integers)
    }

    private func planIntegers(_ first: Int, _ plan: inout LeafPlan) {
        var least = Int64.max
        var most = Int64.min
        for cell in first..<first + rows where hasValue(cell) {
            // One of the cells.
            let value = unsafe Int64(bitPattern: values[cell])
            least = min(least, value)
            most = max(most, value)
        }
        if least > most {
            plan.width = LeafPlan.bits(UInt64(max(0, plan.specials - 1)))
            return
        }
        plan.base = least
        let (top, overflow) = UInt64(bitPattern: most &- least)
            .addingReportingOverflow(UInt64(plan.specials))
        plan.width = LeafPlan.bits(top)
        if overflow || plan.width > LeafPlan.widthMax {
            plan.coding = .raw
            plan.width = 64
            plan.base = 0
        }
    }

    /// Whether the heap is the better place for the values, or for those that are not the least.
    private func settle(_ first: Int, _ plan: inout LeafPlan) {
        var there = 0
        var others = 0
        let base = UInt64(bitPattern: plan.base)
        for cell in first..<first + rows where hasValue(cell) {
            there += 1
            // One of the cells.
            if unsafe values[cell] != base { others += 1 }
        }
        if there == 0 {
            plan.type = .bool
            plan.coding = .packed
            plan.scale = 0
            plan.base = 0
            plan.width = LeafPlan.bits(UInt64(max(0, plan.specials - 1)))
            return
        }
        if plan.coding == .raw {
            // A float has no raw form, but never needs one.
            if plan.specials > 0 { plan.coding = .sparse }
            return
        }
        let dense = rows * plan.width
        let bits = 8 * plan.heapBytes
        let plain = rows * LeafPlan.bits(UInt64(plan.specials)) + there * bits
        let common = rows * LeafPlan.bits(UInt64(plan.specials + 1)) + others * bits
        if min(plain, common) >= dense { return }
        plan.hasCommon = common < plain
        switch plan.coding {
        case .decimal: plan.coding = .sparseDecimal
        case .binary: plan.coding = .sparseBinary
        default: plan.coding = .sparse
        }
    }
}
