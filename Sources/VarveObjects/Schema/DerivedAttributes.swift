// Derived attributes: stored values that are a function of the row's other attributes.
//
// Invariants
// - A derived value is made again whenever an attribute of its object is edited, and once more from
//   the values that are written: so a row never holds one that does not belong to the rest of it.
// - It is a function of the attributes of its own row. Relationships are out of its sight: what
//   others change would leave it stale.
// - It is an edit like any other for filters, lists and indexes, and none for undo, branches and
//   conflicts: those restore, merge and compare what it is made of.

import VarveBase
import VarveRecords

/// The attributes of one row, as the rule of a derived attribute sees them.
public struct DerivedSource<Root: ManagedObject> {
    private let stored: (Int) -> StoredValue?

    init(_ stored: @escaping (Int) -> StoredValue?) { self.stored = stored }

    /// An attribute's value; where it cannot be read or is missing, its type's zero value.
    public subscript<Value: StorableValue>(_ column: Column<Root, Value>) -> Value {
        guard let value = stored(column.definition.slot) else { return Value.zeroValue }
        if value == .null, !Value.isOptional { return Value.zeroValue }
        return Value(stored: value) ?? Value.zeroValue
    }

    /// A composite attribute's value.
    public subscript<Composite>(_ column: CompositeColumn<Root, Composite>) -> Composite {
        column.layout.value(stored).value as? Composite ?? Composite()
    }

    /// An optional composite attribute's value.
    public subscript<Composite>(_ column: OptionalCompositeColumn<Root, Composite>) -> Composite? {
        column.layout.value(stored).value as? Composite
    }
}

extension Column {
    /// A derived attribute: its value is made of the object's other attributes. `@Derived` writes
    /// it.
    /// - Parameters:
    ///   - name: the property's name, as it is stored.
    ///   - derived: makes the value. The same attributes must give the same value. It may be called
    ///     on any thread, and must not look at anything else.
    ///   - originalName: names that stores may still have it under, the latest first.
    public init(
        _ name: String,
        derived: @escaping @Sendable (DerivedSource<Root>) -> Value,
        originalName: String...
    ) {
        self.init(
            definition: PropertyDefinition(
                path: PropertyPath(name),
                originalNames: originalName,
                kind: .attribute(
                    .init(
                        type: Value.attributeType,
                        isOptional: Value.isOptional,
                        makeDefault: { Value.zeroValue.stored },
                        derive: { stored in derived(DerivedSource(stored)).stored }
                    )
                )
            )
        )
    }
}

extension EntityModel {
    /// The derived values of a row, by slot.
    /// - Parameter stored: what stands in a slot.
    func derivedValues(_ stored: (Int) -> StoredValue?) -> [(slot: Int, value: StoredValue)] {
        withoutActuallyEscaping(stored) { stored in
            derived.map { slot, derive in (slot, derive(stored)) }
        }
    }
}

extension EntityModel {
    /// What is to be written of a row, with the derived values that belong to it.
    /// - Parameters:
    ///   - values: what changes in the row.
    ///   - row: the row as it is; nil for a new one.
    func withDerived(
        _ values: [ColumnValue],
        over row: CachedRow?,
        _ transaction: RecordTransaction
    ) throws -> [ColumnValue] {
        if derived.isEmpty || values.isEmpty { return values }
        var stored: [Int: StoredValue] = [:]
        for value in values {
            if let slot = slotsByColumn[value.column] { stored[slot] = value.value }
        }
        // Before the rule runs: it would make a wrong value of what cannot be read.
        if let row {
            for slot in attributeSlots where stored[slot] == nil {
                stored[slot] = try transaction.value(of: row, columns[slot])
            }
        }
        let made = derivedValues { [stored] in stored[$0] }
        var all = values.filter { value in !made.contains { columns[$0.slot] == value.column } }
        all += made.map { ColumnValue(columns[$0.slot], $0.value) }
        return all
    }
}

extension BatchRow {
    /// Sets what is derived of the rest.
    ///
    /// - Throws: `RecordError` where an attribute of the row cannot be read.
    mutating func derive() throws {
        try fillFields()
        if model.derived.isEmpty { return }
        var values: [Int: StoredValue] = [:]
        for slot in model.attributeSlots { values[slot] = try readable(slot) }
        for (slot, value) in model.derivedValues({ values[$0] }) {
            record.set(column(slot), value)
        }
    }
}

extension EntityDeclaration {
    /// The derived attributes of an entity, as a migration makes them; nil: it has none.
    static func derived(
        _ entity: String,
        in types: [any ManagedObject.Type]
    ) -> DerivedAttributes? {
        guard let type = types.first(where: { $0.entityName == entity }) else { return nil }
        let properties = properties(of: type)
        let names = properties.map(\.name)
        var rules: [String: DeriveValue] = [:]
        for property in properties {
            guard case .attribute(let attribute) = property.kind, let derive = attribute.derive
            else { continue }
            rules[property.name] = derive
        }
        if rules.isEmpty { return nil }
        return DerivedAttributes(names: Set(rules.keys)) { [rules] values in
            rules.mapValues { derive in derive { slot in values[names[slot]] } }
        }
    }
}

extension ManagedObjectContext {
    /// The same for all edited objects, whose rows may be others now.
    func deriveEdited() {
        guard container.schema.hasDerived, !has(.derivedIgnoresMerges) else { return }
        for (_, object) in changed.sorted(by: { $0.key < $1.key })
        where !object.storage.model.derived.isEmpty && object.storage.edits != nil {
            do throws(StoreError) { try derive(object) } catch { note(error, object) }
        }
    }

    /// Makes the derived values of an object again, after an edit or where its row was replaced
    /// under its edits.
    func derive(_ object: any ManagedObject) throws(StoreError) {
        let model = object.storage.model
        if model.derived.isEmpty || object.storage.state.contains(.invalid) { return }
        let values = model.derivedValues { object.looseValue($0) }
        for (slot, value) in values {
            // What others saved as well is no edit any more: it would stay behind those that it is
            // derived of.
            if let edit = object.storage.edits?.values[slot], edit.isSame(as: value),
                try !isStored(value, of: object, slot: slot)
            {
                continue
            }
            try setEdit(value, of: object, slot: slot)
        }
    }
}
