// Questions about a column that make no objects: extremes, sums, averages, distinct values.
//
// Invariants
// - They see what a fetch of the same request would see: the context's commit with its unsaved
//   edits laid over, unless the request says otherwise.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// The lowest value of an attribute among a request's objects; nil when there is none. NaN is
    /// above every number.
    ///
    /// - Complexity: O(log n) with an index that begins with the attribute and answers the filter;
    ///   else the rows of the filter are read, without objects.
    /// - Throws: what `fetch` throws; `unsupportedPredicate` for an attribute of another entity.
    public func minimum<Entity, Value: OrderedValue>(
        _ request: FetchDescriptor<Entity>,
        _ column: (Entity.Columns) -> Column<Entity, Value>
    ) throws -> Value? {
        try extreme(request, column(Entity.columns).definition, highest: false)
    }

    /// The lowest value of an optional attribute; nil does not count.
    public func minimum<Entity, Value: OrderedValue>(
        _ request: FetchDescriptor<Entity>,
        _ column: (Entity.Columns) -> Column<Entity, Value?>
    ) throws -> Value? {
        try extreme(request, column(Entity.columns).definition, highest: false)
    }

    /// The highest value of an attribute among a request's objects; nil when there is none.
    public func maximum<Entity, Value: OrderedValue>(
        _ request: FetchDescriptor<Entity>,
        _ column: (Entity.Columns) -> Column<Entity, Value>
    ) throws -> Value? {
        try extreme(request, column(Entity.columns).definition, highest: true)
    }

    /// The highest value of an optional attribute; nil does not count.
    public func maximum<Entity, Value: OrderedValue>(
        _ request: FetchDescriptor<Entity>,
        _ column: (Entity.Columns) -> Column<Entity, Value?>
    ) throws -> Value? {
        try extreme(request, column(Entity.columns).definition, highest: true)
    }

    /// The sum of an integer attribute over a request's objects.
    /// - Throws: what `fetch` throws; `valueTooLarge` when the sum is no `Int`.
    /// - Complexity: O(objects), without making them.
    public func sum<Entity, Value: StorableInteger>(
        _ request: FetchDescriptor<Entity>,
        _ column: (Entity.Columns) -> Column<Entity, Value>
    ) throws -> Int {
        let definition = column(Entity.columns).definition
        let sum = try sum(request, definition)
        // Unsigned 64-bit integers are stored with their top bit turned.
        let shift = Int128(Value.zero.storedInteger) * Int128(sum.count)
        guard let result = Int(exactly: sum.integer - shift) else {
            throw StoreError(
                .valueTooLarge,
                "the sum of \(Entity.entityName).\(definition.name) is no Int",
                place: .init(entity: Entity.entityName, attribute: definition.name)
            )
        }
        return result
    }

    /// The sum of a floating-point attribute over a request's objects.
    /// - Complexity: O(objects), without making them.
    public func sum<Entity>(
        _ request: FetchDescriptor<Entity>,
        _ column: (Entity.Columns) -> Column<Entity, Double>
    ) throws -> Double {
        try sum(request, column(Entity.columns).definition).number
    }

    /// The mean of an integer attribute; nil when there is no object.
    /// - Complexity: O(objects), without making them.
    public func average<Entity, Value: StorableInteger>(
        _ request: FetchDescriptor<Entity>,
        _ column: (Entity.Columns) -> Column<Entity, Value>
    ) throws -> Double? {
        let sum = try sum(request, column(Entity.columns).definition)
        let shift = Int128(Value.zero.storedInteger) * Int128(sum.count)
        return sum.count == 0 ? nil : Double(sum.integer - shift) / Double(sum.count)
    }

    /// The mean of a floating-point attribute; nil when there is no object.
    /// - Complexity: O(objects), without making them.
    public func average<Entity>(
        _ request: FetchDescriptor<Entity>,
        _ column: (Entity.Columns) -> Column<Entity, Double>
    ) throws -> Double? {
        let sum = try sum(request, column(Entity.columns).definition)
        return sum.count == 0 ? nil : sum.number / Double(sum.count)
    }

    /// The different values of an attribute among a request's objects, ascending, nil first.
    /// - Complexity: O(values x log n) without filter and with an index that begins with the
    ///   attribute, else O(objects), without making them.
    public func selectDistinct<Entity, Value: FilterableValue>(
        _ request: FetchDescriptor<Entity>,
        _ column: (Entity.Columns) -> Column<Entity, Value>
    ) throws -> [Value] {
        let definition = column(Entity.columns).definition
        let (plan, snapshot, number) = try question(request, definition)
        let stored: [StoredValue]
        if touchesPending(plan) {
            var found = DistinctValues()
            for value in try pendingValues(plan, snapshot, definition) { found.add(value) }
            stored = found.sorted()
        } else {
            stored = try container.translating { () throws(RecordError) in
                try snapshot.distinct(plan.query, number)
            }
        }
        return try stored.map { value in try typed(value, definition) }
    }

    // MARK: Steps

    private func extreme<Entity, Value: OrderedValue>(
        _ request: FetchDescriptor<Entity>,
        _ definition: PropertyDefinition,
        highest: Bool
    ) throws -> Value? {
        let (plan, snapshot, number) = try question(request, definition)
        var best = StoredValue.null
        if touchesPending(plan) {
            for value in try pendingValues(plan, snapshot, definition) where value != .null {
                let isBetter =
                    highest
                    ? StoredOrder.precedes(best, value) : StoredOrder.precedes(value, best)
                if best == .null || isBetter { best = value }
            }
        } else {
            best = try container.translating { () throws(RecordError) in
                try snapshot.extreme(plan.query, number, highest: highest)
            }
        }
        return best == .null ? nil : try typed(best, definition) as Value
    }

    private func sum<Entity>(
        _ request: FetchDescriptor<Entity>,
        _ definition: PropertyDefinition
    ) throws -> ColumnSum {
        let (plan, snapshot, number) = try question(request, definition)
        guard touchesPending(plan) else {
            return try container.translating { () throws(RecordError) in
                try snapshot.sum(plan.query, number)
            }
        }
        var sum = ColumnSum()
        for value in try pendingValues(plan, snapshot, definition) { sum.add(value) }
        return sum
    }

    private func question<Entity>(
        _ request: FetchDescriptor<Entity>,
        _ definition: PropertyDefinition
    ) throws -> (RequestPlan, RecordSnapshot, ColumnID) {
        let snapshot = try snapshot(for: request)
        let plan = try RequestPlan(request, in: self)
        guard definition.slot >= 0, let column = plan.model.properties[definition.slot].column
        else {
            throw StoreError(
                .unsupportedPredicate,
                "\(definition.path.names.joined(separator: ".")) is no attribute of "
                    + Entity.entityName,
                place: .init(entity: Entity.entityName, attribute: definition.name),
                suggestion: "Ask the entity that the attribute belongs to."
            )
        }
        return (plan, snapshot, column)
    }

    /// The values of an attribute of a request's objects, edits included.
    private func pendingValues(
        _ plan: RequestPlan,
        _ snapshot: RecordSnapshot,
        _ definition: PropertyDefinition
    ) throws -> [StoredValue] {
        let ids = try orderedIDs(plan, snapshot)
        let column = plan.model.columns[definition.slot]
        let rows = try container.translating { () throws(RecordError) in
            try snapshot.rows(plan.model.record.id, ids)
        }
        var values: [StoredValue] = []
        for (id, row) in zip(ids, rows) {
            if let object = changed[id], let edited = object.storage.edits?.values[definition.slot]
            {
                values.append(edited)
            } else if let row {
                values.append(try value(in: row, column))
            }
        }
        return values
    }

    private func typed<Value: StorableValue>(
        _ stored: StoredValue,
        _ definition: PropertyDefinition
    ) throws -> Value {
        guard let value = Value(stored: stored) else {
            throw StoreError(
                .unreadableValue,
                "\(definition.name) has a value that this build does not know",
                place: .init(attribute: definition.name)
            )
        }
        return value
    }
}
