// The characters of a filter's text: names, numbers, texts and signs, each with its place.

/// Goes through a text from front to back.
struct QueryScanner {
    let text: String
    let bytes: [UInt8]
    /// Where the reading is: always between two characters.
    private(set) var place = 0

    init(_ text: String) throws(QueryTextError) {
        self.text = text
        guard text.utf8.count <= QueryText.lengthMax else {
            bytes = []
            throw QueryTextError(
                "the text has \(text.utf8.count) bytes, more than \(QueryText.lengthMax)",
                in: String(text.prefix(40)),
                at: 0
            )
        }
        bytes = Array(text.utf8)
    }

    /// Says what is wrong at a place, or where the reading is.
    func error(
        _ message: String,
        at other: Int? = nil,
        possible: [String] = []
    ) -> QueryTextError {
        QueryTextError(message, in: text, at: other ?? place, possible: possible)
    }

    // MARK: Signs

    var isAtEnd: Bool { place >= bytes.count }

    /// The byte that comes next, or one behind it; 0 at the end.
    func peek(_ distance: Int = 0) -> UInt8 {
        place + distance < bytes.count ? bytes[place + distance] : 0
    }

    mutating func skipSpaces() {
        while place < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[place]) { place += 1 }
    }

    mutating func move(to other: Int) { place = other }

    /// Takes a sign if it comes next, spaces before it too.
    mutating func take(_ sign: StaticString) -> Bool {
        let start = place
        skipSpaces()
        guard sees(sign) else {
            place = start
            return false
        }
        place += sign.utf8CodeUnitCount
        return true
    }

    /// Whether a sign comes next, without spaces before it.
    func sees(_ sign: StaticString) -> Bool {
        let wanted = Array("\(sign)".utf8)
        return place + wanted.count <= bytes.count
            && bytes[place..<place + wanted.count].elementsEqual(wanted)
    }

    mutating func expect(_ sign: StaticString, _ where_: String) throws(QueryTextError) {
        if take(sign) { return }
        skipSpaces()
        throw error("expected \(sign) \(where_)", possible: ["\(sign)"])
    }

    // MARK: Words

    static func beginsWord(_ byte: UInt8) -> Bool {
        (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x5F || byte >= 0x80
    }

    static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    static func continuesWord(_ byte: UInt8) -> Bool { beginsWord(byte) || isDigit(byte) }

    /// The word that comes next, without taking it; nil: something else does.
    func peekWord() -> String? {
        guard Self.beginsWord(peek()) else { return nil }
        var end = place
        while end < bytes.count, Self.continuesWord(bytes[end]) { end += 1 }
        return String(decoding: bytes[place..<end], as: UTF8.self)
    }

    /// Takes a word if it comes next, spaces before it too.
    mutating func take(word: String) -> Bool {
        let start = place
        skipSpaces()
        guard peekWord() == word else {
            place = start
            return false
        }
        place += word.utf8.count
        return true
    }

    /// Takes a name: a word, or anything in backticks. Nil: none comes next.
    mutating func takeName() throws(QueryTextError) -> (name: String, isQuoted: Bool)? {
        if let word = peekWord() {
            place += word.utf8.count
            return (word, false)
        }
        guard peek() == UInt8(ascii: "`") else { return nil }
        let start = place
        place += 1
        var name: [UInt8] = []
        while place < bytes.count {
            let byte = bytes[place]
            place += 1
            if byte == UInt8(ascii: "`") {
                if peek() != byte { return (String(decoding: name, as: UTF8.self), true) }
                place += 1
            }
            name.append(byte)
        }
        throw error("the name is not closed: ` is missing", at: start)
    }

    // MARK: Literals

    /// Takes the bytes of a number, as far as they go: digits with "_" between them, a sign, a
    /// fraction, an exponent. Nil: none comes next.
    mutating func takeNumber() -> String? {
        var end = place
        func at(_ index: Int) -> UInt8 { index < bytes.count ? bytes[index] : 0 }
        var text: [UInt8] = []
        func digits() -> Bool {
            let start = end
            while Self.isDigit(at(end)) || (at(end) == 0x5F && end > start) {
                if at(end) != 0x5F { text.append(at(end)) }
                end += 1
            }
            return end > start
        }
        if at(end) == UInt8(ascii: "-") || at(end) == UInt8(ascii: "+") {
            text.append(at(end))
            end += 1
        }
        guard digits() else { return nil }
        if at(end) == UInt8(ascii: "."), Self.isDigit(at(end + 1)) {
            text.append(at(end))
            end += 1
            _ = digits()
        }
        if at(end) | 0x20 == UInt8(ascii: "e") {
            let sign = [UInt8(ascii: "-"), UInt8(ascii: "+")].contains(at(end + 1)) ? 1 : 0
            if Self.isDigit(at(end + 1 + sign)) {
                text.append(contentsOf: bytes[end...end + sign])
                end += 1 + sign
                _ = digits()
            }
        }
        place = end
        return String(decoding: text, as: UTF8.self)
    }

    /// Takes letters, digits and the signs that dates and UUIDs have in them.
    mutating func takeRun() -> String {
        let start = place
        while place < bytes.count {
            let byte = bytes[place]
            // A point only before a digit: "..." ends a literal.
            let isPoint = byte == UInt8(ascii: ".") && Self.isDigit(peek(1))
            guard Self.continuesWord(byte) || [0x2D, 0x2B, 0x3A].contains(byte) || isPoint else {
                break
            }
            place += 1
        }
        return String(decoding: bytes[start..<place], as: UTF8.self)
    }

    /// Takes a text in quotes. Nil: none comes next.
    mutating func takeQuoted() throws(QueryTextError) -> String? {
        let mark = peek()
        guard mark == UInt8(ascii: "\"") || mark == UInt8(ascii: "'") else { return nil }
        let start = place
        place += 1
        var content: [UInt8] = []
        while place < bytes.count {
            let byte = bytes[place]
            place += 1
            if byte == mark { return String(decoding: content, as: UTF8.self) }
            if byte == UInt8(ascii: "\\") {
                content.append(contentsOf: try takeEscaped())
            } else {
                content.append(byte)
            }
        }
        throw error(
            "the text is not closed: \(Character(Unicode.Scalar(mark))) is missing",
            at: start
        )
    }

    private mutating func takeEscaped() throws(QueryTextError) -> [UInt8] {
        let start = place - 1
        let byte = peek()
        place += 1
        switch byte {
        case UInt8(ascii: "n"): return [0x0A]
        case UInt8(ascii: "r"): return [0x0D]
        case UInt8(ascii: "t"): return [0x09]
        case UInt8(ascii: "0"): return [0]
        case UInt8(ascii: "\\"), UInt8(ascii: "\""), UInt8(ascii: "'"): return [byte]
        case UInt8(ascii: "u") where peek() == UInt8(ascii: "{"):
            var end = place + 1
            while end < bytes.count, end < place + 10, bytes[end] != UInt8(ascii: "}") { end += 1 }
            let digits = String(decoding: bytes[place + 1..<end], as: UTF8.self)
            if end < bytes.count, bytes[end] == UInt8(ascii: "}"),
                digits.utf8.first != UInt8(ascii: "+"), let value = UInt32(digits, radix: 16),
                let scalar = Unicode.Scalar(value)
            {
                place = end + 1
                return Array(String(Character(scalar)).utf8)
            }
        default: break
        }
        throw error(
            "a backslash is followed by something else than an escape",
            at: start,
            possible: [#"\n"#, #"\r"#, #"\t"#, #"\0"#, #"\\"#, #"\""#, #"\'"#, #"\u{1F600}"#]
        )
    }
}
