// Relationships that become each other's inverse, and references that nothing keeps any more: rows
// brought into line with what the new schema promises.
//
// Invariants
// - Afterwards both sides of such a pair agree. What one side says and the other leaves open is
//   completed; where both say different things nothing is changed and the opening is refused.
// - Everything is read before the first row changes.

import VarveBase
import VarveEngine
import VarveFormat

/// The part of a change of schema that is about inverses.
struct NewInverses {
    /// Where a relationship keeps its links, which survives renaming.
    private enum Place: Hashable {
        case column(EntityID, ColumnID)
        case rows(EntityID, side: ColumnID)
    }

    private struct Former {
        let inverse: Place?
        let rule: DeleteRule
    }

    private struct Change {
        let entity: EntityID
        let object: ObjectID
        let column: ColumnID
        let target: ObjectID?
    }

    private struct NewLink {
        let link: RecordLink
        let owner: ObjectID
        let member: ObjectID
        let position: Int64?
    }

    private let schema: RecordSchema
    private let transaction: WriteTransaction
    private let reader: RecordReader<WriteTransaction>
    private var former: [Place: Former] = [:]
    private var changes: [Change] = []
    private var links: [NewLink] = []
    private var problems: [String] = []

    private init(
        from stored: RecordSchema,
        to schema: RecordSchema,
        _ transaction: WriteTransaction,
        _ counters: RecordCounters
    ) {
        self.schema = schema
        self.transaction = transaction
        reader = RecordReader(source: transaction, schema: schema, counters: counters)
        for entity in stored.entities {
            for relationship in entity.relationships {
                guard let place = Self.place(entity, relationship) else { continue }
                let inverse = Self.inverse(of: relationship, in: stored)
                former[place] = Former(
                    inverse: inverse.flatMap { Self.place($0.entity, $0.relationship) },
                    rule: (inverse?.relationship ?? relationship).deleteRule
                )
            }
        }
    }

    /// What a change of schema calls, under the new schema and with its indexes filled.
    static func fill(
        _ stored: SchemaRecord?,
        _ record: SchemaRecord,
        _ transaction: WriteTransaction,
        _ counters: RecordCounters
    ) throws {
        guard let stored, stored != record else { return }
        var inverses = NewInverses(
            from: try RecordSchema(record: stored),
            to: try RecordSchema(record: record),
            transaction,
            counters
        )
        try inverses.apply()
    }

    /// - Complexity: O(n log n) in the objects of relationships whose inverse or rule is another.
    private mutating func apply() throws {
        for entity in schema.entities {
            for relationship in entity.relationships {
                guard case .column(let column, let index) = relationship.storage else { continue }
                let before = former[.column(entity.id, column)]
                let inverse = Self.inverse(of: relationship, in: schema)
                let rule = (inverse?.relationship ?? relationship).deleteRule
                if before?.rule == .noAction, rule != .noAction {
                    try clearDangling(entity, relationship, column, index)
                }
                guard let inverse, let place = Self.place(inverse.entity, inverse.relationship),
                    before == nil || before?.inverse != place
                else { continue }
                switch inverse.relationship.storage {
                case .column(let back, _):
                    // Each of the two columns comes here, and completes the other one.
                    let label = "\(entity.name).\(relationship.name)"
                    try complete(label, entity, index, inverse.entity, back)
                case .link(let link):
                    try complete(entity, relationship, column, index, inverse, link)
                case .inverseColumn: break
                }
            }
        }
        if !problems.isEmpty { throw RecordError.schemaMismatch(problems: problems) }
        try write()
    }

    private static func place(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship
    ) -> Place? {
        switch relationship.storage {
        case .column(let column, _): .column(entity.id, column)
        case .link(let link): .rows(link.entity, side: link.ownColumn)
        case .inverseColumn: nil
        }
    }

    private static func inverse(
        of relationship: RecordRelationship,
        in schema: RecordSchema
    ) -> (entity: RecordEntity, relationship: RecordRelationship)? {
        guard let name = relationship.inverse, let entity = schema.entity(relationship.target),
            let inverse = entity.relationship(named: name)
        else { return nil }
        return (entity, inverse)
    }

    // MARK: What is there

    /// The objects with a reference in an indexed column, by target and then by owner.
    private func references(
        _ index: TreeID
    ) throws -> [(target: ObjectID, owner: ObjectID)] {
        var found: [(target: ObjectID, owner: ObjectID)] = []
        var cursor = try transaction.cursor(index)
        var more = try cursor.first()
        while more {
            var reader = ByteReader(cursor.key, place: "index key")
            if case .value(.reference(let target)) = try KeyCoding.decode(&reader) {
                found.append((target, try cursor.trailingObjectID()))
            }
            more = try cursor.next()
        }
        return found
    }

