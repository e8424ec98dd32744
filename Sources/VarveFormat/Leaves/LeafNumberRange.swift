// Numbers that pass a filter, as a leaf of layout 1 has them, and some of its rows.
//
// Invariants
// - Integers are compared as they are, doubles by their ranks; see `ColumnCondition.rank`.

internal import VarveBase

/// At most 64 rows, one after another.
struct LeafRowRange {
    let first: Int
    let count: Int

    /// A bit for each of them.
    @inline(__always) var all: UInt64 {
        count == 64 ? .max : (1 &<< UInt64(count)) &- 1
    }
}

extension LeafAnswer {
    /// Adds what is known of one row; nil: nothing.
    @inline(__always)
    mutating func add(_ bit: UInt64, _ isPassing: Bool?) {
        if isPassing != false { mayPass |= bit }
        if isPassing == true { passes |= bit }
    }
}

/// Integers that pass, or doubles by their ranks.
struct LeafNumberRange {
    /// Above `high` where no number passes.
    let low: Int64
    let high: Int64
    let areDoubles: Bool

    init(_ range: ClosedRange<Int64>?, areDoubles: Bool) {
        low = range?.lowerBound ?? 1
        high = range?.upperBound ?? 0
        self.areDoubles = areDoubles
    }

    /// Whether a number of a column passes, as the leaf has it: an integer, a double's bits, or the
    /// integer that it is scaled from.
    @inline(__always)
    func contains(_ number: Int64, in plan: LeafPlanWord) -> Bool {
        let place = areDoubles ? Self.rank(plan, number) : number
        return place >= low && place <= high
    }

    /// The rank of a double by what the leaf has of it.
    @inline(__always)
    static func rank(_ plan: LeafPlanWord, _ number: Int64) -> Int64 {
        let bits = UInt64(bitPattern: plan.doubleBits(of: number))
        return ColumnCondition.rank(Double(bitPattern: bits))
    }

    /// The first offset up to `most` whose double has at least a rank; `most` + 1: there is none.
    ///
    /// Doubles ascend with their integers. - Complexity: O(bits of `most`).
    static func first(
        in plan: LeafPlanWord,
        _ least: Int64,
        _ most: UInt64,
        notBelow rank: Int64
    ) -> UInt64 {
        var low: UInt64 = 0
        var length = most &+ 1
        while length > 0 {
            let half = length &>> 1
            let middle = low &+ half
            if Self.rank(plan, least &+ Int64(bitPattern: middle)) < rank {
                low = middle &+ 1
                length &-= half &+ 1
            } else {
                length = half
            }
        }
        return low
    }
}

extension ColumnCondition {
    /// Bit n: rows of code n pass, as they have no value.
    @inline(__always)
    func special(_ plan: LeafPlanWord) -> UInt64 {
        var bits: UInt64 = 0
        var next: UInt64 = 0
        if plan.hasNil {
            bits |= passesNull ? 1 : 0
            next = 1
        }
        if plan.hasAbsent, passesAbsent { bits |= 1 &<< next }
        return bits
    }

    /// The numbers that pass; nil where the column holds something else.
    func numbers(_ plan: LeafPlanWord) -> LeafNumberRange? {
        guard let type = LeafType(rawValue: UInt8(plan.type)) else { return nil }
        switch (values, type) {
        case (.bool(let value), .bool):
            let number: Int64 = value ? 1 : 0
            return LeafNumberRange(number...number, areDoubles: false)
        case (.integers(let range), .int): return LeafNumberRange(range, areDoubles: false)
        case (.doubles(let range), .double), (.dates(let range), .date):
            return LeafNumberRange(range, areDoubles: true)
        case (.reference(let object), .reference):
            let number = Int64(bitPattern: object.rawValue)
            return LeafNumberRange(number...number, areDoubles: false)
        default: return nil
        }
    }
}
