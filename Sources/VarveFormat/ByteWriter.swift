// FENCE: the only stores to raw memory: bytes appended to an array.
//
// Invariants
// - The mirror of ByteReader: what one function here appends, its namesake there reads.
// - Integers are little-endian.

/// Builds an encoding. Integers are little-endian.
public struct ByteWriter: Sendable {
    /// All that has been written.
    public var bytes: [UInt8]

    /// Starts empty, with room for `capacity` bytes.
    public init(capacity: Int = 0) {
        bytes = []
        if capacity > 0 { bytes.reserveCapacity(capacity) }
    }

    /// Goes on after bytes that exist.
    public init(appendingTo bytes: consuming [UInt8]) {
        self.bytes = bytes
    }

    /// Bytes written so far.
    public var count: Int { bytes.count }

    /// Makes room for `count` more bytes. Room grows geometrically: any number of calls costs O(1)
    /// per byte, where `reserveCapacity` alone would copy everything at each of them.
    public mutating func reserve(_ count: Int) {
        let needed = bytes.count + count
        if needed > bytes.capacity { bytes.reserveCapacity(max(needed, 2 * bytes.capacity)) }
    }

    /// Appends one byte.
    public mutating func u8(_ value: UInt8) { bytes.append(value) }
    /// Appends 2 bytes.
    public mutating func u16(_ value: UInt16) { store(value.littleEndian) }
    /// Appends 4 bytes.
    public mutating func u32(_ value: UInt32) { store(value.littleEndian) }
    /// Appends 8 bytes.
    public mutating func u64(_ value: UInt64) { store(value.littleEndian) }
    /// Appends 8 bytes.
    public mutating func i64(_ value: Int64) { store(value.littleEndian) }
    /// Appends the 4 bytes of a float.
    public mutating func f32(_ value: Float) { u32(value.bitPattern) }
    /// Appends the 8 bytes of a double.
    public mutating func f64(_ value: Double) { u64(value.bitPattern) }
    /// Appends 8 bytes, most significant first.
    public mutating func bigEndian64(_ value: UInt64) { store(value.bigEndian) }

    /// Appends an unsigned LEB128 number in its shortest form, 1 to 10 bytes.
    public mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest &>>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    /// Bytes that `varint` appends, 1 to 10.
    @inline(__always)
    public static func varintSize(_ value: UInt64) -> Int {
        value < 0x80 ? 1 : (70 &- value.leadingZeroBitCount) / 7
    }

    /// Appends a count or length as a varint. It must not be negative.
    public mutating func count(_ value: Int) { varint(UInt64(value)) }

    /// Folds the sign into the lowest bit and appends a varint.
    public mutating func zigzag(_ value: Int64) {
        varint(UInt64(bitPattern: value &<< 1 ^ value &>> 63))
    }

    /// Appends bytes as they are.
    public mutating func raw(_ more: [UInt8]) { Self.append(more, more.indices, to: &bytes) }
    /// Appends bytes as they are.
    public mutating func raw(_ more: ArraySlice<UInt8>) { bytes.append(contentsOf: more) }
    /// Appends a range of bytes as they are. The range must lie inside them.
    public mutating func raw(_ more: [UInt8], _ range: Range<Int>) {
        Self.append(more, range, to: &bytes)
    }
    /// Appends a range of borrowed bytes as they are. The range must lie inside them.
    public mutating func raw(_ more: Span<UInt8>, _ range: Range<Int>) {
        Self.append(more, range, to: &bytes)
    }
    /// Appends UTF-8 without a length.
    public mutating func text(_ text: String) { bytes.append(contentsOf: text.utf8) }

    /// Appends a varint length, then the bytes.
    public mutating func sizedBytes(_ more: [UInt8]) {
        count(more.count)
        raw(more)
    }

    /// Appends a varint length, then the UTF-8.
    public mutating func sizedText(_ text: String) {
        count(text.utf8.count)
        self.text(text)
    }

    /// Appends zero bytes.
    public mutating func zeros(_ count: Int) {
        bytes.append(contentsOf: repeatElement(0, count: count))
    }

    /// Appends zeros until the count is a multiple of `alignment`, a power of two.
    public mutating func align(_ alignment: Int) {
        zeros((alignment - bytes.count & (alignment - 1)) & (alignment - 1))
    }

    /// Overwrites 4 bytes that have been written.
    public mutating func patch(_ value: UInt32, at: Int) { overwrite(value.littleEndian, at) }
    /// Overwrites 8 bytes that have been written.
    public mutating func patch(_ value: UInt64, at: Int) { overwrite(value.littleEndian, at) }

    /// Appends a range of bytes, which must lie inside theirs, to an array that is no writer.
    ///
    /// `append(contentsOf:)` of an array or a slice counts a reference to it, which for short keys
    /// and rows costs more than their bytes.
    @inline(__always)
    public static func append(_ more: [UInt8], _ range: Range<Int>, to bytes: inout [UInt8]) {
        precondition(range.lowerBound >= 0 && range.upperBound <= more.count)
        // The buffer lives for the closure; the array copies its bytes.
        unsafe more.withUnsafeBytes { source in
            unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: source[range]))
        }
    }

    /// The same of borrowed bytes.
    @inline(__always)
    public static func append(_ more: Span<UInt8>, _ range: Range<Int>, to bytes: inout [UInt8]) {
        precondition(range.lowerBound >= 0 && range.upperBound <= more.count)
        // The buffer lives for the closure; the array copies its bytes. A slice of the buffer would
        // be copied through an iterator.
        unsafe more.withUnsafeBytes { source in
            unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: source[range]))
        }
    }

    /// Appends 8 bytes, most significant first, to an array that is no writer.
    public static func appendBigEndian(_ value: UInt64, to bytes: inout [UInt8]) {
        // An integer has no padding; the array copies its bytes.
        unsafe withUnsafeBytes(of: value.bigEndian) { unsafe bytes.append(contentsOf: $0) }
    }

    @inline(__always)
    private mutating func store<T: FixedWidthInteger>(_ value: T) {
        // An integer has no padding; the array copies its bytes.
        unsafe withUnsafeBytes(of: value) { unsafe bytes.append(contentsOf: $0) }
    }

    private mutating func overwrite<T: FixedWidthInteger>(_ value: T, _ at: Int) {
        precondition(at >= 0 && at + MemoryLayout<T>.size <= bytes.count)
        // Inside the buffer by the line above.
        unsafe bytes.withUnsafeMutableBytes {
            unsafe $0.storeBytes(of: value, toByteOffset: at, as: T.self)
        }
    }
}
