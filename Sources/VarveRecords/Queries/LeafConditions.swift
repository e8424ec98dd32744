// Filters as packed leaves answer them: many rows at a time, by the codes of their columns.
//
// Invariants
// - Where a leaf is certain it says what `PredicateNode.matches` says; what it has no word for here
//   is left to that.
// - A row that does not store a column has the column's default, which is judged here, once.

import VarveBase
import VarveFormat

extension PredicateNode {
    /// What this asks of the columns of a row of an entity.
    func leafCondition(_ entity: RecordEntity) -> LeafCondition {
        switch self {
        case .constant(let passes): return .constant(passes)
        case .compare(let path, let comparison, let constant):
            guard let column = path.ownColumn else { return .unknown }
            return Self.condition(column, comparison, constant, entity)
        case .isIn(let path, let values):
            guard let column = path.ownColumn else { return .unknown }
            return Self.condition(column, anyOf: values, entity)
        case .isWithin(let path, let range):
            guard let column = path.ownColumn else { return .unknown }
            return Self.condition(column, range, entity)
        case .text(let path, let needle):
            guard let column = path.ownColumn, needle.folding.isEmpty else { return .unknown }
            var passesAbsent = false
            if case .text(let text) = entity.defaultValue(column) {
                passesAbsent = needle.matches(text)
            }
            return .column(
                ColumnCondition(
                    column,
                    .texts { TextNeedle.find($0, needle.bytes, needle.match) },
                    passesNull: false,
                    passesAbsent: passesAbsent
                )
            )
        case .not(let inner): return .not(inner.leafCondition(entity))
        case .and(let all): return .and(all.map { $0.leafCondition(entity) })
        case .or(let all): return .or(all.map { $0.leafCondition(entity) })
        case .compareTwo, .members: return .unknown
        }
    }

    /// Values that are compared with one value.
    private static func condition(
        _ column: ColumnID,
        _ comparison: Comparison,
        _ constant: StoredValue,
        _ entity: RecordEntity
    ) -> LeafCondition {
        guard let values = LeafValues.values(comparison, constant) else { return .unknown }
        return .column(
            ColumnCondition(
                column,
                values,
                isNegated: comparison == .notEqual && constant != .null,
                passesNull: compare(.null, comparison, constant),
                passesAbsent: compare(entity.defaultValue(column), comparison, constant)
            )
        )
    }

    /// More values than this are not asked for one by one.
    private static let valuesMax = 8

    /// Values that are in a list, which ascends.
    private static func condition(
        _ column: ColumnID,
        anyOf values: [StoredValue],
        _ entity: RecordEntity
    ) -> LeafCondition {
        if values.count <= valuesMax {
            return .or(values.map { condition(column, .equal, $0, entity) })
        }
        let passesNull = contains(values, .null)
        let passesAbsent = contains(values, entity.defaultValue(column))
        let isText = values.allSatisfy { value in
            if case .text = value { true } else { value == .null }
        }
        if isText {
            let texts = Set(
                values.compactMap { value in
                    if case .text(let text) = value { Array(text.utf8) } else { nil as [UInt8]? }
                }
            )
            let test: @Sendable (Span<UInt8>) -> Bool = { text in
                texts.contains(ByteReader.copy(text, 0..<text.count))
            }
            return .column(
                ColumnCondition(
                    column,
                    .texts(test),
                    passesNull: passesNull,
                    passesAbsent: passesAbsent
                )
            )
        }
        // Values between the first and the last may be in the list; others are not.
        guard let first = values.first(where: { $0 != .null }), let last = values.last,
            let hull = LeafValues.range(ValueRange(from: first, through: last))
        else { return .unknown }
        let known = ColumnCondition(
            column,
            hull,
            passesNull: passesNull,
            passesAbsent: passesAbsent
        )
        return .and([.column(known), .unknown])
    }

    /// Values of a range.
    private static func condition(
        _ column: ColumnID,
        _ range: ValueRange,
        _ entity: RecordEntity
    ) -> LeafCondition {
        guard let values = LeafValues.range(range) else { return .unknown }
        return .column(
            ColumnCondition(
                column,
                values,
                passesNull: false,
                passesAbsent: range.contains(entity.defaultValue(column))
            )
        )
    }
}

