// FENCE: the only file that imports CLZ4.
//
// Invariants
// - Compression is a pure function of the bytes (of one liblz4).
// - Decompression never writes beyond `rawLength` and never returns fewer bytes.
// - A claimed length is refused before anything is allocated when it is over the caller's limit or
//   over what LZ4 could ever make of the stored bytes (255 for 1, and some).

import CLZ4

/// LZ4 blocks without a frame: the length stands elsewhere.
public enum BlockCompression {
    /// The most bytes one block may hold: LZ4's own limit.
    public static let rawBytesMax = 0x7E00_0000

    /// Compresses a range, or returns nil if that saves less than an eighth.
    /// - Complexity: O(n); about 1 GB/s.
    public static func compress(
        _ bytes: [UInt8],
        range: Range<Int>? = nil
    ) -> [UInt8]? {
        let range = range ?? 0..<bytes.count
        return compress(
            bytes,
            range,
            capacity: range.count - (range.count + 7) / 8
        )
    }

    /// Compresses a range even if it grows; nil only above `rawBytesMax`.
    public static func compressAlways(
        _ bytes: [UInt8],
        range: Range<Int>? = nil
    ) -> [UInt8]? {
        let range = range ?? 0..<bytes.count
        guard range.count <= rawBytesMax else { return nil }
        let bound = Int(LZ4_compressBound(Int32(range.count)))
        return compress(bytes, range, capacity: bound)
    }

    /// Restores exactly `rawLength` bytes from a range.
    /// - Throws: `FormatError` when the length is over `limit` or impossible, or the block is
    ///   damaged.
    public static func decompress(
        _ bytes: [UInt8],
        range: Range<Int>,
        rawLength: Int,
        limit: Int,
        place: FormatPlace = "LZ4 block"
    ) throws(FormatError) -> [UInt8] {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
        guard range.count <= rawBytesMax else {
            throw FormatError(
                place: place,
                field: "stored length",
                found: "\(range.count)",
                expected: "at most \(rawBytesMax)"
            )
        }
        let ceiling = min(limit, rawBytesMax, range.count * 255 + 64)
        guard rawLength >= 0, rawLength <= ceiling else {
            throw FormatError(
                place: place,
                field: "raw length",
                found: "\(rawLength)",
                expected: "at most \(ceiling)"
            )
        }
        var written: Int32 = 0
        // LZ4 stays inside the stored range and inside the capacity it is told; the count of the
        // new array is at most what it reports as written.
        let raw = unsafe [UInt8](unsafeUninitializedCapacity: rawLength) { target, count in
            count = 0
            unsafe bytes.withUnsafeBytes { stored in
                let source = unsafe UnsafeRawBufferPointer(rebasing: stored[range])
                guard let from = source.baseAddress, let to = target.baseAddress else {
                    // No stored bytes, or an empty result: LZ4 writes one zero byte for nothing.
                    written = unsafe rawLength == 0 && source.elementsEqual([0]) ? 0 : -1
                    return
                }
                written = unsafe LZ4_decompress_safe(
                    from.assumingMemoryBound(to: CChar.self),
                    UnsafeMutableRawPointer(to).assumingMemoryBound(to: CChar.self),
                    Int32(source.count),
                    Int32(rawLength)
                )
            }
            if written > 0 { count = Int(written) }
        }
        guard Int(written) == rawLength, raw.count == rawLength else {
            throw FormatError(
                place: place,
                field: "LZ4 block",
                found: "damage",
                expected: "\(rawLength) bytes"
            )
        }
        return raw
    }

    /// Restores a block into memory of the caller's; whether it gave exactly as many bytes.
    /// - Complexity: O(n); about 3 GB/s.
    @unsafe public static func decompress(
        _ stored: UnsafeRawBufferPointer,
        into target: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard let from = stored.baseAddress, let to = target.baseAddress,
            stored.count <= rawBytesMax, target.count <= rawBytesMax
        else { return false }
        // LZ4 stays inside the stored bytes and inside the capacity it is told.
        let written = unsafe LZ4_decompress_safe(
            from.assumingMemoryBound(to: CChar.self),
            to.assumingMemoryBound(to: CChar.self),
            Int32(stored.count),
            Int32(target.count)
        )
        return Int(written) == target.count
    }

    private static func compress(
        _ bytes: [UInt8],
        _ range: Range<Int>,
        capacity: Int
    ) -> [UInt8]? {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
        guard capacity > 0, range.count <= rawBytesMax else { return nil }
        // LZ4 reads the source range and writes at most the capacity it is told.
        let stored = unsafe [UInt8](unsafeUninitializedCapacity: capacity) { target, count in
            count = 0
            unsafe bytes.withUnsafeBytes { raw in
                let source = unsafe UnsafeRawBufferPointer(rebasing: raw[range])
                guard let to = target.baseAddress else { return }
                var nothing: CChar = 0
                let written = unsafe withUnsafePointer(to: &nothing) { empty in
                    let from =
                        unsafe source.baseAddress?.assumingMemoryBound(to: CChar.self) ?? empty
                    let into = unsafe UnsafeMutableRawPointer(to)
                        .assumingMemoryBound(to: CChar.self)
                    return unsafe LZ4_compress_default(
                        from,
                        into,
                        Int32(source.count),
                        Int32(capacity)
                    )
                }
                if written > 0 { count = Int(written) }
            }
        }
        return stored.isEmpty ? nil : stored
    }
}
