// What text filters may ignore: case, diacritics, or both.
//
// Invariants
// - Folding looks at no locale. It is a function of the text and of properties that Unicode
//   promises never to change for an assigned character (lowercase mappings are stable for letters
//   that have case; decompositions and combining classes are immutable).
// - Texts that are canonically equivalent are the same once diacritics are ignored.

/// What a text filter does not look at.
public struct TextFolding: OptionSet, Hashable, Sendable {
    /// The options as bits.
    public let rawValue: UInt8

    /// Options from their bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Upper and lower case are the same: both texts are compared in their Unicode lowercase
    /// mapping, each scalar for itself.
    public static let caseDifferences = TextFolding(rawValue: 1)
    /// Letters are the same with and without marks: both texts are decomposed canonically, and the
    /// marks above, below and attached, and the points of Hebrew, Arabic and Syriac left out.
    public static let diacritics = TextFolding(rawValue: 2)

    /// The text without what is ignored: lowercase first, then without marks.
    /// - Complexity: O(n) for texts as people write them, O(n log n) for any.
    public func folded(_ text: String) -> String {
        let cased = contains(.caseDifferences) ? text.lowercased() : text
        return contains(.diacritics) ? Self.withoutMarks(cased) : cased
    }

    private static func withoutMarks(_ text: String) -> String {
        // Nothing below U+00C0 decomposes or is a mark.
        guard text.unicodeScalars.contains(where: { $0.value >= 0xC0 }) else { return text }
        var result = String.UnicodeScalarView()
        var marks: [(order: UInt8, scalar: Unicode.Scalar)] = []
        func flush() {
            guard !marks.isEmpty else { return }
            // Stable: `sort` of the standard library keeps equal ones in order.
            if marks.count > 1 { marks.sort { $0.order < $1.order } }
            for mark in marks { result.append(mark.scalar) }
            marks.removeAll(keepingCapacity: true)
        }
        for scalar in text.unicodeScalars {
            eachPart(of: scalar.value) { part in
                let order = part.value < 0x300 ? 0 : combiningClass(part)
                if order == 0 {
                    flush()
                    result.append(part)
                } else if !isDiacritic(order) {
                    marks.append((order, part))
                }
            }
        }
        flush()
        return String(result)
    }

    private static func combiningClass(_ scalar: Unicode.Scalar) -> UInt8 {
        scalar.properties.canonicalCombiningClass.rawValue
    }

    /// Canonical combining classes 10 to 36 are the points of Hebrew, Arabic and Syriac, 202 and
    /// more the marks above, below and attached. Others change the letter itself: overlays, the
    /// voicing of kana, nuktas, viramas, vowel signs.
    private static func isDiacritic(_ combiningClass: UInt8) -> Bool {
        (10...36).contains(combiningClass) || combiningClass >= 202
    }

    /// Calls `body` with the scalars of the full canonical decomposition.
    private static func eachPart(of value: UInt32, _ body: (Unicode.Scalar) -> Void) {
        if value >= 0xC0, (0xAC00...0xD7A3).contains(value) {
            let syllable = value - 0xAC00
            eachPart(of: 0x1100 + syllable / 588, body)
            eachPart(of: 0x1161 + syllable % 588 / 28, body)
            if syllable % 28 > 0 { eachPart(of: 0x11A7 + syllable % 28, body) }
            return
        }
        // The table's chains are short and end: a part is never decomposed into its source.
        if value >= 0xC0, let parts = DecompositionTable.steps[value] {
            for part in parts { eachPart(of: part, body) }
        } else if let scalar = Unicode.Scalar(value) {
            body(scalar)
        }
    }
}
