// The counters of a container, read as one Sendable value.

import CVarve
import Synchronization
public import VarveBase
import VarveEngine
import VarveRecords

/// What a container holds in memory now, and what it read since it was opened.
public struct ContainerStatistics: Sendable, Hashable {
    /// The row cache, shared by all contexts.
    public struct RowCache: Sendable, Hashable {
        /// Rows in it.
        public var rows: Int
        /// Their bytes, with what keeping them costs.
        public var bytes: Int
        /// Rows that filled objects or batches hold.
        public var pinnedRows: Int
        /// Their bytes.
        public var pinnedBytes: Int
        /// Rows found in it.
        public var hits: Int
        /// Rows looked for and not found.
        public var misses: Int
        /// Rows dropped to stay within the budget.
        public var evictions: Int
        /// Bytes of rows that lists have read ahead, beside `bytes`: at most twice as many as
        /// the cache may keep.
        public var readAheadBytes: Int
    }

    /// A commit that somebody reads and that therefore stays in the store.
    public struct Pin: Sendable, Hashable {
        /// The commit.
        public var commit: CommitNumber
        /// How long it has been held, at most.
        public var age: Duration
        /// What holds it. Of blob handles those of a context count as one.
        public var kind: PinKind
        /// The name of who holds it; empty for a snapshot without one.
        public var label: String
        /// How many of that kind and name hold it.
        public var holders: Int
        /// Bytes on disk that the commit keeps, and that would go with its last pin, at most: blob
        /// files that were dropped since, and the store file from before a compaction. Nil when it
        /// cannot be told because a page cannot be read. A held commit keeps no file from being
        /// compacted and makes none grow.
        public var fileBytes: Int?
        /// Bytes of memory that the commit keeps and that would go with its last pin, at most.
        public var memoryBytes: Int
    }

    /// The row cache.
    public var rowCache: RowCache
    /// Rows read from the store for objects.
    public var storeReads: Int
    /// Passes over the store that read rows: one for each single row, one for each batch.
    public var storePasses: Int
    /// Rows that filters and sorts looked at in memory.
    public var rowsScanned: Int
    /// Rows among them that packed leaves (`ContainerOptions.packsRows`) ruled out by the codes of
    /// their columns: never unpacked.
    public var rowsRuledOut: Int
    /// Index entries that requests walked over.
    public var entriesScanned: Int
    /// Pages of the file that reads looked into, each time. What was changed since a checkpoint is
    /// in no page yet, and does not count.
    public var pagesVisited: Int
    /// Pages among them that were not in memory: read from the file and restored.
    public var pagesRestored: Int
    /// Objects alive, over all contexts.
    public var registeredObjects: Int
    /// Objects alive that have their values in memory.
    public var realisedObjects: Int
    /// Contexts alive.
    public var contexts: Int
    /// Commits that contexts, blob handles and running backups and compactions hold, oldest first.
    public var pins: [Pin]
    /// Bytes of blobs read.
    public var blobBytesRead: Int
    /// The newest commit.
    public var newestCommit: CommitNumber
    /// Bytes of the log so far.
    public var logBytes: Int
    /// Bytes of decoded pages in memory.
    public var nodeCacheBytes: Int
    /// Commits written since the store was opened.
    public var commits: Int
    /// Times the disk was asked to make data durable.
    public var syncs: Int
    /// Compactions since the store was opened, those that ran by themselves among them.
    public var compactions: Int
    /// Bytes of the store file, with the room that is made ahead of the log. `spaceUse()` has more.
    public var fileBytes: Int
    /// Bytes of it that the newest checkpoint needs.
    public var liveBytes: Int
    /// Bytes in front of that checkpoint that it does not need: what a compaction gives back when
    /// it keeps no earlier commit.
    public var deadBytes: Int
    /// Bytes of memory that the whole process has in use; nil where the system does not say.
    public var processBytes: Int?
}

extension PersistentContainer {
    /// What the container holds now, and what it read since it was opened.
    public var statistics: ContainerStatistics {
        registries.settle(in: self)
        let records = store.statistics
        let cache = records.rowCache
        return ContainerStatistics(
            rowCache: .init(
                rows: cache.rows,
                bytes: cache.bytes,
                pinnedRows: cache.pinnedRows,
                pinnedBytes: cache.pinnedBytes,
                hits: cache.hits,
                misses: cache.misses,
                evictions: cache.evictions,
                readAheadBytes: cache.readAheadBytes
            ),
            storeReads: records.storeReads,
            storePasses: records.storePasses,
            rowsScanned: records.rowsScanned,
            rowsRuledOut: records.rowsRuledOut,
            entriesScanned: records.entriesScanned,
            pagesVisited: Int(clamping: records.engine.nodeHits &+ records.engine.nodeMisses),
            pagesRestored: Int(clamping: records.engine.nodeMisses),
            registeredObjects: registries.objects,
            realisedObjects: counters.realised.load(ordering: .relaxed),
            contexts: counters.contexts.load(ordering: .relaxed),
            pins: records.engine.pins.flatMap(ContainerStatistics.Pin.all(of:)),
            blobBytesRead: counters.blobBytesRead.load(ordering: .relaxed),
            newestCommit: CommitNumber(records.engine.newestCommit),
            logBytes: Int(clamping: records.engine.logBytes),
            nodeCacheBytes: Int(clamping: records.engine.nodeCacheBytes),
            commits: Int(clamping: records.engine.deltaCommits + records.engine.treeCommits),
            syncs: Int(clamping: records.engine.syncs),
            compactions: Int(clamping: records.engine.compactions),
            fileBytes: Int(clamping: records.engine.fileBytes),
            liveBytes: Int(clamping: records.engine.liveBytes),
            deadBytes: Int(clamping: records.engine.deadBytes),
            processBytes: Self.residentBytes
        )
    }

    private static var residentBytes: Int? {
        let bytes = varve_resident_bytes()
        return bytes == 0 ? nil : Int(clamping: bytes)
    }
}

extension ContainerStatistics.Pin {
    /// One for each name under which a commit is held.
    static func all(of pinned: PinnedCommit) -> [Self] {
        pinned.holders.map { holder in
            Self(
                commit: pinned.number,
                age: .nanoseconds(Int64(clamping: holder.ageNanoseconds)),
                kind: holder.owner.kind,
                label: holder.owner.label,
                holders: holder.count,
                fileBytes: pinned.blobFileBytes.map {
                    Int(clamping: min($0, .max - pinned.fileBytes) + pinned.fileBytes)
                },
                memoryBytes: Int(clamping: pinned.memoryBytes)
            )
        }
    }
}
