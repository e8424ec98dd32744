// FENCE: filters over the codes of a leaf of layout 1: up to 64 rows at a time.
//
// Invariants
// - Says of a row that it passes only if the filter says so of the row once it is unpacked. What
//   codes do not tell (a body with a tag of its own, another type, damage) is left open.
// - Reads what `PackedLeaf` checked; places in the heap are compared with its end.

internal import VarveBase

extension PackedLeaf {
    /// The most rows of one answer.
    public static let answerRows = 64

    /// Which rows pass a filter; only those of `among` are looked at, others are answered anyhow.
    ///
    /// - Parameters:
    ///   - first: the row of the lowest bit.
    ///   - rows: number of rows, at most 64; the last one is below `count`.
    /// - Complexity: O(rows x columns that are asked); texts of rows of `among` are decoded.
    public func answer(
        _ condition: LeafCondition,
        from first: Int,
        rows: Int,
        among: UInt64
    ) -> LeafAnswer {
        precondition(unsafe first >= 0 && rows >= 0 && rows <= Self.answerRows)
        precondition(unsafe first + rows <= count, "rows of the leaf")
        switch condition {
        case .constant(let passes): return LeafAnswer(exact: passes ? among : 0)
        case .unknown: return LeafAnswer(0, mayPass: among)
        case .column(let column):
            return unsafe answer(column, LeafRowRange(first: first, count: rows), among)
        case .not(let inner):
            let answer = unsafe answer(inner, from: first, rows: rows, among: among)
            return LeafAnswer(among & ~answer.mayPass, mayPass: among & ~answer.passes)
        case .and(let all):
            var result = LeafAnswer(exact: among)
            for condition in all where result.mayPass != 0 {
                let answer = unsafe answer(
                    condition,
                    from: first,
                    rows: rows,
                    among: result.mayPass
                )
                result.passes &= answer.passes
                result.mayPass &= answer.mayPass
            }
            return result
        case .or(let all):
            var result = LeafAnswer(exact: 0)
            for condition in all where result.passes != among {
                let left = among & ~result.passes
                let answer = unsafe answer(condition, from: first, rows: rows, among: left)
                result.passes |= answer.passes & left
                result.mayPass |= answer.mayPass & left | answer.passes & left
            }
            return result
        }
    }

    private func answer(
        _ condition: ColumnCondition,
        _ rows: LeafRowRange,
        _ among: UInt64
    ) -> LeafAnswer {
        let column = Int(condition.column.rawValue)
        guard unsafe column < columnCount else {
            return LeafAnswer(exact: condition.passesAbsent ? among : 0)
        }
        let plan = unsafe self.plan(column)
        let special = condition.special(plan)
        guard let coding = LeafCoding(rawValue: UInt8(plan.coding)) else {
            return LeafAnswer(0, mayPass: among)
        }
        if case .any(let passes) = condition.values {
            if coding == .raw {
                return LeafAnswer(exact: passes != condition.isNegated ? among : 0)
            }
            let least = plan.specials &- (plan.hasCommon ? 1 : 0)
            let low = passes != condition.isNegated ? (least, UInt64.max &- least) : nil
            return LeafAnswer(exact: unsafe codes(plan, rows, low, special) & among)
        }
        let exact: UInt64?
        switch coding {
        case .packed, .decimal, .binary:
            exact = unsafe numbers(condition, plan, rows, special)
        case .raw: exact = unsafe rawWords(condition, plan, rows)
        case .dictionary, .text:
            guard case .texts(let test) = condition.values,
                plan.type == UInt64(LeafType.text.rawValue)
            else {
                exact = nil
                break
            }
            if coding == .dictionary {
                return unsafe entries(condition, test, plan, rows, special, among)
            }
            return unsafe texts(condition, test, column, plan, rows, special, among)
        case .sparse, .sparseDecimal, .sparseBinary:
            guard let range = condition.numbers(plan) else {
                exact = nil
                break
            }
            return unsafe sparse(condition, range, column, plan, rows, special, among)
        case .body: exact = nil
        }
        if let exact { return LeafAnswer(exact: exact & among) }
        // Nil and absent are told by their codes, values are not.
        if coding == .raw { return LeafAnswer(0, mayPass: among) }
        let specials = plan.specials &- (plan.hasCommon ? 1 : 0)
        let passes = unsafe codes(plan, rows, nil, special)
        let may = unsafe codes(plan, rows, (specials, UInt64.max &- specials), special)
        return LeafAnswer(passes & among, mayPass: may & among)
    }

