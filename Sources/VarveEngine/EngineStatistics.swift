// Counters of one engine: always on, relaxed, read as one value.

internal import Synchronization

/// What an engine did since it was opened, and what it holds.
public struct EngineStatistics: Sendable, Hashable {
    /// Commits written as row changes.
    public var deltaCommits: UInt64 = 0
    /// Commits written as trees.
    public var treeCommits: UInt64 = 0
    /// Checkpoints written.
    public var checkpoints: UInt64 = 0
    /// Bytes handed to the system for the log.
    public var bytesWritten: UInt64 = 0
    /// Successful syncs of the store file.
    public var syncs: UInt64 = 0
    /// Times a commit had to make room first.
    public var roomExtensions: UInt64 = 0
    /// Nodes found in the cache.
    public var nodeHits: UInt64 = 0
    /// Nodes read from the file.
    public var nodeMisses: UInt64 = 0
    /// Nodes dropped from the cache.
    public var nodeEvictions: UInt64 = 0
    /// Bytes of decoded clean nodes in the cache.
    public var nodeCacheBytes: UInt64 = 0
    /// Row changes replayed at open.
    public var replayedOperations: UInt64 = 0
    /// Unproven commits written again at open.
    public var settledCommits: UInt64 = 0
    /// Bytes of large values and blobs read.
    public var valueBytesRead: UInt64 = 0
    /// Blob files removed because nothing names them any more.
    public var blobFilesSwept: UInt64 = 0
    /// Length of the file's written part in bytes.
    public var logBytes: UInt64 = 0
    /// The newest commit.
    public var newestCommit: UInt64 = 0
    /// Snapshots that are held.
    public var pinnedSnapshots: Int = 0
    /// The oldest commit that a snapshot holds; the newest when none is held.
    public var oldestPinnedCommit: UInt64 = 0

    /// All zero.
    public init() {}
}

final class EngineCounters: Sendable {
    let deltaCommits = Atomic<UInt64>(0)
    let treeCommits = Atomic<UInt64>(0)
    let checkpoints = Atomic<UInt64>(0)
    let bytesWritten = Atomic<UInt64>(0)
    let syncs = Atomic<UInt64>(0)
    let roomExtensions = Atomic<UInt64>(0)
    let nodeHits = Atomic<UInt64>(0)
    let nodeMisses = Atomic<UInt64>(0)
    let nodeEvictions = Atomic<UInt64>(0)
    let replayedOperations = Atomic<UInt64>(0)
    let settledCommits = Atomic<UInt64>(0)
    let valueBytesRead = Atomic<UInt64>(0)
    let blobFilesSwept = Atomic<UInt64>(0)

    var values: EngineStatistics {
        var result = EngineStatistics()
        result.deltaCommits = deltaCommits.load(ordering: .relaxed)
        result.treeCommits = treeCommits.load(ordering: .relaxed)
        result.checkpoints = checkpoints.load(ordering: .relaxed)
        result.bytesWritten = bytesWritten.load(ordering: .relaxed)
        result.syncs = syncs.load(ordering: .relaxed)
        result.roomExtensions = roomExtensions.load(ordering: .relaxed)
        result.nodeHits = nodeHits.load(ordering: .relaxed)
        result.nodeMisses = nodeMisses.load(ordering: .relaxed)
        result.nodeEvictions = nodeEvictions.load(ordering: .relaxed)
        result.replayedOperations = replayedOperations.load(ordering: .relaxed)
        result.settledCommits = settledCommits.load(ordering: .relaxed)
        result.valueBytesRead = valueBytesRead.load(ordering: .relaxed)
        result.blobFilesSwept = blobFilesSwept.load(ordering: .relaxed)
        return result
    }
}
