// Minimum, maximum, sums and distinct values of a column: from the ends of an index or its keys
// where one begins with the column, else from the rows, read in place.
//
// Invariants
// - The answer is that of folding over the objects that a fetch of the request would return.
// - Order and equality are those of `ValueOrder`. Null is no value to minimum, maximum and sums; to
//   `distinct` it is one.

public import VarveBase
import VarveEngine
import VarveFormat

/// Numbers of a column added up.
public struct ColumnSum: Hashable, Sendable {
    /// Values that are not null.
    public var count = 0
    /// Integers added up.
    public var integer: Int128 = 0
    /// Floating-point numbers added up, in the order of their rows.
    public var number = 0.0

    /// Nothing yet.
    public init() {}

    /// Adds the numbers of a column.
    mutating func add(_ kind: LeafNumberKind, _ numbers: Span<Int64>) {
        count += numbers.count
        if kind == .int {
            var sum = integer
            for place in numbers.indices { sum += Int128(numbers[place]) }
            integer = sum
        } else {
            var sum = number
            for place in numbers.indices {
                sum += Double(bitPattern: UInt64(bitPattern: numbers[place]))
            }
            number = sum
        }
    }

    /// Adds a value; what is no number counts for nothing.
    public mutating func add(_ value: StoredValue) {
        switch value {
        case .int(let value): integer += Int128(value)
        case .double(let value), .date(let value): number += value
        case .float(let value): number += Double(value)
        default: return
        }
        count += 1
    }
}

extension RecordSnapshot {
    /// The lowest value of a column among a request's objects, or the highest; null when there is
    /// none.
    ///
    /// - Complexity: O(log n) with an index that begins with the column and answers the filter,
    ///   else O(rows of the filter).
    public func extreme(
        _ query: RecordQuery,
        _ column: ColumnID,
        highest: Bool
    ) throws(RecordError) -> StoredValue {
        let entity = try self.entity(query.entity)
        if query.isWhole, let name = entity.column(column)?.name {
            var ordered = query
            ordered.sort = [SortTerm(PropertyPath(name), isDescending: highest)]
            let isThere = Predicate.compare(PropertyPath(name), .notEqual, .null)
            ordered.predicate =
                query.predicate == .always ? isThere : .and([query.predicate, isThere])
            ordered.limit = 1
            if try answersInOrder(ordered) {
                guard let id = try fetchIDs(ordered).first else { return .null }
                var result = StoredValue.null
                try withRows(entity, [id]) { (_, _, layout, row) throws(RecordError) in
                    result = try reader.value(column, entity, id, layout, row)
                    return true
                }
                return result
            }
        }
        var best = StoredValue.null
        func better(_ kind: LeafNumberKind, _ numbers: Span<Int64>, _: Int) {
            for place in numbers.indices {
                let value = StoredValue(kind, numbers[place])
                let order = best == .null ? 0 : ValueOrder.compare(value, best)
                if best == .null || (highest ? order > 0 : order < 0) { best = value }
            }
        }
        try fold(query, entity, column, numbers: better) {
            (id, layout, row) throws(RecordError) in
            let slot = layout.slot(column, in: row)
            // Most rows do not change the answer: numbers are compared without a value around them.
            switch (slot.tag, best) {
            case (RowTag.double, .double(let known)):
                let order = ValueOrder.floats(try Self.double(slot, row), known)
                if highest ? order <= 0 : order >= 0 { return }
            case (RowTag.zero...RowTag.int64, .int(let known)):
                let value = try Self.int(slot, row)
                if highest ? value <= known : value >= known { return }
            default: break
            }
            let value = try reader.value(column, entity, id, layout, row)
            if value == .null { return }
            let order = best == .null ? 1 : ValueOrder.compare(value, best)
            if best == .null || (highest ? order > 0 : order < 0) { best = value }
        }
        return best
    }

    /// Numbers of a column among a request's objects, added up.
    /// - Complexity: O(rows of the filter).
    public func sum(
        _ query: RecordQuery,
        _ column: ColumnID
    ) throws(RecordError) -> ColumnSum {
        let entity = try self.entity(query.entity)
        var sum = ColumnSum()
        func add(_ kind: LeafNumberKind, _ numbers: Span<Int64>, _: Int) { sum.add(kind, numbers) }
        try fold(query, entity, column, numbers: add) { (id, layout, row) throws(RecordError) in
            sum.add(try reader.value(column, entity, id, layout, row))
        }
        return sum
    }

    /// The different values of a column among a request's objects, ascending, null first.
    ///
    /// - Complexity: O(values x log n) without filter and with an index that begins with the
    ///   column, else O(rows of the filter); as much memory as there are values.
    public func distinct(
        _ query: RecordQuery,
        _ column: ColumnID
    ) throws(RecordError) -> [StoredValue] {
        let entity = try self.entity(query.entity)
        if query.isWhole, query.predicate == .always,
            let index = entity.indexes.first(where: { $0.terms.first?.column == column }),
            index.cutTree.map({ storage.count($0) == 0 }) ?? true
        {
            return try distinctKeys(index)
        }
        var found = DistinctValues()
        func add(_ kind: LeafNumberKind, _ numbers: Span<Int64>, _ nulls: Int) {
            if nulls > 0 { found.add(.null) }
            found.add(kind, numbers)
        }
        try fold(query, entity, column, numbers: add) { (id, layout, row) throws(RecordError) in
            let slot = layout.slot(column, in: row)
            if slot.tag >= RowTag.zero, slot.tag <= RowTag.int64 {
                found.add(try Self.int(slot, row))
            } else {
                found.add(try reader.value(column, entity, id, layout, row))
            }
        }
        return found.sorted()
    }

