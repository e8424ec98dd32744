// The counter file: what a process that has a store open did so far, for tools.
//
// Invariants
// - No store needs it: it may be old, torn, missing or of another store. Its own hash says whether
//   it is whole.
// - A counter keeps its number for ever; new ones come after.
// Format.md, chapter "Counter file".

public import VarveBase

/// Counters of one open store at one moment, as its process wrote them down.
public struct LiveCounters: Hashable, Sendable {
    /// The first 8 bytes: "VARVELIV".
    public static let magic: [UInt8] = [0x56, 0x41, 0x52, 0x56, 0x45, 0x4C, 0x49, 0x56]
    /// The layout that this code writes.
    public static let currentVersion: UInt32 = 1
    /// Bytes in front of the counters.
    public static let fixedLength = 72
    /// The most counters that a reader accepts.
    public static let countersMax = 1024
    /// The most bytes of the file.
    public static let lengthMax = fixedLength + 8 * countersMax + 8

    /// The counters in their order.
    public static let names: [String] =
        [
            "deltaCommits", "treeCommits", "relaxedCommits", "checkpoints", "witnesses",
            "batches", "batchedCommits", "largestBatch", "bytesWritten", "syncs",
            "roomExtensions", "nodeHits", "nodeMisses", "nodeEvictions", "nodeCacheBytes",
            "nodeLimboBytes", "backgroundPages", "replayedOperations", "settledCommits",
            "valueBytesRead", "blobFilesSwept", "compactions", "compactionBytesReclaimed",
            "liveBytes", "deadBytes", "logBytes", "newestCommit", "pinnedSnapshots",
            "oldestPinnedCommit",
        ] + (0..<16).map { "syncTimes\($0)" }

    /// Whether the store was closed after this was written.
    public var isClosed: Bool
    /// The store file that is open.
    public var fileID: UUIDValue
    /// The process.
    public var processID: UInt64
    /// When it opened the store, in microseconds since 1970.
    public var openedMicroseconds: Int64
    /// When this was written, in microseconds since 1970.
    public var writtenMicroseconds: Int64
    /// How often the process has written.
    public var sequence: UInt64
    /// The counters: those of `names`, in their order; fewer from an older library, more from a
    /// newer one.
    public var values: [UInt64]

    /// Joins the fields.
    public init(
        isClosed: Bool,
        fileID: UUIDValue,
        processID: UInt64,
        openedMicroseconds: Int64,
        writtenMicroseconds: Int64,
        sequence: UInt64,
        values: [UInt64]
    ) {
        precondition(values.count <= Self.countersMax, "a number of counters")
        self.isClosed = isClosed
        self.fileID = fileID
        self.processID = processID
        self.openedMicroseconds = openedMicroseconds
        self.writtenMicroseconds = writtenMicroseconds
        self.sequence = sequence
        self.values = values
    }

    /// The counters by name, as far as this code knows them.
    public var named: [(name: String, value: UInt64)] {
        zip(Self.names, values).map { ($0, $1) }
    }

    /// The file's bytes.
    public func encoded() -> [UInt8] {
        var writer = ByteWriter(capacity: Self.fixedLength + 8 * values.count + 8)
        writer.raw(Self.magic)
        writer.u32(Self.currentVersion)
        writer.u32(isClosed ? 2 : 1)
        writer.bigEndian64(fileID.high)
        writer.bigEndian64(fileID.low)
        writer.u64(processID)
        writer.i64(openedMicroseconds)
        writer.i64(writtenMicroseconds)
        writer.u64(sequence)
        writer.u32(UInt32(values.count))
        writer.u32(0)
        for value in values { writer.u64(value) }
        writer.u64(FrameHash.xxh64(writer.bytes))
        return writer.bytes
    }

    /// Reads a counter file.
    ///
    /// - Throws: `FormatError` with field "magic" when this is no counter file, else the field at
    ///   fault. A file that is being written may be torn: read it again.
    public init(decoding bytes: [UInt8]) throws(FormatError) {
        var reader = ByteReader(bytes, place: "counter file")
        guard try reader.bytes(count: 8, "magic") == Self.magic else {
            throw reader.error("magic", "other bytes", "VARVELIV")
        }
        let version = try reader.u32("version")
        guard version == Self.currentVersion else {
            throw reader.error("version", "\(version)", "\(Self.currentVersion)")
        }
        let state = try reader.u32("state")
        guard state == 1 || state == 2 else {
            throw reader.error("state", "\(state)", "1 or 2")
        }
        isClosed = state == 2
        fileID = UUIDValue(
            high: try reader.u64("file ID").byteSwapped,
            low: try reader.u64("file ID").byteSwapped
        )
        processID = try reader.u64("process")
        openedMicroseconds = try reader.i64("opened")
        writtenMicroseconds = try reader.i64("written")
        sequence = try reader.u64("sequence")
        let count = try reader.u32("count")
        _ = try reader.u32("zero")
        guard count <= Self.countersMax else {
            throw reader.error("count", "\(count)", "at most \(Self.countersMax)")
        }
        var values: [UInt64] = []
        values.reserveCapacity(Int(count))
        for _ in 0..<count { values.append(try reader.u64("counter")) }
        self.values = values
        let end = Self.fixedLength + 8 * Int(count)
        guard try reader.u64("hash") == FrameHash.xxh64(bytes, range: 0..<end, seed: 0) else {
            throw reader.error("hash", "another hash", "the hash of the bytes before it")
        }
        try reader.finish("counter file")
    }
}
