// One row as a stage finds it, lent to the stage's code.
//
// Invariants
// - It shows the store as it was before the stage, whatever the stage has written since.
// - Memory is that of a chunk of rows; the next row takes the place of the one before.

public import VarveBase
import VarveEngine
import VarveFormat

/// What a stage read of an entity: attributes that change their type have to be read.
final class ReadMarks {
    private(set) var columns: [Bool]

    init(_ entity: RecordEntity) {
        columns = [Bool](repeating: false, count: entity.columnCount)
    }

    func mark(_ column: ColumnID) { columns[Int(column.rawValue)] = true }
}

/// A row of the schema before a stage.
public final class StageRow {
    /// Its entity, as it was.
    public let entity: RecordEntity
    /// The object.
    public private(set) var id = ObjectID(0)
    private let frozen: FrozenState
    private let marks: ReadMarks
    private var chunk: [UInt8] = []
    private var range = 0..<0
    private var layout: RowLayout?

    init(_ entity: RecordEntity, _ frozen: FrozenState, _ marks: ReadMarks) {
        self.entity = entity
        self.frozen = frozen
        self.marks = marks
    }

    func take(chunk: [UInt8]) { self.chunk = chunk }

    /// The chunk's memory back, for the next one.
    func giveBack() -> [UInt8] {
        defer { chunk = [] }
        return chunk
    }

    func show(_ id: ObjectID, _ range: Range<Int>) throws(RecordError) {
        self.id = id
        self.range = range
        layout = try RecordError.ofFormat { () throws(FormatError) in
            let bytes = chunk
            return try RowLayout(bytes.span.extracting(range))
        }
    }

    private func slot(_ column: ColumnID) -> RowSlot {
        guard let layout else { preconditionFailure("a row is shown before it is read") }
        let bytes = chunk
        return layout.slot(column, in: bytes.span.extracting(range))
    }

    /// Whether the row stores something in a column.
    func holds(_ column: ColumnID) -> Bool { !slot(column).isAbsent }

    /// The value of an attribute or to-one column; the declared default where the row has none.
    ///
    /// Throws `format`, `engine`.
    public func value(_ column: ColumnID) throws(RecordError) -> StoredValue {
        marks.mark(column)
        let slot = slot(column)
        if slot.isOutside { return try frozen.outsideValue(entity, id, column, slot) }
        let bytes = chunk
        return try RecordError.ofFormat { () throws(FormatError) in
            try slot.value(in: bytes.span.extracting(range)) ?? entity.defaultValue(column)
        }
    }

    /// The object that a to-one relationship led to.
    public func reference(_ column: ColumnID) throws(RecordError) -> ObjectID? {
        if case .reference(let target) = try value(column) { return target }
        return nil
    }
}

extension FrozenState: RecordSource {}
