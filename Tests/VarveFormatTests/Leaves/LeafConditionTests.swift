// Filters over packed leaves, and rows of some columns, against rows that were unpacked whole.

import Testing
import VarveBase
import VarveTesting

@testable import VarveFormat

@Suite("Filters over leaves of layout 1") struct LeafConditionTests {
    /// A leaf of random rows, and what its rows hold; nil where no leaf is made.
    private struct World {
        let rows: LeafRows
        let set: SymbolSet?
        let body: [UInt8]
        /// By row and column; nil: not stored.
        let values: [[StoredValue?]]
        let columns: Int

        init?(seed: UInt64) throws {
            var random = SeededRandom(seed: seed)
            columns = random.pick([1, 2, 7, 19])
            rows = LeafRows.random(
                &random,
                count: random.pick([1, 3, 63, 64, 65, 150]),
                columns: columns
            )
            set = seed % 2 == 0 ? SymbolSet.learned(from: rows) : nil
            let address = SymbolSetAddress(
                first: FileOffset(8192),
                twin: FileOffset(16_384),
                storedLength: 99,
                payloadHash: 5
            )
            guard let body = LeafEncoder.anyBody(of: rows, symbols: set.map { ($0, address) })
            else { return nil }
            self.body = body
            let columns = columns
            let rows = rows
            values = try (0..<rows.count).map { index in
                let row = Array(rows.bytes[rows.range(index)])
                let layout = try RowLayout(row.span)
                return try (0..<columns).map { column in
                    let slot = layout.slot(ColumnID(UInt16(column)), in: row.span)
                    return slot.isOutside ? .data([]) : try slot.value(in: row.span)
                }
            }
        }
    }

    /// What the condition says of a value, by its words alone.
    private static func passes(_ condition: ColumnCondition, _ value: StoredValue?) -> Bool? {
        guard let value else { return condition.passesAbsent }
        if value == .null { return condition.passesNull }
        let isInside: Bool?
        switch (condition.values, value) {
        case (.any(let passes), _): isInside = passes
        case (.bool(let wanted), .bool(let value)): isInside = wanted == value
        case (.integers(let range), .int(let value)): isInside = range?.contains(value) ?? false
        case (.doubles(let range), .double(let value)), (.dates(let range), .date(let value)):
            isInside = range?.contains(ColumnCondition.rank(value)) ?? false
        case (.reference(let object), .reference(let value)): isInside = object == value
        case (.texts(let test), .text(let text)):
            let bytes = Array(text.utf8)
            isInside = test(bytes.span)
        default: isInside = nil
        }
        return isInside.map { $0 != condition.isNegated }
    }

    /// Three-valued logic: nil is unknown.
    private static func passes(_ condition: LeafCondition, _ row: [StoredValue?]) -> Bool? {
        switch condition {
        case .constant(let passes): return passes
        case .unknown: return nil
        case .column(let column):
            let place = Int(column.column.rawValue)
            return passes(column, place < row.count ? row[place] : nil)
        case .not(let inner): return passes(inner, row).map { !$0 }
        case .and(let all):
            let answers = all.map { passes($0, row) }
            if answers.contains(false) { return false }
            return answers.contains(nil) ? nil : true
        case .or(let all):
            let answers = all.map { passes($0, row) }
            if answers.contains(true) { return true }
            return answers.contains(nil) ? nil : false
        }
    }

    private static func range<Value: Comparable>(_ a: Value, _ b: Value) -> ClosedRange<Value> {
        min(a, b)...max(a, b)
    }

