// An open store with its schema, its row cache and its contexts.
//
// Invariants
// - Sendable: everything in it is immutable, locked, or on the main actor.
// - `open` has no default for `at:`; memory has a name of its own.
// - Once it is closed nothing is read from the store, and no commit is heard of.

public import Foundation
import Synchronization
import VarveBase
package import VarveEngine
package import VarveRecords

/// An open store. Opens contexts and runs background work; shared by the whole app.
public final class PersistentContainer: Sendable {
    /// The settings that it was opened with.
    public let options: ContainerOptions
    let store: RecordStore
    let schema: SchemaModel
    let identity: UUIDValue
    /// Path of the store, for messages.
    let place: String
    let counters = ObjectCounters()
    let pins = PinTable()
    let registries = RegistryList()
    let feed: CommitFeed
    /// The loops that wait for commits.
    let signals = LiveSignals()
    let listeners = CommitListeners()
    let workers: WorkerPool
    private let closed = Atomic<Bool>(false)
    private let observation = Mutex<CommitObservation?>(nil)
    private let mergeIsScheduled = Atomic<Bool>(false)
    private let liveIsScheduled = Atomic<Bool>(false)
    @MainActor private var storedViewContext: ManagedObjectContext?

    init(
        store: RecordStore,
        schema: SchemaModel,
        place: String,
        options: ContainerOptions
    ) throws(RecordError) {
        self.store = store
        self.schema = schema
        self.identity = store.identity
        self.place = place
        self.options = options
        self.workers = WorkerPool(limit: options.backgroundThreads)
        self.feed = CommitFeed(
            newest: try store.snapshot().number,
            changesMax: options.rememberedChanges
        )
    }

    deinit { listeners.end() }

    // MARK: Opening and closing

    /// Opens the store at `url`, makes it if it does not exist, and brings it to the app's schema.
    ///
    /// A migration is one commit: whatever ends it, the store then has the old schema and all of
    /// its data. It is ended by cancelling the task that opens.
    ///
    /// - Parameters:
    ///   - url: the store file; the end ".varve" is added to a name without it. Its folder must
    ///     exist; a blob folder and a lock file are made beside it.
    ///   - schema: the app's entities.
    ///   - migrations: the stages from older schemas to this one. Nil: automatic steps alone.
    ///   - options: how the store is opened, and how memory is used.
    /// - Throws: `StoreError` with `notAStore`, `formatTooNew`, `damaged`, `busy`, `missingFolder`,
    ///   `permissionDenied`, `schemaMismatch`, `schemaTooNew`, `invalidSchema`, `notUnique`,
    ///   `migrationFailed`, `ioFailed`, `diskFull`; what the code of a stage throws;
    ///   `CancellationError` when the task was cancelled before the migration ended.
    public static func open(
        at url: URL,
        schema: any VersionedSchema.Type,
        migrations: (any MigrationPlan.Type)? = nil,
        options: ContainerOptions = ContainerOptions()
    ) async throws -> PersistentContainer {
        let wanted = try WantedSchema(schema, migrations)
        let cancellation = Cancellation()
        return try await withTaskCancellationHandler {
            try await onThread {
                try make(try location(of: url), place: url.path, wanted, options, cancellation)
            }
        } onCancel: {
            cancellation.cancel()
        }
    }

    /// Opens the store at `url` and waits for it: for tools that have nothing else to do.
    ///
    /// - Throws: as `open`.
    public static func openNow(
        at url: URL,
        schema: any VersionedSchema.Type,
        migrations: (any MigrationPlan.Type)? = nil,
        options: ContainerOptions = ContainerOptions()
    ) throws -> PersistentContainer {
        try make(
            try location(of: url),
            place: url.path,
            try WantedSchema(schema, migrations),
            options
        )
    }

    /// Makes a store in memory. It ends with the container; no file is left.
    public static func inMemory(
        schema: any VersionedSchema.Type,
        options: ContainerOptions = ContainerOptions()
    ) throws -> PersistentContainer {
        try make(.memory, place: "memory", try WantedSchema(schema, nil), options)
    }

