// The same values in columns with and without indexes: whatever is asked of one, the others answer
// the same, with every plan. Values stand at the ends of their types, of keys and of the calendar.

import Testing
import VarveBase
import VarveTesting

@testable import VarveRecords

@Suite(.verified) struct AttackTwinTests {
    private static let kinds: [(name: String, type: AttributeType)] = [
        ("date", .date), ("double", .double), ("float", .float), ("int", .int64), ("text", .text),
        ("data", .data), ("decimal", .decimal), ("uint", .uint64),
    ]
    /// An ascending index, a descending one, one behind another column, none.
    private static let twins = ["Up", "Down", "Second", "Plain"]

    /// Zones that no place on earth has, among them one that lies about its difference.
    private static let zones: [DateZone] = [
        .utc, DateZone("east") { _ in 86_400 }, DateZone("west") { _ in -86_400 },
        DateZone("far") { _ in .max }, DateZone("back") { _ in .min },
        DateZone("jumps") { $0 < 0 ? 50_000 : -50_000 },
    ]

    private static func schema() -> SchemaDescription {
        var attributes = [AttributeDescription(name: "group", type: .int64, isOptional: true)]
        var indexes = [IndexDescription("group")]
        for (name, type) in kinds {
            for twin in twins {
                attributes.append(
                    AttributeDescription(name: name + twin, type: type, isOptional: true)
                )
            }
            indexes.append(IndexDescription(name + "Up"))
            indexes.append(IndexDescription([.init(name + "Down", isDescending: true)]))
            indexes.append(IndexDescription([.init("group"), .init(name + "Second")]))
        }
        let twin = EntityDescription(name: "Twin", attributes: attributes, indexes: indexes)
        return SchemaDescription(version: 1, entities: [twin])
    }

    private var random: SeededRandom

    init() { random = SeededRandom(seed: 0) }

    private mutating func pick<Value>(_ values: [Value]) -> Value {
        values[Int.random(in: 0..<values.count, using: &random)]
    }

    private mutating func date() -> Double {
        let year = CivilDate(year: pick([-1, 0, 1, 1970, 2001, 2002, 9999]), month: 1, day: 1)
        let near = year.seconds + pick([-86_400, -50_000, -1, -0.5, 0, 0.5, 1, 50_000, 86_400])
        let far: [Double] = [
            .nan, .infinity, -.infinity, 1e13, -1e13, 1e13.nextUp, -1e13.nextDown, 1e300, 0, -0.0,
        ]
        return pick([near, near, near, pick(far)])
    }

    private mutating func value(_ type: AttributeType) -> StoredValue {
        if Int.random(in: 0..<8, using: &random) == 0 { return .null }
        let numbers: [Double] = [
            0, -0.0, .nan, -.nan, 1, -1, .infinity, -.infinity, .leastNonzeroMagnitude,
            .greatestFiniteMagnitude,
        ]
        switch type {
        case .date: return .date(date())
        case .double: return .double(pick(numbers))
        case .float: return .float(Float(pick(numbers)))
        case .text: return .text(text())
        case .data: return .data(Array(text().utf8))
        case .decimal:
            return .decimal(
                pick(["0", "1", "-1", "1e120", "-1e-100", "0.5", "10", "99.99"])
                    .decimal
            )
        default: return .int(pick([.min, .min + 1, -1, 0, 1, 2, .max - 1, .max]))
        }
    }

    private mutating func text() -> String {
        let begin = pick(["", "a", "b", "\u{0}", "a\u{0}", "ä", "\u{10FFFF}"])
        return begin + String(repeating: "x", count: pick([0, 0, 1, 255, 256, 257, 2_048, 2_049]))
            + pick(["", "", "y", "\u{0}"])
    }

