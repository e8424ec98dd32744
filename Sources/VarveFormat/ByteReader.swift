// FENCE: the only loads from raw memory: a bounded cursor over an array of bytes.
//
// Invariants
// - `position <= end <= bytes.count` always.
// - Every read checks what is left and throws; no input makes it trap.
// - A failed read leaves the position where it was.
// - Nothing is allocated except for `bytes`, `text` and errors. A count from disk is compared with
//   what is left before anything is allocated.

/// A cursor over bytes from disk. Integers are little-endian.
public struct ByteReader: Sendable {
    /// The array that is read.
    public let bytes: [UInt8]
    /// Index of the next byte to read.
    public private(set) var position: Int
    /// Index after the last byte that may be read.
    public let end: Int
    /// What errors call the place.
    public let place: FormatPlace

    /// Reads all of an array.
    public init(_ bytes: [UInt8], place: FormatPlace = "") {
        self.bytes = bytes
        position = 0
        end = bytes.count
        self.place = place
    }

    /// Reads a range of an array, which must lie inside it.
    public init(_ bytes: [UInt8], range: Range<Int>, place: FormatPlace = "") {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
        self.bytes = bytes
        position = range.lowerBound
        end = range.upperBound
        self.place = place
    }

    /// Bytes not yet read.
    public var remaining: Int { end &- position }
    /// Whether all bytes have been read.
    public var isAtEnd: Bool { position == end }

    /// Reads one byte.
    public mutating func u8(_ field: StaticString = "byte") throws(FormatError) -> UInt8 {
        guard position < end else { throw short(field, 1) }
        let value = ByteReader.load8(bytes, position)
        position &+= 1
        return value
    }

    /// Reads 2 bytes.
    public mutating func u16(_ field: StaticString = "u16") throws(FormatError) -> UInt16 {
        guard remaining >= 2 else { throw short(field, 2) }
        let value = ByteReader.load16(bytes, position)
        position &+= 2
        return value
    }

    /// Reads 4 bytes.
    public mutating func u32(_ field: StaticString = "u32") throws(FormatError) -> UInt32 {
        guard remaining >= 4 else { throw short(field, 4) }
        let value = ByteReader.load32(bytes, position)
        position &+= 4
        return value
    }

    /// Reads 8 bytes.
    public mutating func u64(_ field: StaticString = "u64") throws(FormatError) -> UInt64 {
        guard remaining >= 8 else { throw short(field, 8) }
        let value = ByteReader.load64(bytes, position)
        position &+= 8
        return value
    }

    /// Reads 8 bytes as a signed integer.
    public mutating func i64(_ field: StaticString = "i64") throws(FormatError) -> Int64 {
        Int64(bitPattern: try u64(field))
    }

    /// Reads 4 bytes as a float; every bit pattern is one.
    public mutating func f32(_ field: StaticString = "f32") throws(FormatError) -> Float {
        Float(bitPattern: try u32(field))
    }

    /// Reads 8 bytes as a double; every bit pattern is one.
    public mutating func f64(_ field: StaticString = "f64") throws(FormatError) -> Double {
        Double(bitPattern: try u64(field))
    }

    /// Reads an unsigned LEB128 number of 1 to 10 bytes in its shortest form.
    public mutating func varint(_ field: StaticString = "varint") throws(FormatError) -> UInt64 {
        if position < end {
            let first = ByteReader.load8(bytes, position)
            if first < 0x80 {
                position &+= 1
                return UInt64(first)
            }
        }
        return try longVarint(field)
    }

    /// Reads a varint and unfolds its sign: 0, -1, 1, -2, ...
    public mutating func zigzag(_ field: StaticString = "zigzag") throws(FormatError) -> Int64 {
        let folded = try varint(field)
        return Int64(bitPattern: folded &>> 1) ^ -Int64(bitPattern: folded & 1)
    }

