// That texts come back, and that damaged tables and codes give errors.
import Testing

@testable import SymbolTables

/// SplitMix64, for tests.
private struct Chance: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

@Suite("Symbol tables") struct SymbolTableTests {
    private static let alphabets = [
        "abcdefghijklmnopqrstuvwxyz ,.", "абвгдежзийклмнопрстуфхцчшщ ", "αβγδεζηθικλμνξοπρστυ ",
        "あいうえおかきくけこさしすせそ漢字東京都", "한국어서울부산대구인천 ", "ابتثجحخدذرزسشصض ", "אבגדהוזחטיכלמנ ",
        "👩‍🚀🌍é\u{0301}ß€ ",
    ]

    private static func texts(_ count: Int, _ seed: UInt64) -> [[UInt8]] {
        var chance = Chance(state: seed)
        var words: [String] = []
        for index in 0..<200 {
            let letters = Array(alphabets[index % alphabets.count])
            let length = Int.random(in: 1...9, using: &chance)
            words.append(
                String((0..<length).map { _ in letters.randomElement(using: &chance) ?? "a" })
            )
        }
        return (0..<count).map { index in
            if index % 11 == 0 { return [] }
            // Bytes that are no text, 0xFF among them.
            if index % 7 == 0 {
                return (0..<Int.random(in: 1...40, using: &chance)).map { _ in
                    UInt8.random(in: 0...255, using: &chance) | (index % 2 == 0 ? 0xF0 : 0)
                }
            }
            let length = Int.random(in: 1...30, using: &chance)
            let parts = (0..<length).map { _ in words.randomElement(using: &chance) ?? "" }
            return Array(parts.joined(separator: index % 3 == 0 ? "" : " ").utf8)
        }
    }

    private static func table(_ texts: [[UInt8]]) -> SymbolTable {
        var sample = SymbolSample()
        for text in texts { sample.add(text.span) }
        return SymbolTable(learningFrom: sample)
    }

    @Test("Texts in many scripts come back", arguments: [1, 2, 3, 0xF00D] as [UInt64])
    func textsComeBack(_ seed: UInt64) throws {
        let texts = Self.texts(600, seed)
        let table = Self.table(texts)
        #expect(table.count > 200)
        let encoder = SymbolEncoder(table)
        var raw = 0
        var stored = 0
        for text in texts {
            var coded: [UInt8] = []
            encoder.encode(text.span, into: &coded)
            var decoded: [UInt8] = [7]
            try table.decode(coded.span, into: &decoded, limit: text.count)
            #expect(decoded == [7] + text, "seed \(seed)")
            #expect(try table.decodedCount(coded.span) == text.count)
            raw += text.count
            stored += coded.count
        }
        #expect(stored * 4 < raw * 3, "seed \(seed): \(stored) of \(raw) bytes")
    }

    @Test("A table comes back from its bytes, which are at most 2.3 KB")
    func tablesComeBack() throws {
        for texts in [Self.texts(600, 9), [], [[0xFF, 0xFF, 0xFF]], [[0], [0, 0]]] {
            let table = Self.table(texts)
            let bytes = table.encoded()
            #expect(bytes.count <= SymbolTable.encodedBytesMax)
            #expect(SymbolTable.encodedBytesMax <= 2300)
            #expect(try SymbolTable(decoding: bytes.span) == table)
        }
    }

    @Test("The same sample gives the same table") func learningIsDeterministic() {
        let texts = Self.texts(300, 4)
        #expect(Self.table(texts).encoded() == Self.table(texts).encoded())
    }

    @Test("Without symbols each byte is escaped") func emptyTablesEscape() throws {
        let table = Self.table([])
        #expect(table.count == 0)
        var coded: [UInt8] = []
        SymbolEncoder(table).encode([1, 0xFF, 0].span, into: &coded)
        #expect(coded == [255, 1, 255, 0xFF, 255, 0])
        var decoded: [UInt8] = []
        try table.decode(coded.span, into: &decoded, limit: 3)
        #expect(decoded == [1, 0xFF, 0])
    }

