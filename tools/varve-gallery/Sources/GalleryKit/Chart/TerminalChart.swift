// The chart of resident memory against rows scrolled, as text for a terminal of 80 columns.

extension MemoryChart {
    /// The chart as lines of text, none longer than 80 characters. Each round is drawn with its
    /// number; where rounds lie on each other, their numbers take turns. The line of the bound
    /// stands between what is within it and what is not.
    package func text(inColor: Bool) -> String {
        let scale = TextScale(
            bound: bound,
            highest: panels.flatMap(\.series).flatMap(\.bytesOverStart).max() ?? 0
        )
        var lines = ["Resident memory while pictures scroll by", ""]
        for start in stride(from: 0, to: panels.count, by: TextPanel.mostBesideEachOther) {
            let beside = panels[start..<min(start + TextPanel.mostBesideEachOther, panels.count)]
            lines += drawing(of: beside, scale, inColor: inColor) + [""]
            lines += legend(of: beside, inColor: inColor) + [""]
        }
        lines.append(
            "╌   the bound for rounds 3 and 4: bytes of the largest window + 24 MB = "
                + Self.megabyteLabel(bound)
        )
        return lines.map(\.withoutTrailingSpaces).joined(separator: "\n")
    }

    private func drawing(
        of panels: ArraySlice<Panel>,
        _ scale: TextScale,
        inColor: Bool
    ) -> [String] {
        let gaps = TextPanel.gap * (panels.count - 1)
        let width = (TextPanel.columns - TextPanel.axisWidth - gaps) / panels.count
        let drawn = panels.map { TextPanel($0.series, of: $0.pictures, width: width, scale: scale) }
        var lines = [Self.row("", drawn.map(\.title)), Self.row("MB", drawn.map(\.leaving))]
        for line in (0..<scale.lines).reversed() {
            let cells = drawn.map { $0.cells(line, inColor: inColor) }
            // Every other line says where it begins; the bound says so itself.
            let begin = line % 2 == 0 && line != TextScale.linesUnderBound
            let bytes = Self.megabyteLabel(bound * line / TextScale.linesUnderBound)
            lines.append(Self.row(begin ? bytes + " │" : "│", cells))
            guard line == TextScale.linesUnderBound else { continue }
            let label = Self.megabyteLabel(bound) + " ┤"
            lines.append(Self.row(label, drawn.map { $0.filled(with: "╌") }))
        }
        lines.append(Self.row("└", drawn.map { $0.filled(with: "─") }))
        lines.append(Self.row("rows  ", drawn.map(\.axis)))
        return lines
    }

    private static func row(_ label: String, _ pieces: [String]) -> String {
        let gap = String(repeating: " ", count: TextPanel.gap)
        return label.leftPadded(to: TextPanel.axisWidth) + pieces.joined(separator: gap)
    }

    /// What each round does, and its peak in each panel.
    private func legend(of panels: ArraySlice<Panel>, inColor: Bool) -> [String] {
        let titleWidth = Self.roundTitles.values.map(\.count).max() ?? 0
        let numbers = panels.map { "\($0.pictures.grouped)".leftPadded(to: 8) }.joined()
        var lines = ["    MB over the start, at most".rightPadded(to: titleWidth + 4) + numbers]
        for round in Set(panels.flatMap(\.series).map(\.round)).sorted() {
            let peaks = panels.map { panel in
                let series = panel.series.first { $0.round == round }
                let peak = series?.bytesOverStart.max().map(Self.megabyteLabel) ?? ""
                return peak.leftPadded(to: 8)
            }.joined()
            let title = (Self.roundTitles[round] ?? "").rightPadded(to: titleWidth)
            lines.append(TextPanel.mark(round, inColor: inColor) + "   \(title)" + peaks)
        }
        return lines
    }
}

/// Which line of text a number of bytes falls on. The bound is the upper edge of a line, so that
/// the drawing never leaves open which side of it a value is on.
private struct TextScale {
    static let linesUnderBound = 4
    /// What goes higher than these leaves the drawing and says how far it goes: at the foot of
    /// round 1 the others would be one line and the bound with them.
    static let mostLinesOverBound = 8

