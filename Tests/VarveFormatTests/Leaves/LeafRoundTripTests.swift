// Leaves of layout 1: every row comes back byte for byte, and is found.

import Testing
import VarveBase
import VarveTesting

@testable import VarveFormat

@Suite("Leaves of layout 1") struct LeafRoundTripTests {
    @Test("Random rows come back byte for byte, with tables and without")
    func randomRowsComeBack() throws {
        var made = 0
        var withTables = 0
        for seed in UInt64(1)...250 {
            var random = SeededRandom(seed: seed)
            let rows = LeafRows.random(
                &random,
                count: random.pick([1, 2, 3, 17, 120, 200]),
                columns: random.pick([0, 1, 2, 7, 19, 40])
            )
            let set = seed % 2 == 0 ? SymbolSet.learned(from: rows) : nil
            if set != nil { withTables += 1 }
            if try Self.comesBack(rows, set, "seed \(seed)") { made += 1 }
        }
        #expect(made > 200 && withTables > 20)
    }

    /// Whether a leaf is made; then every row must come back and be found.
    @discardableResult
    static func comesBack(
        _ rows: LeafRows,
        _ set: SymbolSet?,
        _ comment: Comment
    ) throws -> Bool {
        let address = SymbolSetAddress(
            first: FileOffset(8192),
            twin: FileOffset(16_384),
            storedLength: 99,
            payloadHash: 5
        )
        let symbols = set.map { ($0, address) }
        guard let body = LeafEncoder.anyBody(of: rows, symbols: symbols) else { return false }
        let found = try unsafe body.withUnsafeBytes { unsafe try PackedLeaf.symbolSet(of: $0) }
        #expect(found == set.map { _ in address })
        var random = SeededRandom(seed: 77)
        unsafe try LentLeaf.with(body, count: rows.count, set) { leaf in
            let read = unsafe LentLeaf.rows(leaf)
            #expect(read == rows.expected, comment)
            unsafe try leaf.check(place: "leaf")
            #expect(unsafe leaf.rowBytesMax == rows.expected.map { $0.bytes?.count ?? 0 }.max())
            unsafe Self.find(leaf, rows, &random, comment)
        }
        return true
    }

    private static func find(
        _ leaf: PackedLeaf,
        _ rows: LeafRows,
        _ random: inout SeededRandom,
        _ comment: Comment
    ) {
        var wanted: [UInt64] = [0, 1, .max, .max - 1]
        for object in rows.objects { wanted += [object, object &- 1, object &+ 1] }
        for _ in 0..<20 { wanted.append(random.number()) }
        for object in wanted {
            var low = 0
            var high = rows.count
            while low < high {
                let middle = (low + high) / 2
                if rows.objects[middle] < object { low = middle + 1 } else { high = middle }
            }
            let isEqual = low < rows.count && rows.objects[low] == object
            let found = unsafe leaf.index(of: object)
            #expect(found.index == low && found.isEqual == isEqual, comment)
        }
    }

    private static func rows(_ values: [[StoredValue?]], gap: UInt64 = 1) -> LeafRows {
        var rows = LeafRows()
        for (index, row) in values.enumerated() {
            rows.append(1000 + gap * UInt64(index), UInt64(index % 3), RowCoding.encode(row))
        }
        return rows
    }

