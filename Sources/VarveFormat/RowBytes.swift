// FENCE: rows in borrowed memory: checked loads, the walk over a row's tags, texts.
//
// Invariants
// - Every load compares its place with the span's size: no slot of another row leads outside.
// - The walk accepts exactly what Format.md ("Rows") allows; it reads each tag once and no body.

private import CVarve
import VarveBase

extension ByteReader {
    /// The byte at an index; a wrong index is a broken invariant.
    @inlinable @inline(__always)
    public static func load8(_ bytes: Span<UInt8>, _ at: Int) -> UInt8 {
        precondition(at >= 0 && at < bytes.count)
        // Inside the span by the line above.
        return unsafe bytes.bytes.unsafeLoad(fromUncheckedByteOffset: at, as: UInt8.self)
    }

    /// 2 little-endian bytes; a wrong index is a broken invariant.
    @inlinable @inline(__always)
    public static func load16(_ bytes: Span<UInt8>, _ at: Int) -> UInt16 {
        precondition(at >= 0 && at &+ 2 <= bytes.count)
        // Inside the span by the line above.
        return unsafe UInt16(
            littleEndian: bytes.bytes.unsafeLoadUnaligned(
                fromUncheckedByteOffset: at,
                as: UInt16.self
            )
        )
    }

    /// 4 little-endian bytes; a wrong index is a broken invariant.
    @inlinable @inline(__always)
    public static func load32(_ bytes: Span<UInt8>, _ at: Int) -> UInt32 {
        precondition(at >= 0 && at &+ 4 <= bytes.count)
        // Inside the span by the line above.
        return unsafe UInt32(
            littleEndian: bytes.bytes.unsafeLoadUnaligned(
                fromUncheckedByteOffset: at,
                as: UInt32.self
            )
        )
    }

    /// 8 little-endian bytes; a wrong index is a broken invariant.
    @inlinable @inline(__always)
    public static func load64(_ bytes: Span<UInt8>, _ at: Int) -> UInt64 {
        precondition(at >= 0 && at &+ 8 <= bytes.count)
        // Inside the span by the line above.
        return unsafe UInt64(
            littleEndian: bytes.bytes.unsafeLoadUnaligned(
                fromUncheckedByteOffset: at,
                as: UInt64.self
            )
        )
    }

    /// Validated UTF-8, or nil. The range must lie inside the span.
    public static func text(_ bytes: Span<UInt8>, _ range: Range<Int>) -> String? {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
        // The buffer lives for the closure; the string copies its bytes.
        return unsafe bytes.withUnsafeBytes { raw -> String? in
            let part = unsafe UnsafeRawBufferPointer(rebasing: raw[range])
                .assumingMemoryBound(to: UInt8.self)
            if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
                // A third of the time of the call below for texts of up to a hundred bytes.
                guard let text = unsafe try? UTF8Span(validating: part.span) else { return nil }
                return String(copying: text)
            }
            return unsafe String(validating: part, as: UTF8.self)
        }
    }

    /// Copies bytes out. The range must lie inside the span.
    public static func copy(_ bytes: Span<UInt8>, _ range: Range<Int>) -> [UInt8] {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
        // The buffer lives for the closure; the array copies its bytes.
        return unsafe bytes.withUnsafeBytes { unsafe Array($0[range]) }
    }

    /// Compares two byte strings as `memcmp` does, the shorter first when one begins the other.
    /// Less than 0, 0, more than 0.
    public static func compare(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Int {
        // Both buffers live for the closures and nothing keeps them.
        unsafe left.withUnsafeBytes { one in
            unsafe right.withUnsafeBytes { two in
                let common = min(one.count, two.count)
                var at = 0
                while at &+ 8 <= common {
                    let a = unsafe one.loadUnaligned(fromByteOffset: at, as: UInt64.self)
                    let b = unsafe two.loadUnaligned(fromByteOffset: at, as: UInt64.self)
                    if a != b { return a.bigEndian < b.bigEndian ? -1 : 1 }
                    at &+= 8
                }
                while at < common {
                    let a = unsafe one[at]
                    let b = unsafe two[at]
                    if a != b { return a < b ? -1 : 1 }
                    at &+= 1
                }
                return one.count - two.count
            }
        }
    }
}