    /// Opens or makes a store wherever it lies: `VarveTesting` has disks that fail.
    package static func openNow(
        _ location: StoreLocation,
        place: String,
        schema: any VersionedSchema.Type,
        migrations: (any MigrationPlan.Type)? = nil,
        options: ContainerOptions
    ) throws -> PersistentContainer {
        try make(location, place: place, try WantedSchema(schema, migrations), options)
    }

    /// Opens a store by a schema that no class describes: tests make up schemas and stages.
    package static func openNow(
        _ location: StoreLocation,
        place: String,
        description: SchemaDescription,
        stages: [MigrationStage],
        options: ContainerOptions = ContainerOptions()
    ) throws -> PersistentContainer {
        try make(location, place: place, WantedSchema(description, stages), options)
    }

    /// Whether this container shows the store as it was when it was opened and hears of no later
    /// save of another process: it was opened with `isReadOnly`, the file `NAME.varve-lock` was
    /// missing, and it could not be made. Open the store again for what was saved since. A blob
    /// that another process has let go of meanwhile throws `blobSwept`.
    public var readsOneMoment: Bool { store.engine.readsOneMoment }

    private static func make(
        _ location: StoreLocation,
        place: String,
        _ wanted: WantedSchema,
        _ options: ContainerOptions,
        _ cancellation: Cancellation = Cancellation()
    ) throws -> PersistentContainer {
        let types = wanted.types
        let records = try options.records(place, types)
        let watch = options.trace.map { _ in MigrationWatch() }
        let store = try traced(options.trace) {
            (result: Result<RecordStore, any Error>, duration) in
            watch?.event(result, duration, to: wanted.description.version)
        } _: {
            do {
                return try RecordStore.open(
                    location,
                    schema: wanted.description,
                    stages: try wanted.recordStages(place, options),
                    options: records
                ) { progress in
                    watch?.note(progress)
                    try cancellation.check()
                    options.onMigrationProgress?(MigrationProgress(progress))
                }
            } catch let error as RecordError {
                throw StoreError.translating(error, store: place, isOpening: true)
            }
        }
        do {
            let container = try PersistentContainer(
                store: store,
                schema: try SchemaModel(types, record: store.openedSchema),
                place: place,
                options: options
            )
            container.observe()
            return container
        } catch {
            try? store.close()
            throw (error as? RecordError).map {
                StoreError.translating($0, store: place, isOpening: true)
            } ?? error
        }
    }

    private func observe() {
        let made = store.observeCommits(
            { [weak self] changes in self?.noteCommit(changes) },
            afterwards: { [weak self] changes in self?.tell(changes) }
        )
        observation.withLock { $0 = made }
    }

    /// Runs blocking work on a thread of its own, so that no cooperative thread waits for the disk.
    static func onThread<Result: Sendable>(
        _ body: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        try await WorkerPool(limit: 1).run(body)
    }

    static func location(of url: URL) throws(StoreError) -> StoreLocation {
        // A URL takes much longer to be taken apart than the text that it gives.
        let path = url.path.utf8
        let slash = UInt8(ascii: "/")
        let start = path.lastIndex(of: slash).map(path.index(after:)) ?? path.startIndex
        let name = path[start...]
        guard url.isFileURL, !name.isEmpty else {
            throw StoreError(
                .invalidRequest,
                "the store's URL must name a file",
                place: .init(store: url.absoluteString),
                suggestion: "Give the path of a file, such as URL(filePath: \"notes.varve\")."
            )
        }
        var folder = path[..<start]
        // The root keeps its slash.
        while folder.count > 1, folder.last == slash { folder.removeLast() }
        let directory = folder.isEmpty ? "." : String(Substring(folder))
        return .file(directory: directory, name: String(Substring(name)))
    }

