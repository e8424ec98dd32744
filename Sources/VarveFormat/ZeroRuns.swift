// Runs of zeros in frames: found, and written as LZ4 blocks that have none.
//
// Invariants
// - A block that is made here is one that any LZ4 decoder restores. It has no run of more zeros
//   than `shortRun` and the few bytes of a length or an end, whatever the bytes are.
// - It is at most `count / 255 + 16` bytes longer than what it holds.

/// Zeros in a row.
enum ZeroRuns {
    /// Runs of at least so many zeros become matches.
    static let shortRun = 64

    /// Zeros at the front of `bytes`.
    static func leading(_ bytes: [UInt8]) -> Int {
        bytes.firstIndex { $0 != 0 } ?? bytes.count
    }

    /// Zeros at the end of `bytes`.
    static func trailing(_ bytes: [UInt8]) -> Int {
        var end = bytes.count
        while end > 0 && bytes[end - 1] == 0 { end -= 1 }
        return bytes.count - end
    }

    /// Whether `count` zeros stand in a row somewhere.
    /// - Complexity: O(n); one byte in `count / 2` is looked at where there are no zeros.
    static func hasRun(of count: Int, in bytes: [UInt8]) -> Bool {
        let step = count / 2
        precondition(step > 0, "a run has a length")
        // A run of that length covers a multiple of the step.
        var place = 0
        while place < bytes.count {
            if bytes[place] == 0 {
                var end = place
                while end < bytes.count && bytes[end] == 0 { end += 1 }
                var begin = place
                while begin > 0 && bytes[begin - 1] == 0 { begin -= 1 }
                if end - begin >= count { return true }
                place = max(place, end - end % step)
            }
            place += step
        }
        return false
    }

    /// The bytes as an LZ4 block in which only runs of zeros are matches.
    ///
    /// liblz4 looks at fewer and fewer places of bytes that do not compress, and may pass over a
    /// run of some hundred zeros; this does not.
    /// - Complexity: O(n).
    static func block(_ bytes: [UInt8]) -> [UInt8] {
        var writer = ByteWriter(capacity: bytes.count + bytes.count / 255 + 16)
        // The last five bytes of a block are literals, and no match begins in the last twelve.
        let lastMatchEnd = bytes.count - 5
        var literals = 0
        var place = 0
        while place < lastMatchEnd {
            guard bytes[place] == 0 else {
                place += 1
                continue
            }
            let start = place
            while place < lastMatchEnd && bytes[place] == 0 { place += 1 }
            guard place - start >= shortRun else { continue }
            // The first zero is a literal; the match repeats it.
            append(bytes[literals...start], match: place - start - 1, to: &writer)
            literals = place
        }
        append(bytes[literals...], match: nil, to: &writer)
        return writer.bytes
    }

    private static func append(
        _ literals: ArraySlice<UInt8>,
        match: Int?,
        to writer: inout ByteWriter
    ) {
        let length = match.map { $0 - 4 }
        let high = UInt8(min(literals.count, 15))
        writer.u8(high << 4 | UInt8(min(length ?? 0, 15)))
        if literals.count >= 15 { append(length: literals.count - 15, to: &writer) }
        writer.raw(literals)
        guard let length else { return }
        writer.u16(1)
        if length >= 15 { append(length: length - 15, to: &writer) }
    }

    private static func append(length: Int, to writer: inout ByteWriter) {
        for _ in 0..<(length / 255) { writer.u8(255) }
        writer.u8(UInt8(length % 255))
    }
}
