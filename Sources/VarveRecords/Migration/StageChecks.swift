// What must hold when the code of a stage has run: deletions by their rules, required values,
// references that lead somewhere.
//
// Invariants
// - Lists of problems are bounded: each kind names the first objects, and says how many there are.
// - Indexes are walked side by side with rows: no row is searched for.

import VarveBase
import VarveEngine
import VarveFormat

/// Checks of the state that a stage has made, under its schema.
struct StageChecks {
    private let schema: RecordSchema
    private let transaction: WriteTransaction
    private let records: RecordTransaction
    private let control: MigrationControl
    private let planted: Set<PlantedStageBug>

    /// Objects that a problem names.
    private static let namedMax = 20

    init(
        schema: RecordSchema,
        _ transaction: WriteTransaction,
        _ store: RecordStore,
        _ control: MigrationControl
    ) {
        self.schema = schema
        self.transaction = transaction
        self.control = control
        planted = store.options.plantedStageBugs
        records = RecordTransaction(transaction, schema, store, tracksUniqueness: false)
    }

    /// Objects that share a problem.
    private struct Found {
        var objects: [ObjectID] = []
        var count = 0

        mutating func add(_ object: ObjectID) {
            count += 1
            if objects.count < namedMax { objects.append(object) }
        }

        func text(_ entity: RecordEntity) -> String {
            let names = objects.map { "\(entity.name) \($0.rawValue)" }.joined(separator: ", ")
            return count > objects.count ? "\(names) and \(count - objects.count) more" : names
        }
    }

    // MARK: Values

    /// Attributes that must have a value and have none.
    /// - Complexity: O(rows of the entities).
    func missingValues(
        _ required: [EntityID: [ColumnID]]
    ) throws -> [String] {
        var problems: [String] = []
        for (id, columns) in required.sorted(by: { $0.key < $1.key }) {
            guard let entity = schema.entity(id) else { continue }
            var found = [Found](repeating: Found(), count: columns.count)
            try control.begin("\(entity.name): check values", rows: try count(entity))
            try forEachRow(entity) { object, row in
                for (index, column) in columns.enumerated() {
                    let slot = row.slot(column)
                    if slot.isNull || slot.isAbsent { found[index].add(object) }
                }
            }
            for (column, found) in zip(columns, found) where found.count > 0 {
                let name = entity.column(column)?.name ?? ""
                problems.append(
                    "\(entity.name).\(name) must have a value, and \(found.text(entity)) has none:"
                        + " set it in the stage, give it a default, or make it optional"
                )
            }
        }
        return problems
    }

    private func count(_ entity: RecordEntity) throws -> Int {
        Int(clamping: try transaction.count(entity.tree))
    }

    private func forEachRow(
        _ entity: RecordEntity,
        _ body: (ObjectID, RowView) throws -> Void
    ) throws {
        var cursor = try transaction.cursor(entity.tree)
        var more = try cursor.first()
        var number = 0
        while more {
            try body(try cursor.trailingObjectID(), try RowView(cursor.row().bytes))
            number += 1
            try control.count(number)
            more = try cursor.next()
        }
    }

    // MARK: References

    /// References that the code has set and that lead to nobody.
    /// - Complexity: O(references and rows of the relationships).
    func strayReferences(_ related: Set<StageChange.Related>) throws -> [String] {
        var problems: [String] = []
        for relation in related.sorted(by: { ($0.entity, $0.name) < ($1.entity, $1.name) }) {
            guard let entity = schema.entity(relation.entity),
                let relationship = entity.relationship(named: relation.name),
                let target = schema.entity(relationship.target)
            else { continue }
            let tree: TreeID
            switch relationship.storage {
            case .column(_, let index): tree = index
            case .link(let link): tree = link.otherIndex
            case .inverseColumn: continue
            }
            let found = try strays(tree, target)
            if found.count == 0 { continue }
            let isLink = if case .link = relationship.storage { true } else { false }
            let owners = isLink ? "\(found.count) of its links" : found.text(entity)
            problems.append(
                "\(entity.name).\(relationship.name) leads to a \(target.name) that is not there:"
                    + " \(owners)"
            )
        }
        return problems
    }

    /// Owners of entries whose reference is no row of `target`.
    private func strays(_ index: TreeID, _ target: RecordEntity) throws -> Found {
        var found = Found()
        var entries = try transaction.cursor(index)
        var rows = try transaction.cursor(target.tree)
        var hasRow = try rows.first()
        var more = try entries.first()
        var number = 0
        while more {
            var reader = ByteReader(entries.key, place: "index key")
            if case .value(.reference(let object)) = try KeyCoding.decode(&reader) {
                while hasRow, try rows.trailingObjectID() < object { hasRow = try rows.next() }
                let isThere = hasRow ? try rows.trailingObjectID() == object : false
                if !isThere { found.add(try entries.trailingObjectID()) }
            }
            number += 1
            try control.count(number)
            more = try entries.next()
        }
        return found
    }

