// Generated pictures are valid PNGs of the promised size.

import GalleryKit
import Testing

@Suite("Generated pictures") struct PictureTests {
    @Test("The checksums give the published values") func checksumsAreRight() {
        var crc = CRC32()
        crc.update(Array("123456789".utf8))
        #expect(crc.value == 0xcbf4_3926)
        var adler = Adler32()
        adler.update(Array("Wikipedia".utf8))
        #expect(adler.value == 0x11e6_0398)
        var long = Adler32()
        long.update([UInt8](repeating: 255, count: 1_000_000))
        #expect(long.value == Self.slowAdler([UInt8](repeating: 255, count: 1_000_000)))
    }

    @Test("A picture is a valid PNG to the last byte", arguments: [0, 1, 99])
    func picturesAreValid(seed: Int) throws {
        let picture = GeneratedPicture(seed: UInt64(seed))
        let png = try PNG(bytes(of: picture))
        #expect(png.chunks.map(\.type).first == "IHDR")
        #expect(png.chunks.map(\.type).last == "IEND")
        #expect(png.width == picture.width)
        #expect(png.height == picture.height)
        let pixels = try png.inflatedStoredBlocks()
        #expect(pixels.count == png.height * (1 + 3 * png.width))
        #expect(Set(pixels).count > 20, "one flat colour is no picture")
    }

    @Test("Every picture has 1 to 3 MB, and the size is known before the first byte")
    func sizesAreInRange() {
        for seed in 0..<100 {
            let size = GeneratedPicture(seed: UInt64(seed)).byteCount
            #expect((1_048_576...3_000_000).contains(size), "seed \(seed): \(size)")
        }
        let picture = GeneratedPicture(seed: 7)
        #expect(bytes(of: picture).count == picture.byteCount)
    }

    @Test("A seed gives the same picture again, another seed another one") func seedsDecide() {
        #expect(bytes(of: GeneratedPicture(seed: 3)) == bytes(of: GeneratedPicture(seed: 3)))
        #expect(bytes(of: GeneratedPicture(seed: 3)) != bytes(of: GeneratedPicture(seed: 4)))
    }

    @Test("No piece is longer than one block and its frame") func piecesAreSmall() {
        GeneratedPicture(seed: 5).write { #expect($0.count <= 65_535 + 23) }
    }

    private func bytes(of picture: GeneratedPicture) -> [UInt8] {
        var bytes: [UInt8] = []
        picture.write { bytes += $0 }
        return bytes
    }

    private static func slowAdler(_ bytes: [UInt8]) -> UInt32 {
        var low: UInt64 = 1
        var high: UInt64 = 0
        for byte in bytes {
            low = (low + UInt64(byte)) % 65_521
            high = (high + low) % 65_521
        }
        return UInt32(high << 16 | low)
    }
}