    // MARK: Numbers

    /// Numbers whose codes are in the tuples; nil: another type.
    private func numbers(
        _ condition: ColumnCondition,
        _ plan: LeafPlanWord,
        _ rows: LeafRowRange,
        _ special: UInt64
    ) -> UInt64? {
        guard let range = condition.numbers(plan) else { return nil }
        let specials = plan.specials
        let highest = UInt64.max &>> UInt64(64 &- max(1, plan.width))
        if plan.width == 0 || highest < specials {
            // No code is left for a value, or all rows have code 0.
            if plan.width > 0 || specials > 0 { return unsafe codes(plan, rows, nil, special) }
        }
        let most = plan.width == 0 ? 0 : highest &- specials
        let offsets = unsafe offsets(range, plan, most)
        if !condition.isNegated {
            let span = offsets.map { ($0.low &+ specials, $0.high &- $0.low) }
            return unsafe codes(plan, rows, span, special)
        }
        let values = unsafe codes(plan, rows, (specials, UInt64.max &- specials), 0)
        let inside = offsets.map {
            unsafe codes(plan, rows, ($0.low &+ specials, $0.high &- $0.low), 0)
        }
        return unsafe codes(plan, rows, nil, special) | values & ~(inside ?? 0)
    }

    /// The offsets from the base, up to `most`, whose numbers are in a range; nil: none is.
    private func offsets(
        _ range: LeafNumberRange,
        _ plan: LeafPlanWord,
        _ most: UInt64
    ) -> (low: UInt64, high: UInt64)? {
        if range.low > range.high { return nil }
        let least = unsafe planBase(plan)
        if !range.areDoubles {
            if range.high < least { return nil }
            let low = range.low <= least ? 0 : UInt64(bitPattern: range.low &- least)
            let high = min(most, UInt64(bitPattern: range.high &- least))
            return low <= high ? (low, high) : nil
        }
        // The first offset whose number is not below the range, and the first one above it.
        let low = LeafNumberRange.first(in: plan, least, most, notBelow: range.low)
        let end =
            range.high == .max
            ? most &+ 1
            : LeafNumberRange.first(in: plan, least, most, notBelow: range.high &+ 1)
        return low < end ? (low, end &- 1) : nil
    }

    /// Numbers that stand in the tuples as they are; nil: another type.
    private func rawWords(
        _ condition: ColumnCondition,
        _ plan: LeafPlanWord,
        _ rows: LeafRowRange
    ) -> UInt64? {
        guard let range = condition.numbers(plan) else { return nil }
        var result: UInt64 = 0
        var bit = unsafe tuples &+ rows.first &* tupleBits &+ plan.bit
        for row in 0..<rows.count {
            // A whole byte of a tuple; 8 bytes of it.
            let word = unsafe Int64(bitPattern: Self.word(base, bit &>> 3))
            if range.contains(word, in: plan) != condition.isNegated { result |= 1 &<< UInt64(row) }
            unsafe bit &+= tupleBits
        }
        return result
    }

    /// Rows whose code is among so many from one on, or is a special one that passes.
    @inline(__always)
    private func codes(
        _ plan: LeafPlanWord,
        _ rows: LeafRowRange,
        _ range: (low: UInt64, length: UInt64)?,
        _ special: UInt64
    ) -> UInt64 {
        let width = plan.tupleWidth
        if width == 0 {
            let code0 = range.map { $0.low == 0 } ?? false
            return code0 || special & 1 != 0 ? rows.all : 0
        }
        if range == nil, special == 0 { return 0 }
        var result: UInt64 = 0
        var bit = unsafe tuples &+ rows.first &* tupleBits &+ plan.bit
        let (low, length) = range ?? (.max, 0)
        for row in 0..<rows.count {
            let code = unsafe bits(bit, width)
            // Special codes are below 3: a shift by more gives 0.
            let passes = (code &- low <= length ? 1 : 0) | special >> code & 1
            result |= passes &<< UInt64(row)
            unsafe bit &+= tupleBits
        }
        return result
    }
}
