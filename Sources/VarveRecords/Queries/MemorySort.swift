// Orders that no index gives: every match is read once, its key of bytes kept, the keys sorted.
//
// Invariants
// - With a limit, no more than twice as many keys as the window needs are held (SortKeys.swift).
// - Where order and filter look at the row only, rows are read where their leaf holds them.

import VarveBase
import VarveEngine
import VarveFormat

extension PlanExecutor {
    /// Reads every match once, sorts keys of bytes, cuts the window out.
    /// - Complexity: O(matches), and sorting; O(limit + offset) memory with a limit.
    func sorted(_ window: FetchWindow) throws(RecordError) -> [ObjectID] {
        var keys = sortKeys(window, keep: window.needed)
        if plan.isCovered, case .index(let index, let ranges) = plan.access {
            let resolver = SourceResolver(reader)
            try eachCovered(index, ranges, goesBack: false) { (row) throws(RecordError) in
                try add(row, resolver, to: &keys)
                return true
            }
        } else if case .rows = plan.access, let columns = plan.sort.ownColumns,
            let test = plan.inPlaceTest
        {
            try addInPlace(columns, test, to: &keys)
        } else {
            let resolver = SourceResolver(reader)
            try eachMatch { (row) throws(RecordError) in try add(row, resolver, to: &keys) }
        }
        return window.cut(keys.sortedIDs())
    }

    /// An empty collection for the keys of a window.
    func sortKeys(_ window: FetchWindow, keep: Int?) -> SortKeys {
        func key(_ place: KeysetPosition?) -> [UInt8]? {
            guard let place else { return nil }
            var key: [UInt8] = []
            plan.sort.appendKey(place, to: &key)
            return key
        }
        return SortKeys(
            keep: keep,
            fromEnd: window.isBackward,
            after: key(window.after),
            before: key(window.before)
        )
    }

    /// Adds one object's key.
    func add(
        _ row: some RecordValues,
        _ resolver: SourceResolver<Source>,
        to keys: inout SortKeys
    ) throws(RecordError) {
        let start = keys.bytes.count
        for (place, term) in plan.sort.terms.enumerated() {
            if place > 0, keys.drops(from: start) { return }
            let value = try term.path.value(row, resolver)
            CompiledSort.append(value, descending: term.isDescending, to: &keys.bytes)
        }
        plan.sort.appendTie(row.objectID, to: &keys.bytes)
        keys.close(from: start, row.objectID)
    }

    /// Adds the keys of all rows that pass, without a copy of the row.
    private func addInPlace(
        _ columns: [ColumnID],
        _ test: InPlaceTest,
        to keys: inout SortKeys
    ) throws(RecordError) {
        let terms = plan.sort.terms
        let whole = [KeyRange(prefix: [])]
        try eachPassing(test, whole, goesBack: false, reading: RowColumns(columns)) {
            (id, _, layout, row) throws(RecordError) in
            let start = keys.bytes.count
            for (place, column) in columns.enumerated() {
                if place > 0, keys.drops(from: start) { return true }
                let slot = layout.slot(column, in: row)
                let isDescending = terms[place].isDescending
                if RowTag.isText(slot.tag), !slot.isOutside {
                    let body = row.extracting(slot.body)
                    CompiledSort.appendText(body, descending: isDescending, to: &keys.bytes)
                    continue
                }
                let value = try reader.value(column, plan.entity, id, layout, row)
                CompiledSort.append(value, descending: isDescending, to: &keys.bytes)
            }
            plan.sort.appendTie(id, to: &keys.bytes)
            keys.close(from: start, id)
            return true
        }
    }
}

extension FetchWindow {
    /// How many objects from its end of the order a window needs; nil: all.
    var needed: Int? {
        guard let limit else { return nil }
        let sum = limit.addingReportingOverflow(offset)
        return sum.overflow ? nil : sum.partialValue
    }
}

extension CompiledSort {
    /// The columns of the terms, where all of them are whole values of the object's own row.
    var ownColumns: [ColumnID]? {
        var columns: [ColumnID] = []
        for term in terms {
            guard let column = term.path.ownColumn else { return nil }
            columns.append(column)
        }
        return columns
    }

    /// What `append` appends for a text of these bytes.
    static func appendText(_ text: Span<UInt8>, descending: Bool, to key: inout [UInt8]) {
        let start = key.count
        key.append(KeyCoding.textTag)
        for index in text.indices {
            let byte = text[index]
            key.append(byte)
            if byte == 0 { key.append(KeyCoding.escapedZero) }
        }
        key.append(0)
        key.append(KeyCoding.contentEnd)
        if descending { for index in start..<key.count { key[index] = ~key[index] } }
    }
}
