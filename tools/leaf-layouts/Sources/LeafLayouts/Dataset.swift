// Rows to lay out: packed as the engine has them when it makes a leaf, with keys and commits.

/// A table of rows.
public struct Dataset: Sendable {
    /// What it is called in the tables.
    public let name: String
    /// The columns.
    public let types: [ColumnType]
    /// The packed rows one after the other, and 8 bytes more.
    public internal(set) var rows: [UInt8] = []
    /// Where each row ends.
    public internal(set) var ends: [Int] = []
    /// The object IDs, ascending.
    public internal(set) var keys: [UInt64] = []
    /// The commit that last changed each row.
    public internal(set) var commits: [UInt64] = []
    /// The integer column that a filter looks at.
    public var filterColumn = 0
    /// The filter counts the values above it.
    public var threshold: Int64 = 0

    /// Number of rows.
    public var count: Int { ends.count }

    /// Where a row lies.
    func range(_ row: Int) -> Range<Int> { (row == 0 ? 0 : ends[row - 1])..<ends[row] }
}

/// Makes a dataset value by value.
struct DatasetBuilder {
    private(set) var data: Dataset
    private var tags: [UInt64] = []
    private var bodies: [UInt8] = []
    private var ids: SeededGenerator
    private var nextKey: UInt64 = 1000

    /// Rows of one entity, or beside those of others, which take IDs in between.
    private let keyStep: Int

    init(_ name: String, _ types: [ColumnType], seed: UInt64, keyStep: Int = 1) {
        self.keyStep = keyStep
        data = Dataset(name: name, types: types)
        ids = SeededGenerator(seed: seed ^ 0x6B65_7973)
    }

    mutating func absent() { tags.append(PackedRow.absent) }
    mutating func null() { tags.append(PackedRow.null) }

    mutating func bool(_ value: Bool?) {
        guard let value else { return null() }
        tags.append(value ? 3 : 2)
    }

    mutating func int(_ value: Int64?) {
        guard let value else { return null() }
        switch value {
        case 0: tags.append(4)
        case 1: tags.append(5)
        default:
            if let small = Int8(exactly: value) {
                add(6, UInt64(truncatingIfNeeded: small), 1)
            } else if let small = Int16(exactly: value) {
                add(7, UInt64(truncatingIfNeeded: small), 2)
            } else if let small = Int32(exactly: value) {
                add(8, UInt64(truncatingIfNeeded: small), 4)
            } else {
                add(9, UInt64(bitPattern: value), 8)
            }
        }
    }

    mutating func double(_ value: Double?) {
        guard let value else { return null() }
        add(11, value.bitPattern, 8)
    }

    mutating func uuid(_ high: UInt64, _ low: UInt64) {
        add(13, high, 8)
        append(low, 8)
    }

    mutating func text(_ value: String?) {
        guard let value else { return null() }
        let utf8 = value.utf8
        tags.append(32 + 2 * UInt64(utf8.count))
        bodies.append(contentsOf: utf8)
    }

    mutating func endRow() {
        precondition(tags.count <= data.types.count)
        while tags.last == PackedRow.absent { tags.removeLast() }
        Self.append(varint: UInt64(tags.count), &data.rows)
        for tag in tags { Self.append(varint: tag, &data.rows) }
        data.rows += bodies
        data.ends.append(data.rows.count)
        data.keys.append(nextKey)
        // Most IDs follow each other; some rows were deleted.
        nextKey += ids.percent(3) ? UInt64(1 + ids.below(5)) : 1
        if keyStep > 1 { nextKey += UInt64(ids.below(2 * keyStep - 1)) }
        // Rows of a load, of which some were changed later.
        let load = UInt64(data.ends.count / 5000)
        data.commits.append(ids.percent(3) ? load + 20 + UInt64(ids.below(2000)) : load + 20)
        tags.removeAll(keepingCapacity: true)
        bodies.removeAll(keepingCapacity: true)
    }

    /// The dataset, filtered by a column above a value.
    mutating func finish(filter column: Int, above threshold: Int64) -> Dataset {
        data.rows += [UInt8](repeating: 0, count: 8)
        data.filterColumn = column
        data.threshold = threshold
        return data
    }

    static func append(varint value: UInt64, _ bytes: inout [UInt8]) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    private mutating func add(_ tag: UInt64, _ body: UInt64, _ size: Int) {
        tags.append(tag)
        append(body, size)
    }

    private mutating func append(_ body: UInt64, _ size: Int) {
        for index in 0..<size { bodies.append(UInt8(truncatingIfNeeded: body >> (8 * index))) }
    }
}
