// Results kept in a file: the JSON lines of a run, and what else the report needs of it.
//
// Besides the two kinds of lines that `--json` prints there are {"machine"}, {"skipped","reason"}
// and {"missing","engine","reason"}.

import Foundation

extension Report {
    /// The lines of a file of results.
    public var fileLines: [String] {
        machine.map { JSON.object([("machine", .text($0))]) }
            + jsonLines
            + skipped.map {
                JSON.object([("skipped", .text($0.contestant)), ("reason", .text($0.reason))])
            }
            + missing.map {
                JSON.object([
                    ("missing", .text($0.metric)), ("engine", .text($0.contestant)),
                    ("reason", .text($0.reason)),
                ])
            }
    }

    /// Reads lines that `fileLines` or `--json` made. Comparisons are made anew from the
    /// measurements, so that goals are those of this program.
    public init(lines: some Sequence<some StringProtocol>) throws {
        self.init()
        for line in lines where !line.allSatisfy(\.isWhitespace) {
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
            guard let fields = object as? [String: Any] else {
                throw BenchmarkError("a line of results is no object")
            }
            func text(_ name: String) -> String? { fields[name] as? String }
            func number(_ name: String) -> Double? { (fields[name] as? NSNumber)?.doubleValue }
            if let line = text("machine") {
                machine.append(line)
            } else if let contestant = text("skipped") {
                skip(contestant, reason: text("reason") ?? "")
            } else if let metric = text("missing") {
                note(metric, text("engine") ?? "", text("reason") ?? "")
            } else if let metric = text("workload"), let engine = text("engine"),
                let level = text("level").flatMap(Level.init(rawValue:)), let unit = text("unit"),
                let median = number("median"), let least = number("min"),
                let greatest = number("max"), var summary = Summary([least, greatest])
            {
                summary.median = median
                add(
                    Measurement(
                        metric: metric,
                        level: level,
                        engine: engine,
                        unit: unit,
                        better: Preference(unit: unit),
                        summary: summary
                    )
                )
            }
        }
    }
}

extension Preference {
    /// Of rates and shares more is better, of all else less.
    init(unit: String) { self = unit == "1/s" || unit == "share" ? .more : .less }
}
