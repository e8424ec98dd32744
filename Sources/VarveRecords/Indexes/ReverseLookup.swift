// From an object back to the objects whose relationship leads to it, by index entries alone.
//
// Invariants
// - Every relationship has an index for this: a to-one that of its column, links that of their far
//   side, and the list after an inverse that inverse's own column.

public import VarveBase
import VarveEngine
import VarveFormat

extension RecordReader {
    /// The objects of `entity` whose relationship leads to `id`, ascending.
    /// - Complexity: O(log n) and one entry for each.
    func owners(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        of id: ObjectID
    ) throws(RecordError) -> [ObjectID] {
        switch relationship.storage {
        case .column(_, let index):
            return try objects(leadingTo: id, index)
        case .inverseColumn(let member, let column, _):
            return try target(of: id, in: self.entity(member), column)
        case .link(let link):
            let entries = try linkEntries(
                link.otherIndex,
                isOrdered: link.isOtherOrdered,
                of: id
            )
            return entries.map(\.other).sorted()
        }
    }
}

extension RecordSnapshot {
    /// The objects of `entity` whose relationship leads to `id`, ascending.
    /// - Complexity: O(log n) and one index entry for each.
    public func owners(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        of id: ObjectID
    ) throws(RecordError) -> [ObjectID] {
        try reader.owners(entity, relationship, of: id)
    }
}

extension RecordTransaction {
    /// The objects of `entity` whose relationship leads to `id`, ascending.
    /// - Complexity: O(log n) and one index entry for each.
    public func owners(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        of id: ObjectID
    ) throws(RecordError) -> [ObjectID] {
        try reader.owners(entity, relationship, of: id)
    }

    /// What two objects must not have both: the values of a unique index as bytes. Nil when one of
    /// them is null, which equals nothing.
    public func uniqueKey(
        _ index: RecordIndex,
        _ value: (ColumnID) throws(RecordError) -> StoredValue
    ) throws(RecordError) -> [UInt8]? {
        var key: [UInt8] = []
        for term in index.terms {
            let part = try value(term.column)
            if case .null = part { return nil }
            KeyCoding.append(part, to: &key)
        }
        return key
    }
}
