// FENCE: builds rows and patches: typed values set in any order, one block of memory for all rows.
//
// Invariants
// - One block: a table of columns, room for the longest head, then bodies in the order in which
//   they were set. `table` <= `bodies` <= `cursor` <= `capacity` always.
// - A column's entry is its tag and the place of its body; `unset` when it was not set since
//   `begin`.
// - Equal values give equal bytes, whatever order they were set in: the head is built at the end,
//   right in front of the bodies, and bodies that lie out of order are gathered after them.

public import VarveBase

/// What a row says of itself when it was encoded, so that nobody has to look for it again.
@frozen public struct RowFacts: Hashable, Sendable {
    /// Whether any column holds a blob.
    public var hasBlobs: Bool
    /// Bytes of the largest text or data; a value above the limit for rows has to be moved outside.
    public var largestBody: Int

    /// Joins the two.
    @inlinable
    public init(hasBlobs: Bool, largestBody: Int) {
        self.hasBlobs = hasBlobs
        self.largestBody = largestBody
    }
}

/// Builds rows one after another in one block of memory: `begin`, `set` in any order, then `encode`
/// or `withRow`. A row of seven columns costs about 50 ns and no allocation.
@safe public struct RowEncoder: ~Copyable {
    private struct Entry {
        var tag: UInt64
        var offset: Int
    }

    private static let unset = UInt64.max
    private static let entrySize = MemoryLayout<Entry>.stride

    private var base: UnsafeMutableRawPointer
    private var capacity: Int
    /// Columns that the table has room for.
    private var columnRoom: Int
    /// Columns of the present row.
    private var columnCount = 0
    /// Where bodies begin.
    private var bodies: Int
    private var cursor: Int
    /// The column set last; bodies are in order while it only grows.
    private var last = -1
    private var isOrdered = true
    private var hasBlobs = false
    private var largestBody = 0

    /// An encoder with room for rows of a few hundred bytes; it grows with what it is given.
    public init() {
        columnRoom = 16
        bodies = Self.bodiesStart(16)
        cursor = bodies
        capacity = bodies + 512
        unsafe base = .allocate(byteCount: capacity, alignment: 16)
    }

    deinit {
        // Allocated in `init` or `grow`, owned by this value alone.
        unsafe base.deallocate()
    }

    /// Table, then the longest head: column count, bitmap of a patch, tags of ten bytes.
    private static func bodiesStart(_ columns: Int) -> Int {
        (columns * entrySize + 2 + (columns + 7) / 8 + 10 * columns + 15) & ~15
    }

    /// Starts a row or patch of at most so many columns (`RowCoding.columnsMax`), none set.
    public mutating func begin(columns: Int) {
        if columns > columnRoom {
            precondition(columns <= RowCoding.columnsMax, "more columns than a row may have")
            columnRoom = columns
            bodies = Self.bodiesStart(columns)
            cursor = bodies
            if capacity < bodies + 512 {
                unsafe base.deallocate()
                capacity = bodies + 512
                unsafe base = .allocate(byteCount: capacity, alignment: 16)
            }
        }
        columnCount = columns
        cursor = bodies
        last = -1
        isOrdered = true
        hasBlobs = false
        largestBody = 0
        for column in 0..<columns {
            // The table has `columnRoom` entries, no fewer than `columns`.
            unsafe (base + column * Self.entrySize).storeBytes(of: Self.unset, as: UInt64.self)
        }
    }

    // MARK: Setting

    /// What stands in a column: a tag of `RowTag`; nil when it was not set.
    public func tag(_ column: Int) -> UInt64? {
        precondition(column >= 0 && column < columnCount)
        // An entry of the table by the line above.
        let tag = unsafe base.load(fromByteOffset: column * Self.entrySize, as: UInt64.self)
        return tag == Self.unset ? nil : tag
    }

    /// Whether no column was set since `begin`.
    public var isEmpty: Bool { last < 0 }

    /// The value set for a column; nil when there is none.
    public func value(_ column: Int) throws(FormatError) -> StoredValue? {
        guard let tag = tag(column) else { return nil }
        // The entry is in the table; its body lies before the cursor.
        let offset = unsafe base.load(fromByteOffset: column * Self.entrySize + 8, as: Int.self)
        let slot = RowSlot(tag: tag, offset: offset)
        let block = unsafe UnsafeRawBufferPointer(start: base, count: cursor)
        return try unsafe slot.value(in: block.assumingMemoryBound(to: UInt8.self).span)
    }

