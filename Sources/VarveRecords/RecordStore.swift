// An open store with a schema: snapshots, write transactions, the row cache.
//
// Invariants
// - A snapshot is read with the schema of its own commit.
// - The row cache learns of a commit before a snapshot of it can be taken.
// - A write that violates a unique constraint commits nothing.

import Synchronization
public import VarveBase
public import VarveEngine
import VarveFormat

/// Settings of a record store.
public struct RecordOptions: Sendable {
    /// Settings of the engine below.
    public var engine: EngineOptions
    /// What to do when there is no store, and whether it may be written.
    public var mode: StoreOpenMode
    /// Bytes of rows kept in the row cache that no object uses. 0: none.
    public var unreferencedRowBytes: Int
    /// Whether a store with an older schema is changed automatically when it is opened.
    public var allowsMigration: Bool
    /// Whether a store with a newer schema is opened for reading, where it can be read.
    public var readsNewerSchemas = false
    /// What tests of tests leave out.
    package var plantedStageBugs: Set<PlantedStageBug> = []
    /// Names of entities (`Note`) and properties (`Note.subtitle`) that the declared schema lacks
    /// and whose data may go with them.
    public var removing: Set<String>
    /// By the names of an entity and an attribute: what makes a new value for each row, if the
    /// attribute's default is not the same each time. Asked for attributes that are new or become
    /// required, at most once per change.
    public var varyingDefault: @Sendable (String, String) -> (() -> StoredValue)?

    /// By the name of an entity: its derived attributes. Nil: it has none.
    public var derived: @Sendable (String) -> DerivedAttributes? = { _ in nil }

    /// Joins settings.
    public init(
        engine: EngineOptions = EngineOptions(),
        mode: StoreOpenMode = .createIfMissing,
        unreferencedRowBytes: Int = 8 << 20,
        allowsMigration: Bool = true,
        removing: Set<String> = [],
        varyingDefault: @escaping @Sendable (String, String) -> (() -> StoredValue)? = { _, _ in
            nil
        }
    ) {
        self.engine = engine
        self.mode = mode
        self.unreferencedRowBytes = unreferencedRowBytes
        self.allowsMigration = allowsMigration
        self.removing = removing
        self.varyingDefault = varyingDefault
    }
}

/// What a record store did since it was opened, and what it holds.
public struct RecordStatistics: Sendable {
    /// Rows read from the store for objects: not those found in the row cache.
    public var storeReads: Int
    /// Passes over an entity's tree in which they were read.
    public var storePasses: Int
    /// Rows looked at by filters and by sorts in memory.
    public var rowsScanned: Int
    /// Rows among them that packed leaves ruled out by the codes of their columns: never unpacked.
    public var rowsRuledOut: Int
    /// Index entries looked at.
    public var entriesScanned: Int
    /// The row cache.
    public var rowCache: RowCacheStatistics
    /// The engine.
    public var engine: EngineStatistics
}

/// An open store with a schema. Use it from any thread.
public final class RecordStore: Sendable {
    /// The engine below: blobs, checkpoints.
    public let engine: Engine
    /// The rows that all contexts share.
    public let rowCache: RowCache

    let counters = RecordCounters()
    /// How it was opened.
    let options: RecordOptions
    private let delegate: StoreDelegate
    private let declared: SchemaDescription?
    private let schemas: Mutex<KnownSchemas>

    private struct KnownSchemas {
        var newest: (bytes: [UInt8], schema: RecordSchema)?
        var older: [UInt32: RecordSchema] = [:]
    }

    // MARK: Opening

    /// Opens a store, makes it if there is none, and brings its schema up to date in one commit.
    ///
    /// Throws `invalidSchema`, `schemaMismatch` when the step is none that can be taken, or when it
    /// would take data away that `options.removing` does not name, `schemaTooNew`, `notUnique` when
    /// a new constraint is violated, `engine`.
    public static func open(
        _ location: StoreLocation,
        schema: SchemaDescription,
        options: RecordOptions = RecordOptions()
    ) throws(RecordError) -> RecordStore {
        let declared = try schema.checked()
        let store = try RecordStore(location, declared, options)
        do throws(RecordError) {
            try store.fit(declared, options)
        } catch {
            try? store.engine.close()
            throw error
        }
        return store
    }

    /// The same by stages: those that the store has not reached yet, in their order, then automatic
    /// steps to `schema`. All of them are one commit, or none.
    ///
    /// - Parameter report: told how far it is; what it throws ends the migration.
    ///
    /// Throws what the other `open` throws, `stageFailed`, `invalidSchema` when the stages are in
    /// no order, and what the stages' code and `report` throw. The store is as it was then.
    public static func open(
        _ location: StoreLocation,
        schema: SchemaDescription,
        stages: [RecordStage],
        options: RecordOptions = RecordOptions(),
        report: @escaping (RecordMigrationProgress) throws -> Void = { _ in }
    ) throws -> RecordStore {
        let declared = try schema.checked()
        let store = try RecordStore(location, declared, options)
        do {
            let chain = MigrationChain(declared, stages, options)
            try store.fit(chain, MigrationControl(report))
        } catch {
            try? store.engine.close()
            throw error
        }
        return store
    }

