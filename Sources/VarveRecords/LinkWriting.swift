// Changes of links inside a transaction: adding, removing, placing, arranging.
//
// Invariants
// - A link row exists once per pair; deleting an object deletes its link rows.
// - One link costs O(log n) whatever the lists are long: its place comes from its neighbours. Only
//   `setOrder` reads a whole list, and what is ordered on both sides has no index from one object
//   to the other: there the shorter list is read, once in a transaction.

public import VarveBase
import VarveEngine
import VarveFormat

/// One index of link rows in which objects of an entity can stand.
struct LinkSide {
    let hidden: EntityID
    let index: TreeID
    let isOrdered: Bool
}

/// Lists that are ordered on both sides, as a transaction read them and has changed them since.
struct MutualLinks {
    struct Key: Hashable {
        let index: TreeID
        let owner: ObjectID
    }
    /// The link rows by the object at the other end.
    private var lists: [Key: [ObjectID: ObjectID]] = [:]

    var isEmpty: Bool { lists.isEmpty }

    func rows(_ key: Key) -> [ObjectID: ObjectID]? { lists[key] }

    mutating func keep(_ key: Key, _ rows: [ObjectID: ObjectID]) { lists[key] = rows }

    /// A link is there, or (nil) is gone.
    mutating func note(_ link: RecordLink, _ id: ObjectID, _ other: ObjectID, row: ObjectID?) {
        if lists.isEmpty { return }
        let (near, far) = (Key(index: link.index, owner: id), Key(link.otherIndex, other))
        if lists[near] != nil { lists[near]?[other] = row }
        if lists[far] != nil { lists[far]?[id] = row }
    }

    mutating func forget() { lists = [:] }
}

extension MutualLinks.Key {
    init(_ index: TreeID, _ owner: ObjectID) { self.init(index: index, owner: owner) }
}

extension RecordTransaction {
    // MARK: Deleting objects

    func deleteLinks(of entity: EntityID, _ id: ObjectID) throws(RecordError) {
        for side in sides(of: entity) {
            for link in try reader.linkEntries(side.index, isOrdered: side.isOrdered, of: id) {
                try deleteLink(side.hidden, link.row)
                mutualLinks.forget()
            }
        }
    }

    /// Every index of link rows in which objects of an entity can stand.
    private func sides(of entity: EntityID) -> [LinkSide] {
        if let known = linkSides[entity] { return known }
        var sides: [LinkSide] = []
        for hidden in schema.all where hidden.isHiddenLink {
            for (side, end) in hidden.relationships.prefix(2).enumerated()
            where end.target == entity {
                let index = hidden.indexes[side]
                sides.append(
                    LinkSide(
                        hidden: hidden.id,
                        index: index.tree,
                        isOrdered: index.terms.count == 3
                    )
                )
            }
        }
        linkSides[entity] = sides
        return sides
    }

    private func deleteLink(_ hidden: EntityID, _ row: ObjectID) throws(RecordError) {
        try reader.engine { () throws(EngineError) in
            // A link from an object to itself stands in both indexes.
            _ = try storage.deleteIfPresent(hidden, row)
        }
    }

    // MARK: One link

    private func link(_ relationship: RecordRelationship) throws(RecordError) -> RecordLink {
        if case .link(let link) = relationship.storage { return link }
        throw .invalidRequest("\(relationship.name) keeps no links of its own")
    }

    /// Whether a relationship leads from one object to another.
    /// - Complexity: O(log n); of lists ordered on both sides the shorter is read once.
    public func leads(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        from id: ObjectID,
        to other: ObjectID
    ) throws(RecordError) -> Bool {
        if case .link(let link) = relationship.storage {
            return try linkRow(link, of: id, to: other) != nil
        }
        return try reader.isRelated(relationship, of: id, to: other, in: entity)
    }

