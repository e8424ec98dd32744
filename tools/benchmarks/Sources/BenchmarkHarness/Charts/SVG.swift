// Drawings as SVG text: a few shapes, colours by class, readable on light and dark pages.

/// A drawing that grows shape by shape. Coordinates are in pixels from the upper left corner.
struct SVG {
    /// How a text stands to its place.
    enum Anchor: String {
        case start, middle, end
    }

    let width: Double
    let height: Double
    private let title: String
    private var shapes: [String] = []

    init(width: Double, height: Double, title: String) {
        self.width = width
        self.height = height
        self.title = title
    }

    /// A text with its baseline at a height.
    mutating func text(
        _ text: String,
        x: Double,
        y: Double,
        anchor: Anchor = .start,
        style: String = "label"
    ) {
        shapes.append(
            "<text x=\"\(number(x))\" y=\"\(number(y))\" class=\"\(style)\" "
                + "text-anchor=\"\(anchor.rawValue)\">\(Self.escaped(text))</text>"
        )
    }

    /// A straight line.
    mutating func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, style: String) {
        shapes.append(
            "<line x1=\"\(number(x1))\" y1=\"\(number(y1))\" x2=\"\(number(x2))\" "
                + "y2=\"\(number(y2))\" class=\"\(style)\"/>"
        )
    }

    /// A line through points.
    mutating func polyline(_ points: [(x: Double, y: Double)], style: String) {
        let text = points.map { number($0.x) + "," + number($0.y) }.joined(separator: " ")
        shapes.append("<polyline points=\"\(text)\" class=\"\(style)\"/>")
    }

    /// A filled circle.
    mutating func dot(x: Double, y: Double, radius: Double, style: String) {
        shapes.append(
            "<circle cx=\"\(number(x))\" cy=\"\(number(y))\" r=\"\(number(radius))\" "
                + "class=\"\(style)\"/>"
        )
    }

    /// A filled rectangle.
    mutating func box(x: Double, y: Double, width: Double, height: Double, style: String) {
        shapes.append(
            "<rect x=\"\(number(x))\" y=\"\(number(y))\" width=\"\(number(width))\" "
                + "height=\"\(number(height))\" class=\"\(style)\"/>"
        )
    }

    /// The whole file.
    var document: String {
        let size = "width=\"\(number(width))\" height=\"\(number(height))\""
        let lines =
            [
                "<svg xmlns=\"http://www.w3.org/2000/svg\" \(size) "
                    + "viewBox=\"0 0 \(number(width)) \(number(height))\" role=\"img\">",
                "<title>\(Self.escaped(title))</title>", "<style>\(Self.styles)</style>",
                "<rect width=\"100%\" height=\"100%\" class=\"page\"/>",
            ] + shapes + ["</svg>"]
        return lines.joined(separator: "\n") + "\n"
    }

    /// Colours that differ in hue and in brightness; the dark page has lighter ones.
    private static let light = [
        "#1668dc", "#d9730d", "#a34bb5", "#1a8a4c", "#c92a2a", "#0b7f8c", "#8a6d3b",
    ]
    private static let dark = [
        "#6cb0ff", "#ffa94d", "#d49ae0", "#5fd08d", "#ff8787", "#4fd1dd", "#d8b679",
    ]

    private static let styles: String = {
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

    private func number(_ value: Double) -> String { Format.fixed(value, 1) }

    private static func escaped(_ text: String) -> String {
        var result = ""
        for character in text {
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            default: result.append(character)
            }
        }
        return result
    }
}
