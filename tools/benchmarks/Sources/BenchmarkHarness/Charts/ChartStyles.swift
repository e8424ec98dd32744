// What the charts look like: the classes of their shapes, for light and for dark pages.

import SVGDrawing

extension SVG {
    /// An empty chart.
    init(width: Double, height: Double, title: String) {
        self.init(width: width, height: height, title: title, styles: ChartStyles.css)
    }
}

enum ChartStyles {
    /// Colours that differ in hue and in brightness; the dark page has lighter ones.
    private static let light = [
        "#1668dc", "#d9730d", "#a34bb5", "#1a8a4c", "#c92a2a", "#0b7f8c", "#8a6d3b",
    ]
    private static let dark = [
        "#6cb0ff", "#ffa94d", "#d49ae0", "#5fd08d", "#ff8787", "#4fd1dd", "#d8b679",
    ]

    static let css: String = {
        func colours(_ names: [String]) -> String {
            names.enumerated().map { index, colour in
                ".fill\(index){fill:\(colour)}.line\(index){stroke:\(colour)}"
            }.joined()
        }
        let common =
            "text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;"
            + "font-size:12px}.title{font-size:16px;font-weight:600}.small{font-size:11px}"
            + "line,polyline{stroke-width:1;fill:none}.series{stroke-width:2}"
            + ".own{stroke-width:3}.goal{stroke-width:2}.short{stroke-dasharray:2 3}"
        let day =
            ".page{fill:#ffffff}.label,.small,.title{fill:#1f2328}.small{fill:#59636e}"
            + ".grid{stroke:#e3e7ec}.axis{stroke:#8b949e}.band{fill:#f6f8fa}" + colours(light)
        let night =
            ".page{fill:#0d1117}.label,.title{fill:#e6edf3}.small{fill:#9198a1}"
            + ".grid{stroke:#2a313a}.axis{stroke:#7d8590}.band{fill:#151b23}" + colours(dark)
        return common + day + "@media (prefers-color-scheme:dark){" + night + "}"
    }()
}
