// Printing filters and orders, so that they are read as the same again.

public import VarveBase

extension QueryText {
    /// A filter as text.
    /// - Parameters:
    ///   - predicate: the filter.
    ///   - entity: whose objects it is about.
    /// - Complexity: O(n).
    /// - Throws: `unknownProperty` or `unsupportedPredicate`, as a fetch with it would.
    public func text(
        of predicate: Predicate,
        _ entity: RecordEntity
    ) throws(RecordError) -> String {
        // A request inside it stands for objects: any will do to see whether it can stand there.
        let checked = try predicate.answeringRequests { _ in [ObjectID(0)] }
        _ = try CompiledPredicate(checked, entity: entity, schema: schema)
        return try printed(predicate, entity)
    }

    /// An order as text.
    /// - Parameters:
    ///   - order: its steps.
    ///   - entity: whose objects it is about.
    /// - Throws: `unknownProperty` or `invalidRequest`, as a fetch with it would.
    public func text(
        of order: [SortTerm],
        _ entity: RecordEntity
    ) throws(RecordError) -> String {
        _ = try CompiledSort(order, entity: entity, schema: schema)
        // In front, a direction cannot be taken for a property.
        return order.map { ($0.isDescending ? "-" : "") + spelled($0.path) }.joined(separator: ", ")
    }

    private func printed(
        _ predicate: Predicate,
        _ entity: RecordEntity
    ) throws(RecordError) -> String {
        switch predicate {
        case .always: return "true"
        case .never: return "false"
        case .compare(let path, let comparison, let value):
            return "\(spelled(path)) \(comparison.text) \(try printed(value, path, entity))"
        case .compareProperties(let left, let comparison, let right):
            return "\(spelled(left)) \(comparison.text) \(spelled(right))"
        case .isIn(let path, let values):
            var texts: [String] = []
            for value in values { texts.append(try printed(value, path, entity)) }
            return "\(spelled(path)) in [\(texts.joined(separator: ", "))]"
        case .isInRequest(let path, let request):
            return "\(spelled(path)) in \(try printed(request))"
        case .isWithin(let path, let range):
            let lower = try range.lower.map { (value) throws(RecordError) in
                try printed(value, path, entity)
            }
            let upper = try range.upper.map { (value) throws(RecordError) in
                try printed(value, path, entity)
            }
            let sign = range.includesUpper ? "..." : "..<"
            return "\(spelled(path)) in \(lower ?? "")\(sign)\(upper ?? "")"
        case .text(let path, let match, let text, let folding):
            var options = ""
            if folding.contains(.caseDifferences) { options += ", ignoringCase: true" }
            if folding.contains(.diacritics) { options += ", ignoringDiacritics: true" }
            let name = match == .equal ? "equals" : "\(match)"
            return "\(spelled(path)).\(name)(\(Self.quoted(text))\(options))"
        case .not(let inner): return "!(\(try printed(inner, entity)))"
        case .and(let terms): return try joined(terms, " && ", none: "true", entity)
        case .or(let terms): return try joined(terms, " || ", none: "false", entity)
        case .any(let path, let inner): return try related(path, "any", inner, entity)
        case .all(let path, let inner): return try related(path, "all", inner, entity)
        case .count(let path, let inner, let comparison, let number):
            let filtered = try related(path, "count", inner, entity)
            let all = "\(spelled(path)).count"
            let counted = filtered == all + " { true }" ? all : filtered
            return "\(counted) \(comparison.text) \(number)"
        }
    }

    private func printed(_ request: InnerRequest) throws(RecordError) -> String {
        guard let entity = schema.entity(named: request.entity) else {
            throw .unknownEntity(request.entity)
        }
        if request.after != nil || request.before != nil {
            throw .unsupportedPredicate("a request with a cursor has no text")
        }
        let name = Self.spelled(request.entity)
        let filter = try self.text(of: request.predicate, entity)
        var text = filter == "true" ? "\(name).all" : "\(name).where { \(filter) }"
        if !request.sort.isEmpty {
            text += ".sorted { \(try self.text(of: request.sort, entity)) }"
        }
        if let limit = request.limit { text += ".limit(\(limit))" }
        if request.offset != 0 { text += ".offset(\(request.offset))" }
        if !request.includesEdits { text += ".includingPendingChanges(false)" }
        return text
    }

    private func joined(
        _ terms: [Predicate],
        _ sign: String,
        none: String,
        _ entity: RecordEntity
    ) throws(RecordError) -> String {
        if terms.isEmpty { return none }
        if terms.count == 1 { return try printed(terms[0], entity) }
        var texts: [String] = []
        for term in terms {
            let text = try printed(term, entity)
            var isJoined = false
            switch Self.withoutSingles(term) {
            case .and(let inner), .or(let inner): isJoined = !inner.isEmpty
            default: break
            }
            texts.append(isJoined ? "(\(text))" : text)
        }
        return texts.joined(separator: sign)
    }

    /// The term that a join of one stands for.
    private static func withoutSingles(_ predicate: Predicate) -> Predicate {
        switch predicate {
        case .and(let terms) where terms.count == 1, .or(let terms) where terms.count == 1:
            withoutSingles(terms[0])
        default: predicate
        }
    }

    private func related(
        _ path: PropertyPath,
        _ name: String,
        _ inner: Predicate,
        _ entity: RecordEntity
    ) throws(RecordError) -> String {
        var current = entity
        for name in path.names { current = try target(of: name, current) }
        return "\(spelled(path)).\(name) { \(try printed(inner, current)) }"
    }

