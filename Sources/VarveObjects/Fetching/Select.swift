// Values of a request's objects without making objects: columns as tuples, and whether there are
// any.
//
// Invariants
// - The values are those that a fetch of the same request would show: the context's commit with its
//   unsaved edits laid over. A request without edits gives the values of the commit.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// Whether a request finds an object. Makes none.
    ///
    /// - Parameter request: with offset and places it asks about what is left after them.
    /// - Complexity: O(log n) with an index that answers the filter, else until the first match.
    /// - Throws: what `fetch` throws.
    public func exists<Entity>(_ request: FetchDescriptor<Entity>) throws -> Bool {
        let snapshot = try snapshot(for: request)
        if request.limit == 0 {
            _ = try RequestPlan(request, in: self)
            return false
        }
        // A negative limit stays what it is: an error.
        var first = request.limit(min(request.limit ?? 1, 1))
        // Which one comes first is of no interest then.
        if request.offset == 0, request.afterCursor == nil, request.beforeCursor == nil {
            first = first.sorted { _ in [] }
        }
        return try !orderedIDs(RequestPlan(first, in: self), snapshot).isEmpty
    }

    /// Some attributes of each object of a request, as tuples, in its order:
    /// `select(request) { ($0.title, $0.folder.name) }`.
    ///
    /// An attribute of another object is nil where a relationship on the way leads nowhere; if it
    /// is not optional say `$0.folder.name.optional`.
    /// - Parameters:
    ///   - request: which objects.
    ///   - columns: one attribute or a tuple of them.
    /// - Complexity: that of `fetchIDs`, and O(rows). Makes no objects and keeps no rows; beside
    ///   unsaved edits of the entity the rows pass through the row cache.
    /// - Throws: what `fetch` throws; `unreadableValue` where a value is none of the attribute's
    ///   type.
    public func select<Entity, Row>(
        _ request: FetchDescriptor<Entity>,
        @SelectionBuilder _ columns: (Entity.Columns) -> Selection<Entity, Row>
    ) throws -> [Row] {
        let selection = columns(Entity.columns)
        var result: [Row] = []
        try project(request, selection.definitions.map(\.path)) { values in
            result.append(try selection.row(values))
            return true
        }
        return result
    }

    /// The different combinations of some attributes among a request's objects, ascending, nil
    /// first: `select(distinct: request) { ($0.country, $0.year) }`.
    ///
    /// - Parameters:
    ///   - request: which objects; its order does not matter, its window does.
    ///   - columns: a tuple of attributes.
    /// - Complexity: O(objects), without making them; memory for the combinations. For one
    ///   attribute `selectDistinct` knows a better way where an index begins with it.
    /// - Throws: what `select` throws.
    public func select<Entity, Row>(
        distinct request: FetchDescriptor<Entity>,
        @SelectionBuilder _ columns: (Entity.Columns) -> Selection<Entity, Row>
    ) throws -> [Row] {
        let selection = columns(Entity.columns)
        var groups = RecordGroups(keyCount: selection.definitions.count, kinds: [])
        try project(request.withoutOrder, selection.definitions.map(\.path)) { values in
            groups.add(values)
            return true
        }
        return try groups.sorted().map { try selection.row($0.key) }
    }

    /// Calls `body` with the values at some paths of each object of a request, edits included.
    func project<Entity>(
        _ request: FetchDescriptor<Entity>,
        _ paths: [PropertyPath],
        _ body: ([StoredValue]) throws -> Bool
    ) throws {
        let snapshot = try snapshot(for: request)
        let plan = try RequestPlan(request, in: self)
        let projection = try container.translating { () throws(RecordError) in
            try RecordProjection(paths, entity: plan.model.record, schema: snapshot.schema)
        }
        let reachesOthers = paths.contains { $0.names.count > 1 }
        var failure: (any Error)?
        func hand(_ values: [StoredValue]) -> Bool {
            do { return try body(values) } catch { failure = error }
            return false
        }
        let touches =
            touchesPending(plan)
            || (reachesOthers && request.includesPendingChanges && hasEdits)
        if touches {
            let ids = try orderedIDs(plan, snapshot)
            let resolver = OverlayResolver(context: self, snapshot: snapshot)
            try container.translating { () throws(RecordError) in
                let entity = plan.model.record.id
                for start in stride(from: 0, to: ids.count, by: 1_024) {
                    let chunk = Array(ids[start..<min(ids.count, start + 1_024)])
                    // Rows that no edit lies over are read together.
                    let rows = try snapshot.rows(entity, chunk)
                    for (id, row) in zip(chunk, rows) {
                        let isEdited = changed[id] != nil || row == nil
                        let values =
                            isEdited
                            ? try resolver.values(entity, id) : row.map { .row($0, snapshot) }
                        guard let values else { continue }
                        if !hand(try projection.values(values, resolver)) { return }
                    }
                }
            }
        } else {
            try container.translating { () throws(RecordError) in
                try snapshot.project(plan.query, projection) { values in hand(values) }
            }
        }
        if let failure { throw failure }
    }
}

