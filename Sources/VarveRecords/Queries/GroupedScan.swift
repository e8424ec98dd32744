// Orders whose first terms an index gives: objects that are equal in these are sorted in memory,
// a group at a time, until the window is full.
//
// Invariants
// - A group is the run of entries whose keys begin with the same values; no value in the ranges was
//   cut (the planner looked), so equal bytes are equal values.
// - Groups come in the order of the request, or from its end for a window that is read backward.

import VarveBase
import VarveEngine
import VarveFormat

extension PlanExecutor {
    /// The object IDs of a window.
    /// - Complexity: O(entries up to the window's end and of the group in which it lies).
    func grouped(_ window: FetchWindow) throws(RecordError) -> [ObjectID] {
        guard case .index(let index, let all) = plan.access else {
            preconditionFailure("only an index gives the beginning of an order")
        }
        let goesBack = plan.isReversed != window.isBackward
        var ranges = try clip(all, window)
        if goesBack { ranges.reverse() }
        var found: [ObjectID] = []
        for range in ranges {
            var cursor = try reader.cursor(index.tree)
            var isThere = try reader.engine { () throws(EngineError) in
                try Self.seek(&cursor, range, nil, goesBack)
            }
            while isThere, isInside(range, cursor, goesBack) {
                let left = window.needed.map { $0 - found.count }
                if let left, left <= 0 { break }
                let group = KeyRange(prefix: try plan.groupPrefix(of: cursor.key, index))
                let ids = try sortedGroup(group, goesBack, window, left, &cursor)
                found += window.isBackward ? ids.reversed() : ids
                isThere = try reader.engine { () throws(EngineError) in
                    if goesBack { return try cursor.seek(before: group.lower) }
                    guard let upper = group.upper else { return false }
                    return try cursor.seek(atOrAfter: upper)
                }
            }
        }
        if window.isBackward { found.reverse() }
        return window.cut(found)
    }

    private func isInside(_ range: KeyRange, _ cursor: TreeCursor, _ goesBack: Bool) -> Bool {
        if goesBack { return cursor.compareKey(with: range.lower) >= 0 }
        return range.upper.map { cursor.compareKey(with: $0) < 0 } ?? true
    }

    /// One group in the order of the request, `left` objects of it at least unless it has fewer.
    private func sortedGroup(
        _ group: KeyRange,
        _ goesBack: Bool,
        _ window: FetchWindow,
        _ left: Int?,
        _ cursor: inout TreeCursor
    ) throws(RecordError) -> [ObjectID] {
        var keys = sortKeys(window, keep: left)
        let resolver = SourceResolver(reader)
        let origin = RowOrigin(reader.source, plan.entity)
        let most = 1_024
        while cursor.isValid {
            var ids: [ObjectID] = []
            let taken = try reader.engine { () throws(EngineError) in
                try cursor.takeObjectIDs(
                    limit: most,
                    isForward: !goesBack,
                    end: goesBack ? group.lower : group.upper,
                    into: &ids
                )
            }
            reader.counters.entriesScanned.count(taken)
            reader.counters.rowsScanned.count(taken)
            let rows = try reader.storedRows(plan.entity, ids)
            for (place, id) in ids.enumerated() {
                guard let stored = rows[place] else { continue }
                let row = try SourceRow(origin, id, stored.bytes)
                if let residual = plan.residual, try !residual.matches(row, resolver) { continue }
                try add(row, resolver, to: &keys)
            }
            if taken < most { break }
        }
        return keys.sortedIDs()
    }
}

extension FetchPlan {
    /// What the keys of a group begin with.
    func groupPrefix(of key: [UInt8], _ index: RecordIndex) throws(RecordError) -> [UInt8] {
        let columns = steps.reduce(0) { count, step in
            if case .column = step { count + 1 } else { count }
        }
        do throws(FormatError) {
            var reader = ByteReader(key, place: "index key")
            for term in index.terms.prefix(fixedTerms + columns) {
                _ = try KeyCoding.decode(&reader, descending: term.isDescending)
            }
            return Array(key[..<reader.position])
        } catch {
            throw .format(error)
        }
    }
}
