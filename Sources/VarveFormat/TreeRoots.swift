// Payloads of TREE and CKPT frames after the commit record: roots, and for TREE the changed IDs.
//
// Invariants
// - Roots ascend by tree number; an empty tree has no root.
// - Changed objects ascend inside their list; a list is runs of consecutive IDs.
// Format.md, chapter "Roots".

public import VarveBase

/// Root of one tree in the file.
public struct StoredRoot: Hashable, Sendable {
    /// Whose root.
    public var tree: TreeID
    /// Level of the root node; 0 when it is a leaf.
    public var level: UInt8
    /// The root's page.
    public var address: PageAddress
    /// Entries in the tree.
    public var rows: UInt64

    /// Joins the fields.
    public init(tree: TreeID, level: UInt8, address: PageAddress, rows: UInt64) {
        self.tree = tree
        self.level = level
        self.address = address
        self.rows = rows
    }
}

/// Encoding of the list of roots.
public enum TreeRoots {
    /// Deepest tree that a reader accepts.
    public static let levelMax: UInt8 = 15
    /// Most entries of a tree that a reader accepts: counting on never overflows.
    public static let rowsMax: UInt64 = 1 << 62

    /// Appends the number of roots and each root.
    public static func append(_ roots: [StoredRoot], to writer: inout ByteWriter) {
        writer.count(roots.count)
        for root in roots {
            writer.varint(UInt64(root.tree.rawValue))
            writer.u8(root.level)
            root.address.append(to: &writer)
            writer.varint(root.rows)
        }
    }

    /// Reads the list of a frame at `offset`.
    public static func decode(
        _ reader: inout ByteReader,
        offset: FileOffset
    ) throws(FormatError) -> [StoredRoot] {
        let count = try reader.count("root count", limit: reader.remaining / 12)
        var roots: [StoredRoot] = []
        roots.reserveCapacity(count)
        for _ in 0..<count {
            let number = try reader.varint("tree")
            guard let tree = UInt32(exactly: number),
                roots.last.map({ $0.tree.rawValue < tree }) ?? true
            else { throw reader.error("tree", "\(number)", "a number above the one before") }
            let level = try reader.u8("level")
            guard level <= levelMax else {
                throw reader.error("level", "\(level)", "at most \(levelMax)")
            }
            let address = try PageAddress(from: &reader, below: offset)
            let rows = try reader.varint("rows")
            guard (1...rowsMax).contains(rows) else {
                throw reader.error("rows", "\(rows)", "1 to 2^62")
            }
            roots.append(
                StoredRoot(tree: TreeID(tree), level: level, address: address, rows: rows)
            )
        }
        return roots
    }
}

/// What happened to a row.
public enum RowChangeKind: UInt8, Sendable, Hashable {
    /// The row is new.
    case inserted = 1
    /// The row has other values.
    case updated = 2
    /// The row is gone.
    case deleted = 3
}

/// The objects of one entity that one commit inserted, changed or deleted.
public struct ChangedObjects: Hashable, Sendable {
    /// Whose rows.
    public var entity: EntityID
    /// What happened to them.
    public var kind: RowChangeKind
    /// Which.
    public var objects: ObjectIDSet

    /// Joins the fields.
    public init(entity: EntityID, kind: RowChangeKind, objects: ObjectIDSet) {
        self.entity = entity
        self.kind = kind
        self.objects = objects
    }

    /// Appends the lists of one commit.
    public static func append(_ lists: [ChangedObjects], to writer: inout ByteWriter) {
        writer.count(lists.count)
        for list in lists {
            writer.varint(UInt64(list.entity.rawValue))
            writer.u8(list.kind.rawValue)
            writer.count(list.objects.runs.count)
            var end: UInt64 = 0
            for run in list.objects.runs {
                writer.varint(run.first - end)
                writer.varint(run.last - run.first + 1)
                end = run.last &+ 1
            }
        }
    }

    /// The most objects of one commit: a reader goes through them one by one.
    public static let objectsMax: UInt64 = 1 << 26

    /// Reads the lists of one commit; `limit` bounds the objects in all (the operation count).
    public static func decode(
        _ reader: inout ByteReader,
        limit: UInt64
    ) throws(FormatError) -> [ChangedObjects] {
        var lists: [ChangedObjects] = []
        var total: UInt64 = 0
        let count = try reader.count("list count", limit: reader.remaining / 3)
        for _ in 0..<count {
            let entity = try reader.varint("entity")
            let kindByte = try reader.u8("kind")
            guard let entity = UInt16(exactly: entity), let kind = RowChangeKind(rawValue: kindByte)
            else { throw reader.error("changed objects", "kind \(kindByte)", "1 to 3") }
            let runCount = try reader.count("run count", limit: reader.remaining / 2)
            var objects = ObjectIDSet()
            var end: UInt64 = 0
            for _ in 0..<runCount {
                let gap = try reader.varint("gap")
                let length = try reader.varint("run length")
                let (first, overflow) = end.addingReportingOverflow(gap)
                let (last, tooLong) = first.addingReportingOverflow(length)
                let (sum, tooMany) = total.addingReportingOverflow(length)
                guard !overflow, !tooLong, !tooMany, last <= DeltaOps.objectsEnd,
                    sum <= min(limit, objectsMax)
                else {
                    throw reader.error("run", "too many objects", "at most \(limit)")
                }
                total = sum
                end = last
                if first < last { objects.append(first, through: last - 1) }
            }
            lists.append(ChangedObjects(entity: EntityID(entity), kind: kind, objects: objects))
        }
        return lists
    }
}