    /// Asks for what is there, for what is near it, and for anything.
    private static func column(
        _ random: inout SeededRandom,
        _ world: World
    ) -> ColumnCondition {
        // Also a column that no row has.
        let column = Int.random(in: 0...world.columns, using: &random)
        func some() -> StoredValue {
            let row = world.values[Int.random(in: 0..<world.rows.count, using: &random)]
            return (column < row.count ? row[column] : nil) ?? .null
        }
        func near(_ value: Int64) -> Int64 { value &+ Int64.random(in: -2...2, using: &random) }
        let (first, second) = (some(), some())
        let values: ColumnCondition.Values
        switch (first, second) {
        case (.bool(let value), _): values = .bool(value)
        case (.int(let a), .int(let b)):
            let isEmpty = Int.random(in: 0..<20, using: &random) == 0
            values = .integers(isEmpty ? nil : range(near(a), near(b)))
        case (.double(let a), .double(let b)):
            values = .doubles(
                range(near(ColumnCondition.rank(a)), near(ColumnCondition.rank(b)))
            )
        case (.date(let a), .date(let b)):
            values = .dates(range(near(ColumnCondition.rank(a)), near(ColumnCondition.rank(b))))
        case (.reference(let object), _): values = .reference(object)
        case (.text(let text), _):
            let wanted = Array(text.utf8)
            values = .texts { bytes in
                bytes.count == wanted.count && wanted.indices.allSatisfy { bytes[$0] == wanted[$0] }
            }
        default:
            switch Int.random(in: 0..<5, using: &random) {
            case 0: values = .any(true)
            case 1: values = .any(false)
            case 2: values = .integers(Int64.min...0)
            case 3: values = .doubles(0...Int64.max)
            default: values = .texts { $0.count % 2 == 0 }
            }
        }
        return ColumnCondition(
            ColumnID(UInt16(column)),
            values,
            isNegated: Bool.random(using: &random),
            passesNull: Bool.random(using: &random),
            passesAbsent: Bool.random(using: &random)
        )
    }

    private static func condition(
        _ random: inout SeededRandom,
        _ world: World,
        depth: Int
    ) -> LeafCondition {
        let kind = Int.random(in: 0..<(depth > 0 ? 10 : 6), using: &random)
        switch kind {
        case 0:
            return Bool.random(using: &random) ? .unknown : .constant(Bool.random(using: &random))
        case 1...5: return .column(column(&random, world))
        case 6: return .not(condition(&random, world, depth: depth - 1))
        default:
            let parts = (0..<Int.random(in: 0...3, using: &random)).map { _ in
                condition(&random, world, depth: depth - 1)
            }
            return kind < 8 ? .and(parts) : .or(parts)
        }
    }

    @Test("A filter says of each row what its values say, or leaves it open")
    func filtersSayWhatValuesSay() throws {
        var asked = 0
        var open = 0
        for seed in UInt64(1)...160 {
            guard let world = try World(seed: seed) else { continue }
            var random = SeededRandom(seed: seed &+ 1_000_000)
            for step in 0..<40 {
                let condition = Self.condition(&random, world, depth: step % 4)
                let count = world.rows.count
                let first = Int.random(in: 0..<count, using: &random)
                let rows = Int.random(in: 0...min(64, count - first), using: &random)
                let all = rows == 0 ? 0 : UInt64.max >> UInt64(64 - rows)
                let among = Bool.random(using: &random) ? all : all & random.number()
                let answer = try unsafe LentLeaf.with(world.body, count: count, world.set) { leaf in
                    unsafe leaf.answer(condition, from: first, rows: rows, among: among)
                }
                for row in 0..<rows where among >> UInt64(row) & 1 != 0 {
                    let wanted = Self.passes(condition, world.values[first + row])
                    let passes = answer.passes >> UInt64(row) & 1 != 0
                    let mayPass = answer.mayPass >> UInt64(row) & 1 != 0
                    asked += 1
                    if passes != mayPass { open += 1 }
                    // What passes for certain may pass; and both agree with the values.
                    let isTrue = !passes || (mayPass && wanted != false)
                    let isNotFalse = mayPass || wanted != true
                    #expect(isTrue && isNotFalse, "seed \(seed), step \(step), row \(first + row)")
                    if !isTrue || !isNotFalse { return }
                }
            }
        }
        // Most of it is answered by the leaf.
        #expect(asked > 50_000 && open * 2 < asked, "\(open) of \(asked) left open")
    }

