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
    private let resolution: SchemaResolution
    private let stored: SchemaRecord?
    private let declared: SchemaDescription
    private let options: RecordOptions

    init(
        _ resolution: SchemaResolution,
        _ stored: SchemaRecord?,
        _ declared: SchemaDescription,
        _ options: RecordOptions
    ) {
        self.resolution = resolution
        self.stored = stored
        self.declared = declared
        self.options = options
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
        for tree in resolution.droppedTrees {
            try transaction.dropTree(tree)
            try transaction.dropTree(TreeID(tree.rawValue + 1))
        }
        for (entity, trees) in resolution.builtIndexes.sorted(by: { $0.key < $1.key }) {
            let both = trees.flatMap { [$0, TreeID($0.rawValue + 1)] }
            try transaction.rebuildIndexes(both, of: entity)
        }
        // After the indexes, which it reads.
        try NewInverses.fill(stored, resolution.record, transaction, counters)
        for (entity, attributes) in resolution.filledColumns.sorted(by: { $0.key < $1.key }) {
            for attribute in attributes { try fill(attribute, of: entity, transaction) }
        }
        for (entity, attribute) in addedAttributes {
            try give(attribute, to: entity, transaction)
        }
        try checkUnique(transaction, counters)
    }

    private func checkRemovals(_ transaction: WriteTransaction) throws {
        guard let stored else { return }
        let removals = SchemaRemovals(stored, resolution.record, named: options.removing)
        let problems = try removals.problems(transaction)
        if problems.isEmpty { return }
        let differences = resolution.steps.map { "the whole change would be: \($0)" }
        throw RecordError.schemaMismatch(problems: problems + differences)
    }

    /// Attributes that entities with a past did not have.
    private var addedAttributes: [(SchemaRecord.Entity, SchemaRecord.Attribute)] {
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
    private func give(
        _ attribute: SchemaRecord.Attribute,
        to entity: SchemaRecord.Entity,
        _ transaction: WriteTransaction
    ) throws {
        let objects = try transaction.objects(entity.tree)
        guard !objects.isEmpty, let make = options.varyingDefault(entity.name, attribute.name)
        else { return }
        for object in objects {
            try transaction.update(
                entity.id,
                object,
                patch: RowPatch.encode([(attribute.column, make())])
            )
        }
    }

    private func checkEmpty(_ transaction: WriteTransaction) throws(RecordError) {
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
    private func deleteRows(
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
    private func clear(
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
    private func fill(
        _ attribute: SchemaRecord.Attribute,
        of id: EntityID,
        _ transaction: WriteTransaction
    ) throws {
        guard let entity = resolution.record.entities.first(where: { $0.id == id }),
            let kept = entity.attributes.first(where: { $0.column == attribute.column })
        else { return }
        var missing = 0
        let make = options.varyingDefault(entity.name, attribute.name)
        for object in try transaction.objects(entity.tree) {
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
        if missing > 0 {
            throw RecordError.schemaMismatch(problems: [
                "\(entity.name).\(attribute.name) must have a value now, but \(missing)"
                    + " objects have none: give it a default"
            ])
        }
    }

    private func checkUnique(
        _ transaction: WriteTransaction,
        _ counters: RecordCounters
    ) throws(RecordError) {
        if resolution.uniqueIndexes.isEmpty { return }
        let schema = try RecordError.ofFormat { () throws(FormatError) in
            try RecordSchema(record: resolution.record, description: declared)
        }
        let reader = RecordReader(source: transaction, schema: schema, counters: counters)
        var violations: [UniqueViolation] = []
        for (id, trees) in resolution.uniqueIndexes.sorted(by: { $0.key < $1.key }) {
            let entity = try reader.entity(id)
            let ids = try reader.engine { () throws(EngineError) in
                try transaction.objects(entity.tree)
            }
            violations += try reader.violations(entity, ids, only: trees)
        }
        if !violations.isEmpty { throw .notUnique(violations) }
    }
}
