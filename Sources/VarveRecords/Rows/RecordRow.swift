// One row being built from typed values: inserts and updates without an object and without
// `StoredValue`.
//
// Invariants
// - What reaches a transaction was checked: every column that is set takes its value's type, and no
//   column that must have a value is null.
// - A value serves any number of rows, one after another; its memory is kept.

public import VarveBase
public import VarveFormat

/// A row, or the change of one, being built. `begin`, set columns in any order, then
/// `RecordTransaction.insert` or `update`.
public struct RecordRow: ~Copyable {
    /// The entity that the row belongs to.
    public let entity: RecordEntity
    @usableFromInline var encoder = RowEncoder()

    /// A builder of rows of an entity, with none begun.
    public init(_ entity: RecordEntity) {
        self.entity = entity
        encoder.begin(columns: entity.columnCount)
    }

    /// Starts a row; no column is set.
    public mutating func begin() { encoder.begin(columns: entity.columnCount) }

    /// Whether a column was set since `begin`.
    public func isSet(_ column: ColumnID) -> Bool { encoder.tag(Int(column.rawValue)) != nil }

    /// Whether no column was set since `begin`.
    public var isEmpty: Bool { encoder.isEmpty }

    /// The columns that were set since `begin`, ascending.
    public var columns: [ColumnID] {
        (0..<entity.columnCount).filter { encoder.tag($0) != nil }.map { ColumnID(UInt16($0)) }
    }

    /// The value set for a column; nil when it was not set.
    public func value(_ column: ColumnID) throws(RecordError) -> StoredValue? {
        try RecordError.ofFormat { () throws(FormatError) in
            try encoder.value(Int(column.rawValue))
        }
    }

    /// Makes a column null.
    @inlinable public mutating func setNull(_ column: ColumnID) {
        encoder.setNull(Int(column.rawValue))
    }

    /// Takes what a row stores of a column out of it: its default applies.
    mutating func setAbsent(_ column: ColumnID) { encoder.setAbsent(Int(column.rawValue)) }

    /// Sets a boolean.
    @inlinable public mutating func set(_ column: ColumnID, bool value: Bool) {
        encoder.set(Int(column.rawValue), bool: value)
    }

    /// Sets an integer.
    @inlinable public mutating func set(_ column: ColumnID, int value: Int64) {
        encoder.set(Int(column.rawValue), int: value)
    }

    /// Sets a 32-bit float.
    @inlinable public mutating func set(_ column: ColumnID, float value: Float) {
        encoder.set(Int(column.rawValue), float: value)
    }

    /// Sets a 64-bit float.
    @inlinable public mutating func set(_ column: ColumnID, double value: Double) {
        encoder.set(Int(column.rawValue), double: value)
    }

    /// Sets a date: seconds since 2001-01-01 00:00:00 UTC.
    @inlinable public mutating func set(_ column: ColumnID, date value: Double) {
        encoder.set(Int(column.rawValue), date: value)
    }

    /// Sets a text.
    @inlinable public mutating func set(_ column: ColumnID, text value: String) {
        encoder.set(Int(column.rawValue), text: value)
    }

    /// Sets the object that a to-one relationship leads to.
    @inlinable public mutating func set(_ column: ColumnID, reference value: ObjectID) {
        encoder.set(Int(column.rawValue), reference: value)
    }

    /// Sets a value of any kind.
    @inlinable public mutating func set(_ column: ColumnID, _ value: StoredValue) {
        encoder.set(Int(column.rawValue), value)
    }

    /// Takes back what was set for columns that hold that value already.
    public mutating func unsetUnchanged(from row: CachedRow) {
        let entity = entity
        row.withRow { layout, bytes in
            encoder.unset(equalTo: bytes, layout) { column in
                // A dropped column is in no new row.
                entity.defaultValue(ColumnID(UInt16(column))) == .null
            }
        }
    }

    /// Sets what is still missing of a new row to the declared defaults.
    mutating func fillDefaults() {
        // By number: a copy of each value would count references to its text.
        for number in entity.defaults.indices {
            let column = entity.defaults[number].column
            if encoder.tag(column) == nil { encoder.set(column, entity.defaults[number].value) }
        }
    }

    /// Throws unless every column that is set may hold its value.
    func check(_ id: ObjectID) throws(RecordError) {
        for column in 0..<entity.columnCount {
            guard let tag = encoder.tag(column) else { continue }
            if !entity.checks[column].allows(tag) {
                throw refusal(column, tag, id)
            }
        }
    }

    @inline(never)
    private func refusal(_ column: Int, _ tag: UInt64, _ id: ObjectID) -> RecordError {
        switch entity.column(ColumnID(UInt16(column))) {
        case .attribute(let attribute):
            if tag == RowTag.null {
                return .missingValue(entity: entity.name, property: attribute.name, object: id)
            }
            return .wrongType(
                entity: entity.name,
                property: attribute.name,
                expected: "\(attribute.type)"
            )
        case .relationship(let relationship):
            return .wrongType(
                entity: entity.name,
                property: relationship.name,
                expected: "a reference"
            )
        case nil: return .unknownProperty(entity: entity.name, property: "column \(column)")
        }
    }
}

/// The kinds of value that a column takes, as bits by tag.
struct ColumnCheck: Sendable {
    private var bits: UInt64

    /// A column that was dropped: nothing, so that it can be emptied and not be set.
    static let nothing = ColumnCheck(bits: 1 << RowTag.absent)

    private static let textBit: UInt64 = 40
    private static let dataBit: UInt64 = 41

    private init(bits: UInt64) { self.bits = bits }

    private init(_ tags: [UInt64], isOptional: Bool) {
        bits = 1 << RowTag.absent
        for tag in tags { bits |= 1 << tag }
        if isOptional { bits |= 1 << RowTag.null }
    }

    /// What an attribute takes.
    init(_ attribute: RecordAttribute) {
        let tags: [UInt64]
        switch attribute.type {
        case .bool: tags = [RowTag.false, RowTag.true]
        case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32, .uint64:
            tags = Array(RowTag.zero...RowTag.int64)
        case .float: tags = [RowTag.float]
        case .double: tags = [RowTag.double]
        case .date: tags = [RowTag.date]
        case .text, .url: tags = [Self.textBit]
        case .data: tags = [Self.dataBit]
        case .uuid: tags = [RowTag.uuid]
        case .decimal: tags = [RowTag.decimal64, RowTag.decimal128]
        case .blob: tags = [RowTag.blob]
        }
        self.init(tags, isOptional: attribute.isOptional)
    }

    /// What a to-one relationship takes.
    static let reference = ColumnCheck(
        [RowTag.reference32, RowTag.reference64],
        isOptional: true
    )

    @inline(__always)
    func allows(_ tag: UInt64) -> Bool {
        let bit =
            tag < RowTag.textBase ? tag : RowTag.isText(tag) ? Self.textBit : Self.dataBit
        return bits &>> bit & 1 == 1
    }
}
