// From an object to the objects that a relationship leads to, by index entries alone.
//
// Invariants
// - Members of an unordered to-many come in ascending object ID, those of an ordered one by
//   position.
// - Only a to-one reads a row: its own.

import VarveBase
import VarveEngine
import VarveFormat

/// One link row as the index of one side shows it.
struct LinkEntry {
    let other: ObjectID
    let row: ObjectID
    /// Position among the members; nil when they have no order.
    let position: Int64?
}

extension RecordReader {
    /// The members of a relationship, or the object of a to-one.
    func related(
        _ relationship: RecordRelationship,
        of id: ObjectID,
        in owner: RecordEntity? = nil
    ) throws(RecordError) -> [ObjectID] {
        switch relationship.storage {
        case .column(let column, _):
            guard let owner else {
                throw .invalidRequest("\(relationship.name) leads to one object")
            }
            let row = try engine { () throws(EngineError) in try source.row(owner.tree, id) }
            guard let row else { return [] }
            let values = try SourceRow(RowOrigin(source, owner), id, row.bytes)
            return try values.reference(column).map { [$0] } ?? []
        case .inverseColumn(_, _, let index):
            let range = Self.range(of: id)
            var result: [ObjectID] = []
            let taken = try engine { () throws(EngineError) in
                var cursor = try source.cursor(index)
                guard try cursor.seek(atOrAfter: range.lower) else { return 0 }
                return try cursor.takeObjectIDs(
                    limit: Int.max,
                    isForward: true,
                    end: range.upper,
                    into: &result
                )
            }
            counters.entriesScanned.count(taken)
            return result
        case .link(let link):
            return try links(link, of: id).map(\.other)
        }
    }

    /// Number of members. O(log n).
    func relatedCount(
        _ relationship: RecordRelationship,
        of id: ObjectID,
        in owner: RecordEntity
    ) throws(RecordError) -> Int {
        switch relationship.storage {
        case .column: try related(relationship, of: id, in: owner).count
        case .inverseColumn(_, _, let index):
            Int(clamping: try count(index, Self.range(of: id)))
        case .link(let link): Int(clamping: try count(link.index, Self.range(of: id)))
        }
    }

    /// Whether a relationship leads to an object. O(log n), but for lists ordered on both sides.
    func isRelated(
        _ relationship: RecordRelationship,
        of id: ObjectID,
        to other: ObjectID,
        in owner: RecordEntity
    ) throws(RecordError) -> Bool {
        switch relationship.storage {
        case .column:
            return try related(relationship, of: id, in: owner).contains(other)
        case .inverseColumn(_, _, let index):
            var key = Self.range(of: id).lower
            KeyCoding.appendObjectID(other, to: &key)
            return try count(index, KeyRange(prefix: key)) > 0
        case .link(let link):
            return try linkRow(link, of: id, to: other) != nil
        }
    }

    /// The link rows of an object, in the order of its side.
    func links(_ link: RecordLink, of id: ObjectID) throws(RecordError) -> [LinkEntry] {
        try linkEntries(link.index, isOrdered: link.isOrdered, of: id)
    }

    /// The entries of one side's index: reference, perhaps position, reference, link row.
    func linkEntries(
        _ index: TreeID,
        isOrdered: Bool,
        of id: ObjectID
    ) throws(RecordError) -> [LinkEntry] {
        let prefix = Self.range(of: id).lower
        var result: [LinkEntry] = []
        var keys: [[UInt8]] = []
        try engine { () throws(EngineError) in
            var cursor = try source.cursor(index)
            var more = try cursor.seek(atOrAfter: prefix)
            while more, cursor.keyHasPrefix(prefix) {
                keys.append(cursor.key)
                more = try cursor.next()
            }
        }
        counters.entriesScanned.count(keys.count)
        for key in keys {
            do throws(FormatError) {
                result.append(try Self.linkEntry(key, isOrdered: isOrdered))
            } catch {
                throw .format(error)
            }
        }
        return result
    }

    private static func linkEntry(
        _ key: [UInt8],
        isOrdered: Bool
    ) throws(FormatError) -> LinkEntry {
        var reader = ByteReader(key, place: "link entry")
        _ = try KeyCoding.decode(&reader)
        var position: Int64?
        if isOrdered, case .value(.int(let number)) = try KeyCoding.decode(&reader) {
            position = number
        }
        guard case .value(.reference(let other)) = try KeyCoding.decode(&reader) else {
            throw reader.error("link entry", "another value", "a reference")
        }
        return LinkEntry(
            other: other,
            row: try KeyCoding.decodeObjectID(&reader),
            position: position
        )
    }

    /// The link row between two objects.
    func linkRow(
        _ link: RecordLink,
        of id: ObjectID,
        to other: ObjectID
    ) throws(RecordError) -> ObjectID? {
        if link.isOrdered, link.isOtherOrdered {
            return try links(link, of: id).first { $0.other == other }?.row
        }
        var key: [UInt8] = []
        let index = link.isOrdered ? link.otherIndex : link.index
        KeyCoding.append(.reference(link.isOrdered ? other : id), to: &key)
        KeyCoding.append(.reference(link.isOrdered ? id : other), to: &key)
        return try engine { () throws(EngineError) in
            var cursor = try source.cursor(index)
            guard try cursor.seek(atOrAfter: key), cursor.keyHasPrefix(key) else { return nil }
            return try cursor.trailingObjectID()
        }
    }

    /// The entries that begin with a reference to an object.
    static func range(of id: ObjectID) -> KeyRange {
        var key: [UInt8] = []
        KeyCoding.append(.reference(id), to: &key)
        return KeyRange(prefix: key)
    }
}
