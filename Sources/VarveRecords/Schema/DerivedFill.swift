// Derived attributes in a change of schema: rows that are older than the attribute get its value.
//
// Invariants
// - A value is written only where it differs from what the row has.
// - It is made after all that the change does to the row's other attributes, and before constraints
//   are checked.

public import VarveBase
import VarveEngine
import VarveFormat

/// The derived attributes of an entity, and how they are made.
public struct DerivedAttributes: Sendable {
    /// Their names.
    public let names: Set<String>
    /// Makes their values of those of the row's attributes, by name.
    public let make: @Sendable ([String: StoredValue]) -> [String: StoredValue]

    /// Joins names and rule.
    public init(
        names: Set<String>,
        make: @escaping @Sendable ([String: StoredValue]) -> [String: StoredValue]
    ) {
        self.names = names
        self.make = make
    }
}

extension SchemaChange {
    /// Makes derived values.
    ///
    /// - Parameter all: of every entity, as code may have changed what they are made of; else of
    ///   those that get a new derived attribute, or values where they had none.
    /// - Returns: the columns that were written.
    /// - Complexity: O(n log n), n the rows of these entities.
    func derive(
        _ transaction: WriteTransaction,
        _ counters: RecordCounters,
        all: Bool
    ) throws -> [EntityID: Set<ColumnID>] {
        var written: [EntityID: Set<ColumnID>] = [:]
        var new: [EntityID: Set<String>] = [:]
        for (entity, attribute) in addedAttributes {
            new[entity.id, default: []].insert(attribute.name)
        }
        let schema = try RecordSchema(record: resolution.record, description: declared)
        let reader = RecordReader(source: transaction, schema: schema, counters: counters)
        for stored in resolution.record.entities {
            guard let rule = derived(stored.name), let entity = schema.entity(stored.id),
                all || resolution.filledColumns[stored.id] != nil
                    || !rule.names.isDisjoint(with: new[stored.id] ?? [])
            else { continue }
            let objects = try transaction.objects(stored.tree)
            try control.begin("\(stored.name): derived values", rows: objects.count)
            for (number, object) in objects.enumerated() {
                try control.count(number)
                guard let row = try reader.row(stored.id, object) else { continue }
                var values: [String: StoredValue] = [:]
                for attribute in entity.attributes {
                    values[attribute.name] = try row.value(attribute.column)
                }
                var patch: [(ColumnID, StoredValue?)] = []
                for (name, value) in rule.make(values).sorted(by: { $0.key < $1.key }) {
                    guard let attribute = entity.attribute(named: name),
                        values[name]?.isSame(as: value) != true
                    else { continue }
                    patch.append((attribute.column, value))
                    written[stored.id, default: []].insert(attribute.column)
                }
                if patch.isEmpty { continue }
                try transaction.update(stored.id, object, patch: RowPatch.encode(patch))
            }
        }
        return written
    }
}
