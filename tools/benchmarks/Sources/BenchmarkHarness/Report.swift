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

    /// Joins the parts.
    public init(metric: String, level: Level, peer: String, ratio: Double, goal: Double?) {
        self.metric = metric
        self.level = level
        self.peer = peer
        self.ratio = ratio
        self.goal = goal
    }

    /// Whether the goal is met; nil without a goal.
    public var met: Bool? { goal.map { ratio >= $0 } }

    /// In words: that the goal is met, or how much is missing. Empty without a goal.
    public var verdict: String {
        guard let goal else { return "" }
        if ratio >= goal { return "met" }
        return "short by \(Format.fixed((1 - ratio / goal) * 100, 0)) %"
    }
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
    /// Lines about the machine.
    public var machine: [String] = []
    /// Names of numbers, in the order in which they were measured.
    public var metrics: [String] {
        var found: Set<String> = []
        return order.map(\.metric).filter { found.insert($0).inserted }
    }
    private var readings: [Key: (unit: String, better: Preference, values: [Double])] = [:]
    /// Contestants that could not take part, with the reason.
    public private(set) var skipped: [(contestant: String, reason: String)] = []
    /// Numbers that a contestant could not give, with the reason.
    public private(set) var missing: [(metric: String, contestant: String, reason: String)] = []

    /// Begins empty.
    public init() {}

    /// Adds a result that was measured in another run.
    public mutating func add(_ item: Measurement) {
        let key = Key(metric: item.metric, level: item.level, engine: item.engine)
        if readings[key] == nil { order.append(key) }
        // Three values with this median, least and greatest.
        let summary = item.summary
        readings[key] = (item.unit, item.better, [summary.min, summary.median, summary.max])
    }

    /// Adds what one process measured.
    public mutating func add(_ outcome: Outcome, level: Level, engine: String) {
        for (metric, reason) in outcome.missing.sorted(by: { $0.key < $1.key }) {
            note(metric, "\(engine) (\(level.rawValue))", reason)
        }
        for reading in outcome.readings {
            let key = Key(metric: reading.metric, level: level, engine: engine)
            if readings[key] == nil {
                order.append(key)
                readings[key] = (reading.unit, reading.better, [])
            }
            readings[key]?.values.append(reading.value)
        }
    }

    /// Notes a number that a contestant could not give.
    mutating func note(_ metric: String, _ contestant: String, _ reason: String) {
        let isKnown = missing.contains { $0.metric == metric && $0.contestant == contestant }
        if !isKnown { missing.append((metric, contestant, reason)) }
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
    public var comparisons: [Comparison] { Self.comparisons(of: measurements) }

    /// Varve beside every peer of its level.
    static func comparisons(of all: [Measurement]) -> [Comparison] {
        var result: [Comparison] = []
        for own in all where own.engine == varve {
            func add(_ peer: String, _ ratio: Double?) {
                guard let ratio else { return }
                result.append(
                    Comparison(
                        metric: own.metric,
                        level: own.level,
                        peer: peer,
                        ratio: ratio,
                        goal: Goal.ratio(own.metric, own.level, peer)
                    )
                )
            }
            if own.metric == Workload.MixedWork.share {
                // A ratio of Varve to itself already; the peers' shares are for reading.
                add(Goal.Peers.itselfAlone, own.summary.median)
                continue
            }
            for peer in all
            where !peer.engine.hasPrefix(varve) && peer.metric == own.metric
                && peer.level == own.level
            {
                let (mine, theirs) = (own.summary.median, peer.summary.median)
                add(peer.engine, ratio(varve: mine, peer: theirs, better: own.better))
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
}
