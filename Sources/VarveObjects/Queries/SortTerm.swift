// One step of a request's order, typed by entity.

import VarveRecords

/// One step of an order over the objects of an entity.
public struct SortTerm<Root: ManagedObject>: Hashable, Sendable {
    let path: PropertyPath
    /// Whether high values come first.
    public let isDescending: Bool

    init(_ path: PropertyPath, isDescending: Bool) {
        self.path = path
        self.isDescending = isDescending
    }

    /// The same step, the other way round.
    public var reversed: SortTerm { SortTerm(path, isDescending: !isDescending) }
}

extension Column where Value: FilterableValue {
    /// Low values first. Nil stands before all, NaN after all; texts go by their UTF-8 bytes.
    public var ascending: SortTerm<Root> { SortTerm(definition.path, isDescending: false) }
    /// High values first.
    public var descending: SortTerm<Root> { SortTerm(definition.path, isDescending: true) }
}
