// Fields that an optional composite lacks although it has a value.
//
// Invariants
// - A row that is written has all fields of an optional composite that can have no null, or none.
//   So requests find what a getter shows: it reads a missing field as its default.
// - They are missing where one context set the composite to nil and another one a field of it, and
//   in rows that are older than a field.

import VarveBase
import VarveRecords

/// What a column is of an optional composite.
struct CompositeMember: Sendable {
    /// The attribute's name.
    let owner: String
    /// What stands there as soon as the composite has a value; nil: it may be null.
    let fill: (@Sendable () -> StoredValue)?

    init(of owner: String, fill: (@Sendable () -> StoredValue)?) {
        (self.owner, self.fill) = (owner, fill)
    }
}

/// The columns of one optional composite.
struct CompositeSlots: Sendable {
    private var slots: [Int] = []
    private var fills: [(slot: Int, make: @Sendable () -> StoredValue)] = []

    /// Those of an entity, in the order of declaration.
    static func all(_ properties: [PropertyModel]) -> [CompositeSlots] {
        var names: [String] = []
        var all: [String: CompositeSlots] = [:]
        for (slot, property) in properties.enumerated() {
            guard let member = property.member else { continue }
            if all[member.owner] == nil { names.append(member.owner) }
            all[member.owner, default: CompositeSlots()].slots.append(slot)
            guard let fill = member.fill else { continue }
            all[member.owner]?.fills.append((slot, fill))
        }
        return names.compactMap { all[$0] }
    }

    /// The fields that are missing.
    /// - Parameter stored: what stands in a slot.
    func missing(
        _ stored: (Int) throws -> StoredValue?
    ) rethrows -> [(slot: Int, value: StoredValue)] {
        var hasValue = false
        var nulls: Set<Int> = []
        for slot in slots {
            if try stored(slot) ?? .null == .null { nulls.insert(slot) } else { hasValue = true }
        }
        guard hasValue, !nulls.isEmpty else { return [] }
        return fills.filter { nulls.contains($0.slot) }.map { ($0.slot, $0.make()) }
    }

    func concerns(_ slot: Int) -> Bool { slots.contains(slot) }
}

extension EntityModel {
    /// Whether a field of an optional composite is among these values.
    func concernsComposites(_ values: [ColumnValue]) -> Bool {
        !composites.isEmpty
            && values.contains { value in
                guard let slot = slotsByColumn[value.column] else { return false }
                return composites.contains { $0.concerns(slot) }
            }
    }

    /// What is to be written of a row, with the fields that would be missing.
    /// - Parameters:
    ///   - values: what changes in the row.
    ///   - row: the row as it is; nil for a new one.
    func withFields(
        _ values: [ColumnValue],
        over row: CachedRow?,
        _ transaction: RecordTransaction
    ) throws -> [ColumnValue] {
        if composites.isEmpty || values.isEmpty { return values }
        var given: [Int: StoredValue] = [:]
        for value in values {
            if let slot = slotsByColumn[value.column] { given[slot] = value.value }
        }
        var all = values
        for composite in composites where given.keys.contains(where: composite.concerns) {
            let missing = try composite.missing { slot in
                if let value = given[slot] { return value }
                return try row.map { try transaction.value(of: $0, columns[slot]) }
            }
            for (slot, value) in missing {
                all.removeAll { $0.column == columns[slot] }
                all.append(ColumnValue(columns[slot], value))
            }
        }
        return all
    }
}

extension BatchRow {
    /// Sets fields that would be missing.
    ///
    /// - Throws: `RecordError` where an attribute of the row cannot be read.
    mutating func fillFields() throws {
        for composite in model.composites {
            for (slot, value) in try missingFields(composite) {
                record.set(column(slot), value)
            }
        }
    }

    private borrowing func missingFields(
        _ composite: CompositeSlots
    ) throws -> [(slot: Int, value: StoredValue)] {
        var values: [Int: StoredValue] = [:]
        for slot in model.properties.indices where composite.concerns(slot) {
            values[slot] = try readable(slot)
        }
        return composite.missing { values[$0] }
    }
}
