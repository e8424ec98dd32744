// How many times better Varve is than each peer, against the goals: one row per number.

import SVGDrawing

/// Draws the comparisons of one level.
struct RatioChart {
    private let level: Level
    private let comparisons: [Comparison]
    private let peers: [String]
    private let metrics: [String]

    private static let left = 250.0
    private static let right = 880.0
    private static let top = 92.0
    private static let lane = 7.0

    /// nil when nothing of this level was compared.
    init?(_ report: Report, level: Level) {
        self.level = level
        comparisons = report.comparisons.filter {
            $0.level == level && !$0.metric.hasPrefix("scale, ")
        }
        let order = Series.all.map(\.engine)
        let found = Set(comparisons.map(\.peer))
        peers = order.filter(found.contains)
        let measured = Set(comparisons.filter { order.contains($0.peer) }.map(\.metric))
        metrics = report.metrics.filter(measured.contains)
        guard !metrics.isEmpty else { return nil }
    }

    func draw() -> SVG {
        let row = Double(peers.count) * Self.lane + 12
        let bottom = Self.top + Double(metrics.count) * row
        let title = "How many times better Varve is, \(level.rawValue) level"
        var svg = SVG(width: 900, height: bottom + 40, title: title)
        svg.text(title, x: 16, y: 26, style: "title")
        svg.text(
            "dot: measured; bar: the goal; dotted: how much a goal falls short. Right of 1 Varve "
                + "is better.",
            x: 16,
            y: 46,
            style: "small"
        )
        Series.legend(peers, x: 16, y: 68, in: &svg)
        let shown = comparisons.map(\.ratio) + comparisons.compactMap(\.goal) + [0.5, 20]
        let kept = shown.map { max($0, 0.001) }
        guard let axis = LogAxis(kept, from: Self.left, to: Self.right) else { return svg }
        for (index, metric) in metrics.enumerated() {
            let y = Self.top + Double(index) * row
            if index % 2 == 0 {
                svg.box(x: 8, y: y, width: 884, height: row, style: "band")
            }
            svg.text(metric, x: 16, y: y + row / 2 + 4, style: "label")
        }
        for mark in axis.marks {
            let x = axis.place(mark)
            svg.line(x, Self.top, x, bottom, style: mark == 1 ? "axis" : "grid")
            svg.text(Self.times(mark), x: x, y: bottom + 16, anchor: .middle, style: "small")
        }
        for (index, metric) in metrics.enumerated() {
            let y = Self.top + Double(index) * row + 6
            for (lane, peer) in peers.enumerated() {
                let item = comparisons.first { $0.metric == metric && $0.peer == peer }
                guard let item else { continue }
                draw(item, y: y + (Double(lane) + 0.5) * Self.lane, axis, in: &svg)
            }
        }
        return svg
    }

    private func draw(_ item: Comparison, y: Double, _ axis: LogAxis, in svg: inout SVG) {
        let colour = Series.colour(item.peer)
        let x = axis.place(item.ratio)
        if let goal = item.goal {
            let mark = axis.place(goal)
            let style = item.met == true ? "line\(colour)" : "line\(colour) short"
            svg.line(mark, y, x, y, style: style)
            svg.line(mark, y - 3, mark, y + 3, style: "line\(colour) goal")
        }
        svg.dot(x: x, y: y, radius: 3, style: "fill\(colour)")
    }

    private static func times(_ mark: Double) -> String {
        (mark >= 1 ? Format.fixed(mark, 0) : mark < 0.005 ? "0.001" : Format.short(mark)) + " ×"
    }
}

/// The lines of the charts: which engine has which colour.
struct Series {
    let engine: String
    let colour: Int

    /// Varve first.
    static let all: [Series] = [
        Series(engine: Report.varve, colour: 0),
        Series(engine: Goal.Peers.sqliteUsual, colour: 1),
        Series(engine: Goal.Peers.sqliteBest, colour: 2),
        Series(engine: Goal.Peers.lmdb, colour: 3),
        Series(engine: Goal.Peers.rocksDB, colour: 4),
        Series(engine: Goal.Peers.grdbRecords, colour: 5),
        Series(engine: Goal.Peers.grdbPrepared, colour: 6),
    ]

    static func colour(_ engine: String) -> Int {
        all.first { $0.engine == engine }?.colour ?? 0
    }

    /// Names with their colours in a line.
    static func legend(_ engines: [String], x: Double, y: Double, in svg: inout SVG) {
        var x = x
        for engine in engines {
            svg.dot(x: x + 5, y: y - 4, radius: 5, style: "fill\(colour(engine))")
            svg.text(engine, x: x + 15, y: y)
            x += 36 + Double(engine.count) * 7
        }
    }
}
