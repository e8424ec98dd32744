// Testing rows where their leaf holds them: filters that look at nothing but the row itself.
//
// Invariants
// - Says of a row exactly what `PredicateNode.matches` says; a row that it cannot judge (a value
//   kept outside it) is left to that.

import VarveBase
import VarveEngine
import VarveFormat

/// A filter that can be asked of a row's bytes.
struct InPlaceTest {
    let node: PredicateNode
    let entity: RecordEntity
    /// The columns that it looks at.
    private let columns: RowColumns
    /// What packed leaves are asked; nil: nothing, as every row passes.
    private let filter: LeafCondition?

    /// Nil when the filter looks at other objects, or at more than whole values of columns.
    /// - Parameter filter: what packed leaves are asked instead of the filter.
    init?(_ node: PredicateNode, _ entity: RecordEntity, _ filter: LeafCondition? = nil) {
        guard Self.isPossible(node) else { return nil }
        self.node = node
        self.entity = entity
        var columns: Set<ColumnID> = []
        node.collectColumns(into: &columns)
        self.columns = RowColumns(columns)
        if case .constant(true) = node {
            self.filter = filter
        } else {
            self.filter = filter ?? node.leafCondition(entity)
        }
    }

    /// What a scan reads for it, and for whoever wants some columns of the rows that pass.
    func reading(_ wanted: RowColumns, numbers: ColumnID? = nil) -> RowReading {
        RowReading(wanted, filter: filter, tested: columns, numbers: numbers)
    }

    private static func isPossible(_ node: PredicateNode) -> Bool {
        switch node {
        case .constant: true
        case .compare(let path, _, _), .isIn(let path, _), .isWithin(let path, _):
            path.ownColumn != nil || path.ownDatePart != nil
        case .text(let path, let needle): path.ownColumn != nil && needle.folding.isEmpty
        case .not(let inner): isPossible(inner)
        case .and(let all), .or(let all): all.allSatisfy(isPossible)
        case .compareTwo, .members: false
        }
    }

    /// Whether a row passes; nil when its bytes do not say.
    func matches(_ layout: RowLayout, _ row: Span<UInt8>) throws(RecordError) -> Bool? {
        do throws(FormatError) {
            return try judge(node, layout, row)
        } catch {
            throw .format(error)
        }
    }

    private func judge(
        _ node: PredicateNode,
        _ layout: RowLayout,
        _ row: Span<UInt8>
    ) throws(FormatError) -> Bool? {
        switch node {
        case .constant(let result): return result
        case .compare(let path, let comparison, let constant):
            if let column = path.ownColumn {
                return try compare(column, comparison, constant, layout, row)
            }
            return try value(path, layout, row).map {
                PredicateNode.compare($0, comparison, constant)
            }
        case .isIn(let path, let values):
            return try value(path, layout, row).map { PredicateNode.contains(values, $0) }
        case .isWithin(let path, let range):
            return try value(path, layout, row).map { range.contains($0) }
        case .text(let path, let needle):
            guard let column = path.ownColumn else { return nil }
            let slot = layout.slot(column, in: row)
            if slot.isOutside { return nil }
            if RowTag.isText(slot.tag) {
                return TextNeedle.find(row.extracting(slot.body), needle.bytes, needle.match)
            }
            guard case .text(let text) = try value(slot, column, row) else { return false }
            return needle.matches(text)
        case .not(let inner): return try judge(inner, layout, row).map { !$0 }
        case .and(let all):
            for node in all {
                guard let passes = try judge(node, layout, row) else { return nil }
                if !passes { return false }
            }
            return true
        case .or(let all):
            for node in all {
                guard let passes = try judge(node, layout, row) else { return nil }
                if passes { return true }
            }
            return false
        case .compareTwo, .members: return nil
        }
    }

    private func compare(
        _ column: ColumnID,
        _ comparison: Comparison,
        _ constant: StoredValue,
        _ layout: RowLayout,
        _ row: Span<UInt8>
    ) throws(FormatError) -> Bool? {
        let slot = layout.slot(column, in: row)
        switch (slot.tag, constant) {
        case (RowTag.zero...RowTag.int64, .int(let wanted)):
            let value = try slot.int(in: row)
            return Self.holds(value < wanted ? -1 : value > wanted ? 1 : 0, comparison)
        case (RowTag.double, .double(let wanted)):
            return Self.holds(ValueOrder.floats(try slot.double(in: row), wanted), comparison)
        case (RowTag.date, .date(let wanted)):
            return Self.holds(ValueOrder.floats(try slot.date(in: row), wanted), comparison)
        case (RowTag.outsideText, _), (RowTag.outsideData, _):
            return constant == .null ? comparison == .notEqual : nil
        default:
            return PredicateNode.compare(try value(slot, column, row), comparison, constant)
        }
    }

    /// The value of a path; nil: the row's bytes do not say.
    private func value(
        _ path: CompiledPath,
        _ layout: RowLayout,
        _ row: Span<UInt8>
    ) throws(FormatError) -> StoredValue? {
        if let (column, part, zone) = path.ownDatePart {
            let date = try value(layout.slot(column, in: row), column, row)
            return CompiledPath.datePart(part, zone, date)
        }
        guard let column = path.ownColumn else { return nil }
        let slot = layout.slot(column, in: row)
        return slot.isOutside ? nil : try value(slot, column, row)
    }

    private func value(
        _ slot: RowSlot,
        _ column: ColumnID,
        _ row: Span<UInt8>
    ) throws(FormatError) -> StoredValue {
        try slot.value(in: row) ?? entity.defaultValue(column)
    }

    private static func holds(_ order: Int, _ comparison: Comparison) -> Bool {
        switch comparison {
        case .equal: order == 0
        case .notEqual: order != 0
        case .less: order < 0
        case .lessOrEqual: order <= 0
        case .greater: order > 0
        case .greaterOrEqual: order >= 0
        }
    }
}
