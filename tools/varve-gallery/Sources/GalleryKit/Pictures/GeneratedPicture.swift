/// A picture of hills under a sky, made from a seed and written as a valid PNG of 1 to 3 MB.
///
/// The pixels stand in stored (uncompressed) zlib blocks, so that the size of the file is known
/// before the first byte, no compression library is needed and the bytes cost next to nothing to
/// make. One block holds whole rows of pixels and stands in one IDAT chunk; the picture is never in
/// memory as a whole.
package struct GeneratedPicture {
    package let width: Int
    package let height: Int

    private let scene: HillScene
    private let rowsPerBlock: Int
    private var bytesPerRow: Int { 1 + width * 3 }  // one filter byte, then RGB

    package init(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        width = Int.random(in: 700...1_100, using: &random)
        height = width * 3 / 4
        rowsPerBlock = 65_535 / (1 + width * 3)
        scene = HillScene(width: width, height: height, random: &random)
    }

    /// Length of the file in bytes.
    package var byteCount: Int {
        let blocks = (height + rowsPerBlock - 1) / rowsPerBlock
        let pixels = height * bytesPerRow + blocks * 5 + 2 + 4
        return PNGChunk.signature.count + (12 + 13) + (pixels + 12 * blocks) + 12
    }

    /// Writes the file piece by piece, each at most 64 KiB and a few bytes.
    package func write(_ consume: ([UInt8]) throws -> Void) rethrows {
        try consume(PNGChunk.signature)
        let header =
            PNGChunk.bigEndian(UInt32(width)) + PNGChunk.bigEndian(UInt32(height))
            + [8, 2, 0, 0, 0]  // 8 bits, RGB, deflate, adaptive filters, not interlaced
        try consume(PNGChunk.encoded("IHDR", header))

        var adler = Adler32()
        var top = 0
        while top < height {
            let bottom = min(top + rowsPerBlock, height)
            var pixels: [UInt8] = []
            pixels.reserveCapacity((bottom - top) * bytesPerRow)
            for row in top..<bottom {
                pixels.append(0)
                scene.appendRow(row, to: &pixels)
            }
            adler.update(pixels)

            var block: [UInt8] = []
            block.reserveCapacity(pixels.count + 16)
            if top == 0 { block += [0x78, 0x01] }  // zlib: deflate, 32 KiB window, fastest
            let length = UInt16(pixels.count)
            block.append(bottom == height ? 1 : 0)  // last block?  type 0: stored
            block += [UInt8(truncatingIfNeeded: length), UInt8(length >> 8)]
            block += [UInt8(truncatingIfNeeded: ~length), UInt8(~length >> 8)]
            block += pixels
            if bottom == height { block += PNGChunk.bigEndian(adler.value) }
            try consume(PNGChunk.encoded("IDAT", block))
            top = bottom
        }
        try consume(PNGChunk.encoded("IEND", []))
    }
}

/// The frame around every part of a PNG: length, type, bytes, checksum over type and bytes.
enum PNGChunk {
    static let signature: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]

    static func encoded(_ type: String, _ content: [UInt8]) -> [UInt8] {
        var chunk: [UInt8] = []
        chunk.reserveCapacity(content.count + 12)
        chunk += bigEndian(UInt32(content.count))
        chunk += Array(type.utf8)
        chunk += content
        var checksum = CRC32()
        checksum.update(chunk.dropFirst(4))
        chunk += bigEndian(checksum.value)
        return chunk
    }

    static func bigEndian(_ value: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }
}
