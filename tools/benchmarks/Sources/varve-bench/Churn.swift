// A long run of small saves of all kinds: what becomes of the file and of memory, and whether all
// is still right at the end.
//
// Invariants
// - The model beside the store is the judge: every row at the end is compared with it.
// - Live data is what the same rows weigh in a new store, written in one go.

import BenchmarkHarness
import Foundation
import VarveInspection
import VarveTesting

/// What a long run showed.
struct ChurnResult {
    /// A bound that was asked for, and what was found.
    struct Bound {
        var name: String
        var value: Double
        var bound: Double
        var isKept: Bool { value <= bound }
    }

    var saves: Int
    var rows: Int
    var seconds: Double
    var statistics: EngineStatistics
    var liveBytes: UInt64
    var fileBytesMax: UInt64
    var fileBytesAtEnd: UInt64
    var bounds: [Bound]

    var isWithinBounds: Bool { bounds.allSatisfy(\.isKept) }

    var json: String {
        typealias Line = BenchmarkHarness.JSON
        let numbers: [(String, Double)] = [
            ("saves", Double(saves)), ("rows", Double(rows)), ("seconds", seconds),
            ("savesPerSecond", Double(saves) / seconds), ("liveBytes", Double(liveBytes)),
            ("fileBytesMax", Double(fileBytesMax)), ("fileBytesAtEnd", Double(fileBytesAtEnd)),
            ("checkpoints", Double(statistics.checkpoints)),
            ("compactions", Double(statistics.compactions)),
        ]
        var fields: [(String, Line.Value)] = [("workload", .text("churn"))]
        fields += numbers.map { ($0.0, .number($0.1)) }
        for bound in bounds {
            fields.append((bound.name, .number(bound.value)))
            fields.append((bound.name + "Bound", .number(bound.bound)))
        }
        fields.append(("met", .bool(isWithinBounds)))
        return Line.object(fields)
    }

    var text: String {
        func size(_ bytes: UInt64) -> String { Format.quantity(Double(bytes), unit: "bytes") }
        var lines = [
            "\(saves) saves, \(rows) rows live, \(Format.quantity(seconds, unit: "s")), "
                + Format.quantity(Double(saves) / seconds, unit: "1/s") + " saves",
            "live data \(size(liveBytes)); file at most \(size(fileBytesMax)), at the end "
                + "\(size(fileBytesAtEnd)); \(statistics.checkpoints) checkpoints, "
                + "\(statistics.compactions) compactions",
        ]
        for bound in bounds {
            let verdict = bound.isKept ? "kept" : "BROKEN"
            lines.append(
                "\(bound.name): \(Format.short(bound.value)), bound \(Format.short(bound.bound)): "
                    + verdict
            )
        }
        return lines.joined(separator: "\n")
    }
}

/// The long run.
struct Churn {
    let directory: String
    let saves: Int
    let seed: UInt64
    let progress: (String) -> Void

    func run() throws -> ChurnResult {
        let folder = try makeFolder(directory, "churn")
        let rows = min(max(saves / 4, 1000), 250_000)
        let store = try ChurnStore(folder, rows: rows, seed: seed)
        var fileBytesMax: UInt64 = 0
        var resident: [UInt64] = []
        let start = monotonicNanoseconds()
        let sampled = max(1, saves / 200)
        for index in 1...saves {
            try store.save()
            guard index % sampled == 0 else { continue }
            // The beginning is growth to the working size, for file and memory alike.
            if index > saves / 10 {
                fileBytesMax = max(fileBytesMax, try fileBytes(folder + "/churn.varve"))
                if let bytes = ProcessCounters.residentBytes { resident.append(bytes) }
            }
            if index % (sampled * 20) == 0 { progress("churn: \(index) of \(saves) saves") }
        }
        let seconds = Double(monotonicNanoseconds() &- start) / 1e9
        let statistics = store.statistics
        let wrongRows = try store.wrongRows()
        let live = try store.liveBytes(in: try makeFolder(directory, "live"))
        try store.close()
        let observer = try StoreObserver.open(folder + "/churn.varve")
        let report = try observer.verify(level: .full)
        for problem in report.problems {
            progress("verify: \(problem.subject): \(problem.message)")
        }
        return ChurnResult(
            saves: saves,
            rows: rows,
            seconds: seconds,
            statistics: statistics,
            liveBytes: live,
            fileBytesMax: fileBytesMax,
            fileBytesAtEnd: try fileBytes(folder + "/churn.varve"),
            bounds: [
                .init(
                    name: "fileOverLive",
                    value: Double(fileBytesMax) / Double(max(live, Self.smallestLive)),
                    bound: 3
                ),
                .init(name: "memoryGrowthMB", value: Self.growth(resident) / 1e6, bound: 16),
                .init(name: "wrongRows", value: Double(wrongRows), bound: 0),
                .init(
                    name: "verifyProblems",
                    value: Double(report.problems.count) + (report.isComplete ? 0 : 1),
                    bound: 0
                ),
            ]
        )
    }

    /// A file has a log behind its newest checkpoint, prepared room, and garbage that is not worth
    /// a compaction, however small its data: less than this many bytes count as this many.
    private static let smallestLive: UInt64 = 12 << 20

    private func fileBytes(_ path: String) throws -> UInt64 {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return (attributes[.size] as? NSNumber)?.uint64Value ?? 0
    }

    /// How much the last quarter of the samples lies over the first, in bytes; medians of both.
    private static func growth(_ samples: [UInt64]) -> Double {
        let quarter = samples.count / 4
        guard quarter > 0,
            let first = Summary(samples.prefix(quarter).map(Double.init)),
            let last = Summary(samples.suffix(quarter).map(Double.init))
        else { return 0 }
        return max(0, last.median - first.median)
    }
}
