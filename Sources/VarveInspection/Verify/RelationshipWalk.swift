// Both sides of every relationship, held against each other.
//
// Invariants
// - Linear: an index is read once in its order, and the rows that it leads to beside it. Only a
//   list with an order on both sides that has more members than `membersMax` is read again.
// - Memory is a page or two a tree, and at most 2 x `membersMax` object IDs.
// - Indexes are trusted here, so whoever calls has held them against the rows: `isSound`.
// - Nothing is decided: each fault is told in the order of the walk.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

struct RelationshipWalk {
    let schema: RecordSchema
    let storage: Snapshot
    /// Whether a tree can be read, and an index was found equal to its rows.
    let isSound: (TreeID) -> Bool
    /// Called for each entry; throws to end the walk.
    let step: () throws(InspectionError) -> Void
    /// Called for what cannot be held against the other side.
    let skipped: (RelationshipEnd) -> Void
    /// Called for each fault.
    let found: (RelationshipEnd, RelationshipFault) throws(InspectionError) -> Void

    /// Members of one list whose IDs are held at a time.
    static let membersMax = 1 << 20

    /// Walks all relationships; `settled` is called after each.
    func run(settled: () -> Void = {}) throws(InspectionError) {
        for entity in schema.all {
            if entity.isHiddenLink {
                try checkLinks(entity)
                settled()
                continue
            }
            for relationship in entity.relationships {
                guard case .column(_, let index) = relationship.storage else { continue }
                try checkColumn(
                    RelationshipEnd(entity: entity, relationship: relationship),
                    index
                )
                settled()
            }
        }
    }

    // MARK: To-one

    /// Entries of a column's index, by target, beside the rows of the targets.
    private func checkColumn(
        _ end: RelationshipEnd,
        _ index: TreeID
    ) throws(InspectionError) {
        guard let target = schema.entity(end.relationship.target), isSound(index),
            isSound(target.tree)
        else { return skipped(end) }
        let inverse = end.relationship.inverse.flatMap { target.relationship(named: $0) }
        // The rule of the other side says what becomes of a reference to a deleted object; without
        // another side, that of the relationship itself.
        let rule = (inverse ?? end.relationship).deleteRule
        var answers: ColumnID?
        if case .column(let back, _)? = inverse?.storage { answers = back }
        var rows = RowsBeside(storage, target.tree)
        var last: (target: ObjectID, owner: ObjectID)?
        try forEachEntry(index) { cursor throws(InspectionError) in
            let owner = try engine { () throws(EngineError) in try cursor.trailingObjectID() }
            var reader = ByteReader(cursor.key, place: "index key")
            guard let part = try? KeyCoding.decode(&reader) else {
                return try found(end, .noReference(owner: owner))
            }
            if part == .value(.null) { return }
            guard case .value(.reference(let wanted)) = part else {
                return try found(end, .noReference(owner: owner))
            }
            guard try rows.move(to: wanted) else {
                let isAllowed = rule == .noAction
                let fault = RelationshipFault.dangling(
                    owner: owner,
                    target: wanted,
                    isAllowed: isAllowed
                )
                return try found(end, fault)
            }
            guard let answers else { return }
            if let last, last.target == wanted {
                let fault = RelationshipFault.shared(
                    owner: owner,
                    other: last.owner,
                    target: wanted
                )
                try found(end, fault)
            }
            last = (wanted, owner)
            // Rows that cannot be read were told.
            guard case .some(let answer) = try rows.reference(answers), answer != owner else {
                return
            }
            let fault = RelationshipFault.unanswered(
                owner: owner,
                target: wanted,
                answer: answer
            )
            try found(end, fault)
        }
    }

    // MARK: Link rows

    private func checkLinks(_ hidden: RecordEntity) throws(InspectionError) {
        let users = schema.relationships(linkedBy: hidden.id)
        guard hidden.relationships.count == 2, hidden.indexes.count == 2 else { return }
        // A pair that stands twice does so in both lists: where its entries are neighbours, that is
        // told with the least work.
        let orders = hidden.indexes.map { $0.terms.count == 3 }
        let telling = orders.firstIndex(of: false)
        for side in 0..<2 {
            let (end, isFar) = linkEnd(hidden, users, side)
            let index = hidden.indexes[side].tree
            guard let own = schema.entity(hidden.relationships[side].target), isSound(index),
                isSound(own.tree)
            else {
                skipped(end)
                continue
            }
            var rows = RowsBeside(storage, own.tree)
            var before: LinkKey?
            var isThere = false
            try forEachEntry(index) { cursor throws(InspectionError) in
                let key = try engine { () throws(EngineError) in
                    try LinkKey(cursor, isOrdered: orders[side])
                }
                guard let owner = key.owner, let other = key.other, !key.isBroken else {
                    // Told once, though it stands in both indexes; but each has its own positions.
                    if side == 0 || key.isBroken {
                        try found(end, .brokenLink(link: key.link))
                    }
                    before = nil
                    return
                }
                if before?.owner != owner {
                    before = nil
                    isThere = try rows.move(to: owner)
                }
                defer { before = key }
                if !isThere {
                    try found(end, .lostEnd(link: key.link, end: own, object: owner))
                    return
                }
                guard let before else { return }
                if side == telling, before.other == other {
                    let (owner, member) = isFar ? (other, owner) : (owner, other)
                    try found(end, .twice(link: key.link, owner: owner, member: member))
                }
                guard !isFar, let position = key.position, position == before.position else {
                    return
                }
                let (link, last) = (key.link, before.link)
                try found(end, .position(link: link, other: last, owner: owner, position: position))
            }
        }
        if telling == nil, isSound(hidden.indexes[0].tree) {
            try checkMembers(hidden.indexes[0].tree, linkEnd(hidden, users, 0).end)
        }
        for user in users {
            let end = RelationshipEnd(entity: user.entity, relationship: user.relationship)
            try checkList(end, hidden)
        }
    }