    /// Reads a varint that is an `Int` no larger than `limit`: for counts and lengths.
    public mutating func count(
        _ field: StaticString = "count",
        limit: Int
    ) throws(FormatError) -> Int {
        let start = position
        let value = try varint(field)
        guard let count = Int(exactly: value), count <= limit else {
            position = start
            throw error(field, "\(value)", "at most \(limit)")
        }
        return count
    }

    /// Copies bytes out.
    public mutating func bytes(
        count: Int,
        _ field: StaticString = "bytes"
    ) throws(FormatError) -> [UInt8] {
        let range = try range(count: count, field)
        return Array(bytes[range])
    }

    /// Reads validated UTF-8.
    public mutating func text(
        count: Int,
        _ field: StaticString = "text"
    ) throws(FormatError) -> String {
        let range = try range(count: count, field)
        guard let text = ByteReader.text(bytes, range) else {
            position = range.lowerBound
            throw error(field, "other bytes", "valid UTF-8")
        }
        return text
    }

    /// Reads a varint length of at most `limit`, then as many bytes.
    public mutating func sizedBytes(
        _ field: StaticString = "bytes",
        limit: Int
    ) throws(FormatError) -> [UInt8] {
        let start = position
        let count = try count(field, limit: limit)
        do {
            return try bytes(count: count, field)
        } catch {
            position = start
            throw error
        }
    }

    /// Reads a varint length of at most `limit`, then as many bytes of validated UTF-8.
    public mutating func sizedText(
        _ field: StaticString = "text",
        limit: Int
    ) throws(FormatError) -> String {
        let start = position
        let count = try count(field, limit: limit)
        do {
            return try text(count: count, field)
        } catch {
            position = start
            throw error
        }
    }

    /// Passes over bytes and returns where they lie in `bytes`.
    public mutating func range(
        count: Int,
        _ field: StaticString = "bytes"
    ) throws(FormatError) -> Range<Int> {
        guard count >= 0, count <= remaining else { throw short(field, count) }
        let start = position
        position = start &+ count
        return start..<position
    }

    /// Passes over bytes.
    public mutating func skip(
        _ count: Int,
        _ field: StaticString = "bytes"
    ) throws(FormatError) {
        guard count >= 0, count <= remaining else { throw short(field, count) }
        position &+= count
    }

    /// A cursor over the next `count` bytes alone; this one passes over them.
    public mutating func part(
        count: Int,
        _ field: StaticString = "part"
    ) throws(FormatError) -> ByteReader {
        ByteReader(bytes, range: try range(count: count, field), place: place)
    }

    /// Throws unless all bytes have been read.
    public func finish(_ field: StaticString = "end") throws(FormatError) {
        if position != end { throw error(field, "\(remaining) more bytes", "the end") }
    }

    /// An error at this reader's place.
    @inline(never)
    public func error(
        _ field: StaticString,
        _ found: String,
        _ expected: String
    ) -> FormatError {
        FormatError(place: place, field: "\(field)", found: found, expected: expected)
    }

    @inline(never)
    private func short(_ field: StaticString, _ count: Int) -> FormatError {
        error(field, "\(remaining) bytes left", "\(count)")
    }

    @inline(never)
    private mutating func longVarint(_ field: StaticString) throws(FormatError) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        var at = position
        while at < end {
            let byte = ByteReader.load8(bytes, at)
            at &+= 1
            if shift == 63, byte > 1 { throw error(field, "more than 64 bits", "a varint") }
            value |= UInt64(byte & 0x7F) &<< shift
            if byte < 0x80 {
                guard byte != 0 || shift == 0 else {
                    throw error(field, "a padded varint", "its shortest form")
                }
                position = at
                return value
            }
            shift &+= 7
        }
        throw error(field, "a cut varint", "its last byte")
    }
}

// MARK: - Loads

extension ByteReader {
    /// The byte at an index that the caller has checked; a wrong index is a broken invariant.
    @inlinable @inline(__always)
    public static func load8(_ bytes: [UInt8], _ at: Int) -> UInt8 { bytes[at] }