    /// Jumps from value to value over an index.
    private func distinctKeys(_ index: RecordIndex) throws(RecordError) -> [StoredValue] {
        var values: [StoredValue] = []
        var cursor = storage.cursor(index.tree)
        let isDescending = index.terms[0].isDescending
        do {
            var more = try cursor.first()
            while more {
                let key = cursor.key
                var reader = ByteReader(key, place: "index key")
                if case .value(let value) = try KeyCoding.decode(
                    &reader,
                    descending: isDescending
                ) {
                    values.append(value)
                }
                guard let end = KeyCoding.end(ofPrefix: Array(key[..<reader.position])) else {
                    break
                }
                more = try cursor.seek(atOrAfter: end)
            }
        } catch let error as EngineError {
            throw .engine(error)
        } catch let error as FormatError {
            throw .format(error)
        } catch {
            preconditionFailure("a cursor throws errors of the engine: \(error)")
        }
        return isDescending ? values.reversed() : values
    }

    // MARK: Rows

    /// Lends the rows of a request to `body`, which reads one column, in no particular order unless
    /// it has a window; or the column's numbers to `numbers`.
    func fold(
        _ query: RecordQuery,
        _ entity: RecordEntity,
        _ column: ColumnID,
        numbers: @escaping NumbersBody,
        _ body: (ObjectID, RowLayout, Span<UInt8>) throws(RecordError) -> Void
    ) throws(RecordError) {
        var matching = query
        if query.isWhole { matching.sort = [] }
        let ids = try reader.scan(matching, RowColumns([column]), numbers: (column, numbers)) {
            (id, _, layout, row) throws(RecordError) in
            try body(id, layout, row)
            return true
        }
        guard let ids else { return }
        try withRows(entity, ids) { (index, _, layout, row) throws(RecordError) in
            try body(ids[index], layout, row)
            return true
        }
    }

    private static func int(_ slot: RowSlot, _ row: Span<UInt8>) throws(RecordError) -> Int64 {
        do throws(FormatError) { return try slot.int(in: row) } catch { throw .format(error) }
    }

    private static func double(_ slot: RowSlot, _ row: Span<UInt8>) throws(RecordError) -> Double {
        do throws(FormatError) { return try slot.double(in: row) } catch { throw .format(error) }
    }
}

extension RecordQuery {
    /// Whether it asks for everything that its filter finds, in whatever order.
    var isWhole: Bool { limit == nil && offset == 0 && after == nil && before == nil }
}

/// Values, each once: what is equal to a filter is the same here.
public struct DistinctValues {
    private var integers: Set<Int64> = []
    /// Integers that are known, each at the place that its bits give: most rows of a column with
    /// few values have one of these, which costs a load where a set costs a hash.
    private var recent: [Int64] = []
    /// By bytes: `String` calls texts equal that no index finds together.
    private var texts: Set<[UInt8]> = []
    private var others: Set<StoredValue> = []
    /// NaN of each type that has it: to a set, no NaN is equal to another one.
    private var notNumbers: [StoredValue] = []

    /// None yet.
    public init() {}

    /// Adds an integer.
    mutating func add(_ value: Int64) {
        let place = Self.place(value)
        if recent.isEmpty {
            recent = [Int64](repeating: 0, count: Self.recentCount)
            // No place holds a value that was never added: 1 belongs elsewhere.
            recent[Self.place(0)] = 1
        }
        if recent[place] == value { return }
        recent[place] = value
        integers.insert(value)
    }

    /// Adds the numbers of a column.
    mutating func add(_ kind: LeafNumberKind, _ numbers: Span<Int64>) {
        for place in numbers.indices {
            if kind == .int { add(numbers[place]) } else { add(StoredValue(kind, numbers[place])) }
        }
    }

    private static let recentCount = 1024

    /// The upper bits of a multiplication by 2^64 divided by the golden ratio.
    @inline(__always)
    private static func place(_ value: Int64) -> Int {
        Int((UInt64(bitPattern: value) &* 0x9E37_79B9_7F4A_7C15) >> 54)
    }

    /// Adds a value.
    public mutating func add(_ value: StoredValue) {
        switch value {
        case .int(let number): add(number)
        case .text(let text): texts.insert(Array(text.utf8))
        case .double(let number) where number.isNaN: addNotNumber(.double(.nan))
        case .date(let number) where number.isNaN: addNotNumber(.date(.nan))
        case .float(let number) where number.isNaN: addNotNumber(.float(.nan))
        // -0 is +0.
        case .double(let number): others.insert(.double(number == 0 ? 0 : number))
        case .date(let number): others.insert(.date(number == 0 ? 0 : number))
        case .float(let number): others.insert(.float(number == 0 ? 0 : number))
        default: others.insert(value)
        }
    }

    private mutating func addNotNumber(_ value: StoredValue) {
        if !notNumbers.contains(where: { ValueOrder.equal($0, value) }) { notNumbers.append(value) }
    }

    /// The values, ascending, null first.
    public func sorted() -> [StoredValue] {
        var values = Array(others) + notNumbers
        for number in integers { values.append(.int(number)) }
        for text in texts { values.append(.text(String(decoding: text, as: UTF8.self))) }
        return values.sorted { ValueOrder.compare($0, $1) < 0 }
    }
}

extension StoredValue {
    /// A number as a leaf has it.
    fileprivate init(_ kind: LeafNumberKind, _ number: Int64) {
        let double = Double(bitPattern: UInt64(bitPattern: number))
        switch kind {
        case .int: self = .int(number)
        case .double: self = .double(double)
        case .date: self = .date(double)
        }
    }
}

/// The order of stored values, for layers above.
public enum StoredOrder {
    /// Whether one value stands before another one of its column.
    public static func precedes(_ left: StoredValue, _ right: StoredValue) -> Bool {
        ValueOrder.compare(left, right) < 0
    }
}
