// What the process that writes tells the others: the first bytes of the lock file.
//
// Invariants
// - It names a commit frame that is on disk, or nothing: it is written after the sync. So it may be
//   old, torn or missing, and is never wrong; a reader that cannot use it goes on with what it has.
// - A process that takes the writer's lock marks it as `writing` before it writes anything else,
//   and as complete after all that it wrote is on disk. So a writer that finds it complete, and has
//   had the store open all the time, knows where the log ends; any other one reads the log.
// - It can always be made anew from the store file.
// Format.md, chapter "Lock file".

public import VarveBase

/// The newest durable commit of a store that is being written, for other processes.
public struct SharedState: Hashable, Sendable {
    /// Bytes of the encoded form.
    public static let length = 128
    /// The first 8 bytes: "VARVELCK".
    public static let magic: [UInt8] = [0x56, 0x41, 0x52, 0x56, 0x45, 0x4C, 0x43, 0x4B]
    /// Where `sequence` lies, 8 bytes, little-endian.
    public static let sequenceOffset: UInt64 = 64
    /// The layout that this code writes.
    public static let currentVersion: UInt32 = 2

    /// The store file that the offsets belong to.
    public var fileID: UUIDValue
    /// Its generation.
    public var generation: UInt64
    /// The newest commit.
    public var number: CommitNumber
    /// The commit frame that its state stands on: DELTA, TREE or CKPT.
    public var frame: FileOffset
    /// Everything below is on disk.
    public var durableEnd: FileOffset
    /// Counts what was written to the lock file, so that a change is seen.
    public var sequence: UInt64
    /// Whether the process that wrote this has given up the writer's lock with all of its commits
    /// on disk. The four fields below say something only then; the holder always.
    public var isComplete: Bool
    /// Where the next frame goes: everything after is zero or not there.
    public var logEnd: FileOffset
    /// Zeros up to here are on disk.
    public var preparedEnd: FileOffset
    /// Object IDs from here on belong to nobody yet.
    public var nextObjectID: UInt64
    /// The system's number of the process that wrote this.
    public var process: UInt64

    /// Joins the fields.
    public init(
        fileID: UUIDValue,
        generation: UInt64,
        number: CommitNumber,
        frame: FileOffset,
        durableEnd: FileOffset,
        sequence: UInt64,
        isComplete: Bool,
        logEnd: FileOffset,
        preparedEnd: FileOffset,
        nextObjectID: UInt64,
        process: UInt64
    ) {
        self.fileID = fileID
        self.generation = generation
        self.number = number
        self.frame = frame
        self.durableEnd = durableEnd
        self.sequence = sequence
        self.isComplete = isComplete
        self.logEnd = logEnd
        self.preparedEnd = preparedEnd
        self.nextObjectID = nextObjectID
        self.process = process
    }

    /// 128 bytes.
    public func encoded() -> [UInt8] {
        var writer = ByteWriter(capacity: Self.length)
        writer.raw(Self.magic)
        writer.u32(Self.currentVersion)
        writer.u32(isComplete ? 1 : 0)
        writer.u64(fileID.high)
        writer.u64(fileID.low)
        writer.u64(generation)
        writer.u64(number.rawValue)
        writer.u64(frame.rawValue)
        writer.u64(durableEnd.rawValue)
        writer.u64(sequence)
        writer.u64(logEnd.rawValue)
        writer.u64(preparedEnd.rawValue)
        writer.u64(nextObjectID)
        writer.u64(process)
        writer.zeros(16)
        writer.u64(0)
        writer.patch(Self.hash(writer.bytes), at: Self.length - 8)
        return writer.bytes
    }

    /// Reads what another process wrote; nil when it is missing, torn, of another version or no
    /// such thing.
    public init?(decoding bytes: [UInt8]) {
        guard bytes.count >= Self.length, bytes.starts(with: Self.magic),
            ByteReader.load64(bytes, Self.length - 8) == Self.hash(bytes),
            ByteReader.load32(bytes, 8) == Self.currentVersion
        else { return nil }
        fileID = UUIDValue(
            high: ByteReader.load64(bytes, 16),
            low: ByteReader.load64(bytes, 24)
        )
        generation = ByteReader.load64(bytes, 32)
        number = CommitNumber(ByteReader.load64(bytes, 40))
        frame = FileOffset(ByteReader.load64(bytes, 48))
        durableEnd = FileOffset(ByteReader.load64(bytes, 56))
        sequence = ByteReader.load64(bytes, 64)
        isComplete = ByteReader.load32(bytes, 12) & 1 != 0
        logEnd = FileOffset(ByteReader.load64(bytes, 72))
        preparedEnd = FileOffset(ByteReader.load64(bytes, 80))
        nextObjectID = ByteReader.load64(bytes, 88)
        process = ByteReader.load64(bytes, 96)
        guard frame <= durableEnd, durableEnd <= logEnd, logEnd <= preparedEnd,
            preparedEnd.rawValue < CommitRecord.countersEnd,
            logEnd.rawValue % FrameHeader.alignment == 0,
            number.rawValue < CommitRecord.countersEnd, nextObjectID < CommitRecord.countersEnd
        else { return nil }
    }

    private static func hash(_ bytes: [UInt8]) -> UInt64 {
        FrameHash.xxh64(bytes, range: 0..<(length - 8), seed: 0)
    }
}