    let bound: Int
    let lines: Int

    init(bound: Int, highest: Int) {
        self.bound = bound
        let over = Double(highest - bound) / Double(bound) * Double(Self.linesUnderBound)
        let wanted = min(Double(Self.mostLinesOverBound), max(1, over.rounded(.up)))
        lines = Self.linesUnderBound + Int(wanted)
    }

    /// The line for `bytes`, from the lowest; `lines` and above leave the drawing.
    func line(of bytes: Int) -> Int {
        let share = Double(max(0, bytes)) / Double(bound) * Double(Self.linesUnderBound)
        // The bound itself is within it.
        return bytes <= bound
            ? min(Self.linesUnderBound - 1, Int(share))
            : max(Self.linesUnderBound, Int(min(share, 1_000)))
    }
}

/// One panel of the drawing.
private struct TextPanel {
    static let columns = 80
    static let mostBesideEachOther = 3
    static let axisWidth = 7
    static let gap = 3
    private static let colors = [1: 31, 2: 33, 3: 36, 4: 34]

    let title: String
    /// Above the drawing: which rounds leave it, and where they go.
    private(set) var leaving = ""
    let axis: String
    private let width: Int
    /// For each line, from the lowest, and each column: the rounds that are there.
    private var rounds: [[[Int]]]

    init(_ series: [MemoryChart.Series], of pictures: Int, width: Int, scale: TextScale) {
        self.width = width
        let last = pictures.grouped
        title = "\(last) pictures".rightPadded(to: width)
        axis = "0" + last.leftPadded(to: width - 1)
        rounds = Array(
            repeating: Array(repeating: [], count: width),
            count: scale.lines
        )
        for one in series { draw(one, scale) }
        leaving = leaving.rightPadded(to: width)
    }

    private mutating func draw(_ series: MemoryChart.Series, _ scale: TextScale) {
        let values = series.bytesOverStart
        guard !values.isEmpty else { return }
        var previous: Int?
        for column in 0..<width {
            // The highest value of the rows that the column stands for, so that no peak is hidden.
            let start = min(values.count - 1, column * values.count / width)
            let end = max(start + 1, (column + 1) * values.count / width)
            let line = scale.line(of: values[start..<end].max() ?? 0)
            // A steep line has no gaps.
            let from = previous.map { $0 < line ? min($0 + 1, line) : max($0 - 1, line) } ?? line
            for passed in min(from, line)...max(from, line) where passed < scale.lines {
                rounds[passed][column].append(series.round)
            }
            if line >= scale.lines, (previous ?? 0) < scale.lines {
                note(series, leavingAt: column)
            }
            previous = line
        }
    }

    /// Says how far a round goes that leaves the drawing, once, above the place where it does.
    private mutating func note(_ series: MemoryChart.Series, leavingAt column: Int) {
        let peak = MemoryChart.megabyteLabel(series.bytesOverStart.max() ?? 0)
        let text = "↑ \(series.round): up to \(peak)"
        let place = max(leaving.isEmpty ? 0 : leaving.count + 2, min(column, width - text.count))
        guard !leaving.contains("↑ \(series.round)"), place + text.count <= width else { return }
        leaving = leaving.rightPadded(to: place) + text
    }

    /// One line of the drawing.
    func cells(_ line: Int, inColor: Bool) -> String {
        rounds[line].enumerated().map { column, rounds in
            guard !rounds.isEmpty else { return " " }
            return Self.mark(rounds[column % rounds.count], inColor: inColor)
        }.joined()
    }

    func filled(with character: Character) -> String { String(repeating: character, count: width) }

    /// The number of a round, in its colour.
    static func mark(_ round: Int, inColor: Bool) -> String {
        guard inColor, let color = colors[round] else { return "\(round)" }
        return "\u{1b}[\(color)m\(round)\u{1b}[0m"
    }
}

extension String {
    fileprivate var withoutTrailingSpaces: String {
        String(self[..<(lastIndex { $0 != " " }.map { index(after: $0) } ?? startIndex)])
    }
}
