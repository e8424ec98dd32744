// Filters and orders as text: what is read, what is refused and where, and the way back.

import Foundation
import Testing
import VarveBase
import VarveTesting

@testable import VarveRecords

@Suite(.verified) struct QueryTextTests {
    private let schema: RecordSchema
    private let city: RecordEntity
    private let language: QueryText

    init() throws {
        let store = try Cities.store()
        schema = try store.schema
        city = try schema.require("City")
        language = QueryText(schema: try store.schema) { name in
            QueryClock.zones.first { $0.name == name }
        }
    }

    // MARK: The way back

    /// Joins of no and of one term as what they mean.
    private func plain(_ predicate: VarveRecords.Predicate) -> VarveRecords.Predicate {
        switch predicate {
        case .and(let terms):
            terms.count == 1
                ? plain(terms[0]) : terms.isEmpty ? .always : .and(terms.map(plain))
        case .or(let terms):
            terms.count == 1
                ? plain(terms[0]) : terms.isEmpty ? .never : .or(terms.map(plain))
        case .not(let inner): .not(plain(inner))
        case .any(let path, let inner): .any(path, plain(inner))
        case .all(let path, let inner): .all(path, plain(inner))
        case .count(let path, let inner, let comparison, let number):
            .count(path, plain(inner), comparison, number)
        case .isInRequest(let path, let request):
            .isInRequest(path, plain(request))
        default: predicate
        }
    }

    private func plain(_ request: InnerRequest) -> InnerRequest {
        var request = request
        request.predicate = plain(request.predicate)
        return request
    }

