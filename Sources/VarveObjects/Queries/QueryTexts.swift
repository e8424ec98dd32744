// Filters and orders as text: read against a container's schema, and printed.
//
// The form is that of VarveRecords/QueryText: the names that filters have in Swift.

import Foundation
import VarveRecords

extension PersistentContainer {
    /// Reads a filter from text: `country == "DE" && population > 100_000`.
    ///
    /// The text may come from anywhere: its length (64 KiB) and depth (64) are bounded.
    /// - Parameters:
    ///   - text: the filter.
    ///   - entity: whose objects it is about.
    /// - Complexity: O(n).
    /// - Throws: `unsupportedPredicate`; the message has the line with a caret below the place, the
    ///   suggestion what could stand there.
    public func filter<Entity: ManagedObject>(
        _ text: String,
        of entity: Entity.Type
    ) throws(StoreError) -> TypedPredicate<Entity> {
        let model = try model(of: entity)
        do throws(QueryTextError) {
            return TypedPredicate(try queryText.filter(text, of: model.record))
        } catch {
            throw unreadable(error, .unsupportedPredicate, model)
        }
    }

    /// Reads an order from text: `population.descending, name`. An empty text is the order by ID.
    /// - Parameters:
    ///   - text: the order, its steps separated by commas; `-name` is `name.descending`.
    ///   - entity: whose objects it is about.
    /// - Complexity: O(n).
    /// - Throws: `invalidRequest`; the message has the line with a caret below the place, the
    ///   suggestion what could stand there.
    public func order<Entity: ManagedObject>(
        _ text: String,
        of entity: Entity.Type
    ) throws(StoreError) -> [SortTerm<Entity>] {
        let model = try model(of: entity)
        do throws(QueryTextError) {
            return try queryText.order(text, of: model.record).map {
                SortTerm($0.path, isDescending: $0.isDescending)
            }
        } catch {
            throw unreadable(error, .invalidRequest, model)
        }
    }

    /// Prints a filter; reading the text gives the same filter.
    /// - Parameter filter: what is printed.
    /// - Complexity: O(n).
    /// - Throws: what a fetch with the filter would throw: `unsupportedPredicate`,
    ///   `unknownAttribute`.
    public func text<Entity: ManagedObject>(
        of filter: TypedPredicate<Entity>
    ) throws(StoreError) -> String {
        try text(of: filter.predicate, model(of: Entity.self))
    }

    func text(of filter: VarveRecords.Predicate, _ model: EntityModel) throws(StoreError) -> String
    {
        try translating { () throws(RecordError) in
            try queryText.text(of: filter, model.record)
        }
    }

    /// Prints an order; reading the text gives the same order.
    /// - Parameter order: what is printed.
    /// - Throws: what a fetch in this order would throw: `invalidRequest`, `unknownAttribute`.
    public func text<Entity: ManagedObject>(
        of order: [SortTerm<Entity>]
    ) throws(StoreError) -> String {
        let terms = order.map { VarveRecords.SortTerm($0.path, isDescending: $0.isDescending) }
        return try text(of: terms, model(of: Entity.self))
    }

    func text(
        of order: [VarveRecords.SortTerm],
        _ model: EntityModel
    ) throws(StoreError) -> String {
        try translating { () throws(RecordError) in try queryText.text(of: order, model.record) }
    }

    private var queryText: QueryText {
        QueryText(schema: schema.record) { name in
            TimeZone(identifier: name).map { DateZone($0) }
        }
    }

    private func unreadable(
        _ error: QueryTextError,
        _ code: StoreError.Code,
        _ model: EntityModel
    ) -> StoreError {
        let possible = error.possible.prefix(40).joined(separator: " ")
        return StoreError(
            code,
            "\(error.message)\n\(error.picture)",
            place: .init(entity: model.name),
            cause: error,
            suggestion: possible.isEmpty ? nil : "What can stand there: \(possible)"
        )
    }
}
