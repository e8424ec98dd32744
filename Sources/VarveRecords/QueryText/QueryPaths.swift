// Reading paths: from names to properties, with the part of a value that is meant.

import VarveBase

/// A value that a filter or order looks at.
struct QueryValue {
    enum Kind {
        case attribute(AttributeType)
        case reference(RecordEntity)
        case integer
        case digest
    }
    var path: PropertyPath
    var kind: Kind
    /// As it is written, for messages.
    var text: String

    var isText: Bool {
        switch kind {
        case .attribute(.text), .attribute(.url): true
        default: false
        }
    }
}

/// A to-many relationship that a filter asks about.
struct QueryMany {
    var path: PropertyPath
    var target: RecordEntity
    var text: String
}

enum QueryOperand {
    case value(QueryValue)
    case many(QueryMany)
}

extension QueryParser {
    /// Words that mean something else than a property where a path begins.
    static let reserved: Set<String> = [
        "true", "false", "nil", "null", "self", "in", "and", "or", "not",
    ]

    /// Reads a path and the part behind it. What is asked with a method is left to the caller.
    mutating func operand(_ entity: RecordEntity) throws(QueryTextError) -> QueryOperand {
        if scanner.sees("$0") {
            _ = scanner.take("$0")
            try scanner.expect(".", "after $0")
            scanner.skipSpaces()
        }
        var names: [String] = []
        var current = entity
        while true {
            scanner.skipSpaces()
            let start = scanner.place
            guard let (name, isQuoted) = try scanner.takeName() else {
                throw scanner.error(
                    "expected the name of a property of \(current.name)",
                    possible: Self.names(of: current)
                )
            }
            let isFirst = names.isEmpty
            if isFirst, !isQuoted, name == "self" {
                return .value(object([], entity))
            }
            let canBeProperty = !isFirst || isQuoted || !Self.reserved.contains(name)
            if canBeProperty, let field = takeField(of: name, current) {
                return .value(try attributeValue(field, names + [field.name]))
            }
            names.append(name)
            if canBeProperty, let attribute = current.attribute(named: name) {
                return .value(try attributeValue(attribute, names))
            }
            if canBeProperty, let relationship = current.relationship(named: name),
                let target = language.schema.entity(relationship.target)
            {
                if relationship.isToMany {
                    let text = names.joined(separator: ".")
                    return .many(QueryMany(path: PropertyPath(names), target: target, text: text))
                }
                guard goesOn(to: target) else { return .value(object(names, target)) }
                _ = scanner.take(".")
                current = target
                continue
            }
            if name == "id", !isQuoted {
                names.removeLast()
                return .value(object(names, current))
            }
            let all = Self.names(of: current)
            let meant = NameDistance.nearest(to: name, among: all)
            throw scanner.error(
                "\(current.name) has no \(name)" + (meant.map { "; did you mean \($0)?" } ?? ""),
                at: start,
                possible: all
            )
        }
    }

    /// `.city` behind `address`, where the fields of a composite are attributes: `address.city`.
    private mutating func takeField(
        of name: String,
        _ entity: RecordEntity
    ) -> RecordAttribute? {
        var rest = scanner
        guard entity.relationship(named: name) == nil, rest.take(".") else { return nil }
        rest.skipSpaces()
        guard let (field, _) = try? rest.takeName(),
            let attribute = entity.attribute(named: "\(name).\(field)")
        else { return nil }
        scanner = rest
        return attribute
    }

    private func object(_ names: [String], _ entity: RecordEntity) -> QueryValue {
        QueryValue(
            path: PropertyPath(names),
            kind: .reference(entity),
            text: names.isEmpty ? "self" : names.joined(separator: ".")
        )
    }

    /// Whether what follows a to-one relationship is a property of its target, not a method.
    private func goesOn(to target: RecordEntity) -> Bool {
        var rest = scanner
        guard rest.take(".") else { return false }
        rest.skipSpaces()
        guard let word = rest.peekWord() else { return rest.peek() == UInt8(ascii: "`") }
        if target.attribute(named: word) != nil || target.relationship(named: word) != nil {
            return true
        }
        return !["isIn", "ascending", "descending"].contains(word)
    }

