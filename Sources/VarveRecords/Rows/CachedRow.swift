// One version of one row, decoded column by column when asked.
//
// Invariants
// - Immutable, but for its slot in the row cache. Two contexts may hold the same one.
// - It holds no place in the file: a value outside the row is found through a snapshot, so
//   compaction cannot make a cached row stale.

internal import Synchronization
public import VarveBase
public import VarveFormat

/// One version of one row. Reading a column walks the tags in front of it and decodes that column
/// only.
public final class CachedRow: Sendable {
    /// The entity.
    public let entity: RecordEntity
    /// The object.
    public let id: ObjectID
    /// The commit that last changed the row.
    public let version: CommitNumber
    /// The row's bytes, checked.
    public let view: RowView
    /// Its slot in the row cache, if it is still there. Written under the cache's lock.
    let place = Atomic<Int32>(-1)

    init(entity: RecordEntity, id: ObjectID, version: CommitNumber, view: RowView) {
        self.entity = entity
        self.id = id
        self.version = version
        self.view = view
    }

    /// The value of a column; the declared default where the row does not store it.
    ///
    /// Throws `valueOutside` for a text or data that is too large for the row: ask the snapshot.
    public func value(_ column: ColumnID) throws(RecordError) -> StoredValue {
        let slot = view.slot(column)
        if slot.isOutside { throw outside(column) }
        do throws(FormatError) {
            return try view.value(slot) ?? entity.defaultValue(column)
        } catch {
            throw .format(error)
        }
    }

    /// The values of all columns, in their order.
    public func values() throws(RecordError) -> [StoredValue] {
        var values: [StoredValue] = []
        values.reserveCapacity(entity.columnCount)
        for column in 0..<entity.columnCount { values.append(try value(ColumnID(UInt16(column)))) }
        return values
    }

    /// Whether the column's value is a text or data kept outside the row.
    public func isOutside(_ column: ColumnID) -> Bool { view.slot(column).isOutside }

    /// Whether the column has no value.
    public func isNull(_ column: ColumnID) -> Bool {
        let slot = view.slot(column)
        if slot.isAbsent { return entity.defaultValue(column) == .null }
        return slot.isNull
    }

    /// An integer; nil when null. The other readers below follow the same rule.
    public func int(_ column: ColumnID) throws(RecordError) -> Int64? {
        let slot = view.slot(column)
        if slot.tag < RowTag.false {
            guard case .int(let value) = try plain(column, slot) else { return nil }
            return value
        }
        do throws(FormatError) { return try view.int(slot) } catch { throw .format(error) }
    }

    /// A boolean.
    public func bool(_ column: ColumnID) throws(RecordError) -> Bool? {
        let slot = view.slot(column)
        if slot.tag < RowTag.false {
            guard case .bool(let value) = try plain(column, slot) else { return nil }
            return value
        }
        do throws(FormatError) { return try view.bool(slot) } catch { throw .format(error) }
    }

    /// A 64-bit floating-point number.
    public func double(_ column: ColumnID) throws(RecordError) -> Double? {
        let slot = view.slot(column)
        if slot.tag < RowTag.false {
            guard case .double(let value) = try plain(column, slot) else { return nil }
            return value
        }
        do throws(FormatError) { return try view.double(slot) } catch { throw .format(error) }
    }

    /// A 32-bit floating-point number.
    public func float(_ column: ColumnID) throws(RecordError) -> Float? {
        let slot = view.slot(column)
        if slot.tag < RowTag.false {
            guard case .float(let value) = try plain(column, slot) else { return nil }
            return value
        }
        do throws(FormatError) { return try view.float(slot) } catch { throw .format(error) }
    }

    /// A date: seconds since 2001-01-01 00:00:00 UTC.
    public func date(_ column: ColumnID) throws(RecordError) -> Double? {
        let slot = view.slot(column)
        if slot.tag < RowTag.false {
            guard case .date(let value) = try plain(column, slot) else { return nil }
            return value
        }
        do throws(FormatError) { return try view.date(slot) } catch { throw .format(error) }
    }

    /// A text. Throws `valueOutside` when it is too large for the row.
    public func text(_ column: ColumnID) throws(RecordError) -> String? {
        let slot = view.slot(column)
        if slot.tag < RowTag.false {
            guard case .text(let value) = try plain(column, slot) else { return nil }
            return value
        }
        if slot.isOutside { throw outside(column) }
        do throws(FormatError) { return try view.text(slot) } catch { throw .format(error) }
    }

    /// The object that a to-one relationship leads to.
    public func reference(_ column: ColumnID) throws(RecordError) -> ObjectID? {
        let slot = view.slot(column)
        if slot.tag < RowTag.false { return nil }
        do throws(FormatError) { return try view.reference(slot) } catch { throw .format(error) }
    }

    /// A blob's digest and length.
    public func blob(_ column: ColumnID) throws(RecordError) -> BlobReference? {
        let slot = view.slot(column)
        if slot.tag < RowTag.false { return nil }
        do throws(FormatError) { return try view.blob(slot) } catch { throw .format(error) }
    }

    /// Absent or null.
    private func plain(_ column: ColumnID, _ slot: RowSlot) throws(RecordError) -> StoredValue {
        slot.isAbsent ? entity.defaultValue(column) : .null
    }

    private func outside(_ column: ColumnID) -> RecordError {
        .valueOutside(entity: entity.name, property: entity.column(column)?.name ?? "")
    }

    /// What the row counts for in the cache's budget, in bytes: its own, and an estimate of what
    /// keeping it costs.
    var cost: Int { view.bytes.count + 96 }
}

extension CachedRow: RecordValues {
    /// The object.
    public var objectID: ObjectID { id }
}
