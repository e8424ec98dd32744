// The cursor: what the writer wrote comes back; what does not fit throws and moves nothing.

import Testing
import VarveFormat
import VarveTesting

@Suite struct ByteReaderTests {
    @Test func everythingWrittenIsRead() throws {
        var writer = ByteWriter()
        writer.u8(200)
        writer.u16(60_000)
        writer.u32(4_000_000_000)
        writer.u64(.max - 1)
        writer.i64(.min)
        writer.f32(-1.5)
        writer.f64(.pi)
        writer.varint(.max)
        writer.zigzag(.min)
        writer.sizedText("grün")
        writer.sizedBytes([1, 2])
        writer.align(16)
        #expect(writer.count % 16 == 0)
        writer.patch(UInt16.max.bigEndian == .max ? UInt32(7) : 0, at: 3)
        var reader = ByteReader(writer.bytes, place: "test")
        #expect(try reader.u8() == 200)
        #expect(try reader.u16() == 60_000)
        #expect(try reader.u32() == 7)
        #expect(try reader.u64() == .max - 1)
        #expect(try reader.i64() == .min)
        #expect(try reader.f32() == -1.5)
        #expect(try reader.f64() == .pi)
        #expect(try reader.varint() == .max)
        #expect(try reader.zigzag() == .min)
        #expect(try reader.sizedText(limit: 10) == "grün")
        #expect(try reader.sizedBytes(limit: 2) == [1, 2])
        try reader.skip(reader.remaining)
        try reader.finish()
    }

    @Test func varintsRoundTripInTheirShortestForm() throws {
        var random = SeededRandom(seed: 1)
        let edges = (0..<64).flatMap { [UInt64(1) << $0, (UInt64(1) << $0) - 1] }
        for number in edges + [.max] + (0..<2000).map({ _ in random.number() }) {
            var writer = ByteWriter()
            writer.varint(number)
            writer.zigzag(Int64(bitPattern: number))
            let bits = 64 - number.leadingZeroBitCount
            var reader = ByteReader(writer.bytes)
            #expect(try reader.varint() == number)
            #expect(reader.position == max(1, (bits + 6) / 7))
            #expect(try reader.zigzag() == Int64(bitPattern: number))
            #expect(reader.isAtEnd)
        }
    }

    @Test(
        arguments: [
            [], [0x80], [0x80, 0x00], [0xFF, 0x80, 0x00],
            [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02],
            [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x81, 0x00],
            [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
        ] as [[UInt8]]
    )
    func badVarintsThrowAndMoveNothing(bytes: [UInt8]) {
        var reader = ByteReader(bytes)
        #expect(throws: FormatError.self) { try reader.varint() }
        #expect(reader.position == 0)
    }

    @Test func shortReadsThrowAndMoveNothing() {
        let bytes: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8, 9]
        for end in 2...9 {
            var reader = ByteReader(bytes, range: 2..<end, place: "frame p@8")
            let left = end - 2
            if left < 8 { #expect(throws: FormatError.self) { try reader.u64() } }
            if left < 4 { #expect(throws: FormatError.self) { try reader.u32() } }
            if left < 2 { #expect(throws: FormatError.self) { try reader.u16() } }
            if left < 1 { #expect(throws: FormatError.self) { try reader.u8() } }
            #expect(throws: FormatError.self) { try reader.bytes(count: left + 1) }
            #expect(throws: FormatError.self) { try reader.bytes(count: -1) }
            #expect(throws: FormatError.self) { try reader.text(count: .max) }
            #expect(throws: FormatError.self) { try reader.skip(.max) }
            #expect(throws: FormatError.self) { try reader.part(count: left + 1) }
            #expect(reader.position == 2)
        }
    }

    @Test func aCountIsHeldToItsLimit() throws {
        var writer = ByteWriter()
        writer.varint(100)
        var reader = ByteReader(writer.bytes, place: "row")
        let error = #expect(throws: FormatError.self) { try reader.count("columns", limit: 99) }
        #expect(error?.description == "row: columns: found 100, expected at most 99")
        #expect(reader.position == 0)
        #expect(try reader.count(limit: 100) == 100)
        var huge = ByteWriter()
        huge.varint(.max)
        var hugeReader = ByteReader(huge.bytes)
        #expect(throws: FormatError.self) { try hugeReader.count(limit: .max) }
        #expect(throws: FormatError.self) { try hugeReader.sizedBytes(limit: .max) }
    }

    @Test func onlyValidTextIsText() throws {
        let bad: [[UInt8]] = [
            [0xFF], [0xC0, 0x80], [0xE2, 0x82], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80],
            Array("long enough to leave the small form".utf8) + [0x80],
        ]
        for bytes in bad {
            var reader = ByteReader(bytes)
            #expect(throws: FormatError.self) { try reader.text(count: bytes.count) }
            #expect(reader.position == 0)
        }
        for text in ["", "a", "ä€😀", String(repeating: "zwölf", count: 100), "\0"] {
            var reader = ByteReader(Array(text.utf8))
            #expect(try reader.text(count: text.utf8.count) == text)
        }
    }

    @Test func comparingIsLexicographic() {
        var random = SeededRandom(seed: 2)
        for round in 0..<3000 {
            let common = random.bytes(Int.random(in: 0..<20, using: &random))
            let left = common + random.bytes(Int.random(in: 0..<4, using: &random))
            let right = common + random.bytes(Int.random(in: 0..<4, using: &random))
            let sign = ByteReader.compare(left, right)
            #expect((sign < 0) == left.lexicographicallyPrecedes(right), "seed 2, round \(round)")
            #expect((sign == 0) == (left == right), "seed 2, round \(round)")
        }
    }
}
