// What each type of expression of a `#Predicate` means: comparisons, joins, optionals.

import Foundation
import VarveBase
import VarveRecords

extension PredicateExpressions.Variable: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        guard let form = translator.bound(key) else {
            throw translator.unsupported(
                "the predicate asks about another object inside a closure: Variable"
            )
        }
        return form
    }
}

extension PredicateExpressions.Value: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        .constant(value, stored: StoredValue.of(value))
    }
}

extension PredicateExpressions.NilLiteral: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        .constant(Wrapped?.none as Any, stored: .null)
    }
}

extension PredicateExpressions.KeyPath: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        let owner = try translator.form(root)
        guard let form = translator.property(keyPath, of: owner, Output.self) else {
            throw translator.unsupported(
                "the predicate has a key path that is no stored property: KeyPath \(keyPath)"
            )
        }
        return form
    }
}

extension PredicateExpressions.Equal: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        let (left, right) = (try translator.form(lhs), try translator.form(rhs))
        guard let filter = translator.compare(left, .equal, right) else {
            throw translator.refusal(of: Self.self)
        }
        return .filter(filter)
    }
}

extension PredicateExpressions.NotEqual: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        let (left, right) = (try translator.form(lhs), try translator.form(rhs))
        guard let filter = translator.compare(left, .notEqual, right) else {
            throw translator.refusal(of: Self.self)
        }
        return .filter(filter)
    }
}

extension PredicateExpressions.Comparison: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        let (left, right) = (try translator.form(lhs), try translator.form(rhs))
        try translator.checkOrder(of: LHS.Output.self)
        let comparison: VarveRecords.Comparison =
            switch op {
            case .lessThan: .less
            case .lessThanOrEqual: .lessOrEqual
            case .greaterThan: .greater
            case .greaterThanOrEqual: .greaterOrEqual
            @unknown default: throw translator.refusal(of: Self.self)
            }
        guard let filter = translator.compare(left, comparison, right) else {
            throw translator.refusal(of: Self.self)
        }
        return .filter(filter)
    }
}

extension PredicateExpressions.Conjunction: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        .filter(.and([try translator.filter(lhs), try translator.filter(rhs)]))
    }
}

extension PredicateExpressions.Disjunction: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        .filter(.or([try translator.filter(lhs), try translator.filter(rhs)]))
    }
}

extension PredicateExpressions.Negation: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        .filter(.not(try translator.filter(wrapped)))
    }
}

extension PredicateExpressions.Conditional: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        let test = try translator.filter(self.test)
        let (one, two) = (try translator.form(trueBranch), try translator.form(falseBranch))
        guard let one = translator.filter(one), let two = translator.filter(two) else {
            throw translator.refusal(of: Self.self)
        }
        return .filter(.or([.and([test, one]), .and([.not(test), two])]))
    }
}

extension PredicateExpressions.NilCoalesce: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        let (left, right) = (try translator.form(lhs), try translator.form(rhs))
        switch (left, right) {
        case (.value(let value), .constant(_, .null?)): return .value(value)
        case (.value(let value), .constant(_, let instead?)): return .coalesced(value, instead)
        case (.optional(let present, .count(let path, let filter)), .constant(_, let instead?)):
            guard case .int = instead else { break }
            return .choice(present: present, .count(path, filter), instead)
        case (.optional(let present, let form), .constant):
            guard let one = translator.filter(form), let two = translator.filter(right) else {
                break
            }
            return .filter(.or([.and([present, one]), .and([.not(present), two])]))
        default: break
        }
        throw translator.refusal(of: Self.self)
    }
}

extension PredicateExpressions.OptionalFlatMap: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        let wrapped = try translator.form(self.wrapped)
        let present: RecordFilter
        switch wrapped {
        case .value(let value): present = value.isThere
        case .object(let names, _): present = .compare(PropertyPath(names), .notEqual, .null)
        default: throw translator.refusal(of: Self.self)
        }
        translator.bind(variable.key, wrapped)
        let result = try translator.form(transform)
        switch result {
        // They are nil where what leads to them is.
        case .value, .object: return result
        case .filter, .count: return .optional(present: present, result)
        case .optional(let further, let form):
            return .optional(present: .and([present, further]), form)
        default: throw translator.refusal(of: Self.self)
        }
    }
}
