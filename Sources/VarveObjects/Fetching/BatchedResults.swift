// The list of a request whose rows are read in batches, when they are touched.
//
// Invariants
// - The list is frozen at the fetch: IDs of 8 bytes each, or, where an index gives filter and
//   order, a place in the tree of its commit, which it keeps readable. One of a live list is frozen
//   when the live list moves on.
// - Touching index i reads the rows of batch i/size that are not cached, in one pass, and nothing
//   else, unless it is the third in a row: then rows after it come along, as bytes (RowsAhead).
// - The two batches touched last stay pinned: by the list, or by the objects that it made of them.

public import VarveBase
public import VarveRecords

/// The objects of a request, read in batches. It belongs to its context and is not Sendable.
public struct BatchedResults<Entity: ManagedObject>: RandomAccessCollection {
    @usableFromInline let store: BatchStore<Entity>

    /// 0.
    public var startIndex: Int { 0 }
    /// The number of objects.
    public var endIndex: Int { store.count }
    /// The number of objects. Reads no row.
    public var count: Int { store.count }
    /// Whether there is none. Reads no row.
    public var isEmpty: Bool { store.count == 0 }
    /// Rows per batch.
    public var batchSize: Int { store.size }

    /// The objects' IDs, all in memory. Reads no row. A read that fails is remembered like that of
    /// a property, and gives none.
    public var ids: [Entity.ID] {
        store.ids(0..<store.count).map { TypedObjectID(store.identity($0)) }
    }

    /// The ID at a position. Reads no row. If the position cannot be read, which is remembered like
    /// the failed read of a property, it is an ID that no object has.
    /// - Complexity: O(log n).
    public func id(at index: Int) -> Entity.ID { TypedObjectID(store.identity(store.id(index))) }

    /// The object at a position. Its batch is read if it is not in memory; a read that fails is
    /// remembered like that of a property, and the object stays a fault. If even its ID cannot be
    /// read, it is an object without values that belongs to no context.
    ///
    /// With `returningFaults(false)` a batch's objects are made together, and live at least until
    /// two other batches were touched.
    /// - Complexity: a look into the batch touched last; O(batch) where another one is.
    @inlinable public subscript(index: Int) -> Entity { store.object(at: index) }

    /// Reads the batches that a range of positions lies in: the throwing way to touch them.
    public func load(_ range: Range<Int>) throws { try store.load(range) }
}

@usableFromInline final class BatchStore<Entity: ManagedObject> {
    @usableFromInline let context: ManagedObjectContext
    @usableFromInline let model: EntityModel
    let list: ObjectList
    @usableFromInline let count: Int
    let size: Int
    let returnsFaults: Bool
    let prefetch: [PrefetchNode]

    private struct Batch {
        var number: Int
        var ids: [ObjectID]
        var commit: CommitNumber
        /// How often objects had left the context by then.
        var endings: Int
        /// Pinned rows, by position in the batch; empty where objects hold them.
        var rows: RowList
        var related: PrefetchedRelations
        /// By position in the batch; empty where faults are asked for.
        var objects: [Entity] = []
    }
    /// Whether some of the list's positions could not be read.
    private var isUnreadable = false
    /// The batch touched last stands last.
    private var batches: [Batch] = []
    /// Batches touched one after another, before the last one.
    private var batchesInARow = 0
    /// Batches that the last pass read beside the one that was wanted.
    private var batchesAhead = 0
    /// Number of the batch after those.
    private var aheadEnd = 0
    /// What a row of this list weighs when it is read ahead, about; 0: none was read yet.
    private var rowWeight = 0
    /// Of the batch touched last: its first position, its commit, how often objects had left the
    /// context by then, and its objects if it has them.
    @safe @exclusivity(unchecked) @usableFromInline var lastStart = 0
    @safe @exclusivity(unchecked) @usableFromInline var lastCommit: CommitNumber?
    @safe @exclusivity(unchecked) @usableFromInline var lastEndings = 0
    @safe @exclusivity(unchecked) @usableFromInline var lastObjects: [Entity] = []

    init(
        context: ManagedObjectContext,
        model: EntityModel,
        list: ObjectList,
        size: Int,
        returnsFaults: Bool,
        prefetch: [PrefetchNode]
    ) {
        self.context = context
        self.model = model
        self.list = list
        count = list.count
        self.size = size
        self.returnsFaults = returnsFaults
        self.prefetch = prefetch
    }

    /// Another list of the same request.
    convenience init(like other: BatchStore, list: ObjectList) {
        self.init(
            context: other.context,
            model: other.model,
            list: list,
            size: other.size,
            returnsFaults: other.returnsFaults,
            prefetch: other.prefetch
        )
    }

    deinit {
        for batch in batches { release(batch) }
        if batchesAhead > 0 { cache.dropRowsAhead(of: ObjectIdentifier(self)) }
    }

    private var cache: RowCache { context.container.store.rowCache }

