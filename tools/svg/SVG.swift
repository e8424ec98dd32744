// Drawings as SVG text: a few shapes on a page, with colours and widths by class. The benchmark and
// the gallery each have a target SVGDrawing, a link to this folder.

/// A drawing that grows shape by shape. Coordinates are in pixels from the upper left corner.
public struct SVG {
    /// How a text stands to its place.
    public enum Anchor: String {
        case start, middle, end
    }

    private let width: Double
    private let height: Double
    private let title: String
    private let styles: String
    private var shapes: [String] = []

    /// - Parameter styles: the classes of the shapes as CSS. The page itself is a `.page`.
    public init(width: Double, height: Double, title: String, styles: String) {
        self.width = width
        self.height = height
        self.title = title
        self.styles = styles
    }

    /// A text with its baseline at a height.
    public mutating func text(
        _ text: String,
        x: Double,
        y: Double,
        anchor: Anchor = .start,
        style: String = "label"
    ) {
        addText(text, "x=\"\(number(x))\" y=\"\(number(y))\"", anchor, style)
    }

    /// A text that runs upwards, with its baseline at `x`.
    public mutating func upwardText(
        _ text: String,
        x: Double,
        y: Double,
        anchor: Anchor = .start,
        style: String = "label"
    ) {
        let place = "transform=\"translate(\(number(x)) \(number(y))) rotate(-90)\""
        addText(text, place, anchor, style)
    }

    private mutating func addText(
        _ text: String,
        _ place: String,
        _ anchor: Anchor,
        _ style: String
    ) {
        shapes.append(
            "<text \(place) class=\"\(style)\" text-anchor=\"\(anchor.rawValue)\">"
                + "\(Self.escaped(text))</text>"
        )
    }

    /// A straight line.
    public mutating func line(
        _ x1: Double,
        _ y1: Double,
        _ x2: Double,
        _ y2: Double,
        style: String
    ) {
        shapes.append(
            "<line x1=\"\(number(x1))\" y1=\"\(number(y1))\" x2=\"\(number(x2))\" "
                + "y2=\"\(number(y2))\" class=\"\(style)\"/>"
        )
    }

    /// A line through points.
    public mutating func polyline(_ points: [(x: Double, y: Double)], style: String) {
        let text = points.map { number($0.x) + "," + number($0.y) }.joined(separator: " ")
        shapes.append("<polyline points=\"\(text)\" class=\"\(style)\"/>")
    }

    /// A filled circle.
    public mutating func dot(x: Double, y: Double, radius: Double, style: String) {
        shapes.append(
            "<circle cx=\"\(number(x))\" cy=\"\(number(y))\" r=\"\(number(radius))\" "
                + "class=\"\(style)\"/>"
        )
    }

    /// A filled rectangle.
    public mutating func box(
        x: Double,
        y: Double,
        width: Double,
        height: Double,
        style: String
    ) {
        shapes.append(
            "<rect x=\"\(number(x))\" y=\"\(number(y))\" width=\"\(number(width))\" "
                + "height=\"\(number(height))\" class=\"\(style)\"/>"
        )
    }

    /// The whole file.
    public var document: String {
        let size = "width=\"\(number(width))\" height=\"\(number(height))\""
        let lines =
            [
                "<svg xmlns=\"http://www.w3.org/2000/svg\" \(size) "
                    + "viewBox=\"0 0 \(number(width)) \(number(height))\" role=\"img\">",
                "<title>\(Self.escaped(title))</title>", "<style>\(styles)</style>",
                "<rect width=\"100%\" height=\"100%\" class=\"page\"/>",
            ] + shapes + ["</svg>"]
        return lines.joined(separator: "\n") + "\n"
    }

    /// A coordinate with one digit after the point.
    private func number(_ value: Double) -> String {
        guard value.isFinite, abs(value) < 1e15 else { return "\(value)" }
        let tenths = Int64((abs(value) * 10).rounded())
        return "\(value < 0 && tenths > 0 ? "-" : "")\(tenths / 10).\(tenths % 10)"
    }

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
