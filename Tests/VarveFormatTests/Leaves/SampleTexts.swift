// Texts in many scripts, from a seed, for tables of symbols.

import VarveTesting

enum SampleTexts {
    private static let alphabets = [
        "abcdefghijklmnopqrstuvwxyz ,.", "абвгдежзийклмнопрстуфхцчшщ ", "αβγδεζηθικλμνξοπρστυ ",
        "あいうえおかきくけこさしすせそ漢字東京都", "한국어서울부산대구인천 ", "ابتثجحخدذرزسشصض ", "אבגדהוזחטיכלמנ ",
        "👩‍🚀🌍é\u{0301}ß€ ",
    ]

    /// Words in sentences; some texts are empty, and some are bytes that are no text.
    static func make(_ count: Int, _ random: inout SeededRandom) -> [[UInt8]] {
        var words: [String] = []
        for index in 0..<200 {
            let letters = Array(alphabets[index % alphabets.count])
            let length = Int.random(in: 1...9, using: &random)
            words.append(String((0..<length).map { _ in random.pick(letters) }))
        }
        return (0..<count).map { index in
            if index % 11 == 0 { return [] }
            if index % 7 == 0 {
                return (0..<Int.random(in: 1...40, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random) | (index % 2 == 0 ? 0xF0 : 0)
                }
            }
            let length = Int.random(in: 1...30, using: &random)
            let parts = (0..<length).map { _ in random.pick(words) }
            return Array(parts.joined(separator: index % 3 == 0 ? "" : " ").utf8)
        }
    }
}
