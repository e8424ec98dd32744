// Reading a filter: how terms are joined, and what is asked about a value.
//
// Invariants
// - Each test is compiled as soon as it is read, so that what cannot be asked is told at its place.
// - Recursion goes through `nested` alone, which bounds it.

import VarveBase

/// Reads one text.
struct QueryParser {
    let language: QueryText
    var scanner: QueryScanner
    private var depth = 0

    init(_ text: String, _ language: QueryText) throws(QueryTextError) {
        self.language = language
        scanner = try QueryScanner(text)
    }

    func expectEnd(_ possible: [String]) throws(QueryTextError) {
        var rest = scanner
        rest.skipSpaces()
        if rest.isAtEnd { return }
        throw rest.error(
            "expected \(possible.joined(separator: ", ")) or the end",
            possible: possible
        )
    }

    mutating func nested<Result>(
        at start: Int,
        _ body: (inout QueryParser) throws(QueryTextError) -> Result
    ) throws(QueryTextError) -> Result {
        depth += 1
        defer { depth -= 1 }
        if depth > QueryText.depthMax {
            throw scanner.error("it is nested deeper than \(QueryText.depthMax)", at: start)
        }
        return try body(&self)
    }

    // MARK: Joins

    mutating func filter(_ entity: RecordEntity) throws(QueryTextError) -> Predicate {
        var branches: [Predicate] = []
        repeat {
            var terms: [Predicate] = []
            repeat { terms.append(try term(entity)) } while takeAnd()
            branches.append(terms.count == 1 ? terms[0] : .and(terms))
        } while takeOr()
        return branches.count == 1 ? branches[0] : .or(branches)
    }

    private mutating func takeAnd() -> Bool { scanner.take("&&") || scanner.take(word: "and") }
    private mutating func takeOr() -> Bool { scanner.take("||") || scanner.take(word: "or") }

    private mutating func term(_ entity: RecordEntity) throws(QueryTextError) -> Predicate {
        var negations = 0
        while scanner.take("!") || scanner.take(word: "not") {
            negations += 1
            if negations > QueryText.depthMax {
                throw scanner.error("it is negated more often than \(QueryText.depthMax) times")
            }
        }
        // Twice is as if never: a filter is no deeper than its parentheses.
        let term = try plainTerm(entity)
        return negations.isMultiple(of: 2) ? term : .not(term)
    }

    private mutating func plainTerm(_ entity: RecordEntity) throws(QueryTextError) -> Predicate {
        let start = scanner.place
        if scanner.take("(") {
            return try nested(at: start) { (parser) throws(QueryTextError) in
                let inner = try parser.filter(entity)
                try parser.scanner.expect(")", "after what stands in parentheses")
                return inner
            }
        }
        if scanner.take(word: "true") { return .always }
        if scanner.take(word: "false") { return .never }
        return try test(entity)
    }

    /// A filter in braces, about the objects of a relationship.
    mutating func braced(_ entity: RecordEntity) throws(QueryTextError) -> Predicate {
        let start = scanner.place
        try scanner.expect("{", "and a filter of \(entity.name)")
        return try nested(at: start) { (parser) throws(QueryTextError) in
            let inner = try parser.filter(entity)
            try parser.scanner.expect("}", "after the filter of \(entity.name)")
            return inner
        }
    }

    // MARK: Tests

    private mutating func test(_ entity: RecordEntity) throws(QueryTextError) -> Predicate {
        scanner.skipSpaces()
        let start = scanner.place
        let operand = try operand(entity)
        let test: Predicate
        switch operand {
        case .value(let value): test = try valueTest(value, entity)
        case .many(let many): test = try manyTest(many)
        }
        // Tests of other objects have been compiled as they were read.
        switch test {
        case .any, .all, .count, .not, .isInRequest: break
        default:
            do throws(RecordError) {
                _ = try CompiledPredicate(test, entity: entity, schema: language.schema)
            } catch {
                throw scanner.error(Self.reason(error), at: start)
            }
        }
        return test
    }

