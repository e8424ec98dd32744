// A checked request: the records layer's query, and what the overlay of unsaved edits needs to
// know.

import VarveBase
import VarveRecords

/// A request joined with the container's numbers.
///
/// Not generic: code that copies values of a generic type asks for the type's description at run
/// time, which costs a small request more than the index does.
struct RequestPlan {
    let model: EntityModel
    /// As it was asked for: in `query` requests inside it may be answered.
    let filter: Predicate
    private(set) var query: RecordQuery
    let prefetch: [PrefetchNode]
    let prefetchPaths: [PrefetchPath]
    let returnsFaults: Bool
    let includesPendingChanges: Bool
    /// Whether filter or order look at other objects.
    let looksAtOthers: Bool

    init<Entity>(
        _ descriptor: FetchDescriptor<Entity>,
        in context: ManagedObjectContext
    ) throws(StoreError) {
        let model = try context.container.model(of: Entity.self)
        self.model = model
        returnsFaults = descriptor.returnsFaults
        includesPendingChanges = descriptor.includesPendingChanges
        prefetchPaths = descriptor.prefetchPaths
        guard descriptor.limit ?? 0 >= 0, descriptor.offset >= 0 else {
            throw StoreError(
                .invalidRequest,
                "limit and offset must not be negative",
                place: .init(entity: model.name)
            )
        }
        prefetch = try PrefetchNode.tree(
            of: prefetchPaths,
            Entity.self,
            model,
            context.container.schema
        )
        filter = descriptor.filter.predicate
        let terms = descriptor.storedOrder
        looksAtOthers =
            filter.looksAtOthers || terms.contains { $0.path.names.count > 1 }
        query = RecordQuery(
            entity: model.record.id,
            predicate: filter,
            sort: terms,
            limit: descriptor.limit,
            offset: descriptor.offset
        )
        if let cursor = descriptor.afterCursor { query.after = try place(cursor) }
        if let cursor = descriptor.beforeCursor { query.before = try place(cursor) }
    }

    /// Puts the objects of requests inside the filter in their place, unsaved edits counted.
    mutating func answer(
        _ context: ManagedObjectContext,
        _ snapshot: RecordSnapshot
    ) throws(RecordError) {
        query = try context.answered(query, snapshot)
    }

    /// The place of a cursor, which must be of this request.
    private func place(_ cursor: FetchCursor) throws(StoreError) -> KeysetPosition {
        // From the object itself on, terms of an order have no value in a place.
        let valued = query.sort.prefix { !$0.path.names.isEmpty }
        guard cursor.entity == model.name, cursor.fingerprint == fingerprint,
            cursor.position.values.count == valued.count
        else {
            throw StoreError(
                .invalidCursor,
                "the cursor belongs to another request",
                place: .init(entity: model.name),
                suggestion: "Use it with the filter and sort of the page that it came from."
            )
        }
        return cursor.position
    }

    /// Filter and order as a number that is the same in every process.
    var fingerprint: UInt64 {
        Self.fingerprint(filter, query.sort)
    }

    static func fingerprint(
        _ predicate: Predicate,
        _ sort: [VarveRecords.SortTerm]
    ) -> UInt64 {
        var hash = StableHash()
        predicate.feed(&hash)
        sort.feed(&hash)
        return hash.value
    }
}

extension [VarveRecords.SortTerm] {
    fileprivate func feed(_ hash: inout StableHash) {
        for term in self {
            term.path.feed(&hash)
            hash.combine(term.isDescending ? "descending" : "ascending")
        }
    }
}

extension InnerRequest {
    fileprivate func feed(_ hash: inout StableHash) {
        hash.combine("in the objects of")
        hash.combine(entity)
        predicate.feed(&hash)
        sort.feed(&hash)
        hash.combine("\(limit, default: "-") \(offset) \(includesEdits)")
        for place in [after, before] { hash.combine("\(place, default: "-")") }
    }
}

extension PropertyPath {
    fileprivate func feed(_ hash: inout StableHash) {
        for name in names { hash.combine(name) }
        switch part {
        case .value: hash.combine("value")
        case .blobLength: hash.combine("length")
        case .blobDigest: hash.combine("digest")
        case .date(let part, let zone):
            hash.combine(part.rawValue)
            hash.combine(zone.name)
        }
    }
}

extension Comparison {
    fileprivate var text: String {
        switch self {
        case .equal: "=="
        case .notEqual: "!="
        case .less: "<"
        case .lessOrEqual: "<="
        case .greater: ">"
        case .greaterOrEqual: ">="
        }
    }
}

extension Predicate {
    /// Whether the filter reaches other objects than the one it is asked about.
    var looksAtOthers: Bool {
        switch self {
        case .always, .never: false
        case .compare(let path, _, _), .isIn(let path, _), .isWithin(let path, _),
            .text(let path, _, _, _):
            path.names.count > 1
        case .compareProperties(let path, _, let other):
            path.names.count > 1 || other.names.count > 1
        case .not(let inner): inner.looksAtOthers
        case .and(let terms), .or(let terms): terms.contains(where: \.looksAtOthers)
        case .any, .all, .count, .isInRequest: true
        }
    }

    /// A term of a list of the same kind: how terms are grouped means nothing.
    private func feed(_ hash: inout StableHash, within isAnd: Bool) {
        switch self {
        case .and(let terms) where isAnd, .or(let terms) where !isAnd:
            for term in terms { term.feed(&hash, within: isAnd) }
        default: feed(&hash)
        }
    }

    fileprivate func feed(_ hash: inout StableHash) {
        switch self {
        case .always: hash.combine("always")
        case .never: hash.combine("never")
        case .compare(let path, let comparison, let value):
            path.feed(&hash)
            hash.combine(comparison.text)
            hash.combine("\(value)")
        case .compareProperties(let path, let comparison, let other):
            path.feed(&hash)
            hash.combine(comparison.text)
            other.feed(&hash)
        case .isIn(let path, let values):
            path.feed(&hash)
            hash.combine("in")
            for value in values { hash.combine("\(value)") }
        case .isInRequest(let path, let request):
            path.feed(&hash)
            request.feed(&hash)
        case .isWithin(let path, let range):
            path.feed(&hash)
            hash.combine(range.includesUpper ? "through" : "up to")
            hash.combine("\(range.lower, default: "-")")
            hash.combine("\(range.upper, default: "-")")
        case .text(let path, let match, let text, let folding):
            path.feed(&hash)
            hash.combine("\(match)")
            hash.combine(text)
            hash.combine(folding.contains(.caseDifferences) ? "ignoring case" : "exact")
            if folding.contains(.diacritics) { hash.combine("ignoring diacritics") }
        case .not(let inner):
            hash.combine("not")
            inner.feed(&hash)
        case .and(let terms), .or(let terms):
            let isAnd = if case .and = self { true } else { false }
            hash.combine(isAnd ? "and" : "or")
            for term in terms { term.feed(&hash, within: isAnd) }
            hash.combine("end")
        case .any(let path, let inner), .all(let path, let inner):
            if case .any = self { hash.combine("any") } else { hash.combine("all") }
            path.feed(&hash)
            inner.feed(&hash)
        case .count(let path, let inner, let comparison, let number):
            hash.combine("count")
            path.feed(&hash)
            inner.feed(&hash)
            hash.combine(comparison.text)
            hash.combine("\(number)")
        }
    }
}
