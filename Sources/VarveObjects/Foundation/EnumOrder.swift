// Whether a store orders the cases of an enum as Swift does.
//
// Invariants
// - A store orders by raw values. An enum whose `<` says something else is refused, by name, where
//   Foundation would have asked its `<`.

import VarveBase
import VarveRecords

enum EnumOrder {
    /// The name of an enum, or of an optional one, that has another order than its raw values.
    /// - Complexity: O(n log n), n its cases.
    static func differing(_ type: Any.Type) -> String? {
        let type = StoredForms.unwrapped(type)
        guard let ordered = type as? any (StoredEnum & Comparable).Type else { return nil }
        return isAsStored(ordered) ? nil : "\(type)"
    }

    private static func isAsStored<Value: StoredEnum & Comparable>(_ type: Value.Type) -> Bool {
        let cases = Value.allCases.sorted { Comparison.less.holds($0.stored, $1.stored) }
        return zip(cases, cases.dropFirst()).allSatisfy { $0 < $1 }
    }
}

extension PredicateTranslator {
    /// - Throws: `unsupportedPredicate` for an enum that a store orders in another way.
    func checkOrder(of type: Any.Type) throws(StoreError) {
        guard let name = EnumOrder.differing(type) else { return }
        throw unsupported(
            "a store orders \(name) by its raw values, and Swift does not: name the cases that "
                + "are meant"
        )
    }
}
