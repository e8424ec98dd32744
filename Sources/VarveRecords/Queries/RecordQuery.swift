// A request for objects of one entity: filter, order, window.
//
// Invariants
// - The order is total. Ties are broken by object ID, in the direction of the last sort term;
//   without sort terms the order is ascending object ID. So the exact reverse of a request is the
//   request with every direction turned round, and an index gives both by being read from either
//   end.

public import VarveBase

/// One step of an order.
public struct SortTerm: Hashable, Sendable {
    /// An attribute, a to-one relationship (orders by object ID), a path to one, or `.object`.
    /// Null is the lowest value, NaN the highest; text orders by the bytes of its UTF-8 form.
    public var path: PropertyPath
    /// Whether high values come first.
    public var isDescending: Bool

    /// Joins a path and a direction.
    public init(_ path: PropertyPath, isDescending: Bool = false) {
        self.path = path
        self.isDescending = isDescending
    }

    /// Orders by one property.
    public init(_ name: String, isDescending: Bool = false) {
        self.init(PropertyPath(name), isDescending: isDescending)
    }
}

/// A place in the order of a query: between the object that has these sort values and its
/// neighbours. The object itself need not exist any more.
public struct KeysetPosition: Hashable, Sendable {
    /// The object's value of each sort term, in order.
    public var values: [StoredValue]
    /// The object.
    public var object: ObjectID

    /// Joins sort values and an object.
    public init(values: [StoredValue], object: ObjectID) {
        self.values = values
        self.object = object
    }

    /// Whether both are the same place: values are compared by their bytes, as an order does it.
    public func isSame(as other: KeysetPosition) -> Bool {
        object == other.object && values.count == other.values.count
            && zip(values, other.values).allSatisfy { $0.isSame(as: $1) }
    }
}

/// A request for objects of one entity.
public struct RecordQuery: Hashable, Sendable {
    /// The entity asked about.
    public var entity: EntityID
    /// Which of its objects.
    public var predicate: Predicate
    /// Their order; see the rule about ties above.
    public var sort: [SortTerm]
    /// At most so many.
    public var limit: Int?
    /// Leaves out so many at the beginning.
    public var offset: Int
    /// Only what stands strictly after this place.
    public var after: KeysetPosition?
    /// Only what stands strictly before this place. With `limit`, the ones nearest to it, still in
    /// the query's order.
    public var before: KeysetPosition?

    /// Joins the parts of a request.
    public init(
        entity: EntityID,
        predicate: Predicate = .always,
        sort: [SortTerm] = [],
        limit: Int? = nil,
        offset: Int = 0,
        after: KeysetPosition? = nil,
        before: KeysetPosition? = nil
    ) {
        self.entity = entity
        self.predicate = predicate
        self.sort = sort
        self.limit = limit
        self.offset = offset
        self.after = after
        self.before = before
    }
}

extension RecordQuery {
    /// Cuts limit and offset out of a list that is in order and lies between the query's places: as
    /// every answer of a store does.
    public func cut(_ ids: [ObjectID]) -> [ObjectID] {
        FetchWindow(limit: limit, offset: offset, after: after, before: before).cut(ids)
    }
}