    @Test("Numbers at their limits come back") func extremesComeBack() throws {
        let numbers: [[StoredValue?]] = [
            [.int(.min), .int(.max), .int(0)], [.int(.max), .int(.max - 1), .int(1)],
            [.int(0), .null, .int(-1)],
        ]
        #expect(try Self.comesBack(Self.rows(numbers), nil, "integers"))
        let bits: [UInt64] = [
            0, 1 << 63, 0x7FF0_0000_0000_0000, 0xFFF0_0000_0000_0000, 0x7FF8_0000_0000_0001,
            0x7FF0_0000_0000_0001, 0xFFF8_DEAD_BEEF_0000, 1, 0x7FEF_FFFF_FFFF_FFFF,
            0x0010_0000_0000_0000, 0x4340_0000_0000_0000, 0xC33F_FFFF_FFFF_FFFF,
        ]
        for first in bits {
            // Each with itself, with zero and with every other one.
            for second in bits + [0x3FF8_0000_0000_0000, 0x3FB9_9999_9999_999A] {
                let one = Double(bitPattern: first)
                let two = Double(bitPattern: second)
                let rows = Self.rows([
                    [.double(one), .date(two), .float(Float(bitPattern: UInt32(first >> 32)))],
                    [.double(two), .date(two), .float(Float(bitPattern: UInt32(second >> 32)))],
                    [.null, .date(one), .null],
                ])
                #expect(try Self.comesBack(rows, nil, "\(first) \(second)"))
            }
        }
        let references = [0, 1, 1 << 32 - 1, 1 << 32, .max, 1 << 63].map {
            [StoredValue.reference(ObjectID($0))]
        }
        #expect(try Self.comesBack(Self.rows(references), nil, "references"))
    }

    @Test("Texts of any length come back") func longTextsComeBack() throws {
        for length in [0, 1, 47, 48, 8175, 8176, 60_000, 65_000] {
            let text = String(repeating: "stone river ", count: length / 12 + 1).prefix(length)
            let values: [[StoredValue?]] = [
                [.text(String(text)), .data(Array(text.utf8)), .int(5)],
                [.text("a"), .data([]), .text(String(text))],
                [.text("b"), .null], [.null], [],
            ]
            let rows = Self.rows(values.map { length > 30_000 ? [$0.first ?? nil] : $0 })
            #expect(try Self.comesBack(rows, nil, "\(length)"))
            let set = SymbolSet(
                columns: [0, 2],
                tables: [
                    SymbolTable(symbols: [Symbol(0x20726576_6972, length: 6)]),
                    SymbolTable(symbols: []),
                ]
            )
            #expect(try Self.comesBack(rows, set, "\(length), coded"))
        }
    }

    @Test("Rows of up to 1,024 columns come back") func wideRowsComeBack() throws {
        for (seed, columns) in [(1, 319), (2, 320), (3, 321), (4, 700), (5, 1024)]
            as [(UInt64, Int)]
        {
            var random = SeededRandom(seed: seed)
            let rows = LeafRows.random(&random, count: 5, columns: columns)
            // Five rows of random values may be too long; then short ones stand for them.
            let texts = (0..<columns).map { _ in
                StoredValue.text(String(repeating: "x", count: random.pick([0, 1, 47, 48])))
            }
            if rows.bytes.count < 300_000 {
                try Self.comesBack(rows, SymbolSet.learned(from: rows), "seed \(seed)")
            }
            #expect(try Self.comesBack(Self.rows([texts, [], texts]), nil, "\(columns)"))
        }
    }

    @Test("Dictionaries far behind the beginning of the heap are read") func farDictionaries()
        throws
    {
        let texts = (0..<2).map { String(repeating: "\($0) stone, ", count: 2000) }
        let values = (0..<8).map { row in
            [StoredValue.text(texts[row % 2]), .text(texts[row / 4]), .text(texts[row % 2])]
        }
        let rows = Self.rows(values)
        let body = try #require(LeafEncoder.anyBody(of: rows, symbols: nil))
        // Each text once for each column.
        #expect(body.count > 6 * texts[0].utf8.count && body.count < 7 * texts[0].utf8.count)
        #expect(try Self.comesBack(rows, nil, "raw"))
        #expect(try Self.comesBack(rows, SymbolSet.learned(from: rows), "coded"))
    }

