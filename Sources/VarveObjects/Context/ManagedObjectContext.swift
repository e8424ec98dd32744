// A working set of objects over one commit: its state, its table of objects, its snapshot.
//
// Invariants
// - Everything a context reads comes from one commit, `snapshot`, until save, merge, `advance`,
//   `refreshAllObjects` or `reset` moves it.
// - `core.registry` knows every living object and keeps none; `changed` holds inserted, changed and
//   deleted ones strongly.
// - While one reference to an object lives, its ID leads to that instance.
// - An object and its context have the same isolation: neither is Sendable.
// - A context without unsaved edits and undo steps lives as long as one of its objects. One with
//   edits belongs to the app: when that lets it go, the edits end.

public import Observation
import Synchronization
public import VarveBase
public import VarveRecords

/// A working set of managed objects that sees one commit of the store, with unsaved edits of its
/// own.
///
/// Not Sendable: a context and its objects stay in the isolation that they were made in.
public final class ManagedObjectContext: Observable {
    /// The container.
    public let container: PersistentContainer
    /// Named in every commit of this context.
    public var author: String
    /// Whether commits of others are merged without being asked for. On for the view context, and
    /// for contexts that were made so.
    public internal(set) var automaticallyMergesChanges = false

    @usableFromInline let core: ContextCore
    @safe @exclusivity(unchecked) var changed: [ObjectID: any ManagedObject] = [:] {
        didSet {
            tellUnsaved()
            tellKept()
        }
    }
    /// Whether the context keeps objects, as it was told last.
    private var keepsObjects = false
    /// Grows whenever an object enters `changed`.
    var changedEntries = 0
    /// What the app wants of relationships, in order.
    var journal = Journal()
    /// What the journal made of lists; of to-one relationships it is in the objects' edits.
    @safe @exclusivity(unchecked) var toManyEdits: [ToManyKey: ToManyEdit] = [:] {
        didSet { tellUnsaved() }
    }
    var looseReferences: [LooseKey: Set<ObjectID>] = [:]
    /// The lists without inverse to which an object was added.
    var looseLists: [ObjectID: Set<ToManyKey>] = [:]
    var lostTargets: [LostTarget] = [] { didSet { tellUnsaved() } }
    /// Objects that others deleted, and of whose relationships the journal wants something.
    var linkedAndGone: [ObjectID: any ManagedObject] = [:] { didSet { tellKept() } }
    /// Objects that a cascade deleted, and the one from which it came to them.
    var reachedBy: [ObjectID: ObjectID] = [:]
    /// What the cascade of a new object deleted: deleted for itself when that one ends.
    var reachedByNew: [(by: ObjectID, model: EntityModel, id: ObjectID)] = []
    /// New objects that ended with owners that both deleted, since the last save.
    var endedWithOwners: Set<ObjectID> = []
    /// Objects that this context deleted and, meanwhile, others too.
    @safe @exclusivity(unchecked) var alsoDeleted: [ObjectID: EntityModel] = [:]
    /// What the journal deleted.
    @safe @exclusivity(unchecked) var doomed: [ObjectID: EntityModel] = [:]
    /// The same, in order, and some that are none any more.
    var deletions: [ObjectID] = []
    /// How many of them have lost their edits, or came by a replay and keep them.
    var deletionsEnded = 0
    /// Doomed before the journal was laid again, and by an edit that is taken out for a move.
    var (doomedBefore, doomedAside): (Set<ObjectID>, Set<ObjectID>) = ([], [])
    /// Where objects with edits stood in others' lists before others deleted them.
    var lastPlaces: [ObjectID: [ToManyKey: LinkPlace]] = [:]
    /// Large values of rows that are gone, read before their commit was left.
    var keptValues = KeptRows()
    /// The commits that are being left, oldest first: old rows have their large values there.
    @safe @exclusivity(unchecked) var leaving: [RecordSnapshot] = []
    /// Blobs that a save has written, until the context is on its commit.
    var savedBlobs: [BlobReference: Blob] = [:]
    /// Grows whenever all edits end, given up or saved: an edit under way sees it.
    var withdrawals = 0
    /// Grows with each run of the evaluator and whenever edits end.
    var graphVersion = 0
    /// What the evaluator under way reads and changes; nil: it may be anything.
    var concerned: Set<ToManyKey>?
    /// What one in an observer of another has changed; nil: it may be anything.
    var touched: [ToManyKey]? = []
    /// Evaluators under way, one in an observer of another.
    var evaluators = 0
    /// What observers are to be told when the journal has been laid; nil: they are told at once.
    @safe @exclusivity(unchecked) var heldBack: [(object: any ManagedObject, slots: [Int]?)]?
    /// The version that the evaluator under way began with.
    var laidVersion = 0
    /// Observers being told, one inside another. They see edits, merges and saves half done.
    var observersTold = 0
    /// Edits of relationships under way: what is done of them yet may look like nothing.
    var editsUnderWay = 0
    /// Whether delete rules run: a save by an observer of what they do would write half of it.
    var isDeleting = false
    /// Who takes edits down: undo steps, transactions, a branch.
    var recorders: [EditRecorder] = [] { didSet { tellKept() } }
    /// The journal is being laid again: nothing of it is an edit.
    var replays = 0
    /// Above 0, the context moves: observers may read old rows, edits given up, and what is gone.
    var behindReads = 0
    /// Grows when the journal's edits are saved.
    var era = 0
    var undoSteps: UndoSteps?
    /// Of a branch: its parent, and its own edits.
    var branchState: BranchState?
    /// Transactions whose body runs, one inside the other.
    var openTransactions = 0
    /// Above 0, objects are not told that they are deleted: an undo deletes what was told of then.
    var hooksAreSilent = 0
    /// Marked as deleted; their rules have not run yet.
    var deletesToProcess: [ObjectID] = []
    var pendingBlobs: [BlobReference: Blob] = [:]
    @safe @exclusivity(unchecked) var failures: [ObjectID: StoreError] = [:]
    var failureList: [ReadFailure] = []
    /// Objects in `failureList`.
    var listedFailures: Set<ObjectID> = []
    @safe @exclusivity(unchecked) var refusals = Refusals()
    /// What the context is doing: a save may not begin inside another.
    @safe @exclusivity(unchecked) var phase = ContextPhase.idle
    /// The object whose `prepareForDeletion` runs: it may still be edited.
    var hookObject: (any ManagedObject)?
    var cancellation: CancellationFlag?
    /// What moves the context on when somebody commits; ends with it.
    var following: FollowingTask?
    /// Objects of which the next save is to see that nobody changed them.
    var relied: [ObjectID: EntityModel] = [:]
    /// Brings the live lists and values along; nil before the first of them.
    var live: LiveFeed?
    /// What observers were told of states and lists; nil before the first of them asked.
    var watch: StateWatch?
    @safe @exclusivity(unchecked) private var pinned: RecordSnapshot?
    /// The commit of the past at which the context stays; nil for one of the present.
    private(set) var fixed: RecordSnapshot?
    /// Objects that the commit has, among those that edits lead to. Of one commit only.
    @safe @exclusivity(unchecked) var existing: Set<ObjectID> = []
    /// The objects of the edit under way, which is asked for them again and again.
    @safe @exclusivity(unchecked) var inHand: ObjectsInHand?
    /// Counts reads one by one; nil where nobody wants to hear of them.
    let faultWatch: FaultWatch?
    @safe @exclusivity(unchecked) private var held = HeldCommit()
    private let owner: PinOwner
    /// The same commit, held by blob handles that may outlive the context.
    private weak var blobSnapshot: RecordSnapshot?