    private static func names(of entity: RecordEntity) -> [String] {
        (entity.attributes.map(\.name) + entity.relationships.map(\.name)).map {
            QueryText.spelled($0)
        } + (entity.attribute(named: "id") == nil ? ["id"] : ["self"])
    }

    private mutating func attributeValue(
        _ attribute: RecordAttribute,
        _ names: [String]
    ) throws(QueryTextError) -> QueryValue {
        let text = names.joined(separator: ".")
        var value = QueryValue(
            path: PropertyPath(names),
            kind: .attribute(attribute.type),
            text: text
        )
        var rest = scanner
        guard rest.take(".") else { return value }
        rest.skipSpaces()
        let start = rest.place
        guard let word = rest.peekWord() else { return value }
        rest.move(to: start + word.utf8.count)
        switch (attribute.type, word) {
        case (.blob, "length"):
            (value.path.part, value.kind) = (.blobLength, .integer)
        case (.blob, "digest"):
            (value.path.part, value.kind) = (.blobDigest, .digest)
        case (.date, _):
            guard let part = DatePart(rawValue: word) else { return value }
            scanner = rest
            value.path.part = .date(part, try zone(part))
            value.kind = .integer
            value.text += ".\(word)"
            return value
        default:
            return value
        }
        value.text += ".\(word)"
        scanner = rest
        return value
    }

    private mutating func zone(_ part: DatePart) throws(QueryTextError) -> DateZone {
        try scanner.expect("(", "and a time zone, as in .\(part.rawValue)(in: \"UTC\")")
        if !scanner.take(word: "in") || !scanner.take(":") {
            scanner.skipSpaces()
            throw scanner.error("expected in: and a time zone", possible: ["in: \"UTC\""])
        }
        scanner.skipSpaces()
        let start = scanner.place
        guard let name = try scanner.takeQuoted() else {
            throw scanner.error("expected a time zone in quotes", possible: ["\"UTC\""])
        }
        guard let zone = name == "UTC" ? .utc : language.zone(name) else {
            throw scanner.error(
                "there is no time zone of that name",
                at: start,
                possible: ["\"UTC\"", "\"Europe/Berlin\""]
            )
        }
        try scanner.expect(")", "after the time zone")
        return zone
    }

    /// The property that a value is compared with; nil: a literal stands there.
    mutating func otherValue(
        _ value: QueryValue,
        _ entity: RecordEntity
    ) throws(QueryTextError) -> PropertyPath? {
        if scanner.peek() == UInt8(ascii: "`") {
            var rest = scanner
            _ = try rest.takeName()
            if [UInt8(ascii: ":"), UInt8(ascii: "/")].contains(rest.peek()) { return nil }
        } else if !scanner.sees("$0") {
            guard let word = scanner.peekWord() else { return nil }
            if Self.literalWords.contains(word) { return nil }
            var rest = scanner
            let start = rest.place
            // An object's name, a UUID and a date have signs in them that no path has.
            let run = rest.takeRun()
            if run.contains(":") || rest.peek() == UInt8(ascii: "/") || QueryText.uuid(run) != nil {
                return nil
            }
            rest.move(to: start + word.utf8.count)
            if rest.sees("("), ["date", "data", "blob", "UUID"].contains(word) { return nil }
            let isProperty =
                word == "self" || word == "id" || entity.attribute(named: word) != nil
                || entity.relationship(named: word) != nil
            // What is no property is rather a literal that cannot be read.
            if !isProperty { return nil }
        }
        let start = scanner.place
        guard case .value(let other) = try operand(entity) else {
            throw scanner.error("many objects cannot be compared with one value", at: start)
        }
        return other.path
    }

    /// Words that are a literal where a value is compared.
    static let literalWords: Set<String> = [
        "true", "false", "nil", "null", "nan", "inf", "infinity",
    ]
}
