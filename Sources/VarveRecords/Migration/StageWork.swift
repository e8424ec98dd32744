// A stage with code, done inside one transaction: what comes, the code, what goes, what must hold.
//
// Invariants
// - The code sees the rows of before until it ends; nothing that holds data goes earlier.
// - Indexes of entities that have rows are built after the code, once.
// - Whatever does not hold in the end fails the transaction with all of it listed, and the commit
//   of before stands.

import VarveBase
import VarveEngine
import VarveFormat

extension SchemaChange {
    /// Does everything of a stage whose code is `body`.
    func apply(
        to transaction: WriteTransaction,
        _ store: RecordStore,
        _ body: (StageChange) throws -> Void
    ) throws {
        guard let stored else { preconditionFailure("a stage begins with a stored schema") }
        // 1. What would go unnamed is told before anything is done.
        let frozen = try transaction.frozen()
        try checkRemovals(frozen, stored)
        // 2. What comes is there for the code, beside what goes.
        let working = resolution.working(stored)
        try transaction.replaceSchema(working.encoded(), version: working.revision)
        try buildIndexes(hiddenIndexes, transaction)
        // 3. The code.
        let change = try stageChange(transaction, store, frozen, stored, working)
        change.goingEntities = Set(resolution.droppedEntities.map(\.id))
        try body(change)
        try change.finish()
        try checkConversions(change, frozen)
        // 4. What goes.
        try takeOut(transaction, swept: change.swept)
        try transaction.replaceSchema(
            resolution.record.encoded(),
            version: resolution.record.revision
        )
        try dropTrees(transaction)
        // 5. Indexes, inverses and defaults of what is there now.
        try buildIndexes(visibleIndexes, transaction)
        try NewInverses.fill(stored, resolution.record, transaction, store.counters)
        try fillRequired(transaction)
        for (entity, attribute) in addedAttributes {
            try give(attribute, to: entity, transaction, isStaged: true)
        }
        let derived = try derive(transaction, store.counters, all: true)
        // 6. What must hold.
        try check(change, transaction, store, stored, derived)
    }

    private func stageChange(
        _ transaction: WriteTransaction,
        _ store: RecordStore,
        _ frozen: FrozenState,
        _ stored: SchemaRecord,
        _ working: SchemaRecord
    ) throws -> StageChange {
        let new = try RecordSchema(record: working, description: declared)
        return StageChange(
            old: try RecordSchema(record: stored),
            new: new,
            RecordTransaction(transaction, new, store, tracksUniqueness: false),
            frozen,
            leaving: resolution.clearedColumns,
            control,
            makeDefault: newDefault
        )
    }

    /// What a new object gets for an attribute that its maker does not set. The stored schema keeps
    /// the default of before, as which old rows read what they leave out.
    private func newDefault(_ entity: String, _ attribute: String) -> (() -> StoredValue)? {
        if let make = varyingDefault(entity, attribute) { return make }
        let known = declared.entities.first { $0.name == entity }?.attributes
            .first { $0.name == attribute }
        guard let value = known?.defaultValue else { return nil }
        return { value }
    }

    private func check(
        _ change: StageChange,
        _ transaction: WriteTransaction,
        _ store: RecordStore,
        _ stored: SchemaRecord,
        _ derived: [EntityID: Set<ColumnID>]
    ) throws {
        let checks = StageChecks(
            schema: try RecordSchema(record: resolution.record, description: declared),
            transaction,
            store,
            control
        )
        try checks.delete(change.doomed)
        var problems = try checks.missingValues(resolution.required(stored))
        problems += try checks.strayReferences(change.related)
        if !problems.isEmpty {
            throw RecordError.stageFailed(version: declared.version, problems: problems)
        }
        try checkUnique(
            checks.uniqueIndexes(change.touched, resolution) {
                uniqueIndexes($0, changed: derived)
            },
            transaction,
            store.counters
        )
    }

    private func checkRemovals(_ frozen: FrozenState, _ stored: SchemaRecord) throws {
        let removals = SchemaRemovals<FrozenState>(
            stored,
            resolution.record,
            named: removing,
            converted: resolution.converted
        )
        let problems = try removals.problems(frozen)
        if problems.isEmpty { return }
        throw RecordError.stageFailed(version: declared.version, problems: problems)
    }