    init(container: PersistentContainer, author: String, label: String, observes: Bool = false) {
        self.container = container
        self.author = author
        self.core = ContextCore(container: container, observes: observes, label: label)
        faultWatch = observes ? FaultWatch(container) : nil
        self.owner = PinOwner(.context, label: label)
        container.counters.contexts.add(1, ordering: .relaxed)
        core.registry.setContext(self)
    }

    /// Rows that a list of this context reads ahead at most. The view context's lists are on
    /// screen: what a touch may take is one frame or two, not the fewest passes over the store.
    var rowsAheadMax: Int { core.observes ? 4096 : .max }

    deinit {
        core.registry.endContext()
        core.registry.unsaved.store(0, ordering: .relaxed)
        container.pins.set(&held, nil)
        container.counters.contexts.subtract(1, ordering: .relaxed)
    }

    // MARK: Snapshot

    /// The commit that the context reads; nil before its first read.
    public var commit: CommitNumber? { pinned?.number }

    var snapshot: RecordSnapshot? {
        get { pinned }
        set {
            pinned = newValue
            existing = []
            // What others commit concerns no context of the past.
            if fixed == nil { container.pins.set(&held, newValue?.number) }
        }
    }

    /// The snapshot of this context; the newest commit is pinned at the first read.
    func currentSnapshot() throws(StoreError) -> RecordSnapshot {
        try container.checkOpen()
        if let pinned { return pinned }
        let snapshot = try newestSnapshot()
        self.snapshot = snapshot
        return snapshot
    }

