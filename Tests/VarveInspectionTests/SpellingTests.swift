// How things are written, and that stored text cannot drive a terminal.

import Testing
import VarveRecords

@testable import VarveInspection

@Suite struct SpellingTests {
    @Test func `Times are ISO 8601 in UTC`() {
        #expect(Spelling.time(0) == "1970-01-01T00:00:00Z")
        #expect(Spelling.time(1_772_460_660_000_000) == "2026-03-02T14:11:00Z")
        #expect(Spelling.time(1_709_164_800_250_000) == "2024-02-29T00:00:00.25Z")
        #expect(Spelling.time(-1) == "1969-12-31T23:59:59.999999Z")
        #expect(Spelling.time(.max).hasSuffix("Z"))
        #expect(Spelling.time(.min).hasSuffix("Z"))
    }

    @Test func `A date reads back as it was written`() {
        for text in ["2026-11-20T09:00:30Z", "2001-01-01T00:00:00Z", "1969-07-20T20:17:40Z"] {
            #expect(QueryText.date(text).map { Spelling.date($0) } == text)
        }
        #expect(QueryText.date("2026-11-20") == QueryText.date("2026-11-20T00:00Z"))
        for text in [
            "", "2026", "2026-13-01", "2026-02-30", "2026-11-20T25:00", "20-11-2026", "tomorrow",
            "2026-11-20T09:00:nan",
        ] {
            #expect(QueryText.date(text) == nil, "\(text)")
        }
    }

    @Test func `Places are read in every spelling`() {
        for text in ["p@1f40", "g3:p@1f40", "0x1f40", "1f40"] {
            #expect(Spelling.offset(text) == 0x1f40, "\(text)")
        }
        for text in ["", "p@", "p@xyz", "Book:12", "p@fffffffffffffffff"] {
            #expect(Spelling.offset(text) == nil, "\(text)")
        }
    }

    @Test func `Control characters are escaped`() {
        #expect(Spelling.escaped("a\u{1B}[2Jb\n\tc\\") == "a\\u{1B}[2Jb\\n\\tc\\\\")
        #expect(Spelling.escaped("\u{202E}gpj") == "\\u{202E}gpj")
        #expect(Spelling.escaped("Zürich 🏔") == "Zürich 🏔")
        #expect(JSON.string("a\u{1B}\u{9B}\"\n").text == #""a\u001b\u009b\"\n""#)
    }

    @Test func `Large integers are strings in JSON`() {
        #expect(JSON.uint(1 << 53).text == "9007199254740992")
        #expect(JSON.uint(.max).text == "\"18446744073709551615\"")
        #expect(JSON.int(.min).text == "\"\(Int64.min)\"")
        #expect(JSON.double(.nan).text == "\"nan\"")
    }

    @Test func `Sizes and numbers are for people`() {
        #expect(Spelling.size(999) == "999 bytes")
        #expect(Spelling.size(431_612_345) == "431.6 MB")
        #expect(Spelling.number(1_044_120) == "1,044,120")
        #expect(Spelling.number(12) == "12")
    }

    @Test func `Base64 fills its last group`() {
        #expect(Spelling.base64([]) == "")
        #expect(Spelling.base64([0x4D]) == "TQ==")
        #expect(Spelling.base64([0x4D, 0x61]) == "TWE=")
        #expect(Spelling.base64([0x4D, 0x61, 0x6E]) == "TWFu")
    }

    @Test func `A mistyped name finds its neighbour`() {
        let names = ["Author", "Book", "Loan"]
        #expect(Spelling.suggestion(for: "Bok", among: names) == "Book")
        #expect(Spelling.suggestion(for: "loan", among: names) == "Loan")
        #expect(Spelling.suggestion(for: "Publisher", among: names) == nil)
    }
}
