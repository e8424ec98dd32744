// FENCE: packed leaves (layout 1) as nodes: made from a page, and unpacked into slots and values.
//
// Invariants
// - The block of a packed leaf is: its keys, 8 bytes each in the order of their bytes; a
//   `PackedLeaf`; the page's body as it is in the file; the bytes that a reader may load behind it.
// - A packed leaf never changes. Whoever changes rows changes a copy, whose other rows may stay
//   packed (TreeNode+Edited.swift).
// - A row that cannot be unpacked becomes an entry without a value, which no row is: whoever reads
//   it hears that the store is damaged.

internal import VarveBase
internal import VarveFormat

extension TreeNode {
    /// The same entries with slots and values: the node itself unless rows of it are packed.
    /// - Complexity: O(1), or O(bytes of its rows).
    var unpacked: TreeNode {
        hasPackedRows ? TreeNode(copying: self, stamp: Self.cleanStamp, slack: 0) : self
    }

    /// As `unpacked`, but an error where a row is not there.
    func wholeUnpacked(_ place: FormatPlace) throws(FormatError) -> TreeNode {
        guard hasPackedRows else { return self }
        let node = unpacked
        guard node.liveBytes == liveBytes, unsafe node.view.hasValues else {
            throw FormatError(
                place: place,
                field: "rows",
                found: "\(node.liveBytes) bytes of rows that can be read",
                expected: "\(liveBytes)"
            )
        }
        return node
    }

    /// Looks at each row of a packed leaf.
    func checkRows(_ place: FormatPlace) throws(FormatError) {
        if let packed = unsafe view.packed { unsafe try packed.pointee.check(place: place) }
    }

    /// The entries as rows; nil where one is none, or has a key that no object has.
    func leafRows() -> LeafRows? {
        var rows = LeafRows()
        for index in 0..<count {
            guard keyCount(index) == Self.slotKeyMax else { return nil }
            let object = unsafe view.head(index)
            let isRow = withRow(index, copies: false) { version, row in
                rows.append(object: object, version: version.rawValue, row: row)
            }
            guard isRow else { return nil }
        }
        return rows
    }

    /// Where the symbol tables of a packed leaf are, as its bytes say.
    static func symbolSetAddress(of frame: FrameBytes) throws(FormatError) -> SymbolSetAddress? {
        let body = frame.payload.dropFirst(PageHeader.length)
        precondition(body.upperBound <= frame.bytes.count)
        // As in `packed`.
        let result = unsafe frame.bytes.withUnsafeBytes { raw in
            Result { () throws(FormatError) in
                unsafe try PackedLeaf.symbolSet(of: UnsafeRawBufferPointer(rebasing: raw[body]))
            }
        }
        return try result.get()
    }

    /// The node of a page of layout 1, whose frame was verified.
    ///
    /// - Throws: `FormatError` when the page is not what it should be.
    /// - Complexity: O(stored bytes).
    static func packed(
        _ frame: FrameBytes,
        header: PageHeader,
        _ symbols: SymbolSet?
    ) throws(FormatError) -> TreeNode {
        let place = FormatPlace("page", frame.offset)
        guard !frame.header.flags.contains(.compressed),
            frame.header.rawLength == frame.header.storedLength
        else {
            throw FormatError(
                place: place,
                field: "flags",
                found: "compressed",
                expected: "a packed leaf as it is"
            )
        }
        let body = frame.payload.dropFirst(PageHeader.length)
        precondition(body.upperBound <= frame.bytes.count)
        // The array lives for the closure, and the range lies inside it by the line above.
        let result = unsafe frame.bytes.withUnsafeBytes { raw in
            Result { () throws(FormatError) -> TreeNode in
                unsafe try packed(
                    UnsafeRawBufferPointer(rebasing: raw[body]),
                    Int(header.count),
                    symbols,
                    place
                )
            }
        }
        return try result.get()
    }