    /// The snapshot that answers a request. Delete rules run first if it looks at unsaved edits: an
    /// observer of what they do may save, and then the context reads another commit.
    func snapshot<Entity>(
        for request: FetchDescriptor<Entity>
    ) throws(StoreError) -> RecordSnapshot {
        let snapshot = try currentSnapshot()
        if !request.includesPendingChanges || deletesToProcess.isEmpty { return snapshot }
        processPendingDeletions()
        return try currentSnapshot()
    }

    /// The newest commit, held by this context; in a context of the past always its own.
    func newestSnapshot() throws(StoreError) -> RecordSnapshot {
        if let fixed, !has(.pastMovesOn) { return fixed }
        return try container.newestSnapshot(for: owner)
    }

    /// Makes this new context one of the past.
    func stay(at past: RecordSnapshot) {
        fixed = past
        snapshot = past
    }

    /// What blob handles hold: they share one, so that they are told from the context in the
    /// statistics.
    func snapshotForBlobs() -> RecordSnapshot? {
        guard let snapshot else { return nil }
        if let blobSnapshot, blobSnapshot.isSame(as: snapshot) { return blobSnapshot }
        let held = snapshot.held(for: PinOwner(.blob, label: owner.label))
        blobSnapshot = held
        return held
    }

    // MARK: Living objects

    /// The living object with that ID.
    func registered(_ id: ObjectID) -> (any ManagedObject)? {
        if let inHand {
            if inHand.id == id { return inHand.object }
            if inHand.targetID == id { return inHand.target }
        }
        guard let (object, entity) = core.registry.find(id) else { return nil }
        return container.schema.entities[entity].cast(object)
    }

    /// The living object with that ID, or a new fault.
    func object(_ id: ObjectID, _ model: EntityModel) -> any ManagedObject {
        if let object = registered(id) { return object }
        func make<Entity: ManagedObject>(_: Entity.Type) -> any ManagedObject {
            makeObject(id, model, row: nil) as Entity
        }
        return make(model.type)
    }

    /// A new object, filled if it gets a pinned row.
    @inlinable func makeObject<Entity: ManagedObject>(
        _ id: ObjectID,
        _ model: EntityModel,
        row: CachedRow?
    ) -> Entity {
        let token = core.takeTokens(1)
        let object = Entity(
            storage: ObjectStorage(
                core: core,
                model: model,
                object: id,
                token: token,
                row: row?.kept() ?? 0
            )
        )
        core.registry.insert(object, id, entity: model.number, token: token)
        return object
    }

