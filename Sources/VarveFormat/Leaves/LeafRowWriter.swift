// FENCE: writes a packed row: tags into memory of their own, bodies where they most likely belong.
//
// Invariants
// - Bodies end at `limit` or before it, behind which there are 8 bytes that may be overwritten.
// - A tag takes at most 3 bytes, as a body has at most `PackedLeaf.rowBytesLimit` bytes; the tags'
//   memory holds 3 bytes for each column, and 8 more.

/// A packed row that is written.
@safe struct LeafRowWriter {
    private let target: UnsafeMutableRawPointer
    private let tags: UnsafeMutableRawPointer
    private let headLeast: Int
    private let limit: Int
    private var tagBytes = 0
    private var columns = 0
    private var end: Int

    @inline(__always)
    init(
        _ target: UnsafeMutableRawPointer,
        _ tags: UnsafeMutableRawPointer,
        _ headLeast: Int,
        _ limit: Int
    ) {
        unsafe self.target = target
        unsafe self.tags = tags
        self.headLeast = headLeast
        self.limit = limit
        end = headLeast
    }

    /// Adds a tag of one byte.
    @inline(__always)
    mutating func tag(_ tag: UInt64) {
        // Each column has one tag, so there is room.
        unsafe tags.storeBytes(
            of: UInt8(truncatingIfNeeded: tag),
            toByteOffset: tagBytes,
            as: UInt8.self
        )
        tagBytes &+= 1
        columns &+= 1
    }

    /// Adds columns that are not stored.
    @inline(__always)
    mutating func absent(_ count: Int) {
        var left = count
        while left > 0 {
            // Each column has a byte at least, and the memory has 8 more.
            unsafe tags.storeBytes(of: 0, toByteOffset: tagBytes, as: UInt64.self)
            let some = min(left, 8)
            tagBytes &+= some
            columns &+= some
            left &-= some
        }
    }

    /// Adds a tag below 2^21.
    @inline(__always)
    private mutating func longTag(_ tag: UInt64) {
        if tag < 0x80 { return self.tag(tag) }
        let isLong = tag >= 1 &<< 14
        var bytes = tag & 0x7F | 0x80 | (tag &>> 7 & 0x7F) &<< 8
        if isLong { bytes |= 0x8000 | (tag &>> 14) &<< 16 }
        // At most 3 bytes count, and the memory has 8 more.
        unsafe tags.storeBytes(
            of: UInt32(truncatingIfNeeded: bytes).littleEndian,
            toByteOffset: tagBytes,
            as: UInt32.self
        )
        tagBytes &+= isLong ? 3 : 2
        columns &+= 1
    }

    /// Adds a number of a type by its value or bits.
    @inline(__always)
    mutating func number(_ type: UInt64, _ integer: Int64) -> Bool {
        let word = UInt64(bitPattern: integer)
        switch type {
        case UInt64(LeafType.int.rawValue):
            if word <= 1 {
                tag(RowTag.zero &+ word)
                return true
            }
            // Bits that are not copies of the sign.
            let bits = 64 &- (integer ^ (integer &>> 63)).leadingZeroBitCount
            let size = (bits >= 8 ? 1 : 0) &+ (bits >= 16 ? 1 : 0) &+ (bits >= 32 ? 1 : 0)
            return add(RowTag.int8 &+ UInt64(truncatingIfNeeded: size), word, 1 &<< size)
        case UInt64(LeafType.bool.rawValue):
            tag(RowTag.false &+ (word & 1))
            return word <= 1
        case UInt64(LeafType.double.rawValue): return add(RowTag.double, word, 8)
        case UInt64(LeafType.date.rawValue): return add(RowTag.date, word, 8)
        case UInt64(LeafType.float.rawValue):
            return word >> 32 == 0 && add(RowTag.float, word, 4)
        default:
            let isShort = word >> 32 == 0
            return add(
                isShort ? RowTag.reference32 : RowTag.reference64,
                word,
                isShort ? 4 : 8
            )
        }
    }

