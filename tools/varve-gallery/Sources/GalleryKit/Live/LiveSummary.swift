// What `gallery live` says for people: a line each second, and the end.

import Foundation
import VarveObjects

/// Adds the steps of a live list up.
struct LiveSummary {
    /// What is known at the end.
    struct Result {
        var commits: Int
        var missed: Int
        var doubled: Int
        var equalsFetch: Bool
        var residentBytesAtStart: Int
        var residentBytesPeak: Int

        var json: JSONLine {
            JSONLine(fields: [
                ("commits", .integer(commits)), ("missed", .integer(missed)),
                ("doubled", .integer(doubled)), ("equalsFetch", .flag(equalsFetch)),
                ("residentBytesAtStart", .integer(residentBytesAtStart)),
                ("residentBytesPeak", .integer(residentBytesPeak)),
            ])
        }
    }

    private let rows: Int
    private let sections: Int?
    private let start = ContinuousClock.now
    private var lineAt = 1.0
    /// Since the last line.
    private var recent: [Double] = []
    private var commits = 0
    private var events = 0
    private var examined = 0
    private var slowest = 0.0

    init(rows: Int, sections: Int?) { (self.rows, self.sections) = (rows, sections) }

    /// Adds a step; `bytes` are resident. Returns a line once a second.
    mutating func add(_ step: LiveWatch.Step, _ bytes: Int) throws -> String? {
        commits += 1
        events += step.events
        examined += step.rowsExamined
        let milliseconds = step.duration.milliseconds
        slowest = max(slowest, milliseconds)
        if step.duration > .zero { recent.append(milliseconds) }
        let elapsed = (ContinuousClock.now - start).milliseconds / 1_000
        guard elapsed >= lineAt else { return nil }
        lineAt = elapsed.rounded(.down) + 1
        defer { recent = [] }
        let median = recent.sorted()[safe: recent.count / 2] ?? 0
        return "\(Int(elapsed)) s: \(commits.grouped) commits, \(events.grouped) changes told, "
            + "\(median.fixed(3)) ms for one (median of this second), "
            + "\((examined / max(1, commits)).grouped) rows and entries examined for each, "
            + bytes.megabytes
    }

    func text(_ result: Result) -> String {
        let place = sections.map { " in \($0.grouped) sections" } ?? ""
        let growth = result.residentBytesPeak - result.residentBytesAtStart
        return """
            A list of \(rows.grouped) cities\(place) followed \(result.commits.grouped) commits of \
            another process.
            \(events.grouped) changes told, \(result.missed.grouped) missed, \
            \(result.doubled.grouped) told twice; \
            the list is \(result.equalsFetch ? "" : "NOT ")what a fetch gives.
            The slowest commit took \(slowest.fixed(2)) ms; memory rose by \(growth.megabytes) \
            at most.
            """
    }
}

extension Array {
    fileprivate subscript(safe index: Int) -> Element? {
        indices.contains(index) ? self[index] : nil
    }
}