extension FetchDescriptor {
    /// The same objects in any order: without its sort, unless a window cuts them by it.
    var withoutOrder: FetchDescriptor {
        guard limit == nil, offset == 0, afterCursor == nil, beforeCursor == nil else {
            return self
        }
        return sorted { _ in [] }
    }
}

extension Column {
    /// The same attribute as an optional one: nil where a relationship on the way to it leads
    /// nowhere. For `select`, whose tuples have the types of the attributes.
    public var optional: Column<Root, Value?> { Column<Root, Value?>(definition: definition) }
}

/// Attributes that a `select` reads, and how they become a tuple.
public struct Selection<Root: ManagedObject, Row> {
    let definitions: [PropertyDefinition]
    let row: ([StoredValue]) throws -> Row
}

/// Reads what a `select` asks for: an attribute, or a tuple of attributes.
///
/// Not a closure that returns a parameter pack: an empty pack is `Void`, which every closure of one
/// expression can become, so selecting a relationship would compile and give nothing.
@resultBuilder public enum SelectionBuilder {
    /// One attribute.
    public static func buildExpression<Root, Value>(
        _ column: Column<Root, Value>
    ) -> Selection<Root, Value> {
        let definitions = [column.definition]
        return Selection(definitions: definitions) { values in
            var reader = ValueReader(values, definitions)
            return try reader.next(Value.self)
        }
    }

    /// Several attributes: `($0.title, $0.created)`.
    public static func buildExpression<Root, each Value>(
        _ columns: (repeat Column<Root, each Value>)
    ) -> Selection<Root, (repeat each Value)> {
        var definitions: [PropertyDefinition] = []
        for column in repeat each columns { definitions.append(column.definition) }
        return Selection(definitions: definitions) { [definitions] values in
            var reader = ValueReader(values, definitions)
            return (repeat try reader.next((each Value).self))
        }
    }

    /// The one expression.
    public static func buildBlock<Root, Row>(
        _ selection: Selection<Root, Row>
    ) -> Selection<Root, Row> {
        selection
    }
}

/// Takes typed values from stored ones, one after the other.
struct ValueReader {
    private let values: [StoredValue]
    private let definitions: [PropertyDefinition]
    private var place = 0

    init(_ values: [StoredValue], _ definitions: [PropertyDefinition]) {
        self.values = values
        self.definitions = definitions
    }

    mutating func next<Value: StorableValue>(_ type: Value.Type) throws -> Value {
        defer { place += 1 }
        if let value = Value(stored: values[place]) { return value }
        let definition = definitions[place]
        let name = definition.path.names.joined(separator: ".")
        let isNull = values[place] == .null
        throw StoreError(
            .unreadableValue,
            isNull
                ? "\(name) has no value for one of the objects"
                : "\(name) has a value that this build does not know",
            place: .init(attribute: definition.name),
            suggestion: isNull ? "Say \(name).optional to get nil there." : nil
        )
    }
}
