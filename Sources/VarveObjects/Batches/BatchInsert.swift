// Many new rows without objects: imports.
//
// Invariants
// - Every commit of a batch is an ordinary one: checked, and seen by every context and observer.
// - The caller's closure runs while the store is being written: it reads what it likes and writes
//   nothing but its row.

public import VarveBase
import VarveRecords

/// What a batch operation did.
public struct BatchResult: Hashable, Sendable {
    /// New rows.
    public internal(set) var inserted = 0
    /// Rows that were changed: those asked for, and those that a relationship's rule or an upsert
    /// changed.
    public internal(set) var updated = 0
    /// Rows that are gone: those asked for, and those that a cascade took along.
    public internal(set) var deleted = 0
    /// Rows asked for that needed nothing, or that a constraint with `.ignore` dropped.
    public internal(set) var skipped = 0
    /// The last commit; nil if there was nothing to write.
    public internal(set) var commit: CommitNumber?
}

extension ManagedObjectContext {
    /// Adds a row for each element, without making objects: `batchInsert(Item.self, names) {
    /// row, name in row.title = name }`.
    ///
    /// The rows are checked like objects that are saved: values that must be there, `validate`
    /// where the entity has one of its own (it then gets an object per row), uniqueness, inverses.
    /// Hooks such as `awakeFromInsert` and `willSave` are not called, and unsaved edits of this
    /// context stay as they are. The first row that fails ends the batch.
    ///
    /// - Parameters:
    ///   - type: the entity.
    ///   - elements: taken one by one, while the rows are written.
    ///   - conflicts: what becomes of a row whose unique values exist already.
    ///   - rowsPerCommit: nil makes the batch one commit: all or nothing. With a number other
    ///     writers get their turn after so many rows, and memory is bounded; after a failure
    ///     earlier commits stand, and the error's `outcome` says so.
    ///   - fill: sets the properties of one row; what it does not set gets its default. It must
    ///     not write to the store.
    /// - Throws: what `fill` throws; `StoreError`: `missingValue`, `invalid`, `notUnique`,
    ///   `objectNotFound` (a relationship leads nowhere), `foreignID`, `readOnly`, `closed`,
    ///   `diskFull`, `ioFailed`, `outcomeUnknown`.
    /// - Complexity: O(log n) per row and index.
    @inlinable @discardableResult
    public func batchInsert<Entity: ManagedObject, Elements: Sequence>(
        _ type: Entity.Type,
        _ elements: Elements,
        onConflict conflicts: BatchConflictPolicy<Entity> = .asDeclared,
        rowsPerCommit: Int? = nil,
        _ fill: (inout BatchRow<Entity>, Elements.Element) throws -> Void
    ) throws -> BatchResult {
        var iterator = elements.makeIterator()
        return try insertRows(type, conflicts, rowsPerCommit) { row in
            guard let element = iterator.next() else { return false }
            try fill(&row, element)
            return true
        }
    }

    /// Adds so many rows; `fill` gets the number of each, from 0 on.
    @inlinable @discardableResult
    public func batchInsert<Entity: ManagedObject>(
        _ type: Entity.Type,
        count: Int,
        rowsPerCommit: Int? = nil,
        _ fill: (inout BatchRow<Entity>, Int) throws -> Void
    ) throws -> BatchResult {
        try batchInsert(type, 0..<max(0, count), rowsPerCommit: rowsPerCommit, fill)
    }

    /// Adds rows until `next` returns false.
    @usableFromInline func insertRows<Entity: ManagedObject>(
        _ type: Entity.Type,
        _ conflicts: BatchConflictPolicy<Entity>,
        _ rowsPerCommit: Int?,
        _ next: (inout BatchRow<Entity>) throws -> Bool
    ) throws -> BatchResult {
        let batch = try BatchWriter<Entity>(self, rowsPerCommit, conflicts)
        var isAtEnd = false
        return try batch.traced(.insert) {
            while !isAtEnd {
                try batch.commit { transaction in
                    var row = BatchRow<Entity>(batch.model, container, transaction)
                    var left = batch.rowsPerCommit
                    while left > 0 {
                        row.begin(batch.nextID(), nil)
                        guard try next(&row) else {
                            isAtEnd = true
                            return
                        }
                        try batch.insert(&row, transaction)
                        left -= 1
                    }
                }
            }
        }
    }
}
