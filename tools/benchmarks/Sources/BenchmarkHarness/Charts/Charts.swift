// The charts of a run, by file name.

import SVGDrawing

/// Draws the charts that a report has numbers for.
public enum Charts {
    /// Names of the charts' files and what they show, in the order in which a page shows them.
    static let captions = [
        ("ratios-engine.svg", "How many times better Varve is than the C libraries"),
        ("ratios-object.svg", "How many times better Varve is than GRDB"),
        ("savers.svg", "Durable commits per second over the number of savers"),
        ("scale-engine.svg", "Cost over the size of the store, engine level"),
        ("scale-object.svg", "Cost over the size of the store, object level"),
    ]

    /// File names and contents; only what can be drawn.
    public static func files(_ report: Report) -> [(name: String, text: String)] {
        let drawings: [(String, SVG?)] = [
            ("ratios-engine.svg", RatioChart(report, level: .engine)?.draw()),
            ("ratios-object.svg", RatioChart(report, level: .object)?.draw()),
            ("savers.svg", savers(report).draw()),
            ("scale-engine.svg", scale(report, .engine).draw()),
            ("scale-object.svg", scale(report, .object).draw()),
        ]
        return drawings.compactMap { name, svg in svg.map { (name, $0.document) } }
    }

    /// Commits per second of 1 to 64 savers.
    private static func savers(_ report: Report) -> LineChart {
        typealias Names = Workload.DurableCommits
        let counts = [1] + Names.savers
        let all = report.measurements
        func panel(_ level: Level) -> Panel {
            var lines: [(engine: String, points: [(x: Double, y: Double)])] = []
            for series in Series.all {
                func median(_ metric: String) -> Double? {
                    all.first {
                        $0.metric == metric && $0.level == level && $0.engine == series.engine
                    }?.summary.median
                }
                let points = counts.compactMap { count -> (x: Double, y: Double)? in
                    let rate =
                        count == 1
                        ? median(Names.mean).map { 1 / $0 } : median(Names.throughput(count))
                    return rate.map { (x: Double(count), y: $0) }
                }
                if points.count > 1 { lines.append((series.engine, points)) }
            }
            return Panel(
                title: "\(level.rawValue) level",
                unit: "1/s",
                better: .more,
                lines: lines
            )
        }
        return LineChart(
            title: "Durable one-row commits per second",
            note: "Every commit is on the disk when its saver goes on.",
            panels: [panel(.engine), panel(.object)],
            axisName: "savers at once",
            marks: counts.map { (Double($0), String($0)) }
        )
    }

    /// The figures of the chart over size.
    private static func scale(_ report: Report, _ level: Level) -> LineChart {
        typealias Names = Workload.ScaleChart
        let all = report.measurements.filter { $0.level == level }
        let sizes = Names.sizes.filter { size in
            all.contains { $0.metric == Names.metric(.read, rows: size) }
        }
        let panels = Names.Figure.allCases.map { figure in
            var lines: [(engine: String, points: [(x: Double, y: Double)])] = []
            for series in Series.all {
                let points = sizes.compactMap { size -> (x: Double, y: Double)? in
                    let found = all.first {
                        $0.metric == Names.metric(figure, rows: size)
                            && $0.engine == series.engine
                    }
                    return found.map { (x: Double(size), y: $0.summary.median) }
                }
                if points.count > 1 { lines.append((series.engine, points)) }
            }
            let unit = figure == .insert ? "1/s" : "s"
            return Panel(
                title: figure.rawValue,
                unit: unit,
                better: Preference(unit: unit),
                lines: lines
            )
        }
        return LineChart(
            title: "Cost over the size of the store, \(level.rawValue) level",
            note: "64 MiB of caches each; two indexes; rows in transactions of 100,000.",
            panels: panels,
            axisName: "rows in the store",
            marks: sizes.map { (Double($0), Self.count($0)) }
        )
    }

    private static func count(_ rows: Int) -> String {
        rows >= 1_000_000 ? "\(rows / 1_000_000) M" : "\(rows / 1000) k"
    }
}
