// The filter of `rows --where`: comparisons joined by "&&".
//
//   filter     = comparison { "&&" comparison }
//   comparison = path operator literal
//   path       = name { "." name }      "id" is the object itself; "tags.count", "data.length"
//   operator   = == = != < <= > >= CONTAINS BEGINSWITH ENDSWITH
//                the last three with [c] to ignore case
//   literal    = number, "text" or 'text', true, false, null, a date, Entity:number
//
// A literal is read as the type of its attribute, so that dates and UUIDs need no quotes.

import VarveBase
import VarveRecords

/// A filter that was read.
struct RowFilter {
    /// What it asks for.
    let predicate: Predicate

    /// Reads a filter over the rows of an entity.
    ///
    /// - Throws: `badRequest` that says where it stopped, and what was probably meant.
    init(_ text: String, entity: RecordEntity, observer: StoreObserver) throws(InspectionError) {
        var tokens = try Tokens(text)
        var terms: [Predicate] = []
        repeat {
            terms.append(try Self.comparison(&tokens, entity, observer))
        } while tokens.takeAnd()
        guard tokens.isAtEnd else {
            throw tokens.error("expected && or the end")
        }
        predicate = terms.count == 1 ? terms[0] : .and(terms)
    }

    // MARK: Paths

    /// A property, and what its values are.
    struct Path {
        enum Kind {
            case attribute(AttributeType)
            case reference(EntityID)
            case length
            case count
        }
        var path: PropertyPath
        var kind: Kind
    }

    static func path(
        _ text: String,
        entity: RecordEntity,
        observer: StoreObserver
    ) throws(InspectionError) -> Path {
        let names = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        var entity = entity
        for (index, name) in names.enumerated() {
            let isLast = index == names.count - 1
            let rest = names[(index + 1)...]
            if let attribute = entity.attribute(named: name) {
                if isLast {
                    return Path(path: PropertyPath(names), kind: .attribute(attribute.type))
                }
                if attribute.type == .blob, Array(rest) == ["length"] {
                    let path = PropertyPath(Array(names[...index]), part: .blobLength)
                    return Path(path: path, kind: .length)
                }
                throw InspectionError(
                    .badRequest,
                    "\(entity.name).\(name) is \(attribute.type): nothing can follow it"
                )
            }
            guard let relationship = entity.relationship(named: name) else {
                if name == "id", isLast {
                    let path =
                        index == 0 ? PropertyPath.object : PropertyPath(Array(names[..<index]))
                    return Path(path: path, kind: .reference(entity.id))
                }
                throw observer.unknownProperty(
                    name,
                    entity,
                    among: entity.attributes.map(\.name) + entity.relationships.map(\.name) + ["id"]
                )
            }
            if relationship.isToMany {
                guard Array(rest) == ["count"] else {
                    throw InspectionError(
                        .badRequest,
                        "\(entity.name).\(name) leads to many objects",
                        hint: "compare how many: \(name).count"
                    )
                }
                return Path(path: PropertyPath(Array(names[...index])), kind: .count)
            }
            if isLast {
                return Path(path: PropertyPath(names), kind: .reference(relationship.target))
            }
            entity = try observer.entity(observer.names.name(relationship.target))
        }
        throw InspectionError(.badRequest, "a property is missing")
    }

    // MARK: Comparisons

    private static func comparison(
        _ tokens: inout Tokens,
        _ entity: RecordEntity,
        _ observer: StoreObserver
    ) throws(InspectionError) -> Predicate {
        guard case .word(let name)? = tokens.take() else {
            throw tokens.error("expected the name of a property")
        }
        let path = try Self.path(name, entity: entity, observer: observer)
        let operation = try tokens.takeOperator()
        guard let literal = tokens.take(), literal != .and else {
            throw tokens.error("expected a value to compare \(name) with")
        }
        switch operation {
        case .match(let match, let ignoringCase):
            guard case .attribute(let type) = path.kind, type == .text || type == .url else {
                throw InspectionError(.badRequest, "\(name) is no text")
            }
            let folding: TextFolding = ignoringCase ? .caseDifferences : []
            return .text(path.path, match, literal.text, ignoring: folding)
        case .compare(let comparison):
            if case .count = path.kind {
                guard let number = Int(literal.text) else {
                    throw InspectionError(.badRequest, "\(name) is compared with a number")
                }
                return .count(path.path, .always, comparison, number)
            }
            let value = try value(literal, path.kind, name, observer)
            return .compare(path.path, comparison, value)
        }
    }

    private static func value(
        _ literal: Token,
        _ kind: Path.Kind,
        _ name: String,
        _ observer: StoreObserver
    ) throws(InspectionError) -> StoredValue {
        let text = literal.text
        if case .word = literal, text == "null" || text == "nil" { return .null }
        let value: StoredValue?
        let expected: String
        switch kind {
        case .count, .length:
            value = Int64(text).map { .int($0) }
            expected = "a number"
        case .reference(let target):
            let entity = observer.names.name(target)
            let digits = text.hasPrefix(entity + ":") ? text.dropFirst(entity.count + 1) : text[...]
            value = UInt64(digits).map { .reference(ObjectID($0)) }
            expected = "an object as \(entity):number"
        case .attribute(let type):
            value = stored(text, type)
            expected = Self.expected(type)
        }
        guard let value else {
            throw InspectionError(
                .badRequest,
                "\(name) cannot be compared with \(Spelling.escaped(text)): expected \(expected)"
            )
        }
        return value
    }

