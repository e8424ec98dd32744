// Reading literals: each as the type of the property that it is compared with.

import VarveBase

extension QueryParser {
    /// The values of a list, or the bounds of a range.
    mutating func listOrRange(_ value: QueryValue) throws(QueryTextError) -> Predicate {
        if let request = try request(value) { return .isInRequest(value.path, request) }
        if scanner.take("[") {
            var values: [StoredValue] = []
            if scanner.take("]") { return .isIn(value.path, []) }
            repeat {
                scanner.skipSpaces()
                values.append(try literal(value))
            } while scanner.take(",")
            try scanner.expect("]", "after the values")
            return .isIn(value.path, values)
        }
        var lower: StoredValue?
        if !scanner.sees("..") { lower = try literal(value) }
        let isClosed = scanner.take("...")
        guard isClosed || scanner.take("..<") else {
            scanner.skipSpaces()
            throw scanner.error(
                "expected a list in brackets, or a range",
                possible: ["[", "...", "..<"]
            )
        }
        scanner.skipSpaces()
        let upper = beginsLiteral ? try literal(value) : nil
        return .isWithin(
            value.path,
            isClosed
                ? ValueRange(from: lower, through: upper) : ValueRange(from: lower, upTo: upper)
        )
    }

    private var beginsLiteral: Bool {
        if let word = scanner.peekWord() { return !["and", "or"].contains(word) }
        let byte = scanner.peek()
        return QueryScanner.isDigit(byte) || [0x22, 0x27, 0x2B, 0x2D, 0x60].contains(byte)
    }

    /// A constant of a value's type.
    mutating func literal(_ value: QueryValue) throws(QueryTextError) -> StoredValue {
        let start = scanner.place
        if scanner.take(word: "nil") || scanner.take(word: "null") { return .null }
        let read: StoredValue?
        switch value.kind {
        case .integer: read = integer(.int64)
        case .digest: read = try function("data").flatMap { Self.bytes($0).map { .data($0) } }
        case .reference(let target): read = try reference(target)
        case .attribute(let type): read = try constant(type)
        }
        if let read { return read }
        var rest = scanner
        rest.move(to: start)
        throw rest.error(
            "expected \(value.expectation) to compare \(value.text) with",
            possible: value.examples
        )
    }

    private mutating func constant(_ type: AttributeType) throws(QueryTextError) -> StoredValue? {
        switch type {
        case .bool:
            if scanner.take(word: "true") { return .bool(true) }
            return scanner.take(word: "false") ? .bool(false) : nil
        case .float: return number().flatMap { Self.held(Float($0), $0) }.map { .float($0) }
        case .double: return number().flatMap { Self.held(Double($0), $0) }.map { .double($0) }
        case .decimal:
            return scanner.takeNumber().flatMap { QueryText.decimal($0) }.map { .decimal($0) }
        case .text, .url: return try scanner.takeQuoted().map { .text($0) }
        case .date:
            if let seconds = try call(
                "date",
                { (parser) throws(QueryTextError) in parser.number() }
            ) {
                return Self.held(Double(seconds), seconds).map { .date($0) }
            }
            return QueryText.date(try quotedOrRun()).map { .date($0) }
        case .uuid:
            if let text = try function("UUID") { return QueryText.uuid(text).map { .uuid($0) } }
            return QueryText.uuid(try quotedOrRun()).map { .uuid($0) }
        case .data:
            return try function("data").flatMap { Self.bytes($0) }.map { .data($0) }
        case .blob: return try blob()
        default: return integer(type)
        }
    }

    private mutating func quotedOrRun() throws(QueryTextError) -> String {
        if let text = try scanner.takeQuoted() { return text }
        return scanner.takeRun()
    }

    /// A number that its type holds: infinite is only what is written so.
    private static func held<Number: BinaryFloatingPoint>(
        _ number: Number?,
        _ text: String
    ) -> Number? {
        // "nan", "inf" and "infinity" have an n in them, digits and exponents have none.
        guard let number, number.isFinite || text.contains("n") else { return nil }
        return number
    }

    /// A number, or a word for one.
    private mutating func number() -> String? {
        if let number = scanner.takeNumber() { return number }
        let start = scanner.place
        let sign = scanner.take("-") ? "-" : ""
        for word in ["nan", "infinity", "inf"] where scanner.take(word: word) { return sign + word }
        scanner.move(to: start)
        return nil
    }