    private func linkRow(
        _ link: RecordLink,
        of id: ObjectID,
        to other: ObjectID
    ) throws(RecordError) -> ObjectID? {
        guard link.isOrdered, link.isOtherOrdered else {
            return try reader.linkRow(link, of: id, to: other)
        }
        let (near, far) = (MutualLinks.Key(link.index, id), MutualLinks.Key(link.otherIndex, other))
        if let rows = mutualLinks.rows(near) { return rows[other] }
        if let rows = mutualLinks.rows(far) { return rows[id] }
        let isNear = try reader.isShorter(link, of: id, than: other)
        let key = isNear ? near : far
        var rows: [ObjectID: ObjectID] = [:]
        for entry in try reader.linkEntries(key.index, isOrdered: true, of: key.owner) {
            rows[entry.other] = entry.row
        }
        mutualLinks.keep(key, rows)
        return rows[isNear ? other : id]
    }

    /// Links two objects; in an ordered relationship at the end. Does nothing when they are linked.
    /// - Complexity: that of `leads`.
    public func addLink(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        from id: ObjectID,
        to other: ObjectID
    ) throws(RecordError) {
        let link = try link(relationship)
        if try linkRow(link, of: id, to: other) != nil { return }
        var own: Int64?
        if link.isOrdered {
            own = LinkPositions.behind(try reader.lastPosition(link.index, of: id))
        }
        try insertLink(link, id, other, position: own)
    }

    private func insertLink(
        _ link: RecordLink,
        _ id: ObjectID,
        _ other: ObjectID,
        position: Int64?
    ) throws(RecordError) {
        var far: StoredValue = .null
        if link.isOtherOrdered {
            far = .int(LinkPositions.behind(try reader.lastPosition(link.otherIndex, of: other)))
        }
        var row = [StoredValue?](repeating: .null, count: 4)
        row[Int(link.ownColumn.rawValue)] = .reference(id)
        row[Int(link.otherColumn.rawValue)] = .reference(other)
        row[Int(link.positionColumn.rawValue)] = position.map { .int($0) } ?? .null
        row[link.positionColumn.rawValue == 2 ? 3 : 2] = far
        let object = store.allocateObjectIDs(1)
        try reader.engine { () throws(EngineError) in
            try storage.insert(link.entity, object, row: RowCoding.encode(row))
        }
        mutualLinks.note(link, id, other, row: object)
    }

    /// Takes the link between two objects away. Does nothing when there is none.
    /// - Complexity: that of `leads`.
    public func removeLink(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        from id: ObjectID,
        to other: ObjectID
    ) throws(RecordError) {
        let link = try link(relationship)
        if let row = try linkRow(link, of: id, to: other) {
            try deleteLink(link.entity, row)
            mutualLinks.note(link, id, other, row: nil)
        }
    }

    // MARK: Order

    /// Puts a member of an ordered relationship right after another one (nil: in front of all) and
    /// links it if it was not. Members that follow may get other positions to make room.
    ///
    /// Throws `invalidRequest` when the relationship has no order or `previous` is no member.
    /// - Complexity: O(log n) amortised, n the members; that of `leads` to find the two.
    public func placeLink(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        of id: ObjectID,
        _ member: ObjectID,
        behind previous: ObjectID?
    ) throws(RecordError) {
        let link = try link(relationship)
        guard link.isOrdered else { throw .invalidRequest("\(relationship.name) has no order") }
        if previous == member {
            throw .invalidRequest("a member of \(relationship.name) cannot follow itself")
        }
        let known = try linkRow(link, of: id, to: member)
        var low: Int64?
        if let previous {
            guard let row = try linkRow(link, of: id, to: previous) else {
                throw .invalidRequest("\(previous) is no member of \(relationship.name)")
            }
            low = try position(link, row)
            if low == nil { return try arrangeAll(link, id, member, behind: previous) }
        }
        let following = try reader.entriesMakingRoom(link, of: id, behind: low, for: member)
        if following.first?.other == member { return }
        guard let positions = LinkPositions.insert(behind: low, before: following.map(\.position))
        else { return try arrangeAll(link, id, member, behind: previous) }
        for (entry, position) in zip(following, positions.moved) where entry.position != position {
            try setPosition(link, entry.row, position)
        }
        if let known {
            try setPosition(link, known, positions.new)
        } else {
            try insertLink(link, id, member, position: positions.new)
        }
    }

