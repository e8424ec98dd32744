// Where a store is, how it is opened, and what the layer above gives the engine.

public import VarveBase
public import VarveFormat
public import VarveIO

/// Where a store lives.
public enum StoreLocation: Sendable {
    /// A file in a directory: "NAME.varve", with "NAME.varve-lock" and "NAME.varve-blobs" beside
    /// it.
    case file(directory: String, name: String)
    /// Nowhere: a store in memory that ends with its last handle.
    case memory
    /// A directory of the caller's: simulated disks of tests.
    case directory(any StoreDirectory, name: String)
}

/// What to do when there is no store at the location.
public enum StoreOpenMode: Sendable {
    /// Open a store that exists, for reading and writing.
    case existing
    /// Open it, or make an empty one.
    case createIfMissing
    /// Open it for reading only: no lock, no write, nothing is mended.
    case readOnly
}

/// How sure a save is when it returns.
public enum Durability: Sendable, Hashable {
    /// On disk.
    case full
    /// With the operating system: a crash of the process loses nothing, one of the machine may lose
    /// the last `relaxedSyncMilliseconds` of such commits, newest first and never one in between.
    case relaxed
}

/// Who does what no saver should wait for.
public enum Maintenance: Sendable, Hashable {
    /// A thread for stores in files; the savers themselves for stores in memory and in directories
    /// of the caller's.
    case automatic
    /// A thread of the engine's own.
    case background
    /// The saver whose commit made it necessary, after its own commit.
    case inline
}

/// Settings of an engine. The defaults are those of docs/Choices.md.
public struct EngineOptions: Sendable {
    /// Log bytes after the last checkpoint that cause the next one: lower bound. While a compaction
    /// runs four times as many, up to the upper bound.
    public var checkpointTailMin: UInt64 = 1 << 20
    /// The same: upper bound. Between them an eighth of the live bytes.
    public var checkpointTailMax: UInt64 = 8 << 20
    /// Bytes of row changes above which a commit is written as TREE.
    public var deltaBytesMax = 256 << 10
    /// Zeros written and synced ahead of the log: lower and upper bound; between them an eighth of
    /// the file.
    public var tailRoomMin: UInt64 = 256 << 10
    /// The same: upper bound.
    public var tailRoomMax: UInt64 = 4 << 20
    /// Prepared bytes that only deletes and checkpoints may use when the disk is full; checkpoints
    /// that nobody asked for leave half of it to deletes.
    public var tailReserve: UInt64 = 64 << 10
    var maintenanceReserve: UInt64 { tailReserve / 2 }
    /// Bytes of commits that wait for one write: above it a saver waits for the disk first.
    public var batchBytesMax = 8 << 20
    /// Milliseconds after which a `.relaxed` commit is synced.
    public var relaxedSyncMilliseconds = 50
    /// Milliseconds that a writer waits for another process to end its turn, before it throws
    /// `busy`.
    public var turnMilliseconds = 10_000
    /// Who makes room, writes checkpoints and leaves witnesses.
    public var maintenance = Maintenance.automatic
    /// Milliseconds without a commit after which a tail of more than `idleTailBytes` becomes a
    /// checkpoint, and a CLOSE frame bears witness to the newest commit.
    public var idleMilliseconds = 1500
    /// Log bytes after a checkpoint that are worth one when the store is idle.
    public var idleTailBytes: UInt64 = 64 << 10
    /// Body bytes above which a transaction's pages are written before its commit frame, a piece of
    /// about as many at a time. Below a quarter of `tailRoomMax` zeros are written first for each.
    public var earlyWriteBytes = 2 << 20
    /// Bytes of index entries that a transaction gathers before it sorts them and puts them aside
    /// in a file without a name. Sorted, they go into their leaves many at a time. As many bytes of
    /// changes of rows wait before they are sorted and put in place.
    public var sortBytesMax = 8 << 20
    /// The same for a replay, which keeps everything in memory.
    static let replaySortBytesMax = 8 << 20
    /// Bytes of changed nodes from which a transaction writes those that an import has finished.
    public var appendedBytesMax = 8 << 20
    /// Bytes of changed nodes from which a transaction writes all of them; those that it comes back
    /// to are then written more than once.
    public var changedBytesMax = 128 << 20
    /// Threads that encode the pages of a large transaction while its saver waits, and of a
    /// compaction that was asked for.
    public var encodingThreads = min(4, BackgroundThread.processors)
    /// Threads that read the rows of a long list, and the leaves of a long scan.
    public var readingThreads = min(4, BackgroundThread.processors)
    /// Bytes of entries in a leaf that a compaction writes. Larger ones compress better and cost
    /// more per cold read: figures in docs/Performance.md.
    public var compactedLeafBytes = 8 << 10
    /// Whether a compaction packs leaves of rows (layouts 1 and 2, format version 3): smaller, and
    /// read in place, without restoring a page (figures in docs/Choices.md, "Leaf layout 1"). Only
    /// those of the oldest commit that is kept: what later ones changed is written as savers write
    /// it. Libraries before version 3 cannot open such a store; a compaction without this option
    /// brings version 1 back. A store that is idle is compacted for it where that makes an eighth
    /// of the file free (`compactsAutomatically`, `retention` newest).
    public var packsLeaves = true
    /// Whether leaves are packed, and symbol tables written, also where that makes them larger:
    /// tests have small ones.
    public var packsAnyLeaf = false
    /// Whether the store is compacted by itself, beside savers, when that is worthwhile.
    public var compactsAutomatically = true
    /// Bytes that a compaction must be able to give back before it runs by itself; they must also
    /// be half of the file, and that much more than after the last one.
    public var compactionDeadBytesMin: UInt64 = 16 << 20
    /// Which commits a compaction keeps.
    public var retention = Retention.newest
    /// So many commits lie between two states of the past that are kept in memory, for those who
    /// look at neighbours.
    public var pastStateCommits = 512
    /// The identity of a store that is made; nil for one of its own. A store that was recovered
    /// keeps that of the damaged one, so that texts of object IDs still lead to their objects.
    public var newStoreID: UUIDValue?
    /// No object of a store that is made gets an ID below this one.
    public var newStoreFirstObjectID: UInt64 = 1
    /// Weight in bytes above which a leaf is split.
    public var nodeWeightMax = 8 << 10
    /// The same for an inner node: each commit copies those above the leaves that it changes, with
    /// a reference count for each child that changed since the last checkpoint.
    public var innerWeightMax = 2 << 10
    /// What inner nodes are split above: no more than leaves.
    var innerSplitWeight: Int { min(nodeWeightMax, innerWeightMax) }
    /// Bytes of decoded clean nodes kept in memory.
    public var nodeCacheBytes = 16 << 20
    /// What stays of them while less than a sixteenth of the machine's memory is left.
    public var scarceNodeCacheBytes = 16 << 20
    /// What `nodeCacheBytes` is where an app says nothing: a 64th of the machine's memory, or of
    /// what the control group of the process allows, at least 16 MiB and at most 256.
    public static let usualNodeCacheBytes = usualNodeCacheBytes(SystemEnvironment().memory())