    @Test("Damaged codes give errors and write nothing") func damagedCodesAreRefused() {
        let table = Self.table([Array("to be or not to be, that is the question".utf8)])
        #expect(table.count < 200)
        var target: [UInt8] = [1]
        // An escape with nothing behind it, and a code without a symbol.
        for coded: [UInt8] in [[255], [0, 255], [254], [0, 254, 0], [255, 255, 255]] {
            #expect(throws: SymbolError.code) {
                try table.decode(coded.span, into: &target, limit: 1000)
            }
            #expect(throws: SymbolError.code) { try table.decodedCount(coded.span) }
        }
        let long = [UInt8](repeating: UInt8(table.count - 1), count: 1000)
        #expect(throws: SymbolError.textLength) {
            try table.decode(long.span, into: &target, limit: 999)
        }
        #expect(target == [1])
    }

    @Test("A target that is too small is never written beyond", arguments: [5, 6] as [UInt64])
    func smallTargetsHold(_ seed: UInt64) {
        let texts = Self.texts(200, seed)
        let table = Self.table(texts)
        let encoder = SymbolEncoder(table)
        for text in texts {
            var coded: [UInt8] = []
            encoder.encode(text.span, into: &coded)
            for room in [0, 1, 7, 8, text.count / 2, text.count - 1, text.count, text.count + 3]
            where room >= 0 {
                var target = [UInt8](repeating: 0xA5, count: room + 16)
                let count = unsafe target.withUnsafeMutableBufferPointer { whole in
                    let part = unsafe UnsafeMutableBufferPointer(rebasing: whole[8..<8 + room])
                    return unsafe coded.withUnsafeBufferPointer {
                        unsafe table.decode($0, into: part)
                    }
                }
                #expect(count == (room < text.count ? nil : text.count), "seed \(seed)")
                #expect(target.prefix(8).allSatisfy { $0 == 0xA5 }, "seed \(seed)")
                #expect(target.suffix(8).allSatisfy { $0 == 0xA5 }, "seed \(seed)")
            }
        }
    }

    @Test("Random codes and tables end in texts or errors", arguments: [7, 8] as [UInt64])
    func randomBytesNeverTrap(_ seed: UInt64) {
        var chance = Chance(state: seed)
        var sound = 0
        for _ in 0..<3000 {
            var bytes = (0..<8).map { _ in UInt8.random(in: 0...40, using: &chance) }
            let total = bytes.enumerated().reduce(0) { $0 + Int($1.element) * ($1.offset + 1) }
            let wrong = Int.random(in: 0...3, using: &chance) == 0 ? 1 : 0
            for _ in 0..<total + wrong { bytes.append(UInt8.random(in: 0...255, using: &chance)) }
            guard let table = try? SymbolTable(decoding: bytes.span) else { continue }
            sound += 1
            let coded = (0..<60).map { _ in UInt8.random(in: 0...255, using: &chance) }
            var target: [UInt8] = []
            if (try? table.decode(coded.span, into: &target, limit: 480)) == nil {
                #expect(target.isEmpty, "seed \(seed)")
            }
            // Whatever its symbols are, what is coded with them comes back.
            var again: [UInt8] = []
            SymbolEncoder(table).encode(coded.span, into: &again)
            #expect(throws: Never.self, "seed \(seed)") {
                try table.decode(again.span, into: &target, limit: 480)
            }
            #expect(target.suffix(60) == coded[...], "seed \(seed)")
        }
        #expect(sound > 1000)
    }

    @Test("Damaged tables give errors") func damagedTablesAreRefused() {
        for count in 0..<8 {
            let bytes = [UInt8](repeating: 0, count: count)
            #expect(throws: SymbolError.tableLength(count)) {
                try SymbolTable(decoding: bytes.span)
            }
        }
        let tooMany: [UInt8] = [200, 56, 0, 0, 0, 0, 0, 0] + [UInt8](repeating: 1, count: 312)
        #expect(throws: SymbolError.tooManySymbols(256)) {
            try SymbolTable(decoding: tooMany.span)
        }
        let short: [UInt8] = [2, 0, 0, 0, 0, 0, 0, 1, 65, 66, 1, 2, 3, 4, 5, 6, 7]
        #expect(throws: SymbolError.tableLength(17)) { try SymbolTable(decoding: short.span) }
        #expect(throws: SymbolError.tableLength(19)) {
            try SymbolTable(decoding: (short + [8, 9]).span)
        }
        #expect(throws: Never.self) { try SymbolTable(decoding: (short + [8]).span) }
    }
}
