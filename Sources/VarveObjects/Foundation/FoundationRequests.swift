// Requests that are written with Foundation's `#Predicate` and `SortDescriptor`.

public import Foundation
import VarveBase
import VarveRecords

extension FetchDescriptor {
    /// A request with Foundation's predicate and order.
    ///
    /// What a store cannot answer as Foundation evaluates it is refused here, with its name. Texts
    /// compare by their UTF-8 bytes, as everywhere in a store: canonically equivalent texts of
    /// other bytes are different, and parts of texts need not end between characters.
    /// - Parameters:
    ///   - predicate: which objects; nil: all.
    ///   - order: their order.
    /// - Complexity: O(n) of the predicate.
    /// - Throws: `unsupportedPredicate`, which names the expression or key path.
    public init(
        predicate: Foundation.Predicate<Entity>?,
        sortBy order: [SortDescriptor<Entity>] = []
    ) throws(StoreError) {
        var terms: [SortTerm<Entity>] = []
        for step in order { terms.append(try SortTerm(step)) }
        self.init(
            filter: try predicate.map { (known) throws(StoreError) in try TypedPredicate(known) }
                ?? .always,
            sort: terms
        )
    }
}

extension TypedPredicate {
    /// Foundation's predicate as a filter.
    /// - Parameter predicate: see `FetchDescriptor.init(predicate:sortBy:)`.
    /// - Throws: `unsupportedPredicate`, which names the expression or key path.
    public init(_ predicate: Foundation.Predicate<Root>) throws(StoreError) {
        self.init(try PredicateTranslator.filter(predicate))
    }
}

extension SortTerm {
    /// One step of Foundation's orders: of a stored attribute, without locale.
    /// - Parameter descriptor: the step. Texts take the comparator `.lexical`, or none.
    /// - Throws: `unsupportedPredicate`, which names the key path or the comparator.
    public init(_ descriptor: SortDescriptor<Root>) throws(StoreError) {
        func refused(_ message: String, _ suggestion: String) -> StoreError {
            StoreError(
                .unsupportedPredicate,
                message,
                place: .init(entity: Root.entityName),
                suggestion: suggestion
            )
        }
        if let comparator = descriptor.stringComparator, comparator != .lexical {
            throw refused(
                "a store has no localized order: SortDescriptor with a string comparator",
                "Give the comparator .lexical, or sort by a stored sort key."
            )
        }
        let isDescending = descriptor.order == .reverse
        guard let keyPath = descriptor.keyPath else {
            throw refused(
                "a store cannot call a comparator: SortDescriptor without a key path",
                "Sort by a stored property."
            )
        }
        switch EntityKeyPath.find(keyPath, in: Root.self) {
        case .identity?: self.init(.object, isDescending: isDescending)
        case .property(let definition)? where definition.relationshipDefinition == nil:
            if let name = EnumOrder.differing(type(of: keyPath).valueType) {
                throw refused(
                    "a store orders \(name) by its raw values, and Swift does not",
                    "Sort with columns, by raw values: sorted { [$0.name.ascending] }."
                )
            }
            self.init(definition.path, isDescending: isDescending)
        default:
            throw refused(
                "a sort descriptor has a key path that is no stored attribute: \(keyPath)",
                "Sort with columns: sorted { [$0.name.ascending] }."
            )
        }
    }
}
