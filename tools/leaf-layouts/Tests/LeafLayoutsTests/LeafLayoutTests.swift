// That every layout gives back what was put in, and that damaged leaves end in errors.
import Testing

@testable import LeafLayouts

@Suite("Leaf layouts") struct LeafLayoutTests {
    private static func layouts() -> [any LeafLayout] {
        [
            BlockLeaves("A", blockBytes: 8192, blocks: 1),
            BlockLeaves("B", blockBytes: 2048, blocks: 4),
            TupleLeaves("C", rows: 60, codesTexts: false),
            TupleLeaves("D", rows: 120, codesTexts: true),
            TupleLeaves("F", rows: 250, codesTexts: true, hasDictionaries: true),
            TupleLeaves("F without tables", rows: 7, codesTexts: false, hasDictionaries: true),
            ColumnLeaves("E", rows: 120),
        ]
    }

    /// Compares what all layouts give.
    private static func compare(_ data: Dataset, _ seed: UInt64) throws {
        let layouts = layouts()
        var leaves: [Leaves] = []
        for layout in layouts {
            layout.prepare(data)
            leaves.append(try layout.encode(data))
        }
        try Measuring(data, seed: seed, probes: 2000).compare(layouts, leaves)
    }

    /// Rows of several schema revisions with values at the ends of their types.
    private static func extremes(_ rows: Int, _ seed: UInt64) -> Dataset {
        var chance = SeededGenerator(seed: seed)
        let types: [ColumnType] = [.int, .int, .double, .uuid, .text, .text, .bool, .double, .int]
        var builder = DatasetBuilder("extremes", types, seed: seed)
        let ints = [Int64.min, -1, 0, 1, 127, 128, 1 << 40, Int64.max]
        let doubles = [
            0.0, -0.0, .nan, .signalingNaN, -.infinity, Double.leastNonzeroMagnitude, 0.1, 1e22,
            1.7976931348623157e308,
            -123.456, 1 / 3, 7e8 + 0.5,
        ]
        let texts = ["", "a", "aa", "Ünï", "東京", "a longer text, which comes up again"]
        for row in 0..<rows {
            // A stretch of rows is tame, so that leaves take other plans.
            let isWild = row / 300 % 2 == 0
            builder.int(Int64(chance.below(9)) - 4)
            builder.int(isWild ? ints[chance.below(ints.count)] : chance.percent(9) ? 700 : 3)
            let double = isWild ? doubles[chance.below(doubles.count)] : Double(row) / 4
            builder.double(chance.percent(isWild ? 90 : 20) ? double : nil)
            if chance.percent(50) {
                builder.uuid(chance.next(), chance.next())
            } else {
                builder.null()
            }
            builder.text(chance.percent(90) ? texts[chance.below(texts.count)] : nil)
            builder.text(String(repeating: "xy\u{FF}", count: chance.below(isWild ? 40 : 4)))
            if row % 3 > 0 {
                builder.bool(chance.percent(5) ? nil : chance.percent(50))
                if chance.percent(10) { builder.absent() } else { builder.double(nil) }
                if row % 3 > 1 { builder.int(chance.percent(50) ? nil : Int64(row)) }
            }
            builder.endRow()
        }
        return builder.finish(filter: 0, above: Int64(chance.below(12)) - 6)
    }

    @Test("All layouts give the same values", arguments: [1, 77] as [UInt64])
    func layoutsAgree(_ seed: UInt64) throws {
        try Self.compare(.contacts(rows: 700, seed: seed), seed)
        try Self.compare(.numbers(rows: 900, seed: seed), seed)
        try Self.compare(.numbers(rows: 900, isBesideOthers: true, seed: seed), seed)
        try Self.compare(.wide(rows: 500, seed: seed), seed)
        try Self.compare(.prose(rows: 300, isLong: false, seed: seed), seed)
        try Self.compare(.prose(rows: 60, isLong: true, seed: seed), seed)
    }

    @Test(
        "Rows of several revisions and extreme values come back",
        arguments: [1, 2, 60, 121, 1500],
        [3, 4, 5, 6] as [UInt64]
    )
    func extremesComeBack(_ rows: Int, _ seed: UInt64) throws {
        try Self.compare(Self.extremes(rows, seed), seed)
    }

    @Test(
        "A filter finds the rows of packed, raw and sparse columns",
        arguments: [31, 32] as [UInt64]
    )
    func filtersFindTheRows(_ seed: UInt64) throws {
        for column in [0, 1, 8] {
            var data = Self.extremes(1200, seed)
            data.filterColumn = column
            for threshold in [Int64.min, -2, 0, 2, 3, 600, 700, Int64.max] {
                data.threshold = threshold
                // Pure columns have no filter over raw values.
                let layouts = Self.layouts().filter { !($0 is ColumnLeaves) }
                var leaves: [Leaves] = []
                for layout in layouts {
                    layout.prepare(data)
                    leaves.append(try layout.encode(data))
                }
                try Measuring(data, seed: seed, probes: 1).compare(layouts, leaves)
            }
        }
    }

