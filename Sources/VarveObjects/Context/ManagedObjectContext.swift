// A working set of objects over one commit: its state, its table of objects, its snapshot.
//
// Invariants
// - Everything a context reads comes from one commit, `snapshot`, until save, merge, `advance`,
//   `refreshAllObjects` or `reset` moves it (G1).
// - `table` holds objects weakly; `changed` holds inserted, changed and deleted ones strongly (R2).
//   A weak reference makes each retain of its object slower for good, so a new object enters
//   `table` only when its save is over and somebody else still holds it.
// - While one reference to an object lives, its ID leads to that instance (F6).
// - An object and its context have the same isolation: neither is Sendable.

import Synchronization
public import VarveBase
import VarveRecords

/// A working set of managed objects that sees one commit of the store, with unsaved edits of its
/// own.
///
/// Not Sendable: a context and its objects stay in the isolation that they were made in.
public final class ManagedObjectContext {
    /// The container.
    public let container: PersistentContainer
    /// Named in every commit of this context.
    public var author: String
    /// Whether commits of others are merged without being asked for. On for the view context.
    public internal(set) var automaticallyMergesChanges = false

    let core: ContextCore
    var table = ObjectTable()
    var changed: [ObjectID: any ManagedObject] = [:]
    /// Grows whenever an object enters `changed`.
    var changedEntries = 0
    var toManyEdits: [ToManyKey: ToManyEdit] = [:]
    var deletesToProcess: [ObjectID] = []
    var denials: [(owner: any ManagedObject, slot: Int)] = []
    var pendingBlobs: [BlobReference: Blob] = [:]
    var failures: [ObjectID: StoreError] = [:]
    var failureList: [ReadFailure] = []
    var misuse: StoreError?
    var cancellation: CancellationFlag?
    private var pinned: RecordSnapshot?
    private let pinToken: Int

    init(container: PersistentContainer, author: String, label: String, observes: Bool = false) {
        self.container = container
        self.author = author
        self.core = ContextCore(container: container, observes: observes)
        self.pinToken = container.pins.makeToken(label: label)
        container.counters.contexts.add(1, ordering: .relaxed)
        core.context = self
    }

    deinit {
        container.pins.remove(pinToken)
        container.counters.contexts.subtract(1, ordering: .relaxed)
    }

    // MARK: Snapshot

    /// The commit that the context reads; nil before its first read.
    public var commit: CommitNumber? { pinned?.number }

    var snapshot: RecordSnapshot? {
        get { pinned }
        set {
            pinned = newValue
            container.pins.set(pinToken, newValue?.number)
        }
    }

    /// The snapshot of this context; the newest commit is pinned at the first read.
    func currentSnapshot() throws(StoreError) -> RecordSnapshot {
        if let pinned { return pinned }
        let snapshot = try container.newestSnapshot()
        self.snapshot = snapshot
        return snapshot
    }

    // MARK: Table of objects

    /// The living object with that ID.
    func registered(_ id: ObjectID) -> (any ManagedObject)? {
        if let object = table[id] { return object }
        return changed.isEmpty ? nil : changed[id]
    }

    /// The living object with that ID, or a new fault. The row cache counts it once.
    func object(_ id: ObjectID, _ model: EntityModel) -> any ManagedObject {
        if let object = registered(id) { return object }
        container.store.rowCache.register(id)
        return makeFault(id, model)
    }

    /// One object per ID, in the same order; new ones are faults.
    func objects<Entity: ManagedObject>(_ ids: [ObjectID], _ model: EntityModel) -> [Entity] {
        cleanTable()
        var objects: [Entity] = []
        objects.reserveCapacity(ids.count)
        var made: [ObjectID] = []
        let isFresh = table.isEmpty && changed.isEmpty
        table.reserve(ids.count)
        for id in ids {
            if !isFresh, let object = registered(id) as? Entity {
                objects.append(object)
                continue
            }
            let object = Entity(
                storage: ObjectStorage(core: core, model: model, object: id, state: .listed)
            )
            table.insert(object, at: id)
            objects.append(object)
            if !isFresh { made.append(id) }
        }
        let new = isFresh ? ids : made
        container.store.rowCache.register(new)
        container.counters.registered.add(new.count, ordering: .relaxed)
        return objects
    }

    private func makeFault(_ id: ObjectID, _ model: EntityModel) -> any ManagedObject {
        func make<Entity: ManagedObject>(_: Entity.Type) -> any ManagedObject {
            Entity(
                storage: ObjectStorage(core: core, model: model, object: id, state: .listed)
            )
        }
        cleanTable()
        let object = make(model.type)
        table.insert(object, at: id)
        container.counters.registered.add(1, ordering: .relaxed)
        return object
    }

    /// Forgets objects that died. An ID that has a new object by now keeps it.
    func cleanTable() {
        for id in core.releases.drain() { table.removeDead(id) }
    }

    /// All living objects, by ID.
    var livingObjects: [any ManagedObject] {
        cleanTable()
        let listed = table.all
        let new = changed.filter { $0.value.isInserted && table[$0.key] == nil }
        if new.isEmpty { return listed }
        return (listed + new.values).sorted { $0.storage.object < $1.storage.object }
    }

    // MARK: New objects

    func storageForInsert<Entity: ManagedObject>(_ type: Entity.Type) -> ObjectStorage {
        guard let model = container.schema.entity(of: type) else {
            preconditionFailure("\(type.entityName) is not in the container's schema")
        }
        return ObjectStorage(
            core: core,
            model: model,
            object: container.store.allocateObjectIDs(1),
            state: .inserted
        )
    }

    func registerInserted(_ object: some ManagedObject) {
        cleanTable()
        let id = object.storage.object
        object.storage.edits = ObjectEdits(values: object.storage.model.makeInsertValues())
        container.store.rowCache.register(id)
        container.counters.registered.add(1, ordering: .relaxed)
        noteChanged(object, id)
    }

    /// Keeps an object until the next save, rollback or reset.
    func noteChanged(_ object: any ManagedObject, _ id: ObjectID) {
        if changed.updateValue(object, forKey: id) == nil { changedEntries += 1 }
    }

    // MARK: State of the edits

    /// Whether a save would write anything.
    public var hasChanges: Bool { !changed.isEmpty || !toManyEdits.isEmpty }

    /// New objects, by ID.
    public var insertedObjects: [any ManagedObject] { changedObjects { $0.isInserted } }
    /// Changed objects, by ID.
    public var updatedObjects: [any ManagedObject] { changedObjects { $0.isUpdated } }
    /// Objects to be deleted, by ID.
    public var deletedObjects: [any ManagedObject] { changedObjects { $0.isDeleted } }
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
