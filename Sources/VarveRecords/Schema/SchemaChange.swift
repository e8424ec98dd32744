// Carrying out a resolution: one transaction that replaces the schema and brings rows and indexes
// into line.
//
// Invariants
// - Nothing that holds data goes unless it was named (SchemaRemovals.swift).
// - Rows of dropped entities and large values of dropped columns go under the old schema, which
//   knows their trees; everything else happens under the new one.
// - A new column whose default differs from call to call gets a value of its own in every row; one
//   whose default is always the same is written in no row.
// - Any error leaves the store at its old commit.

import VarveBase
import VarveEngine
import VarveFormat

/// The work of one change of schema.
struct SchemaChange {
    let resolution: SchemaResolution
    let stored: SchemaRecord?
    let declared: SchemaDescription
    let removing: Set<String>
    let varyingDefault: @Sendable (String, String) -> (() -> StoredValue)?
    let derived: @Sendable (String) -> DerivedAttributes?
    let control: MigrationControl

    init(
        _ resolution: SchemaResolution,
        _ stored: SchemaRecord?,
        _ declared: SchemaDescription,
        _ options: RecordOptions,
        removing: Set<String> = [],
        varyingDefault: (@Sendable (String, String) -> (() -> StoredValue)?)? = nil,
        derived: (@Sendable (String) -> DerivedAttributes?)? = nil,
        control: MigrationControl = MigrationControl()
    ) {
        self.resolution = resolution
        self.stored = stored
        self.declared = declared
        self.removing = options.removing.union(removing)
        self.varyingDefault = varyingDefault ?? options.varyingDefault
        self.derived = derived ?? options.derived
        self.control = control
    }

    func apply(
        to transaction: WriteTransaction,
        _ counters: RecordCounters
    ) throws {
        try checkRemovals(transaction)
        try checkEmpty(transaction)
        for entity in resolution.droppedEntities { try deleteRows(of: entity, transaction) }
        for (entity, columns) in resolution.clearedColumns.sorted(by: { $0.key < $1.key }) {
            try clear(columns, of: entity, transaction)
        }
        try transaction.replaceSchema(
            resolution.record.encoded(),
            version: resolution.record.revision
        )
        try dropTrees(transaction)
        try buildIndexes(resolution.builtIndexes, transaction)
        // After the indexes, which it reads.
        try NewInverses.fill(stored, resolution.record, transaction, counters)
        for (entity, attributes) in resolution.filledColumns.sorted(by: { $0.key < $1.key }) {
            for attribute in attributes {
                let missing = try fill(attribute, of: entity, transaction)
                if missing.count == 0 { continue }
                throw RecordError.schemaMismatch(problems: [
                    "\(missing.label) must have a value now, but \(missing.count)"
                        + " objects have none: give it a default"
                ])
            }
        }
        for (entity, attribute) in addedAttributes {
            try give(attribute, to: entity, transaction)
        }
        let derived = try derive(transaction, counters, all: false)
        let unique = uniqueIndexes(resolution.uniqueIndexes, changed: derived)
        try checkUnique(unique, transaction, counters)
    }

    /// Unique indexes that the change may have broken: those of `indexes`, and those of columns
    /// that got values of their own.
    func uniqueIndexes(
        _ indexes: [EntityID: [TreeID]],
        changed: [EntityID: Set<ColumnID>]
    ) -> [EntityID: [TreeID]] {
        var indexes = indexes
        for entity in resolution.record.entities {
            let filled = resolution.filledColumns[entity.id]?.map(\.column) ?? []
            let columns = (changed[entity.id] ?? []).union(filled)
            let known = indexes[entity.id] ?? []
            let more = entity.indexes.filter { index in
                index.isUnique && !known.contains(index.tree)
                    && index.terms.contains { columns.contains($0.column) }
            }
            if !more.isEmpty { indexes[entity.id] = known + more.map(\.tree) }
        }
        return indexes
    }