/// Values that pass a comparison, as leaves know them.
private enum LeafValues {
    typealias Values = ColumnCondition.Values

    /// What passes a comparison with a constant; what passes `equal` for `notEqual`, but with null.
    /// Nil: leaves have no word for it.
    static func values(_ comparison: Comparison, _ constant: StoredValue) -> Values? {
        switch constant {
        case .null: return .any(comparison == .notEqual)
        case .bool(let value):
            return comparison == .equal || comparison == .notEqual ? .bool(value) : nil
        case .reference(let object):
            return comparison == .equal || comparison == .notEqual ? .reference(object) : nil
        case .int(let value): return .integers(ranks(comparison, value))
        case .double(let value): return .doubles(ranks(comparison, ColumnCondition.rank(value)))
        case .date(let value): return .dates(ranks(comparison, ColumnCondition.rank(value)))
        case .text(let text):
            let bytes = Array(text.utf8)
            return .texts { other in
                let order = compare(other, bytes)
                return switch comparison {
                case .equal, .notEqual: order == 0
                case .less: order < 0
                case .lessOrEqual: order <= 0
                case .greater: order > 0
                case .greaterOrEqual: order >= 0
                }
            }
        default: return nil
        }
    }

    /// What lies in a range; nil: leaves have no word for it.
    static func range(_ range: ValueRange) -> Values? {
        guard let some = range.lower ?? range.upper else { return nil }
        switch some {
        case .int: return ranks(range, { $0.integer }).map { .integers($0) }
        case .double: return ranks(range, { $0.doubleRank }).map { .doubles($0) }
        case .date: return ranks(range, { $0.dateRank }).map { .dates($0) }
        case .text:
            guard let lower = range.lower.map({ $0.utf8 }) ?? .some([]),
                let upper = range.upper.map({ $0.utf8 }) ?? .some([])
            else { return nil }
            let hasUpper = range.upper != nil
            let includesUpper = range.includesUpper
            return .texts { text in
                if compare(text, lower) < 0 { return false }
                if !hasUpper { return true }
                let order = compare(text, upper)
                return order < 0 || includesUpper && order == 0
            }
        default: return nil
        }
    }

    /// The ranks of what passes a comparison with one rank; nil: nothing does.
    private static func ranks(_ comparison: Comparison, _ rank: Int64) -> ClosedRange<Int64>? {
        switch comparison {
        case .equal, .notEqual: rank...rank
        case .less: rank == .min ? nil : Int64.min...rank - 1
        case .lessOrEqual: Int64.min...rank
        case .greater: rank == .max ? nil : rank + 1...Int64.max
        case .greaterOrEqual: rank...Int64.max
        }
    }

    /// The ranks of a range; an inner nil: nothing lies in it. Nil: its bounds are of other types.
    private static func ranks(
        _ range: ValueRange,
        _ rank: (StoredValue) -> Int64?
    ) -> ClosedRange<Int64>?? {
        var low = Int64.min
        var high = Int64.max
        if let lower = range.lower {
            guard let bound = rank(lower) else { return nil }
            low = bound
        }
        if let upper = range.upper {
            guard let bound = rank(upper) else { return nil }
            if !range.includesUpper, bound == .min { return .some(nil) }
            high = range.includesUpper ? bound : bound - 1
        }
        return .some(low <= high ? low...high : nil)
    }

    /// As `ValueOrder.texts`.
    private static func compare(_ left: Span<UInt8>, _ right: [UInt8]) -> Int {
        let shared = min(left.count, right.count)
        var index = 0
        while index < shared {
            if left[index] != right[index] { return left[index] < right[index] ? -1 : 1 }
            index += 1
        }
        return left.count - right.count
    }
}

extension StoredValue {
    fileprivate var integer: Int64? { if case .int(let value) = self { value } else { nil } }
    fileprivate var doubleRank: Int64? {
        if case .double(let value) = self { ColumnCondition.rank(value) } else { nil }
    }
    fileprivate var dateRank: Int64? {
        if case .date(let value) = self { ColumnCondition.rank(value) } else { nil }
    }
    fileprivate var utf8: [UInt8]? {
        if case .text(let text) = self { Array(text.utf8) } else { nil }
    }
}
