// The store as of one commit: rows through the cache, requests, relationships.
//
// Invariants
// - Everything read shows the same commit, cached rows included.
// - Row cache first, then the store; what is read for an object goes into the cache before it is
//   used.

public import VarveBase
public import VarveEngine
import VarveFormat

/// The store as of one commit. Reads from any thread.
public final class RecordSnapshot: Sendable {
    /// The engine's snapshot: blobs.
    public let storage: Snapshot
    /// The schema of this commit.
    public let schema: RecordSchema
    private let store: RecordStore

    init(storage: Snapshot, schema: RecordSchema, store: RecordStore) {
        self.storage = storage
        self.schema = schema
        self.store = store
    }

    /// The commit.
    public var number: CommitNumber { storage.number }

    /// Whether both read the same state of the same file.
    public func isSame(as other: RecordSnapshot) -> Bool { storage.isSame(as: other.storage) }

    /// The same commit once more, held by somebody else.
    public func held(for owner: PinOwner) -> RecordSnapshot {
        RecordSnapshot(storage: storage.held(for: owner), schema: schema, store: store)
    }

    var reader: RecordReader<Snapshot> {
        RecordReader(source: storage, schema: schema, counters: store.counters)
    }

    // MARK: Rows

    /// One row: from the cache, else from the store, which counts in `storeReads`. With `pin` the
    /// caller owes the row cache one `unpin`.
    ///
    /// - Parameter ahead: asked when the row has to be read: the IDs of rows that are likely to be
    ///   wanted next. They go into the cache in the same pass, as many as fit half its budget.
    public func row(
        _ entity: EntityID,
        _ id: ObjectID,
        pin: Bool = false,
        ahead: () -> [ObjectID] = { [] }
    ) throws(RecordError) -> CachedRow? {
        if let row = store.rowCache.find(id, at: number, pin: pin, counts: true) {
            if row.entity.id == entity { return row }
            if pin { store.rowCache.unpin(row) }
            return nil
        }
        let entity = try reader.entity(entity)
        store.counters.storePasses.count()
        guard let row = try read(entity, id) else { return nil }
        store.counters.storeReads.count()
        let followers = ahead()
        if !followers.isEmpty { readAhead(entity, followers, costOfOne: row.cost) }
        return store.rowCache.insert(row, readAt: number, pin: pin)
    }

    /// A row from the store, made where its leaf holds it.
    private func read(_ entity: RecordEntity, _ id: ObjectID) throws(RecordError) -> CachedRow? {
        var made: Result<CachedRow, RecordError>?
        let isThere = try RecordError.ofEngine { () throws(EngineError) in
            try storage.withRow(entity.tree, id) { version, row in
                do throws(RecordError) {
                    made = .success(try Self.copied(entity, id, version, row))
                } catch {
                    made = .failure(error)
                }
            }
        }
        return isThere ? try made?.get() : nil
    }

    /// Reads rows into the cache that are not there, in the pass of another one. What cannot be
    /// read is left to whoever wants it.
    private func readAhead(_ entity: RecordEntity, _ ids: [ObjectID], costOfOne cost: Int) {
        var left = store.rowCache.budgetBytes / 2
        let fitting = min(ids.count, left / max(cost, 1))
        if fitting == 0 { return }
        let (missing, _) = store.rowCache.warm(ids[..<fitting], at: number)
        var read = [CachedRow?](repeating: nil, count: missing.count)
        do throws(RecordError) {
            try self.read(entity, missing) { place, row in read[place] = row }
        } catch {
            return
        }
        // The nearest are kept first, and become the warmest.
        var rows: [CachedRow] = []
        rows.reserveCapacity(read.count)
        for row in read {
            guard let row else { continue }
            left -= row.cost
            if left < 0 { break }
            rows.append(row)
        }
        store.counters.storeReads.count(rows.count)
        rows.reverse()
        store.rowCache.insert(rows, readAt: number)
    }

    /// Reads rows of IDs in any order, each page once a chunk; those that exist come in the order
    /// of `ids`, with their places.
    ///
    /// They are made in that order, too, and so lie one after another: whoever goes through the
    /// list then, to fill objects or to read properties, has them come before he asks.
    private func read(
        _ entity: RecordEntity,
        _ ids: [ObjectID],
        _ body: (Int, CachedRow) -> Void
    ) throws(RecordError) {
        var start = 0
        if ids.count <= RowChunk.rowsAtFirst {
            start = try lendInMemory(entity, ids) { place, version, row throws(RecordError) in
                body(place, try Self.copied(entity, ids[place], version, row))
                return true
            }
        }
        var chunk = RowChunk()
        var length = RowChunk.rowsAtFirst
        while start < ids.count {
            let end = min(ids.count, start + length)
            do throws(EngineError) {
                try chunk.read(ids[start..<end], of: entity.tree, storage)
            } catch {
                throw .engine(error)
            }
            for place in 0..<min(ComingMemory.rowsAhead, end - start) { chunk.foresee(place) }
            for place in start..<end {
                chunk.foresee(place - start + ComingMemory.rowsAhead)
                try chunk.withRow(place - start) { version, row throws(RecordError) in
                    body(place, try Self.copied(entity, ids[place], version, row))
                }
            }
            start = end
            length = chunk.rowsMax(bytes: Self.chunkBytesMax)
        }
    }

