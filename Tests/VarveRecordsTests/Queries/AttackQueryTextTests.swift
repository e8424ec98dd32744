// Filters as text that only a hostile or unlucky writer makes: names that are literals, numbers
// that no type holds, and negations without end.

import Testing
import VarveBase

@testable import VarveRecords

@Suite(.verified) struct AttackQueryTextTests {
    private let entity: RecordEntity
    private let language: QueryText
    private static let names = [
        "nan", "inf", "infinity", "date", "data", "blob", "UUID", "true", "null", "and", "count",
        "in", "self", "id", "length", "year", "isIn", "e5", "0123456789abcdef0123456789abcdef",
        "deadbeefdeadbeefdeadbeefdeadbeef",
    ]

    init() throws {
        let types: [(String, AttributeType)] = [
            ("number", .double), ("text", .text), ("moment", .date), ("key", .uuid),
        ]
        let odd = EntityDescription(
            name: "Odd",
            attributes: types.flatMap { kind, type in
                [AttributeDescription(name: kind, type: type, isOptional: true)]
                    + Self.names.map {
                        AttributeDescription(
                            name: kind == "number" ? $0 : "\($0)\(kind)",
                            type: type,
                            isOptional: true
                        )
                    }
            } + [
                AttributeDescription(
                    name: "feedfeedfeedfeedfeedfeedfeedfeed",
                    type: .uuid,
                    isOptional: true
                )
            ]
        )
        let store = try Cities.store(SchemaDescription(version: 1, entities: [odd]))
        entity = try store.schema.require("Odd")
        language = QueryText(schema: try store.schema) { _ in nil }
    }

    @Test func `Names that look like literals are names`() throws {
        func check(_ left: String, _ right: String) throws {
            let filter = VarveRecords.Predicate.and([
                .compareProperties(PropertyPath(left), .equal, PropertyPath(right)),
                .compareProperties(PropertyPath(right), .less, PropertyPath(left)),
            ])
            let text = try language.text(of: filter, entity)
            #expect(try language.filter(text, of: entity) == filter, "\(text)")
        }
        for name in Self.names {
            try check("number", name)
            for kind in ["text", "moment", "key"] { try check(kind, "\(name)\(kind)") }
            let order = [SortTerm(PropertyPath(name), isDescending: true), SortTerm("text")]
            #expect(try language.order(language.text(of: order, entity), of: entity) == order)
        }
        try check("key", "feedfeedfeedfeedfeedfeedfeedfeed")
    }

    @Test func `Numbers that no type holds are refused`() throws {
        for text in [
            "number == 1e400", "number in [1, -1e309]", "number in 0...1e99999999999999999999",
            "moment == date(1e400)", "moment < date(-1e400)",
            "key == +123456789abcdef0123456789abcdef0", "text == \"\\u{+41}\"",
            "key == UUID(\"+123456789abcdef0123456789abcdef0\")",
        ] {
            #expect(throws: QueryTextError.self, "\(text)") {
                try language.filter(text, of: entity)
            }
        }
        for (text, value) in [
            ("inf", Double.infinity), ("-inf", -.infinity), ("1e308", 1e308), ("1e-400", 0),
            ("-0.0", -0.0), ("infinity", .infinity), ("1_000.5", 1_000.5),
        ] {
            #expect(
                try language.filter("number == \(text)", of: entity)
                    == .compare(PropertyPath("number"), .equal, .double(value)),
                "\(text)"
            )
        }
    }

    /// What is read can be asked.
    @Test func `Negations are counted, not nested`() throws {
        func negated(_ count: Int, _ depth: Int) -> String {
            let signs = String(repeating: "!", count: count)
            return String(repeating: signs + "(", count: depth) + "number == 1"
                + String(repeating: ")", count: depth)
        }
        for (count, depth) in [(64, 63), (63, 63), (2, 1), (1, 1), (3, 2)] {
            let filter = try language.filter(negated(count, depth), of: entity)
            _ = try CompiledPredicate(filter, entity: entity, schema: language.schema)
            let text = try language.text(of: filter, entity)
            #expect(try language.filter(text, of: entity) == filter)
        }
        let plain = try language.filter("number == 1", of: entity)
        #expect(try language.filter("!!(number == 1)", of: entity) == plain)
        #expect(try language.filter("! !!number == 1", of: entity) == .not(plain))
    }
}
