// That texts come back, and that damaged tables, sets and codes give errors.

import Testing
import VarveBase
import VarveTesting

@testable import VarveFormat

@Suite("Sets of symbol tables") struct SymbolSetTests {
    private static func table(_ texts: [[UInt8]]) -> SymbolTable {
        var sample = SymbolSample()
        for text in texts { sample.add(text[...]) }
        return SymbolTable(learningFrom: sample)
    }

    private static func set(_ tables: [SymbolTable]) -> SymbolSet {
        SymbolSet(columns: tables.indices.map { UInt16(3 * $0) }, tables: tables)
    }

    private static func decode(_ bytes: [UInt8]) throws(FormatError) -> SymbolSet {
        try SymbolSet(decoding: bytes, range: 0..<bytes.count, place: "set")
    }

    @Test("Texts in many scripts come back", arguments: [1, 2, 3, 0xF00D] as [UInt64])
    func textsComeBack(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let texts = SampleTexts.make(600, &random)
        let set = Self.set([Self.table(texts)])
        #expect(set.tables[0].symbols.count > 200)
        var raw = 0
        var stored = 0
        for text in texts {
            let coded = set.memory.encode(0, text, 0..<text.count)
            #expect(set.memory.decode(0, coded, limit: text.count) == text, "seed \(seed)")
            // In the middle of other bytes.
            let around = [1, 2, 3] + text + [4, 5, 6, 7, 8, 9, 10, 11, 12]
            #expect(set.memory.encode(0, around, 3..<3 + text.count) == coded, "seed \(seed)")
            raw += text.count
            stored += coded.count
        }
        #expect(stored * 4 < raw * 3, "seed \(seed): \(stored) of \(raw) bytes")
    }

    @Test("A set comes back from its bytes") func setsComeBack() throws {
        var random = SeededRandom(seed: 9)
        let texts = SampleTexts.make(600, &random)
        let tables = [texts, [], [[0xFF, 0xFF, 0xFF]], [[0], [0, 0]]].map(Self.table)
        let set = Self.set(tables)
        let bytes = set.encoded()
        let again = try Self.decode([7] + bytes, 1..<1 + bytes.count)
        #expect(again.tables == tables)
        #expect(again.columns == [0, 3, 6, 9])
        #expect(again.encoded() == bytes)
        #expect(again.tableCount == 4)
        #expect(again.byteCount == set.byteCount && set.byteCount < 80_000)
        #expect(again.number(ofColumn: 6) == 3)
        #expect(again.number(ofColumn: 7) == 0 && again.number(ofColumn: 1000) == 0)
        #expect(try Self.decode([0, 0]).tableCount == 0)
    }

    private static func decode(
        _ bytes: [UInt8],
        _ range: Range<Int>
    ) throws(FormatError) -> SymbolSet {
        try SymbolSet(decoding: bytes, range: range, place: "set")
    }

    @Test("The same rows give the same set, of the columns that gain")
    func learningIsDeterministic() throws {
        var random = SeededRandom(seed: 4)
        let words = SampleTexts.make(600, &random)
        var rows = LeafRows()
        for (index, word) in words.enumerated() {
            // Numbers, texts, nothing to learn from, data, nil.
            let text = String(decoding: word, as: UTF8.self)
            let row = RowCoding.encode([
                .int(Int64(index)), .text(text), .text(""), .data(word), .null,
            ])
            rows.append(UInt64(index), 1, row)
        }
        let set = try #require(SymbolSet.learned(from: rows))
        #expect(set.columns == [1])
        #expect(SymbolSet.learned(from: rows)?.encoded() == set.encoded())
        #expect(SymbolSet.learned(from: LeafRows()) == nil)
    }

    @Test("Without symbols each byte is escaped") func emptyTablesEscape() {
        let memory = Self.set([Self.table([])]).memory
        let coded = memory.encode(0, [1, 0xFF, 0], 0..<3)
        #expect(coded == [255, 1, 255, 0xFF, 255, 0])
        #expect(memory.decode(0, coded, limit: 3) == [1, 0xFF, 0])
    }

