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

    private var reader: RecordReader<Snapshot> {
        RecordReader(source: storage, schema: schema, counters: store.counters)
    }

    // MARK: Rows

    /// One row: from the cache, else from the store, which counts in `storeReads`. With `pin` the
    /// caller owes the row cache one `unpin`.
    public func row(
        _ entity: EntityID,
        _ id: ObjectID,
        pin: Bool = false
    ) throws(RecordError) -> CachedRow? {
        if let row = store.rowCache.find(id, at: number, pin: pin, counts: true) {
            if row.entity.id == entity { return row }
            if pin { store.rowCache.unpin(row) }
            return nil
        }
        let entity = try reader.entity(entity)
        store.counters.storePasses.count()
        let stored: StoredRow?
        do throws(EngineError) { stored = try storage.row(entity.tree, id) } catch {
            throw .engine(error)
        }
        guard let stored else { return nil }
        store.counters.storeReads.count()
        let row = try Self.row(entity, id, stored)
        return store.rowCache.insert(row, readAt: number, pin: pin)
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
    public func rows(
        _ entity: EntityID,
        _ ids: [ObjectID],
        pin: Bool = false,
        counting: Bool = true
    ) throws(RecordError) -> [CachedRow?] {
        let entity = try reader.entity(entity)
        var rows: [CachedRow?] = []
        let missing = store.rowCache.find(ids, at: number, pin: pin, counts: counting, into: &rows)
        for index in rows.indices {
            guard let row = rows[index], row.entity.id != entity.id else { continue }
            if pin { store.rowCache.unpin(row) }
            rows[index] = nil
        }
        if missing.isEmpty { return rows }
        let stored: [StoredRow?]
        var read: [CachedRow] = []
        var places: [Int] = []
        do throws(RecordError) {
            stored = try reader.storedRows(entity, missing.map { ids[$0] })
            for (place, row) in zip(missing, stored) {
                guard let row else { continue }
                read.append(try Self.row(entity, ids[place], row))
                places.append(place)
            }
        } catch {
            if pin { store.rowCache.unpin(rows.compactMap(\.self)) }
            throw error
        }
        if counting {
            store.counters.storePasses.count()
            store.counters.storeReads.count(read.count)
        }
        let kept = store.rowCache.insert(read, readAt: number, pin: pin)
        for (place, row) in zip(places, kept) { rows[place] = row }
        return rows
    }

    /// Reads rows into the cache, in the given order, as long as they fit its budget; never evicts
    /// one that this call has put in.
    public func cacheRows(_ entity: EntityID, _ ids: [ObjectID]) throws(RecordError) {
        let entity = try reader.entity(entity)
        let budget = store.rowCache.budgetBytes
        var used = 0
        var start = 0
        // Rows of one pass share leaves, the more the larger it is; it grows with what is known of
        // the rows' size, so that it reads few that do not fit.
        var pass = 512
        var (rowsRead, bytesRead) = (0, 0)
        while start < ids.count, used < budget {
            let end = min(ids.count, start + pass)
            let (missing, bytes) = store.rowCache.warm(ids[start..<end], at: number)
            start = end
            used += bytes
            if missing.isEmpty { continue }
            var fitting: [CachedRow] = []
            for (id, stored) in zip(missing, try reader.storedRows(entity, missing)) {
                guard let stored else { continue }
                let row = try Self.row(entity, id, stored)
                used += row.cost
                bytesRead += row.cost
                if used > budget { break }
                fitting.append(row)
            }
            store.counters.storePasses.count()
            store.counters.storeReads.count(fitting.count)
            _ = store.rowCache.insert(fitting, readAt: number, pin: false)
            rowsRead += fitting.count
            if rowsRead > 0, used < budget {
                pass = min(4 * pass, 8_192, (budget - used) / (bytesRead / rowsRead) + 1)
            }
        }
    }

    /// Whether an object exists. Neither counted as a read nor cached.
    public func exists(_ entity: EntityID, _ id: ObjectID) throws(RecordError) -> Bool {
        if cachedRow(entity, id) != nil { return true }
        let entity = try reader.entity(entity)
        do throws(EngineError) {
            return try storage.row(entity.tree, id) != nil
        } catch {
            throw .engine(error)
        }
    }

    private static func row(
        _ entity: RecordEntity,
        _ id: ObjectID,
        _ stored: StoredRow
    ) throws(RecordError) -> CachedRow {
        do throws(FormatError) {
            let view = try RowView(stored.bytes)
            return CachedRow(entity: entity, id: id, version: stored.version, view: view)
        } catch {
            throw .format(error)
        }
    }

    /// The value of a column, read from the store where it lies outside the row; that is never
    /// cached.
    public func value(of row: CachedRow, _ column: ColumnID) throws(RecordError) -> StoredValue {
        let slot = row.view.slot(column)
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