    /// Writes a checkpoint and gives up the file and its lock.
    ///
    /// Afterwards nothing can be read from the store or saved: what needs it throws `closed`.
    /// Values that an object has in memory can still be read. Closing twice does nothing.
    ///
    /// - Parameter discardingEdits: true: unsaved edits of all contexts are given up. False: if
    ///   there are any, the container stays open, and the error says whose they are.
    /// - Throws: `StoreError`: `unsavedChanges`, with a detail for each context; `reentrantSave`
    ///   in a closure that runs while the store is being written. With these two it stays open.
    ///   `ioFailed`, `diskFull`, `outcomeUnknown`: the store is closed all the same, and what was
    ///   saved is in it.
    public func close(discardingEdits: Bool = false) async throws {
        try await PersistentContainer.onThread { [self] in
            try closeNow(discardingEdits: discardingEdits)
        }
    }

    /// Like `close`, and waits for it.
    public func closeNow(discardingEdits: Bool = false) throws {
        try translating { () throws(RecordError) in try store.checkNotInBody() }
        if isClosed { return }
        if !discardingEdits { try checkNothingIsUnsaved() }
        if closed.exchange(true, ordering: .acquiringAndReleasing) { return }
        observation.withLock { observation in
            observation?.cancel()
            observation = nil
        }
        // The view context holds its container: without it, neither is held by the other.
        // The main actor may be busy, or never run at all: what waits for it holds nothing.
        Task { @MainActor [weak self] in self?.storedViewContext = nil }
        signals.wake()
        listeners.end()
        try translating { () throws(RecordError) in try store.close() }
    }

    private func checkNothingIsUnsaved() throws(StoreError) {
        let unsaved = registries.unsaved
        if unsaved.isEmpty { return }
        let details = unsaved.map { label, objects in
            StoreError.Detail(
                code: .unsavedChanges,
                message: "\(label): \(objects) unsaved \(objects == 1 ? "object" : "objects")",
                place: .init(store: place)
            )
        }
        throw StoreError(
            .unsavedChanges,
            "the container was to be closed, and contexts of it have unsaved edits: "
                + details.map(\.message).joined(separator: "; "),
            place: .init(store: place),
            details: details,
            suggestion: "Save these contexts, or roll them back, and close again; or say "
                + "close(discardingEdits: true). The container is still open."
        )
    }

    /// What became of a save that failed with `outcomeUnknown`: whether it is in the store, or
    /// never will be. To be asked after the store was opened again, now or at any later time.
    ///
    /// - Parameter commit: `StoreError.commit` of the failure.
    /// - Returns: `unknown` from the opening that failed, and from one that is read-only and does
    ///   not find it; for commits from before the store kept account, before a compaction that
    ///   left out damage, before the store was recovered, or before the last 4,096 openings (with
    ///   several writing processes: turns of one behind another).
    /// - Throws: `StoreError` with `damaged`, `ioFailed`, `diskFull`, `busy`, `closed`,
    ///   `outcomeUnknown` when the answer itself could not be made sure of.
    /// - Complexity: O(log n). An answer `absent` may write a checkpoint, once for each opening or
    ///   turn, and waits for the turn to write.
    public func outcome(of commit: CommitIdentity) throws -> CommitOutcome {
        try translating { () throws(RecordError) in try store.outcome(of: commit) }
    }

    // MARK: Contexts

    /// The context for views. The container keeps it until it is closed. It tells observers of its
    /// objects, and follows the commits of other contexts.
    ///
    /// It moves to a commit as soon as the main actor has time: code on the main actor that has
    /// just saved another context sees the old values until it suspends, or until it calls
    /// `viewContext.advance()`.
    @MainActor public var viewContext: ManagedObjectContext {
        if let storedViewContext { return storedViewContext }
        let context = ManagedObjectContext(
            container: self,
            author: "",
            label: "view context",
            observes: true
        )
        context.automaticallyMergesChanges = options.viewContextMergesAutomatically
        if !isClosed { storedViewContext = context }
        return context
    }

