// The results as a table for people: every number, then every goal with the physical limit beside
// it.

extension Report {
    /// Every number of every contestant, and how Varve compares.
    public var table: String {
        var lines: [String] = []
        let all = measurements
        let compared = comparisons
        for metric in metrics {
            lines.append(
                pad(metric, 58) + lead("median", 11) + lead("min", 11) + lead("max", 11)
                    + lead("Varve is", 11) + lead("goal", 7)
            )
            for item in all where item.metric == metric {
                let other = compared.first {
                    $0.metric == metric && $0.level == item.level && $0.peer == item.engine
                }
                var line = "  " + pad(item.level.rawValue, 8) + pad(item.engine, 48)
                for value in [item.summary.median, item.summary.min, item.summary.max] {
                    line += lead(Format.quantity(value, unit: item.unit), 11)
                }
                if let other {
                    line += lead(Format.short(other.ratio) + " x", 11)
                    if let goal = other.goal {
                        line += lead(Format.short(goal), 7) + "  " + other.verdict
                    }
                }
                lines.append(line)
            }
            lines.append("")
        }
        lines += goalLines
        for item in missing {
            lines.append("missing: \(item.contestant): \(item.metric): \(item.reason)")
        }
        for item in skipped { lines.append("skipped: \(item.contestant): \(item.reason)") }
        return lines.joined(separator: "\n")
    }

    /// What the machine can do at best where a number is about it: name and value.
    public func limit(_ metric: String) -> Measurement? {
        measurements.first { $0.metric == metric && $0.level == .machine }
    }

    /// Every goal of the numbers that were measured: met, or by how much it falls short.
    private var goalLines: [String] {
        let compared = comparisons
        let mine = measurements.filter { $0.engine == Self.varve }
        var lines = [
            pad("goals", 40) + pad("  level", 10) + pad("beside", 16) + lead("ratio", 9)
                + lead("goal", 8) + "   " + pad("", 15) + lead("Varve", 11) + lead("limit", 11)
        ]
        var met = 0
        var judged = 0
        for goal in Goal.all {
            let found = compared.first {
                $0.metric == goal.metric && $0.level == goal.level && $0.peer == goal.peer
            }
            guard let found else { continue }
            judged += 1
            if found.met == true { met += 1 }
            var line = pad(goal.metric, 40) + "  " + pad(goal.level.rawValue, 8)
            line += pad(goal.peer, 16) + lead(Format.short(found.ratio), 9)
            line += lead(Format.short(goal.ratio), 8) + "   " + pad(found.verdict, 15)
            if let own = mine.first(where: { $0.metric == goal.metric && $0.level == goal.level }) {
                line += lead(Format.quantity(own.summary.median, unit: own.unit), 11)
            }
            if let limit = limit(goal.metric) {
                line += lead(Format.quantity(limit.summary.median, unit: limit.unit), 11)
            }
            lines.append(line)
        }
        guard judged > 0 else { return [] }
        lines.append(
            "\(met) of \(judged) goals met; \(Goal.all.count - judged) not measured in this run"
        )
        lines.append("")
        return lines
    }

    private func pad(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(1, width - text.count))
    }

    private func lead(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(1, width - text.count)) + text
    }
}