    @Test("A packed row comes back byte for byte", arguments: [41, 42] as [UInt64])
    func packedRowsComeBack(_ seed: UInt64) throws {
        let sets = [
            Self.extremes(1300, seed), .contacts(rows: 400, seed: seed),
            .wide(rows: 300, seed: seed), .prose(rows: 50, isLong: true, seed: seed),
        ]
        for data in sets {
            for layout in Self.layouts() {
                guard let layout = layout as? TupleLeaves else { continue }
                layout.prepare(data)
                let leaves = try layout.encode(data)
                let places = data.keys.map { (key: $0, leaf: leaves.leaf(of: $0)) }
                var same = 0
                try layout.unpack(leaves, places) { index, row in
                    if row[...] == data.rows[data.range(index)] { same += 1 }
                }
                #expect(same == data.count, "\(layout.name), \(data.name), seed \(seed)")
            }
        }
    }

    /// A line through small keys and a large one begins below 0.
    @Test("Keys that are far apart are found") func farKeysAreFound() throws {
        var data = Dataset.numbers(rows: 240, seed: 51)
        data.keys = (0..<240).map { $0 < 100 ? $0 + 1 : $0 < 239 ? 1 << 40 + $0 * $0 : 1 << 62 }
        try Self.compare(data, 51)
        data.keys = (0..<240).map { 1 << 63 + $0 * 300 }
        try Self.compare(data, 51)
    }

    @Test("A leaf that is changed gives another sum") func digestsTellValuesApart() throws {
        let data = Self.extremes(400, 11)
        var other = data
        other.commits[17] += 1
        let layouts = Self.layouts()
        var sums: [[Digest]] = []
        for data in [data, other] {
            sums.append([])
            for layout in layouts {
                layout.prepare(data)
                let leaves = try layout.encode(data)
                var digest = Digest()
                try ByteView.lend(leaves.bytes) { (view) throws(LeafError) in
                    for range in leaves.ranges { try layout.scan(view.part(range), &digest) }
                }
                sums[sums.count - 1].append(digest)
            }
        }
        #expect(Set(sums[0]).count == 1)
        #expect(Set(sums[1]).count == 1)
        #expect(sums[0][0] != sums[1][0])
        // The commit, a key, and the columns of each row.
        #expect(sums[0][0].count == 400 * (2 + data.types.count))
    }

    @Test("A key that no row has is told", arguments: [false, true])
    func missingKeysAreTold(_ isBesideOthers: Bool) throws {
        let data = Dataset.numbers(rows: 1000, isBesideOthers: isBesideOthers, seed: 12)
        let there = Set(data.keys)
        for layout in Self.layouts() {
            layout.prepare(data)
            let leaves = try layout.encode(data)
            var missing = 0
            try ByteView.lend(leaves.bytes) { (view) throws(LeafError) in
                for key in 990..<(data.keys[999] + 10) {
                    let leaf = leaves.leaf(of: key)
                    let first = leaves.firstKeys[leaf]
                    var digest = Digest()
                    let range = leaves.ranges[leaf]
                    do throws(LeafError) {
                        try layout.row(view.part(range), firstKey: first, key, &digest)
                    } catch .missingKey {
                        missing += 1
                        continue
                    }
                    #expect(there.contains(key), "\(layout.name)")
                }
            }
            #expect(missing == Int(data.keys[999]) + 10 - 990 - 1000, "\(layout.name)")
        }
    }

    @Test("Damaged leaves end in errors or values", arguments: [21, 22] as [UInt64])
    func damagedLeavesNeverTrap(_ seed: UInt64) throws {
        let data = Self.extremes(240, seed)
        var chance = SeededGenerator(seed: seed)
        var refused = 0
        for layout in Self.layouts() where !(layout is BlockLeaves) {
            layout.prepare(data)
            let leaves = try layout.encode(data)
            for _ in 0..<400 {
                var bytes = leaves.bytes
                let range = leaves.ranges[chance.below(leaves.ranges.count)]
                for _ in 0...chance.below(3) {
                    // The front more often than the rest.
                    let most = chance.percent(50) ? min(160, range.count) : range.count
                    let place = range.lowerBound + chance.below(most)
                    bytes[place] = UInt8(truncatingIfNeeded: chance.next())
                }
                let key = data.keys[chance.below(data.count)]
                ByteView.lend(bytes) { view in
                    let leaf = view.part(range)
                    var digest = Digest()
                    do throws(LeafError) {
                        _ = try layout.count(leaf, column: 0, above: 0)
                        try layout.scan(leaf, &digest)
                        try layout.row(leaf, firstKey: data.keys[0], key, &digest)
                    } catch {
                        refused += 1
                    }
                }
            }
        }
        #expect(refused > 200, "seed \(seed)")
    }
}
