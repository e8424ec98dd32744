// The results as a Markdown page: machine, goals, tables of both levels, charts, what is missing.

/// Writes the page of a report.
public struct ResultsPage {
    private let report: Report
    private let charts: String

    /// - Parameter charts: folder of the charts as seen from the page.
    public init(_ report: Report, charts: String) {
        self.report = report
        self.charts = charts
    }

    /// The page.
    public var text: String {
        var lines = [
            "# Results", "",
            "Written by `varve-bench --report`; [Performance.md](Performance.md) says how and why.",
            "",
        ]
        lines += report.machine.map { "- \($0)" } + [""]
        lines += [
            "Medians with least and greatest; **bold**: how many times better Varve is, over 1 = "
                + "better, with the peer's median",
            "in brackets and the goal, met or by how much it falls short. *Limit*: what the "
                + "machine does without any store.",
            "",
        ]
        lines += section("Engine level: the records layer beside C libraries", .engine)
        lines += section("Object level: the public API beside GRDB", .object)
        lines += scaleSection
        let files = Set(Charts.files(report).map(\.name))
        let shown = Charts.captions.filter { files.contains($0.0) }
        if !shown.isEmpty { lines += ["## Charts", ""] }
        for (name, caption) in shown { lines += ["![\(caption)](\(charts)/\(name))", ""] }
        lines += limits
        let absent =
            report.missing.map { "- \($0.contestant): \($0.metric): \($0.reason)" }
            + report.skipped.map { "- \($0.contestant) was skipped: \($0.reason)" }
        if !absent.isEmpty { lines += ["## Not measured", ""] + absent + [""] }
        while lines.last == "" { lines.removeLast() }
        return lines.joined(separator: "\n") + "\n"
    }

    private func section(_ title: String, _ level: Level) -> [String] {
        let all = report.measurements.filter { $0.level == level }
        let compared = report.comparisons.filter { $0.level == level }
        let metrics = report.metrics.filter { metric in
            !metric.hasPrefix("scale, ")
                && all.contains { $0.metric == metric && $0.engine == Report.varve }
        }
        guard !metrics.isEmpty else { return [] }
        let names = Set(all.map(\.engine))
        let peers = Series.all.map(\.engine).filter { $0 != Report.varve && names.contains($0) }
        let judged = compared.filter { $0.goal != nil }
        let met = judged.filter { $0.met == true }.count
        var lines = ["## \(title)", "", "\(met) of \(judged.count) goals met.", ""]
        lines.append("| | Varve | " + peers.joined(separator: " | ") + " | limit |")
        lines.append("|---|---|" + String(repeating: "---|", count: peers.count + 1))
        for metric in metrics {
            var cells = [metric]
            for engine in [Report.varve] + peers {
                let own = all.first { $0.metric == metric && $0.engine == engine }
                let pair = compared.first { $0.metric == metric && $0.peer == engine }
                let alone = compared.first {
                    $0.metric == metric && $0.peer == Goal.Peers.itselfAlone
                }
                cells.append(cell(own, pair ?? (engine == Report.varve ? alone : nil)))
            }
            cells.append(
                report.limit(metric).map { Format.quantity($0.summary.median, unit: $0.unit) } ?? ""
            )
            lines.append("| " + cells.joined(separator: " | ") + " |")
        }
        return lines + [""] + others(all)
    }

    private func cell(_ item: Measurement?, _ pair: Comparison?) -> String {
        guard let item else { return "" }
        func quantity(_ value: Double) -> String { Format.quantity(value, unit: item.unit) }
        let summary = item.summary
        var text: String
        if item.engine == Report.varve {
            text = quantity(summary.median)
            let ends = (quantity(summary.min), quantity(summary.max))
            if ends.0 != ends.1 { text += " (\(ends.0) to \(ends.1))" }
        } else if let pair {
            text = "**\(Format.short(pair.ratio))** (\(quantity(summary.median)))"
        } else {
            text = quantity(summary.median)
        }
        if let pair, let goal = pair.goal { text += ", goal \(Format.short(goal)) \(pair.verdict)" }
        return text
    }

    /// Varve's other ways of doing the work.
    private func others(_ all: [Measurement]) -> [String] {
        let ways = all.filter { $0.engine.hasPrefix(Report.varve + ",") }
        guard !ways.isEmpty else { return [] }
        let lines = ways.map { item in
            "- \(item.engine): \(item.metric): "
                + Format.quantity(item.summary.median, unit: item.unit)
        }
        return ["Varve's other ways of doing the work:", ""] + lines + [""]
    }

    private var scaleSection: [String] {
        typealias Names = Workload.ScaleChart
        let all = report.measurements
        let sizes = Names.sizes.filter { size in
            all.contains { $0.metric == Names.metric(.read, rows: size) }
        }
        guard !sizes.isEmpty else { return [] }
        var lines = ["## Cost over the size of the store", ""]
        lines.append(
            "| | level | engine | " + sizes.map { "\($0) rows" }.joined(separator: " | ") + " |"
        )
        lines.append("|---|---|---|" + String(repeating: "---|", count: sizes.count))
        for figure in Names.Figure.allCases {
            for level in [Level.engine, .object] {
                for series in Series.all {
                    let found = sizes.map { size in
                        all.first {
                            $0.metric == Names.metric(figure, rows: size) && $0.level == level
                                && $0.engine == series.engine
                        }
                    }
                    guard found.contains(where: { $0 != nil }) else { continue }
                    let cells = found.map { item in
                        item.map { Format.quantity($0.summary.median, unit: $0.unit) } ?? ""
                    }
                    lines.append(
                        "| \(figure.rawValue) | \(level.rawValue) | \(series.engine) | "
                            + cells.joined(separator: " | ") + " |"
                    )
                }
            }
        }
        return lines + [""]
    }

    /// What stands behind the column of limits.
    private var limits: [String] {
        let all = report.measurements.filter { $0.level == .machine }
        guard !all.isEmpty else { return [] }
        var lines = ["## Limits of the machine", ""]
        for item in all {
            let name = item.engine.replacing("limit: ", with: "")
            let value = Format.quantity(item.summary.median, unit: item.unit)
            lines.append("- \(item.metric): \(name): \(value)")
        }
        return lines + [""]
    }
}