    func identity(_ id: ObjectID) -> ManagedObjectID {
        ManagedObjectID(
            store: context.container.identity,
            entity: model.record.id,
            object: id
        )
    }

    @inlinable func object(at index: Int) -> Entity {
        let place = index - lastStart
        if place >= 0, place < lastObjects.count, context.commit == lastCommit,
            context.core.endings == lastEndings
        {
            let object = lastObjects[place]
            if !object.isFault { return object }
        }
        return touchedObject(at: index)
    }

    /// The object at a position whose batch may have to be read.
    @inlinable @inline(never) func touchedObject(at index: Int) -> Entity {
        let touched = touch(index)
        if let wanted = touched.objectsWanted {
            let objects: [Entity] = context.objects(wanted.ids, model, rows: wanted.rows)
            keep(objects, wanted)
        }
        let place = index - lastStart
        if !touched.isFailed, place >= 0, place < lastObjects.count {
            let object = lastObjects[place]
            if object.isFault { refill(object) }
            return object
        }
        let id = id(index)
        if id == ObjectID(0) { return unreadable() }
        let object: Entity =
            context.core.registry.find(id, entity: model.number, as: Entity.self)
            ?? context.makeObject(id, model, row: nil)
        bringUpToDate(object, at: index, touched.error)
        return object
    }

    // MARK: IDs

    /// The ID at a position; 0, which no object has, if it cannot be read.
    @usableFromInline func id(_ index: Int) -> ObjectID {
        precondition(index >= 0 && index < count, "a position of the list")
        // The batch touched last knows its own.
        if let last = batches.last, last.number == index / size, !last.ids.isEmpty {
            return last.ids[index - last.number * size]
        }
        return ids(index..<index + 1).first ?? ObjectID(0)
    }

    /// The IDs at some positions; none if they cannot be read, which is remembered: once, since one
    /// page of an index has hundreds.
    func ids(_ range: Range<Int>) -> [ObjectID] {
        do throws(StoreError) { return try read(range) } catch {
            if !isUnreadable { context.note(error, nil) }
            isUnreadable = true
            return []
        }
    }

    /// Stands for the object of a position that cannot be read: one without values.
    @usableFromInline func unreadable() -> Entity {
        Entity(
            storage: ObjectStorage(
                core: context.core,
                model: model,
                object: ObjectID(0),
                state: .invalid
            )
        )
    }

    private func read(_ range: Range<Int>) throws(StoreError) -> [ObjectID] {
        // What is in memory may be looked at still.
        if list.source.chunks == nil { try context.container.checkOpen() }
        return try context.container.translating { () throws(RecordError) in try list.ids(range) }
    }

    func load(_ range: Range<Int>) throws(StoreError) {
        let range = range.clamped(to: 0..<count)
        guard !range.isEmpty else { return }
        for number in range.lowerBound / size...(range.upperBound - 1) / size { try read(number) }
    }

    // MARK: Batches

    /// A batch whose objects are to be made of its pinned rows.
    @usableFromInline struct ObjectsWanted {
        let number: Int
        let commit: CommitNumber
        @usableFromInline let ids: [ObjectID]
        @usableFromInline let rows: RowList
    }

    /// What touching a batch came to.
    @usableFromInline struct Touched {
        @usableFromInline var objectsWanted: ObjectsWanted?
        @usableFromInline var error: StoreError?
        @usableFromInline var isFailed: Bool { error != nil }
    }

    /// Makes the batch of a position the last one; reads it if it is not there.
    @usableFromInline func touch(_ index: Int) -> Touched {
        do throws(StoreError) { try read(index / size) } catch { return Touched(error: error) }
        guard !returnsFaults, let last = batches.last, last.objects.isEmpty else {
            return Touched()
        }
        // The pins pass over to the objects.
        batches[batches.count - 1].rows = RowList()
        return Touched(
            objectsWanted: ObjectsWanted(
                number: last.number,
                commit: last.commit,
                ids: last.ids,
                rows: last.rows
            )
        )
    }

    /// Takes the objects of a batch. While they were made the app's `awakeFromFetch` ran, which may
    /// have touched other batches of this list.
    @usableFromInline func keep(_ objects: [Entity], _ wanted: ObjectsWanted) {
        let place = batches.firstIndex {
            $0.number == wanted.number && $0.commit == wanted.commit
        }
        // Rarely: reading an array of a generic type costs more than all else that is done here.
        let isRelated = place.map { !batches[$0].related.lists.isEmpty } ?? false
        if isRelated || !wanted.rows.isComplete {
            for (index, object) in objects.enumerated() {
                if !wanted.rows.has(index) { noteMissing(object) }
                if let place { batches[place].related.give(to: object) }
            }
        }
        guard let place else { return }
        batches[place].objects = objects
        noteLast()
    }

    /// Fills an object of a batch that became a fault since.
    @usableFromInline func refill(_ object: Entity) {
        guard object.storage.state.isDisjoint(with: [.gone, .invalid]) else { return }
        do throws(StoreError) { try context.fill(object) } catch { context.note(error, object) }
    }

