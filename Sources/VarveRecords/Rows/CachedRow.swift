// One version of one row, decoded column by column when asked.
//
// Invariants
// - Immutable, but for what the row cache notes of it. Two contexts may hold the same one.
// - It holds no place in the file: a value outside the row is found through a snapshot, so
//   compaction cannot make a cached row stale.

public import VarveBase
import VarveEngine
public import VarveFormat

/// One version of one row; a reference. Reading a column walks the tags in front of it and decodes
/// that column only.
public struct CachedRow {
    @usableFromInline let memory: RowMemory

    @usableFromInline init(memory: RowMemory) { self.memory = memory }

    /// Checks a row and copies it.
    init(
        entity: RecordEntity,
        id: ObjectID,
        version: CommitNumber,
        checking row: Span<UInt8>
    ) throws(FormatError) {
        memory = RowMemory.make(entity, id, version, try RowLayout(row), row)
    }

    /// The same for a row as the engine copied it.
    init(_ entity: RecordEntity, _ id: ObjectID, _ row: StoredRow) throws(RecordError) {
        self = try RecordError.ofFormat { () throws(FormatError) in
            try CachedRow(
                entity: entity,
                id: id,
                version: row.version,
                checking: row.bytes.span
            )
        }
    }

    /// The entity.
    public var entity: RecordEntity { memory.entity }
    /// The object.
    public var id: ObjectID { memory.id }
    /// The commit that last changed the row.
    public var version: CommitNumber { memory.version }
    /// Bytes of the row.
    public var byteCount: Int { memory.byteCount }

    /// Whether both are the same row in memory.
    public func isSame(as other: CachedRow) -> Bool { memory === other.memory }

    /// Lends the row's bytes and where its columns lie in them.
    public func withRow<R, Failure: Error>(
        _ body: (RowLayout, Span<UInt8>) throws(Failure) -> R
    ) throws(Failure) -> R {
        try memory.withRow(body)
    }

    // MARK: Columns

    /// Finds a column.
    func slot(_ column: ColumnID) -> RowSlot {
        memory.withRow { layout, row in layout.slot(column, in: row) }
    }

    /// The value of a column; the declared default where the row does not store it.
    ///
    /// Throws `valueOutside` for a text or data that is too large for the row: ask the snapshot.
    public func value(_ column: ColumnID) throws(RecordError) -> StoredValue {
        let slot = slot(column)
        if slot.isOutside { throw outside(column) }
        do throws(FormatError) {
            return try memory.withRow { _, row throws(FormatError) in try slot.value(in: row) }
                ?? entity.defaultValue(column)
        } catch {
            throw .format(error)
        }
    }

    /// The values of all columns, in their order.
    public func values() throws(RecordError) -> [StoredValue] {
        let count = entity.columnCount
        var values: [StoredValue] = []
        values.reserveCapacity(count)
        for column in 0..<count { values.append(try value(ColumnID(UInt16(column)))) }
        return values
    }

    /// Whether the column's value is a text or data kept outside the row.
    public func isOutside(_ column: ColumnID) -> Bool { slot(column).isOutside }

    /// Whether the column has no value.
    public func isNull(_ column: ColumnID) -> Bool {
        let slot = slot(column)
        if slot.isAbsent { return entity.defaultValue(column) == .null }
        return slot.isNull
    }

    /// An integer; nil when null. The other readers below follow the same rule.
    public func int(_ column: ColumnID) throws(RecordError) -> Int64? {
        let read = try decoded { layout, row throws(FormatError) in
            try layout.int(column, in: row)
        }
        if let read { return read }
        guard case .int(let value) = notStored(column) else { return nil }
        return value
    }

    /// A boolean.
    public func bool(_ column: ColumnID) throws(RecordError) -> Bool? {
        let read = try decoded { layout, row throws(FormatError) in
            try layout.bool(column, in: row)
        }
        if let read { return read }
        guard case .bool(let value) = notStored(column) else { return nil }
        return value
    }

    /// A 64-bit floating-point number.
    public func double(_ column: ColumnID) throws(RecordError) -> Double? {
        let read = try decoded { layout, row throws(FormatError) in
            try layout.double(column, in: row)
        }
        if let read { return read }
        guard case .double(let value) = notStored(column) else { return nil }
        return value
    }

    /// A 32-bit floating-point number.
    public func float(_ column: ColumnID) throws(RecordError) -> Float? {
        let read = try stored(column) { slot, row throws(FormatError) in try slot.float(in: row) }
        if let read { return read }
        guard case .float(let value) = notStored(column) else { return nil }
        return value
    }

    /// A date: seconds since 2001-01-01 00:00:00 UTC.
    public func date(_ column: ColumnID) throws(RecordError) -> Double? {
        let read = try decoded { layout, row throws(FormatError) in
            try layout.date(column, in: row)
        }
        if let read { return read }
        guard case .date(let value) = notStored(column) else { return nil }
        return value
    }

    /// A text. Throws `valueOutside` when it is too large for the row.
    public func text(_ column: ColumnID) throws(RecordError) -> String? {
        var isOutside = false
        let read = try decoded { layout, row throws(FormatError) in
            try layout.text(column, in: row, isOutside: &isOutside)
        }
        if let read { return read }
        if isOutside { throw outside(column) }
        guard case .text(let value) = notStored(column) else { return nil }
        return value
    }

    /// The object that a to-one relationship leads to.
    public func reference(_ column: ColumnID) throws(RecordError) -> ObjectID? {
        try decoded { layout, row throws(FormatError) in
            try layout.reference(column, in: row)
        }
    }

    /// A blob's digest and length.
    public func blob(_ column: ColumnID) throws(RecordError) -> BlobReference? {
        try stored(column) { slot, row throws(FormatError) in try slot.blob(in: row) }
    }

    /// What the row stores of a column, decoded where it lies; nil: absent or null.
    @inline(__always)
    private func stored<Value>(
        _ column: ColumnID,
        _ decode: (RowSlot, Span<UInt8>) throws(FormatError) -> Value
    ) throws(RecordError) -> Value? {
        try decoded { layout, row throws(FormatError) -> Value? in
            let slot = layout.slot(column, in: row)
            return slot.tag < RowTag.false ? nil : try decode(slot, row)
        }
    }

    /// What `decode` finds in the row; nil: absent or null.
    @inline(__always)
    private func decoded<Value>(
        _ decode: (RowLayout, Span<UInt8>) throws(FormatError) -> Value?
    ) throws(RecordError) -> Value? {
        do throws(FormatError) { return try memory.withRow(decode) } catch { throw .format(error) }
    }

    /// Of a column that is absent or null.
    @inline(never)
    private func notStored(_ column: ColumnID) -> StoredValue {
        slot(column).isAbsent ? entity.defaultValue(column) : .null
    }

    private func outside(_ column: ColumnID) -> RecordError {
        .valueOutside(entity: entity.name, property: entity.column(column)?.name ?? "")
    }

    /// What the row counts for in the cache's budget, in bytes: its own, and an estimate of what
    /// keeping it costs.
    public var cost: Int { byteCount + Self.costBeside }

    static var costBeside: Int { 96 }
}

extension CachedRow: RecordValues {
    /// The object.
    public var objectID: ObjectID { id }
}