    private func position(_ link: RecordLink, _ row: ObjectID) throws(RecordError) -> Int64? {
        guard let stored = try self.row(link.entity, row),
            case .int(let position) = try value(of: stored, link.positionColumn)
        else { return nil }
        return position
    }

    private func setPosition(
        _ link: RecordLink,
        _ row: ObjectID,
        _ position: Int64
    ) throws(RecordError) {
        try reader.engine { () throws(EngineError) in
            try storage.update(
                link.entity,
                row,
                patch: RowPatch.encode([(link.positionColumn, .int(position))])
            )
        }
    }

    /// Numbers all members anew: some have no position, or there is no room for another.
    private func arrangeAll(
        _ link: RecordLink,
        _ id: ObjectID,
        _ member: ObjectID,
        behind previous: ObjectID?
    ) throws(RecordError) {
        var members = try reader.links(link, of: id).map(\.other).filter { $0 != member }
        let place = previous.flatMap { members.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
        members.insert(member, at: place)
        try setOrder(link, of: id, members)
    }

    /// Makes the members of an ordered relationship exactly these, in this order. Moves as few link
    /// rows as the order allows.
    ///
    /// Throws `invalidRequest` when an object comes twice or the relationship has no order.
    /// - Complexity: O(n log n), n the members before and after.
    public func setOrder(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        of id: ObjectID,
        _ members: [ObjectID]
    ) throws(RecordError) {
        let link = try link(relationship)
        guard link.isOrdered else { throw .invalidRequest("\(relationship.name) has no order") }
        guard Set(members).count == members.count else {
            throw .invalidRequest("\(relationship.name) can lead to an object only once")
        }
        try setOrder(link, of: id, members)
    }

    /// The same, where the caller knows the members as the last commit had them: few changes do
    /// not read the list.
    ///
    /// - Parameter present: the members of the commit in their order. This transaction may have
    ///   deleted some, and linked others through the far side.
    /// - Complexity: O(n log n) in memory; O(k log n) in the store for k changes, amortised.
    public func setOrder(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        of id: ObjectID,
        _ members: [ObjectID],
        from present: [ObjectID]
    ) throws(RecordError) {
        var places: [ObjectID: Int64] = [:]
        for (place, member) in present.enumerated() { places[member] = Int64(place) }
        let kept = LinkPositions.kept(members.map { places[$0] })
        let changes = kept.count { $0 == nil } + max(0, present.count - members.count)
        guard changes <= members.count / 8, Set(members).count == members.count else {
            try setOrder(entity, relationship, of: id, members)
            return
        }
        let wanted = Set(members)
        for member in present where !wanted.contains(member) {
            try removeLink(entity, relationship, from: id, to: member)
        }
        var previous: ObjectID?
        for (member, place) in zip(members, kept) {
            if place == nil {
                try placeLink(entity, relationship, of: id, member, behind: previous)
            }
            previous = member
        }
    }

    private func setOrder(
        _ link: RecordLink,
        of id: ObjectID,
        _ members: [ObjectID]
    ) throws(RecordError) {
        let wanted = Set(members)
        var kept: [ObjectID: LinkEntry] = [:]
        for entry in try reader.links(link, of: id) {
            if wanted.contains(entry.other) {
                kept[entry.other] = entry
            } else {
                try deleteLink(link.entity, entry.row)
                mutualLinks.note(link, id, entry.other, row: nil)
            }
        }
        let positions = LinkPositions.assign(members.map { kept[$0]?.position })
        for (member, position) in zip(members, positions) {
            guard let entry = kept[member] else {
                try insertLink(link, id, member, position: position)
                continue
            }
            if entry.position != position { try setPosition(link, entry.row, position) }
        }
    }
}