    static func usualNodeCacheBytes(_ memory: MachineMemory?) -> Int {
        let share = Int(clamping: (memory?.bytes ?? 0) / 64)
        return min(max(share, 16 << 20), 256 << 20)
    }
    /// A `String` or `Data` of more bytes leaves its row for a VALUE frame.
    public var inlineValueBytesMax = 2 << 10
    /// Whether the counters of `EngineStatistics` are written to the file "NAME.varve-live" beside
    /// the store, for tools that look at it while it is open: about once a second while something
    /// happens, and at close. Stores in memory and stores opened for reading have none.
    public var writesLiveCounters = false
    /// Whether a store file may be written that its group or others may write as well, or that
    /// belongs to another user. Whoever may write to a store can change any of it unnoticed.
    public var allowsForeignWriters = false
    /// Who may read and write the files that are made in a folder of the system.
    public var rights = FileRights()
    /// Told of each compaction, with the nanoseconds that it took; of one that failed or was
    /// cancelled, too, but of none that could not begin.
    public var compacted:
        (@Sendable (Result<CompactionReport, EngineError>, _ nanoseconds: UInt64) -> Void)?
    /// The same of checkpoints. Savers may wait meanwhile: it must be short, and must not call the
    /// engine.
    public var checkpointed:
        (@Sendable (Result<CheckpointReport, EngineError>, _ nanoseconds: UInt64) -> Void)?
    /// Random numbers, clocks and yield points.
    public var environment: any Environment = SystemEnvironment()
    /// Who creates the store, at most 64 bytes: kept in the file header.
    public var creator = "varve"

    /// The longest `String`, `Data` or blob in the log. Below what a VALUE frame may hold, because
    /// bytes that do not compress grow by 1/255 when a run of zeros asks for compression.
    public static let valueBytesMax = (32 << 20) - (256 << 10)

    /// The defaults.
    public init() {}
}

/// Derives index entries from rows.
///
/// A pure function of the stored schema and the row's bytes: it runs at commit and again at every
/// replay, so it must not depend on the app's code, the locale or the time. It runs in the middle
/// of a change, so it must not use the engine.
public protocol IndexDeriver: Sendable {
    /// The tree of an entity's rows.
    func tree(of entity: EntityID) throws(FormatError) -> TreeID
    /// Columns that some index of the entity covers.
    func indexedColumns(of entity: EntityID) -> [ColumnID]
    /// Whether some index of the entity has one of these columns.
    func covers(_ columns: [ColumnID], of entity: EntityID) -> Bool
    /// Adds the key of each index entry of a row; values are empty. With `changed`, only entries
    /// of indexes that cover one of these columns. The order of indexes is the same for every row.
    func entries(
        entity: EntityID,
        object: ObjectID,
        row: Span<UInt8>,
        changed: [ColumnID]?,
        into keys: inout EntryKeys
    ) throws(FormatError)
}

/// What the layer above gives the engine at open.
public protocol EngineDelegate: Sendable {
    /// The deriver for a stored schema.
    func makeDeriver(schema: [UInt8]) throws(FormatError) -> any IndexDeriver
    /// A commit is about to be seen by readers. Called in the order of commits, on the thread of
    /// one of the savers that share a sync, and all of them wait for it: must be short and must not
    /// call the engine.
    func willPublish(_ changes: CommitChanges)
    /// Readers see the commit. Called as `willPublish`: must be short and must not write.
    func didPublish(_ changes: CommitChanges)
}

/// What one commit changed, for caches and observers.
public struct CommitChanges: Sendable {
    /// The commit.
    public var number: CommitNumber
    /// Who made it.
    public var author: String
    /// Wall clock in microseconds since 1970.
    public var timeMicroseconds: Int64
    /// Changed objects by entity and kind; an object appears once.
    public var objects: [ChangedObjects]
    /// Whether the stored schema is another one.
    public var schemaChanged: Bool
    /// Whether `objects` is empty because nobody knows what changed since the commit before: any
    /// object may have.
    public var isUnknown = false
    /// Whether another engine, of this process or of another, made it.
    public var isForeign = false
}
