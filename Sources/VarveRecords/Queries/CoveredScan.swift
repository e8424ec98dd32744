// Filters and sorts that an index answers by its keys alone, without reading a row.
//
// Invariants
// - Only for ranges in which no value was cut: then a key says all that its columns hold.
// - A key has zeros without sign and one NaN; filters and orders make no difference there either.

import VarveBase
import VarveEngine
import VarveFormat

/// One index entry as filters read it.
struct KeyRow: RecordValues {
    let objectID: ObjectID
    let key: [UInt8]
    let terms: [RecordIndex.Term]

    func value(_ column: ColumnID) throws(RecordError) -> StoredValue {
        do throws(FormatError) {
            var reader = ByteReader(key, place: "index key")
            for term in terms {
                let part = try KeyCoding.decode(&reader, descending: term.isDescending)
                if term.column != column { continue }
                if case .value(let value) = part { return value }
                throw reader.error("index key", "a cut value", "a whole one")
            }
            throw reader.error("index key", "other columns", "column \(column.rawValue)")
        } catch {
            throw .format(error)
        }
    }
}

extension PlanExecutor {
    /// Calls `body` with each entry that passes until it returns false.
    func eachCovered(
        _ index: RecordIndex,
        _ ranges: [KeyRange],
        goesBack: Bool,
        _ body: (KeyRow) throws(RecordError) -> Bool
    ) throws(RecordError) {
        let resolver = SourceResolver(reader)
        let residual = plan.residual
        var count = 0
        defer { reader.counters.entriesScanned.count(count) }
        try eachEntry(index.tree, ranges, goesBack: goesBack) { (cursor) throws(RecordError) in
            count += 1
            let id = try reader.engine { () throws(EngineError) in try cursor.trailingObjectID() }
            let row = KeyRow(objectID: id, key: cursor.key, terms: index.terms)
            guard try residual?.matches(row, resolver) ?? true else { return true }
            return try body(row)
        }
    }
}

extension PredicateNode {
    /// Whether entries of an index with these columns say all that the test asks.
    func isCovered(by columns: Set<ColumnID>) -> Bool {
        guard readsOwnRowOnly else { return false }
        var needed: Set<ColumnID> = []
        collectColumns(into: &needed)
        return needed.isSubset(of: columns)
    }
}