    /// Opens a store with the schema that it has, for tools and for migrations.
    public static func openAsStored(
        _ location: StoreLocation,
        options: RecordOptions = RecordOptions()
    ) throws(RecordError) -> RecordStore {
        try RecordStore(location, nil, options)
    }

    /// The automatic steps that `open` would take. Changes nothing.
    public static func planMigration(
        _ location: StoreLocation,
        schema: SchemaDescription,
        options: RecordOptions = RecordOptions()
    ) throws(RecordError) -> [MigrationStep] {
        let declared = try schema.checked()
        var options = options
        options.mode = .readOnly
        let store = try RecordStore(location, nil, options)
        let bytes = store.engine.snapshot().schema
        let stored = try store.record(bytes)
        let steps = try SchemaCatalog.resolve(declared, stored: stored).steps
        try store.close()
        return steps
    }

    /// Opens what an observer sees, with the schema that it has: for tools. Takes no lock, writes
    /// nothing.
    ///
    /// - Returns: the store, and why it shows an earlier commit than the observer's newest; see
    ///   `Engine.open(observing:options:delegate:)`.
    public static func open(
        observing observer: LogObserver,
        options: RecordOptions = RecordOptions()
    ) throws(RecordError) -> (store: RecordStore, failure: EngineError?) {
        var failure: EngineError?
        let store = try RecordStore(nil, options) { delegate throws(EngineError) in
            let opened = try Engine.open(
                observing: observer,
                options: options.engine,
                delegate: delegate
            )
            failure = opened.failure
            return opened.engine
        }
        return (store, failure)
    }

    private convenience init(
        _ location: StoreLocation,
        _ declared: SchemaDescription?,
        _ options: RecordOptions
    ) throws(RecordError) {
        try self.init(declared, options) { delegate throws(EngineError) in
            try Engine.open(
                location,
                mode: options.mode,
                options: options.engine,
                delegate: delegate
            )
        }
    }

    private init(
        _ declared: SchemaDescription?,
        _ options: RecordOptions,
        _ makeEngine: (StoreDelegate) throws(EngineError) -> Engine
    ) throws(RecordError) {
        rowCache = RowCache(
            budgetBytes: options.unreferencedRowBytes,
            published: CommitNumber(0)
        )
        delegate = StoreDelegate(rowCache, declared)
        self.declared = declared
        self.options = options
        schemas = Mutex(KnownSchemas())
        do throws(EngineError) { engine = try makeEngine(delegate) } catch {
            throw .engine(error)
        }
        // Rows that are read at earlier commits hold for those alone.
        rowCache.publish(engine.knownSnapshot().number, changed: [], schemaChanged: true)
    }

    /// Makes the store's schema the declared one by automatic steps.
    private func fit(_ declared: SchemaDescription, _ options: RecordOptions) throws(RecordError) {
        do {
            try fit(MigrationChain(declared, [], options), MigrationControl())
        } catch let error as RecordError {
            throw error
        } catch {
            preconditionFailure("an error of another layer: \(error)")
        }
    }

    /// A commit of this layer's own, which throws its errors and the engine's.
    func writeOwn(
        author: String,
        _ body: (WriteTransaction) throws -> Void
    ) throws(RecordError) {
        do {
            try writeAny(author: author, body)
        } catch let error as RecordError {
            throw error
        } catch {
            preconditionFailure("an error of another layer: \(error)")
        }
    }

    /// The same where the app's code may throw errors of its own.
    func writeAny(author: String, _ body: (WriteTransaction) throws -> Void) throws {
        do {
            _ = try engine.write(author: author, body)
        } catch let error as EngineError {
            throw RecordError.engine(error)
        } catch let error as FormatError {
            throw RecordError.format(error)
        }
    }

    func record(_ bytes: [UInt8]) throws(RecordError) -> SchemaRecord? {
        if bytes.isEmpty { return nil }
        return try RecordError.ofFormat { () throws(FormatError) in try delegate.record(bytes) }
    }

    deinit {
        // The engine's own thread may hold it for a moment longer, and with it the lock: whoever
        // opens the store again right away must not find it busy.
        engine.closeForOwner()
    }

    /// Throws `reentrant` of the engine in a closure that runs while the store is being written.
    public func checkNotInBody() throws(RecordError) {
        try RecordError.ofEngine { () throws(EngineError) in try engine.checkNotInBody() }
    }

    /// Closes the engine below. Snapshots that are held stay readable.
    public func close() throws(RecordError) {
        try RecordError.ofEngine { () throws(EngineError) in try engine.close() }
    }

    // MARK: Schema

