// What queries read: a snapshot, or a transaction with its own changes.

import Synchronization
import VarveBase
import VarveEngine
import VarveFormat

/// The reads that a snapshot and a write transaction have in common.
protocol RecordSource: AnyObject {
    func row(_ tree: TreeID, _ object: ObjectID) throws(EngineError) -> StoredRow?
    func rows(
        _ tree: TreeID,
        _ objects: [ObjectID],
        _ body: (Int, StoredRow) -> Void
    ) throws(EngineError)
    func count(_ tree: TreeID) throws(EngineError) -> UInt64
    func position(_ tree: TreeID, of key: [UInt8]) throws(EngineError) -> UInt64
    func cursor(_ tree: TreeID) throws(EngineError) -> TreeCursor
    func largeValue(
        entity: EntityID,
        object: ObjectID,
        column: ColumnID
    ) throws(EngineError) -> [UInt8]
}

extension Snapshot: RecordSource {}
extension WriteTransaction: RecordSource {}

/// Counters of one store, relaxed.
final class RecordCounters: Sendable {
    let storeReads = Atomic<Int>(0)
    let storePasses = Atomic<Int>(0)
    let rowsScanned = Atomic<Int>(0)
    let rowsRuledOut = Atomic<Int>(0)
    let entriesScanned = Atomic<Int>(0)
}

extension Atomic where Value == Int {
    /// Adds without ordering: for counters.
    borrowing func count(_ number: Int = 1) {
        wrappingAdd(number, ordering: .relaxed)
    }
}

/// Where the rows of one entity come from.
final class RowOrigin<Source: RecordSource> {
    let source: Source
    let entity: RecordEntity

    init(_ source: Source, _ entity: RecordEntity) {
        self.source = source
        self.entity = entity
    }
}

/// One row of a source as filters read it: columns on demand, large values resolved.
struct SourceRow<Source: RecordSource>: RecordValues {
    let origin: RowOrigin<Source>
    let objectID: ObjectID
    let view: RowView

    init(
        _ origin: RowOrigin<Source>,
        _ id: ObjectID,
        _ bytes: [UInt8]
    ) throws(RecordError) {
        self.origin = origin
        objectID = id
        view = try RecordError.ofFormat { () throws(FormatError) in try RowView(bytes) }
    }

    private var entity: RecordEntity { origin.entity }

    func value(_ column: ColumnID) throws(RecordError) -> StoredValue {
        let slot = view.slot(column)
        if slot.isOutside {
            return try origin.source.outsideValue(entity, objectID, column, slot)
        }
        return try RecordError.ofFormat { () throws(FormatError) in
            try view.value(slot) ?? entity.defaultValue(column)
        }
    }

    func isNull(_ column: ColumnID) throws(RecordError) -> Bool {
        let slot = view.slot(column)
        return slot.isAbsent ? entity.defaultValue(column) == .null : slot.isNull
    }

    func reference(_ column: ColumnID) throws(RecordError) -> ObjectID? {
        let slot = view.slot(column)
        if slot.isNull || slot.isAbsent { return nil }
        return try RecordError.ofFormat { () throws(FormatError) in try view.reference(slot) }
    }
}

extension RecordSource {
    /// A text or data that is kept outside its row.
    func outsideValue(
        _ entity: RecordEntity,
        _ id: ObjectID,
        _ column: ColumnID,
        _ slot: RowSlot
    ) throws(RecordError) -> StoredValue {
        let bytes = try RecordError.ofEngine { () throws(EngineError) in
            try largeValue(entity: entity.id, object: id, column: column)
        }
        return try slot.outsideValue(bytes)
    }
}

extension RowSlot {
    /// The text or data that a row keeps outside itself, of its bytes.
    func outsideValue(_ bytes: [UInt8]) throws(RecordError) -> StoredValue {
        if tag == RowTag.outsideData { return .data(bytes) }
        guard let text = ByteReader.text(bytes, 0..<bytes.count) else {
            throw .format(
                FormatError(
                    place: "large value",
                    field: "text",
                    found: "other bytes",
                    expected: "valid UTF-8"
                )
            )
        }
        return .text(text)
    }
}

/// Reaches other objects for a filter, and remembers the rows it met: many objects lead to few.
final class SourceResolver<Source: RecordSource>: RecordResolver {
    private struct Key: Hashable {
        let entity: EntityID
        let object: ObjectID
    }

    /// Rows remembered at most.
    private static var rowsMax: Int { 8_192 }

    private let reader: RecordReader<Source>
    private var known: [Key: SourceRow<Source>?] = [:]

    init(_ reader: RecordReader<Source>) {
        self.reader = reader
    }

    func values(
        _ entity: EntityID,
        _ id: ObjectID
    ) throws(RecordError) -> SourceRow<Source>? {
        let key = Key(entity: entity, object: id)
        if let row = known[key] { return row }
        let row = try reader.row(entity, id)
        if known.count >= Self.rowsMax { known.removeAll(keepingCapacity: true) }
        known[key] = .some(row)
        return row
    }

    func related(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        of id: ObjectID
    ) throws(RecordError) -> [ObjectID] {
        try reader.related(relationship, of: id)
    }
}