    private static func stored(_ text: String, _ type: AttributeType) -> StoredValue? {
        switch type {
        case .bool:
            return ["true": .bool(true), "false": .bool(false)][text]
        case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32:
            return Int64(text).map { .int($0) }
        case .uint64:
            return UInt64(text).map { .int(Int64(bitPattern: $0 ^ 1 << 63)) }
        case .float: return Float(text).map { .float($0) }
        case .double: return Double(text).map { .double($0) }
        case .date: return (Spelling.date(text) ?? Double(text)).map { .date($0) }
        case .text, .url: return .text(text)
        case .uuid: return uuid(text).map { .uuid($0) }
        case .decimal: return decimal(text).map { .decimal($0) }
        case .data, .blob: return nil
        }
    }

    private static func expected(_ type: AttributeType) -> String {
        switch type {
        case .bool: "true or false"
        case .date: "a date such as 2026-11-20 or 2026-11-20T09:00Z"
        case .data: "null; data has no other literal"
        case .blob: "null; or compare its length: .length"
        case .uuid: "a UUID"
        case .float, .double, .decimal: "a number"
        default: type.isInteger ? "a whole number" : "a text"
        }
    }

    private static func uuid(_ text: String) -> UUIDValue? {
        let digits = text.filter { $0 != "-" }
        guard digits.utf8.count == 32, let high = UInt64(digits.prefix(16), radix: 16),
            let low = UInt64(digits.suffix(16), radix: 16)
        else { return nil }
        return UUIDValue(high: high, low: low)
    }

    private static func decimal(_ text: String) -> DecimalValue? {
        var rest = Substring(text)
        let isNegative = rest.hasPrefix("-")
        if isNegative { rest.removeFirst() }
        let parts = rest.split(separator: ".", omittingEmptySubsequences: false)
        let digits = parts.joined()
        guard parts.count <= 2, !digits.isEmpty, digits.utf8.count <= 64,
            digits.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return DecimalValue(
            normalizing: isNegative,
            digits: digits.utf8.map { $0 - 0x30 },
            exponent: parts.count == 2 ? -parts[1].utf8.count : 0
        )
    }
}

/// One word of a filter.
private enum Token: Equatable {
    case word(String)
    case quoted(String)
    case symbol(String)
    case and

    var text: String {
        switch self {
        case .word(let text), .quoted(let text), .symbol(let text): text
        case .and: "&&"
        }
    }
}

/// The words of a filter, in order.
private struct Tokens {
    enum Operation {
        case compare(Comparison)
        case match(TextMatch, ignoringCase: Bool)
    }

    private var tokens: [Token] = []
    private var next = 0

    init(_ text: String) throws(InspectionError) {
        var rest = Substring(text)
        while let first = rest.first {
            if first.isWhitespace {
                rest.removeFirst()
            } else if rest.hasPrefix("&&") {
                tokens.append(.and)
                rest.removeFirst(2)
            } else if first == "\"" || first == "'" {
                tokens.append(.quoted(try Self.quoted(&rest, first)))
            } else if "=!<>&|()".contains(first) {
                let symbol = rest.prefix { "=!<>&|()".contains($0) }
                tokens.append(.symbol(String(symbol)))
                rest = rest[symbol.endIndex...]
            } else {
                let word = rest.prefix { !$0.isWhitespace && !"=!<>&|()\"'".contains($0) }
                tokens.append(.word(String(word)))
                rest = rest[word.endIndex...]
            }
        }
    }

    private static func quoted(
        _ rest: inout Substring,
        _ mark: Character
    ) throws(InspectionError) -> String {
        rest.removeFirst()
        var text = ""
        while let letter = rest.popFirst() {
            if letter == mark { return text }
            if letter == "\\", let escaped = rest.popFirst() {
                text.append(["n": "\n", "t": "\t", "r": "\r"][escaped] ?? escaped)
            } else {
                text.append(letter)
            }
        }
        throw InspectionError(.badRequest, "the filter ends inside a text: \(mark) is missing")
    }

    var isAtEnd: Bool { next == tokens.count }

    mutating func take() -> Token? {
        guard next < tokens.count else { return nil }
        next += 1
        return tokens[next - 1]
    }

    mutating func takeAnd() -> Bool {
        guard next < tokens.count, tokens[next] == .and else { return false }
        next += 1
        return true
    }

    mutating func takeOperator() throws(InspectionError) -> Operation {
        guard let token = take() else { throw error("expected an operator") }
        switch token.text {
        case "==", "=": return .compare(.equal)
        case "!=", "<>": return .compare(.notEqual)
        case "<": return .compare(.less)
        case "<=": return .compare(.lessOrEqual)
        case ">": return .compare(.greater)
        case ">=": return .compare(.greaterOrEqual)
        default: break
        }
        let word = token.text.uppercased()
        let ignoringCase = word.hasSuffix("[C]")
        switch ignoringCase ? String(word.dropLast(3)) : word {
        case "CONTAINS": return .match(.contains, ignoringCase: ignoringCase)
        case "BEGINSWITH": return .match(.hasPrefix, ignoringCase: ignoringCase)
        case "ENDSWITH": return .match(.hasSuffix, ignoringCase: ignoringCase)
        default:
            next -= 1
            let names = ["CONTAINS", "BEGINSWITH", "ENDSWITH"]
            let meant = Spelling.suggestion(for: token.text, among: names)
            throw error(
                "expected one of == != < <= > >= CONTAINS BEGINSWITH ENDSWITH"
                    + (meant.map { "; did you mean \($0)?" } ?? "")
            )
        }
    }

    /// Says where the reading stopped.
    func error(_ message: String) -> InspectionError {
        let place =
            next < tokens.count ? "before \(Spelling.escaped(tokens[next].text))" : "at its end"
        let joined = tokens.contains { $0.text == "||" || $0.text == "(" || $0.text == "&" }
        return InspectionError(
            .badRequest,
            "the filter cannot be read \(place): \(message)",
            hint: joined ? "comparisons are joined by && only" : nil
        )
    }
}
