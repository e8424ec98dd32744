// Numbers over a size or a number of savers: panels side by side, one line per engine, both axes
// logarithmic.

import SVGDrawing

/// One panel: a number over something.
struct Panel {
    /// What is measured.
    var title: String
    /// "s", "1/s".
    var unit: String
    /// Whether more is better.
    var better: Preference
    /// Points of each engine, by the number along the axis.
    var lines: [(engine: String, points: [(x: Double, y: Double)])]
}

/// Panels in a grid.
struct LineChart {
    let title: String
    let note: String
    let panels: [Panel]
    /// What stands along the horizontal axis.
    let axisName: String
    /// The values that were measured, with their names.
    let marks: [(value: Double, name: String)]

    /// Few panels are wide, so that the legend has room.
    private var panelWidth: Double { panels.count < 3 ? 440 : 300 }
    private static let panelHeight = 250.0
    private static let columns = 3

    /// nil without anything to draw.
    func draw() -> SVG? {
        let drawn = panels.filter { !$0.lines.isEmpty }
        guard !drawn.isEmpty, marks.count > 1 else { return nil }
        let columns = min(Self.columns, drawn.count)
        let rows = (drawn.count + columns - 1) / columns
        var svg = SVG(
            width: Double(max(columns, 2)) * panelWidth + 20,
            height: 88 + Double(rows) * Self.panelHeight + 10,
            title: title
        )
        svg.text(title, x: 16, y: 26, style: "title")
        svg.text(note, x: 16, y: 46, style: "small")
        let present = Set(drawn.flatMap { $0.lines.map(\.engine) })
        Series.legend(
            Series.all.map(\.engine).filter(present.contains),
            x: 16,
            y: 68,
            in: &svg
        )
        for (index, panel) in drawn.enumerated() {
            let x = 10 + Double(index % columns) * panelWidth
            let y = 82 + Double(index / columns) * Self.panelHeight
            draw(panel, x: x, y: y, in: &svg)
        }
        return svg
    }

    private func draw(_ panel: Panel, x: Double, y: Double, in svg: inout SVG) {
        let left = x + 62
        let right = x + panelWidth - 18
        let top = y + 30
        let bottom = y + Self.panelHeight - 42
        svg.text(panel.title, x: x + 6, y: y + 18)
        let goodWay = panel.better == .more ? "more is better" : "less is better"
        svg.text(goodWay, x: right, y: y + 18, anchor: .end, style: "small")
        let values = panel.lines.flatMap { $0.points.map(\.y) }
        guard let vertical = LogAxis(values, from: bottom, to: top),
            let horizontal = LogAxis(marks.map(\.value), from: left, to: right)
        else { return }
        for mark in vertical.marks {
            let height = vertical.place(mark)
            svg.line(left, height, right, height, style: "grid")
            let name = Format.mark(mark, unit: panel.unit)
            svg.text(name, x: left - 6, y: height + 4, anchor: .end, style: "small")
        }
        for mark in marks {
            let place = horizontal.place(mark.value)
            svg.line(place, top, place, bottom, style: "grid")
            svg.text(mark.name, x: place, y: bottom + 15, anchor: .middle, style: "small")
        }
        svg.text(axisName, x: (left + right) / 2, y: bottom + 31, anchor: .middle, style: "small")
        // Varve last, so that nothing covers it.
        for line in panel.lines.reversed() {
            let colour = Series.colour(line.engine)
            let points = line.points.map { (horizontal.place($0.x), vertical.place($0.y)) }
            let weight = line.engine == Report.varve ? "own" : "series"
            svg.polyline(points.map { (x: $0.0, y: $0.1) }, style: "line\(colour) \(weight)")
            for point in points {
                svg.dot(x: point.0, y: point.1, radius: 3.5, style: "fill\(colour)")
            }
        }
    }
}

extension Format {
    /// A power of ten with its unit, without digits behind the point.
    static func mark(_ value: Double, unit: String) -> String {
        let text = quantity(value * 1.000_000_1, unit: unit)
        let parts = text.split(separator: " ", maxSplits: 1)
        guard let digits = parts.first, let dot = digits.firstIndex(of: ".") else { return text }
        return ([String(digits[..<dot])] + parts.dropFirst().map(String.init))
            .joined(separator: " ")
    }
}
