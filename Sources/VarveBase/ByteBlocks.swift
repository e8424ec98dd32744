// Blocks of bytes in arrays, copied and searched as blocks.
//
// Invariants
// - Ranges are checked against the arrays before memory is touched.
//
// Unoptimised builds, which tests are, go through arrays element by element otherwise: a hundred
// times slower where megabytes are moved.

extension Array where Element == UInt8 {
    /// Writes a part of another array over the elements from `start` on. O(count).
    package mutating func overwrite(at start: Int, with source: [UInt8], _ range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= source.count)
        precondition(start >= 0 && start + range.count <= count)
        unsafe source.withUnsafeBytes { source in
            unsafe withUnsafeMutableBytes { target in
                let part = unsafe UnsafeRawBufferPointer(rebasing: source[range])
                unsafe UnsafeMutableRawBufferPointer(rebasing: target[start...])
                    .copyMemory(from: part)
            }
        }
    }

    /// Bytes up to the last one that is not zero. O(trailing zeros).
    package var countWithoutTrailingZeros: Int {
        unsafe withUnsafeBytes { bytes in
            var end = bytes.count
            while end >= 8,
                unsafe bytes.loadUnaligned(fromByteOffset: end - 8, as: UInt64.self) == 0
            {
                end -= 8
            }
            while end > 0, unsafe bytes[end - 1] == 0 { end -= 1 }
            return end
        }
    }
}
