// FENCE: rows in borrowed memory: checked loads, the walk over a row's tags, texts.
//
// Invariants
// - Every load compares its place with the span's size: no slot of another row leads outside.
// - The walk accepts exactly what Format.md ("Rows") allows; it reads each tag once and no body.

private import CVarve
public import VarveBase

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
            let units = unsafe part.assumingMemoryBound(to: UInt8.self)
            if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
                if part.count <= shortTextMax, unsafe isASCII(part) {
                    // ASCII is valid UTF-8.
                    return unsafe String(
                        copying: UTF8Span(unchecked: units.span, isKnownASCII: true)
                    )
                }
                // A third of the time of the call below for texts of up to a hundred bytes.
                guard let text = unsafe try? UTF8Span(validating: units.span) else { return nil }
                return String(copying: text)
            }
            return unsafe String(validating: units, as: UTF8.self)
        }
    }

    /// Texts that are looked through for ASCII first: what the standard library's check costs
    /// beside that is more than the look itself. Longer ones it looks through as fast.
    private static let shortTextMax = 256

    /// Whether all bytes are below 128.
    @inline(__always)
    private static func isASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let base = bytes.baseAddress else { return true }
        let count = bytes.count
        var bits: UInt64 = 0
        var at = 0
        // Each load ends at `count` at the latest.
        if count >= 8 {
            while at < count &- 8 {
                bits |= unsafe base.loadUnaligned(fromByteOffset: at, as: UInt64.self)
                at &+= 8
            }
            bits |= unsafe base.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
        } else {
            while at < count {
                bits |= UInt64(unsafe base.load(fromByteOffset: at, as: UInt8.self))
                at &+= 1
            }
        }
        return bits & 0x8080_8080_8080_8080 == 0
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
            guard let (columns, tagsStart) = unsafe number(base, 0, end),
                columns <= RowCoding.columnsMax
            else { return nil }
            var at = tagsStart
            var total = 0
            // Facts of all tags: whether there was an unknown one is asked once.
            var facts: UInt32 = 0
            var left = Int(truncatingIfNeeded: columns)
            while left > 0 {
                left &-= 1
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
                guard let (tag, behind) = unsafe varint(base, at, end) else { return nil }
                let size = RowTag.bodySize(tag)
                // A size from disk is no larger than the row before it is added: no overflow.
                guard size >= 0, size <= end else { return nil }
                total &+= size
                at = behind
            }
            if facts & UInt32(VARVE_TAG_UNKNOWN) != 0 { return nil }
            guard total == end &- at else { return nil }
            return RowLayout(
                columnCount: Int(truncatingIfNeeded: columns),
                tagsStart: tagsStart,
                bodiesStart: at,
                holdsContentElsewhere: facts & UInt32(VARVE_TAG_ELSEWHERE) != 0
            )
        }
    }

    /// Finds a column by its number; one beyond the row's own columns is absent.
    /// - Complexity: O(columns in front of it).
    public func slot(at column: Int, in row: Span<UInt8>) -> RowSlot { place(of: column, in: row) }

    /// The same, for who reads one value.
    @inline(__always)
    private func place(of column: Int, in row: Span<UInt8>) -> RowSlot {
        guard column < columnCount else { return RowSlot(tag: RowTag.absent, offset: 0) }
        var (at, offset) = (tagsStart, bodiesStart)
        for _ in 0..<column {
            let first = ByteReader.load8(row, at)
            at &+= 1
            if first < 0x80 {
                offset &+= Int(varve_tag_size(first))
            } else {
                // A tag of more than one byte is that of a text or data.
                let tag = Self.longTag(first, in: row, &at)
                offset &+= Int(truncatingIfNeeded: (tag &- RowTag.textBase) &>> 1)
            }
        }
        let first = ByteReader.load8(row, at)
        at &+= 1
        let tag = first < 0x80 ? UInt64(first) : Self.longTag(first, in: row, &at)
        return RowSlot(tag: tag, offset: offset)
    }

    /// A varint in its shortest form, mostly of one byte, and where it ends; nil: none before
    /// `end`.
    @inline(__always)
    private static func number(
        _ base: UnsafeRawPointer,
        _ at: Int,
        _ end: Int
    ) -> (value: UInt64, end: Int)? {
        guard at < end else { return nil }
        let first = unsafe base.load(fromByteOffset: at, as: UInt8.self)
        return first < 0x80 ? (UInt64(first), at &+ 1) : unsafe varint(base, at, end)
    }

    /// The same of any length. Apart from the walk, which keeps all that it counts in registers
    /// then.
    @inline(never)
    private static func varint(
        _ base: UnsafeRawPointer,
        _ start: Int,
        _ end: Int
    ) -> (value: UInt64, end: Int)? {
        var (value, shift, at): (UInt64, UInt64, Int) = (0, 0, start)
        while at < end {
            let byte = UInt64(unsafe base.load(fromByteOffset: at, as: UInt8.self))
            at &+= 1
            if shift == 63, byte > 1 { return nil }
            value |= (byte & 0x7F) &<< shift
            if byte < 0x80 { return byte == 0 && shift != 0 ? nil : (value, at) }
            shift &+= 7
        }
        return nil
    }
}

// MARK: - Values of one column

// What a property of an object costs: found and decoded in one call. Nil: absent or null.
extension RowLayout {
    /// Reads an integer.
    public func int(_ column: ColumnID, in row: Span<UInt8>) throws(FormatError) -> Int64? {
        let slot = place(of: Int(column.rawValue), in: row)
        return slot.tag < RowTag.false ? nil : try slot.int(in: row)
    }

    /// Reads a boolean.
    public func bool(_ column: ColumnID, in row: Span<UInt8>) throws(FormatError) -> Bool? {
        let slot = place(of: Int(column.rawValue), in: row)
        return slot.tag < RowTag.false ? nil : try slot.bool(in: row)
    }

    /// Reads a 64-bit float.
    public func double(_ column: ColumnID, in row: Span<UInt8>) throws(FormatError) -> Double? {
        let slot = place(of: Int(column.rawValue), in: row)
        return slot.tag < RowTag.false ? nil : try slot.double(in: row)
    }

    /// Reads a date: seconds since 2001-01-01 00:00:00 UTC.
    public func date(_ column: ColumnID, in row: Span<UInt8>) throws(FormatError) -> Double? {
        let slot = place(of: Int(column.rawValue), in: row)
        return slot.tag < RowTag.false ? nil : try slot.date(in: row)
    }

    /// Reads an object number.
    public func reference(
        _ column: ColumnID,
        in row: Span<UInt8>
    ) throws(FormatError) -> ObjectID? {
        let slot = place(of: Int(column.rawValue), in: row)
        return slot.tag < RowTag.false ? nil : try slot.reference(in: row)
    }

    /// Reads validated UTF-8; nil also where the text is kept outside the row, which is said.
    public func text(
        _ column: ColumnID,
        in row: Span<UInt8>,
        isOutside: inout Bool
    ) throws(FormatError) -> String? {
        let slot = place(of: Int(column.rawValue), in: row)
        if slot.tag < RowTag.false { return nil }
        isOutside = slot.isOutside
        return isOutside ? nil : try slot.text(in: row)
    }
}
