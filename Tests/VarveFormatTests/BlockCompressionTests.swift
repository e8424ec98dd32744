// LZ4 blocks: round trips, a block made by hand, bombs and damage.

import Testing
import VarveFormat
import VarveTesting

@Suite struct BlockCompressionTests {
    @Test func blocksRoundTrip() throws {
        var random = SeededRandom(seed: 3)
        for count in [1, 64, 100, 4096, 70_000] {
            let words = (0..<20).map { _ in random.bytes(6) }
            var raw: [UInt8] = []
            while raw.count < count { raw += random.pick(words) }
            let range = raw.count / 10..<raw.count
            let stored = try #require(
                BlockCompression.compressAlways(raw, range: range)
            )
            let again = try BlockCompression.decompress(
                [9] + stored + [9],
                range: 1..<stored.count + 1,
                rawLength: range.count,
                limit: range.count
            )
            #expect(again == Array(raw[range]))
            if let small = BlockCompression.compress(raw, range: range) {
                #expect(small.count <= range.count - (range.count + 7) / 8)
            }
        }
    }

    @Test func aBlockWithoutGainIsNil() {
        var random = SeededRandom(seed: 4)
        #expect(BlockCompression.compress(random.bytes(4096)) == nil)
        #expect(BlockCompression.compress([]) == nil)
        #expect(BlockCompression.compress([1]) == nil)
        #expect(BlockCompression.compress([UInt8](repeating: 0, count: 4096)) != nil)
    }

    @Test func aBlockMadeByHandDecodes() throws {
        // 3 literals "abc", then a match of 9 at distance 3, then 5 literals "12345".
        let block: [UInt8] = [0x35, 0x61, 0x62, 0x63, 3, 0, 0x50, 0x31, 0x32, 0x33, 0x34, 0x35]
        let raw = try BlockCompression.decompress(
            block,
            range: 0..<block.count,
            rawLength: 17,
            limit: 17
        )
        #expect(String(decoding: raw, as: UTF8.self) == "abcabcabcabc12345")
    }

    @Test func theEmptyBlockIsOneZeroByte() throws {
        let stored = try #require(BlockCompression.compressAlways([]))
        #expect(stored == [0])
        #expect(
            try BlockCompression.decompress(stored, range: 0..<1, rawLength: 0, limit: 9) == []
        )
        #expect(throws: FormatError.self) {
            try BlockCompression.decompress([], range: 0..<0, rawLength: 0, limit: 9)
        }
        #expect(throws: FormatError.self) {
            try BlockCompression.decompress([], range: 0..<0, rawLength: 5, limit: 9)
        }
    }

    @Test func bombsAreRefusedBeforeAnythingIsAllocated() throws {
        let zeros = [UInt8](repeating: 0, count: 1 << 20)
        let stored = try #require(BlockCompression.compress(zeros))
        let all = 0..<stored.count
        for claim in [zeros.count - 1, zeros.count + 1, 0, -1, .max, 1 << 40] {
            #expect(throws: FormatError.self) {
                try BlockCompression.decompress(stored, range: all, rawLength: claim, limit: .max)
            }
        }
        #expect(throws: FormatError.self) {
            try BlockCompression.decompress(
                stored,
                range: all,
                rawLength: zeros.count,
                limit: zeros.count - 1
            )
        }
        // 10 bytes cannot become a gigabyte.
        #expect(throws: FormatError.self) {
            try BlockCompression.decompress(
                stored,
                range: 0..<10,
                rawLength: 1 << 30,
                limit: 1 << 30
            )
        }
    }

    @Test func damageIsAnErrorOrOtherBytesButNeverATrap() throws {
        let seed: UInt64 = 5
        var random = SeededRandom(seed: seed)
        let raw = Array(String(repeating: "layer upon layer, ", count: 60).utf8)
        let stored = try #require(BlockCompression.compress(raw))
        for _ in 0..<5000 {
            var bytes = stored
            if Bool.random(using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8(
                    truncatingIfNeeded: random.next()
                )
            } else {
                bytes = random.bytes(Int.random(in: 0..<60, using: &random))
            }
            let length = Bool.random(using: &random) ? raw.count : Int(random.next() >> 52)
            let result = try? BlockCompression.decompress(
                bytes,
                range: 0..<bytes.count,
                rawLength: length,
                limit: 1 << 16
            )
            if let result { #expect(result.count == length, "seed \(seed)") }
        }
    }
}
