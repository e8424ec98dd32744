// Aggregates of groups: `select(request, groupedBy: { $0.country }) { ... }`.
//
// Invariants
// - A grouped select takes aggregates only: an attribute alone does not compile.
// - Groups come by their key, ascending, nil first; a group has at least one object.

import VarveBase
import VarveRecords

/// A question about the objects of a group: `group.count`, `column.price.max`.
public struct Aggregate<Entity: ManagedObject, Value>: Sendable {
    let kind: AggregateKind
    /// Nil for a count of objects.
    let definition: PropertyDefinition?
    let finish: @Sendable (AggregateState) throws -> Value
}

/// What can be asked about a group as a whole.
public struct GroupQuestions<Entity: ManagedObject>: Sendable {
    /// How many objects there are.
    public var count: Aggregate<Entity, Int> {
        Aggregate(kind: .count, definition: nil) { $0.count }
    }
}

extension Column where Value: FilterableValue {
    /// How many different values there are; nil does not count.
    public var distinctCount: Aggregate<Root, Int> {
        Aggregate(kind: .distinct, definition: definition) { $0.count }
    }
}

extension Column where Value: OrderedValue {
    /// The lowest value; nil where no object of the group has one.
    public var min: Aggregate<Root, Value?> { extreme(.minimum) }
    /// The highest value; nil where no object of the group has one.
    public var max: Aggregate<Root, Value?> { extreme(.maximum) }
}

extension Column where Value: OptionalOrderedValue {
    /// The lowest value; nil where no object of the group has one.
    public var min: Aggregate<Root, Value.Ordered?> { extreme(.minimum) }
    /// The highest value; nil where no object of the group has one.
    public var max: Aggregate<Root, Value.Ordered?> { extreme(.maximum) }
}

extension Column {
    fileprivate func extreme<Wrapped: OrderedValue>(
        _ kind: AggregateKind
    ) -> Aggregate<Root, Wrapped?> {
        let definition = definition
        return Aggregate(kind: kind, definition: definition) { state in
            if state.extreme == .null { return nil }
            var reader = ValueReader([state.extreme], [definition])
            return try reader.next(Wrapped.self)
        }
    }
}

extension Column where Value: StorableInteger {
    /// The sum; the call throws `valueTooLarge` when it is no `Int`.
    public var sum: Aggregate<Root, Int> { sum(of: Value.self) }
    /// The mean; nil where no object of the group has a value.
    public var average: Aggregate<Root, Double?> { average(of: Value.self) }
}

extension Column where Value: OptionalIntegerValue {
    /// The sum; the call throws `valueTooLarge` when it is no `Int`.
    public var sum: Aggregate<Root, Int> { sum(of: Value.Integer.self) }
    /// The mean; nil where no object of the group has a value.
    public var average: Aggregate<Root, Double?> { average(of: Value.Integer.self) }
}

extension Column {
    fileprivate func sum<Number: StorableInteger>(of type: Number.Type) -> Aggregate<Root, Int> {
        let definition = definition
        return Aggregate(kind: .sum, definition: definition) { state in
            guard let sum = Int(exactly: Number.sum(state.sum)) else {
                throw StoreError(
                    .valueTooLarge,
                    "the sum of \(definition.name) in a group is no Int",
                    place: .init(attribute: definition.name)
                )
            }
            return sum
        }
    }

    fileprivate func average<Number: StorableInteger>(
        of type: Number.Type
    ) -> Aggregate<Root, Double?> {
        Aggregate(kind: .sum, definition: definition) { state in
            state.count == 0 ? nil : Double(Number.sum(state.sum)) / Double(state.count)
        }
    }
}

extension StorableInteger {
    /// Unsigned 64-bit integers are stored with their top bit turned.
    static func sum(_ sum: ColumnSum) -> Int128 {
        sum.integer - Int128(Self.zeroValue.storedInteger) * Int128(sum.count)
    }
}

extension Column where Value == Double {
    /// The sum.
    public var sum: Aggregate<Root, Double> {
        Aggregate(kind: .sum, definition: definition) { $0.sum.number }
    }

    /// The mean; nil where no object of the group has a value.
    public var average: Aggregate<Root, Double?> {
        Aggregate(kind: .sum, definition: definition) { state in
            state.count == 0 ? nil : state.sum.number / Double(state.count)
        }
    }
}

extension Column where Value == Double? {
    /// The sum.
    public var sum: Aggregate<Root, Double> {
        Aggregate(kind: .sum, definition: definition) { $0.sum.number }
    }

    /// The mean; nil where no object of the group has a value.
    public var average: Aggregate<Root, Double?> {
        Aggregate(kind: .sum, definition: definition) { state in
            state.count == 0 ? nil : state.sum.number / Double(state.count)
        }
    }
}

/// An optional value that can be put in order once it is there.
public protocol OptionalOrderedValue: FilterableValue {
    /// What it is when it is not nil.
    associatedtype Ordered: OrderedValue
}

extension Optional: OptionalOrderedValue where Wrapped: OrderedValue {
    /// What it is when it is not nil.
    public typealias Ordered = Wrapped
}

/// An optional integer.
public protocol OptionalIntegerValue: FilterableValue {
    /// What it is when it is not nil.
    associatedtype Integer: StorableInteger
}

extension Optional: OptionalIntegerValue where Wrapped: StorableInteger {
    /// What it is when it is not nil.
    public typealias Integer = Wrapped
}

/// Questions about a group, and how their answers become a tuple.
public struct GroupAnswers<Root: ManagedObject, Row> {
    let asked: [(kind: AggregateKind, definition: PropertyDefinition?)]
    let row: ([AggregateState]) throws -> Row
}

