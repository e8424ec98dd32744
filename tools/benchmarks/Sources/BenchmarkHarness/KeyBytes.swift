// Keys of indexes as bytes that compare in the order of their values: for peers that store bytes.
//
// Layout: the timestamp's ordered bits, 8 bytes big-endian, or the title and a zero; behind either
// the ID, 8 bytes big-endian.

#if canImport(Glibc)
public import Glibc
#elseif canImport(Darwin)
public import Darwin
#elseif canImport(Musl)
public import Musl
#endif

/// Makes index keys that `memcmp` orders, and reads their IDs.
public enum KeyBytes {
    /// Appends the key of a timestamp. With the ID `Int64.min` it stands before all its equals.
    public static func append(timestamp: Double, id: Int64, to bytes: inout [UInt8]) {
        append(ordered(timestamp), to: &bytes)
        append(ordered(id), to: &bytes)
    }

    /// Appends the key of a title.
    public static func append(title: String, id: Int64, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: title.utf8)
        bytes.append(0)
        append(ordered(id), to: &bytes)
    }

    /// Appends the key of a title that is given as UTF-8.
    public static func append(title: [UInt8], id: Int64, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: title)
        bytes.append(0)
        append(ordered(id), to: &bytes)
    }

    /// The order of two keys: negative, zero or positive.
    @inlinable public static func compare(
        _ left: UnsafeRawBufferPointer,
        _ right: UnsafeRawBufferPointer
    ) -> Int {
        guard let one = left.baseAddress, let other = right.baseAddress else {
            return left.count - right.count
        }
        let order = memcmp(one, other, min(left.count, right.count))
        return order == 0 ? left.count - right.count : Int(order)
    }

    /// Appends the key of a row.
    public static func append(id: Int64, to bytes: inout [UInt8]) {
        append(ordered(id), to: &bytes)
    }

    /// The ID in the last 8 bytes of any of these keys.
    @inlinable public static func trailingID(_ key: UnsafeRawBufferPointer) -> Int64 {
        let bits = key.loadUnaligned(fromByteOffset: key.count - 8, as: UInt64.self)
        return Int64(bitPattern: UInt64(bigEndian: bits) ^ 1 << 63)
    }

    /// The timestamp in the 8 bytes from an offset on.
    public static func timestamp(_ key: UnsafeRawBufferPointer, at offset: Int = 0) -> Double {
        let bits = UInt64(bigEndian: key.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        return Double(bitPattern: bits >> 63 == 1 ? bits ^ 1 << 63 : ~bits)
    }

    /// Bits whose unsigned order is the order of the numbers.
    private static func ordered(_ value: Double) -> UInt64 {
        let bits = value.bitPattern
        return bits >> 63 == 1 ? ~bits : bits | 1 << 63
    }

    private static func ordered(_ value: Int64) -> UInt64 { UInt64(bitPattern: value) ^ 1 << 63 }

    private static func append(_ word: UInt64, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: word.bigEndian) { bytes.append(contentsOf: $0) }
    }
}

/// The keys of an index in order, in one block of memory.
public struct SortedKeys {
    private var bytes: [UInt8] = []
    private var places: [Range<Int>] = []

    /// Keys of the timestamps of rows.
    public static func timestamps(_ items: [Item], prefix: [UInt8] = []) -> SortedKeys {
        SortedKeys(items, prefix) { KeyBytes.append(timestamp: $0.timestamp, id: $0.id, to: &$1) }
    }

    /// Keys of the titles of rows.
    public static func titles(_ items: [Item], prefix: [UInt8] = []) -> SortedKeys {
        SortedKeys(items, prefix) { KeyBytes.append(title: $0.title, id: $0.id, to: &$1) }
    }

    private init(
        _ items: [Item],
        _ prefix: [UInt8],
        _ append: (Item, inout [UInt8]) -> Void
    ) {
        bytes.reserveCapacity(items.count * (prefix.count + 32))
        places.reserveCapacity(items.count)
        for item in items {
            let start = bytes.count
            bytes.append(contentsOf: prefix)
            append(item, &bytes)
            places.append(start..<bytes.count)
        }
        bytes.withUnsafeBytes { all in
            places.sort { left, right in
                KeyBytes.compare(
                    UnsafeRawBufferPointer(rebasing: all[left]),
                    UnsafeRawBufferPointer(rebasing: all[right])
                ) < 0
            }
        }
    }

    /// Calls `body` with each key in order.
    public func forEach(_ body: (UnsafeRawBufferPointer) throws -> Void) rethrows {
        try bytes.withUnsafeBytes { all in
            for place in places { try body(UnsafeRawBufferPointer(rebasing: all[place])) }
        }
    }
}
