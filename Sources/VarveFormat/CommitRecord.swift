// The record at the front of every commit frame's payload.
//
// Invariants
// - Never compressed: the chain can be walked without liblz4.
// - A commit is valid only if every frame of its body is: `bodyHash` covers their payload hashes.
// - `durableEnd` is at most the frame's own offset.
// Format.md, chapter "Commit record".

public import VarveBase

/// What a commit frame says of its commit.
public struct CommitRecord: Hashable, Sendable {
    /// Bytes of the fixed part.
    public static let fixedLength = 96
    /// Where `previousHash` stands in it.
    public static let previousHashOffset = 8
    /// Where `durableEnd` stands in it.
    public static let durableEndOffset = 40
    /// Longest author label in bytes of UTF-8.
    public static let authorBytesMax = 64
    /// Commit numbers, object IDs and live bytes are below this.
    public static let countersEnd: UInt64 = 1 << 62
    /// The epoch of the CLOSE that a compacted file ends with before it has its name.
    public static let namelessEpoch: UInt64 = 0
    /// The most bytes of the variable part.
    public static let extraBytesMax = 1 << 20

    /// The commit; in CKPT and CLOSE the commit whose state it describes.
    public var number = CommitNumber(0)
    /// Payload hash of the commit frame before in the chain; 0 in the first.
    public var previousHash: UInt64 = 0
    /// Where the body (PAGE and VALUE frames) begins. After the previous commit's end: a void
    /// lies between them.
    public var bodyStart = FileOffset(0)
    /// The file's seed combined with each body frame's payload hash in order.
    public var bodyHash: UInt64 = 0
    /// Newest TREE or CKPT before this frame; 0 when there is none.
    public var checkpoint = FileOffset(0)
    /// Everything below was synced when this frame was written.
    public var durableEnd = FileOffset(0)
    /// Random number of the opening that wrote this.
    public var epoch: UInt64 = 0
    /// Wall clock in microseconds since 1970; never used for order.
    public var clockMicroseconds: Int64 = 0
    /// Stored bytes of everything that the newest commit needs.
    public var liveBytes: UInt64 = 0
    /// No object ID at or above this one was handed out when the commit was written.
    public var objectIDHighWater: UInt64 = 1
    /// Version of the stored schema.
    public var schemaVersion: UInt32 = 0
    /// Features that this commit and the ones after it use. Version 1 has none and writes 0.
    public var flags: UInt32 = 0
    /// Row changes in the commit.
    public var operationCount: UInt32 = 0
    /// Who made it; empty when not said.
    public var author = ""
    /// Rows added, changed and deleted by entity, ascending by entity.
    public var entityCounts: [EntityCounts] = []

    /// Counts of one entity.
    public struct EntityCounts: Hashable, Sendable {
        /// Whose rows.
        public var entity: EntityID
        /// Rows that are new.
        public var added: UInt64
        /// Rows that changed.
        public var changed: UInt64
        /// Rows that went.
        public var deleted: UInt64
        /// Joins the fields.
        public init(entity: EntityID, added: UInt64, changed: UInt64, deleted: UInt64) {
            self.entity = entity
            self.added = added
            self.changed = changed
            self.deleted = deleted
        }
    }

    /// An empty record.
    public init() {}

    /// The features that a reader must know.
    public static let readerFeatures: UInt32 = 0x0000_FFFF
    /// The features that a writer must know; a reader need not.
    public static let writerFeatures: UInt32 = 0xFFFF_0000