    // MARK: Commits

    private func noteCommit(_ changes: CommitChanges) {
        if changes.isUnknown {
            feed.forget(through: changes.number)
        } else {
            feed.append(changes.number, changes.objectChanges, seenByAll: pins.oldest)
        }
        if options.viewContextMergesAutomatically { scheduleMerge() }
    }

    private func tell(_ changes: CommitChanges) {
        signals.wake()
        listeners.tell(changes, in: self)
    }

    /// One merge for all commits until the main actor gets to it.
    private func scheduleMerge() {
        guard !mergeIsScheduled.exchange(true, ordering: .acquiringAndReleasing) else { return }
        Task { @MainActor [weak self] in self?.mergeIntoViewContext() }
    }

    /// One step of the view context's live lists for all edits until the main actor gets to it.
    func scheduleLive() {
        guard !liveIsScheduled.exchange(true, ordering: .acquiringAndReleasing) else { return }
        Task { @MainActor [weak self] in
            self?.liveIsScheduled.store(false, ordering: .releasing)
            self?.storedViewContext?.processPendingChanges()
        }
    }

    @MainActor private func mergeIntoViewContext() {
        mergeIsScheduled.store(false, ordering: .releasing)
        guard let context = storedViewContext, context.automaticallyMergesChanges,
            context.commit != nil, !isClosed
        else { return }
        context.advance(isMerge: true)
        // The feed hears of a commit just before it can be seen.
        if let commit = context.commit, commit < feed.newest, !isClosed,
            context.readFailures.isEmpty
        {
            scheduleMerge()
        }
    }

    // MARK: For contexts

    var isClosed: Bool { closed.load(ordering: .acquiring) }

    /// Before each read of the store: what was read before may be looked at still.
    func checkOpen() throws(StoreError) {
        guard isClosed else { return }
        throw StoreError(
            .closed,
            "the container is closed",
            place: .init(store: place),
            suggestion: "Open the store again; objects belong to the container that they are from."
        )
    }

    func newestSnapshot(for owner: PinOwner) throws(StoreError) -> RecordSnapshot {
        try checkOpen()
        return try translating { () throws(RecordError) in
            try store.snapshot(for: owner)
        }
    }

    /// Runs a call of the layer below and translates its error.
    func translating<Value>(
        _ body: () throws(RecordError) -> Value
    ) throws(StoreError) -> Value {
        do throws(RecordError) {
            return try body()
        } catch {
            throw StoreError.translating(error, in: self)
        }
    }

    @usableFromInline func check<Entity>(
        _ id: TypedObjectID<Entity>
    ) throws(StoreError) -> EntityModel {
        if id.objectID.store == identity, let model = schema.entity(of: Entity.self),
            model.record.id == id.objectID.entity
        {
            return model
        }
        let model = try check(id.objectID)
        guard model.name == Entity.entityName else {
            throw StoreError.wrongEntity(id.objectID, Entity.entityName)
        }
        // The name may be another class's: objects are made of the class that is listed.
        return try self.model(of: Entity.self)
    }

    func check(_ id: ManagedObjectID) throws(StoreError) -> EntityModel {
        guard id.store == identity else {
            throw StoreError(
                .foreignID,
                "the ID belongs to another store",
                place: .init(store: place, object: id)
            )
        }
        guard let model = schema.entity(id.entity) else {
            throw StoreError(
                .unknownEntity,
                "the ID's entity is not in the schema",
                place: .init(store: place, object: id)
            )
        }
        return model
    }

    func model<Entity: ManagedObject>(of type: Entity.Type) throws(StoreError) -> EntityModel {
        guard let model = schema.entity(of: type) else {
            throw StoreError(
                .unknownEntity,
                "\(Entity.entityName) is not in the container's schema",
                place: .init(store: place, entity: Entity.entityName),
                suggestion: "List it in the schema's entities."
            )
        }
        return model
    }
}
