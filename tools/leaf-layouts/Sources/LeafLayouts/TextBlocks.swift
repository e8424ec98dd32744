// FENCE: what symbols and LZ4 make of pieces of a text, by the size of the pieces: for values that
// are too large for a row.

internal import CLZ4Blocks
internal import SymbolTables

/// What pieces of one size come to, as shares of their bytes.
public struct TextBlocks: Sendable {
    /// Bytes of a piece.
    public let size: Int
    /// With one symbol table for all pieces, without the table.
    public let symbols: Double
    /// With LZ4, each piece for itself.
    public let blocks: Double

    /// Measures pieces of 1, 4, 16 and 64 KiB of a text.
    public static func measure(_ text: [UInt8]) -> [TextBlocks] {
        var sample = SymbolSample()
        let step = max(256, text.count / 64)
        for start in stride(from: 0, to: text.count - 256, by: step) {
            sample.add(text.span.extracting(start..<start + 256))
        }
        let encoder = SymbolEncoder(SymbolTable(learningFrom: sample))
        return [1024, 4096, 16384, 65536].filter { $0 <= text.count }.map { size in
            var coded: [UInt8] = []
            var compressed = 0
            let count = text.count / size
            for piece in 0..<count {
                let range = piece * size..<(piece + 1) * size
                encoder.encode(text.span.extracting(range), into: &coded)
                compressed += compressedSize(text[range])
            }
            let bytes = Double(count * size)
            return TextBlocks(
                size: size,
                symbols: Double(coded.count) / bytes,
                blocks: Double(compressed) / bytes
            )
        }
    }

    private static func compressedSize(_ piece: ArraySlice<UInt8>) -> Int {
        var target = [UInt8](repeating: 0, count: 2 * piece.count)
        // LZ4 reads the piece and writes at most as much as it is told.
        return unsafe piece.withUnsafeBytes { from in
            unsafe target.withUnsafeMutableBytes { to in
                guard let from = from.baseAddress, let to = to.baseAddress else { return 0 }
                return unsafe Int(
                    LZ4_compress_default(
                        from.assumingMemoryBound(to: CChar.self),
                        to.assumingMemoryBound(to: CChar.self),
                        Int32(piece.count),
                        Int32(2 * piece.count)
                    )
                )
            }
        }
    }
}
