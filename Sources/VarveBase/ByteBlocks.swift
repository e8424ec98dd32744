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

    /// Whether another array, written over the elements from `start` on as far as there are such,
    /// would change zeros only. O(count).
    package func changesZerosOnly(by other: [UInt8], at start: Int) -> Bool {
        precondition(start >= 0)
        let length = Swift.min(count - start, other.count)
        if length <= 0 { return true }
        return unsafe withUnsafeBytes { old in
            unsafe other.withUnsafeBytes { new in
                var place = 0
                while place < length {
                    let width = length - place >= 8 ? 8 : 1
                    if width == 8 {
                        let word = unsafe old.loadUnaligned(
                            fromByteOffset: start + place,
                            as: UInt64.self
                        )
                        let isSame =
                            unsafe word == 0
                            || word == new.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                        if isSame {
                            place += 8
                            continue
                        }
                    }
                    for byte in place..<place + width {
                        let old = unsafe old[start + byte]
                        if unsafe old != 0 && old != new[byte] { return false }
                    }
                    place += width
                }
                return true
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