    /// 2 little-endian bytes at an index that the caller has checked.
    @inlinable @inline(__always)
    public static func load16(_ bytes: [UInt8], _ at: Int) -> UInt16 {
        precondition(at >= 0 && at &+ 2 <= bytes.count)
        // Inside the buffer by the line above.
        return UInt16(
            littleEndian: unsafe bytes.withUnsafeBytes {
                unsafe $0.loadUnaligned(fromByteOffset: at, as: UInt16.self)
            }
        )
    }

    /// 4 little-endian bytes at an index that the caller has checked.
    @inlinable @inline(__always)
    public static func load32(_ bytes: [UInt8], _ at: Int) -> UInt32 {
        precondition(at >= 0 && at &+ 4 <= bytes.count)
        // Inside the buffer by the line above.
        return UInt32(
            littleEndian: unsafe bytes.withUnsafeBytes {
                unsafe $0.loadUnaligned(fromByteOffset: at, as: UInt32.self)
            }
        )
    }

    /// 8 little-endian bytes at an index that the caller has checked.
    @inlinable @inline(__always)
    public static func load64(_ bytes: [UInt8], _ at: Int) -> UInt64 {
        precondition(at >= 0 && at &+ 8 <= bytes.count)
        // Inside the buffer by the line above.
        return UInt64(
            littleEndian: unsafe bytes.withUnsafeBytes {
                unsafe $0.loadUnaligned(fromByteOffset: at, as: UInt64.self)
            }
        )
    }

    /// 8 big-endian bytes at an index that the caller has checked.
    @inlinable @inline(__always)
    public static func loadBigEndian64(_ bytes: [UInt8], _ at: Int) -> UInt64 {
        load64(bytes, at).byteSwapped
    }

    /// Validated UTF-8, or nil. The range must lie inside the array.
    public static func text(_ bytes: [UInt8], _ range: Range<Int>) -> String? {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
        if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            // A third of the time of the call below for texts of up to a hundred bytes.
            guard let text = try? UTF8Span(validating: bytes.span.extracting(range)) else {
                return nil
            }
            return String(copying: text)
        }
        // Inside the buffer by the line above; the string copies the bytes.
        return unsafe bytes.withUnsafeBufferPointer {
            unsafe String(
                validating: UnsafeBufferPointer(rebasing: $0[range]),
                as: UTF8.self
            )
        }
    }

    /// Compares two byte strings as `memcmp` does, the shorter first when one begins the other.
    /// Both ranges must lie inside their arrays. Less than 0, 0, more than 0.
    public static func compare(
        _ left: [UInt8],
        _ leftRange: Range<Int>,
        _ right: [UInt8],
        _ rightRange: Range<Int>
    ) -> Int {
        let common = min(leftRange.count, rightRange.count)
        var at = 0
        while at &+ 8 <= common {
            let one = loadBigEndian64(left, leftRange.lowerBound &+ at)
            let two = loadBigEndian64(right, rightRange.lowerBound &+ at)
            if one != two { return one < two ? -1 : 1 }
            at &+= 8
        }
        while at < common {
            let one = left[leftRange.lowerBound &+ at]
            let two = right[rightRange.lowerBound &+ at]
            if one != two { return one < two ? -1 : 1 }
            at &+= 1
        }
        return leftRange.count - rightRange.count
    }

    /// Compares two whole byte strings.
    public static func compare(_ left: [UInt8], _ right: [UInt8]) -> Int {
        compare(left, 0..<left.count, right, 0..<right.count)
    }

    /// First 8 bytes of a key as a big-endian number, zeros after a shorter key: keys whose heads
    /// differ are ordered as these are.
    public static func keyHead(_ key: [UInt8]) -> UInt64 { keyHead(key, key.indices) }

    /// The same of a key that stands in `bytes`.
    public static func keyHead(_ bytes: [UInt8], _ key: Range<Int>) -> UInt64 {
        if key.count >= 8 { return loadBigEndian64(bytes, key.lowerBound) }
        var head: UInt64 = 0
        for index in 0..<key.count {
            head |= UInt64(bytes[key.lowerBound + index]) << UInt64(56 - 8 * index)
        }
        return head
    }
}
