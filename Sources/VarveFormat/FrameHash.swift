// FENCE: the 64-bit hash of frames, pages and bodies: XXH64 (Format.md, "The hash").
//
// Invariants
// - Pure: equal bytes and seed give equal hashes on every platform, whatever the byte order.
// - Reads exactly the bytes it is given; no load depends on alignment.

/// XXH64 with a seed, as published by Yann Collet.
public enum FrameHash {
    /// Hashes all bytes of an array.
    /// - Complexity: O(n), about 25 GB/s.
    public static func xxh64(_ bytes: [UInt8], seed: UInt64 = 0) -> UInt64 {
        // The buffer lives for the length of the closure.
        unsafe bytes.withUnsafeBytes { unsafe hash($0, seed) }
    }

    /// Hashes the bytes of a slice, without copying them.
    public static func xxh64(_ bytes: ArraySlice<UInt8>, seed: UInt64 = 0) -> UInt64 {
        // The buffer lives for the length of the closure.
        unsafe bytes.withUnsafeBytes { unsafe hash($0, seed) }
    }

    /// Hashes a range of an array, without copying it. The range must lie inside the array.
    public static func xxh64(
        _ bytes: [UInt8],
        range: Range<Int>,
        seed: UInt64 = 0
    ) -> UInt64 {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
        // Inside the buffer by the line above.
        return unsafe bytes.withUnsafeBytes {
            unsafe hash(UnsafeRawBufferPointer(rebasing: $0[range]), seed)
        }
    }

    /// Hashes 32 bytes of an array as if bytes 12 to 15 of them were 0: a frame's header, whose own
    /// hash stands there. The range must lie inside the array.
    static func xxh64WithoutWord3(_ bytes: [UInt8], range: Range<Int>, seed: UInt64) -> UInt64 {
        precondition(range.count == 32)
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
        // Inside the buffer by the lines above.
        return unsafe bytes.withUnsafeBytes { all in
            let words = unsafe UnsafeRawBufferPointer(rebasing: all[range])
            let hash = unsafe join(
                round(seed &+ prime1 &+ prime2, load64(words, 0)),
                round(seed &+ prime2, load64(words, 8) & 0xFFFF_FFFF),
                round(seed, load64(words, 16)),
                round(seed &- prime1, load64(words, 24))
            )
            return avalanche(hash &+ 32)
        }
    }

    /// Adds one more hash to a running one: XXH64 of its 8 little-endian bytes, seeded with the
    /// hash so far.
    public static func combine(_ running: UInt64, with next: UInt64) -> UInt64 {
        avalanche(
            tail8(running &+ prime5 &+ 8, next)
        )
    }

    static let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
    static let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
    static let prime3: UInt64 = 0x1656_67B1_9E37_79F9
    static let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
    static let prime5: UInt64 = 0x27D4_EB2F_1656_67C5

    private static func hash(_ bytes: UnsafeRawBufferPointer, _ seed: UInt64) -> UInt64 {
        let count = bytes.count
        var at = 0
        var hash: UInt64
        if count >= 32 {
            var one = seed &+ prime1 &+ prime2
            var two = seed &+ prime2
            var three = seed
            var four = seed &- prime1
            let last = count - 32
            while at <= last {
                // at + 32 <= count.
                one = round(one, unsafe load64(bytes, at))
                two = round(two, unsafe load64(bytes, at + 8))
                three = round(three, unsafe load64(bytes, at + 16))
                four = round(four, unsafe load64(bytes, at + 24))
                at += 32
            }
            hash = join(one, two, three, four)
        } else {
            hash = seed &+ prime5
        }
        hash = hash &+ UInt64(count)
        while at + 8 <= count {
            hash = tail8(hash, unsafe load64(bytes, at))
            at += 8
        }
        if at + 4 <= count {
            // at + 4 <= count.
            let word = unsafe bytes.loadUnaligned(fromByteOffset: at, as: UInt32.self)
            hash ^= UInt64(UInt32(littleEndian: word)) &* prime1
            hash = rotate(hash, 23) &* prime2 &+ prime3
            at += 4
        }
        while at < count {
            hash ^= UInt64(unsafe bytes[at]) &* prime5
            hash = rotate(hash, 11) &* prime1
            at += 1
        }
        return avalanche(hash)
    }

    @inline(__always)
    private static func load64(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> UInt64 {
        // Callers stay inside the buffer.
        UInt64(littleEndian: unsafe bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self))
    }

    @inline(__always)
    private static func rotate(_ value: UInt64, _ bits: UInt64) -> UInt64 {
        value &<< bits | value &>> (64 &- bits)
    }

    @inline(__always)
    private static func round(_ lane: UInt64, _ input: UInt64) -> UInt64 {
        rotate(lane &+ input &* prime2, 31) &* prime1
    }

    @inline(__always)
    private static func merge(_ hash: UInt64, _ lane: UInt64) -> UInt64 {
        (hash ^ round(0, lane)) &* prime1 &+ prime4
    }

    @inline(__always)
    private static func join(
        _ one: UInt64,
        _ two: UInt64,
        _ three: UInt64,
        _ four: UInt64
    ) -> UInt64 {
        var hash = rotate(one, 1) &+ rotate(two, 7) &+ rotate(three, 12) &+ rotate(four, 18)
        hash = merge(hash, one)
        hash = merge(hash, two)
        hash = merge(hash, three)
        hash = merge(hash, four)
        return hash
    }

    @inline(__always)
    private static func tail8(_ hash: UInt64, _ input: UInt64) -> UInt64 {
        rotate(hash ^ round(0, input), 27) &* prime1 &+ prime4
    }

    @inline(__always)
    private static func avalanche(_ value: UInt64) -> UInt64 {
        var hash = value
        hash ^= hash &>> 33
        hash = hash &* prime2
        hash ^= hash &>> 29
        hash = hash &* prime3
        hash ^= hash &>> 32
        return hash
    }
}
