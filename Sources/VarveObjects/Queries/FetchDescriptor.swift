// A request: entity, filter, order, window, and how its objects come.

import VarveBase
import VarveRecords

/// A request for objects of one entity. A value: each method returns a changed copy.
///
/// The order is always total: without sort terms by object ID, ties by object ID in the direction
/// of the last term.
public struct FetchDescriptor<Entity: ManagedObject>: Sendable {
    /// Which objects.
    public private(set) var filter: TypedPredicate<Entity> = .always
    /// Their order.
    public private(set) var sortTerms: [SortTerm<Entity>] = []
    /// At most so many; nil: all.
    public private(set) var limit: Int?
    /// Leaves out so many at the beginning.
    public private(set) var offset = 0
    /// Only what stands strictly after this cursor's object.
    public private(set) var afterCursor: FetchCursor?
    /// Only what stands strictly before this cursor's object.
    public private(set) var beforeCursor: FetchCursor?
    /// Whether objects come as faults (the default) or with their values.
    public private(set) var returnsFaults = true
    /// Whether unsaved edits of the context count (the default).
    public private(set) var includesPendingChanges = true
    /// Relationships to fill together with the objects.
    public private(set) var prefetchPaths: [PrefetchPath] = []

    /// All objects of the entity.
    public init() {}

    /// All objects that match.
    public init(
        filter: TypedPredicate<Entity>,
        sort: [SortTerm<Entity>] = []
    ) {
        self.filter = filter
        self.sortTerms = sort
    }

    /// Only objects that match too; joined with the filter so far by `&&`.
    public func `where`(
        _ filter: (Entity.Columns) -> TypedPredicate<Entity>
    ) -> FetchDescriptor {
        var copy = self
        let added = filter(Entity.columns)
        copy.filter = self.filter.predicate == .always ? added : self.filter && added
        return copy
    }

    /// Only objects of which this attribute is true: `where { $0.isPinned }`.
    public func `where`(_ attribute: (Entity.Columns) -> Column<Entity, Bool>) -> FetchDescriptor {
        self.where { attribute($0) == true }
    }

    /// In this order, instead of the one so far.
    public func sorted(_ terms: (Entity.Columns) -> [SortTerm<Entity>]) -> FetchDescriptor {
        var copy = self
        copy.sortTerms = terms(Entity.columns)
        return copy
    }

    /// At most `count` objects.
    public func limit(_ count: Int?) -> FetchDescriptor {
        var copy = self
        copy.limit = count
        return copy
    }

    /// Without the first `count` objects.
    public func offset(_ count: Int) -> FetchDescriptor {
        var copy = self
        copy.offset = count
        return copy
    }

    /// Only what stands strictly after the cursor's object, whether or not it still exists.
    /// Nil: from the beginning.
    public func after(_ cursor: FetchCursor?) -> FetchDescriptor {
        var copy = self
        copy.afterCursor = cursor
        return copy
    }

    /// Only what stands strictly before the cursor's object; with a limit the objects nearest to
    /// it. Nil: up to the end.
    public func before(_ cursor: FetchCursor?) -> FetchDescriptor {
        var copy = self
        copy.beforeCursor = cursor
        return copy
    }

    /// Whether objects come as faults (the default) or with their values.
    public func returningFaults(_ returnsFaults: Bool) -> FetchDescriptor {
        var copy = self
        copy.returnsFaults = returnsFaults
        return copy
    }

    /// Whether unsaved edits of the context count (the default).
    public func includingPendingChanges(_ includes: Bool) -> FetchDescriptor {
        var copy = self
        copy.includesPendingChanges = includes
        return copy
    }

    /// Reads the objects that these relationships lead to in one pass per entity:
    /// `prefetch { ($0.picture, $0.tags) }`.
    public func prefetch(
        @PrefetchBuilder _ paths: (Entity.Columns) -> [PrefetchPath]
    ) -> FetchDescriptor {
        var copy = self
        copy.prefetchPaths += paths(Entity.columns)
        return copy
    }
}

extension FetchDescriptor {
    /// The order as the records layer has it.
    @inline(__always) var storedOrder: [VarveRecords.SortTerm] {
        if sortTerms.isEmpty { return [] }
        return sortTerms.map { VarveRecords.SortTerm($0.path, isDescending: $0.isDescending) }
    }
}

extension ManagedObject {
    /// A request for the objects that match.
    public static func `where`(
        _ filter: (Columns) -> TypedPredicate<Self>
    ) -> FetchDescriptor<Self> {
        FetchDescriptor(filter: filter(columns))
    }

    /// A request for the objects of which this attribute is true: `Note.where { $0.isPinned }`.
    public static func `where`(_ attribute: (Columns) -> Column<Self, Bool>) -> FetchDescriptor<
        Self
    > {
        FetchDescriptor(filter: attribute(columns) == true)
    }

    /// A request for all objects of the entity.
    public static var all: FetchDescriptor<Self> { FetchDescriptor() }
}