    static func reason(_ error: RecordError) -> String {
        if case .unsupportedPredicate(let reason) = error { return reason }
        return "\(error)"
    }

    static let comparisons: [(StaticString, Comparison)] = [
        ("==", .equal), ("!=", .notEqual), ("<=", .lessOrEqual), (">=", .greaterOrEqual),
        ("<", .less), (">", .greater), ("=", .equal),
    ]

    private mutating func takeComparison() -> Comparison? {
        for (sign, comparison) in Self.comparisons where scanner.take(sign) { return comparison }
        return nil
    }

    private mutating func valueTest(
        _ value: QueryValue,
        _ entity: RecordEntity
    ) throws(QueryTextError) -> Predicate {
        if scanner.take(".") { return try method(value) }
        if let comparison = takeComparison() {
            scanner.skipSpaces()
            if let other = try otherValue(value, entity) {
                return .compareProperties(value.path, comparison, other)
            }
            return .compare(value.path, comparison, try literal(value))
        }
        if scanner.take(word: "in") {
            scanner.skipSpaces()
            return try listOrRange(value)
        }
        if case .attribute(.bool) = value.kind { return .compare(value.path, .equal, .bool(true)) }
        scanner.skipSpaces()
        throw scanner.error(
            "expected a comparison of \(value.text)",
            possible: Self.comparisons.dropLast().map { "\($0.0)" } + ["in"] + methods(of: value)
        )
    }

    private func methods(of value: QueryValue) -> [String] {
        [".isIn("] + (value.isText ? Self.matches.map { ".\($0.0)(" } : [])
    }

    private static let matches: [(String, TextMatch)] = [
        ("hasPrefix", .hasPrefix), ("hasSuffix", .hasSuffix), ("contains", .contains),
        ("equals", .equal),
    ]

    /// What follows the point behind a value.
    private mutating func method(_ value: QueryValue) throws(QueryTextError) -> Predicate {
        scanner.skipSpaces()
        let start = scanner.place
        let name = scanner.peekWord() ?? ""
        scanner.move(to: start + name.utf8.count)
        if name == "isIn" {
            try scanner.expect("(", "after isIn")
            scanner.skipSpaces()
            let test = try listOrRange(value)
            try scanner.expect(")", "after the values")
            return test
        }
        let possible = methods(of: value)
        guard let (_, match) = Self.matches.first(where: { $0.0 == name }) else {
            let meant = NameDistance.nearest(to: name, among: ["isIn"] + Self.matches.map(\.0))
            throw scanner.error(
                "\(value.text) has no \(name.isEmpty ? "such part" : name)"
                    + (meant.map { "; did you mean \($0)?" } ?? ""),
                at: start,
                possible: possible
            )
        }
        guard value.isText else {
            throw scanner.error("\(value.text) is no text", at: start, possible: possible)
        }
        try scanner.expect("(", "after \(name)")
        scanner.skipSpaces()
        guard let text = try scanner.takeQuoted() else {
            throw scanner.error("expected a text in quotes", possible: ["\"text\""])
        }
        let folding = try textOptions()
        try scanner.expect(")", "after the text")
        return .text(value.path, match, text, ignoring: folding)
    }

    /// `, ignoringCase: true` and its like.
    private mutating func textOptions() throws(QueryTextError) -> TextFolding {
        var folding: TextFolding = []
        while scanner.take(",") {
            let options: [(String, TextFolding)] = [
                ("ignoringCase", .caseDifferences), ("ignoringDiacritics", .diacritics),
            ]
            guard let option = options.first(where: { scanner.take(word: $0.0) }) else {
                scanner.skipSpaces()
                throw scanner.error("expected an option", possible: options.map { "\($0.0): true" })
            }
            try scanner.expect(":", "after \(option.0)")
            if scanner.take(word: "true") {
                folding.insert(option.1)
            } else if !scanner.take(word: "false") {
                scanner.skipSpaces()
                throw scanner.error("expected true or false", possible: ["true", "false"])
            }
        }
        return folding
    }

