// What text filters ignore: the table against Foundation, and what is the same and what is not.

import Foundation
import Testing
import VarveBase
import VarveTesting

@testable import VarveRecords

@Suite(.verified) struct TextFoldingTests {
    @Test func `Every scalar decomposes as Foundation decomposes it`() {
        for value in UInt32(0x80)..<0x3_0000 {
            guard let scalar = Unicode.Scalar(value),
                let age = scalar.properties.age, age.major <= 14
            else { continue }
            let text = String(scalar)
            let wanted = QueryFolding.folded(text, .diacritics)
            let found = TextFolding.diacritics.folded(text)
            // `==` of texts would call canonically equivalent ones the same.
            if Array(found.utf8) != Array(wanted.utf8) {
                Issue.record("U+\(String(value, radix: 16)) becomes \(found), not \(wanted)")
            }
        }
    }

    @Test func `Canonically equivalent texts are the same`() {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("TextFoldingTests seed \(seed)")
        var random = SeededRandom(seed: seed)
        let scalars = "aeÄéçǖậ가갛が≠ñ\u{301}\u{323}\u{338}\u{3099}\u{5B0}\u{64B}\u{E48}\u{E38}\u{94D}"
            .unicodeScalars.map { $0 }
        for _ in 0..<2_000 {
            var view = String.UnicodeScalarView()
            for _ in 0..<Int.random(in: 0..<8, using: &random) {
                if let scalar = scalars.randomElement(using: &random) { view.append(scalar) }
            }
            let text = String(view)
            for folding in [TextFolding.diacritics, [.diacritics, .caseDifferences]] {
                let forms = [
                    text, text.precomposedStringWithCanonicalMapping,
                    text.decomposedStringWithCanonicalMapping,
                ].map { Array(folding.folded($0).utf8) }
                #expect(forms[0] == forms[1] && forms[1] == forms[2], "seed \(seed) \(text)")
                #expect(forms[0] == Array(QueryFolding.folded(text, folding).utf8))
            }
        }
    }

    @Test(arguments: [
        ("é", "e", true, true), ("É", "e", true, false), ("ÀÉÎÕÜ", "aeiou", true, false),
        ("Ångström", "angstrom", true, false), ("ł", "l", false, false), ("ß", "ss", false, false),
        ("ø", "o", false, false), ("が", "か", false, false), ("≠", "=", false, false),
        ("שָׁלוֹם", "שלום", true, true), ("İ", "i", true, false),
    ])
    func `Texts are the same`(left: String, right: String, both: Bool, marks: Bool) {
        func same(_ folding: TextFolding) -> Bool {
            Array(folding.folded(left).utf8) == Array(folding.folded(right).utf8)
        }
        #expect(same([.caseDifferences, .diacritics]) == both)
        #expect(same(.diacritics) == marks)
        #expect(!same([]) && !same(.caseDifferences))
    }

    @Test func `A long run of marks is no quadratic work`() {
        // 300,000 marks that stay, in the worst order.
        var view = String.UnicodeScalarView()
        view.append("a")
        for index in 0..<300_000 { view.append(index.isMultiple(of: 2) ? "\u{3099}" : "\u{338}") }
        #expect(TextFolding.diacritics.folded(String(view)).unicodeScalars.count == 300_001)
    }
}
