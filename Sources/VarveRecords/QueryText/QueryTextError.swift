// Why a filter or order cannot be read, and where.

/// A text that is no filter or order: what is wrong, at which character, and what is possible.
public struct QueryTextError: Error, Hashable, Sendable {
    /// What is wrong, in one sentence without a full stop.
    public let message: String
    /// The text that was read.
    public let text: String
    /// The place: bytes of the text's UTF-8 form before it.
    public let offset: Int
    /// What could stand there; empty: it would be too much to tell.
    public let possible: [String]

    init(_ message: String, in text: String, at offset: Int, possible: [String] = []) {
        // Names in it come from the text.
        self.message = String(message.prefix(300).map { Self.isPlain($0) ? $0 : " " })
        self.text = text
        self.offset = min(max(0, offset), text.utf8.count)
        self.possible = possible
    }

    /// Whether a character drives no terminal and hides no text.
    private static func isPlain(_ letter: Character) -> Bool {
        letter.unicodeScalars.allSatisfy {
            switch $0.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: false
            default: true
            }
        }
    }

    /// Characters of the line that are shown on either side of the place.
    private static let shownMax = 60

    /// The line of the place, or the part of it around the place, and below it a caret.
    ///
    /// Characters that are not shown as one column each are shown as a space.
    public var picture: String {
        let bytes = Array(text.utf8)
        let newline = UInt8(ascii: "\n")
        var start = offset
        while start > 0, bytes[start - 1] != newline { start -= 1 }
        var end = offset
        while end < bytes.count, bytes[end] != newline { end += 1 }
        func shown(_ part: ArraySlice<UInt8>) -> [Character] {
            String(decoding: part, as: UTF8.self).map { Self.isPlain($0) ? $0 : " " }
        }
        // A character has at most a few bytes, so no more than this is looked at.
        let front = shown(bytes[max(start, offset - 4 * Self.shownMax)..<offset])
            .suffix(Self.shownMax)
        let back = shown(bytes[offset..<min(end, offset + 4 * Self.shownMax)])
            .prefix(Self.shownMax)
        return String(front) + String(back) + "\n" + String(repeating: " ", count: front.count)
            + "^"
    }
}

extension QueryTextError: CustomStringConvertible {
    /// The message, the line with its caret, and what is possible.
    public var description: String {
        var lines = [message, picture]
        if !possible.isEmpty {
            lines.append("possible: " + possible.prefix(40).joined(separator: " "))
        }
        return lines.joined(separator: "\n")
    }
}