    /// The record's bytes: 96, then author and counts.
    public func encoded() -> [UInt8] {
        var extra = ByteWriter(capacity: 32)
        extra.u8(UInt8(truncatingIfNeeded: author.utf8.count))
        extra.text(author)
        extra.count(entityCounts.count)
        for counts in entityCounts {
            extra.varint(UInt64(counts.entity.rawValue))
            extra.varint(counts.added)
            extra.varint(counts.changed)
            extra.varint(counts.deleted)
        }
        var writer = ByteWriter(capacity: Self.fixedLength + extra.count)
        writer.u64(number.rawValue)
        writer.u64(previousHash)
        writer.u64(bodyStart.rawValue)
        writer.u64(bodyHash)
        writer.u64(checkpoint.rawValue)
        writer.u64(durableEnd.rawValue)
        writer.u64(epoch)
        writer.i64(clockMicroseconds)
        writer.u64(liveBytes)
        writer.u64(objectIDHighWater)
        writer.u32(schemaVersion)
        writer.u32(flags)
        writer.u32(operationCount)
        writer.u32(UInt32(extra.count))
        writer.raw(extra.bytes)
        return writer.bytes
    }

    /// Reads a record from the front of a stored payload.
    ///
    /// - Returns: the record and how many bytes it took.
    /// - Throws: `FormatError` when a field does not fit the frame at `offset`.
    public static func decode(
        _ payload: [UInt8],
        offset: FileOffset
    ) throws(FormatError) -> (record: CommitRecord, length: Int) {
        try decode(payload, range: 0..<payload.count, offset: offset)
    }

    /// The same from a stored payload that lies at `range` of `bytes`.
    public static func decode(
        _ bytes: [UInt8],
        range: Range<Int>,
        offset: FileOffset
    ) throws(FormatError) -> (record: CommitRecord, length: Int) {
        var reader = ByteReader(bytes, range: range, place: FormatPlace("commit", offset))
        var record = CommitRecord()
        record.number = CommitNumber(try reader.u64("number"))
        record.previousHash = try reader.u64("previous hash")
        record.bodyStart = FileOffset(try reader.u64("body start"))
        record.bodyHash = try reader.u64("body hash")
        record.checkpoint = FileOffset(try reader.u64("checkpoint"))
        record.durableEnd = FileOffset(try reader.u64("durable end"))
        record.epoch = try reader.u64("epoch")
        record.clockMicroseconds = try reader.i64("clock")
        record.liveBytes = try reader.u64("live bytes")
        record.objectIDHighWater = try reader.u64("object ID high water")
        record.schemaVersion = try reader.u32("schema version")
        record.flags = try reader.u32("flags")
        record.operationCount = try reader.u32("operation count")
        let extraLength = Int(try reader.u32("extra length"))
        guard extraLength <= extraBytesMax else {
            throw reader.error("extra length", "\(extraLength)", "at most \(extraBytesMax)")
        }
        guard record.bodyStart <= offset, record.durableEnd <= offset,
            record.checkpoint < offset
        else {
            throw reader.error("offset", "behind the frame", "in front of it")
        }
        // What counts on from here never overflows.
        for value in [record.number.rawValue, record.liveBytes, record.objectIDHighWater] {
            guard value < countersEnd else {
                throw reader.error("number", "\(value)", "below 2^62")
            }
        }
        var extra = try reader.part(count: extraLength, "extra")
        let authorLength = Int(try extra.u8("author length"))
        guard authorLength <= authorBytesMax else {
            throw extra.error("author length", "\(authorLength)", "at most 64")
        }
        record.author = try extra.text(count: authorLength, "author")
        let entities = try extra.count("entity count", limit: extra.remaining / 4)
        record.entityCounts.reserveCapacity(entities)
        for _ in 0..<entities {
            let entity = try extra.varint("entity")
            guard let entity = UInt16(exactly: entity) else {
                throw extra.error("entity", "\(entity)", "at most 65535")
            }
            record.entityCounts.append(
                EntityCounts(
                    entity: EntityID(entity),
                    added: try extra.varint("added"),
                    changed: try extra.varint("changed"),
                    deleted: try extra.varint("deleted")
                )
            )
        }
        // Whatever stands after the counts is of a later version that does without being read.
        return (record, reader.position - range.lowerBound)
    }
}