    /// One object per ID, in the same order; no ID may come twice. New ones are faults, or filled
    /// where there is a row.
    ///
    /// - Parameters:
    ///   - rows: one place for each ID, its row pinned; nil: faults.
    ///   - takesRows: false if the caller reads them afterwards.
    ///   - isInOrder: whether a fault of these is read with those behind it.
    @inlinable func objects<Entity: ManagedObject>(
        _ ids: [ObjectID],
        _ model: EntityModel,
        rows: RowList? = nil,
        takesRows: Bool = true,
        isInOrder: Bool = true
    ) -> [Entity] {
        let known = core.registry.find(ids, entity: model.number)
        let token = core.takeTokens(ids.count)
        let core = core
        var objects: [Entity] = []
        objects.reserveCapacity(ids.count)
        for index in ids.indices {
            if let known, known[index] != 0 {
                objects.append(ObjectRegistry.take(known[index], as: Entity.self))
                continue
            }
            let row = (takesRows ? rows?.take(index) : rows?.keep(index)) ?? 0
            objects.append(
                Entity(
                    storage: ObjectStorage(
                        core: core,
                        model: model,
                        object: ids[index],
                        token: token &+ UInt32(truncatingIfNeeded: index),
                        row: row
                    )
                )
            )
        }
        core.registry.insert(
            ids,
            entity: model.number,
            firstToken: token,
            isInOrder: isInOrder
        ) { index in
            (known?[index] ?? 0) == 0 ? ObjectRegistry.bits(objects[index]) : 0
        }
        guard let rows else { return objects }
        let readAt = commit
        var filled = 0
        for index in ids.indices where rows.has(index) {
            if (known?[index] ?? 0) == 0 {
                filled += 1
                objects[index].awakeFromFetch()
            } else if let row = rows[index] {
                giveRow(row, to: objects[index], readAt)
            }
        }
        noteFilled(ids, filled)
        return objects
    }

    /// Counts objects that were made with their rows.
    @usableFromInline func noteFilled(_ ids: [ObjectID], _ filled: Int) {
        container.counters.realised.add(filled, ordering: .relaxed)
        if failures.isEmpty { return }
        for id in ids where registered(id)?.isFault == false { failures[id] = nil }
    }

    /// Gives a pinned row to an object that was there before, if it is a fault still. If
    /// `awakeFromFetch` of another one has moved the context since the row was read, or taken the
    /// object out of it, the row is let go.
    @usableFromInline func giveRow(
        _ row: CachedRow,
        to object: any ManagedObject,
        _ readAt: CommitNumber?
    ) {
        let isWanted = object.isFault && !object.storage.state.contains(.invalid)
        if !isWanted || commit != readAt {
            container.store.rowCache.unpin(row)
        } else {
            take(row, for: object)
        }
    }

    /// All living objects, by ID.
    var livingObjects: [any ManagedObject] {
        core.registry.all.map { container.schema.entities[$0.entity].cast($0.object) }
    }

    // MARK: New objects

    func storageForInsert<Entity: ManagedObject>(_ type: Entity.Type) -> ObjectStorage {
        guard let model = container.schema.entity(of: type) else {
            return ObjectStorage(
                core: core,
                model: container.schema.unlistedEntity(type),
                object: container.store.allocateObjectIDs(1),
                state: .invalid
            )
        }
        return ObjectStorage(
            core: core,
            model: model,
            object: container.store.allocateObjectIDs(1),
            state: .inserted,
            token: core.takeTokens(1)
        )
    }

    func registerInserted(_ object: some ManagedObject) {
        let id = object.storage.object
        let model = object.storage.model
        if object.storage.state.contains(.invalid) {
            refuse(object, nil, .unlistedEntity(object))
            return
        }
        if phase == .writing {
            // No save would write it: it never enters the context.
            refuse(object, nil, .editWhileWriting(object, nil))
            object.storage.state = .invalid
            return
        }
        object.storage.edits = ObjectEdits(values: model.makeInsertValues())
        core.registry.insert(object, id, entity: model.number, token: object.storage.token)
        recordInsertion(object)
        noteChanged(object, id)
        announceStates(of: object)
    }

