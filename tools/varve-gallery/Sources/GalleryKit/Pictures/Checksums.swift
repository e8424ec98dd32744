/// CRC-32 as PNG chunks carry it (ISO 3309, polynomial 0xEDB88320, reflected).
package struct CRC32 {
    private static let table: [UInt32] = (0..<256).map { index in
        var value = UInt32(index)
        for _ in 0..<8 { value = value & 1 == 1 ? 0xedb8_8320 ^ (value >> 1) : value >> 1 }
        return value
    }

    private var state: UInt32 = 0xffff_ffff

    package init() {}

    /// The checksum of everything taken in so far.
    package var value: UInt32 { ~state }

    package mutating func update(_ bytes: some Sequence<UInt8>) {
        let table = Self.table
        var state = state
        for byte in bytes {
            state = table[Int(UInt8(truncatingIfNeeded: state) ^ byte)] ^ (state >> 8)
        }
        self.state = state
    }
}

/// Adler-32 as the end of a zlib stream carries it (RFC 1950).
package struct Adler32 {
    private var low: UInt32 = 1
    private var high: UInt32 = 0

    package init() {}

    /// The checksum of everything taken in so far.
    package var value: UInt32 { high << 16 | low }

    package mutating func update(_ bytes: [UInt8]) {
        var low = low
        var high = high
        var start = 0
        // 5,552 is the most bytes whose sums still fit 32 bits before the division (RFC 1950).
        while start < bytes.count {
            let end = min(start + 5_552, bytes.count)
            for index in start..<end {
                low &+= UInt32(bytes[index])
                high &+= low
            }
            low %= 65_521
            high %= 65_521
            start = end
        }
        self.low = low
        self.high = high
    }
}