    @Test("Damaged codes are refused, and texts that are too long") func damagedCodesAreRefused() {
        let table = Self.table([Array("to be or not to be, that is the question".utf8)])
        #expect(table.symbols.count < 200)
        let memory = Self.set([table]).memory
        // An escape with nothing behind it, and a code without a symbol.
        for coded: [UInt8] in [[255], [0, 255], [254], [0, 254, 0], [255, 255, 255]] {
            #expect(memory.decode(0, coded, limit: 1000) == nil)
        }
        let long = [UInt8](repeating: UInt8(table.symbols.count - 1), count: 1000)
        #expect(memory.decode(0, long, limit: 999) == nil)
        #expect(memory.decode(0, long, limit: 8000) != nil)
    }

    @Test("Nothing is written 8 bytes behind the limit", arguments: [5, 6] as [UInt64])
    func smallTargetsHold(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let texts = SampleTexts.make(200, &random)
        let memory = Self.set([Self.table(texts)]).memory
        for text in texts where !text.isEmpty {
            let coded = memory.encode(0, text, 0..<text.count)
            for room in [0, 1, 7, 8, text.count / 2, text.count - 1, text.count, text.count + 3] {
                let target = ExactMemory([UInt8](repeating: 0xA5, count: room + 24), padding: 0)
                let count = unsafe coded.withUnsafeBytes { coded in
                    unsafe coded.baseAddress.flatMap {
                        unsafe SymbolMemory.decode(
                            UnsafeRawPointer(memory.base),
                            $0,
                            coded.count,
                            target.start,
                            room
                        )
                    }
                }
                #expect(count == (room < text.count ? nil : text.count), "seed \(seed)")
                let behind = unsafe UnsafeRawBufferPointer(
                    start: target.start + room + 8,
                    count: 16
                )
                #expect(unsafe behind.allSatisfy { $0 == 0xA5 }, "seed \(seed)")
            }
        }
    }

    @Test("Random sets and codes end in texts or errors", arguments: [7, 8] as [UInt64])
    func randomBytesNeverTrap(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var sound = 0
        for _ in 0..<2000 {
            var bytes = (0..<8).map { _ in UInt8.random(in: 0...40, using: &random) }
            let total = bytes.enumerated().reduce(0) { $0 + Int($1.element) * ($1.offset + 1) }
            let wrong = Int.random(in: 0...3, using: &random) == 0 ? 1 : 0
            for _ in 0..<total + wrong { bytes.append(UInt8.random(in: 0...255, using: &random)) }
            guard let set = try? Self.decode([1, 0, 5, 0] + bytes) else { continue }
            sound += 1
            let coded = (0..<60).map { _ in UInt8.random(in: 0...255, using: &random) }
            if let text = set.memory.decode(0, coded, limit: 480) { #expect(text.count <= 480) }
            // Whatever its symbols are, what is coded with them comes back.
            let again = set.memory.encode(0, coded, 0..<60)
            #expect(set.memory.decode(0, again, limit: 60) == coded, "seed \(seed)")
        }
        #expect(sound > 600)
    }

    @Test("Damaged sets give errors") func damagedSetsAreRefused() throws {
        var random = SeededRandom(seed: 12)
        let tables = [SampleTexts.make(90, &random), SampleTexts.make(9, &random)].map(Self.table)
        let bytes = Self.set(tables).encoded()
        for count in 0..<bytes.count {
            #expect(throws: FormatError.self) { try Self.decode(bytes, 0..<count) }
        }
        #expect(throws: FormatError.self) { try Self.decode(bytes + [0]) }
        let one: [UInt8] = [1, 0, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 65, 66]
        #expect(throws: Never.self) { try Self.decode(one) }
        // A column that no row has, columns that do not ascend, too many tables and symbols.
        let far: [UInt8] = [1, 0, 0, 4] + one[4...]
        let twice: [UInt8] = [2, 0] + one[2...] + one[2...]
        let back: [UInt8] = [2, 0] + one[2...] + [1, 0] + one[4...]
        let many: [UInt8] = [1, 4] + one[2...]
        let symbols: [UInt8] =
            [1, 0, 2, 0, 200, 56, 0, 0, 0, 0, 0, 0] + [UInt8](repeating: 1, count: 312)
        for bad in [far, twice, back, many, symbols] {
            #expect(throws: FormatError.self) { try Self.decode(bad) }
        }
        for index in bytes.indices {
            var bad = bytes
            bad[index] ^= UInt8(1 << Int.random(in: 0..<8, using: &random))
            if let set = try? Self.decode(bad) { #expect(set.encoded() == bad) }
        }
    }
}