    private static func copied(
        _ entity: RecordEntity,
        _ id: ObjectID,
        _ version: CommitNumber,
        _ row: Span<UInt8>
    ) throws(RecordError) -> CachedRow {
        do throws(FormatError) {
            return try CachedRow(entity: entity, id: id, version: version, checking: row)
        } catch {
            throw .format(error)
        }
    }

    /// The row if it is in the cache. Reads nothing.
    public func cachedRow(_ entity: EntityID, _ id: ObjectID, pin: Bool = false) -> CachedRow? {
        guard let row = store.rowCache.find(id, at: number, pin: pin, counts: false) else {
            return nil
        }
        if row.entity.id == entity { return row }
        if pin { store.rowCache.unpin(row) }
        return nil
    }

    /// Rows of IDs in any order, nil where there is none. Those not in the cache are read in one
    /// pass.
    ///
    /// - Parameters:
    ///   - pin: whether the caller wants the rows kept; it then owes one `unpin` for each.
    ///   - counting: false for rows that the caller has just written: they are no reads of the
    ///     store.
    ///   - start: the position in a list at which `ids` begin.
    ///   - ahead: asked when rows are not in the cache: a part of that list, of this commit, that
    ///     was read. Those that are not there either are read.
    public func rows(
        _ entity: EntityID,
        _ ids: [ObjectID],
        pin: Bool = false,
        counting: Bool = true,
        from start: Int = 0,
        ahead: () -> RowsAhead? = { nil }
    ) throws(RecordError) -> RowList {
        let entity = try reader.entity(entity)
        let rows = RowListStorage(count: ids.count)
        var missing = store.rowCache.find(ids, at: number, pin: pin, counts: counting, into: rows)
        for index in ids.indices {
            let found = rows.link(index)
            if found.isNone || !found.isOfOther(than: entity) { continue }
            if pin, let row = rows.row(index) { store.rowCache.unpin(row) }
            rows.drop(index)
        }
        if missing.isEmpty { return RowList(rows) }
        let places = missing
        if let ahead = ahead() {
            precondition(ahead.commit == number, "rows of this commit")
            missing.removeAll { place in
                ahead.foresee(start + place + ComingMemory.rowsAhead)
                switch ahead.row(at: start + place, ids[place]) {
                case .row(let row):
                    rows.put(row, place)
                    return true
                case .absent: return true
                case .unknown: return false
                }
            }
        }
        if !missing.isEmpty {
            let known = rows.missing
            do throws(RecordError) {
                let wanted = missing.count == ids.count ? ids : missing.map { ids[$0] }
                try self.read(entity, wanted) { place, row in rows.put(row, missing[place]) }
            } catch {
                // Those are not in the cache yet.
                for place in places { rows.drop(place) }
                if pin { store.rowCache.unpin(RowList(rows)) }
                throw error
            }
            if counting { countReads(known - rows.missing) }
        }
        store.rowCache.insert(rows, places, readAt: number, pin: pin)
        return RowList(rows)
    }

    /// Reads a part of a list in one pass, each page once, and keeps it as bytes. Rows that are in
    /// the cache are read, too.
    /// - Parameter start: the position of the part in the list.
    /// - Complexity: O(IDs + leaves touched x depth).
    /// - Returns: nil when the rows have more than `bytesMax` bytes.
    public func readAhead(
        _ entity: EntityID,
        _ ids: [ObjectID],
        from start: Int,
        bytesMax: Int
    ) throws(RecordError) -> RowsAhead? {
        let entity = try reader.entity(entity)
        var chunk = RowChunk()
        let fits = try RecordError.ofEngine { () throws(EngineError) in
            try chunk.read(ids[...], of: entity.tree, storage, bytesMax: bytesMax)
        }
        guard fits else { return nil }
        countReads(chunk.count)
        return RowsAhead(number, entity, start..<start + ids.count, chunk)
    }

    func entity(_ id: EntityID) throws(RecordError) -> RecordEntity { try reader.entity(id) }

    /// Whether an index gives the order of a request, so that a limit ends the search early.
    func answersInOrder(_ query: RecordQuery) throws(RecordError) -> Bool {
        try reader.answersInOrder(query)
    }

    /// One pass over the store that read `count` rows.
    func countReads(_ count: Int) {
        store.counters.storePasses.count()
        store.counters.storeReads.count(count)
    }

