// The counters of a container, read as one Sendable value.

public import VarveBase
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
    }

    /// A commit that somebody reads and that therefore stays in the store (G2).
    public struct Pin: Sendable, Hashable {
        /// The commit.
        public var commit: CommitNumber
        /// How long it has been held.
        public var age: Duration
        /// Who holds it.
        public var label: String
    }

    /// The row cache.
    public var rowCache: RowCache
    /// Rows read from the store for objects.
    public var storeReads: Int
    /// Passes over the store that read rows: one for each single row, one for each batch.
    public var storePasses: Int
    /// Rows that filters and sorts looked at in memory.
    public var rowsScanned: Int
    /// Index entries that requests walked over.
    public var entriesScanned: Int
    /// Objects alive, over all contexts.
    public var registeredObjects: Int
    /// Objects alive that have their values in memory.
    public var realisedObjects: Int
    /// Contexts alive.
    public var contexts: Int
    /// Commits that contexts hold, oldest first.
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
}
