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
        #expect(svg.components(separatedBy: "<path class=\"line round").count - 1 == 10 + 4)
        #expect(svg.components(separatedBy: "class=\"panel\"").count - 1 == 3)
        #expect(svg.contains("4,000 pictures"))
        #expect(svg.contains("rows scrolled"))
        #expect(svg.contains("= 44 MB"))
        #expect(!svg.contains("nan") && !svg.contains("inf"))
    }
}