    /// Whether an object exists. Neither counted as a read nor cached.
    public func exists(_ entity: EntityID, _ id: ObjectID) throws(RecordError) -> Bool {
        if cachedRow(entity, id) != nil { return true }
        let entity = try reader.entity(entity)
        return try RecordError.ofEngine { () throws(EngineError) in
            try storage.contains(entity.tree, id)
        }
    }

    /// The value of a column, read from the store where it lies outside the row; that is never
    /// cached.
    public func value(of row: CachedRow, _ column: ColumnID) throws(RecordError) -> StoredValue {
        let slot = row.slot(column)
        if slot.isOutside { return try storage.outsideValue(row.entity, row.id, column, slot) }
        return try row.value(column)
    }

    // MARK: Requests

    /// The object IDs of a request, in its order. Reads index entries, and rows only where the
    /// filter or the order needs them; caches nothing.
    public func fetchIDs(_ query: RecordQuery) throws(RecordError) -> [ObjectID] {
        try reader.fetchIDs(query)
    }

    /// How many objects a fetch would return, limit and offset included. O(log n) when an index or
    /// the whole entity answers it.
    public func count(_ query: RecordQuery) throws(RecordError) -> Int {
        try reader.count(query)
    }

    /// How a request would be answered, in words and without the values compared with.
    public func explain(_ query: RecordQuery) throws(RecordError) -> String {
        try reader.explain(query)
    }

    /// The place of a row in the order of a request, for `after` and `before`.
    public func position(
        _ row: CachedRow,
        in query: RecordQuery
    ) throws(RecordError) -> KeysetPosition {
        let sort = try CompiledSort(query.sort, entity: reader.entity(query.entity), schema: schema)
        return try sort.key(SnapshotRow(row: row, snapshot: self), self)
    }

    // MARK: Relationships

    /// The members of a relationship: by position when ordered, else ascending; of a to-one, none
    /// or one. Reads index entries only, but for a to-one.
    public func relatedIDs(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        of id: ObjectID
    ) throws(RecordError) -> [ObjectID] {
        if case .column(let column, _) = relationship.storage,
            let row = cachedRow(entity.id, id)
        {
            return try row.reference(column).map { [$0] } ?? []
        }
        return try reader.related(relationship, of: id, in: entity)
    }

    /// The members of a relationship for each of several objects.
    public func relatedIDs(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        of ids: [ObjectID]
    ) throws(RecordError) -> [[ObjectID]] {
        var result: [[ObjectID]] = []
        result.reserveCapacity(ids.count)
        for id in ids { result.append(try relatedIDs(entity, relationship, of: id)) }
        return result
    }

    /// The members of a to-many relationship at some positions, in the same order as all of them;
    /// fewer where there are fewer. Reads the index entries of these positions only.
    /// - Complexity: O(log n + number of positions).
    public func relatedIDs(
        _ relationship: RecordRelationship,
        of id: ObjectID,
        at positions: Range<Int>
    ) throws(RecordError) -> [ObjectID] {
        try reader.related(relationship, of: id, at: positions)
    }

    /// Number of members. O(log n).
    public func relatedCount(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        of id: ObjectID
    ) throws(RecordError) -> Int {
        try reader.relatedCount(relationship, of: id, in: entity)
    }

    /// Whether a relationship leads from one object to another. O(log n), but for lists ordered on
    /// both sides.
    public func isRelated(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        of id: ObjectID,
        to other: ObjectID
    ) throws(RecordError) -> Bool {
        try reader.isRelated(relationship, of: id, to: other, in: entity)
    }
}

/// A row together with the snapshot that resolves its large values: what filters test.
public struct SnapshotRow: RecordValues {
    /// The row.
    public let row: CachedRow
    private let snapshot: RecordSnapshot

    /// Joins a row and a snapshot that shows it.
    public init(row: CachedRow, snapshot: RecordSnapshot) {
        self.row = row
        self.snapshot = snapshot
    }

    /// The object.
    public var objectID: ObjectID { row.id }

    /// The value of a column.
    public func value(_ column: ColumnID) throws(RecordError) -> StoredValue {
        try snapshot.value(of: row, column)
    }

    /// Whether the column has no value.
    public func isNull(_ column: ColumnID) throws(RecordError) -> Bool { row.isNull(column) }

    /// The object that a to-one column leads to.
    public func reference(_ column: ColumnID) throws(RecordError) -> ObjectID? {
        try row.reference(column)
    }
}

extension RecordSnapshot: RecordResolver {
    /// The values of an object, through the row cache.
    public func values(
        _ entity: EntityID,
        _ id: ObjectID
    ) throws(RecordError) -> SnapshotRow? {
        try row(entity, id).map { SnapshotRow(row: $0, snapshot: self) }
    }

    /// The members of a relationship.
    public func related(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        of id: ObjectID
    ) throws(RecordError) -> [ObjectID] {
        try relatedIDs(entity, relationship, of: id)
    }
}
