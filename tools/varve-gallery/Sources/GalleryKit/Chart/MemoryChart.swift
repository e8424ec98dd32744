// The chart of resident memory against rows scrolled, as SVG.

import SVGDrawing

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
    /// Where the texts above and below the panels begin.
    private var margin: Double { left - 52 }

    /// The text of the SVG file.
    package var svg: String {
        var svg = SVG(width: width, height: height, title: Self.title, styles: Self.styles)
        svg.text(Self.title, x: margin, y: 30, style: "head")
        svg.text(
            "over the start of the round, each in a process of its own; 1 MB = 1,000,000 bytes",
            x: margin,
            y: 49,
            style: "soft"
        )
        drawLegend(in: &svg)
        for (index, panel) in panels.enumerated() {
            let x = left + Double(index) * (plotWidth + gap)
            drawFrame(of: panel.pictures, x: x, isFirst: index == 0, in: &svg)
            for series in panel.series { drawLine(of: series, x: x, in: &svg) }
            drawEndLabels(panel.series, x: x, in: &svg)
        }
        return svg.document
    }

    private static let styles: String = {
        let common =
            "text{font:12px system-ui,'DejaVu Sans',sans-serif}"
            + ".head{font-size:17px;font-weight:600}.panel{font-size:13px;font-weight:600}"
            + ".line{fill:none;stroke-width:2;stroke-linejoin:round}.bound{stroke-dasharray:5 4}"
            + ".peak{font-weight:600}"
        func colours(_ rounds: [String]) -> String {
            rounds.enumerated().map { index, colour in
                ".round\(index + 1){stroke:\(colour)}"
                    + "text.round\(index + 1){stroke:none;fill:\(colour)}"
            }.joined()
        }
        let day =
            "text{fill:#333}.head,.panel{fill:#111}.soft{fill:#666}.page{fill:#fff}"
            + ".grid{stroke:#e3e3e3}.axis{stroke:#888}.bound{stroke:#777}"
            + colours(["#d1481f", "#b07a00", "#17877b", "#3f6fd1"])
        let night =
            "text{fill:#ccc}.head,.panel{fill:#f2f2f2}.soft{fill:#a0a0a0}.page{fill:#16181c}"
            + ".grid{stroke:#2c3037}.axis{stroke:#777}.bound{stroke:#999}"
            + colours(["#f0714a", "#d9a32b", "#35b5a6", "#7aa2f7"])
        return common + day + "@media (prefers-color-scheme:dark){" + night + "}"
    }()

    /// Two rows of line samples with what the round does, above the panels.
    private func drawLegend(in svg: inout SVG) {
        let rounds = Set(panels.flatMap(\.series).map(\.round)).sorted()
        let rows = (rounds.count + 1) / 2
        for (index, round) in rounds.enumerated() {
            let x = margin + Double(index / rows) * 300
            let y = 70 + Double(index % rows) * 17
            svg.line(x, y - 4, x + 22, y - 4, style: "line round\(round)")
            svg.text("\(round)  \(Self.roundTitles[round] ?? "")", x: x + 29, y: y)
        }
    }

    private func drawFrame(of pictures: Int, x: Double, isFirst: Bool, in svg: inout SVG) {
        svg.text("\(pictures.grouped) pictures", x: x, y: plotTop - 8, style: "panel")
        for value in stride(from: 0, through: top, by: yStep) {
            let y = vertical(value)
            svg.line(x, y, x + plotWidth, y, style: value == 0 ? "axis" : "grid")
            guard isFirst else { continue }
            svg.text(Self.megabyteLabel(value), x: x - 8, y: y + 4, anchor: .end)
        }
        let step = Self.niceStep(for: pictures, parts: 4)
        for rows in stride(from: 0, through: pictures, by: step) {
            let position = x + Double(rows) / Double(pictures) * plotWidth
            svg.line(position, plotBottom, position, plotBottom + 5, style: "axis")
            svg.text(rows.grouped, x: position, y: plotBottom + 19, anchor: .middle)
        }
        svg.text(
            "rows scrolled",
            x: x + plotWidth / 2,
            y: plotBottom + 40,
            anchor: .middle,
            style: "soft"
        )
        if isFirst { drawMeanings(x: x, in: &svg) }
        svg.line(x, vertical(bound), x + plotWidth, vertical(bound), style: "bound")
    }

    /// What the vertical axis and the dashed line are.
    private func drawMeanings(x: Double, in svg: inout SVG) {
        svg.upwardText(
            "MB over the start",
            x: x - 58,
            y: plotTop + plotHeight / 2,
            anchor: .middle,
            style: "soft"
        )
        svg.line(margin, height - 16, margin + 22, height - 16, style: "bound")
        svg.text(
            "the bound for rounds 3 and 4: bytes of the largest window + 24 MB = "
                + "\(Self.megabyteLabel(bound)) MB",
            x: margin + 29,
            y: height - 12,
            style: "soft"
        )
    }

    private func drawLine(of series: Series, x: Double, in svg: inout SVG) {
        let values = series.bytesOverStart
        guard !values.isEmpty else { return }
        let bucket = (values.count + Self.mostPoints - 1) / Self.mostPoints
        // The highest value of each bucket, so that thinning the line never hides a peak.
        let points = stride(from: 0, to: values.count, by: bucket).map { start in
            let end = min(start + bucket, values.count)
            let highest = values[start..<end].max() ?? 0
            return (
                x: x + Double(end) / Double(series.pictures) * plotWidth, y: vertical(highest)
            )
        }
        svg.polyline(points, style: "line round\(series.round)")
    }

    /// The peak of each round at the right end of its line, moved apart where two would overlap.
    private func drawEndLabels(_ series: [Series], x: Double, in svg: inout SVG) {
        let labels = series.map { series in
            (
                round: series.round, peak: series.bytesOverStart.max() ?? 0,
                last: series.bytesOverStart.last ?? 0
            )
        }.sorted { ($0.last, $1.round) < ($1.last, $0.round) }  // lowest first
        var lowestFree = plotBottom + 4
        for label in labels {
            let y = min(vertical(label.last) + 4, lowestFree)
            lowestFree = y - 15
            svg.text(
                "\(label.round): \(Self.megabyteLabel(label.peak)) MB",
                x: x + plotWidth + 6,
                y: y,
                style: "peak round\(label.round)"
            )
        }
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