    /// Indexes of links are needed while links are made.
    private var hiddenIndexes: [EntityID: [TreeID]] {
        resolution.builtIndexes.filter { entity, _ in isHidden(entity) }
    }

    private var visibleIndexes: [EntityID: [TreeID]] {
        resolution.builtIndexes.filter { entity, _ in !isHidden(entity) }
    }

    private func isHidden(_ entity: EntityID) -> Bool {
        resolution.record.entities.contains { $0.id == entity && $0.isHiddenLink }
    }

    /// An attribute that changes its type is converted by the code, or named as one that goes.
    private func checkConversions(_ change: StageChange, _ frozen: FrozenState) throws {
        var problems: [String] = []
        for (id, attributes) in resolution.converted.sorted(by: { $0.key < $1.key }) {
            guard let entity = change.old.entity(id) else { continue }
            let marks = change.marks[id]?.columns ?? []
            for attribute in attributes {
                let column = Int(attribute.column.rawValue)
                if column < marks.count, marks[column] { continue }
                if removing.contains("\(entity.name).\(attribute.name)") { continue }
                if try !holdsValues(attribute.column, entity, frozen) { continue }
                problems.append(
                    "\(entity.name).\(attribute.name) has values in the store and another type in"
                        + " the schema, and the stage did not read it: convert it there, or name"
                        + " \"\(entity.name).\(attribute.name)\" in the stage's `removing`"
                )
            }
        }
        if problems.isEmpty { return }
        throw RecordError.stageFailed(version: declared.version, problems: problems)
    }

    private func holdsValues(
        _ column: ColumnID,
        _ entity: RecordEntity,
        _ frozen: FrozenState
    ) throws -> Bool {
        let row = StageRow(entity, frozen, ReadMarks(entity))
        var reader = StageRowReader(entity, frozen)
        var found = false
        while !found {
            let more = try reader.next(into: row) { row in
                if found { return }
                found = try row.value(column) != .null
            }
            if !more { break }
        }
        return found
    }

    private func takeOut(_ transaction: WriteTransaction, swept: Set<EntityID>) throws {
        for entity in resolution.droppedEntities { try deleteRows(of: entity, transaction) }
        for (entity, columns) in resolution.clearedColumns.sorted(by: { $0.key < $1.key })
        where !swept.contains(entity) {
            try clear(columns, of: entity, transaction)
        }
    }

    /// Rows without a value where one must be from now on get the default, if there is one.
    private func fillRequired(_ transaction: WriteTransaction) throws {
        for (entity, attributes) in resolution.filledColumns.sorted(by: { $0.key < $1.key }) {
            for attribute in attributes where attribute.defaultValue != .null {
                _ = try fill(attribute, of: entity, transaction)
            }
        }
    }
}

extension SchemaResolution {
    /// The schema while the code runs: the new one, without indexes that are to be built, and with
    /// the entities that go.
    func working(_ stored: SchemaRecord) -> SchemaRecord {
        var working = record
        for index in working.entities.indices where !working.entities[index].isHiddenLink {
            let built = Set(builtIndexes[working.entities[index].id] ?? [])
            working.entities[index].indexes.removeAll { built.contains($0.tree) }
        }
        for entity in droppedEntities {
            var going = entity
            going.relationships = []
            going.indexes = []
            // No name of the new schema leads to it.
            going.name = "\(entity.name) (\(entity.id.rawValue))"
            going.isHiddenLink = false
            working.entities.append(going)
        }
        working.entities.sort { $0.id < $1.id }
        return working
    }

    /// Attributes without a default that entities with a past must have from now on.
    func required(_ stored: SchemaRecord) -> [EntityID: [ColumnID]] {
        var required: [EntityID: [ColumnID]] = [:]
        for entity in record.entities {
            guard let before = stored.entities.first(where: { $0.id == entity.id }) else {
                continue
            }
            for attribute in entity.attributes
            where !attribute.isOptional && attribute.defaultValue == .null {
                let known = before.attributes.first { $0.column == attribute.column }
                if known?.isOptional == false { continue }
                required[entity.id, default: []].append(attribute.column)
            }
        }
        return required
    }
}