    private static func packed(
        _ body: UnsafeRawBufferPointer,
        _ count: Int,
        _ symbols: SymbolSet?,
        _ place: FormatPlace
    ) throws(FormatError) -> TreeNode {
        let keys = count * slotKeyMax
        let words = unsafe keys + MemoryLayout<PackedLeaf>.stride
        let capacity = unsafe words + body.count + PackedLeaf.padding
        // Of 8-byte keys and words, so everything in it is aligned.
        let block = unsafe self.block(capacity)
        do throws(FormatError) {
            let bytes = unsafe block + words
            if let source = body.baseAddress {
                unsafe bytes.copyMemory(from: source, byteCount: body.count)
            }
            unsafe (bytes + body.count).initializeMemory(
                as: UInt8.self,
                repeating: 0,
                count: PackedLeaf.padding
            )
            let leaf = unsafe try PackedLeaf(
                decoding: UnsafeRawBufferPointer(start: bytes, count: body.count),
                count: count,
                symbols: symbols,
                place: place
            )
            let first = unsafe count == 0 ? 0 : leaf.object(0)
            var isDense = true
            for index in 0..<count {
                let object = unsafe leaf.object(index)
                if object != first &+ UInt64(index) { isDense = false }
                unsafe block.storeBytes(
                    of: object.bigEndian,
                    toByteOffset: index &* slotKeyMax,
                    as: UInt64.self
                )
            }
            let placed = unsafe (block + keys).bindMemory(to: PackedLeaf.self, capacity: 1)
            unsafe placed.initialize(to: leaf)
            return unsafe TreeNode(
                packed: UnsafePointer(placed),
                denseFrom: isDense ? first : nil,
                symbols,
                block: block,
                capacity: capacity
            )
        } catch {
            unsafe free(block, capacity)
            throw error
        }
    }

    /// Fills a block with slots from the front on, and behind them the rows of a packed or edited
    /// leaf: those that are packed first, so that a leaf which says less of them than they are
    /// takes no room from the others.
    ///
    /// - Returns: where the values begin, and how many bytes they have.
    static func unpack(
        _ node: TreeNode,
        into block: UnsafeMutableRawPointer,
        _ capacity: Int
    ) -> (heapStart: Int, live: Int) {
        let heapStart = capacity - node.liveBytes
        var at = heapStart
        var valuesAt = unsafe heapStart + node.packedLive
        let end = valuesAt
        // Unpacking writes behind a row: into the word that a block has more than its capacity, but
        // never into values.
        let writable = unsafe node.live == 0 ? end : end - PackedLeaf.padding
        var live = 0
        for index in 0..<node.count {
            var value = (start: at, count: 0)
            if let row = unsafe node.view.packedRow(index), let leaf = unsafe node.view.packed {
                value.count = unsafe unpack(row, of: leaf, into: block, at: at, end, writable)
                at += value.count
            } else {
                let bytes = unsafe node.view.valueBytes(index)
                value = (valuesAt, bytes.count)
                unsafe UnsafeMutableRawBufferPointer(start: block + valuesAt, count: bytes.count)
                    .copyMemory(from: bytes)
                valuesAt += bytes.count
            }
            live += value.count
            unsafe setSlot(
                block + index * slotSize,
                head: node.view.head(index),
                key: (value.start, slotKeyMax),
                value: value
            )
        }
        return (heapStart, live)
    }

    /// Writes the value of a packed row at a place of a block, if it ends before `end`.
    ///
    /// - Parameter writable: the longest row may be unpacked in place if it ends before.
    /// - Returns: its bytes; 0 where the row cannot be unpacked.
    private static func unpack(
        _ row: Int,
        of leaf: UnsafePointer<PackedLeaf>,
        into block: UnsafeMutableRawPointer,
        at: Int,
        _ end: Int,
        _ writable: Int
    ) -> Int {
        let version = unsafe leaf.pointee.version(row)
        let front = ByteWriter.varintSize(version)
        var size = 0
        if unsafe at + front + leaf.pointee.rowBytesMax <= writable {
            size = unsafe leaf.pointee.unpackRow(row, into: block + at + front) ?? 0
        } else if let copy = unsafe copy(of: row, in: leaf.pointee), at + front + copy.count <= end
        {
            size = copy.count
            unsafe copy.withUnsafeBytes { copy in
                unsafe UnsafeMutableRawBufferPointer(start: block + at + front, count: size)
                    .copyMemory(from: copy)
            }
        }
        if size == 0 { return 0 }
        unsafe store(version, front, at: block + at)
        return front + size
    }

    /// A row, in memory of its own; nil where it cannot be unpacked.
    private static func copy(of index: Int, in leaf: PackedLeaf) -> [UInt8]? {
        let room = unsafe leaf.rowBytesMax + PackedLeaf.padding
        let row = unsafe [UInt8](unsafeUninitializedCapacity: room) { memory, count in
            guard let start = memory.baseAddress else { return }
            count = unsafe leaf.unpackRow(index, into: UnsafeMutableRawPointer(start)) ?? 0
        }
        return row.isEmpty ? nil : row
    }
}
