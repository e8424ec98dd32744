// Reading rows and trees of one source; errors of the engine become this layer's.

import VarveBase
import VarveEngine
import VarveFormat

/// Reads one state of the store: the shared body of snapshots and transactions.
struct RecordReader<Source: RecordSource> {
    let source: Source
    let schema: RecordSchema
    let counters: RecordCounters

    func entity(_ id: EntityID) throws(RecordError) -> RecordEntity {
        if let entity = schema.entity(id) { return entity }
        throw .unknownEntity("number \(id.rawValue)")
    }

    func engine<R>(_ body: () throws(EngineError) -> R) throws(RecordError) -> R {
        do throws(EngineError) { return try body() } catch { throw recordError(error) }
    }

    private func recordError(_ error: EngineError) -> RecordError {
        guard error.code == .objectMissing, let (id, object) = error.subject,
            let entity = schema.entity(id)
        else { return .engine(error) }
        return .objectNotFound(entity: entity.name, object: object)
    }

    /// One row for a filter; counted as scanned.
    func row(_ entity: EntityID, _ id: ObjectID) throws(RecordError) -> SourceRow<Source>? {
        let entity = try self.entity(entity)
        counters.rowsScanned.count()
        guard let row = try engine({ () throws(EngineError) in try source.row(entity.tree, id) })
        else { return nil }
        return try SourceRow(RowOrigin(source, entity), id, row.bytes)
    }

    /// Rows of IDs in any order, read in one pass in the order of the tree.
    func storedRows(
        _ entity: RecordEntity,
        _ ids: [ObjectID]
    ) throws(RecordError) -> [StoredRow?] {
        var result = [StoredRow?](repeating: nil, count: ids.count)
        if Self.isAscending(ids) {
            try engine { () throws(EngineError) in
                try source.rows(entity.tree, ids) { index, row in result[index] = row }
            }
            return result
        }
        var order: [(id: ObjectID, place: Int)] = []
        order.reserveCapacity(ids.count)
        for place in ids.indices { order.append((ids[place], place)) }
        order.sort { $0.id < $1.id }
        try engine { () throws(EngineError) in
            try source.rows(entity.tree, order.map(\.id)) { index, row in
                result[order[index].place] = row
            }
        }
        return result
    }

    private static func isAscending(_ ids: [ObjectID]) -> Bool {
        var index = 1
        while index < ids.count {
            if ids[index] < ids[index - 1] { return false }
            index += 1
        }
        return true
    }

    /// Entries of a tree. O(1).
    func count(_ tree: TreeID) throws(RecordError) -> UInt64 {
        try engine { () throws(EngineError) in try source.count(tree) }
    }

    func cursor(_ tree: TreeID) throws(RecordError) -> TreeCursor {
        try engine { () throws(EngineError) in try source.cursor(tree) }
    }

    /// Entries of the ranges. O(log n) each.
    func count(_ tree: TreeID, _ ranges: [KeyRange]) throws(RecordError) -> UInt64 {
        var sum: UInt64 = 0
        for range in ranges { sum += try count(tree, range) }
        return sum
    }

    func count(_ tree: TreeID, _ range: KeyRange) throws(RecordError) -> UInt64 {
        let (lower, upper) = try bounds(tree, range)
        return upper - lower
    }

    /// Positions of a range's first entry and of the one after its last.
    func bounds(
        _ tree: TreeID,
        _ range: KeyRange
    ) throws(RecordError) -> (lower: UInt64, upper: UInt64) {
        try engine { () throws(EngineError) in
            let lower = range.lower.isEmpty ? 0 : try source.position(tree, of: range.lower)
            let upper = try range.upper.map { (key) throws(EngineError) in
                try source.position(tree, of: key)
            }
            if let upper { return (lower, max(lower, upper)) }
            return (lower, max(lower, try source.count(tree)))
        }
    }
}
