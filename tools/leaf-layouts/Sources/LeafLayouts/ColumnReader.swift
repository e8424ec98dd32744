// Reading leaves of pure columns where they lie.

/// The parts of a leaf.
private struct Front {
    let columns: Int
    let rows: Int
    let bases: Int
    let starts: Int
    static let plans = 8
    static let columnPlans = 8 + 8

    init(_ leaf: ByteView) throws(LeafError) {
        let word = try leaf.word(0)
        columns = Int(word & 0xFFFF)
        rows = Int(word &>> 32 & 0xFFFF)
        bases = Self.columnPlans &+ 8 &* columns
        starts = bases &+ 8 &* Int(word &>> 48)
    }

    /// A plan and where its column begins.
    @inline(__always)
    func plan(_ leaf: ByteView, _ index: Int) throws(LeafError) -> (PlanWord, Int) {
        let start = try leaf.word(starts &+ 4 &* index) & 0xFFFF_FFFF
        return (PlanWord(try leaf.word(Self.plans &+ 8 &* index)), Int(start))
    }
}

extension ColumnLeaves {
    /// Reads the row of a key with all its columns.
    public func row(
        _ leaf: ByteView,
        firstKey: UInt64,
        _ key: UInt64,
        _ digest: inout Digest
    ) throws(LeafError) {
        let front = try Front(leaf)
        let (plan, start) = try front.plan(leaf, 0)
        guard key >= firstKey, plan.width <= 56 else { throw .missingKey }
        let distance = Int(truncatingIfNeeded: key &- firstKey)
        var low = 0
        var high = min(distance, front.rows &- 1)
        while low < high {
            let middle = (low &+ high &+ 1) &>> 1
            let gap = try leaf.bits(start &* 8 &+ middle &* plan.width, plan.width)
            if middle &+ Int(truncatingIfNeeded: gap) <= distance {
                low = middle
            } else {
                high = middle &- 1
            }
        }
        let gap = try leaf.bits(start &* 8 &+ low &* plan.width, plan.width)
        guard low &+ Int(truncatingIfNeeded: gap) == distance else { throw .missingKey }
        for index in 1...front.columns {
            try read(leaf, front, index, low..<low + 1, &digest)
        }
    }

    /// Reads all rows with all their columns.
    public func scan(_ leaf: ByteView, _ digest: inout Digest) throws(LeafError) {
        let front = try Front(leaf)
        let (plan, start) = try front.plan(leaf, 0)
        let first = UInt64(bitPattern: try plan.base(leaf, front.bases))
        for row in 0..<front.rows {
            let gap = try leaf.bits(start &* 8 &+ row &* plan.width, plan.width)
            digest.add(2001, word: first &+ UInt64(row) &+ gap)
        }
        for index in 1...front.columns {
            try read(leaf, front, index, 0..<front.rows, &digest)
        }
    }

    /// Counts the rows whose integer column is above a value.
    public func count(_ leaf: ByteView, column: Int, above: Int64) throws(LeafError) -> Int {
        let front = try Front(leaf)
        let (plan, start) = try front.plan(leaf, column + 2)
        guard plan.coding == 0, plan.type <= 1 else { throw .damage }
        let base = try plan.base(leaf, front.bases)
        guard let least = plan.least(above: above, base) else { return 0 }
        return try leaf.count(
            atLeast: least,
            position: start &* 8,
            stride: plan.width,
            width: plan.width,
            rows: front.rows
        )
    }

    /// Adds some rows of a column to a digest; 0 is the key, 1 the commit.
    @inline(__always)
    private func read(
        _ leaf: ByteView,
        _ front: Front,
        _ index: Int,
        _ rows: Range<Int>,
        _ digest: inout Digest
    ) throws(LeafError) {
        let (plan, start) = try front.plan(leaf, index)
        let column = index == 1 ? 2000 : index &- 2
        let base = try plan.coding == 7 ? 0 : plan.base(leaf, front.bases)
        let specials = plan.specials
        let hasStates = specials > 0 && plan.coding >= 3
        let width = hasStates ? plan.stateWidth : plan.width
        let behind = hasStates ? start &+ (front.rows &* width &+ 7) &>> 3 : start
        for row in rows {
            var code = specials
            if hasStates || plan.coding < 3 {
                code = try leaf.bits(start &* 8 &+ row &* width, width)
            }
            if code < specials {
                if code == 0 && plan.hasNil {
                    digest.addNil(column)
                } else {
                    digest.addAbsent(column)
                }
                continue
            }
            let integer = base &+ Int64(bitPattern: code &- specials)
            switch plan.coding {
            case 0: digest.add(column, int: integer)
            case 1: digest.add(column, word: try plan.double(integer, isDecimal: true))
            case 2: digest.add(column, word: try plan.double(integer, isDecimal: false))
            case 3:
                if plan.type == UInt64(ColumnType.uuid.rawValue) {
                    let at = behind &+ 16 &* row
                    let high = try leaf.word(at)
                    digest.add(column, high: high, low: try leaf.word(at &+ 8))
                } else {
                    digest.add(column, word: try leaf.word(behind &+ 8 &* row))
                }
            case 7:
                let ends = behind &* 8
                let texts = behind &+ (front.rows &* plan.width &+ 7) &>> 3
                let from =
                    row == 0 ? 0 : try leaf.bits(ends &+ (row &- 1) &* plan.width, plan.width)
                let to = try leaf.bits(ends &+ row &* plan.width, plan.width)
                guard from <= to else { throw .damage }
                let at = texts &+ Int(truncatingIfNeeded: from)
                let length = Int(truncatingIfNeeded: to &- from)
                try reader.text(leaf, plan.tableNumber, at, length, column, &digest)
            default: throw .damage
            }
        }
    }
}
