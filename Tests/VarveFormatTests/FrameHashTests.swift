// XXH64 against its published vectors.

import Testing
import VarveFormat

@Suite struct FrameHashTests {
    /// The buffer that the reference implementation's self-test hashes.
    private let sanityBuffer: [UInt8] = {
        var generator: UInt64 = 2_654_435_761
        return (0..<222).map { _ in
            defer { generator = generator &* 11_400_714_785_074_694_797 }
            return UInt8(generator >> 56)
        }
    }()

    @Test(
        arguments: [
            (0, 0, 0xEF46_DB37_51D8_E999), (0, 2_654_435_761, 0xAC75_FDA2_929B_17EF),
            (1, 0, 0xE934_A84A_DB05_2768), (1, 2_654_435_761, 0x5014_6076_43A9_B4C3),
            (4, 0, 0x9136_A0DC_A574_57EE),
            (14, 0, 0x8282_DCC4_994E_35C8), (14, 2_654_435_761, 0xC3BD_6BF6_3DEB_6DF0),
            (222, 0, 0xB641_AE8C_B691_C174), (222, 2_654_435_761, 0x20CB_8AB7_AE10_C14A),
        ] as [(Int, UInt64, UInt64)]
    )
    func matchesTheReferenceSelfTest(count: Int, seed: UInt64, hash: UInt64) {
        #expect(FrameHash.xxh64(sanityBuffer, range: 0..<count, seed: seed) == hash)
        #expect(FrameHash.xxh64(sanityBuffer[..<count], seed: seed) == hash)
        #expect(FrameHash.xxh64(Array(sanityBuffer[..<count]), seed: seed) == hash)
    }

    @Test(
        arguments: [
            ("a", 0xD24E_C4F1_A98C_6E5B), ("abc", 0x44BC_2CF5_AD77_0999),
            ("xxhash", 0x32DD_3895_2C4B_C720),
        ] as [(String, UInt64)]
    )
    func matchesKnownTexts(text: String, hash: UInt64) {
        #expect(FrameHash.xxh64(Array(text.utf8)) == hash)
    }

    @Test func aSeedMatters() {
        #expect(FrameHash.xxh64(Array("xxhash".utf8), seed: 20_141_025) == 0xB559_B98D_844E_0635)
    }

    @Test func rangesNeedNoAlignment() {
        let shifted = [7] + sanityBuffer + [7]
        for count in 0...222 {
            #expect(
                FrameHash.xxh64(shifted, range: 1..<count + 1)
                    == FrameHash.xxh64(sanityBuffer, range: 0..<count)
            )
        }
    }

    @Test func combiningIsHashingTheEightBytes() {
        for number: UInt64 in [0, 1, 0x0102_0304_0506_0708, .max] {
            var writer = ByteWriter()
            writer.u64(number)
            #expect(
                FrameHash.combine(99, with: number) == FrameHash.xxh64(writer.bytes, seed: 99)
            )
        }
    }
}
