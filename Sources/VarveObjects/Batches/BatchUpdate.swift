// Changing many rows without objects.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// Changes every row that a request finds, without making objects:
    /// `batchUpdate(Item.where { $0.title == "" }) { row in row.title = "untitled" }`.
    ///
    /// The request is answered by the newest commit; unsaved edits of this context neither count
    /// nor change. Checks are those of `batchInsert`. Properties that keep their values make no
    /// change.
    ///
    /// - Parameters:
    ///   - request: which rows.
    ///   - rowsPerCommit: see `batchInsert`.
    ///   - change: sets properties; it may read those of the row. Called in the order of object
    ///     IDs. It must not write to the store.
    /// - Throws: what `change` throws, what `fetch` and `batchInsert` throw.
    /// - Complexity: O(log n) per row and changed index.
    @discardableResult
    public func batchUpdate<Entity: ManagedObject>(
        _ request: FetchDescriptor<Entity>,
        rowsPerCommit: Int? = nil,
        _ change: (inout BatchRow<Entity>) throws -> Void
    ) throws -> BatchResult {
        let query = try RequestPlan(request, in: self).query
        return try updateRows(rowsPerCommit, change) { transaction in
            try transaction.fetchIDs(query)
        }
    }

    /// Changes the rows with these IDs; those that are gone are skipped.
    @discardableResult
    public func batchUpdate<Entity: ManagedObject>(
        _ ids: [TypedObjectID<Entity>],
        rowsPerCommit: Int? = nil,
        _ change: (inout BatchRow<Entity>) throws -> Void
    ) throws -> BatchResult {
        let objects = try batchObjects(ids)
        return try updateRows(rowsPerCommit, change) { _ in objects }
    }

    private func updateRows<Entity: ManagedObject>(
        _ rowsPerCommit: Int?,
        _ change: (inout BatchRow<Entity>) throws -> Void,
        _ find: (RecordTransaction) throws -> [ObjectID]
    ) throws -> BatchResult {
        let batch = try BatchWriter<Entity>(self, rowsPerCommit)
        let entity = batch.model.record.id
        // A one-to-one relationship of one row can change another one of the same batch.
        let readsAhead = batch.model.relationshipSlots.isEmpty
        return try batch.traced(.update) {
            try batch.commitPieces(find) { transaction, ids in
                var row = BatchRow<Entity>(batch.model, container, transaction)
                for start in stride(from: ids.startIndex, to: ids.endIndex, by: 512) {
                    let piece = Array(ids[start..<min(ids.endIndex, start + 512)])
                    let read = readsAhead ? try transaction.rows(entity, piece) : []
                    for (index, id) in piece.enumerated() {
                        let old = readsAhead ? read[index] : try transaction.row(entity, id)
                        guard let old else {
                            batch.pending.skipped += 1
                            continue
                        }
                        row.begin(id, old)
                        try change(&row)
                        try batch.update(&row, transaction)
                    }
                }
            }
        }
    }

    /// The numbers of IDs, checked.
    func batchObjects<Entity>(
        _ ids: [TypedObjectID<Entity>]
    ) throws(StoreError) -> [ObjectID] {
        let model = try container.model(of: Entity.self)
        var objects: [ObjectID] = []
        objects.reserveCapacity(ids.count)
        for id in ids {
            let isPlain =
                id.objectID.store == container.identity && id.objectID.entity == model.record.id
            if !isPlain { _ = try container.check(id) }
            objects.append(id.objectID.object)
        }
        return objects
    }
}

extension BatchWriter {
    /// Runs `body` over the objects that `find` names in the first transaction: each once,
    /// ascending, `rowsPerCommit` of them per commit.
    func commitPieces(
        _ find: (RecordTransaction) throws -> [ObjectID],
        _ body: (RecordTransaction, ArraySlice<ObjectID>) throws -> Void
    ) throws {
        var ids: [ObjectID]?
        var done = 0
        repeat {
            try commit { transaction in
                let all = try ids ?? Self.ascending(try find(transaction))
                ids = all
                let end = min(all.count, done + min(rowsPerCommit, all.count))
                try body(transaction, all[done..<end])
                done = end
            }
        } while done < ids?.count ?? 0
    }

    private static func ascending(_ ids: [ObjectID]) -> [ObjectID] {
        var sorted = ids
        sorted.sort()
        var count = 0
        for index in sorted.indices where index == 0 || sorted[index] != sorted[count - 1] {
            sorted[count] = sorted[index]
            count += 1
        }
        sorted.removeLast(sorted.count - count)
        return sorted
    }
}
