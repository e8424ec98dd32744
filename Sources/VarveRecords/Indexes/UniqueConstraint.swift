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
            var cursor = source.cursor(index.tree)
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

    /// Every violation that the given objects take part in; each group of objects once.
    func violations(
        _ entity: RecordEntity,
        _ ids: some Sequence<ObjectID>,
        only trees: [TreeID]? = nil
    ) throws(RecordError) -> [UniqueViolation] {
        var result: [UniqueViolation] = []
        for index in entity.indexes {
            guard let policy = index.uniqueness, trees?.contains(index.tree) ?? true else {
                continue
            }
            var reported: Set<ObjectID> = []
            for id in ids where !reported.contains(id) {
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
