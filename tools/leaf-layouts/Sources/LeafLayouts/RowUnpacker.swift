// FENCE: rows of tuples as packed rows (Format.md, "Rows"), which is what the layers above read.
//
// Invariants
// - A row comes back byte for byte.
// - Nothing is written behind the scratch memory: a row that is too long is an error.

/// Packs the values of a row.
@safe struct RowPacker: RowSink {
    /// Tags in front, bodies from `bodiesStart` on.
    private let scratch: UnsafeMutableRawPointer
    private var tags = 0
    private var bodies = Self.bodiesStart
    private var columns = 0
    /// Tags that end with a column that is there.
    private var tagsThere = 0
    private var columnsThere = 0
    private(set) var isTooLong = false

    static let bodiesStart = 4 * 1024
    static let scratchBytes = bodiesStart + (1 << 17)
    /// Columns that surely have room: a tag takes at most 3 bytes, as bodies are bounded.
    private static let columnsMax = 1024

    @unsafe init(_ scratch: UnsafeMutableRawPointer) {
        unsafe self.scratch = scratch
    }

    @inline(__always)
    private mutating func tag(_ tag: UInt64) {
        guard columns < Self.columnsMax else {
            isTooLong = true
            return
        }
        var rest = tag
        while rest >= 0x80 {
            // Three bytes for each column are in front of the bodies.
            unsafe scratch.storeBytes(
                of: UInt8(truncatingIfNeeded: rest) | 0x80,
                toByteOffset: tags,
                as: UInt8.self
            )
            tags &+= 1
            rest &>>= 7
        }
        unsafe scratch.storeBytes(
            of: UInt8(truncatingIfNeeded: rest),
            toByteOffset: tags,
            as: UInt8.self
        )
        tags &+= 1
        columns &+= 1
        if tag != PackedRow.absent {
            tagsThere = tags
            columnsThere = columns
        }
    }

    @inline(__always)
    private mutating func body(_ word: UInt64, _ size: Int) {
        guard bodies &+ 8 <= Self.scratchBytes else {
            isTooLong = true
            return
        }
        // Eight bytes are free, of which the first `size` count.
        unsafe scratch.storeBytes(of: word.littleEndian, toByteOffset: bodies, as: UInt64.self)
        bodies &+= size
    }

    @inline(__always) mutating func addAbsent(_ column: Int) { tag(PackedRow.absent) }
    @inline(__always) mutating func addNil(_ column: Int) { tag(PackedRow.null) }

    @inline(__always)
    mutating func add(_ column: Int, int: Int64, isBool: Bool) {
        // The commit stands in front of the row.
        if column == 2000 { return }
        if isBool { return tag(int == 0 ? 2 : 3) }
        if int == 0 || int == 1 { return tag(4 &+ UInt64(int)) }
        let word = UInt64(bitPattern: int)
        if Int64(Int8(truncatingIfNeeded: int)) == int {
            tag(6)
            body(word, 1)
        } else if Int64(Int16(truncatingIfNeeded: int)) == int {
            tag(7)
            body(word, 2)
        } else if Int64(Int32(truncatingIfNeeded: int)) == int {
            tag(8)
            body(word, 4)
        } else {
            tag(9)
            body(word, 8)
        }
    }

    @inline(__always)
    mutating func add(_ column: Int, double bits: UInt64) {
        tag(11)
        body(bits, 8)
    }

    @inline(__always)
    mutating func add(_ column: Int, high: UInt64, low: UInt64) {
        tag(13)
        body(high, 8)
        body(low, 8)
    }

    @inline(__always)
    mutating func add(_ column: Int, text: UnsafeBufferPointer<UInt8>) {
        guard text.count <= Self.scratchBytes &- bodies else {
            isTooLong = true
            return
        }
        tag(32 &+ 2 &* UInt64(text.count))
        guard let base = text.baseAddress else { return }
        // The line above made sure of the room.
        unsafe (scratch + bodies).copyMemory(from: base, byteCount: text.count)
        bodies &+= text.count
    }

    /// Appends the row.
    @inline(__always)
    func finish(into row: inout [UInt8]) {
        DatasetBuilder.append(varint: UInt64(columnsThere), &row)
        // Both parts were written.
        unsafe row.append(contentsOf: UnsafeRawBufferPointer(start: scratch, count: tagsThere))
        unsafe row.append(
            contentsOf: UnsafeRawBufferPointer(
                start: scratch + Self.bodiesStart,
                count: bodies &- Self.bodiesStart
            )
        )
    }
}

extension TupleLeaves {
    /// Appends the row of a key as it was packed before the leaf was made.
    func unpack(
        _ leaf: ByteView,
        _ key: UInt64,
        _ scratch: UnsafeMutableRawPointer,
        into bytes: inout [UInt8]
    ) throws(LeafError) {
        let front = try TupleReader.Front(leaf)
        // The caller's memory is long enough.
        var packer = unsafe RowPacker(scratch)
        try reader.read(leaf, front, try reader.find(leaf, front, key), &packer)
        if packer.isTooLong { throw .damage }
        packer.finish(into: &bytes)
    }

    /// Reads the rows of keys as packed rows, and lends each with its index.
    public func unpack(
        _ leaves: Leaves,
        _ places: [(key: UInt64, leaf: Int)],
        _ body: (Int, [UInt8]) -> Void
    ) throws(LeafError) {
        let scratch = UnsafeMutableRawPointer.allocate(
            byteCount: RowPacker.scratchBytes,
            alignment: 16
        )
        // Allocated above.
        defer { unsafe scratch.deallocate() }
        var row: [UInt8] = []
        try ByteView.lend(leaves.bytes) { (view) throws(LeafError) in
            for (index, place) in places.enumerated() {
                row.removeAll(keepingCapacity: true)
                let leaf = view.part(leaves.ranges[place.leaf])
                // As long as the packer wants it.
                try unsafe unpack(leaf, place.key, scratch, into: &row)
                body(index, row)
            }
        }
    }
}