    @Test("Columns of one type are answered for certain")
    func oneTypeIsAnswered() throws {
        var rows = LeafRows()
        for index in 0..<100 {
            let isThere = index % 10 == 0
            let row: [StoredValue?] = [
                .int(Int64(index * 7 % 50)), .double(Double(index % 13) / 4),
                .date(760_000_000.123 + Double(index)), .text(index % 3 == 0 ? "sea" : "land"),
                isThere ? .int(1 << 40 + Int64(index)) : .null, .bool(index % 2 == 0),
                .reference(ObjectID(UInt64(index % 5) + 1)), .text("number \(index * index)"),
                .double([-0.0, 0, .nan, .infinity][index % 4]),
            ]
            rows.append(UInt64(index + 1), 7, RowCoding.encode(row))
        }
        let body = try #require(LeafEncoder.anyBody(of: rows, symbols: nil))
        let rank = ColumnCondition.rank
        let questions: [(Int, ColumnCondition.Values, (Int) -> Bool)] = [
            (0, .integers(10...20), { (10...20).contains($0 * 7 % 50) }),
            (0, .integers(Int64.min...Int64.max), { _ in true }),
            (0, .integers(1_000...2_000), { _ in false }),
            (0, .integers(-9 ... -1), { _ in false }),
            (1, .doubles(rank(1)...rank(2)), { (4...8).contains($0 % 13) }),
            (1, .doubles(rank(0.1)...rank(0.2)), { _ in false }),
            (2, .dates(rank(760_000_050.123)...Int64.max), { $0 >= 50 }),
            (3, .texts { $0.count == 3 }, { $0 % 3 == 0 }),
            (4, .integers(Int64.min...(1 << 40 + 50)), { $0 % 10 == 0 && $0 <= 50 }),
            (4, .any(true), { $0 % 10 == 0 }),
            (5, .bool(true), { $0 % 2 == 0 }),
            (6, .reference(ObjectID(3)), { $0 % 5 == 2 }),
            (7, .texts { $0.count == 8 }, { $0 <= 3 }),
            (8, .doubles(rank(0)...rank(0)), { $0 % 4 < 2 }),
            (8, .doubles(Int64.max...Int64.max), { $0 % 4 == 2 }),
        ]
        try unsafe LentLeaf.with(body, count: 100, nil) { leaf in
            for (number, (column, values, wanted)) in questions.enumerated() {
                for isNegated in [false, true] {
                    let condition = ColumnCondition(
                        ColumnID(UInt16(column)),
                        values,
                        isNegated: isNegated,
                        passesNull: false,
                        passesAbsent: true
                    )
                    for first in [0, 36] {
                        let answer = unsafe leaf.answer(
                            .column(condition),
                            from: first,
                            rows: 64,
                            among: .max
                        )
                        var expected: UInt64 = 0
                        for row in 0..<64 {
                            let index = first + row
                            let isNull = column == 4 && index % 10 != 0
                            let passes = !isNull && wanted(index) != isNegated
                            expected |= passes ? 1 << UInt64(row) : 0
                        }
                        #expect(
                            answer == LeafAnswer(exact: expected),
                            "question \(number), negated \(isNegated)"
                        )
                    }
                }
            }
        }
    }

    @Test("A row of some columns has these as the whole row has them, and no others")
    func someColumnsAreThose() throws {
        var read = 0
        for seed in UInt64(1)...200 {
            guard let world = try World(seed: seed) else { continue }
            var random = SeededRandom(seed: seed &+ 2_000_000)
            for _ in 0..<6 {
                let share = random.pick([0, 1, 5, 9])
                let wanted = (0...world.columns).filter { _ in
                    Int.random(in: 0..<10, using: &random) < share
                }
                let columns = RowColumns(wanted.map { ColumnID(UInt16($0)) })
                try unsafe LentLeaf.with(world.body, count: world.rows.count, world.set) { leaf in
                    unsafe try Self.check(
                        leaf,
                        columns,
                        world,
                        "seed \(seed), columns \(wanted)",
                        &read
                    )
                }
            }
        }
        #expect(read > 10_000)
    }

    private static func check(
        _ leaf: PackedLeaf,
        _ columns: RowColumns,
        _ world: World,
        _ comment: Comment,
        _ read: inout Int
    ) throws {
        let reader = PackedRowReader(columns)
        var copy = unsafe leaf
        try unsafe withUnsafePointer(to: &copy) { leaf in
            unsafe reader.begin(leaf)
            for index in 0..<world.rows.count {
                let row = unsafe reader.row(index, of: leaf).map { unsafe [UInt8]($0) }
                let bytes = try #require(row, comment)
                let layout = try RowLayout(bytes.span)
                let whole = Array(world.rows.bytes[world.rows.range(index)])
                let wholeLayout = try RowLayout(whole.span)
                var areEqual = true
                for column in 0...world.columns {
                    let place = ColumnID(UInt16(column))
                    let slot = layout.slot(place, in: bytes.span)
                    guard columns.contains(column) else {
                        if !slot.isAbsent { areEqual = false }
                        continue
                    }
                    let other = wholeLayout.slot(place, in: whole.span)
                    if slot.tag != other.tag || bytes[slot.body] != whole[other.body] {
                        areEqual = false
                    }
                }
                #expect(areEqual, "\(comment), row \(index)")
                read += 1
            }
        }
    }
}