    @Test(arguments: [true, false])
    func `What is printed is read as the same`(longTexts: Bool) throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("QueryTextTests seed \(seed)")
        var maker = QueryMaker(random: SeededRandom(seed: seed))
        maker.usesLongTexts = longTexts
        maker.countries = [ObjectID(7), ObjectID(8)]
        for _ in 0..<3_000 {
            let predicate = maker.predicate(4)
            let text = try language.text(of: predicate, city)
            guard text.utf8.count <= QueryText.lengthMax else { continue }
            let read = try language.filter(text, of: city)
            // Not `==`: NaN is no value that is equal to itself.
            #expect("\(read)" == "\(plain(predicate))", "seed \(seed) \(text)")
            #expect(try language.text(of: read, city) == text)
            let sort = maker.sort()
            let order = try language.text(of: sort, city)
            #expect(try language.order(order, of: city) == sort, "seed \(seed) \(order)")
        }
    }

    // MARK: What is read

    @Test func `Filters are read as they are in Swift`() throws {
        let name = PropertyPath("name")
        let population = PropertyPath("population")
        let tags = PropertyPath("tags")
        func text(_ match: TextMatch, _ folding: TextFolding = []) -> VarveRecords.Predicate {
            .text(name, match, "Ber", ignoring: folding)
        }
        let expected: [(String, VarveRecords.Predicate)] = [
            (
                #"country.name == "DE" && population > 100_000 && name.hasPrefix("Ber")"#,
                .and([
                    .compare(PropertyPath(["country", "name"]), .equal, .text("DE")),
                    .compare(population, .greater, .int(100_000)), text(.hasPrefix),
                ])
            ),
            (
                #"$0.isCapital || !$0.isCapital && not true"#,
                .or([
                    .compare(PropertyPath("isCapital"), .equal, .bool(true)),
                    .and([
                        .not(.compare(PropertyPath("isCapital"), .equal, .bool(true))),
                        .not(.always),
                    ]),
                ])
            ),
            (
                "population in 1...9",
                .isWithin(population, ValueRange(from: .int(1), through: .int(9)))
            ),
            (
                "population.isIn(-1..<9)",
                .isWithin(population, ValueRange(from: .int(-1), upTo: .int(9)))
            ),
            (
                "population in 1... and true",
                .and([
                    .isWithin(population, ValueRange(from: .int(1), through: nil)), .always,
                ])
            ),
            ("population in ..<9", .isWithin(population, ValueRange(from: nil, upTo: .int(9)))),
            ("population in [1, nil]", .isIn(population, [.int(1), .null])),
            ("population == nil", .compare(population, .equal, .null)),
            (
                "latitude in -1.5...1e3",
                .isWithin(
                    PropertyPath("latitude"),
                    ValueRange(from: .double(-1.5), through: .double(1000))
                )
            ),
            ("name == note", .compareProperties(name, .equal, PropertyPath("note"))),
            (
                "`name`.equals('Ber', ignoringCase: true, ignoringDiacritics: true)",
                text(.equal, [.caseDifferences, .diacritics])
            ),
            ("tags.any { name.contains(\"Ber\") }", .any(tags, text(.contains))),
            ("tags.none { true }", .not(.any(tags, .always))),
            (
                "tags.count { name != \"x\" } >= 2",
                .count(tags, .compare(name, .notEqual, .text("x")), .greaterOrEqual, 2)
            ),
            (
                "tags.count == 0 && tags.isEmpty",
                .and([.count(tags, .always, .equal, 0), .count(tags, .always, .equal, 0)])
            ),
            (
                "tags.contains(Tag:5)",
                .any(tags, .compare(.object, .equal, .reference(ObjectID(5))))
            ),
            (
                "country == Country/0-7 || id == City:1 || self == 2",
                .or([
                    .compare(PropertyPath("country"), .equal, .reference(ObjectID(7))),
                    .compare(.object, .equal, .reference(ObjectID(1))),
                    .compare(.object, .equal, .reference(ObjectID(2))),
                ])
            ),
            (
                "founded >= 2001-01-02",
                .compare(PropertyPath("founded"), .greaterOrEqual, .date(86_400))
            ),
            (
                "founded in 2001-01-01T00:00:10.5Z..<2001-01-02",
                .isWithin(
                    PropertyPath("founded"),
                    ValueRange(from: .date(10.5), upTo: .date(86_400))
                )
            ),
            (
                "founded.year(in: \"Europe/Berlin\") == 2024",
                .compare(
                    PropertyPath(["founded"], part: .date(.year, QueryClock.zones[0])),
                    .equal,
                    .int(2024)
                )
            ),
        ]
        for (text, predicate) in expected {
            #expect(try language.filter(text, of: city) == predicate, "\(text)")
        }
        #expect(
            try language.order("[$0.country.name.descending, -population, id.ascending]", of: city)
                == [
                    SortTerm(PropertyPath(["country", "name"]), isDescending: true),
                    SortTerm("population", isDescending: true), SortTerm(.object),
                ]
        )
        #expect(try language.order("", of: city) == [])
    }

    // MARK: What is refused

    @Test(arguments: [
        ("nam == 'x'", 0, "did you mean name?", "name"),
        ("name = 'x' & population == 1", 11, "expected &&, || or the end", "&&"),
        ("population == 'x'", 14, "a whole number", "nil"),
        ("population == 99999999999999999999", 14, "a whole number", "nil"),
        ("name == 'x", 8, "is not closed", ""),
        ("name == 'x\\q'", 10, "backslash", "\\n"),
        ("(name == 'x'", 12, "expected )", ")"),
        ("name", 4, "expected a comparison", "=="),
        ("name.hasPrefixx('x')", 5, "did you mean hasPrefix?", ".hasPrefix("),
        ("population.hasPrefix('x')", 11, "is no text", ".isIn("),
        ("tags == 1", 5, "leads to many", ".any {"),
        ("tags.any { population == 1 }", 11, "Tag has no population", "name"),
        ("country == City:1", 11, "Country:number", "Country:1"),
        ("founded == 2001-02-30", 11, "a date such as", "date(0)"),
        ("founded.year == 2001", 13, "expected (", "("),
        ("founded.year(in: 'Nowhere') == 2001", 17, "no time zone", "\"UTC\""),
        ("name == population", 0, "different types", ""),
        ("population in 5", 15, "a list in brackets", "["),
        ("true || ", 8, "expected the name", "name"),
        ("", 0, "expected the name", "name"),
        ("name == 'x'\n  && nope == 1", 17, "has no nope", "note"),
    ])
    func `An error tells the place`(text: String, offset: Int, message: String, possible: String) {
        do throws(QueryTextError) {
            _ = try language.filter(text, of: city)
            Issue.record("\(text) was read")
        } catch {
            #expect(error.offset == offset, "\(error)")
            #expect(error.message.contains(message), "\(error)")
            #expect(possible.isEmpty || error.possible.contains(possible), "\(error)")
            let lines = error.picture.split(separator: "\n", omittingEmptySubsequences: false)
            #expect(lines.count == 2 && lines[1].hasSuffix("^"))
        }
    }

    @Test func `A caret stands below its character`() {
        do throws(QueryTextError) {
            _ = try language.filter("name == 'ä\u{1b}€' &&\n  'é' == nope", of: city)
            Issue.record("read")
        } catch {
            #expect(error.picture == "  'é' == nope\n  ^")
        }
        let long =
            "name == '" + String(repeating: "x", count: 5_000) + "' && nope == 1 && "
            + String(repeating: "y", count: 5_000)
        do throws(QueryTextError) {
            _ = try language.filter(long, of: city)
            Issue.record("read")
        } catch {
            let lines = error.picture.split(separator: "\n")
            #expect(lines[0].count == 120 && lines[1].count == 61)
            #expect(lines[0].dropFirst(60).hasPrefix("nope"))
        }
    }

    @Test func `Hostile texts are refused`() {
        let deep = String(repeating: "(", count: 30_000)
        let braces = String(repeating: "tags.any{cities.any{", count: 3_000)
        let signs = String(repeating: "!", count: 60_000)
        for text in [
            deep, braces, signs, String(repeating: "a", count: 70_000), "`", "'", "\"\\", "\\u{",
            "name == '\\u{110000}'", "name == '\\u{", "$0", "$0.", "..", "name in ...", "-", "[",
            "population == -", "population == 1e400", "latitude == 1e", "founded == date(",
            "\u{0}", "name.", "name.hasPrefix(", "name.hasPrefix('x',", "tags.count", "country:",
            String(repeating: "\u{301}", count: 9_000), "population in [", "population in [1,",
        ] where text != "name in ..." {
            #expect(throws: QueryTextError.self) { try language.filter(text, of: city) }
        }
        let nested = String(repeating: "(", count: 64) + "true" + String(repeating: ")", count: 64)
        #expect(throws: Never.self) { try language.filter(nested, of: city) }
        #expect(throws: QueryTextError.self) { try language.filter("(\(nested))", of: city) }
    }

    @Test func `Broken filters are read or refused, never a trap`() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("QueryTextTests broken, seed \(seed)")
        var maker = QueryMaker(random: SeededRandom(seed: seed))
        maker.usesLongTexts = false
        maker.countries = [ObjectID(7)]
        let pieces = [
            "(", ")", "{", "}", "[", "]", "\"", "'", "`", ".", "..", "...", "..<", "!", "==", "&&",
            "||", "-", "$0.", "nil", "in", " ", "\u{301}", "\u{0}", "1e", "date(", "City:", "é",
        ]
        for _ in 0..<3_000 {
            var bytes = Array(try language.text(of: maker.predicate(3), city).utf8)
            for _ in 0..<Int.random(in: 1...3, using: &maker.random) {
                let place = Int.random(in: 0...bytes.count, using: &maker.random)
                let end = Int.random(
                    in: place...min(bytes.count, place + 6),
                    using: &maker.random
                )
                let piece = pieces.randomElement(using: &maker.random) ?? ""
                bytes.replaceSubrange(place..<end, with: Array(piece.utf8))
            }
            let text = String(decoding: bytes, as: UTF8.self)
            do throws(QueryTextError) {
                let read = try language.filter(text, of: city)
                let printed = try? language.text(of: read, city)
                #expect(printed != nil, "seed \(seed) \(text)")
            } catch {
                #expect(error.offset <= text.utf8.count && !error.description.isEmpty)
            }
        }
    }

    @Test func `Names that are no words are spelled in backticks`() throws {
        let odd = EntityDescription(
            name: "Odd one",
            attributes: [
                AttributeDescription(name: "a b", type: .int64),
                AttributeDescription(name: "a`b", type: .int64),
                AttributeDescription(name: "nil", type: .int64),
                AttributeDescription(name: "id", type: .int64),
                AttributeDescription(name: "größe", type: .int64),
            ],
            relationships: [RelationshipDescription(name: "self", target: "Odd one")]
        )
        let store = try Cities.store(SchemaDescription(version: 1, entities: [odd]))
        let entity = try store.schema.require("Odd one")
        let language = QueryText(schema: try store.schema) { _ in nil }
        for name in ["a b", "a`b", "nil", "id", "größe"] {
            for path in [PropertyPath(name), PropertyPath(["self", name])] {
                let predicate = VarveRecords.Predicate.or([
                    .compare(path, .less, .int(3)),
                    .compareProperties(PropertyPath("größe"), .equal, path),
                    .compare(PropertyPath("self"), .equal, .reference(ObjectID(1))),
                    .compare(.object, .equal, .reference(ObjectID(1))),
                ])
                let text = try language.text(of: predicate, entity)
                #expect(try language.filter(text, of: entity) == predicate, "\(text)")
            }
        }
        #expect(
            try language.filter("id == 3", of: entity)
                == .compare(PropertyPath("id"), .equal, .int(3))
        )
    }
}
