// What every decoder throws: where, which field, what was found, what was expected.
//
// Invariants
// - One word in size, so that a throwing decoder returns its value in registers.
// - Messages carry places, kinds and lengths, never stored values (they may be private).

public import VarveBase

/// Bytes that do not fit the format.
public struct FormatError: Error, Sendable {
    private final class Content: Sendable {
        let place, field, found, expected: String
        init(_ place: String, _ field: String, _ found: String, _ expected: String) {
            self.place = place
            self.field = field
            self.found = found
            self.expected = expected
        }
    }
    private let content: Content

    /// Joins the four parts.
    @_disfavoredOverload
    public init(place: String, field: String, found: String, expected: String) {
        content = Content(place, field, found, expected)
    }

    /// Where the bytes lie, as "frame p@1f40" or "row".
    public var place: String { content.place }
    /// Which field of the format does not fit.
    public var field: String { content.field }
    /// What stands there. Never a stored value: a length, a tag, a kind.
    public var found: String { content.found }
    /// What the format asks for.
    public var expected: String { content.expected }

    /// The same error, told of a place that the decoder itself did not know.
    public func at(_ place: String) -> FormatError {
        FormatError(
            place: self.place.isEmpty ? place : "\(place), \(self.place)",
            field: field,
            found: found,
            expected: expected
        )
    }
}

/// What errors call a place: put into words when there is an error. Each page and frame that is
/// read has one, and few of them are damaged.
public struct FormatPlace: Sendable, ExpressibleByStringLiteral {
    private let word: StaticString
    private let offset: FileOffset?

    /// A place that has no offset of its own: "row".
    public init(stringLiteral word: StaticString) {
        self.word = word
        offset = nil
    }

    /// What lies at an offset: "page p@1f40".
    public init(_ word: StaticString, _ offset: FileOffset) {
        self.word = word
        self.offset = offset
    }

    /// The words.
    public var text: String {
        guard let offset else { return "\(word)" }
        return "\(word) \(offset.frameName)"
    }
}

extension FormatError {
    /// Joins the four parts.
    public init(place: FormatPlace, field: String, found: String, expected: String) {
        self.init(place: place.text, field: field, found: found, expected: expected)
    }
}

extension FormatError: Equatable {
    /// Equal when all four parts are.
    public static func == (left: FormatError, right: FormatError) -> Bool {
        left.place == right.place && left.field == right.field && left.found == right.found
            && left.expected == right.expected
    }
}

extension FormatError: CustomStringConvertible {
    /// One line: "row: tag: found 23, expected a known tag".
    public var description: String {
        "\(place): \(field): found \(found), expected \(expected)"
    }
}
