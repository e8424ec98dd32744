// Requests inside filters: "the folder is one of those that another request gives".
//
// Invariants
// - A request inside a filter is answered once, before the filter is compiled, by its own plan;
//   what it gives takes its place as a list of objects. The compiler never meets one.

public import VarveBase

/// A request whose objects a filter asks about. By names, so that a filter needs no schema.
public struct InnerRequest: Hashable, Sendable {
    /// The entity asked about.
    public var entity: String
    /// Which of its objects.
    public var predicate: Predicate
    /// Their order, which says what limit and offset leave.
    public var sort: [SortTerm]
    /// At most so many.
    public var limit: Int?
    /// Leaves out so many at the beginning.
    public var offset: Int
    /// Only what stands strictly after this place.
    public var after: KeysetPosition?
    /// Only what stands strictly before this place.
    public var before: KeysetPosition?
    /// Whether unsaved edits count, where edits of the outer request do.
    public var includesEdits: Bool

    /// All objects of an entity, or those that pass a filter.
    /// - Parameters:
    ///   - entity: the entity's name.
    ///   - predicate: which of its objects.
    public init(entity: String, predicate: Predicate = .always) {
        (self.entity, self.predicate) = (entity, predicate)
        (sort, limit, offset, after, before, includesEdits) = ([], nil, 0, nil, nil, true)
    }

    /// The request with the entity's number.
    /// - Throws: `unknownEntity`.
    public func query(_ schema: RecordSchema) throws(RecordError) -> RecordQuery {
        guard let entity = schema.entity(named: entity) else { throw .unknownEntity(entity) }
        return RecordQuery(
            entity: entity.id,
            predicate: predicate,
            sort: sort,
            limit: limit,
            offset: offset,
            after: after,
            before: before
        )
    }
}

extension Predicate {
    /// Deeper filters are refused when they are compiled; here they are passed on as they are.
    private static var depthMax: Int { PredicateCompiler.depthMax }

    /// Whether there is a request inside the filter.
    public var hasRequests: Bool { hasRequests(0) }

    private func hasRequests(_ depth: Int) -> Bool {
        if depth > Self.depthMax { return false }
        switch self {
        case .always, .never, .compare, .compareProperties, .isIn, .isWithin, .text: return false
        case .isInRequest: return true
        case .not(let inner), .any(_, let inner), .all(_, let inner), .count(_, let inner, _, _):
            return inner.hasRequests(depth + 1)
        case .and(let terms), .or(let terms):
            for index in terms.indices where terms[index].hasRequests(depth + 1) { return true }
            return false
        }
    }

    /// Calls `body` with each request inside the filter, but not with those inside such a request.
    public func eachRequest(_ body: (InnerRequest) -> Void) {
        eachRequest(0, body)
    }

    private func eachRequest(_ depth: Int, _ body: (InnerRequest) -> Void) {
        if depth > Self.depthMax { return }
        switch self {
        case .isInRequest(_, let request): body(request)
        case .not(let inner), .any(_, let inner), .all(_, let inner), .count(_, let inner, _, _):
            inner.eachRequest(depth + 1, body)
        case .and(let terms), .or(let terms):
            for term in terms { term.eachRequest(depth + 1, body) }
        case .always, .never, .compare, .compareProperties, .isIn, .isWithin, .text: break
        }
    }

    /// The filter with the objects of each request in its place. Each request is answered once.
    /// - Parameter answer: gives the objects of a request.
    /// - Throws: what `answer` throws.
    public func answeringRequests(
        _ answer: (InnerRequest) throws(RecordError) -> [ObjectID]
    ) throws(RecordError) -> Predicate {
        guard hasRequests else { return self }
        var known: [InnerRequest: [StoredValue]] = [:]
        return try answered(0) { (request) throws(RecordError) in
            if let values = known[request] { return values }
            let values = try answer(request).map { StoredValue.reference($0) }
            known[request] = values
            return values
        }
    }

    private func answered(
        _ depth: Int,
        _ answer: (InnerRequest) throws(RecordError) -> [StoredValue]
    ) throws(RecordError) -> Predicate {
        if depth > Self.depthMax { return self }
        func each(_ terms: [Predicate]) throws(RecordError) -> [Predicate] {
            var result: [Predicate] = []
            for term in terms { result.append(try term.answered(depth + 1, answer)) }
            return result
        }
        switch self {
        case .isInRequest(let path, let request): return .isIn(path, try answer(request))
        case .not(let inner): return .not(try inner.answered(depth + 1, answer))
        case .and(let terms): return .and(try each(terms))
        case .or(let terms): return .or(try each(terms))
        case .any(let path, let inner): return .any(path, try inner.answered(depth + 1, answer))
        case .all(let path, let inner): return .all(path, try inner.answered(depth + 1, answer))
        case .count(let path, let inner, let comparison, let number):
            return .count(path, try inner.answered(depth + 1, answer), comparison, number)
        case .always, .never, .compare, .compareProperties, .isIn, .isWithin, .text: return self
        }
    }
}

extension RecordSnapshot {
    /// A query with the objects of the requests inside its filter in their place.
    /// - Throws: what a fetch of them throws.
    public func answered(_ query: RecordQuery) throws(RecordError) -> RecordQuery {
        var query = query
        query.predicate = try reader.answered(query.predicate)
        return query
    }
}

extension RecordReader {
    /// Requests inside requests inside requests: no further.
    private static var nestingMax: Int { 16 }

    /// A filter with the requests inside it answered by this commit.
    func answered(
        _ predicate: Predicate,
        nesting: Int = 0
    ) throws(RecordError) -> Predicate {
        try predicate.answeringRequests { (request) throws(RecordError) in
            if nesting >= Self.nestingMax {
                throw .unsupportedPredicate("requests are nested deeper than \(Self.nestingMax)")
            }
            var query = try request.query(schema)
            query.predicate = try answered(query.predicate, nesting: nesting + 1)
            return try fetchIDs(query)
        }
    }
}
