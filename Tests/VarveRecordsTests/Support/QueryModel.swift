// A second, simple answer to requests: lists of dictionaries, no index, no bytes.

import VarveBase
import VarveTesting

@testable import VarveRecords

/// Objects as dictionaries, and the semantics of filters and orders written down a second time.
struct QueryModel {
    struct Object {
        var id: ObjectID
        var values: [String: StoredValue] = [:]
        var country: ObjectID?
        var tags: Set<ObjectID> = []
    }

    var cities: [ObjectID: Object] = [:]
    var countries: [ObjectID: Object] = [:]
    var tags: [ObjectID: Object] = [:]
    private let answers = InnerAnswers()

    // MARK: Values

    /// A number that orders values of one kind, or nil for null.
    static func order(_ left: StoredValue, _ right: StoredValue) -> Int {
        func sign<Value: Comparable>(_ a: Value, _ b: Value) -> Int { a < b ? -1 : (a > b ? 1 : 0) }
        func number(_ a: Double, _ b: Double) -> Int {
            if a.isNaN || b.isNaN { return sign(a.isNaN ? 1 : 0, b.isNaN ? 1 : 0) }
            return sign(a, b)
        }
        switch (left, right) {
        case (.null, .null): return 0
        case (.null, _): return -1
        case (_, .null): return 1
        case (.bool(let a), .bool(let b)): return sign(a ? 1 : 0, b ? 1 : 0)
        case (.int(let a), .int(let b)): return sign(a, b)
        case (.double(let a), .double(let b)), (.date(let a), .date(let b)): return number(a, b)
        case (.text(let a), .text(let b)):
            return Array(a.utf8).lexicographicallyPrecedes(Array(b.utf8))
                ? -1 : (Array(a.utf8) == Array(b.utf8) ? 0 : 1)
        case (.reference(let a), .reference(let b)): return sign(a, b)
        default: preconditionFailure("values of two kinds")
        }
    }

    func value(_ path: PropertyPath, _ city: Object) -> StoredValue {
        if case .date(let part, let zone) = path.part {
            return QueryClock.part(part, zone, city.values[path.names[0]] ?? .null)
        }
        switch path.names {
        case []: return .reference(city.id)
        case ["country"]: return city.country.map { .reference($0) } ?? .null
        case ["country", "name"]:
            return city.country.flatMap { countries[$0] }?.values["name"] ?? .null
        default: return city.values[path.names[0]] ?? .null
        }
    }

    private static func holds(_ comparison: Comparison, _ left: StoredValue, _ right: StoredValue)
        -> Bool
    {
        let isNull = left == .null || right == .null
        let order = order(left, right)
        switch comparison {
        case .equal: return order == 0
        case .notEqual: return order != 0
        case .less: return !isNull && order < 0
        case .lessOrEqual: return !isNull && order <= 0
        case .greater: return !isNull && order > 0
        case .greaterOrEqual: return !isNull && order >= 0
        }
    }

    func matches(_ predicate: Predicate, _ city: Object) -> Bool {
        switch predicate {
        case .always: return true
        case .never: return false
        case .compare(let path, let comparison, let constant):
            return Self.holds(comparison, value(path, city), constant)
        case .compareProperties(let left, let comparison, let right):
            return Self.holds(comparison, value(left, city), value(right, city))
        case .isIn(let path, let list):
            return list.contains { Self.order(value(path, city), $0) == 0 }
        case .isInRequest(let path, let request):
            guard case .reference(let id) = value(path, city) else { return false }
            return inner(request).contains(id)
        case .isWithin(let path, let range):
            let value = value(path, city)
            if value == .null || range.lower == .null || range.upper == .null { return false }
            if let lower = range.lower, Self.order(value, lower) < 0 { return false }
            guard let upper = range.upper else { return true }
            return Self.order(value, upper) < (range.includesUpper ? 1 : 0)
        case .text(let path, let match, let needle, let folding):
            guard case .text(let text) = value(path, city) else { return false }
            let hay = Array(QueryFolding.folded(text, folding).utf8)
            let pin = Array(QueryFolding.folded(needle, folding).utf8)
            switch match {
            case .equal: return hay == pin
            case .hasPrefix: return hay.starts(with: pin)
            case .hasSuffix: return hay.count >= pin.count && Array(hay.suffix(pin.count)) == pin
            case .contains:
                return pin.isEmpty
                    || hay.indices.contains { hay[$0...].starts(with: pin) }
            }
        case .not(let inner): return !matches(inner, city)
        case .and(let all): return all.allSatisfy { matches($0, city) }
        case .or(let all): return all.contains { matches($0, city) }
        case .any(_, let test): return members(city, test) > 0
        case .all(_, let test): return members(city, test) == city.tags.count
        case .count(_, let test, let comparison, let number):
            return Self.holds(comparison, .int(Int64(members(city, test))), .int(Int64(number)))
        }
    }

    /// The objects of a request inside a filter: the same for all rows of a fetch.
    private func inner(_ request: InnerRequest) -> [ObjectID] {
        if let known = answers.find(request) { return known }
        let answer = answered(request)
        answers.note(request, answer)
        return answer
    }

    private func answered(_ request: InnerRequest) -> [ObjectID] {
        let all = ["City": cities, "Country": countries, "Tag": tags][request.entity] ?? [:]
        var found = all.values.filter { matches(request.predicate, $0) }
        found.sort { precedes(request.sort, $0, $1) }
        return found.dropFirst(request.offset).prefix(request.limit ?? Int.max).map(\.id)
    }

    private func members(_ city: Object, _ test: Predicate) -> Int {
        city.tags.count { id in tags[id].map { matches(test, $0) } ?? false }
    }

    // MARK: Requests

    func precedes(_ sort: [SortTerm], _ left: Object, _ right: Object) -> Bool {
        for term in sort {
            let order = Self.order(value(term.path, left), value(term.path, right))
            if order != 0 { return term.isDescending ? order > 0 : order < 0 }
        }
        return sort.last?.isDescending ?? false ? right.id < left.id : left.id < right.id
    }

    func fetch(_ query: RecordQuery, after: Object? = nil, before: Object? = nil) -> [ObjectID] {
        answers.begin()
        defer { answers.end() }
        var found = cities.values.filter { matches(query.predicate, $0) }
        found.sort { precedes(query.sort, $0, $1) }
        if let after { found.removeAll { !precedes(query.sort, after, $0) } }
        if let before { found.removeAll { !precedes(query.sort, $0, before) } }
        let ids = found.map(\.id)
        if before != nil, after == nil, query.limit != nil || query.offset > 0 {
            return Array(ids.dropLast(query.offset).suffix(query.limit ?? ids.count))
        }
        return Array(ids.dropFirst(query.offset).prefix(query.limit ?? ids.count))
    }
}

/// What the requests inside a filter gave, while one fetch goes through its rows: answered again
/// for each row they cost its square.
private final class InnerAnswers {
    private var known: [(request: InnerRequest, answer: [ObjectID])] = []
    private var isOn = false

    func begin() { isOn = true }

    func end() {
        isOn = false
        known = []
    }

    func find(_ request: InnerRequest) -> [ObjectID]? {
        known.first { $0.request == request }?.answer
    }

    func note(_ request: InnerRequest, _ answer: [ObjectID]) {
        if isOn { known.append((request, answer)) }
    }
}