    private mutating func manyTest(_ many: QueryMany) throws(QueryTextError) -> Predicate {
        let possible = ["any {", "all {", "none {", "count", "contains(", "isEmpty"]
        guard scanner.take(".") else {
            scanner.skipSpaces()
            throw scanner.error(
                "\(many.text) leads to many objects: ask for \(many.text).any { } or .count",
                possible: possible.map { ".\($0)" }
            )
        }
        scanner.skipSpaces()
        let start = scanner.place
        let name = scanner.peekWord() ?? ""
        scanner.move(to: start + name.utf8.count)
        switch name {
        case "any": return .any(many.path, try braced(many.target))
        case "all": return .all(many.path, try braced(many.target))
        case "none": return .not(.any(many.path, try braced(many.target)))
        case "isEmpty": return .count(many.path, .always, .equal, 0)
        case "contains":
            try scanner.expect("(", "after contains")
            scanner.skipSpaces()
            let object = QueryValue(
                path: .object,
                kind: .reference(many.target),
                text: many.text
            )
            let id = try literal(object)
            try scanner.expect(")", "after the object")
            return .any(many.path, .compare(.object, .equal, id))
        case "count":
            return try countTest(many)
        default:
            throw scanner.error(
                "\(many.text) leads to many objects and has no \(name.isEmpty ? "such part" : name)"
                    + "; ask for \(many.text).any { } or .count",
                at: start,
                possible: possible
            )
        }
    }

    private mutating func countTest(_ many: QueryMany) throws(QueryTextError) -> Predicate {
        var rest = scanner
        let hasFilter = rest.take("{")
        let filter = hasFilter ? try braced(many.target) : .always
        guard let comparison = takeComparison() else {
            scanner.skipSpaces()
            throw scanner.error(
                "expected a comparison of the count",
                possible: Self.comparisons.dropLast().map { "\($0.0)" }
            )
        }
        scanner.skipSpaces()
        let place = scanner.place
        guard let digits = scanner.takeNumber(), let number = Int(digits) else {
            throw scanner.error(
                "\(many.text) is compared with a number",
                at: place,
                possible: ["0", "1"]
            )
        }
        return .count(many.path, filter, comparison, number)
    }

    // MARK: Orders

    mutating func order(_ entity: RecordEntity) throws(QueryTextError) -> [SortTerm] {
        let terms = try steps(entity, end: "")
        try expectEnd([","])
        return terms
    }

    /// The steps of an order up to a sign that ends it.
    mutating func steps(
        _ entity: RecordEntity,
        end: StaticString
    ) throws(QueryTextError) -> [SortTerm] {
        var terms: [SortTerm] = []
        let isBracketed = scanner.take("[")
        scanner.skipSpaces()
        let isEmpty =
            scanner.isAtEnd || scanner.sees("]") || (!"\(end)".isEmpty && scanner.sees(end))
        if !isEmpty { repeat { terms.append(try step(entity)) } while scanner.take(",") }
        if isBracketed { try scanner.expect("]", "after the order") }
        return terms
    }

    private mutating func step(_ entity: RecordEntity) throws(QueryTextError) -> SortTerm {
        var isDescending = scanner.take("-")
        scanner.skipSpaces()
        let start = scanner.place
        guard case .value(let value) = try operand(entity) else {
            throw scanner.error("many objects have no one place in an order", at: start)
        }
        if scanner.take(".") {
            let directions = ["ascending", "descending"]
            guard let word = directions.first(where: { scanner.take(word: $0) }) else {
                scanner.skipSpaces()
                throw scanner.error("expected ascending or descending", possible: directions)
            }
            if word == "descending" { isDescending.toggle() }
        }
        let term = SortTerm(value.path, isDescending: isDescending)
        do throws(RecordError) {
            _ = try CompiledSort([term], entity: entity, schema: language.schema)
        } catch {
            throw scanner.error(Self.reason(error), at: start)
        }
        return term
    }
}