    private func target(
        of name: String,
        _ entity: RecordEntity
    ) throws(RecordError) -> RecordEntity {
        guard let relationship = entity.relationship(named: name),
            let target = schema.entity(relationship.target)
        else { throw .unknownProperty(entity: entity.name, property: name) }
        return target
    }

    // MARK: Names

    private func spelled(_ path: PropertyPath) -> String {
        let names =
            path.names.isEmpty
            ? "self" : path.names.map(Self.spelledFields).joined(separator: ".")
        switch path.part {
        case .value: return names
        case .blobLength: return names + ".length"
        case .blobDigest: return names + ".digest"
        case .date(let part, let zone):
            return names + ".\(part.rawValue)(in: \(Self.quoted(zone.name)))"
        }
    }

    /// A property's name; the fields of composites have a point in theirs.
    private static func spelledFields(_ name: String) -> String {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }) else { return spelled(name) }
        return parts.map { spelled(String($0)) }.joined(separator: ".")
    }

    /// A name, in backticks if it is no plain word.
    static func spelled(_ name: String) -> String {
        let bytes = Array(name.utf8)
        let isWord =
            bytes.first.map(QueryScanner.beginsWord) ?? false
            && bytes.allSatisfy(QueryScanner.continuesWord)
        let isTaken =
            QueryParser.reserved.contains(name) || QueryParser.literalWords.contains(name)
            || name == "id" || uuid(name) != nil
        if isWord, !isTaken { return name }
        return "`"
            + name.split(separator: "`", omittingEmptySubsequences: false)
            .joined(separator: "``") + "`"
    }

    // MARK: Values

    private func printed(
        _ value: StoredValue,
        _ path: PropertyPath,
        _ entity: RecordEntity
    ) throws(RecordError) -> String {
        let compiled = try CompiledPath.of(path, entity, schema)
        let stored = try compiled.coerce(value)
        if case .reference(let id) = stored {
            var current = entity
            for name in path.names { current = try target(of: name, current) }
            return "\(Self.spelled(current.name)):\(id.rawValue)"
        }
        var type: AttributeType?
        if case .attribute(let known) = compiled.kind { type = known }
        return Self.text(of: stored, type)
    }

    /// A value as it stands in a filter; of a reference the object's number alone.
    /// - Parameters:
    ///   - value: as it is stored.
    ///   - type: its attribute's; nil for the value of a relationship.
    public static func text(of value: StoredValue, _ type: AttributeType?) -> String {
        switch value {
        case .null: return "nil"
        case .bool(let value): return value ? "true" : "false"
        case .int(let value):
            return type == .uint64 ? "\(UInt64(bitPattern: value) ^ 1 << 63)" : "\(value)"
        case .float(let value): return value.isNaN ? "nan" : "\(value)"
        case .double(let value): return value.isNaN ? "nan" : "\(value)"
        case .date(let seconds): return printed(date: seconds)
        case .text(let text): return quoted(text)
        case .data(let bytes): return "data(\"\(hex(bytes))\")"
        case .uuid(let value): return "UUID(\"\(printed(value))\")"
        case .decimal(let value):
            let digits = value.digits.isEmpty ? "0" : value.digits.map { "\($0)" }.joined()
            let exponent = value.exponent == 0 ? "" : "e\(value.exponent)"
            return (value.isNegative ? "-" : "") + digits + exponent
        case .reference(let id): return "\(id.rawValue)"
        case .blob(let blob): return "blob(\"\(blob.digest.hexText)\", \(blob.length))"
        }
    }

    /// A text in quotes.
    static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\"": result += "\\\""
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            default:
                switch scalar.properties.generalCategory {
                case .control, .format, .lineSeparator, .paragraphSeparator:
                    result += "\\u{\(String(scalar.value, radix: 16))}"
                default: result.unicodeScalars.append(scalar)
                }
            }
        }
        return result + "\""
    }

    private static func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    private static func printed(_ value: UUIDValue) -> String {
        var result = ""
        for word in [value.high, value.low] {
            for shift in stride(from: UInt64(60), through: 0, by: -4) {
                if [8, 13, 18, 23].contains(result.utf8.count) { result += "-" }
                result += String(word >> shift & 15, radix: 16)
            }
        }
        return result
    }

    /// Whole seconds as a moment of the calendar, others exactly.
    private static func printed(date seconds: Double) -> String {
        let years =
            CivilDate(year: 1, month: 1, day: 1)
            .seconds..<CivilDate(year: 10_000, month: 1, day: 1).seconds
        guard years.contains(seconds), seconds == seconds.rounded(),
            seconds != 0 || seconds.sign == .plus
        else { return seconds.isNaN ? "date(nan)" : "date(\(seconds))" }
        let (days, second) = (Int64(seconds) + CivilDate.referenceSeconds)
            .flooredQuotient(by: 86_400)
        let day = CivilDate(daysSince1970: days)
        func padded(_ value: Int64, _ width: Int) -> String {
            let text = "\(value)"
            return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
        }
        let clock = [second / 3600, second / 60 % 60, second % 60].map { padded($0, 2) }
        return "\(padded(day.year, 4))-\(padded(day.month, 2))-\(padded(day.day, 2))T"
            + clock.joined(separator: ":") + "Z"
    }
}
