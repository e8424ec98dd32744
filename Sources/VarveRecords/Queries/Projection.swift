// Values of a request's objects without the objects: columns of rows, groups of them, aggregates.
//
// Invariants
// - Two values are one group exactly when a filter calls them equal: by the bytes of their keys.
// - Nothing is kept of a row but the values that were asked for.

public import VarveBase
import VarveEngine
import VarveFormat

/// Some values of each object of an entity.
public struct RecordProjection: Sendable {
    let paths: [CompiledPath]

    /// Resolves the names of properties, paths over to-one relationships included.
    /// - Parameters:
    ///   - paths: from the entity to the values.
    ///   - entity: whose objects are read.
    ///   - schema: of the commit.
    /// - Throws: `unknownProperty`.
    public init(
        _ paths: [PropertyPath],
        entity: RecordEntity,
        schema: RecordSchema
    ) throws(RecordError) {
        var compiled: [CompiledPath] = []
        for path in paths {
            compiled.append(try CompiledPath.of(path, entity, schema))
        }
        self.paths = compiled
    }

    /// The columns of the object's own row that it is made of; nil: it looks at more than these.
    var ownColumns: RowColumns? {
        var columns: [ColumnID] = []
        for path in paths {
            guard let column = path.ownColumn ?? path.ownDatePart?.column else { return nil }
            columns.append(column)
        }
        return RowColumns(columns)
    }

    /// The values of a row that is lent, which has its own columns at least.
    func values(
        _ reader: RecordReader<some RecordSource>,
        _ entity: RecordEntity,
        _ id: ObjectID,
        _ layout: RowLayout,
        _ row: Span<UInt8>
    ) throws(RecordError) -> [StoredValue] {
        var values: [StoredValue] = []
        values.reserveCapacity(paths.count)
        for path in paths {
            if let column = path.ownColumn {
                values.append(try reader.value(column, entity, id, layout, row))
            } else if let (column, part, zone) = path.ownDatePart {
                let date = try reader.value(column, entity, id, layout, row)
                values.append(CompiledPath.datePart(part, zone, date))
            }
        }
        return values
    }

    /// The values of one object.
    public func values(
        _ object: some RecordValues,
        _ resolver: some RecordResolver
    ) throws(RecordError) -> [StoredValue] {
        var values: [StoredValue] = []
        values.reserveCapacity(paths.count)
        for path in paths { values.append(try path.value(object, resolver)) }
        return values
    }
}

extension RecordSnapshot {
    /// Calls `body` with the values of each object of a request, in its order, until it says false.
    ///
    /// - Complexity: that of `fetchIDs`, and O(rows); memory for the IDs and 1,024 rows. A request
    ///   without order and window whose filter no index answers is one pass over the columns.
    public func project(
        _ query: RecordQuery,
        _ projection: RecordProjection,
        _ body: ([StoredValue]) throws(RecordError) -> Bool
    ) throws(RecordError) {
        let entity = try self.entity(query.entity)
        let reader = self.reader
        let ids = try reader.scan(query, projection.ownColumns) {
            (id, _, layout, row) throws(RecordError) in
            try body(projection.values(reader, entity, id, layout, row))
        }
        guard let ids else { return }
        let resolver = SourceResolver(reader)
        let origin = RowOrigin(reader.source, entity)
        var start = 0
        while start < ids.count {
            let chunk = Array(ids[start..<min(ids.count, start + 1_024)])
            start += chunk.count
            let rows = try reader.storedRows(entity, chunk)
            reader.counters.rowsScanned.count(chunk.count)
            for (place, id) in chunk.enumerated() {
                guard let row = rows[place] else { continue }
                let values = try SourceRow(origin, id, row.bytes)
                guard try body(projection.values(values, resolver)) else { return }
            }
        }
    }
}

/// What is asked about the values of a group.
public enum AggregateKind: Hashable, Sendable {
    /// How many objects there are.
    case count
    /// The lowest value that is not null.
    case minimum
    /// The highest value that is not null.
    case maximum
    /// Numbers added up.
    case sum
    /// How many different values there are that are not null.
    case distinct
}

/// The answer for one aggregate of one group, so far.
public struct AggregateState: Sendable {
    /// Objects, or with `sum` those with a number, or with `distinct` different values.
    public internal(set) var count = 0
    /// The lowest or highest value; null: there is none yet.
    public internal(set) var extreme = StoredValue.null
    /// Numbers added up.
    public internal(set) var sum = ColumnSum()
    private var seen: Set<[UInt8]> = []

    /// Of no object.
    public init() {}

    mutating func add(_ value: StoredValue, _ kind: AggregateKind) {
        switch kind {
        case .count: count += 1
        case .sum:
            sum.add(value)
            count = sum.count
        case .minimum, .maximum:
            if value == .null { return }
            let order = extreme == .null ? 0 : ValueOrder.compare(value, extreme)
            if extreme == .null || (kind == .maximum ? order > 0 : order < 0) { extreme = value }
        case .distinct:
            if value == .null { return }
            var key: [UInt8] = []
            CompiledSort.append(value, descending: false, to: &key)
            seen.insert(key)
            count = seen.count
        }
    }
}

/// Objects in groups of equal values, with what is asked about each group.
public struct RecordGroups {
    /// One group.
    public struct Group: Sendable {
        /// The values that its objects have in common.
        public let key: [StoredValue]
        /// In the order of the questions.
        public internal(set) var states: [AggregateState]
    }

    private let keyCount: Int
    private let kinds: [AggregateKind]
    private var groups: [[UInt8]: Group] = [:]

    /// - Parameters:
    ///   - keyCount: so many values at the front make the group.
    ///   - kinds: what is asked about each of the values after them.
    public init(keyCount: Int, kinds: [AggregateKind]) {
        self.keyCount = keyCount
        self.kinds = kinds
    }

    /// Adds one object's values: those of the group, then one for each question.
    public mutating func add(_ values: [StoredValue]) {
        precondition(values.count == keyCount + kinds.count, "one value for each question")
        var bytes: [UInt8] = []
        for value in values[..<keyCount] {
            CompiledSort.append(value, descending: false, to: &bytes)
        }
        let new = Group(key: [], states: [])
        var group = groups.removeValue(forKey: bytes) ?? new
        if group.states.count < kinds.count || group.key.count < keyCount {
            group = Group(
                key: values[..<keyCount].map(\.withoutSigns),
                states: kinds.map { _ in AggregateState() }
            )
        }
        for (place, kind) in kinds.enumerated() {
            group.states[place].add(values[keyCount + place], kind)
        }
        groups[bytes] = group
    }

    /// The groups by their values, ascending, null first.
    public func sorted() -> [Group] {
        groups.sorted { IndexKeys.compare($0.key, $1.key) < 0 }.map(\.value)
    }
}

extension StoredValue {
    /// -0 as +0, and all NaN as one: whichever row came first, a group shows the same value.
    fileprivate var withoutSigns: StoredValue {
        switch self {
        case .double(let value) where value == 0: .double(0)
        case .double(let value) where value.isNaN: .double(.nan)
        case .date(let value) where value == 0: .date(0)
        case .float(let value) where value == 0: .float(0)
        case .float(let value) where value.isNaN: .float(.nan)
        default: self
        }
    }
}