    /// The relationship that link rows are told by, seen from one side. Where that side has none
    /// it is the other side's, and `isFar`.
    private func linkEnd(
        _ hidden: RecordEntity,
        _ users: [(entity: RecordEntity, relationship: RecordRelationship)],
        _ side: Int
    ) -> (end: RelationshipEnd, isFar: Bool) {
        let own = users.first { user in
            guard case .link(let link) = user.relationship.storage else { return false }
            return Int(link.ownColumn.rawValue) == side
        }
        guard let user = own ?? users.first else {
            let relationship = hidden.relationships[side]
            return (RelationshipEnd(entity: hidden, relationship: relationship), false)
        }
        let end = RelationshipEnd(entity: user.entity, relationship: user.relationship)
        return (end, own == nil)
    }

    /// No object twice in one list, where the entries of a list are in the order of its positions
    /// on both sides. A list is read once for each `membersMax` members.
    private func checkMembers(
        _ index: TreeID,
        _ end: RelationshipEnd
    ) throws(InspectionError) {
        var members = ListMembers(max: Self.membersMax)
        var owner: ObjectID?
        func tell() throws(InspectionError) {
            guard let owner else { return }
            while true {
                for (member, link) in members.takeRepeated() {
                    let fault = RelationshipFault.twice(link: link, owner: owner, member: member)
                    try found(end, fault)
                }
                guard members.beginsNextPass() else { break }
                var key: [UInt8] = []
                KeyCoding.append(.reference(owner), to: &key)
                let prefix = key
                var cursor = storage.cursor(index)
                var more = try engine { () throws(EngineError) in
                    try cursor.seek(atOrAfter: prefix)
                }
                while more, cursor.keyHasPrefix(prefix) {
                    try step()
                    try add(LinkKey.engineKey(cursor, isOrdered: true))
                    more = try engine { () throws(EngineError) in try cursor.next() }
                }
            }
            members.clear()
        }
        func add(_ key: LinkKey) throws(InspectionError) {
            if let other = key.other { members.add(other, key.link) }
        }
        try forEachEntry(index) { cursor throws(InspectionError) in
            let key = try LinkKey.engineKey(cursor, isOrdered: true)
            if key.owner != owner {
                try tell()
                owner = key.owner
            }
            if owner != nil { try add(key) }
        }
        try tell()
    }

    /// A list in rows whose inverse is a column: each has exactly the entries of the other. Link
    /// rows by member beside the members' own rows.
    private func checkList(
        _ end: RelationshipEnd,
        _ hidden: RecordEntity
    ) throws(InspectionError) {
        guard case .link(let link) = end.relationship.storage,
            let far = schema.entity(end.relationship.target),
            let name = end.relationship.inverse, let back = far.relationship(named: name),
            case .column(let column, _) = back.storage
        else { return }
        guard isSound(link.otherIndex), isSound(far.tree), isSound(end.entity.tree) else {
            return skipped(end)
        }
        var links = storage.cursor(link.otherIndex)
        var hasLink = try engine { () throws(EngineError) in try links.first() }
        func next() throws(InspectionError) {
            try step()
            hasLink = try engine { () throws(EngineError) in try links.next() }
        }
        try forEachEntry(far.tree) { cursor throws(InspectionError) in
            let object = try engine { () throws(EngineError) in
                try SharedObjectIDs.object(at: cursor)
            }
            guard let member = object,
                case .some(let owner) = try RowsBeside.reference(column, cursor)
            else { return }
            var isListed = false
            while hasLink {
                let key = try LinkKey.engineKey(links, isOrdered: link.isOtherOrdered)
                // In front of all references stand broken rows; both they and those of members
                // that are not there were told.
                guard let at = key.owner, let listed = key.other else {
                    try next()
                    continue
                }
                if at > member { break }
                if at == member {
                    if listed == owner {
                        isListed = true
                    } else {
                        let fault = RelationshipFault.listed(
                            link: key.link,
                            owner: listed,
                            member: member,
                            column: owner
                        )
                        try found(end, fault)
                    }
                }
                try next()
            }
            guard let owner, !isListed else { return }
            // References to owners that are not there are told of the column.
            let isThere = try engine { () throws(EngineError) in
                try storage.contains(end.entity.tree, owner)
            }
            if isThere { try found(end, .unlisted(owner: owner, member: member)) }
        }
    }

    private func forEachEntry(
        _ tree: TreeID,
        _ body: (TreeCursor) throws(InspectionError) -> Void
    ) throws(InspectionError) {
        var cursor = storage.cursor(tree)
        var more = try engine { () throws(EngineError) in try cursor.first() }
        while more {
            try step()
            try body(cursor)
            more = try engine { () throws(EngineError) in try cursor.next() }
        }
    }
}