    /// Makes a column null.
    public mutating func setNull(_ column: Int) { note(column, RowTag.null) }

    /// Makes a column absent, so that its declared default applies.
    public mutating func setAbsent(_ column: Int) { note(column, RowTag.absent) }

    /// Sets a boolean.
    public mutating func set(_ column: Int, bool value: Bool) {
        note(column, value ? RowTag.true : RowTag.false)
    }

    /// Sets an integer, in its shortest form.
    public mutating func set(_ column: Int, int value: Int64) {
        let tag = RowTag.tag(of: value)
        // 8 bytes are written whatever the form; the next body begins after those that count.
        append(column, tag, value.littleEndian, RowTag.bodySize(tag))
    }

    /// Sets a 32-bit float.
    public mutating func set(_ column: Int, float value: Float) {
        append(column, RowTag.float, value.bitPattern.littleEndian, 4)
    }

    /// Sets a 64-bit float.
    public mutating func set(_ column: Int, double value: Double) {
        append(column, RowTag.double, value.bitPattern.littleEndian, 8)
    }

    /// Sets a date: seconds since 2001-01-01 00:00:00 UTC.
    public mutating func set(_ column: Int, date value: Double) {
        append(column, RowTag.date, value.bitPattern.littleEndian, 8)
    }

    /// Sets a UUID.
    public mutating func set(_ column: Int, uuid value: UUIDValue) {
        append(column, RowTag.uuid, (value.high.bigEndian, value.low.bigEndian), 16)
    }

    /// Sets an object number.
    public mutating func set(_ column: Int, reference value: ObjectID) {
        let isShort = value.rawValue <= UInt64(UInt32.max)
        append(
            column,
            isShort ? RowTag.reference32 : RowTag.reference64,
            value.rawValue.littleEndian,
            isShort ? 4 : 8
        )
    }

    /// Sets a blob.
    public mutating func set(_ column: Int, blob value: BlobReference) {
        let (first, second, third, fourth) = value.digest.words
        hasBlobs = true
        append(
            column,
            RowTag.blob,
            (
                first.bigEndian, second.bigEndian, third.bigEndian, fourth.bigEndian,
                value.length.littleEndian
            ),
            40
        )
    }

    /// Sets a text. A native string's UTF-8 is copied as it lies.
    @inline(__always)
    public mutating func set(_ column: Int, text value: String) {
        // The buffer lives for the call; its bytes are copied.
        let isSet: Void? = unsafe value.utf8.withContiguousStorageIfAvailable {
            unsafe setBytes(column, RowTag.textBase, UnsafeRawBufferPointer($0))
        }
        if isSet != nil { return }
        var native = value
        native.withUTF8 { unsafe setBytes(column, RowTag.textBase, UnsafeRawBufferPointer($0)) }
    }

    /// Sets data.
    public mutating func set(_ column: Int, data value: [UInt8]) {
        // The buffer lives for the call; its bytes are copied.
        unsafe value.withUnsafeBytes { unsafe setBytes(column, RowTag.dataBase, $0) }
    }

    /// Sets a canonical decimal.
    public mutating func set(_ column: Int, decimal value: DecimalValue) {
        precondition(value.isCanonical, "a decimal that is not canonical")
        let number = RowTag.number(of: value)
        let isShort = UInt64(exactly: number) != nil
        let size = isShort ? 11 : 19
        let at = room(for: 19)
        // `room` made place for the longer form.
        unsafe (base + at).storeBytes(of: value.isNegative ? 1 : 0, as: UInt8.self)
        unsafe (base + at + 1).storeBytes(of: value.exponent.littleEndian, as: Int16.self)
        unsafe (base + at + 3).storeBytes(
            of: UInt64(truncatingIfNeeded: number).littleEndian,
            as: UInt64.self
        )
        unsafe (base + at + 11).storeBytes(
            of: UInt64(truncatingIfNeeded: number >> 64).littleEndian,
            as: UInt64.self
        )
        note(column, isShort ? RowTag.decimal64 : RowTag.decimal128)
        cursor = at + size
    }