    @Test("Values outside rows come back, beside those inside") func outsideValuesComeBack() throws
    {
        var rows = LeafRows()
        for index in 0..<40 as Range<UInt64> {
            let text = String(repeating: "many stones ", count: Int(index) * 3)
            let row = RowCoding.encode([.text(text), .data(Array(text.utf8)), .text("near")])
            let moved = try RowCoding.movingOutside(row, above: 256)
            rows.append(index, index, moved.row)
        }
        #expect(try Self.comesBack(rows, SymbolSet.learned(from: rows), "outside"))
    }

    @Test("Keys on any line are found") func keysAreFound() throws {
        for (gap, count) in [
            (1, 1), (1, 65_535), (2, 300), (255, 300), (256, 300), (257, 300), (1 << 40, 100),
            (1 << 47, 2),
        ] as [(UInt64, Int)] {
            let values = [[StoredValue?]](repeating: [.int(7)], count: count)
            #expect(try Self.comesBack(Self.rows(values, gap: gap), nil, "\(gap)"))
        }
        // At both ends of all numbers, and behind gaps.
        for first in [0, UInt64.max - 70_000] {
            for step in [1, 3, 700] as [UInt64] {
                var rows = LeafRows()
                for index in 0..<90 as Range<UInt64> {
                    let jump: UInt64 = index > 60 ? 5000 : 0
                    rows.append(first + index * step + jump, .max - index, [0])
                }
                #expect(try Self.comesBack(rows, nil, "\(first), \(step)"))
            }
        }
    }

    @Test("What does not fit is left to layout 0") func whatDoesNotFitIsRefused() {
        func body(_ rows: LeafRows) -> [UInt8]? { LeafEncoder.anyBody(of: rows, symbols: nil) }
        func body(_ row: [UInt8]) -> [UInt8]? {
            var rows = LeafRows()
            rows.append(1, 1, row)
            return body(rows)
        }
        #expect(body(LeafRows()) == nil)
        #expect(body(RowCoding.encode([.int(300)])) != nil)
        // Integers and references in a longer form; also among other types.
        for bad in [[1, 6, 0], [1, 6, 1], [1, 7, 5, 0], [1, 8, 5, 0, 0, 0]] as [[UInt8]] {
            #expect(body(bad) == nil)
            var rows = LeafRows()
            rows.append(1, 1, bad)
            rows.append(2, 1, RowCoding.encode([.text("x")]))
            #expect(body(rows) == nil)
        }
        #expect(body([1, 17, 5, 0, 0, 0, 0, 0, 0, 0]) == nil)
        // Absent at the end, tags in a longer form, unknown tags, bodies that do not fill the row.
        for bad in [
            [1, 0], [2, 4, 0], [0x81, 0, 4], [1, 0x84, 0], [1, 21], [1, 6], [1, 4, 9], [],
            [0xFF, 0xFF, 0xFF, 0xFF, 1],
        ] as [[UInt8]] {
            #expect(body(bad) == nil)
        }
        #expect(body(RowCoding.encode([.data([UInt8](repeating: 1, count: 65_530))])) != nil)
        #expect(body(RowCoding.encode([.data([UInt8](repeating: 1, count: 65_536))])) == nil)
        #expect(body([0x81, 8] + [UInt8](repeating: 4, count: 1025)) == nil)
        #expect(body([0x80, 8] + [UInt8](repeating: 4, count: 1024)) != nil)
        let one = RowCoding.encode([.int(7)])
        var far = LeafRows()
        far.append(1, 1, one)
        far.append(1 + 1 << 48, 1, one)
        #expect(body(far) == nil)
        var many = LeafRows()
        for index in 0..<65_536 as Range<UInt64> { many.append(index, 1, one) }
        #expect(body(many) == nil)
        // Plans of more than an eighth of the rows.
        #expect(LeafEncoder.body(of: Self.rows([[.int(300)]]), symbols: nil) == nil)
        let enough = [[StoredValue?]](repeating: [.text("some text of a row")], count: 100)
        #expect(LeafEncoder.body(of: Self.rows(enough), symbols: nil) != nil)
    }
}
