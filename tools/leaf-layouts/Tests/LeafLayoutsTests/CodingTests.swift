// The parts that leaves are made of: bit fields, scaled doubles, dictionaries' limits.
import Testing

@testable import LeafLayouts

@Suite("Codings") struct CodingTests {
    @Test("Bit fields come back", arguments: [1, 2] as [UInt64])
    func bitFieldsComeBack(_ seed: UInt64) throws {
        var chance = SeededGenerator(seed: seed)
        var writer = BitWriter(capacity: 2000 * 7)
        var fields: [(position: Int, width: Int, code: UInt64)] = []
        var position = 0
        for _ in 0..<2000 {
            let width = chance.below(57)
            let code = width == 0 ? 0 : chance.next() >> UInt64(64 - width)
            writer.append(code, width)
            fields.append((position, width, code))
            position += width
        }
        writer.align()
        #expect(writer.bytes.count == (position + 7) / 8)
        let bytes = Array(writer.bytes) + [UInt8](repeating: 0xFF, count: 8)
        try ByteView.lend(bytes) { (view) throws(LeafError) in
            for field in fields {
                let code = try view.bits(field.position, field.width)
                #expect(code == field.code, "seed \(seed)")
            }
        }
    }

    @Test("Nothing is read behind the end") func readsEndAtTheEnd() {
        ByteView.lend([UInt8](repeating: 1, count: 20)) { view in
            #expect(view.count == 12)
            #expect(throws: Never.self) { try view.word(12) }
            for at in [13, 100, -1, Int.min, Int.max] {
                #expect(throws: LeafError.self) { try view.word(at) }
                #expect(throws: LeafError.self) { try view.byte(at) }
                #expect(throws: LeafError.self) { try Self.size(view, at, 1) }
            }
            #expect(throws: LeafError.self) { try Self.size(view, 4, 9) }
            #expect(throws: LeafError.self) { try Self.size(view, 4, -1) }
            #expect(throws: LeafError.self) { try Self.size(view, 4, Int.max) }
            #expect(throws: LeafError.self) {
                try view.count(atLeast: 0, position: 0, stride: 8, width: 8, rows: 14)
            }
        }
    }

    /// The size of a part; throws where the view has none.
    private static func size(_ view: ByteView, _ at: Int, _ count: Int) throws -> Int {
        // Only counted.
        try unsafe view.buffer(at, count).count
    }

    @Test("Doubles come back bit by bit", arguments: [3, 4] as [UInt64])
    func doublesComeBack(_ seed: UInt64) throws {
        var chance = SeededGenerator(seed: seed)
        let decimals = (0..<200).map { _ in Double(chance.below(2_000_000) - 1_000_000) / 100 }
        let best = try #require(DoubleScale.best(decimals))
        #expect(best.scale == .decimal(2))
        for (double, integer) in zip(decimals, best.integers) {
            #expect(best.scale.value(integer).bitPattern == double.bitPattern, "seed \(seed)")
        }
        // Of a clock: no decimals, but a fixed last bit.
        let dates = (0..<200).map { _ in
            7.6e8 + Double(chance.next() >> 40) / Double(1 << 20)
        }
        let clock = try #require(DoubleScale.best(dates))
        #expect(clock.scale == .binary(20))
        for (double, integer) in zip(dates, clock.integers) {
            #expect(clock.scale.value(integer).bitPattern == double.bitPattern, "seed \(seed)")
        }
    }

    @Test("What is no integer in any scale stays as it is") func otherDoublesAreRaw() {
        for double in [
            -0.0, .nan, .infinity, Double.leastNonzeroMagnitude, 1e300, Double.pi * 1e-9,
        ] {
            #expect(DoubleScale.best([1, double]) == nil, "\(double)")
        }
    }

    @Test("Pieces of a text are measured by size") func piecesAreMeasured() {
        let text = Array(String(repeating: "the quick brown fox, ", count: 1000).utf8)
        let found = TextBlocks.measure(text)
        #expect(found.map(\.size) == [1024, 4096, 16384])
        // One text again and again: LZ4 gets better with the size, symbols do not.
        #expect(found[0].blocks > 4 * found[2].blocks)
        #expect(abs(found[0].symbols - found[2].symbols) < 0.01)
        #expect(found[0].symbols < 0.25)
        #expect(TextBlocks.measure(Array("short".utf8)).isEmpty)
    }
}
