// Settings of a container.

package import VarveEngine

@_exported public import enum VarveBase.Retention

/// How a container opens its store and uses memory.
public struct ContainerOptions: Sendable {
    /// Bytes of rows that stay in the row cache though no object holds them; 0: none. Lists that
    /// are gone through in batches may hold twice as many of rows to come.
    public var unreferencedRowBytes: Int
    /// Bytes of decoded pages that stay in memory. A 64th of the machine's memory if not said
    /// otherwise, or of what the control group of the process allows: at least 16 MiB, at most
    /// 256. While less than a sixteenth of the machine's memory is left, no more than 16 MiB stay:
    /// seen by reads that restore pages, and within two seconds by a container that has written.
    /// On systems that do not say what is left, an app calls `trimMemory` at memory warnings.
    public var nodeCacheBytes: Int
    /// Opens for reading only: no lock, no write. Every save throws `readOnly`.
    public var isReadOnly: Bool
    /// Whether a store that does not exist is made.
    public var createIfMissing: Bool
    /// Whether the store is brought to the app's schema by automatic steps.
    public var allowsMigration: Bool
    /// Told now and then how far a migration is, on the thread that does it. It must be short.
    public var onMigrationProgress: (@Sendable (MigrationProgress) -> Void)?
    /// Whether a store of a newer schema is opened though, if `isReadOnly` is set too and the
    /// newer schema still has every entity, attribute and relationship of the app's, under the same
    /// name and with the same type. What else it has is not seen. Otherwise opening throws
    /// `schemaTooNew`.
    public var readsNewerSchemas = false
    /// Entities (`Note`), attributes and relationships (`Note.subtitle`) that the app's schema has
    /// no longer and whose data may go with them. Opening is refused with `schemaMismatch`, and
    /// nothing is written, when the schema lacks one that has data and is not named here. Names
    /// that the store does not have change nothing.
    public var removing: Set<String>
    /// Whether a store may be opened for writing that others than the user of this process may
    /// write. Whoever may write to a store can change any of it unnoticed.
    public var allowsForeignWriters: Bool
    /// Who may read and write the files that are made: the bits of `chmod`, for the user alone if
    /// not said otherwise. Folders let those look into them who may read. It holds for the store
    /// file, also after a compaction, the lock file, blobs and backups; files that are there stay
    /// as they are. Opening throws `invalidRequest` for bits other than reading and writing, when
    /// the user is left out, and when others may write though `allowsForeignWriters` is false.
    public var filePermissions: UInt16 = 0o600
    #if canImport(Darwin)
    /// How the files that are made are protected while the device is locked; nil: as the folder
    /// says. Not tested on other systems, which have no such thing.
    public var fileProtection: FileProtection?
    #endif
    /// Changed objects of recent commits that are remembered for contexts that lag behind;
    /// consecutive ones of a commit count as one. A context that lags further looks at each of its
    /// objects when it moves on.
    public var rememberedChanges: Int
    /// Threads that `performBackgroundTask` works on at most.
    public var backgroundThreads: Int
    /// Whether the view context follows the commits of others.
    public var viewContextMergesAutomatically: Bool
    /// Which commits before the newest one a compaction keeps, so that they can be shown again.
    /// Until one runs, all of them are in the file.
    public var retention: Retention
    /// Whether the store is compacted by itself, beside readers and savers, when more than half of
    /// the file and at least 16 MiB of it can be given back; see `packsRows`, too.
    /// `PersistentContainer.compact` does it when the app says so.
    public var compactsAutomatically: Bool
    /// Whether a compaction packs rows: their pages take 0.43 to 0.90 of what they take otherwise
    /// (docs/Choices.md, "Leaf layout 1"), more of them fit into `nodeCacheBytes`, and filters and
    /// sums read columns. The store is of format version 3 then, which libraries before it cannot
    /// open; a compaction without this option brings version 1 back. Rows that change later, and
    /// those of commits that `retention` keeps after the oldest, are not packed.
    ///
    /// With `compactsAutomatically` and `retention` `.newest` a store that nobody saves in for some
    /// seconds is compacted also when packing makes an eighth of the file free, 1 MiB at least:
    /// after an import, for example. True if not said otherwise.
    public var packsRows = true
    /// Told of requests, saves, batches, merges, checkpoints, compactions, migrations and backups,
    /// on the threads that do them: must be short, and must not use the container; savers may wait
    /// for it. Nil, the default, costs nothing. Requests are told with the values that they
    /// compare. `VarveLogging` and `VarveMetrics` have handlers for swift-log and swift-metrics.
    public var trace: TraceHandler?
    /// How many objects one relationship may be followed to, each with a read of its own, within
    /// ten seconds, before `trace` is told once with the `prefetch` that reads them together. Of
    /// the view context and others that tell observers. 0: never. Costs nothing without `trace`.
    public var repeatedFaultsMax = 64
    /// Whether what objects print of themselves (`description`, `dump`) has no values: entity, ID,
    /// state and names alone.
    public var redactsDescriptions = false
    /// Told about each implicit read that failed, on the thread of the context.
    public var onReadFailure: (@Sendable (ReadFailure) -> Void)?
    /// How long a save waits for another process to end its turn: tests wait less.
    package var turnMilliseconds: Int?
    /// What tests change of the engine's settings.
    package var adjustingEngine: (@Sendable (inout EngineOptions) -> Void)?
    /// What tests of tests leave out (docs/Testing.md).
    package var plantedBugs: Set<PlantedObjectBug> = []
    /// Whether not only the view context tells observers: tests on any thread have some.
    package var everyContextObserves = false

    /// What `nodeCacheBytes` is where nothing else is said.
    public static let usualNodeCacheBytes = EngineOptions.usualNodeCacheBytes

    /// The defaults, except where said otherwise.
    public init(
        unreferencedRowBytes: Int = 8 << 20,
        nodeCacheBytes: Int = ContainerOptions.usualNodeCacheBytes,
        isReadOnly: Bool = false,
        createIfMissing: Bool = true,
        allowsMigration: Bool = true,
        removing: Set<String> = [],
        allowsForeignWriters: Bool = false,
        rememberedChanges: Int = 1 << 20,
        backgroundThreads: Int = 4,
        viewContextMergesAutomatically: Bool = true,
        retention: Retention = .newest,
        compactsAutomatically: Bool = true,
        onReadFailure: (@Sendable (ReadFailure) -> Void)? = nil
    ) {
        self.unreferencedRowBytes = unreferencedRowBytes
        self.nodeCacheBytes = nodeCacheBytes
        self.isReadOnly = isReadOnly
        self.createIfMissing = createIfMissing
        self.allowsMigration = allowsMigration
        self.removing = removing
        self.allowsForeignWriters = allowsForeignWriters
        self.rememberedChanges = rememberedChanges
        self.backgroundThreads = backgroundThreads
        self.viewContextMergesAutomatically = viewContextMergesAutomatically
        self.retention = retention
        self.compactsAutomatically = compactsAutomatically
        self.onReadFailure = onReadFailure
    }
}