    func dropTrees(_ transaction: WriteTransaction) throws {
        for tree in resolution.droppedTrees {
            try transaction.dropTree(tree)
            try transaction.dropTree(TreeID(tree.rawValue + 1))
        }
    }

    func buildIndexes(
        _ indexes: [EntityID: [TreeID]],
        _ transaction: WriteTransaction
    ) throws {
        for (entity, trees) in indexes.sorted(by: { $0.key < $1.key }) {
            guard let stored = resolution.record.entities.first(where: { $0.id == entity }) else {
                continue
            }
            let both = trees.flatMap { [$0, TreeID($0.rawValue + 1)] }
            let total = Int(clamping: try transaction.count(stored.tree))
            try control.begin("\(stored.name): build indexes", rows: total)
            var failure: (any Error)?
            do {
                try transaction.rebuildIndexes(both, of: entity) { count in
                    do { try control.done(count) } catch { failure = error }
                    return failure == nil
                }
            } catch {
                throw failure ?? error
            }
        }
    }

    func checkRemovals(_ transaction: WriteTransaction) throws {
        guard let stored else { return }
        let removals = SchemaRemovals<WriteTransaction>(
            stored,
            resolution.record,
            named: removing
        )
        let problems = try removals.problems(transaction)
        if problems.isEmpty { return }
        let differences = resolution.steps.map { "the whole change would be: \($0)" }
        throw RecordError.schemaMismatch(problems: problems + differences)
    }

    /// Attributes that entities with a past did not have.
    var addedAttributes: [(SchemaRecord.Entity, SchemaRecord.Attribute)] {
        resolution.record.entities.flatMap { entity in
            let before = stored?.entities.first { $0.id == entity.id }
            return before.map { before in
                entity.attributes.filter { attribute in
                    !before.attributes.contains { $0.column == attribute.column }
                }.map { (entity, $0) }
            } ?? []
        }
    }

    /// A value of its own for every row, where the default differs from call to call.
    func give(
        _ attribute: SchemaRecord.Attribute,
        to entity: SchemaRecord.Entity,
        _ transaction: WriteTransaction,
        isStaged: Bool = false
    ) throws {
        let objects = try transaction.objects(entity.tree)
        guard !objects.isEmpty, let make = varyingDefault(entity.name, attribute.name)
        else { return }
        try control.begin("\(entity.name): values of \(attribute.name)", rows: objects.count)
        for (number, object) in objects.enumerated() {
            try control.count(number)
            if isStaged, try !isAbsent(attribute.column, entity, object, transaction) { continue }
            try transaction.update(
                entity.id,
                object,
                patch: RowPatch.encode([(attribute.column, make())])
            )
        }
    }

    /// A stage's code may have given a value already.
    private func isAbsent(
        _ column: ColumnID,
        _ entity: SchemaRecord.Entity,
        _ object: ObjectID,
        _ transaction: WriteTransaction
    ) throws -> Bool {
        guard let row = try transaction.row(entity.tree, object) else { return false }
        return try RowView(row.bytes).slot(column).isAbsent
    }

    func checkEmpty(_ transaction: WriteTransaction) throws(RecordError) {
        var problems: [String] = []
        for (id, names) in resolution.emptyOnly.sorted(by: { $0.key < $1.key }) {
            guard let entity = stored?.entities.first(where: { $0.id == id }) else { continue }
            let count = try RecordError.ofEngine { () throws(EngineError) in
                try transaction.count(entity.tree)
            }
            if count == 0 { continue }
            for name in names {
                problems.append(
                    "\(entity.name).\(name) is new and must have a value: give it a default"
                        + " or make it optional, because the store has"
                        + " \(count) objects"
                )
            }
        }
        if !problems.isEmpty { throw .schemaMismatch(problems: problems) }
    }