    /// Adds a tag and a body of at most 8 bytes.
    @inline(__always)
    private mutating func add(_ tag: UInt64, _ word: UInt64, _ size: Int) -> Bool {
        if end &+ size > limit { return false }
        self.tag(tag)
        // At most at the limit, and 8 bytes more are there.
        unsafe target.storeBytes(of: word.littleEndian, toByteOffset: end, as: UInt64.self)
        end &+= size
        return true
    }

    /// Adds a UUID.
    @inline(__always)
    mutating func uuid(_ first: UInt64, _ second: UInt64) -> Bool {
        add(RowTag.uuid, first, 8) && addMore(second)
    }

    @inline(__always)
    private mutating func addMore(_ word: UInt64) -> Bool {
        if end &+ 8 > limit { return false }
        // As in `add`.
        unsafe target.storeBytes(of: word.littleEndian, toByteOffset: end, as: UInt64.self)
        end &+= 8
        return true
    }

    /// Adds a text or data.
    @inline(__always)
    mutating func bytes(_ type: UInt64, _ source: UnsafeRawPointer, _ count: Int) -> Bool {
        let kind = type == UInt64(LeafType.text.rawValue) ? RowTag.textBase : RowTag.dataBase
        return unsafe body(kind &+ 2 &* UInt64(truncatingIfNeeded: count), source, count)
    }

    /// Adds any tag with its body; 8 bytes behind the body may be read.
    @inline(__always)
    mutating func body(_ tag: UInt64, _ source: UnsafeRawPointer, _ count: Int) -> Bool {
        guard count >= 0, count <= limit &- end else { return false }
        longTag(tag)
        if count <= 32 {
            var at = 0
            while at < count {
                // Words that end at most 8 bytes behind the limit.
                unsafe target.storeBytes(
                    of: source.loadUnaligned(fromByteOffset: at, as: UInt64.self),
                    toByteOffset: end &+ at,
                    as: UInt64.self
                )
                at &+= 8
            }
        } else {
            // As many bytes are left.
            unsafe (target + end).copyMemory(from: source, byteCount: count)
        }
        end &+= count
        return true
    }

    /// Adds a text that is coded with a table.
    @inline(__always)
    mutating func coded(
        _ table: UnsafeRawPointer,
        _ source: UnsafeRawPointer,
        _ count: Int
    ) -> Bool {
        // What is left, and 8 bytes more.
        guard
            let length = unsafe SymbolMemory.decode(
                table,
                source,
                count,
                target + end,
                limit &- end
            )
        else { return false }
        longTag(RowTag.textBase &+ 2 &* UInt64(truncatingIfNeeded: length))
        end &+= length
        return true
    }

    /// Puts count and tags in front of the bodies; the length of the row, nil: it is too long.
    @inline(__always)
    mutating func finish() -> Int? {
        // Absent columns at the end are left out; no other tag ends in a zero.
        while tagBytes > 0,
            unsafe tags.load(fromByteOffset: tagBytes &- 1, as: UInt8.self) == 0
        {
            tagBytes &-= 1
            columns &-= 1
        }
        let countBytes = columns < 0x80 ? 1 : 2
        let head = countBytes &+ tagBytes
        let bodies = end &- headLeast
        guard head &+ bodies <= limit else { return nil }
        if head != headLeast {
            // Both lie in front of the limit.
            unsafe (target + head).copyMemory(from: target + headLeast, byteCount: bodies)
        }
        let count = UInt64(truncatingIfNeeded: columns)
        // The head has its room in front of the bodies.
        if countBytes == 1 {
            unsafe target.storeBytes(of: UInt8(truncatingIfNeeded: count), as: UInt8.self)
        } else {
            let bytes = UInt16(truncatingIfNeeded: count & 0x7F | 0x80 | (count &>> 7) &<< 8)
            unsafe target.storeBytes(of: bytes.littleEndian, as: UInt16.self)
        }
        unsafe (target + countBytes).copyMemory(from: tags, byteCount: tagBytes)
        return head &+ bodies
    }
}
