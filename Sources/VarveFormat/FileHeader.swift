// The two equal copies at the start of a store file.
//
// Invariants
// - 4,096 bytes at 0 and again at 4,096, written when the file is created and never again.
// - One sound copy is enough to open.
// Format.md, chapter "File header".

public import VarveBase

/// What a store file says of itself.
public struct FileHeader: Hashable, Sendable {
    /// Bytes of one copy.
    public static let length = 4096
    /// Offset of the first frame.
    public static let logStart = FileOffset(8192)
    /// The first 8 bytes: "VARVE", carriage return, line feed, end of text.
    public static let magic: [UInt8] = [0x56, 0x41, 0x52, 0x56, 0x45, 0x0D, 0x0A, 0x1A]
    /// The format of a store that is made.
    public static let currentVersion: UInt32 = 1
    /// The format of a file with packed leaves, which a compaction may write.
    public static let packedVersion: UInt32 = 2
    /// The format of a file whose savers may also write leaves that are packed ones with changes.
    public static let editedVersion: UInt32 = 3
    /// The newest format that this code reads and writes.
    public static let newestVersion: UInt32 = 3
    /// Longest creator text in bytes of UTF-8.
    public static let creatorBytesMax = 64

    /// Version of the format that the file was created with.
    public var formatVersion: UInt32
    /// A reader must know at least this version.
    public var readerNeeds: UInt32
    /// A writer must know at least this version.
    public var writerNeeds: UInt32
    /// Names the store for ever, through compaction and backup.
    public var storeID: UUIDValue
    /// Names this file; new in each generation.
    public var fileID: UUIDValue
    /// Counts the files that held this store: 1 at creation, plus 1 at each compaction.
    public var generation: UInt64
    /// When the file was made, in microseconds since 1970-01-01 00:00:00 UTC.
    public var createdMicroseconds: Int64
    /// Who made it.
    public var creator: String

    /// Joins the fields; the creator is cut to 64 bytes at a character.
    public init(
        formatVersion: UInt32 = FileHeader.currentVersion,
        readerNeeds: UInt32 = FileHeader.currentVersion,
        writerNeeds: UInt32 = FileHeader.currentVersion,
        storeID: UUIDValue,
        fileID: UUIDValue,
        generation: UInt64,
        createdMicroseconds: Int64,
        creator: String
    ) {
        self.formatVersion = formatVersion
        self.readerNeeds = readerNeeds
        self.writerNeeds = writerNeeds
        self.storeID = storeID
        self.fileID = fileID
        self.generation = generation
        self.createdMicroseconds = createdMicroseconds
        var text = creator
        while text.utf8.count > Self.creatorBytesMax { text.removeLast() }
        self.creator = text
    }

    /// Seed of every hash in this file: XXH64 of the 16 bytes of `fileID`.
    public var fileSeed: UInt64 {
        var writer = ByteWriter(capacity: 16)
        writer.bigEndian64(fileID.high)
        writer.bigEndian64(fileID.low)
        return FrameHash.xxh64(writer.bytes)
    }

    /// One copy, 4,096 bytes.
    public func encoded() -> [UInt8] {
        var writer = ByteWriter(capacity: Self.length)
        writer.raw(Self.magic)
        writer.u32(formatVersion)
        writer.u32(readerNeeds)
        writer.u32(writerNeeds)
        writer.u32(0)
        for id in [storeID, fileID] {
            writer.bigEndian64(id.high)
            writer.bigEndian64(id.low)
        }
        writer.u64(generation)
        writer.i64(createdMicroseconds)
        writer.u8(UInt8(truncatingIfNeeded: creator.utf8.count))
        writer.text(creator)
        writer.zeros(Self.length - 8 - writer.count)
        writer.u64(FrameHash.xxh64(writer.bytes))
        return writer.bytes
    }

    /// Reads one copy from 4,096 bytes.
    ///
    /// - Throws: `FormatError` with field "magic" when this is no store, else the field at fault.
    ///   A newer version is no error here: the caller compares `readerNeeds`.
    public init(decoding bytes: [UInt8], place: FormatPlace = "file header") throws(FormatError) {
        var reader = ByteReader(bytes, place: place)
        guard bytes.count == Self.length else {
            throw reader.error("length", "\(bytes.count)", "\(Self.length)")
        }
        guard try reader.bytes(count: 8, "magic") == Self.magic else {
            throw reader.error("magic", "other bytes", "VARVE")
        }
        formatVersion = try reader.u32("format version")
        readerNeeds = try reader.u32("reader needs")
        writerNeeds = try reader.u32("writer needs")
        _ = try reader.u32("reserved")
        storeID = try Self.uuid(&reader)
        fileID = try Self.uuid(&reader)
        generation = try reader.u64("generation")
        createdMicroseconds = try reader.i64("created")
        let count = Int(try reader.u8("creator length"))
        guard count <= Self.creatorBytesMax else {
            throw reader.error("creator length", "\(count)", "at most 64")
        }
        creator = try reader.text(count: count, "creator")
        var tail = ByteReader(
            bytes,
            range: (Self.length - 8)..<Self.length,
            place: place
        )
        let hash = FrameHash.xxh64(bytes, range: 0..<(Self.length - 8))
        guard try tail.u64("hash") == hash else {
            throw tail.error("hash", "another hash", "the hash of the header's bytes")
        }
    }

    private static func uuid(_ reader: inout ByteReader) throws(FormatError) -> UUIDValue {
        let high = try reader.u64("id").byteSwapped
        let low = try reader.u64("id").byteSwapped
        return UUIDValue(high: high, low: low)
    }
}
