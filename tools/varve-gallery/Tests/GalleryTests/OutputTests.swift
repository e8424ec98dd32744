// Progress bar, JSON, numbers and chart.

import Foundation
import GalleryKit
import Testing

@Suite("Output") struct OutputTests {
    @Test("The progress bar grows by eighths of a character") func progressBarGrows() {
        #expect(
            ProgressBar.line(title: "cities", done: 0, total: 40_000)
                == "cities     ░░░░░░░░░░░░░░░░░░░░░░░░░░░░   0 %  0 of 40,000"
        )
        #expect(
            ProgressBar.line(title: "cities", done: 20_358, total: 40_000)
                == "cities     ██████████████▎░░░░░░░░░░░░░  50 %  20,358 of 40,000"
        )
        #expect(
            ProgressBar.line(title: "cities", done: 40_000, total: 40_000)
                == "cities     ████████████████████████████ 100 %  40,000 of 40,000"
        )
    }

    @Test("A JSON line keeps the order of its fields and quotes text")
    func jsonLinesAreJSON() throws {
        let line = JSONLine(fields: [
            ("step", .text("a \"b\"\\\n")), ("milliseconds", .number(1.5)),
            ("rowsRead", .integer(-3)),
        ])
        #expect(line.text == #"{"step":"a \"b\"\\\u000a","milliseconds":1.500,"rowsRead":-3}"#)
        #expect(throws: Never.self) {
            try JSONSerialization.jsonObject(with: Data(line.text.utf8))
        }
    }

    @Test("Numbers are written in groups of three") func numbersAreGrouped() {
        #expect([0, 999, 1_000, -1_234_567].map(\.grouped) == ["0", "999", "1,000", "-1,234,567"])
    }

    @Test("The chart has a panel for each number of pictures and a line for each round")
    func chartShowsEveryRound() {
        let series = [100, 400, 4_000].flatMap { pictures in
            (pictures > 400 ? 3...4 : 1...4).map { round in
                MemoryChart.Series(
                    round: round,
                    pictures: pictures,
                    windowBytes: 20_000_000,
                    bytesOverStart: (0..<pictures).map { round == 1 ? $0 * 2_000_000 : 30_000_000 }
                )
            }
        }
        let svg = MemoryChart(series).svg
        #expect(svg.components(separatedBy: "class=\"line round").count - 1 == 10 + 4)
        #expect(svg.components(separatedBy: "class=\"panel\"").count - 1 == 3)
        #expect(svg.contains("4,000 pictures"))
        #expect(svg.contains("rows scrolled"))
        #expect(svg.contains("translate(18.0 268.0) rotate(-90)"))
        #expect(svg.contains("= 44 MB"))
        #expect(!svg.contains("nan") && !svg.contains("inf"))
    }

    /// Round 1 grows, the others lie on each other; the bound is 44 MB.
    private static func series(_ pictures: Int) -> [MemoryChart.Series] {
        (pictures > 400 ? 3...4 : 1...4).map { round in
            MemoryChart.Series(
                round: round,
                pictures: pictures,
                windowBytes: 20_000_000,
                bytesOverStart: (1...pictures).map { round == 1 ? $0 * 2_000_000 : 30_000_000 }
            )
        }
    }

    @Test("In the terminal what is within the bound stands under its line, and all else over it")
    func textChartKeepsTheBound() throws {
        let text = MemoryChart(Self.series(100)).text(inColor: false)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let bound = try #require(lines.firstIndex { $0.contains("44 ┤╌╌╌") })
        let foot = try #require(lines.firstIndex { $0.contains("└──") })
        // Lines have 11 MB each: 30 MB are on the third, where the rounds take turns.
        #expect(foot - bound == 5)
        #expect(lines[foot - 3].contains("234234234234234"))
        let over = lines[..<bound].filter { $0.contains("│") }.joined()
        #expect(over.contains("1") && !over.contains("2") && !over.contains("3"))
        // 200 MB are more than the drawing has: it says so where round 1 leaves it.
        #expect(lines[..<bound].contains { $0.contains("↑ 1: up to 200") })
        #expect(text.hasSuffix("largest window + 24 MB = 44"))
    }

    @Test("A steep line has no gaps, and a value that is the bound is within it")
    func textChartHasNoGaps() throws {
        let steps = [44_000_000, 44_000_000, 120_000_000, 44_000_001]
        let chart = MemoryChart([
            MemoryChart.Series(
                round: 3,
                pictures: 4,
                windowBytes: 20_000_000,
                bytesOverStart: steps
            )
        ])
        let lines = chart.text(inColor: false).split(separator: "\n").map(String.init)
        let bound = try #require(lines.firstIndex { $0.contains("44 ┤") })
        let drawn = lines[..<bound].filter { $0.contains("│") }
        #expect(drawn.count == 7)
        for line in drawn { #expect(line.contains("3"), "\(line)") }
        let under = lines[bound + 1]
        // Half of the 73 columns: the first two values, and not the last.
        #expect(under.hasSuffix("│" + String(repeating: "3", count: 37)))
    }

    @Test("The drawing in the terminal has 80 columns, and colours only where they are wanted")
    func textChartFitsTheTerminal() {
        for counts in [[1], [100, 400], [100, 400, 4_000], [1, 2, 3, 4, 5, 6, 7]] {
            let chart = MemoryChart(counts.flatMap(Self.series))
            let text = chart.text(inColor: false)
            for line in text.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
            for count in counts { #expect(text.contains("\(count.grouped) pictures")) }
            #expect(!text.contains("\u{1b}"))
            let colored = chart.text(inColor: true)
            #expect(colored.contains("\u{1b}[36m3\u{1b}[0m"))
            var plain = colored
            for code in ["[31m", "[33m", "[36m", "[34m", "[0m"] {
                plain = plain.replacingOccurrences(of: "\u{1b}" + code, with: "")
            }
            #expect(plain == text)
        }
    }
}