    /// What a column of an object leads to; nil when there is no such object.
    private func reference(
        _ entity: RecordEntity,
        _ object: ObjectID,
        _ column: ColumnID
    ) throws -> ObjectID?? {
        guard let row = try transaction.row(entity.tree, object) else { return nil }
        let view = try RowView(row.bytes)
        if case .reference(let target)? = try view.value(column) { return .some(target) }
        return .some(nil)
    }

    // MARK: What is to be done

    /// References to deleted objects read as nil under the rule `noAction`, and only under it.
    private mutating func clearDangling(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        _ column: ColumnID,
        _ index: TreeID
    ) throws {
        guard let target = schema.entity(relationship.target) else { return }
        for reference in try references(index)
        where try transaction.row(target.tree, reference.target) == nil {
            changes.append(
                Change(entity: entity.id, object: reference.owner, column: column, target: nil)
            )
        }
    }

    /// One-to-one: what the column behind `index` says of objects of `near`, said by `far` too.
    private mutating func complete(
        _ label: String,
        _ near: RecordEntity,
        _ index: TreeID,
        _ far: RecordEntity,
        _ back: ColumnID
    ) throws {
        var planned: ObjectID?
        var conflicts: [ObjectID] = []
        var count = 0
        for reference in try references(index) {
            guard case .some(let answer) = try self.reference(far, reference.target, back),
                answer != reference.owner
            else { continue }
            // By target: who leads to the same one is a neighbour.
            if answer == nil, planned != reference.target {
                planned = reference.target
                changes.append(
                    Change(
                        entity: far.id,
                        object: reference.target,
                        column: back,
                        target: reference.owner
                    )
                )
                continue
            }
            count += 1
            if conflicts.count < 3 { conflicts.append(reference.owner) }
        }
        tell(label, near, conflicts, count)
    }

    /// A list in link rows and the column of its inverse, each completed by the other.
    private mutating func complete(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        _ column: ColumnID,
        _ index: TreeID,
        _ list: (entity: RecordEntity, relationship: RecordRelationship),
        _ link: RecordLink
    ) throws {
        var conflicts: [ObjectID] = []
        var count = 0
        var last: ObjectID?
        // Link rows by member.
        for reference in try references(link.otherIndex) {
            let (member, row) = (reference.target, reference.owner)
            guard let hidden = schema.entity(link.entity),
                case .some(.some(let owner)) = try self.reference(hidden, row, link.ownColumn),
                case .some(let said) = try self.reference(entity, member, column),
                said != owner
            else { continue }
            if said == nil, last != member {
                changes.append(
                    Change(entity: entity.id, object: member, column: column, target: owner)
                )
                last = member
                continue
            }
            count += 1
            if conflicts.count < 3 { conflicts.append(member) }
        }
        tell("\(entity.name).\(relationship.name)", entity, conflicts, count)
        // Columns by owner.
        var owner: ObjectID?
        var members: Set<ObjectID> = []
        var position: Int64?
        var isThere = false
        for reference in try references(index) {
            if reference.target != owner {
                owner = reference.target
                isThere = try transaction.row(list.entity.tree, reference.target) != nil
                let entries = try reader.links(link, of: reference.target)
                members = Set(entries.map(\.other))
                position = entries.last?.position
            }
            guard isThere, !members.contains(reference.owner) else { continue }
            if link.isOrdered { position = LinkPositions.behind(position) }
            links.append(
                NewLink(
                    link: link,
                    owner: reference.target,
                    member: reference.owner,
                    position: link.isOrdered ? position : nil
                )
            )
        }
    }

    private mutating func tell(
        _ label: String,
        _ entity: RecordEntity,
        _ conflicts: [ObjectID],
        _ count: Int
    ) {
        guard count > 0 else { return }
        let objects = conflicts.map { "\(entity.name) \($0.rawValue)" }.joined(separator: ", ")
        problems.append(
            "\(label) has an inverse now, but the two sides disagree for \(count) objects, as"
                + " \(objects): open with the schema of before, make them agree, and declare the"
                + " inverse then"
        )
    }

    private func write() throws {
        for change in changes {
            let value = change.target.map { StoredValue.reference($0) } ?? .null
            try transaction.update(
                change.entity,
                change.object,
                patch: RowPatch.encode([(change.column, value)])
            )
        }
        for new in links {
            var row = [StoredValue?](repeating: .null, count: 4)
            row[Int(new.link.ownColumn.rawValue)] = .reference(new.owner)
            row[Int(new.link.otherColumn.rawValue)] = .reference(new.member)
            if let position = new.position {
                row[Int(new.link.positionColumn.rawValue)] = .int(position)
            }
            try transaction.insert(
                new.link.entity,
                transaction.newObjectID(),
                row: RowCoding.encode(row)
            )
        }
    }
}