    private mutating func integer(_ type: AttributeType) -> StoredValue? {
        guard let text = scanner.takeNumber() else { return nil }
        if type == .uint64 {
            return UInt64(text).map { .int(Int64(bitPattern: $0 ^ 1 << 63)) }
        }
        guard let number = Int64(text) else { return nil }
        let bounds: ClosedRange<Int64> =
            switch type {
            case .int8: -128...127
            case .int16: -32_768...32_767
            case .int32: -2_147_483_648...2_147_483_647
            case .uint8: 0...255
            case .uint16: 0...65_535
            case .uint32: 0...4_294_967_295
            default: .min ... .max
            }
        return bounds.contains(number) ? .int(number) : nil
    }

    /// `name(argument)`; nil: something else comes next.
    private mutating func call<Argument>(
        _ name: String,
        _ argument: (inout QueryParser) throws(QueryTextError) -> Argument?
    ) throws(QueryTextError) -> Argument? {
        let start = scanner.place
        if scanner.take(word: name), scanner.take("(") {
            scanner.skipSpaces()
            if let read = try argument(&self), scanner.take(")") { return read }
        }
        scanner.move(to: start)
        return nil
    }

    /// `name("text")`; nil: something else comes next.
    private mutating func function(_ name: String) throws(QueryTextError) -> String? {
        try call(name) { (parser) throws(QueryTextError) in try parser.scanner.takeQuoted() }
    }

    private mutating func blob() throws(QueryTextError) -> StoredValue? {
        try call("blob") { (parser) throws(QueryTextError) in
            guard let hex = try parser.scanner.takeQuoted(),
                let digest = BlobDigest(hexText: hex), parser.scanner.take(",")
            else { return nil }
            parser.scanner.skipSpaces()
            guard let length = parser.scanner.takeNumber().flatMap({ UInt64($0) }) else {
                return nil
            }
            return .blob(BlobReference(digest: digest, length: length))
        }
    }

    /// `Entity:number`, `Entity/number`, or a number alone.
    private mutating func reference(_ target: RecordEntity) throws(QueryTextError) -> StoredValue? {
        let start = scanner.place
        if let (name, _) = try scanner.takeName() {
            guard name == target.name, scanner.take(":") || scanner.take("/") else {
                scanner.move(to: start)
                return nil
            }
        }
        guard let number = scanner.takeNumber().flatMap({ UInt64($0) }) else {
            scanner.move(to: start)
            return nil
        }
        // Large numbers are told in two halves: "8-16744".
        guard scanner.peek() == UInt8(ascii: "-"), QueryScanner.isDigit(scanner.peek(1)) else {
            return .reference(ObjectID(number))
        }
        _ = scanner.take("-")
        guard let rest = scanner.takeNumber().flatMap({ UInt32($0) }), number <= UInt32.max else {
            scanner.move(to: start)
            return nil
        }
        return .reference(ObjectID(number << 32 | UInt64(rest)))
    }

    private static func bytes(_ hex: String) -> [UInt8]? {
        let digits = Array(hex.utf8)
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digit(digits[index]), let low = digit(digits[index + 1]) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }
}

extension QueryValue {
    /// What a literal must be.
    fileprivate var expectation: String {
        switch kind {
        case .integer: "a whole number"
        case .digest: "a digest as data(\"...\")"
        case .reference(let target): "an object as \(target.name):number, or nil"
        case .attribute(let type):
            switch type {
            case .bool: "true or false"
            case .date: "a date such as 2026-11-20 or 2026-11-20T09:00Z"
            case .data: "bytes as data(\"00ff\"), or nil"
            case .blob: "nil or blob(\"digest\", length); or take its .length"
            case .uuid: "a UUID"
            case .float, .double, .decimal: "a number"
            default: type.isInteger ? "a whole number of its size" : "a text in quotes"
            }
        }
    }

    fileprivate var examples: [String] {
        switch kind {
        case .integer: ["0", "nil"]
        case .digest: ["data(\"...\")", "nil"]
        case .reference(let target): ["\(QueryText.spelled(target.name)):1", "nil"]
        case .attribute(let type):
            switch type {
            case .bool: ["true", "false", "nil"]
            case .date: ["2026-11-20", "2026-11-20T09:00Z", "date(0)", "nil"]
            case .data: ["data(\"00ff\")", "nil"]
            case .blob: ["nil"]
            case .uuid: ["UUID(\"...\")", "nil"]
            case .float, .double: ["1.5", "nan", "inf", "nil"]
            case .decimal: ["1.5", "nil"]
            default: type.isInteger ? ["0", "nil"] : ["\"text\"", "nil"]
            }
        }
    }
}
