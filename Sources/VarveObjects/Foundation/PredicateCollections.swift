// What expressions over texts, lists, ranges and to-many relationships mean in a `#Predicate`.

import Foundation
import VarveBase
import VarveRecords

extension PredicateTranslator {
    /// More constants than this are not gone through one by one.
    private static var elementsMax: Int { 100_000 }

    /// The stored values of a list that was given; nil: it has others.
    fileprivate func values<Elements: Sequence>(
        _ form: PredicateForm,
        _: Elements.Type
    ) -> [StoredValue]? {
        guard case .constant(let value, _) = form, let elements = value as? Elements,
            elements.underestimatedCount <= Self.elementsMax
        else { return nil }
        var values: [StoredValue] = []
        for element in elements {
            guard values.count < Self.elementsMax, let stored = StoredValue.of(element) else {
                return nil
            }
            // It equals nothing.
            if !stored.isNotANumber { values.append(stored) }
        }
        return values
    }

    /// A filter over a text.
    fileprivate func text(
        _ form: PredicateForm,
        _ match: TextMatch,
        _ needle: PredicateForm
    ) -> RecordFilter? {
        guard case .constant(let constant, _) = needle else { return nil }
        guard let text = constant as? String ?? (constant as? Character).map({ String($0) }) else {
            return nil
        }
        return test(form) { value in
            value.isString ? .text(value.path, match, text, ignoring: []) : nil
        } instead: { instead in
            guard case .text(let whole) = instead else { return nil }
            return match == .hasPrefix ? whole.hasPrefix(text) : whole.contains(text)
        }
    }

    /// A filter of the objects of a relationship, among those that another one leaves.
    fileprivate func among(_ filter: RecordFilter, _ test: RecordFilter) -> RecordFilter {
        filter == .always ? test : .and([filter, test])
    }
}

extension PredicateExpressions.SequenceContains: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        let (list, wanted) = (try translator.form(sequence), try translator.form(element))
        if case .many(let path, let filter, _) = list,
            case .constant(_, .reference(let id)?) = wanted
        {
            let isIt = RecordFilter.compare(.object, .equal, .reference(id))
            return .filter(.any(path, translator.among(filter, isIt)))
        }
        if case .constant(let range as any StoredRange, _) = list {
            if let filter = translator.within(wanted, range.valueRange) { return .filter(filter) }
        } else if let values = translator.values(list, LHS.Output.self) {
            let filter = translator.test(wanted) {
                .isIn($0.path, values)
            } instead: { constant in
                values.contains { VarveRecords.Comparison.equal.holds($0, constant) }
            }
            if let filter { return .filter(filter) }
        } else if let filter = translator.text(list, .contains, wanted) {
            return .filter(filter)
        }
        throw translator.refusal(of: Self.self)
    }
}

extension PredicateExpressions.SequenceContainsWhere: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        guard case .many(let path, let filter, let target) = try translator.form(sequence) else {
            throw translator.refusal(of: Self.self)
        }
        let test = try translator.inside(variable.key, target, self.test)
        return .filter(.any(path, translator.among(filter, test)))
    }
}

extension PredicateExpressions.SequenceAllSatisfy: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        guard case .many(let path, let filter, let target) = try translator.form(sequence) else {
            throw translator.refusal(of: Self.self)
        }
        let test = try translator.inside(variable.key, target, self.test)
        return .filter(.all(path, filter == .always ? test : .or([.not(filter), test])))
    }
}

extension PredicateExpressions.Filter: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        guard case .many(let path, let before, let target) = try translator.form(sequence) else {
            throw translator.refusal(of: Self.self)
        }
        let test = try translator.inside(variable.key, target, filter)
        return .many(path, translator.among(before, test), target)
    }
}

extension PredicateExpressions.SequenceStartsWith: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        let (whole, part) = (try translator.form(base), try translator.form(prefix))
        guard let filter = translator.text(whole, .hasPrefix, part) else {
            throw translator.refusal(of: Self.self)
        }
        return .filter(filter)
    }
}

extension PredicateExpressions.CollectionContainsCollection: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        let (whole, part) = (try translator.form(base), try translator.form(other))
        guard let filter = translator.text(whole, .contains, part) else {
            throw translator.refusal(of: Self.self)
        }
        return .filter(filter)
    }
}

extension PredicateExpressions.Range: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        guard case .constant(_, let from?) = try translator.form(lower),
            case .constant(_, let to?) = try translator.form(upper)
        else { throw translator.refusal(of: Self.self) }
        return .range(ValueRange(from: from, upTo: to))
    }
}

extension PredicateExpressions.ClosedRange: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        guard case .constant(_, let from?) = try translator.form(lower),
            case .constant(_, let to?) = try translator.form(upper)
        else { throw translator.refusal(of: Self.self) }
        return .range(ValueRange(from: from, through: to))
    }
}

extension PredicateExpressions.RangeExpressionContains: TranslatableExpression {
    func form(_ translator: inout PredicateTranslator) throws(StoreError) -> PredicateForm {
        let (range, wanted) = (try translator.form(self.range), try translator.form(element))
        try translator.checkOrder(of: Element.Output.self)
        var bounds: ValueRange?
        if case .range(let given) = range { bounds = given }
        if case .constant(let given as any StoredRange, _) = range { bounds = given.valueRange }
        guard let bounds, let filter = translator.within(wanted, bounds) else {
            throw translator.refusal(of: Self.self)
        }
        return .filter(filter)
    }
}

extension PredicateTranslator {
    /// A filter over a range; an empty one has nothing in it.
    fileprivate func within(_ form: PredicateForm, _ range: ValueRange) -> RecordFilter? {
        if case .object = form { return nil }
        return test(form) {
            $0.isWithin(range)
        } instead: {
            range.has($0)
        }
    }
}
