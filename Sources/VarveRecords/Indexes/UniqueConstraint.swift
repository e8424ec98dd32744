// Finding objects that share values which only one may have.
//
// Invariants
// - A null part equals nothing, so an object with one is never a duplicate.
// - Keys narrow the search; where a value was cut the rows decide.

import VarveBase
import VarveEngine
import VarveFormat

extension RecordReader {
    /// The objects whose values in a unique index equal those of a given object; itself not
    /// included.
    func sharing(
        _ index: RecordIndex,
        _ entity: RecordEntity,
        _ values: some RecordValues,
        excluding: ObjectID?
    ) throws(RecordError) -> [ObjectID] {
        var key: [UInt8] = []
        var isCut = false
        for term in index.terms {
            let value = try values.value(term.column)
            if case .null = value { return [] }
            if IndexKeys.append(value, term, to: &key) { isCut = true }
        }
        let range = KeyRange(prefix: key)
        var found: [ObjectID] = []
        try engine { () throws(EngineError) in
            var cursor = try source.cursor(index.tree)
            guard try cursor.seek(atOrAfter: range.lower) else { return }
            _ = try cursor.takeObjectIDs(
                limit: Int.max,
                isForward: true,
                end: range.upper,
                into: &found
            )
        }
        found.removeAll { $0 == excluding }
        guard isCut else { return found }
        var same: [ObjectID] = []
        for id in found {
            guard let other = try row(entity.id, id) else { continue }
            var isEqual = true
            for term in index.terms where isEqual {
                isEqual = ValueOrder.equal(
                    try values.value(term.column),
                    try other.value(term.column)
                )
            }
            if isEqual { same.append(id) }
        }
        return same
    }

    /// The objects whose entries in an index stand beside one with the same columns, ascending.
    /// Entries of a single null are left out: they are no duplicates.
    /// - Complexity: O(entries).
    func sharedEntries(_ index: RecordIndex) throws(RecordError) -> [ObjectID] {
        var found: Set<ObjectID> = []
        var count = 0
        try engine { () throws(EngineError) in
            var cursor = try source.cursor(index.tree)
            var more = try cursor.first()
            var columns: [UInt8] = []
            var last: ObjectID?
            while more {
                count += 1
                let key = cursor.key
                let size = key.count - 8
                let id = try cursor.trailingObjectID()
                if let last, columns.count == size, key.starts(with: columns),
                    !(size == 1 && (key[0] == KeyCoding.nullTag || key[0] == ~KeyCoding.nullTag))
                {
                    found.insert(last)
                    found.insert(id)
                }
                columns = Array(key.prefix(size))
                last = id
                more = try cursor.next()
            }
        }
        counters.entriesScanned.count(count)
        return found.sorted()
    }

    /// Every violation that the given objects take part in; each group of objects once.
    func violations(
        _ entity: RecordEntity,
        _ ids: some Sequence<ObjectID>,
        only trees: [TreeID]? = nil,
        upTo limit: Int = .max
    ) throws(RecordError) -> [UniqueViolation] {
        var result: [UniqueViolation] = []
        for index in entity.indexes {
            guard let policy = index.uniqueness, trees?.contains(index.tree) ?? true else {
                continue
            }
            var reported: Set<ObjectID> = []
            for id in ids where !reported.contains(id) {
                if result.count >= limit { return result }
                guard let row = try row(entity.id, id) else { continue }
                let others = try sharing(index, entity, row, excluding: id)
                if others.isEmpty { continue }
                let objects = (others + [id]).sorted()
                reported.formUnion(objects)
                result.append(
                    UniqueViolation(
                        entity: entity.id,
                        entityName: entity.name,
                        properties: index.names,
                        policy: policy,
                        objects: objects
                    )
                )
            }
        }
        return result
    }
}

/// Values of an object that has no row yet; what is not given is the column's default.
struct GivenValues: RecordValues {
    let objectID: ObjectID
    let entity: RecordEntity
    let values: [ColumnID: StoredValue]

    func value(_ column: ColumnID) throws(RecordError) -> StoredValue {
        values[column] ?? entity.defaultValue(column)
    }
}
