// Counters of one engine: always on, relaxed, read as one value.

internal import Synchronization

/// What an engine did since it was opened, and what it holds.
public struct EngineStatistics: Sendable, Hashable {
    /// Commits written as row changes.
    public var deltaCommits: UInt64 = 0
    /// Commits written as trees.
    public var treeCommits: UInt64 = 0
    /// Commits that were visible before they were synced.
    public var relaxedCommits: UInt64 = 0
    /// Pages that the maintenance thread wrote while commits went on.
    public var backgroundPages: UInt64 = 0
    /// Times a reading engine moved on to newer commits of another process.
    public var followed: UInt64 = 0
    /// Times it could not, and stayed where it was.
    public var followFailures: UInt64 = 0
    /// CLOSE frames written because nothing happened for a while.
    public var witnesses: UInt64 = 0
    /// Commits and checkpoints that shared a sync, together; over `batches`: the mean batch.
    public var batchedCommits: UInt64 = 0
    /// Writes of one or more commits with one sync.
    public var batches: UInt64 = 0
    /// The most commits that one sync made durable.
    public var largestBatch: UInt64 = 0
    /// Syncs of commits by their time: below 64 microseconds, 128, 256 …, the last all above.
    public var syncTimes: [UInt64] = []
    /// Checkpoints written.
    public var checkpoints: UInt64 = 0
    /// Bytes handed to the system for the log.
    public var bytesWritten: UInt64 = 0
    /// Successful syncs of the store file.
    public var syncs: UInt64 = 0
    /// Times a commit had to make room first.
    public var roomExtensions: UInt64 = 0
    /// Times that a large transaction wrote pages before its end.
    public var spills: UInt64 = 0
    /// Files of sorted index entries that large transactions put aside.
    public var sortedRuns: UInt64 = 0
    /// Nodes found in the cache.
    public var nodeHits: UInt64 = 0
    /// Nodes read from the file.
    public var nodeMisses: UInt64 = 0
    /// Nodes dropped from the cache.
    public var nodeEvictions: UInt64 = 0
    /// Bytes of decoded clean nodes in the cache.
    public var nodeCacheBytes: UInt64 = 0
    /// Bytes of nodes that were dropped from the cache and wait for readers to move on.
    public var nodeLimboBytes: UInt64 = 0
    /// Row changes replayed at open.
    public var replayedOperations: UInt64 = 0
    /// Unproven commits written again at open.
    public var settledCommits: UInt64 = 0
    /// Those of them that were written again where they stood: there was no room on the disk.
    public var settledInPlace: UInt64 = 0
    /// Bytes of large values and blobs read.
    public var valueBytesRead: UInt64 = 0
    /// Blob files removed because nothing names them any more.
    public var blobFilesSwept: UInt64 = 0
    /// Compactions that put a new file in place.
    public var compactions: UInt64 = 0
    /// Bytes by which they made the file smaller.
    public var compactionBytesReclaimed: UInt64 = 0
    /// The most bytes that one of them wrote while savers waited.
    public var compactionLastStepBytes: UInt64 = 0
    /// Stored bytes of the pages, large values and small blobs that the newest checkpoint needs.
    public var liveBytes: UInt64 = 0
    /// Bytes in front of the newest checkpoint that it does not need: what a compaction would give
    /// back if it kept no earlier commit.
    public var deadBytes: UInt64 = 0
    /// Bytes of the file in front of the newest commit's frame.
    public var logBytes: UInt64 = 0
    /// Bytes of the store file, with the zeros that are written ahead of the log.
    public var fileBytes: UInt64 = 0
    /// Times that this process took the writer's lock after it had given it up.
    public var turns: UInt64 = 0
    /// Those before which another process had written.
    public var turnsBehindOthers: UInt64 = 0
    /// The newest commit.
    public var newestCommit: UInt64 = 0
    /// Snapshots that are held.
    public var pinnedSnapshots: Int = 0
    /// The oldest commit that a snapshot holds; the newest when none is held.
    public var oldestPinnedCommit: UInt64 = 0
    /// Held commits, oldest first: who holds them, since when, and what that keeps. Readers in
    /// other processes are not among them.
    public var pins: [PinnedCommit] = []

    /// All zero.
    public init() {}
}

