// A strict reader of PNG files for the tests.

import GalleryKit

/// A strict reader of the PNG files that the gallery writes: every length, checksum and block
/// header must be right.
struct PNG {
    struct Damage: Error {
        var what: String
        init(_ what: String) { self.what = what }
    }

    let chunks: [(type: String, content: [UInt8])]
    let width: Int
    let height: Int

    init(_ bytes: [UInt8]) throws {
        guard bytes.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) else {
            throw Damage("signature")
        }
        var chunks: [(type: String, content: [UInt8])] = []
        var position = 8
        while position < bytes.count {
            guard bytes.count - position >= 12 else { throw Damage("a chunk is cut off") }
            let length = Self.number(bytes[position..<(position + 4)])
            guard bytes.count - position - 12 >= length else { throw Damage("chunk length") }
            let content = position + 8
            var checksum = CRC32()
            checksum.update(bytes[(position + 4)..<(content + length)])
            let stored = Self.number(bytes[(content + length)..<(content + length + 4)])
            guard Int(checksum.value) == stored else { throw Damage("chunk checksum") }
            chunks.append(
                (
                    String(decoding: bytes[(position + 4)..<content], as: UTF8.self),
                    Array(bytes[content..<(content + length)])
                )
            )
            position = content + length + 4
        }
        guard let header = chunks.first, header.type == "IHDR", header.content.count == 13,
            Array(header.content[8...]) == [8, 2, 0, 0, 0]
        else { throw Damage("header") }
        self.chunks = chunks
        width = Self.number(header.content[0..<4])
        height = Self.number(header.content[4..<8])
    }

    /// The bytes of the zlib stream, which must be made of stored blocks.
    func inflatedStoredBlocks() throws -> [UInt8] {
        let stream = chunks.filter { $0.type == "IDAT" }.flatMap(\.content)
        guard stream.count > 6, (Int(stream[0]) << 8 | Int(stream[1])) % 31 == 0,
            stream[0] & 0x0f == 8
        else { throw Damage("zlib header") }
        var result: [UInt8] = []
        var position = 2
        var isLast = false
        while !isLast {
            guard position + 5 <= stream.count else { throw Damage("a block is cut off") }
            isLast = stream[position] & 1 == 1
            guard stream[position] & 0x06 == 0 else { throw Damage("block type") }
            let length = Int(stream[position + 1]) | Int(stream[position + 2]) << 8
            let complement = Int(stream[position + 3]) | Int(stream[position + 4]) << 8
            guard length ^ 0xffff == complement else { throw Damage("block length") }
            position += 5
            guard position + length <= stream.count else { throw Damage("a block is cut off") }
            result += stream[position..<(position + length)]
            position += length
        }
        guard stream.count - position == 4 else { throw Damage("bytes after the last block") }
        var checksum = Adler32()
        checksum.update(result)
        guard Int(checksum.value) == Self.number(stream[position...]) else {
            throw Damage("zlib checksum")
        }
        return result
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int {
        bytes.reduce(0) { $0 << 8 | Int($1) }
    }
}