    /// A filter of one column; `name` is put in for it.
    private mutating func filter(_ type: AttributeType) -> (String) -> VarveRecords.Predicate {
        let comparisons: [Comparison] = [
            .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual,
        ]
        let comparison = pick(comparisons)
        var part = PropertyPath.Part.value
        func bound(_ value: StoredValue) -> StoredValue? { value == .null ? nil : value }
        var (low, high, third) = (value(type), value(type), value(type))
        if type == .date, Bool.random(using: &random) {
            part = .date(pick([.year, .year, .year, .month, .weekday, .hour]), pick(Self.zones))
            let years: [Int64] = [
                .min, .max, -400_000, -400_001, 400_000, 400_001, -1, 0, 1, 1970, 2000, 2001, 9999,
            ]
            (low, high, third) = (.int(pick(years)), .int(pick(years)), .int(pick(years)))
        }
        let match = pick([TextMatch.hasPrefix, .hasSuffix, .contains, .equal])
        let folding = pick([TextFolding([]), [], .caseDifferences, .diacritics])
        let includesUpper = Bool.random(using: &random)
        let kind = Int.random(in: 0..<(type == .text ? 7 : 6), using: &random)
        let (withLow, withHigh) = (pick([true, true, false]), pick([true, true, false]))
        return { name in
            let path = PropertyPath([name], part: part)
            switch kind {
            case 0, 1: return .compare(path, comparison, low)
            case 2: return .isIn(path, [low, high, third, low])
            case 3, 4:
                let (first, last) = (withLow ? bound(low) : nil, withHigh ? bound(high) : nil)
                return .isWithin(
                    path,
                    includesUpper
                        ? ValueRange(from: first, through: last)
                        : ValueRange(from: first, upTo: last)
                )
            case 5:
                return .and([
                    .compare(path, .greaterOrEqual, low), .isIn(path, [low, high, third]),
                ])
            default:
                guard case .text(let text) = low else { return .compare(path, .equal, .null) }
                return .text(path, match, String(text.prefix(300)), ignoring: folding)
            }
        }
    }

    /// What a fetch gives, as many IDs as a count gives, and what each plan gives.
    private static func answers(
        _ query: RecordQuery,
        _ snapshot: RecordSnapshot
    ) throws -> [[ObjectID]] {
        var found = [try snapshot.fetchIDs(query)]
        found.append(Array(repeating: ObjectID(0), count: try snapshot.count(query)))
        let (planner, window) = try snapshot.reader.planner(query, needsOrder: true)
        var plans = try planner.candidates().map(\.plan)
        if let set = try planner.setCandidate() { plans.append(set.plan) }
        for plan in plans {
            found.append(try PlanExecutor(reader: snapshot.reader, plan: plan).ids(window))
        }
        return found
    }

    @Test(arguments: 0..<2 as Range<UInt64>)
    mutating func `An index changes no answer`(seed: UInt64) throws {
        random = SeededRandom(seed: seed)
        let store = try Cities.store(Self.schema())
        let twin = try store.schema.require("Twin")
        _ = try store.write { transaction in
            for _ in 0..<70 {
                var values: [(String, StoredValue)] = []
                values.append(("group", pick([.null, .int(0), .int(1)])))
                for (name, type) in Self.kinds {
                    let value = value(type)
                    for twin in Self.twins { values.append((name + twin, value)) }
                }
                try transaction.insert(twin.id, store.allocateObjectIDs(1), twin.values(values))
            }
        }
        let snapshot = try store.snapshot()
        for round in 0..<4 {
            for (name, type) in Self.kinds {
                let (one, two) = (filter(type), filter(type))
                let shape = Int.random(in: 0..<5, using: &random)
                let group = VarveRecords.Predicate.compare(PropertyPath("group"), .equal, .int(1))
                let isDescending = Bool.random(using: &random)
                let (limit, offset) = (pick([nil, 1, 5, .max]), pick([0, 0, 3, .max]))
                func ids(_ twin: String) throws -> [[ObjectID]] {
                    var query = try store.query("Twin")
                    let (first, second) = (one(name + twin), two(name + twin))
                    query.predicate =
                        switch shape {
                        case 0: first
                        case 1: .not(first)
                        case 2: .or([first, second])
                        case 3: .and([first, group])
                        default: .or([.and([first, group]), .and([second, .not(group)])])
                        }
                    query.sort = [SortTerm(name + twin, isDescending: isDescending)]
                    (query.limit, query.offset) = (limit, offset)
                    return try Self.answers(query, snapshot)
                }
                let plain = try #require(try ids("Plain").first)
                for twin in Self.twins {
                    let found = try ids(twin)
                    #expect(found[1].count == plain.count, "\(seed) \(round) \(name)\(twin)")
                    for (place, ids) in found.enumerated() where place != 1 {
                        #expect(
                            ids == plain,
                            "seed \(seed) \(round) plan \(place) \(one(name + twin)) \(shape)"
                        )
                    }
                }
            }
        }
    }
}

extension String {
    fileprivate var decimal: DecimalValue {
        QueryText.decimal(self) ?? DecimalValue(isNegative: false, exponent: 0, digits: [])
    }
}
