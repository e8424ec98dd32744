// Rows for leaves, from a seed: columns that are alike from row to row, as those of tables are, and
// now and then one that is not.

import VarveBase
import VarveTesting

@testable import VarveFormat

/// How the values of one column come about.
struct ColumnHabit {
    enum Style: CaseIterable {
        case anything, kind, constant, mostlyConstant, small, far, few, decimals, clock, words, long
    }

    var style: Style
    var kind: SeededRandom.Kind
    var nilPercent: Int
    var absentPercent: Int
    var few: [StoredValue] = []
    var base: Int64
    var spread: Int64

    init(_ random: inout SeededRandom) {
        style = random.pick(Style.allCases)
        kind = random.pick(SeededRandom.Kind.allCases)
        nilPercent = random.pick([0, 0, 0, 5, 50, 95, 100])
        absentPercent = random.pick([0, 0, 0, 5, 50, 95])
        base = random.int()
        spread = Int64(random.pick([1, 2, 7, 200, 1_000_000, 1 << 40]))
        let kind = kind
        few = (0..<random.pick([1, 2, 3, 40])).map { _ in random.value(kind) }
    }

    func value(_ random: inout SeededRandom) -> StoredValue? {
        if Int.random(in: 0..<100, using: &random) < absentPercent { return nil }
        if Int.random(in: 0..<100, using: &random) < nilPercent { return .null }
        switch style {
        case .anything: return random.value()
        case .kind: return random.value(kind)
        case .constant: return few[0]
        case .mostlyConstant:
            return Int.random(in: 0..<20, using: &random) == 0 ? random.value(kind) : few[0]
        case .few: return random.pick(few)
        case .small, .far:
            let number = base &+ Int64.random(in: 0..<spread, using: &random)
            if style == .far, Int.random(in: 0..<9, using: &random) == 0 {
                return .int(random.int())
            }
            switch kind {
            case .reference: return .reference(ObjectID(UInt64(bitPattern: number)))
            case .date: return .date(Double(number))
            case .double: return .double(Double(number))
            case .float: return .float(Float(number))
            default: return .int(number)
            }
        case .decimals:
            let number = Int64.random(in: 0..<spread, using: &random)
            return .double(Double(number) / [1, 10, 100, 1_000, 1e7][Int(spread % 5)])
        case .clock:
            let number = Int64.random(in: 0..<spread, using: &random)
            return .date(760_000_000 + Double(number) / 1_048_576)
        case .words, .long: return text(&random)
        }
    }

    private func text(_ random: inout SeededRandom) -> StoredValue {
        let words = [
            "stone", "river", " of ", "the ", "Köln", "İstanbul", "東京", "a", "", "sand", "-", "x",
        ]
        let count = style == .long ? random.pick([0, 3, 30, 300]) : random.pick([0, 1, 2, 3, 9])
        let text = (0..<count).map { _ in random.pick(words) }.joined()
        if kind == .data { return .data(Array(text.utf8)) }
        return .text(text)
    }
}

extension LeafRows {
    /// Rows of one random table.
    static func random(_ random: inout SeededRandom, count: Int, columns: Int) -> LeafRows {
        let habits = (0..<columns).map { _ in ColumnHabit(&random) }
        var rows = LeafRows()
        var object = random.number() >> 17
        let gap = random.pick([1, 1, 2, 12, 255, 256, 1 << 30])
        let versions = random.pick([1, 2, 100, 1 << 50])
        let firstVersion = random.number()
        let hasRevisions = Int.random(in: 0..<3, using: &random) == 0
        for index in 0..<count {
            var columns = columns
            // Rows from before a column was added.
            if hasRevisions, index < count / 2 { columns = columns * 2 / 3 }
            let values = habits[..<columns].map { $0.value(&random) }
            let version =
                Int.random(in: 0..<10, using: &random) == 0
                ? UInt64.random(in: 0..<UInt64(versions), using: &random) : 0
            rows.append(object, firstVersion &+ version, RowCoding.encode(values))
            object += UInt64(Int.random(in: 1...gap, using: &random))
        }
        return rows
    }
}
