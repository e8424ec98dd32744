// Random rows and requests for the tests of queries.

import VarveBase
import VarveTesting

@testable import VarveRecords

/// Random rows and requests, all from one seed.
struct QueryMaker {
    var random: SeededRandom
    /// Texts of few letters, so that prefixes and equal values are common; some longer than a key
    /// keeps.
    let words: [String] = [
        "", "a", "ab", "abc", "b", "ba", "Ä", "äb", "A", "AB", "a\u{0}b", "a\u{0}", "zz",
        "a\u{308}\u{323}b", "\u{1EAD}", "가", "が", "≠b",
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
            : words[Int.random(in: 0..<18, using: &random)]
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
            return Int.random(in: 0..<4, using: &random) == 0 ? .null : .date(date())
        case "isCapital": return .bool(Bool.random(using: &random))
        case "country":
            return Int.random(in: 0..<5, using: &random) == 0
                ? .null : .reference(countries.randomElement(using: &random) ?? ObjectID(1))
        default: preconditionFailure(name)
        }
    }

    /// Moments about the turns of years and the changes of clocks.
    mutating func date() -> Double {
        let around = [0, 31_536_000, 63_072_000, 7_088_400, 25_232_400, -31_622_400]
        switch Int.random(in: 0..<12, using: &random) {
        case 0:
            let none = [Double.nan, .infinity, -.infinity, 1e300, -1e17]
            return none.randomElement(using: &random) ?? 0
        case 1...4: return Double(Int.random(in: 0..<5, using: &random))
        default:
            return Double(around.randomElement(using: &random) ?? 0)
                + Double(Int.random(in: -30...30, using: &random)) * 1_800 + 0.5
        }
    }

    mutating func datePart() -> (PropertyPath, [Int64]) {
        let part = DatePart.allCases.randomElement(using: &random) ?? .year
        let zone = QueryClock.zones.randomElement(using: &random) ?? .utc
        let values: [Int64] =
            switch part {
            case .year: [1999, 2000, 2001, 2002, 2003, .min, .max, 0]
            case .month: [1, 3, 12]
            case .day: [1, 31, 25]
            case .weekday: [1, 2, 7]
            case .hour: [0, 1, 2, 23]
            case .minute: [0, 30]
            }
        return (PropertyPath(["founded"], part: .date(part, zone)), values)
    }

    mutating func folding() -> TextFolding {
        TextFolding(rawValue: [0, 0, 0, 1, 2, 3].randomElement(using: &random) ?? 0)
    }

    /// A range, sometimes empty or without bounds.
    mutating func range(_ next: (inout QueryMaker) -> StoredValue) -> ValueRange {
        let lower = Int.random(in: 0..<4, using: &random) == 0 ? nil : next(&self)
        let upper = Int.random(in: 0..<4, using: &random) == 0 ? nil : next(&self)
        return Bool.random(using: &random)
            ? ValueRange(from: lower, through: upper) : ValueRange(from: lower, upTo: upper)
    }

    mutating func datePredicate() -> Predicate {
        let (path, values) = datePart()
        func value(_ maker: inout QueryMaker) -> StoredValue {
            .int(values.randomElement(using: &maker.random) ?? 0)
        }
        switch Int.random(in: 0..<5, using: &random) {
        case 0: return .isIn(path, [value(&self), value(&self)])
        case 1: return .isWithin(path, range(value))
        case 2: return .compare(path, Bool.random(using: &random) ? .equal : .notEqual, .null)
        default: return .compare(path, comparison(), value(&self))
        }
    }

    /// A request inside a filter: of countries, or of cities themselves.
    mutating func requestPredicate(_ depth: Int) -> Predicate {
        let isCountry = Bool.random(using: &random)
        var request = InnerRequest(
            entity: isCountry ? "Country" : "City",
            predicate: isCountry
                ? .compare(PropertyPath("name"), comparison(), .text(text())) : predicate(depth)
        )
        if Bool.random(using: &random) {
            request.sort = isCountry ? [SortTerm("name", isDescending: true)] : sort()
            request.limit = Int.random(in: 0..<8, using: &random)
            request.offset = Int.random(in: 0..<3, using: &random)
        }
        return .isInRequest(isCountry ? PropertyPath("country") : .object, request)
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
        switch Int.random(in: 0..<(depth > 0 ? 19 : 12), using: &random) {
        case 0...3: return .compare(PropertyPath(name), comparison(), value(name))
        case 4:
            return .isIn(
                PropertyPath(name),
                // Long lists are asked in another way.
                (0..<[0, 1, 2, 3, 12, 25][Int.random(in: 0..<6, using: &random)]).map { _ in
                    value(name)
                }
            )
        case 5, 6:
            return .text(
                PropertyPath(Bool.random(using: &random) ? "name" : "note"),
                match(),
                text(),
                ignoring: folding()
            )
        case 7: return .compare(PropertyPath(["country", "name"]), comparison(), .text(text()))
        case 8: return .compareProperties(PropertyPath("name"), comparison(), PropertyPath("note"))
        case 9:
            return Bool.random(using: &random)
                ? .always : .compare(PropertyPath(name), .notEqual, .null)
        case 10: return datePredicate()
        case 11: return .isWithin(PropertyPath(name), range { $0.value(name) })
        case 12: return .not(predicate(depth - 1))
        case 13, 14:
            return .and(
                (0..<Int.random(in: 0..<4, using: &random)).map { _ in predicate(depth - 1) }
            )
        case 15:
            return .or(
                (0..<Int.random(in: 0..<4, using: &random)).map { _ in predicate(depth - 1) }
            )
        case 16:
            return requestPredicate(depth - 1)
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
            var path =
                name == "country" && Bool.random(using: &random)
                ? PropertyPath(["country", "name"]) : PropertyPath(name)
            if name == "founded", Bool.random(using: &random) { path = datePart().0 }
            return SortTerm(path, isDescending: all ? direction : Bool.random(using: &random))
        }
    }
}