    /// Keeps an object until the next save, rollback or reset.
    func noteChanged(_ object: any ManagedObject, _ id: ObjectID) {
        if changed.updateValue(object, forKey: id) == nil { changedEntries += 1 }
        noteLiveEdit()
    }

    // MARK: State of the edits

    /// Whether there are unsaved edits, one that leads to an object which others deleted included.
    /// Of a branch, edits of its own.
    /// Observed in contexts that tell observers.
    public var hasChanges: Bool {
        trackChanges()
        return hasOwnEdits
    }

    /// The same, for the library.
    var hasOwnEdits: Bool {
        guard let branchState else { return hasEdits }
        return branchState.recorder.hasDifference(self) || !deletesToProcess.isEmpty
    }

    /// Whether there are edits over the commit: those of a branch's parent count.
    var hasEdits: Bool { !changed.isEmpty || !toManyEdits.isEmpty || !lostTargets.isEmpty }

    /// So that who closes the container, on any thread, knows what would be lost.
    func tellUnsaved() {
        if let branchState {
            core.registry.unsaved.store(branchState.recorder.count, ordering: .relaxed)
            return
        }
        let hasOthers = !toManyEdits.isEmpty && !has(.closingDropsLists) || !lostTargets.isEmpty
        let count = max(changed.count, hasOthers ? 1 : 0)
        core.registry.unsaved.store(count, ordering: .relaxed)
    }

    /// Objects keep their context as long as that keeps none of them: else neither would end.
    private func tellKept() {
        let isEmpty = changed.isEmpty && recorders.isEmpty && linkedAndGone.isEmpty
        let keeps = !isEmpty && !has(.contextsKeepThemselves)
        if keeps == keepsObjects { return }
        keepsObjects = keeps
        core.registry.keepContext(!keeps)
    }

    /// New objects, by ID.
    /// One that others' commit put in the reach of a deletion is none, and not in the other lists.
    public var insertedObjects: [any ManagedObject] {
        changedObjects { $0.isInserted && !isPhantom($0) }
    }
    /// Changed objects, by ID.
    public var updatedObjects: [any ManagedObject] { changedObjects { $0.isUpdated } }
    /// Objects to be deleted, by ID.
    public var deletedObjects: [any ManagedObject] {
        changedObjects { $0.storage.state.contains(.deleted) && !isPhantom($0) }
    }
    /// All objects that are alive in this context, by ID.
    public var registeredObjects: [any ManagedObject] { livingObjects }

    private func changedObjects(
        _ isIncluded: (any ManagedObject) -> Bool
    ) -> [any ManagedObject] {
        changed.sorted { $0.key < $1.key }.map(\.value).filter(isIncluded)
    }

    /// Throws `CancellationError` when the task that this context works for was cancelled.
    public func checkCancellation() throws {
        if cancellation?.isCancelled ?? Task.isCancelled { throw CancellationError() }
    }
}

/// An object whose to-one relationship is being set, and the one that it is to lead to.
struct ObjectsInHand {
    let id: ObjectID
    let object: any ManagedObject
    let targetID: ObjectID?
    let target: (any ManagedObject)?
}

/// What a context is doing.
enum ContextPhase {
    case idle
    /// A save runs the app's `willSave` and the delete rules: edits are saved too.
    case preparing
    /// A save checks and writes: nothing may be edited.
    case writing
    /// A save is on disk and calls `didSave`: edits belong to the next one.
    case settled
}

/// An implicit read that failed.
public struct ReadFailure: Sendable {
    /// The object; nil for a failed batch or relationship.
    public let object: ManagedObjectID?
    /// Why.
    public let error: StoreError
}

/// Set from any thread, read by the body of a background task.
final class CancellationFlag: Sendable {
    private let flag = Atomic<Bool>(false)

    var isCancelled: Bool { flag.load(ordering: .relaxed) }
    func cancel() { flag.store(true, ordering: .relaxed) }
}