    /// Unique indexes that the stage may have broken.
    func uniqueIndexes(
        _ touched: Set<EntityID>,
        _ resolution: SchemaResolution,
        _ withChanged: ([EntityID: [TreeID]]) -> [EntityID: [TreeID]]
    ) -> [EntityID: [TreeID]] {
        if planted.contains(.checksNoConstraint) { return [:] }
        var indexes = withChanged(resolution.uniqueIndexes)
        for entity in schema.entities where touched.contains(entity.id) {
            let unique = entity.indexes.filter { $0.uniqueness != nil }.map(\.tree)
            if !unique.isEmpty { indexes[entity.id] = unique }
        }
        return indexes
    }

    // MARK: Deletions

    /// Takes objects out, with what their cascades reach; a `deny` that stands fails.
    func delete(_ doomed: [EntityID: ObjectIDCollector]) throws {
        if doomed.isEmpty { return }
        var deletion = StageDeletion(schema, records)
        for (entity, var objects) in doomed.sorted(by: { $0.key < $1.key }) {
            try deletion.add(entity, objects.finish())
        }
        let denials = try deletion.denials(upTo: Self.namedMax)
        if !denials.isEmpty {
            throw RecordError.stageFailed(version: schema.version, problems: denials)
        }
        try control.begin("deletions", rows: deletion.count)
        try deletion.run()
    }
}

/// Objects that a stage deletes, and what that means for others.
private struct StageDeletion {
    private let schema: RecordSchema
    private let records: RecordTransaction
    private var order: [(entity: RecordEntity, id: ObjectID)] = []
    private var doomed: Set<ObjectID> = []

    var count: Int { order.count }

    init(_ schema: RecordSchema, _ records: RecordTransaction) {
        self.schema = schema
        self.records = records
    }

    /// Takes objects in that exist, and what their cascades reach.
    mutating func add(_ id: EntityID, _ objects: ObjectIDSet) throws {
        guard let entity = schema.entity(id) else { return }
        var next = order.count
        for object in objects where !doomed.contains(object) {
            guard try records.version(id, object) != nil else { continue }
            doomed.insert(object)
            order.append((entity, object))
        }
        while next < order.count {
            let (entity, object) = order[next]
            next += 1
            for relationship in entity.relationships where relationship.deleteRule == .cascade {
                guard let target = schema.entity(relationship.target) else { continue }
                for member in try targets(entity, relationship, object)
                where doomed.insert(member).inserted {
                    order.append((target, member))
                }
            }
        }
    }

    private func targets(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        _ id: ObjectID
    ) throws -> [ObjectID] {
        try records.relatedIDs(entity, relationship, of: id).filter {
            try records.version(relationship.target, $0) != nil
        }
    }

    func denials(upTo limit: Int) throws -> [String] {
        var denials: [String] = []
        for (entity, id) in order {
            for relationship in entity.relationships where relationship.deleteRule == .deny {
                guard let target = schema.entity(relationship.target),
                    let standing = try targets(entity, relationship, id).first(where: {
                        !doomed.contains($0)
                    })
                else { continue }
                if denials.count == limit { return denials + ["and more"] }
                denials.append(
                    "\(entity.name) \(id.rawValue) cannot be deleted: its \(relationship.name)"
                        + " leads to \(target.name) \(standing.rawValue), which stays"
                )
            }
        }
        return denials
    }

    /// Makes what stays forget what goes, and takes that out.
    func run() throws {
        for (entity, id) in order {
            for other in schema.entities {
                for relationship in other.relationships where relationship.target == entity.id {
                    guard case .column(let column, let index) = relationship.storage,
                        rule(relationship, in: entity) != .noAction
                    else { continue }
                    for owner in try records.reader.objects(leadingTo: id, index)
                    where !doomed.contains(owner) {
                        try records.update(other.id, owner, [ColumnValue(column, .null)])
                    }
                }
            }
        }
        for (entity, id) in order { try records.delete(entity.id, id) }
    }

    /// The rule by which an object of `entity` lets go of who leads to it.
    private func rule(
        _ relationship: RecordRelationship,
        in entity: RecordEntity
    ) -> DeleteRule {
        let inverse = relationship.inverse.flatMap { entity.relationship(named: $0) }
        return (inverse ?? relationship).deleteRule
    }
}
