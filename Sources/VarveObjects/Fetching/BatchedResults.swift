// The list of a request whose rows are read in batches, when they are touched (B1-B6).
//
// Invariants
// - IDs only, 8 bytes each, frozen at the fetch.
// - Touching index i reads the rows of batch i/size that are not cached, in one pass.
// - The two batches touched last stay pinned.

import VarveBase
import VarveRecords

/// The objects of a request, read in batches. It belongs to its context and is not Sendable.
public struct BatchedResults<Entity: ManagedObject>: RandomAccessCollection {
    let store: BatchStore

    /// 0.
    public var startIndex: Int { 0 }
    /// The number of objects.
    public var endIndex: Int { store.ids.count }
    /// The number of objects. Reads no row.
    public var count: Int { store.ids.count }
    /// Whether there is none. Reads no row.
    public var isEmpty: Bool { store.ids.isEmpty }
    /// Rows per batch.
    public var batchSize: Int { store.size }

    /// The objects' IDs. Reads no row.
    public var ids: [Entity.ID] {
        store.ids.map { TypedObjectID(store.identity($0)) }
    }

    /// The ID at a position. Reads no row.
    public func id(at index: Int) -> Entity.ID { TypedObjectID(store.identity(store.ids[index])) }

    /// The object at a position. Its batch is read if it is not in memory; a read that fails is
    /// remembered like that of a property, and the object stays a fault.
    public subscript(index: Int) -> Entity {
        guard let object = store.object(at: index) as? Entity else {
            preconditionFailure("an object of \(Entity.entityName) is of another type")
        }
        return object
    }

    /// Reads the batches that a range of positions lies in: the throwing way to touch them.
    public func load(_ range: Range<Int>) throws { try store.load(range) }
}

final class BatchStore {
    let context: ManagedObjectContext
    let model: EntityModel
    let ids: [ObjectID]
    let size: Int
    let returnsFaults: Bool
    let prefetch: [PrefetchNode]

    private struct Batch {
        var number: Int
        var commit: CommitNumber
        /// Pinned rows, by position in the batch.
        var rows: [CachedRow?]
        var related: PrefetchedRelations
    }
    /// The batch touched last stands last.
    private var batches: [Batch] = []

    init(
        context: ManagedObjectContext,
        model: EntityModel,
        ids: [ObjectID],
        size: Int,
        returnsFaults: Bool,
        prefetch: [PrefetchNode]
    ) {
        self.context = context
        self.model = model
        self.ids = ids
        self.size = size
        self.returnsFaults = returnsFaults
        self.prefetch = prefetch
    }

    deinit {
        for batch in batches { release(batch) }
    }

    func identity(_ id: ObjectID) -> ManagedObjectID {
        ManagedObjectID(
            store: context.container.identity,
            entity: model.record.id,
            object: id
        )
    }

    func object(at index: Int) -> any ManagedObject {
        let id = ids[index]
        let number = index / size
        do throws(StoreError) {
            try touch(number)
        } catch {
            let object = context.object(id, model)
            context.note(error, object)
            return object
        }
        let object = context.object(id, model)
        guard let batch = batches.last, batch.number == number else { return object }
        batch.related.give(to: object)
        if let row = batch.rows[index - number * size] {
            if !returnsFaults, object.isFault {
                context.container.store.rowCache.pin(row)
                context.take(row, for: object)
            }
        } else if object.isFault, !object.isInserted {
            // The list is frozen; the row is gone since.
            object.storage.state.insert(.gone)
        }
        return object
    }

    func load(_ range: Range<Int>) throws(StoreError) {
        let range = range.clamped(to: 0..<ids.count)
        guard !range.isEmpty else { return }
        for number in range.lowerBound / size...(range.upperBound - 1) / size { try touch(number) }
    }

    /// Makes a batch the last one; reads it if it is not there.
    private func touch(_ number: Int) throws(StoreError) {
        let snapshot = try context.currentSnapshot()
        if let known = batches.firstIndex(where: { $0.number == number }) {
            if batches[known].commit == snapshot.number {
                if known != batches.count - 1 { batches.append(batches.remove(at: known)) }
                return
            }
            // The context moved: the rows may be others now.
            release(batches.remove(at: known))
        }
        let range = number * size..<min(ids.count, (number + 1) * size)
        let wanted = Array(ids[range])
        let rows = try context.container.translating { () throws(RecordError) in
            try snapshot.rows(self.model.record.id, wanted, pin: true)
        }
        var batch = Batch(
            number: number,
            commit: snapshot.number,
            rows: rows,
            related: PrefetchedRelations()
        )
        if !prefetch.isEmpty {
            do throws(StoreError) {
                batch.related = try context.prefetch(
                    prefetch,
                    model,
                    wanted,
                    rows,
                    snapshot,
                    pin: true
                )
            } catch {
                release(batch)
                throw error
            }
        }
        batches.append(batch)
        if batches.count > 2 { release(batches.removeFirst()) }
    }

    private func release(_ batch: Batch) {
        let cache = context.container.store.rowCache
        for case .some(let row) in batch.rows { cache.unpin(row) }
        for row in batch.related.rows { cache.unpin(row) }
    }
}
