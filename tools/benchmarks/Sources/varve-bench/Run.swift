// `varve-bench run`: options, then workloads, then what becomes of the results.

import ArgumentParser
import BenchmarkHarness
import Foundation

struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Runs workloads and prints the comparison."
    )

    @Flag(help: "Less work per measurement: at most 5 minutes in all.")
    var quick = false

    @Flag(help: "Tiny: every workload with all checks, in seconds. The times mean nothing.")
    var smoke = false

    @Option(help: "Workloads to run, for example b,e; scale for the chart over size alone.")
    var only: String?

    @Option(help: "Contestants to run, by a part of their names, for example Varve,LMDB.")
    var peers: String?

    @Flag(help: "One JSON object per measurement and per comparison instead of the table.")
    var json = false

    @Option(help: "Rounds of each workload; results are medians over them. Default 3.")
    var rounds: Int?

    @Option(help: "Rows of workloads a, c, d, f, h, i, k, n, p, q, r and t, and edits of u.")
    var rows: Int?

    @Option(help: "Folder for the stores, on the disk to be measured. Default: a temporary one.")
    var directory: String?

    @Option(help: "Seed of the random choices.")
    var seed: UInt64 = 20_260_101

    @Flag(help: "Also the same work in stores of 10 thousand to 1 million rows.")
    var scaleChart = false

    @Option(help: "The largest store of the chart over size, for example 10000000.")
    var scaleRows = 1_000_000

    @Flag(help: "Instead of workloads: many small saves, and what becomes of file and memory.")
    var churn = false

    @Option(help: "Saves of --churn.")
    var saves = 20_000

    @Option(help: "Keep the results in this file, as JSON lines.")
    var save: String?

    @Option(help: "Take results from files that --save made instead of measuring; comma-separated.")
    var from: String?

    @Option(help: "Write charts of the results (SVG) into this folder.")
    var charts: String?

    @Option(help: "Write the results as a Markdown page.")
    var report: String?

    func validate() throws {
        if let rounds, rounds < 1 { throw ValidationError("--rounds must be at least 1") }
        if let rows, rows < 100 { throw ValidationError("--rows must be at least 100") }
        if saves < 100 { throw ValidationError("--saves must be at least 100") }
        if scaleRows < 100 { throw ValidationError("--scale-rows must be at least 100") }
        _ = try selected()
    }

    func run() throws {
        if churn {
            try runChurn()
            return
        }
        let results: Report
        if let from {
            let files = from.split(separator: ",").map(String.init)
            let lines = try files.flatMap { path in
                try String(contentsOfFile: path, encoding: .utf8)
                    .split(separator: "\n").map(String.init)
            }
            results = try Report(lines: lines)
        } else {
            results = try inFolder { try measure(in: $0) }
        }
        try publish(results)
    }

    private func measure(in folder: String) throws -> Report {
        var scale = smoke ? Scale.smoke : quick ? Scale.quick : Scale.full
        if let rows { scale.rows = rows }
        let program = Bundle.main.executablePath ?? CommandLine.arguments[0]
        let runner = Runner(
            workloads: try selected(),
            scale: scale,
            rounds: rounds ?? (smoke ? 1 : 3),
            directory: folder,
            seed: seed,
            progress: { [start = monotonicNanoseconds()] line in
                let seconds = Double(monotonicNanoseconds() &- start) / 1e9
                Self.note("\(Format.fixed(seconds, 0)) s: \(line)")
            },
            execute: { try ChildProcess.execute($0, program: program) }
        )
        let machine = Machine.current(directory: folder)
        for line in machine.lines { Self.note(line) }
        let start = monotonicNanoseconds()
        do {
            func described(_ report: Report) -> Report {
                let seconds = Double(monotonicNanoseconds() &- start) / 1e9
                let size = smoke ? "--smoke" : quick ? "--quick" : "full size"
                var report = report
                report.machine =
                    machine.lines + [
                        "run: \(size), \(scale.rows) rows, \(runner.rounds) rounds, "
                            + "seed \(seed), \(Format.fixed(seconds, 0)) s"
                    ]
                return report
            }
            // After each workload, so that what was measured outlives a run that is broken off.
            return try described(runner.run { try keep(described($0)) })
        } catch let error as BenchmarkError {
            Self.note("FAILED: \(error)")
            throw ExitCode(1)
        }
    }

    /// Prints the results, and writes what was asked for.
    private func publish(_ results: Report) throws {
        if json {
            for item in results.missing {
                Self.note("missing: \(item.contestant): \(item.metric): \(item.reason)")
            }
            for item in results.skipped {
                Self.note("skipped: \(item.contestant): \(item.reason)")
            }
            Self.show(results.jsonLines.joined(separator: "\n"))
        } else {
            if !smoke { Self.show(results.machine.joined(separator: "\n") + "\n") }
            Self.show(results.table)
        }
        try keep(results)
        if let charts {
            try FileManager.default.createDirectory(
                atPath: charts,
                withIntermediateDirectories: true
            )
            for file in Charts.files(results) {
                let path = charts + "/" + file.name
                try file.text.write(toFile: path, atomically: true, encoding: .utf8)
            }
        }
        if let report {
            let page = ResultsPage(results, charts: "charts")
            try page.text.write(toFile: report, atomically: true, encoding: .utf8)
        }
        if smoke { Self.note("smoke: every contestant did the same work") }
    }

    private func keep(_ results: Report) throws {
        guard let save else { return }
        let text = results.fileLines.joined(separator: "\n") + "\n"
        try text.write(toFile: save, atomically: true, encoding: .utf8)
    }

    private func runChurn() throws {
        let result = try inFolder { folder in
            try Churn(directory: folder, saves: saves, seed: seed, progress: Self.note).run()
        }
        Self.show(json ? result.json : result.text)
        if !result.isWithinBounds { throw ExitCode(1) }
    }

    private func inFolder<R>(_ body: (String) throws -> R) throws -> R {
        let parent = directory ?? FileManager.default.temporaryDirectory.path
        let folder = parent + "/varve-bench-\(ProcessInfo.processInfo.processIdentifier)"
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true
        )
        defer { try? FileManager.default.removeItem(atPath: folder) }
        return try body(folder)
    }

    private func selected() throws -> [Workload] {
        var workloads = Registry.workloads
        var chart: [Workload] = []
        let wanted = only?.split(separator: ",").map(String.init)
        if smoke {
            chart = [Registry.scaleChart(rows: 200)]
        } else if scaleChart || wanted?.contains("scale") == true {
            let sizes = Workload.ScaleChart.sizes.filter { $0 <= scaleRows }
            chart = sizes.map(Registry.scaleChart)
        }
        if let wanted {
            let ids = Set(workloads.flatMap { [$0.id] + $0.alsoMeasures } + ["scale"])
            for id in wanted where !ids.contains(id) {
                let known = ids.sorted().joined(separator: ", ")
                throw ValidationError("there is no workload \(id); there are \(known)")
            }
            workloads.removeAll { workload in
                !wanted.contains(workload.id)
                    && !workload.alsoMeasures.contains(where: wanted.contains)
            }
            if !wanted.contains("scale") && !scaleChart { chart = [] }
        }
        workloads += chart
        if let peers {
            let wanted = peers.split(separator: ",").map { $0.lowercased() }
            for index in workloads.indices {
                workloads[index].contestants.removeAll { contestant in
                    !wanted.contains { contestant.name.lowercased().contains($0) }
                }
            }
        }
        return workloads
    }

    private static func show(_ text: String) {
        FileHandle.standardOutput.write(Data((text + "\n").utf8))
    }

    private static func note(_ line: String) {
        FileHandle.standardError.write(Data((line + "\n").utf8))
    }
}
