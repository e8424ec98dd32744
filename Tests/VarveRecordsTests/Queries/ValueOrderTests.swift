// The order of values: total, equal to the order of keys, whatever the type.

import Testing
import VarveBase
import VarveFormat
import VarveTesting

@testable import VarveRecords

@Suite(.verified) struct ValueOrderTests {
    private static func values(_ random: inout SeededRandom) -> [[StoredValue]] {
        func some<Value>(_ count: Int, _ body: (inout SeededRandom) -> Value) -> [Value] {
            (0..<count).map { _ in body(&random) }
        }
        let doubles: [Double] =
            [0, -0.0, 1, -1, .nan, -.nan, .infinity, -.infinity, .leastNonzeroMagnitude]
            + some(30) { Double(bitPattern: $0.next()) }
        let decimals: [DecimalValue] = some(40) { random in
            let digits = (0..<Int.random(in: 0..<6, using: &random)).map { _ in
                UInt8.random(in: 0...9, using: &random)
            }
            return DecimalValue(
                normalizing: Bool.random(using: &random),
                digits: digits,
                exponent: Int.random(in: -4...4, using: &random)
            ) ?? .zero
        }
        return [
            [.bool(false), .bool(true)],
            [Int64.min, -1, 0, 1, .max].map { .int($0) }
                + some(30) { .int(Int64(bitPattern: $0.next())) },
            doubles.map { .double($0) }, doubles.map { .date($0) },
            doubles.map { .float(Float($0)) },
            [
                "", "a", "ab", "b", "Z", "\u{0}", "a\u{0}", "a\u{0}b", "ä", "a\u{308}",
                "\u{10FFFF}", "\u{FFFF}",
            ]
            .map { .text($0) },
            some(40) { random in
                .data(
                    (0..<Int.random(in: 0..<5, using: &random)).map { _ in
                        [0, 1, 2, 0xFF].randomElement(using: &random) ?? 0
                    }
                )
            },
            some(20) { .uuid(UUIDValue(high: $0.next() % 3, low: $0.next())) },
            decimals.map { .decimal($0) },
            some(20) { .reference(ObjectID($0.next())) },
            some(20) { random in
                .blob(
                    BlobReference(
                        digest: BlobDigest(random.next() % 2, random.next(), 0, 0),
                        length: random.next() % 3
                    )
                )
            },
        ].map { $0 + [.null] }
    }

    @Test func `Values and their keys have one order`() {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("ValueOrderTests seed \(seed)")
        var random = SeededRandom(seed: seed)
        for values in Self.values(&random) {
            for left in values {
                for right in values {
                    var a: [UInt8] = []
                    var b: [UInt8] = []
                    KeyCoding.append(left, to: &a)
                    KeyCoding.append(right, to: &b)
                    #expect(
                        ValueOrder.compare(left, right).signum()
                            == IndexKeys.compare(a, b).signum(),
                        "seed \(seed): \(left) and \(right)"
                    )
                }
            }
        }
    }

    @Test func `Keys for sorting in memory keep long texts whole`() {
        let long = String(repeating: "q", count: 400)
        let texts = [
            long, long + "\u{0}", long + "a", long + "b", String(long.dropLast()), long + "a\u{0}",
        ]
        for isDescending in [false, true] {
            for left in texts {
                for right in texts {
                    var a: [UInt8] = []
                    var b: [UInt8] = []
                    CompiledSort.append(.text(left), descending: isDescending, to: &a)
                    CompiledSort.append(.text(right), descending: isDescending, to: &b)
                    let order = ValueOrder.texts(left, right) * (isDescending ? -1 : 1)
                    #expect(IndexKeys.compare(a, b).signum() == order.signum())
                }
            }
        }
    }

    @Test func `Text is found by its bytes`() {
        func finds(_ match: TextMatch, _ needle: String, _ text: String, ignoringCase: Bool = false)
            -> Bool
        {
            return TextNeedle(match, needle, ignoring: ignoringCase ? .caseDifferences : [])
                .matches(text)
        }
        #expect(finds(.contains, "aab", "aaab"))
        #expect(finds(.contains, "", ""))
        #expect(!finds(.contains, "abc", "ab"))
        #expect(finds(.hasPrefix, "a", "abc") && !finds(.hasPrefix, "b", "abc"))
        #expect(finds(.hasSuffix, "bc", "abc") && !finds(.hasSuffix, "ab", "abc"))
        #expect(finds(.contains, "STRASSE", "Hauptstrasse 1", ignoringCase: true))
        #expect(finds(.equal, "ÄB", "äb", ignoringCase: true) && !finds(.equal, "ÄB", "äb"))
        // Composed and decomposed forms are different bytes.
        #expect(!finds(.contains, "ä", "a\u{308}"))
    }
}