    /// Brings an object to what its batch says.
    @usableFromInline func bringUpToDate(_ object: Entity, at index: Int, _ error: StoreError?) {
        if let error {
            context.note(error, object)
            return
        }
        guard let batch = batches.last, batch.number == index / size else { return }
        batch.related.give(to: object)
        if batch.rows[index - batch.number * size] == nil { noteMissing(object) }
    }

    /// The list is frozen; the row is gone since.
    private func noteMissing(_ object: Entity) {
        if object.isFault, !object.isInserted { object.storage.state.insert(.gone) }
    }

    private func positions(_ number: Int) -> Range<Int> {
        number * size..<min(count, (number + 1) * size)
    }

    /// Makes a batch the last one; reads its rows if it is not there.
    private func read(_ number: Int) throws(StoreError) {
        let snapshot = try context.currentSnapshot()
        defer { noteLast() }
        var inARow = 0
        if let last = batches.last?.number, last == number || last + 1 == number {
            inARow = batchesInARow + number - last
        }
        if let known = batches.firstIndex(where: { $0.number == number }) {
            if batches[known].commit == snapshot.number,
                batches[known].objects.isEmpty || batches[known].endings == context.core.endings
            {
                if known != batches.count - 1 { batches.append(batches.remove(at: known)) }
                batchesInARow = inARow
                return
            }
            // The context moved: the rows may be others now, and so may the objects.
            release(batches.remove(at: known))
        }
        let wanted = try read(positions(number))
        let rows = try context.container.translating { () throws(RecordError) in
            try snapshot.rows(
                self.model.record.id,
                wanted,
                pin: true,
                from: self.positions(number).lowerBound
            ) { self.rowsAhead(of: number, inARow, snapshot) }
        }
        batchesInARow = inARow
        let bytes = rows.averageByteCount
        if bytes > 0 { rowWeight = RowsAhead.weight(ofRow: bytes) }
        if number + 1 == aheadEnd { cache.dropRowsAhead(of: ObjectIdentifier(self)) }
        var batch = Batch(
            number: number,
            ids: wanted,
            commit: snapshot.number,
            endings: context.core.endings,
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

    // MARK: Reading ahead

    /// A part of the list with a batch whose rows are not cached, and rows after it, when it is
    /// the third in a row and more: one batch more at first, twice as many each time, at most twice
    /// what the row cache may keep.
    ///
    /// A page holds rows from all over the list. Who reads a long list a batch at a time would read
    /// most pages once per batch. But when a batch that was read ahead has to be read again, as
    /// when the context moves on with each batch, or memory is short: then half as many.
    private func rowsAhead(
        of number: Int,
        _ inARow: Int,
        _ snapshot: RecordSnapshot
    ) -> RowsAhead? {
        let list = ObjectIdentifier(self)
        let wanted = positions(number)
        if batchesAhead > 0 {
            if let held = cache.rowsAhead(of: list), held.commit == snapshot.number,
                held.range.contains(wanted.lowerBound)
            {
                return held
            }
            cache.dropRowsAhead(of: list)
        }
        guard inARow > 1, rowWeight > 0 else {
            (batchesAhead, aheadEnd) = (0, 0)
            return nil
        }
        let room = cache.roomAhead(for: list)
        let isLost = number < aheadEnd
        // An eighth is left for rows that are larger than those before.
        let fitting = min(room / 8 * 7 / rowWeight, context.rowsAheadMax) / size - 1
        batchesAhead = min(isLost ? batchesAhead / 2 : max(1, 2 * batchesAhead), max(0, fitting))
        if batchesAhead == 0 { return nil }
        let range = wanted.lowerBound..<min(count, wanted.upperBound + batchesAhead * size)
        guard let ids = try? read(range), cache.misses(ids[...], at: snapshot.number) else {
            // Nearly all are cached: a batch reads what is missing.
            (batchesAhead, aheadEnd) = (0, 0)
            return nil
        }
        aheadEnd = (range.upperBound + size - 1) / size
        // Only now, and for so much: other lists keep theirs where little or nothing is read.
        cache.makeRoomAhead(range.count * rowWeight, for: list)
        let bytesMax = room - range.count * RowsAhead.weight(ofRow: 0)
        // Damage further on is for whoever wants those rows. Rows larger than those of the batch
        // before may not fit: half as many next time.
        guard
            let read = try? snapshot.readAhead(
                model.record.id,
                ids,
                from: range.lowerBound,
                bytesMax: bytesMax
            )
        else { return nil }
        cache.keep(read, of: list)
        return read
    }

    private func noteLast() {
        lastStart = (batches.last?.number ?? 0) * size
        lastCommit = batches.last?.commit
        lastEndings = batches.last?.endings ?? 0
        lastObjects = batches.last?.objects ?? []
    }

    private func release(_ batch: Batch) {
        cache.unpin(batch.rows)
        cache.unpin(batch.related.rows)
    }
}
