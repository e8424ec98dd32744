// Words that are made from a seed, in several scripts, some far more frequent than others.

/// Words of one script.
struct Vocabulary {
    private let words: [String]
    /// The sum of the weights up to each word: the weight of the n-th is 1/n, as Zipf found.
    private let sums: [Double]

    /// How many scripts there are; the first one is Latin.
    static let scriptCount = 7

    /// Consonants, vowels and endings of a script's syllables, or its signs.
    private static let scripts: [[String]] = [
        [
            "b c d f g h j k l m n p r s t v w z bl br ch cl cr dr fl gr pl pr sh sl sp st str th",
            "a e i o u y ai ea ee ie oa ou ue é ü", "  l m n r s t d ck nd ng nt rt st",
        ],
        ["б в г д ж з к л м н п р с т ф х ц ч ш щ", "а е и о у ы э ю я", "   й л н р с т"],
        ["β γ δ ζ θ κ λ μ ν ξ π ρ σ τ φ χ ψ", "α ε η ι ο υ ω ου ει", "   ν ς ρ"],
        ["ب ت ث ج ح خ د ر ز س ش ص ط ع ف ق ك ل م ن ه", "ا و ي  ", "   ن ة"],
        ["山 川 田 中 本 木 村 東 西 京 大 小 野 高 林 石 井 藤 佐 加", "子 美 原 一 郎 "],
        ["김 이 박 최 정 강 조 윤 장 임 한 오 서 신", "민 서 준 하 지 우 현 영 수 진 은 호"],
        ["क ख ग च ज त द न प ब म य र ल व श स ह", "ा ि ी ु े ो  ", "   न र"],
    ]

    init(script: Int, count: Int, _ chance: inout SeededGenerator) {
        let parts = Self.scripts[script].map {
            $0.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        }
        words = (0..<count).map { index in
            // Frequent words are short ones.
            let syllables = 1 + (index * 4 / count + chance.below(3)) / (script == 4 ? 3 : 2)
            return (0..<syllables).map { _ in
                parts.map { $0[chance.below($0.count)] }.joined()
            }.joined()
        }
        var sum = 0.0
        sums = (1...count).map { number in
            sum += 1 / Double(number)
            return sum
        }
    }

    /// A word, the first ones most often.
    func word(_ chance: inout SeededGenerator) -> String {
        let target = Double(chance.next() >> 11) / 9_007_199_254_740_992 * sums[sums.count - 1]
        var low = 0
        var high = sums.count - 1
        while low < high {
            let middle = (low + high) / 2
            if sums[middle] < target { low = middle + 1 } else { high = middle }
        }
        return words[low]
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
}
