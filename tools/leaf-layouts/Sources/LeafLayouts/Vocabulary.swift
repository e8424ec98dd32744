// Words that are made from a seed, in several scripts, some far more frequent than others.

/// Words of one script.
struct Vocabulary {
    private let words: [String]

    /// Consonants and vowels, or whole syllables, of some scripts.
    private static let scripts: [[[String]]] = [
        [
            [
                "b", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", "ch",
                "th",
            ],
            ["a", "e", "i", "o", "u", "ea", "ou", "é", "ü"],
        ],
        [
            ["б", "в", "г", "д", "к", "л", "м", "н", "п", "р", "с", "т"],
            ["а", "е", "и", "о", "у", "я"],
        ],
        [["κ", "λ", "μ", "ν", "π", "ρ", "σ", "τ", "θ"], ["α", "ε", "η", "ι", "ο", "ω"]],
        [["ب", "ت", "ج", "د", "ر", "س", "ع", "ف", "ك", "ل", "م", "ن"], ["ا", "و", "ي", ""]],
        [["山", "川", "田", "中", "本", "木", "村", "東", "西", "京", "大", "小"], ["", "子", "美", "原"]],
        [["김", "이", "박", "최", "정", "강", "조", "윤"], ["민", "서", "준", "하", "지", "우"]],
        [["क", "ग", "त", "द", "न", "प", "म", "र", "स"], ["ा", "ि", "ी", "े", "ो", ""]],
    ]

    static let scriptCount = 7

    init(script: Int, count: Int, _ chance: inout SeededGenerator) {
        let parts = Self.scripts[script]
        words = (0..<count).map { index in
            // Frequent words are short ones.
            let syllables = 1 + (index * 4 / count + chance.below(3)) / (script == 4 ? 3 : 2)
            return (0..<syllables).map { _ in
                parts.map { $0[chance.below($0.count)] }.joined()
            }.joined()
        }
    }

    /// A word; the first ones are the most frequent (by Zipf's law, about).
    func word(_ chance: inout SeededGenerator) -> String {
        let share = Double(chance.next() >> 11) / 9_007_199_254_740_992
        var index = 0
        // count^share is spread as 1 / index is.
        var low = 0.0
        var high = Double(words.count)
        let target = share
        // Bisecting the logarithm, without the C library: log is not needed to the last bit.
        while high - low > 0.5 {
            let middle = (low + high) / 2
            if Self.logarithm(middle + 1) / Self.logarithm(Double(words.count) + 1) < target {
                low = middle
            } else {
                high = middle
            }
        }
        index = min(words.count - 1, Int(low))
        return words[index]
    }

    /// An evenly chosen word.
    func any(_ chance: inout SeededGenerator) -> String { words[chance.below(words.count)] }

    /// A text of at least so many bytes, in sentences.
    func prose(_ bytes: Int, _ chance: inout SeededGenerator) -> String {
        var text = ""
        var begins = true
        while text.utf8.count < bytes {
            let word = word(&chance)
            text += begins ? word.prefix(1).uppercased() + word.dropFirst() : word
            begins = chance.percent(9)
            text += begins ? ". " : chance.percent(7) ? ", " : " "
        }
        return text
    }

    /// The natural logarithm, to about one part in 10,000.
    private static func logarithm(_ value: Double) -> Double {
        let exponent = value.exponent
        let rest = (value.significand - 1) / (value.significand + 1)
        let square = rest * rest
        let series = rest * (1 + square / 3 + square * square / 5 + square * square * square / 7)
        return Double(exponent) * 0.693_147_180_559_945 + 2 * series
    }
}