/// Reads what a grouped `select` asks for: an aggregate, or a tuple of aggregates.
@resultBuilder public enum GroupBuilder {
    /// One question.
    public static func buildExpression<Root, Value>(
        _ question: Aggregate<Root, Value>
    ) -> GroupAnswers<Root, Value> {
        GroupAnswers(asked: [(question.kind, question.definition)]) { states in
            try question.finish(states[0])
        }
    }

    /// Several questions: `(group.count, column.price.max)`.
    public static func buildExpression<Root, each Value>(
        _ questions: (repeat Aggregate<Root, each Value>)
    ) -> GroupAnswers<Root, (repeat each Value)> {
        var asked: [(kind: AggregateKind, definition: PropertyDefinition?)] = []
        for question in repeat each questions { asked.append((question.kind, question.definition)) }
        return GroupAnswers(asked: asked) { states in
            var rest = states[...]
            return (repeat try (each questions).finish(rest.removeFirst()))
        }
    }

    /// The one expression.
    public static func buildBlock<Root, Row>(
        _ answers: GroupAnswers<Root, Row>
    ) -> GroupAnswers<Root, Row> {
        answers
    }
}

extension ManagedObjectContext {
    /// A request's objects in groups of equal values, with the answers to questions about each:
    /// `select(request, groupedBy: { $0.country }) { column, group in (group.count,
    /// column.population.max) }`.
    ///
    /// - Parameters:
    ///   - request: which objects; its order does not matter, its window does.
    ///   - key: an attribute, or one of another object over to-one relationships.
    ///   - questions: one aggregate or a tuple of them.
    /// - Returns: the groups by their key, ascending, nil first, each with the answers in the order
    ///   of the questions.
    /// - Complexity: O(objects), without making them; memory for the groups.
    /// - Throws: what `select` throws; `valueTooLarge` for a sum that is no `Int`.
    public func select<Entity, Key: FilterableValue, Row>(
        _ request: FetchDescriptor<Entity>,
        groupedBy key: (Entity.Columns) -> Column<Entity, Key>,
        @GroupBuilder _ questions: (Entity.Columns, GroupQuestions<Entity>) -> GroupAnswers<
            Entity, Row
        >
    ) throws -> [(key: Key, values: Row)] {
        let key = key(Entity.columns).definition
        let questions = questions(Entity.columns, GroupQuestions())
        return try groups(request, key, questions.asked).map { group in
            var reader = ValueReader(group.key, [key])
            return (try reader.next(Key.self), try questions.row(group.states))
        }
    }

    /// A request's objects in groups of those that a to-one relationship leads to.
    ///
    /// - Parameters:
    ///   - request: which objects; its order does not matter, its window does.
    ///   - key: the relationship.
    ///   - questions: one aggregate or a tuple of them.
    /// - Returns: the groups by the ID of the object that the relationship leads to; nil first, for
    ///   those that lead nowhere.
    /// - Complexity: O(objects), without making them; memory for the groups.
    /// - Throws: what `select` throws; `valueTooLarge` for a sum that is no `Int`.
    public func select<Entity, Target, Row>(
        _ request: FetchDescriptor<Entity>,
        groupedBy key: (Entity.Columns) -> ToOneColumn<Entity, Target>,
        @GroupBuilder _ questions: (Entity.Columns, GroupQuestions<Entity>) -> GroupAnswers<
            Entity, Row
        >
    ) throws -> [(key: Target.ID?, values: Row)] {
        let key = key(Entity.columns)._definition
        let questions = questions(Entity.columns, GroupQuestions())
        let target = try container.model(of: Target.self).record.id
        return try groups(request, key, questions.asked).map { group in
            var id: Target.ID?
            if case .reference(let object) = group.key[0] {
                id = TypedObjectID(
                    ManagedObjectID(store: container.identity, entity: target, object: object)
                )
            }
            return (id, try questions.row(group.states))
        }
    }

    /// Answers to questions about all objects of a request together:
    /// `aggregate(request) { column, group in (group.count, column.price.sum) }`.
    ///
    /// - Parameters:
    ///   - request: which objects; its order does not matter, its window does.
    ///   - questions: one aggregate or a tuple of them.
    /// - Complexity: O(objects), without making them. `count`, `minimum` and `maximum` of a context
    ///   know better ways where an index answers one question.
    /// - Throws: what `select` throws; `valueTooLarge` for a sum that is no `Int`.
    public func aggregate<Entity, Row>(
        _ request: FetchDescriptor<Entity>,
        @GroupBuilder _ questions: (Entity.Columns, GroupQuestions<Entity>) -> GroupAnswers<
            Entity, Row
        >
    ) throws -> Row {
        let questions = questions(Entity.columns, GroupQuestions())
        let group = try groups(request, nil, questions.asked).first
        return try questions.row(group?.states ?? questions.asked.map { _ in AggregateState() })
    }

    // MARK: Steps

    private func groups<Entity>(
        _ request: FetchDescriptor<Entity>,
        _ key: PropertyDefinition?,
        _ asked: [(kind: AggregateKind, definition: PropertyDefinition?)]
    ) throws -> [RecordGroups.Group] {
        let keys = key.map { [$0.path] } ?? []
        // A count of objects needs no value: the object itself stands for one.
        let paths = keys + asked.map { $0.definition?.path ?? PropertyPath([]) }
        var groups = RecordGroups(keyCount: keys.count, kinds: asked.map(\.kind))
        try project(request.withoutOrder, paths) { values in
            groups.add(values)
            return true
        }
        return groups.sorted()
    }
}