    /// Row by row where rows may own blobs or large values, else the whole tree at once.
    func deleteRows(
        of entity: SchemaRecord.Entity,
        _ transaction: WriteTransaction
    ) throws(EngineError) {
        let owning: Set<UInt8> = [
            AttributeType.text.rawValue, AttributeType.data.rawValue, AttributeType.url.rawValue,
            AttributeType.blob.rawValue,
        ]
        if entity.attributes.contains(where: { owning.contains($0.typeCode) }) {
            for id in try transaction.objects(entity.tree) {
                try transaction.delete(entity.id, id)
            }
        }
        try transaction.dropTree(entity.tree)
        for index in entity.indexes {
            try transaction.dropTree(index.tree)
            try transaction.dropTree(TreeID(index.tree.rawValue + 1))
        }
    }

    /// Takes large values and blobs out of columns that are dropped; small values stay, unseen,
    /// until their row is written again.
    func clear(
        _ columns: [ColumnID],
        of id: EntityID,
        _ transaction: WriteTransaction
    ) throws {
        guard let entity = stored?.entities.first(where: { $0.id == id }) else { return }
        for object in try transaction.objects(entity.tree) {
            guard let row = try transaction.row(entity.tree, object) else { continue }
            let view = try RowView(row.bytes)
            let owned = columns.filter { column in
                let slot = view.slot(column)
                return slot.isOutside || slot.tag == RowTag.blob
            }
            if owned.isEmpty { continue }
            try transaction.update(
                id,
                object,
                patch: RowPatch.encode(owned.map { ($0, nil as StoredValue?) })
            )
        }
    }

    /// Gives a value to rows that have none in a column that must have one now.
    /// - Returns: the attribute, and how many rows have none and get none.
    func fill(
        _ attribute: SchemaRecord.Attribute,
        of id: EntityID,
        _ transaction: WriteTransaction
    ) throws -> (label: String, count: Int) {
        guard let entity = resolution.record.entities.first(where: { $0.id == id }),
            let kept = entity.attributes.first(where: { $0.column == attribute.column })
        else { return ("", 0) }
        var missing = 0
        let make = varyingDefault(entity.name, attribute.name)
        let objects = try transaction.objects(entity.tree)
        try control.begin("\(entity.name): values of \(attribute.name)", rows: objects.count)
        for (number, object) in objects.enumerated() {
            try control.count(number)
            guard let row = try transaction.row(entity.tree, object) else { continue }
            let slot = try RowView(row.bytes).slot(attribute.column)
            guard slot.isNull || (slot.isAbsent && kept.defaultValue == .null) else { continue }
            if attribute.defaultValue == .null {
                missing += 1
                continue
            }
            try transaction.update(
                id,
                object,
                patch: RowPatch.encode([(attribute.column, make?() ?? attribute.defaultValue)])
            )
        }
        return ("\(entity.name).\(attribute.name)", missing)
    }

    /// - Complexity: O(entries of the indexes).
    func checkUnique(
        _ indexes: [EntityID: [TreeID]],
        _ transaction: WriteTransaction,
        _ counters: RecordCounters
    ) throws(RecordError) {
        if indexes.isEmpty { return }
        let schema = try RecordError.ofFormat { () throws(FormatError) in
            try RecordSchema(record: resolution.record, description: declared)
        }
        let reader = RecordReader(source: transaction, schema: schema, counters: counters)
        var violations: [UniqueViolation] = []
        for (id, trees) in indexes.sorted(by: { $0.key < $1.key }) {
            let entity = try reader.entity(id)
            for index in entity.indexes where trees.contains(index.tree) {
                violations += try reader.violations(
                    entity,
                    try reader.sharedEntries(index),
                    only: [index.tree],
                    upTo: Self.violationsMax - violations.count
                )
            }
        }
        if !violations.isEmpty { throw .notUnique(violations) }
    }

    /// Groups of objects with the same values that are listed; there may be as many as objects.
    static let violationsMax = 100
}
