// The chart of resident memory against rows scrolled, as SVG.

import Foundation

/// Draws resident memory against rows scrolled as an SVG picture: one panel for each number of
/// pictures, all with the same height of a megabyte, so that the eye compares them. Works on light
/// and on dark pages, since it brings its own background for both.
package struct MemoryChart {
    /// What one round measured.
    package struct Series {
        package var round: Int
        package var pictures: Int
        /// The most bytes that the pictures of one window have.
        package var windowBytes: Int
        /// Resident bytes over the start, one value per row scrolled.
        package var bytesOverStart: [Int]

        package init(round: Int, pictures: Int, windowBytes: Int, bytesOverStart: [Int]) {
            self.round = round
            self.pictures = pictures
            self.windowBytes = windowBytes
            self.bytesOverStart = bytesOverStart
        }
    }

    /// What each round does, for the legend.
    package static let roundTitles = [
        1: "keep every picture’s bytes",
        2: "drop the bytes that leave the window",
        3: "also turn the objects back into faults",
        4: "background context, nothing held",
    ]

    private static let title = "Resident memory while pictures scroll by"
    /// What rounds 3 and 4 may hold besides the pictures of the window, in bytes.
    package static let allowance = 24_000_000
    private static let mostPoints = 400

    typealias Panel = (pictures: Int, series: [Series])
    let panels: [Panel]
    private let top: Int  // bytes at the upper edge of every panel
    private let yStep: Int
    let bound: Int

    package init(_ series: [Series]) {
        let counts = Set(series.map(\.pictures)).sorted()
        panels = counts.map { count in
            (count, series.filter { $0.pictures == count }.sorted { $0.round < $1.round })
        }
        bound = (series.map(\.windowBytes).max() ?? 0) + Self.allowance
        let highest = max(bound, series.flatMap(\.bytesOverStart).max() ?? 0)
        yStep = Self.niceStep(for: highest, parts: 6)
        top = (highest / yStep + 1) * yStep
    }

    // Sizes in SVG units.
    private let plotHeight = 300.0
    private let plotTop = 118.0
    private let left = 76.0
    private let gap = 92.0
    private var plotWidth: Double { panels.count > 1 ? 270 : 540 }
    private var width: Double {
        left + Double(panels.count) * plotWidth + Double(max(0, panels.count - 1)) * gap + 104
    }
    private var plotBottom: Double { plotTop + plotHeight }
    private var height: Double { plotBottom + 78 }

    /// The text of the SVG file.
    package var svg: String {
        var parts = [opening, legend]
        for (index, panel) in panels.enumerated() {
            let x = left + Double(index) * (plotWidth + gap)
            parts.append(frame(of: panel.pictures, x: x, isFirst: index == 0))
            parts += panel.series.map { line(for: $0, x: x) }
            parts.append(endLabels(panel.series, x: x))
        }
        parts.append("</svg>\n")
        return parts.joined(separator: "\n")
    }

    private var opening: String {
        let note =
            "over the start of the round, each in a process of its own; 1 MB = 1,000,000 bytes"
        return """
            <svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="title" \
            width="\(width.fixed(0))" height="\(height.fixed(0))" \
            viewBox="0 0 \(width.fixed(0)) \(height.fixed(0))">
            <title id="title">Resident memory against rows scrolled</title>
            <style>
            text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #333 }
            .head { font-size: 17px; font-weight: 600; fill: #111 }
            .panel { font-size: 13px; font-weight: 600; fill: #111 }
            .soft { fill: #666 }
            .page { fill: #fff } .grid { stroke: #e3e3e3 }
            .axis { stroke: #888 } .bound { stroke: #777 }
            .line { fill: none; stroke-width: 2; stroke-linejoin: round }
            .round1 { stroke: #d1481f } .round2 { stroke: #b07a00 }
            .round3 { stroke: #17877b } .round4 { stroke: #3f6fd1 }
            text.round1, text.round2, text.round3, text.round4 { stroke: none; font-weight: 600 }
            text.round1 { fill: #d1481f } text.round2 { fill: #b07a00 }
            text.round3 { fill: #17877b } text.round4 { fill: #3f6fd1 }
            @media (prefers-color-scheme: dark) {
            text { fill: #ccc } .head, .panel { fill: #f2f2f2 } .soft { fill: #a0a0a0 }
            .page { fill: #16181c } .grid { stroke: #2c3037 }
            .axis { stroke: #777 } .bound { stroke: #999 }
            .round1 { stroke: #f0714a } .round2 { stroke: #d9a32b }
            .round3 { stroke: #35b5a6 } .round4 { stroke: #7aa2f7 }
            text.round1 { fill: #f0714a } text.round2 { fill: #d9a32b }
            text.round3 { fill: #35b5a6 } text.round4 { fill: #7aa2f7 }
            }
            </style>
            <rect class="page" width="100%" height="100%"/>
            <text class="head" x="\(left - 52)" y="30">\(Self.title)</text>
            <text class="soft" x="\(left - 52)" y="49">\(note)</text>
            """
    }

    /// Two rows of line samples with what the round does, above the panels.
    private var legend: String {
        let rounds = Set(panels.flatMap(\.series).map(\.round)).sorted()
        let rows = (rounds.count + 1) / 2
        return rounds.enumerated().map { index, round in
            let x = left - 52 + Double(index / rows) * 300
            let y = 70 + Double(index % rows) * 17
            return """
                <path class="line round\(round)" d="M\(x.fixed(1)) \((y - 4).fixed(1))h22"/>
                <text x="\((x + 29).fixed(1))" y="\(y.fixed(1))">\(round)  \
                \(Self.roundTitles[round] ?? "")</text>
                """
        }.joined(separator: "\n")
    }

    private func frame(of pictures: Int, x: Double, isFirst: Bool) -> String {
        var parts = [
            "<text class=\"panel\" x=\"\(x)\" y=\"\(plotTop - 8)\">"
                + "\(pictures.grouped) pictures</text>"
        ]
        for value in stride(from: 0, through: top, by: yStep) {
            let y = vertical(value)
            let kind = value == 0 ? "axis" : "grid"
            parts.append("<path class=\"\(kind)\" d=\"M\(x) \(y.fixed(1))h\(plotWidth)\"/>")
            guard isFirst else { continue }
            parts.append(
                "<text x=\"\(x - 8)\" y=\"\((y + 4).fixed(1))\" text-anchor=\"end\">"
                    + "\(Self.megabyteLabel(value))</text>"
            )
        }
        let step = Self.niceStep(for: pictures, parts: 4)
        for rows in stride(from: 0, through: pictures, by: step) {
            let position = x + Double(rows) / Double(pictures) * plotWidth
            parts.append(
                "<path class=\"axis\" d=\"M\(position.fixed(1)) \(plotBottom)v5\"/>"
                    + "<text x=\"\(position.fixed(1))\" y=\"\(plotBottom + 19)\" "
                    + "text-anchor=\"middle\">\(rows.grouped)</text>"
            )
        }
        parts.append(
            "<text class=\"soft\" x=\"\(x + plotWidth / 2)\" y=\"\(plotBottom + 40)\" "
                + "text-anchor=\"middle\">rows scrolled</text>"
        )
        if isFirst {
            let middle = plotTop + plotHeight / 2
            parts.append(
                "<text class=\"soft\" transform=\"translate(\(x - 58) \(middle)) rotate(-90)\" "
                    + "text-anchor=\"middle\">MB over the start</text>"
            )
            parts.append(
                "<path class=\"bound\" stroke-dasharray=\"5 4\" "
                    + "d=\"M\(left - 52) \((height - 16).fixed(1))h22\"/>"
                    + "<text class=\"soft\" x=\"\(left - 23)\" y=\"\((height - 12).fixed(1))\">"
                    + "the bound for rounds 3 and 4: bytes of the largest window + 24 MB = "
                    + "\(Self.megabyteLabel(bound)) MB</text>"
            )
        }
        parts.append(
            "<path class=\"bound\" stroke-dasharray=\"5 4\" "
                + "d=\"M\(x) \(vertical(bound).fixed(1))h\(plotWidth)\"/>"
        )
        return parts.joined(separator: "\n")
    }

    private func line(for series: Series, x: Double) -> String {
        let values = series.bytesOverStart
        guard !values.isEmpty else { return "" }
        let bucket = (values.count + Self.mostPoints - 1) / Self.mostPoints
        // The highest value of each bucket, so that thinning the line never hides a peak.
        let points = stride(from: 0, to: values.count, by: bucket).map { start in
            let end = min(start + bucket, values.count)
            let highest = values[start..<end].max() ?? 0
            let position = x + Double(end) / Double(series.pictures) * plotWidth
            return "\(position.fixed(1)) \(vertical(highest).fixed(1))"
        }
        return "<path class=\"line round\(series.round)\" d=\"M\(points.joined(separator: "L"))\"/>"
    }

    /// The peak of each round at the right end of its line, moved apart where two would overlap.
    private func endLabels(_ series: [Series], x: Double) -> String {
        let labels = series.map { series in
            (
                round: series.round, peak: series.bytesOverStart.max() ?? 0,
                last: series.bytesOverStart.last ?? 0
            )
        }.sorted { ($0.last, $1.round) < ($1.last, $0.round) }  // lowest first
        var lowestFree = plotBottom + 4
        return labels.map { label in
            let y = min(vertical(label.last) + 4, lowestFree)
            lowestFree = y - 15
            return "<text class=\"round\(label.round)\" x=\"\(x + plotWidth + 6)\" "
                + "y=\"\(y.fixed(1))\">\(label.round): \(Self.megabyteLabel(label.peak)) MB</text>"
        }.joined(separator: "\n")
    }

    private func vertical(_ bytes: Int) -> Double {
        plotBottom - min(1, max(0, Double(bytes) / Double(top))) * plotHeight
    }

    static func megabyteLabel(_ bytes: Int) -> String {
        Int((Double(bytes) / 1_000_000).rounded()).grouped
    }

    /// A step of 1, 2 or 5 times a power of ten that divides `value` into about `parts` parts.
    private static func niceStep(for value: Int, parts: Int) -> Int {
        var power = 1
        while true {
            for factor in [1, 2, 5] where value <= factor * power * parts { return factor * power }
            power *= 10
        }
    }
}
