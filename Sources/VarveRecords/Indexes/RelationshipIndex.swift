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
            return try target(of: id, in: owner, column)
        case .inverseColumn(_, _, let index):
            return try objects(leadingTo: id, index)
        case .link(let link):
            return try links(link, of: id).map(\.other)
        }
    }

    /// The object that a to-one column of one object leads to, or none.
    func target(
        of id: ObjectID,
        in entity: RecordEntity,
        _ column: ColumnID
    ) throws(RecordError) -> [ObjectID] {
        let row = try engine { () throws(EngineError) in try source.row(entity.tree, id) }
        guard let row else { return [] }
        let values = try SourceRow(RowOrigin(source, entity), id, row.bytes)
        return try values.reference(column).map { [$0] } ?? []
    }

    /// The objects whose to-one column leads to `id`, by the index of that column.
    func objects(leadingTo id: ObjectID, _ index: TreeID) throws(RecordError) -> [ObjectID] {
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

    /// The members of a to-many relationship at some positions; fewer where there are fewer.
    /// - Complexity: O(log n + number of positions).
    func related(
        _ relationship: RecordRelationship,
        of id: ObjectID,
        at positions: Range<Int>
    ) throws(RecordError) -> [ObjectID] {
        switch relationship.storage {
        case .column: throw .invalidRequest("\(relationship.name) leads to one object")
        case .inverseColumn(_, _, let index):
            let end = Self.range(of: id).upper
            var result: [ObjectID] = []
            let taken = try engine { () throws(EngineError) in
                guard var cursor = try cursor(index, of: id, at: positions) else { return 0 }
                return try cursor.takeObjectIDs(
                    limit: positions.count,
                    isForward: true,
                    end: end,
                    into: &result
                )
            }
            counters.entriesScanned.count(taken)
            return result
        case .link(let link):
            let prefix = Self.range(of: id).lower
            var keys: [[UInt8]] = []
            try engine { () throws(EngineError) in
                guard var cursor = try cursor(link.index, of: id, at: positions) else { return }
                var more = true
                while more, keys.count < positions.count, cursor.keyHasPrefix(prefix) {
                    keys.append(cursor.key)
                    more = try cursor.next()
                }
            }
            counters.entriesScanned.count(keys.count)
            return try keys.map { (key) throws(RecordError) in
                try decoded(key, isOrdered: link.isOrdered).other
            }
        }
    }

    /// A cursor on the first of some positions among the entries of an object; nil: it has not so
    /// many, or none was asked for.
    private func cursor(
        _ index: TreeID,
        of id: ObjectID,
        at positions: Range<Int>
    ) throws(EngineError) -> TreeCursor? {
        let prefix = Self.range(of: id).lower
        var cursor = try source.cursor(index)
        guard !positions.isEmpty, try cursor.seek(atOrAfter: prefix), cursor.keyHasPrefix(prefix)
        else { return nil }
        let skipped = UInt64(clamping: positions.lowerBound)
        let (place, isBeyondAll) = cursor.position.addingReportingOverflow(skipped)
        guard !isBeyondAll, try cursor.seek(position: place), cursor.keyHasPrefix(prefix) else {
            return nil
        }
        return cursor
    }

    /// Whether a relationship leads to an object. O(log n); of lists that are ordered on both sides
    /// the shorter is read.
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
        for key in keys { result.append(try decoded(key, isOrdered: isOrdered)) }
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

    /// The position of the last member of an ordered list; nil when it has no member, or one
    /// without a position. O(log n).
    func lastPosition(_ index: TreeID, of id: ObjectID) throws(RecordError) -> Int64? {
        let range = Self.range(of: id)
        let key = try engine { () throws(EngineError) -> [UInt8]? in
            var cursor = try source.cursor(index)
            let isFound: Bool
            if let upper = range.upper {
                isFound = try cursor.seek(before: upper)
            } else {
                isFound = try cursor.last()
            }
            return isFound && cursor.keyHasPrefix(range.lower) ? cursor.key : nil
        }
        guard let key else { return nil }
        counters.entriesScanned.count()
        return try decoded(key, isOrdered: true).position
    }

    /// The entries of an ordered list from right after a position on (nil: from the first), until
    /// one leaves enough room for those before it and `member`, or there are no more. `member`
    /// itself is not among them, unless it comes first: then that is its place.
    ///
    /// Enough is more than the square of their number: so each entry that is moved to make room has
    /// few that move it again.
    func entriesMakingRoom(
        _ link: RecordLink,
        of id: ObjectID,
        behind low: Int64?,
        for member: ObjectID
    ) throws(RecordError) -> [LinkEntry] {
        let prefix = Self.range(of: id).lower
        var from = prefix
        if let low {
            // Nothing follows the highest number.
            guard low < .max else { return [] }
            KeyCoding.append(.int(low + 1), to: &from)
        }
        var entries: [LinkEntry] = []
        var cursor = try self.cursor(link.index)
        var more = try engine { () throws(EngineError) in try cursor.seek(atOrAfter: from) }
        while more, cursor.keyHasPrefix(prefix) {
            counters.entriesScanned.count()
            let entry = try decoded(cursor.key, isOrdered: true)
            if entry.other == member, entries.isEmpty { return [entry] }
            if entry.other != member {
                entries.append(entry)
                if LinkPositions.isEnough(behind: low, before: entry.position, entries.count) {
                    break
                }
            }
            more = try engine { () throws(EngineError) in try cursor.next() }
        }
        return entries
    }

    private func decoded(_ key: [UInt8], isOrdered: Bool) throws(RecordError) -> LinkEntry {
        try RecordError.ofFormat { () throws(FormatError) in
            try Self.linkEntry(key, isOrdered: isOrdered)
        }
    }

    /// Whether the list of an object has no more members than the one at the far side.
    func isShorter(
        _ link: RecordLink,
        of id: ObjectID,
        than other: ObjectID
    ) throws(RecordError) -> Bool {
        let near = try count(link.index, Self.range(of: id))
        return try near <= count(link.otherIndex, Self.range(of: other))
    }

    /// The link row between two objects.
    func linkRow(
        _ link: RecordLink,
        of id: ObjectID,
        to other: ObjectID
    ) throws(RecordError) -> ObjectID? {
        if link.isOrdered, link.isOtherOrdered {
            // No index leads from one to the other.
            let isNear = try isShorter(link, of: id, than: other)
            let (index, owner) = isNear ? (link.index, id) : (link.otherIndex, other)
            let wanted = isNear ? other : id
            let entries = try linkEntries(index, isOrdered: true, of: owner)
            return entries.first { $0.other == wanted }?.row
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