extension RowLayout {
    /// Walks the tags of a row that fills a span; nil: damaged.
    static func walk(_ row: Span<UInt8>) -> RowLayout? {
        // The buffer lives for the closure; every index is compared with `end` before its load.
        unsafe row.withUnsafeBytes { raw -> RowLayout? in
            guard let base = raw.baseAddress, raw.count <= rowBytesMax else { return nil }
            let end = raw.count
            var at = 0
            guard let count = unsafe varint(base, &at, end), count <= RowCoding.columnsMax else {
                return nil
            }
            let tagsStart = at
            var total = 0
            // Facts of all tags: whether there was an unknown one is asked once.
            var facts: UInt32 = 0
            for _ in 0..<count {
                guard at < end else { return nil }
                let first = unsafe base.load(fromByteOffset: at, as: UInt8.self)
                if first < 0x80 {
                    at &+= 1
                    let one = varve_tag_facts(first)
                    facts |= one
                    // At most 264 bytes each, or 0x3FFF with the flag: no overflow.
                    total &+= Int(one & 0x3FFF)
                    continue
                }
                // A text or data of 48 to 8,175 bytes: two bytes, the second not 0.
                let next = at &+ 1
                let second = next < end ? unsafe base.load(fromByteOffset: next, as: UInt8.self) : 0
                if second > 0, second < 0x80 {
                    at &+= 2
                    let tag = UInt64(first & 0x7F) | UInt64(second) &<< 7
                    total &+= Int(truncatingIfNeeded: (tag &- RowTag.textBase) &>> 1)
                    continue
                }
                guard let tag = unsafe varint(base, &at, end) else { return nil }
                let size = RowTag.bodySize(tag)
                // A size from disk is no larger than the row before it is added: no overflow.
                guard size >= 0, size <= end else { return nil }
                total &+= size
            }
            if facts & UInt32(VARVE_TAG_UNKNOWN) != 0 { return nil }
            guard total == end &- at else { return nil }
            return RowLayout(
                columnCount: Int(truncatingIfNeeded: count),
                tagsStart: tagsStart,
                bodiesStart: at,
                holdsContentElsewhere: facts & UInt32(VARVE_TAG_ELSEWHERE) != 0
            )
        }
    }

    /// Finds a column by its number; one beyond the row's own columns is absent.
    /// - Complexity: O(columns in front of it).
    public func slot(at column: Int, in row: Span<UInt8>) -> RowSlot {
        guard column < columnCount else { return RowSlot(tag: RowTag.absent, offset: 0) }
        var (left, at, offset) = (column, tagsStart, bodiesStart)
        while true {
            let first = ByteReader.load8(row, at)
            at &+= 1
            if first < 0x80 {
                if left == 0 { return RowSlot(tag: UInt64(first), offset: offset) }
                offset &+= Int(varve_tag_facts(first) & 0x3FFF)
            } else {
                let tag = Self.longTag(first, in: row, &at)
                if left == 0 { return RowSlot(tag: tag, offset: offset) }
                // A tag of more than one byte is that of a text or data.
                offset &+= Int(truncatingIfNeeded: (tag &- RowTag.textBase) &>> 1)
            }
            left &-= 1
        }
    }

    /// A varint in its shortest form; nil: none before `end`.
    @inline(__always)
    private static func varint(_ base: UnsafeRawPointer, _ at: inout Int, _ end: Int) -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while at < end {
            let byte = UInt64(unsafe base.load(fromByteOffset: at, as: UInt8.self))
            at &+= 1
            if shift == 63, byte > 1 { return nil }
            value |= (byte & 0x7F) &<< shift
            if byte < 0x80 { return byte == 0 && shift != 0 ? nil : value }
            shift &+= 7
        }
        return nil
    }
}