    /// The schema of the newest commit.
    public var schema: RecordSchema {
        get throws(RecordError) {
            let snapshot = engine.snapshot()
            return try schema(snapshot.schema)
        }
    }

    /// The same without looking for other processes' commits: what an opening has found or made.
    package var openedSchema: RecordSchema {
        get throws(RecordError) { try schema(engine.knownSnapshot().schema) }
    }

    /// The schema that stored bytes say; decoded once per revision.
    func schema(_ bytes: [UInt8]) throws(RecordError) -> RecordSchema {
        let known = schemas.withLock { known in
            known.newest.flatMap { $0.bytes == bytes ? $0.schema : nil }
        }
        if let known { return known }
        guard let record = try record(bytes) else {
            return RecordSchema(version: 0, fingerprint: 0, all: [])
        }
        if let older = schemas.withLock({ $0.older[record.revision] }) { return older }
        let schema = try RecordError.ofFormat { () throws(FormatError) in
            try delegate.schema(bytes)
        }
        schemas.withLock { known in
            known.older[record.revision] = schema
            if known.newest.map({ $0.schema.version <= schema.version }) ?? true {
                known.newest = (bytes, schema)
            }
        }
        return schema
    }

    // MARK: Reading and writing

    /// The newest commit, pinned until the snapshot goes. O(1).
    ///
    /// - Parameter owner: who holds it, for `statistics`. Without one, the snapshot is counted
    ///   among those without a name, and costs least.
    public func snapshot(for owner: PinOwner? = nil) throws(RecordError) -> RecordSnapshot {
        let storage = owner.map { engine.snapshot(for: $0) } ?? engine.snapshot()
        return RecordSnapshot(storage: storage, schema: try schema(storage.schema), store: self)
    }

    /// Runs `body` as the only writer and makes what it changed one commit.
    ///
    /// Unique constraints are checked when `body` has returned; a violation throws `notUnique` and,
    /// as with every error before that, nothing happened.
    ///
    /// Throws what `body` throws, `RecordError`, and `EngineError` of the commit itself.
    /// - Returns: what `body` returned and the commit; nil when nothing was changed.
    public func write<R>(
        author: String = "",
        durability: Durability = .full,
        _ body: (RecordTransaction) throws -> R
    ) throws -> (result: R, commit: CommitNumber?) {
        try engine.write(author: author, durability: durability) { storage in
            let schema = try self.schema(storage.schema)
            try checkVersion(schema)
            let transaction = RecordTransaction(storage, schema, self)
            let result = try body(transaction)
            try transaction.finish()
            return result
        }
    }

    /// Joins the line for the writer, as a task: see `WriterPlace`.
    public func reserveWriter() -> WriterPlace { WriterPlace(engine) }

    /// Another process may have changed the schema, forward or back.
    private func checkVersion(_ schema: RecordSchema) throws(RecordError) {
        guard let declared, schema.version != declared.version else { return }
        if schema.version > declared.version {
            throw .schemaTooNew(stored: schema.version, known: declared.version)
        }
        throw .schemaMismatch(problems: [
            "the store was taken back to schema version \(schema.version) while this app, of"
                + " version \(declared.version), had it open: open it again"
        ])
    }

    /// Hands out object IDs; they are never handed out again.
    /// - Returns: the first of `count` consecutive IDs.
    public func allocateObjectIDs(_ count: Int) -> ObjectID {
        engine.allocateObjectIDs(count)
    }

    /// Calls `handler` for every commit, in order, just before its snapshots can be taken. It runs
    /// on the thread of this or another saver, and savers wait for it: it must be short and must
    /// not call the store.
    public func observeCommits(
        _ handler: @escaping @Sendable (CommitChanges) -> Void,
        afterwards: @escaping @Sendable (CommitChanges) -> Void = { _ in }
    ) -> CommitObservation {
        // Without an observer a reading process hears of commits early enough at its snapshots.
        engine.followInBackground()
        return delegate.observe(handler, afterwards)
    }

    /// The store's identity; it survives compaction, backup and restart.
    public var identity: UUIDValue { engine.storeID }

    /// Rows and index entries that requests looked at since the store was opened.
    public var scanned: (rows: Int, entries: Int) {
        (
            counters.rowsScanned.load(ordering: .relaxed),
            counters.entriesScanned.load(ordering: .relaxed)
        )
    }

    /// Counters since opening, and what is held now.
    public var statistics: RecordStatistics {
        RecordStatistics(
            storeReads: counters.storeReads.load(ordering: .relaxed),
            storePasses: counters.storePasses.load(ordering: .relaxed),
            rowsScanned: counters.rowsScanned.load(ordering: .relaxed),
            rowsRuledOut: counters.rowsRuledOut.load(ordering: .relaxed),
            entriesScanned: counters.entriesScanned.load(ordering: .relaxed),
            rowCache: rowCache.statistics,
            engine: engine.statistics
        )
    }
}