    /// Sets a value of any kind.
    public mutating func set(_ column: Int, _ value: StoredValue) {
        switch value {
        case .null: setNull(column)
        case .bool(let value): set(column, bool: value)
        case .int(let value): set(column, int: value)
        case .float(let value): set(column, float: value)
        case .double(let value): set(column, double: value)
        case .date(let value): set(column, date: value)
        case .text(let value): set(column, text: value)
        case .data(let value): set(column, data: value)
        case .uuid(let value): set(column, uuid: value)
        case .decimal(let value): set(column, decimal: value)
        case .reference(let value): set(column, reference: value)
        case .blob(let value): set(column, blob: value)
        }
    }

    /// Takes back what was set for columns that a row has with the same value.
    ///
    /// - Parameter isNullIfAbsent: whether a column that a row leaves out reads as null. Others
    ///   read as a default.
    public mutating func unset(
        equalTo row: Span<UInt8>,
        _ layout: RowLayout,
        isNullIfAbsent: (Int) -> Bool
    ) {
        var left = 0
        for column in 0..<columnCount where tag(column) != nil { left += 1 }
        layout.forEachSlot(in: row) { column, slot in
            guard column < columnCount, tag(column) == slot.tag else { return }
            let offset = unsafe base.load(
                fromByteOffset: column * Self.entrySize + 8,
                as: Int.self
            )
            let body = slot.body
            // The body of a set column lies in front of the cursor.
            let mine = unsafe UnsafeRawBufferPointer(start: base + offset, count: body.count)
            let isEqual =
                unsafe ByteReader.compare(
                    mine.assumingMemoryBound(to: UInt8.self).span,
                    row.extracting(body)
                ) == 0
            if !isEqual { return }
            // An entry of the table: the column is below `columnCount`.
            unsafe (base + column * Self.entrySize).storeBytes(of: Self.unset, as: UInt64.self)
            isOrdered = false
            left -= 1
        }
        // A row leaves out columns at its end.
        for column in min(layout.columnCount, columnCount)..<columnCount
        where tag(column) == RowTag.null && isNullIfAbsent(column) {
            unsafe (base + column * Self.entrySize).storeBytes(of: Self.unset, as: UInt64.self)
            isOrdered = false
            left -= 1
        }
        if left == 0 { last = -1 }
    }

    private mutating func setBytes(_ column: Int, _ kind: UInt64, _ bytes: UnsafeRawBufferPointer) {
        let count = bytes.count
        let at = room(for: count)
        // `room` made place for `count` bytes.
        if let source = bytes.baseAddress {
            unsafe (base + at).copyMemory(from: source, byteCount: count)
        }
        note(column, kind &+ 2 &* UInt64(truncatingIfNeeded: count))
        cursor = at &+ count
        if count > largestBody { largestBody = count }
    }

    @inline(__always)
    private mutating func append<T: BitwiseCopyable>(
        _ column: Int,
        _ tag: UInt64,
        _ body: T,
        _ size: Int
    ) {
        let at = room(for: MemoryLayout<T>.size)
        // `room` made place for all of `body`, of which the first `size` bytes count.
        unsafe (base + at).storeBytes(of: body, as: T.self)
        note(column, tag)
        cursor = at &+ size
    }

    /// Makes place for `count` bytes at the cursor, and returns it.
    @inline(__always)
    private mutating func room(for count: Int) -> Int {
        if capacity &- cursor < count { grow(count) }
        return cursor
    }

    /// Writes a column's entry; its body begins at the cursor.
    @inline(__always)
    private mutating func note(_ column: Int, _ tag: UInt64) {
        precondition(column >= 0 && column < columnCount, "a column that the row does not have")
        // An entry of the table by the line above.
        unsafe (base + column &* Self.entrySize).storeBytes(
            of: Entry(tag: tag, offset: cursor),
            as: Entry.self
        )
        if column <= last { isOrdered = false }
        last = column
    }

    @inline(never)
    private mutating func grow(_ count: Int) {
        let larger = max(2 * capacity, cursor + count + 64)
        let block = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
        // Everything up to the cursor is in use; both blocks are at least as long.
        unsafe block.copyMemory(from: base, byteCount: cursor)
        unsafe base.deallocate()
        unsafe base = block
        capacity = larger
    }

