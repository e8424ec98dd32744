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
        case .text(let path, let match, let needle, let ignoringCase):
            guard case .text(let text) = value(path, city) else { return false }
            let hay = Array((ignoringCase ? text.lowercased() : text).utf8)
            let pin = Array((ignoringCase ? needle.lowercased() : needle).utf8)
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

/// Random rows and requests, all from one seed.
struct QueryMaker {
    var random: SeededRandom
    /// Texts of few letters, so that prefixes and equal values are common; some longer than a key
    /// keeps.
    let words: [String] = [
        "", "a", "ab", "abc", "b", "ba", "Ä", "äb", "A", "AB", "a\u{0}b", "a\u{0}", "zz",
        String(repeating: "x", count: 256), String(repeating: "x", count: 257),
        String(repeating: "x", count: 256) + "b", String(repeating: "x", count: 2_100),
        String(repeating: "x", count: 2_100) + "a",
    ]
    var countries: [ObjectID] = []
    var tags: [ObjectID] = []
    /// Whether long texts occur.
    var usesLongTexts = true

    mutating func text() -> String {
        usesLongTexts
            ? words.randomElement(using: &random) ?? ""
            : words[Int.random(in: 0..<13, using: &random)]
    }

    mutating func value(_ name: String) -> StoredValue {
        switch name {
        case "name": return .text(text())
        case "note": return Int.random(in: 0..<4, using: &random) == 0 ? .null : .text(text())
        case "population":
            return Int.random(in: 0..<5, using: &random) == 0
                ? .null : .int(Int64.random(in: -3...12, using: &random))
        case "latitude":
            return .double(
                [-0.0, 0, 1, -1, .nan, .infinity, -.infinity, 2.5].randomElement(using: &random)
                    ?? 0
            )
        case "founded":
            return Bool.random(using: &random)
                ? .null : .date(Double(Int.random(in: 0..<5, using: &random)))
        case "isCapital": return .bool(Bool.random(using: &random))
        case "country":
            return Int.random(in: 0..<5, using: &random) == 0
                ? .null : .reference(countries.randomElement(using: &random) ?? ObjectID(1))
        default: preconditionFailure(name)
        }
    }

    static let names = [
        "name", "note", "population", "latitude", "founded", "isCapital", "country",
    ]

    mutating func comparison() -> Comparison {
        let all: [Comparison] = [
            .equal, .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual,
        ]
        return all.randomElement(using: &random) ?? .equal
    }

    mutating func match() -> TextMatch {
        let all: [TextMatch] = [.hasPrefix, .hasPrefix, .hasSuffix, .contains, .equal]
        return all.randomElement(using: &random) ?? .equal
    }

    mutating func predicate(_ depth: Int = 3) -> Predicate {
        let name = Self.names.randomElement(using: &random) ?? "name"
        switch Int.random(in: 0..<(depth > 0 ? 16 : 10), using: &random) {
        case 0...3: return .compare(PropertyPath(name), comparison(), value(name))
        case 4:
            return .isIn(
                PropertyPath(name),
                (0..<Int.random(in: 0..<4, using: &random)).map { _ in value(name) }
            )
        case 5, 6:
            return .text(
                PropertyPath(Bool.random(using: &random) ? "name" : "note"),
                match(),
                text(),
                ignoringCase: Int.random(in: 0..<3, using: &random) == 0
            )
        case 7: return .compare(PropertyPath(["country", "name"]), comparison(), .text(text()))
        case 8: return .compareProperties(PropertyPath("name"), comparison(), PropertyPath("note"))
        case 9:
            return Bool.random(using: &random)
                ? .always : .compare(PropertyPath(name), .notEqual, .null)
        case 10: return .not(predicate(depth - 1))
        case 11, 12:
            return .and(
                (0..<Int.random(in: 0..<4, using: &random)).map { _ in predicate(depth - 1) }
            )
        case 13:
            return .or(
                (0..<Int.random(in: 0..<4, using: &random)).map { _ in predicate(depth - 1) }
            )
        default:
            let path = PropertyPath("tags")
            let test = Predicate.compare(PropertyPath("name"), comparison(), .text(text()))
            switch Int.random(in: 0..<3, using: &random) {
            case 0: return .any(path, test)
            case 1: return .all(path, test)
            default:
                return .count(path, Bool.random(using: &random) ? .always : test, comparison(), 1)
            }
        }
    }

    mutating func sort() -> [SortTerm] {
        var names = Self.names.shuffled(using: &random).prefix(
            Int.random(in: 0..<4, using: &random)
        )
        if Int.random(in: 0..<3, using: &random) == 0 {
            // What the indexes of the test's schema can serve.
            let served: [[String]] = [
                ["name"], ["population"], ["country", "population"], ["latitude", "name"], ["note"],
                ["isCapital", "population"],
            ]
            names = (served.randomElement(using: &random) ?? [])[...]
        }
        let all = Bool.random(using: &random)
        let direction = Bool.random(using: &random)
        return names.map { name in
            let path =
                name == "country" && Bool.random(using: &random)
                ? PropertyPath(["country", "name"]) : PropertyPath(name)
            return SortTerm(path, isDescending: all ? direction : Bool.random(using: &random))
        }
    }
}