final class EngineCounters: Sendable {
    let deltaCommits = Atomic<UInt64>(0)
    let treeCommits = Atomic<UInt64>(0)
    let checkpoints = Atomic<UInt64>(0)
    let relaxedCommits = Atomic<UInt64>(0)
    let witnesses = Atomic<UInt64>(0)
    let followed = Atomic<UInt64>(0)
    let followFailures = Atomic<UInt64>(0)
    let backgroundPages = Atomic<UInt64>(0)
    let batches = Atomic<UInt64>(0)
    let batchedCommits = Atomic<UInt64>(0)
    let largestBatch = Atomic<UInt64>(0)
    private let syncTimes = Mutex([UInt64](repeating: 0, count: syncClasses))
    /// Up to 64 microseconds, then doubling: the last class begins at 2 seconds.
    private static let syncClasses = 16
    let bytesWritten = Atomic<UInt64>(0)
    let syncs = Atomic<UInt64>(0)
    let spills = Atomic<UInt64>(0)
    let sortedRuns = Atomic<UInt64>(0)
    let roomExtensions = Atomic<UInt64>(0)
    let nodeEvictions = Atomic<UInt64>(0)
    let replayedOperations = Atomic<UInt64>(0)
    let settledCommits = Atomic<UInt64>(0)
    let settledInPlace = Atomic<UInt64>(0)
    let valueBytesRead = Atomic<UInt64>(0)
    let turns = Atomic<UInt64>(0)
    let turnsBehindOthers = Atomic<UInt64>(0)
    let blobFilesSwept = Atomic<UInt64>(0)
    let compactions = Atomic<UInt64>(0)
    let compactionBytesReclaimed = Atomic<UInt64>(0)
    let compactionLastStepBytes = Atomic<UInt64>(0)

    func countCommit(isTree: Bool, isSynced: Bool) {
        if isTree {
            treeCommits.add(1, ordering: .relaxed)
        } else {
            deltaCommits.add(1, ordering: .relaxed)
        }
        if !isSynced { relaxedCommits.add(1, ordering: .relaxed) }
    }

    /// One sync of the store file, for that many commits.
    func countSync(commits: Int, nanoseconds: UInt64) {
        syncs.add(1, ordering: .relaxed)
        batches.add(1, ordering: .relaxed)
        batchedCommits.add(UInt64(commits), ordering: .relaxed)
        largestBatch.max(UInt64(commits), ordering: .relaxed)
        let doubled = nanoseconds / 64_000
        let index = min(UInt64.bitWidth - doubled.leadingZeroBitCount, Self.syncClasses - 1)
        syncTimes.withLock { $0[index] += 1 }
    }

    var values: EngineStatistics {
        var result = EngineStatistics()
        result.backgroundPages = backgroundPages.load(ordering: .relaxed)
        result.followed = followed.load(ordering: .relaxed)
        result.followFailures = followFailures.load(ordering: .relaxed)
        result.witnesses = witnesses.load(ordering: .relaxed)
        result.relaxedCommits = relaxedCommits.load(ordering: .relaxed)
        result.batches = batches.load(ordering: .relaxed)
        result.batchedCommits = batchedCommits.load(ordering: .relaxed)
        result.largestBatch = largestBatch.load(ordering: .relaxed)
        result.syncTimes = syncTimes.withLock { $0 }
        result.deltaCommits = deltaCommits.load(ordering: .relaxed)
        result.treeCommits = treeCommits.load(ordering: .relaxed)
        result.checkpoints = checkpoints.load(ordering: .relaxed)
        result.bytesWritten = bytesWritten.load(ordering: .relaxed)
        result.syncs = syncs.load(ordering: .relaxed)
        result.spills = spills.load(ordering: .relaxed)
        result.sortedRuns = sortedRuns.load(ordering: .relaxed)
        result.roomExtensions = roomExtensions.load(ordering: .relaxed)
        result.nodeEvictions = nodeEvictions.load(ordering: .relaxed)
        result.replayedOperations = replayedOperations.load(ordering: .relaxed)
        result.settledCommits = settledCommits.load(ordering: .relaxed)
        result.settledInPlace = settledInPlace.load(ordering: .relaxed)
        result.turns = turns.load(ordering: .relaxed)
        result.turnsBehindOthers = turnsBehindOthers.load(ordering: .relaxed)
        result.valueBytesRead = valueBytesRead.load(ordering: .relaxed)
        result.blobFilesSwept = blobFilesSwept.load(ordering: .relaxed)
        result.compactions = compactions.load(ordering: .relaxed)
        result.compactionBytesReclaimed = compactionBytesReclaimed.load(ordering: .relaxed)
        result.compactionLastStepBytes = compactionLastStepBytes.load(ordering: .relaxed)
        return result
    }
}