    // MARK: Taking out

    /// What the row holds that its reader may have to look for.
    public var facts: RowFacts { RowFacts(hasBlobs: hasBlobs, largestBody: largestBody) }

    /// Appends the row; columns that were not set are absent.
    public mutating func encode(into bytes: inout [UInt8]) {
        withRow { row, _ in
            // The span lives for the call; the array copies its bytes.
            unsafe row.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
        }
    }

    /// Appends the patch that sets the columns that were set and leaves the others as they are.
    public mutating func encodePatch(into bytes: inout [UInt8]) {
        let range = finish(asPatch: true)
        // The range lies inside the block; the array copies its bytes.
        unsafe bytes.append(
            contentsOf: UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.count)
        )
    }

    /// Lends the row to `body`.
    public mutating func withRow<R, Failure: Error>(
        _ body: (Span<UInt8>, RowFacts) throws(Failure) -> R
    ) throws(Failure) -> R {
        let range = finish(asPatch: false)
        // The range lies inside the block, which nobody changes during the call.
        let row = unsafe UnsafeRawBufferPointer(
            start: base + range.lowerBound,
            count: range.count
        )
        return try unsafe body(row.assumingMemoryBound(to: UInt8.self).span, facts)
    }

    /// Lays head and bodies side by side; returns where they are.
    private mutating func finish(asPatch isPatch: Bool) -> Range<Int> {
        var count = columnCount
        // In a row absent columns at the end are left out; in a patch they say something.
        while count > 0, isPatch ? tag(count - 1) == nil : (tag(count - 1) ?? 0) == RowTag.absent {
            count -= 1
        }
        var head = ByteWriter.varintSize(UInt64(count)) + (isPatch ? (count + 7) / 8 : 0)
        for column in 0..<count {
            if let tag = tag(column) {
                head += ByteWriter.varintSize(tag)
            } else if !isPatch {
                head += 1
            }
        }
        let end = cursor
        let start: Int
        if isOrdered {
            start = bodies - head
        } else {
            var size = head
            for column in 0..<count { size += RowTag.bodySize(tag(column) ?? RowTag.absent) }
            start = room(for: size)
            cursor += size
            defer { cursor = end }
            var at = start + head
            for column in 0..<count {
                guard let tag = tag(column) else { continue }
                let size = RowTag.bodySize(tag)
                // `room` made place for all bodies; they are read before the old cursor.
                let offset = unsafe base.load(
                    fromByteOffset: column * Self.entrySize + 8,
                    as: Int.self
                )
                unsafe (base + at).copyMemory(from: base + offset, byteCount: size)
                at += size
            }
            writeHead(at: start, count, isPatch)
            return start..<at
        }
        writeHead(at: start, count, isPatch)
        return start..<end
    }

    private mutating func writeHead(at start: Int, _ count: Int, _ isPatch: Bool) {
        var at = start
        write(varint: UInt64(count), &at)
        if isPatch {
            var bits: UInt8 = 0
            for column in 0..<count {
                if tag(column) != nil { bits |= 1 &<< UInt8(column & 7) }
                if column & 7 == 7 || column == count - 1 {
                    // The head has its room in front of the bodies, or in what `room` gave.
                    unsafe (base + at).storeBytes(of: bits, as: UInt8.self)
                    at += 1
                    bits = 0
                }
            }
        }
        for column in 0..<count {
            if let tag = tag(column) {
                write(varint: tag, &at)
            } else if !isPatch {
                write(varint: RowTag.absent, &at)
            }
        }
    }

    @inline(__always)
    private mutating func write(varint value: UInt64, _ at: inout Int) {
        var rest = value
        while rest >= 0x80 {
            // The head has its room in front of the bodies, or in what `room` gave.
            unsafe (base + at).storeBytes(
                of: UInt8(truncatingIfNeeded: rest) | 0x80,
                as: UInt8.self
            )
            at &+= 1
            rest &>>= 7
        }
        unsafe (base + at).storeBytes(of: UInt8(truncatingIfNeeded: rest), as: UInt8.self)
        at &+= 1
    }
}
