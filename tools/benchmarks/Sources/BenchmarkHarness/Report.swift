// The results of a run: aggregated, compared, as JSON lines and as a table.

/// The rounds of one contestant's number.
public struct Measurement: Sendable {
    /// Name of the number.
    public var metric: String
    /// Where it was measured.
    public var level: Level
    /// Library and settings.
    public var engine: String
    /// "s", "bytes", "1/s".
    public var unit: String
    /// Which way is good.
    public var better: Preference
    /// Median, least and greatest of the rounds.
    public var summary: Summary
}

/// Varve beside one peer.
public struct Comparison: Sendable {
    /// Name of the number.
    public var metric: String
    /// Where it was measured.
    public var level: Level
    /// The other side.
    public var peer: String
    /// Over 1 = Varve is better.
    public var ratio: Double
    /// What is asked for, if anything.
    public var goal: Double?

    /// Whether the goal is met; nil without a goal.
    public var met: Bool? { goal.map { ratio >= $0 } }
}

/// All results of a run, in the order in which they were measured.
public struct Report: Sendable {
    /// Name under which Varve takes part.
    public static let varve = "Varve"

    private struct Key: Hashable {
        var metric: String
        var level: Level
        var engine: String
    }
    private var order: [Key] = []
    private var readings: [Key: (unit: String, better: Preference, values: [Double])] = [:]
    /// Contestants that could not take part, with the reason.
    public private(set) var skipped: [(contestant: String, reason: String)] = []

    /// Begins empty.
    public init() {}

    /// Adds what one process measured.
    public mutating func add(_ outcome: Outcome, level: Level, engine: String) {
        for reading in outcome.readings {
            let key = Key(metric: reading.metric, level: level, engine: engine)
            if readings[key] == nil {
                order.append(key)
                readings[key] = (reading.unit, reading.better, [])
            }
            readings[key]?.values.append(reading.value)
        }
    }

    /// Notes who is missing.
    public mutating func skip(_ contestant: String, reason: String) {
        guard !skipped.contains(where: { $0.contestant == contestant }) else { return }
        skipped.append((contestant, reason))
    }

    /// Every number of every contestant.
    public var measurements: [Measurement] {
        order.compactMap { key in
            guard let entry = readings[key], let summary = Summary(entry.values) else { return nil }
            return Measurement(
                metric: key.metric,
                level: key.level,
                engine: key.engine,
                unit: entry.unit,
                better: entry.better,
                summary: summary
            )
        }
    }

    /// Varve beside every peer of its level, from medians.
    public var comparisons: [Comparison] {
        let all = measurements
        var result: [Comparison] = []
        for own in all where own.engine == Self.varve {
            for peer in all
            where peer.engine != Self.varve && peer.metric == own.metric && peer.level == own.level
            {
                guard
                    let value = ratio(
                        varve: own.summary.median,
                        peer: peer.summary.median,
                        better: own.better
                    )
                else { continue }
                result.append(
                    Comparison(
                        metric: own.metric,
                        level: own.level,
                        peer: peer.engine,
                        ratio: value,
                        goal: Goal.ratio(own.metric, own.level, peer.engine)
                    )
                )
            }
        }
        return result
    }

    /// One line per measurement, then one per comparison.
    public var jsonLines: [String] {
        measurements.map { item in
            let summary = item.summary
            return JSON.object([
                ("workload", .text(item.metric)), ("level", .text(item.level.rawValue)),
                ("engine", .text(item.engine)), ("unit", .text(item.unit)),
                ("median", .number(summary.median)), ("min", .number(summary.min)),
                ("max", .number(summary.max)),
            ])
        }
            + comparisons.map { item in
                JSON.object([
                    ("workload", .text(item.metric)), ("level", .text(item.level.rawValue)),
                    ("peer", .text(item.peer)), ("ratio", .number(item.ratio)),
                    ("goal", item.goal.map { .number($0) } ?? .null),
                    ("met", item.met.map { .bool($0) } ?? .null),
                ])
            }
    }

    /// The table for people.
    public var table: String {
        var lines: [String] = []
        var metrics: [String] = []
        for key in order where !metrics.contains(key.metric) { metrics.append(key.metric) }
        let all = measurements
        let compared = comparisons
        for metric in metrics {
            lines.append(
                pad(metric, 52) + lead("median", 11) + lead("min", 11) + lead("max", 11)
                    + lead("Varve is", 11) + lead("goal", 7)
            )
            for item in all where item.metric == metric {
                let other = compared.first {
                    $0.metric == metric && $0.level == item.level && $0.peer == item.engine
                }
                var line = "  " + pad(item.level.rawValue, 8) + pad(item.engine, 42)
                for value in [item.summary.median, item.summary.min, item.summary.max] {
                    line += lead(Format.quantity(value, unit: item.unit), 11)
                }
                if let other {
                    line += lead(Format.short(other.ratio) + " x", 11)
                    if let goal = other.goal {
                        line += lead(Format.short(goal), 7) + (other.met == true ? "  met" : "  -")
                    }
                }
                lines.append(line)
            }
            lines.append("")
        }
        for item in skipped { lines.append("skipped: \(item.contestant): \(item.reason)") }
        return lines.joined(separator: "\n")
    }

    private func pad(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(1, width - text.count))
    }

    private func lead(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(1, width - text.count)) + text
    }
}
