// PAGE frames: one node of a tree. Leaves and inner nodes share the layout of their keys; packed
// leaves have one of their own (Leaves/PackedLeaf.swift), and so have packed leaves with changes
// (Leaves/EditedLeaf.swift).
//
//   front 16 (never compressed): tree, level, layout, count, commit
//   body: prefix length, prefix, key suffix lengths, [value lengths], key suffixes,
//         values (leaf) or children (inner)
//
// Invariants
// - Keys ascend strictly; an inner node's first key is empty.
// - A page has at least one entry. A child lies below its parent in the file.
// Format.md, chapter "Pages".

public import VarveBase

/// What a page says without its parent.
public struct PageHeader: Hashable, Sendable {
    /// Bytes at the front of the payload.
    public static let length = 16
    /// Where in them the layout stands.
    public static let layoutOffset = 5
    /// Row-wise entries with one prefix.
    public static let rowLayout: UInt8 = 0
    /// A leaf of rows whose columns are packed (`PackedLeaf`).
    public static let packedLayout: UInt8 = 1
    /// A leaf of rows that is a packed one with changes (`EditedLeaf`).
    public static let editedLayout: UInt8 = 2

    /// Whose node it is.
    public var tree: TreeID
    /// 0 for a leaf.
    public var level: UInt8
    /// How the body is laid out.
    public var layout: UInt8
    /// Number of entries, 1 to 65,535.
    public var count: UInt16
    /// The commit that wrote it.
    public var commit: CommitNumber

    /// Joins the fields.
    public init(
        tree: TreeID,
        level: UInt8,
        layout: UInt8 = PageHeader.rowLayout,
        count: UInt16,
        commit: CommitNumber
    ) {
        self.tree = tree
        self.level = level
        self.layout = layout
        self.count = count
        self.commit = commit
    }

    /// The 16 bytes.
    public func encoded() -> [UInt8] {
        var writer = ByteWriter(capacity: Self.length)
        writer.u32(tree.rawValue)
        writer.u8(level)
        writer.u8(layout)
        writer.u16(count)
        writer.u64(commit.rawValue)
        return writer.bytes
    }

    /// Reads the front of a page's payload, which lies at `range` of `bytes`.
    public init(decoding bytes: [UInt8], range: Range<Int>, place: FormatPlace) throws(FormatError)
    {
        var reader = ByteReader(bytes, range: range, place: place)
        tree = TreeID(try reader.u32("tree"))
        level = try reader.u8("level")
        layout = try reader.u8("layout")
        count = try reader.u16("count")
        commit = CommitNumber(try reader.u64("commit"))
        guard layout == Self.rowLayout || layout <= Self.editedLayout && level == 0 else {
            throw reader.error("layout", "\(layout)", level == 0 ? "0 to 2" : "0")
        }
        guard count > 0 else { throw reader.error("count", "0", "at least 1") }
    }
}

/// Where the parts of a page's body lie in the bytes it was read from.
public struct PageBody: Sendable {
    /// What every key begins with.
    public var prefix: Range<Int>
    /// The rest of each key.
    public var suffixes: [Range<Int>]
    /// Each value of a leaf; empty for an inner page.
    public var values: [Range<Int>]
    /// Each child of an inner page; empty for a leaf.
    public var children: [PageChild]

    /// Reads the body that lies at `range` of `bytes`; its frame starts at `offset`.
    ///
    /// - Throws: `FormatError` when a length does not fit, or for a leaf of another layout, which
    ///   has other parts. The order of keys is for the caller.
    /// - Complexity: O(entries).
    public init(
        decoding bytes: [UInt8],
        range: Range<Int>,
        header: PageHeader,
        offset: FileOffset
    ) throws(FormatError) {
        var reader = ByteReader(bytes, range: range, place: FormatPlace("page", offset))
        guard header.layout == PageHeader.rowLayout else {
            throw reader.error("layout", "\(header.layout)", "0")
        }
        let count = Int(header.count)
        let prefixLength = try reader.count("prefix length", limit: reader.remaining)
        prefix = try reader.range(count: prefixLength, "prefix")
        guard reader.remaining >= count else {
            throw reader.error("count", "\(count)", "at most \(reader.remaining)")
        }
        let suffixLengths = try Self.lengths(count, &reader)
        let valueLengths = header.level == 0 ? try Self.lengths(count, &reader) : []
        suffixes = try Self.ranges(suffixLengths, &reader)
        values = try Self.ranges(valueLengths, &reader)
        children = []
        if header.level > 0 {
            guard suffixes[0].isEmpty && prefix.isEmpty else {
                throw reader.error("first key", "some bytes", "none")
            }
            children.reserveCapacity(count)
            for _ in 0..<count {
                let address = try PageAddress(from: &reader, below: offset)
                children.append(PageChild(address: address, rows: try reader.varint("rows")))
            }
        }
        try reader.finish("page")
    }

