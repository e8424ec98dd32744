// Walking a `#Predicate`: each type of expression that can be taken says what it means.
//
// Invariants
// - Foundation's expressions are known by cast to `TranslatableExpression`; what has no such form,
//   and is no constant, is refused with its name.
// - Key paths are found in the entity's `keyPaths`, never by their text.

import Foundation
import VarveBase
import VarveRecords

/// An expression that can be taken.
protocol TranslatableExpression {
    /// What it means.
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm
}

/// Translates one predicate.
struct PredicateTranslator {
    private let entity: String
    private var variables: [PredicateExpressions.VariableID: PredicateForm] = [:]
    private var depth = 0
    /// Deeper expressions are refused: the recursion must stay on its stack.
    private static let depthMax = 200

    static func filter<Entity: ManagedObject>(
        _ predicate: Foundation.Predicate<Entity>
    ) throws(StoreError) -> RecordFilter {
        var translator = PredicateTranslator(entity: Entity.entityName)
        translator.variables[predicate.variable.key] = .object([], Entity.self)
        return try translator.filter(predicate.expression)
    }

    private init(entity: String) { self.entity = entity }

    /// What an expression means. A part of constants only is evaluated.
    mutating func form<Expression: PredicateExpression>(
        _ expression: Expression
    ) throws(StoreError) -> PredicateForm {
        depth += 1
        defer { depth -= 1 }
        if depth > Self.depthMax {
            throw unsupported("the predicate is nested deeper than \(Self.depthMax)")
        }
        guard let known = expression as? any TranslatableExpression else {
            if let constant = Self.constant(expression) { return constant }
            throw refusal(of: Expression.self)
        }
        do throws(StoreError) {
            return try known.form(&self)
        } catch {
            if let constant = Self.constant(expression) { return constant }
            throw error
        }
    }

    private static func constant<Expression: PredicateExpression>(
        _ expression: Expression
    ) -> PredicateForm? {
        guard let value = try? expression.evaluate(PredicateBindings()) else { return nil }
        return .constant(value, stored: StoredValue.of(value))
    }

    mutating func filter(
        _ expression: some PredicateExpression<Bool>
    ) throws(StoreError) -> RecordFilter {
        guard let filter = filter(try form(expression)) else {
            throw refusal(of: type(of: expression))
        }
        return filter
    }

    // MARK: Variables

    mutating func bind(
        _ variable: PredicateExpressions.VariableID,
        _ form: PredicateForm
    ) {
        variables[variable] = form
    }

    func bound(_ variable: PredicateExpressions.VariableID) -> PredicateForm? {
        variables[variable]
    }

    /// A filter over other objects: it knows its own variable and no other.
    mutating func inside(
        _ variable: PredicateExpressions.VariableID,
        _ target: any ManagedObject.Type,
        _ test: some PredicateExpression<Bool>
    ) throws(StoreError) -> RecordFilter {
        let outer = variables
        variables = [variable: .object([], target)]
        defer { variables = outer }
        return try filter(test)
    }

    // MARK: Refusals

    func unsupported(_ message: String) -> StoreError {
        StoreError(
            .unsupportedPredicate,
            message,
            place: .init(entity: entity),
            suggestion: "Write the filter with columns: \(entity).where { }."
        )
    }

    func refusal<Expression>(of type: Expression.Type) -> StoreError {
        unsupported(
            "the predicate has an expression that a store cannot answer: \(Self.name(type))"
        )
    }

    /// The name of a type of expression, without what it is made of.
    private static func name<Expression>(_ type: Expression.Type) -> String {
        String("\(type)".prefix { $0 != "<" })
    }

    // MARK: Truth

    /// A form as a filter; nil: it is not true or false.
    func filter(_ form: PredicateForm) -> RecordFilter? {
        switch form {
        case .filter(let filter): filter
        case .value(let value) where value.type == .bool: value.compare(.equal, .bool(true))
        case .constant(let value, _): (value as? Bool).map { $0 ? .always : .never }
        case .coalesced(let value, .bool(let instead)):
            instead
                ? .or([value.isNil, value.compare(.equal, .bool(true))])
                : value.compare(.equal, .bool(true))
        default: nil
        }
    }

    /// A comparison; nil: these cannot be compared.
    func compare(
        _ left: PredicateForm,
        _ comparison: Comparison,
        _ right: PredicateForm
    ) -> RecordFilter? {
        if comparison == .notEqual { return compare(left, .equal, right).map { .not($0) } }
        if case .constant = left {
            if case .constant = right { return nil }
            return compare(right, comparison.turned, left)
        }
        switch (left, right) {
        case (.value(let value), .constant(_, let constant?)):
            return value.compare(comparison, constant)
        case (.value(let value), .value(let other)): return value.compare(comparison, other)
        case (.coalesced(let value, let instead), .constant(_, let constant?)):
            let isInstead =
                !instead.isNotANumber && !constant.isNotANumber
                && comparison.holds(instead, constant)
            return .or([
                .and([value.isThere, value.compare(comparison, constant)]),
                .and([value.isNil, isInstead ? .always : .never]),
            ])
        case (.choice(let present, let form, let instead), .constant(_, let constant?)):
            let isInstead = comparison.holds(instead, constant)
            return compare(form, comparison, right).map {
                .or([.and([present, $0]), .and([.not(present), isInstead ? .always : .never])])
            }
        case (.object(let names, _), .constant(_, let constant?)) where comparison == .equal:
            return .compare(PropertyPath(names), .equal, constant)
        case (.object(let names, _), .object(let others, _)) where comparison == .equal:
            return .compareProperties(PropertyPath(names), .equal, PropertyPath(others))
        case (.count(let path, let filter), .constant(let number, _)):
            return (number as? Int).map { .count(path, filter, comparison, $0) }
        case (.optional(let present, let form), .constant(_, let constant?)):
            if constant == .null { return comparison == .equal ? .not(present) : .never }
            return compare(form, comparison, right).map { .and([present, $0]) }
        default: break
        }
        guard comparison == .equal, let one = filter(left), let two = filter(right) else {
            return nil
        }
        return .or([.and([one, two]), .and([.not(one), .not(two)])])
    }

    /// What a test of a value says of a form; nil: it is none.
    func test(
        _ form: PredicateForm,
        _ body: (PredicateValue) -> RecordFilter?,
        instead: (StoredValue) -> Bool?
    ) -> RecordFilter? {
        switch form {
        case .value(let value): return body(value)
        case .object(let names, _):
            return body(PredicateValue(path: PropertyPath(names), type: .int64))
        case .coalesced(let value, let constant):
            guard let filter = body(value), let isTrue = instead(constant) else { return nil }
            return .or([
                .and([value.isThere, filter]), .and([value.isNil, isTrue ? .always : .never]),
            ])
        default: return nil
        }
    }
}

extension Comparison {
    /// The same with the sides exchanged.
    fileprivate var turned: Comparison {
        switch self {
        case .less: .greater
        case .lessOrEqual: .greaterOrEqual
        case .greater: .less
        case .greaterOrEqual: .lessOrEqual
        case .equal, .notEqual: self
        }
    }
}