    private static func lengths(
        _ count: Int,
        _ reader: inout ByteReader
    ) throws(FormatError) -> [Int] {
        var result: [Int] = []
        result.reserveCapacity(count)
        for _ in 0..<count {
            result.append(try reader.count("length", limit: FrameKind.page.payloadBytesMax))
        }
        return result
    }

    private static func ranges(
        _ lengths: [Int],
        _ reader: inout ByteReader
    ) throws(FormatError) -> [Range<Int>] {
        var result: [Range<Int>] = []
        result.reserveCapacity(lengths.count)
        for length in lengths { result.append(try reader.range(count: length, "bytes")) }
        return result
    }
}

/// A child as an inner page names it.
public struct PageChild: Hashable, Sendable {
    /// Its page.
    public var address: PageAddress
    /// Entries of the leaves below.
    public var rows: UInt64

    /// Joins the fields.
    public init(address: PageAddress, rows: UInt64) {
        self.address = address
        self.rows = rows
    }

    /// Appends address and row count.
    public func append(to writer: inout ByteWriter) {
        address.append(to: &writer)
        writer.varint(rows)
    }
}

/// The front of a VALUE frame, so that it says what it is without a parent.
public struct ValueHeader: Hashable, Sendable {
    /// Bytes at the front of the payload.
    public static let length = 24
    /// `entity` of a blob, which belongs to no single row.
    public static let blobEntity = EntityID(.max)
    /// `column` of a set of symbol tables, whose `object` is the number of its tree; no row has a
    /// column of this number.
    public static let symbolsColumn = ColumnID(.max)

    /// Whose value it is; `blobEntity` for a blob.
    public var entity: EntityID
    /// Which column; 0 for a blob.
    public var column: ColumnID
    /// Whose row; for a blob the first 8 bytes of its digest.
    public var object: ObjectID
    /// The commit that wrote it.
    public var commit: CommitNumber

    /// Joins the fields.
    public init(entity: EntityID, column: ColumnID, object: ObjectID, commit: CommitNumber) {
        self.entity = entity
        self.column = column
        self.object = object
        self.commit = commit
    }

    /// That of a small blob.
    public init(of blob: BlobReference, commit: CommitNumber) {
        self.init(
            entity: Self.blobEntity,
            column: ColumnID(0),
            object: ObjectID(blob.digest.words.0),
            commit: commit
        )
    }

    /// The 24 bytes.
    public func encoded() -> [UInt8] {
        var writer = ByteWriter(capacity: Self.length)
        writer.u16(entity.rawValue)
        writer.u16(column.rawValue)
        writer.u32(0)
        writer.u64(object.rawValue)
        writer.u64(commit.rawValue)
        return writer.bytes
    }

    /// Reads the front of a value's payload, which lies at `range` of `bytes`.
    public init(decoding bytes: [UInt8], range: Range<Int>, place: FormatPlace) throws(FormatError)
    {
        var reader = ByteReader(bytes, range: range, place: place)
        entity = EntityID(try reader.u16("entity"))
        column = ColumnID(try reader.u16("column"))
        guard try reader.u32("reserved") == 0 else {
            throw reader.error("reserved", "some bits", "0")
        }
        object = ObjectID(try reader.u64("object"))
        commit = CommitNumber(try reader.u64("commit"))
    }
}
