// The command. `run` is the default; `measure` is how it starts itself for one measurement.

import ArgumentParser
import BenchmarkHarness
import Foundation

@main
struct VarveBench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "varve-bench",
        abstract: "Measures Varve beside SQLite, GRDB and others on the same work.",
        subcommands: [Run.self, Measure.self],
        defaultSubcommand: Run.self
    )
}

struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Runs workloads and prints the comparison."
    )

    @Flag(help: "Less work per measurement: a few minutes in all.")
    var quick = false

    @Flag(help: "Tiny: every workload with all checks, in seconds. The times mean nothing.")
    var smoke = false

    @Option(help: "Workloads to run, for example b,e.")
    var only: String?

    @Option(help: "Contestants to run, by a part of their names, for example Varve,LMDB.")
    var peers: String?

    @Flag(help: "One JSON object per measurement and per comparison instead of the table.")
    var json = false

    @Option(help: "Rounds of each workload; results are medians over them. Default 3.")
    var rounds: Int?

    @Option(help: "Rows of workloads a and c.")
    var rows: Int?

    @Option(help: "Folder for the stores, on the disk to be measured. Default: a temporary one.")
    var directory: String?

    @Option(help: "Seed of the random choices.")
    var seed: UInt64 = 20_260_101

    func validate() throws {
        if let rounds, rounds < 1 { throw ValidationError("--rounds must be at least 1") }
        if let rows, rows < 1 { throw ValidationError("--rows must be at least 1") }
        _ = try selected()
    }

    func run() throws {
        var scale = smoke ? Scale.smoke : quick ? Scale.quick : Scale.full
        if let rows { scale.rows = rows }
        let parent = directory ?? FileManager.default.temporaryDirectory.path
        let folder = parent + "/varve-bench-\(ProcessInfo.processInfo.processIdentifier)"
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true
        )
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let program = Bundle.main.executablePath ?? CommandLine.arguments[0]
        let runner = Runner(
            workloads: try selected(),
            scale: scale,
            rounds: rounds ?? (smoke ? 1 : 3),
            directory: folder,
            seed: seed,
            progress: Self.note,
            execute: { try ChildProcess.execute($0, program: program) }
        )
        let machine = Machine.current(directory: folder)
        for line in machine.lines { Self.note(line) }
        let report: Report
        do {
            report = try runner.run()
        } catch let error as BenchmarkError {
            Self.note("FAILED: \(error)")
            throw ExitCode(1)
        }
        if json {
            for item in report.skipped { Self.note("skipped: \(item.contestant): \(item.reason)") }
            Self.show(report.jsonLines.joined(separator: "\n"))
        } else {
            if !smoke { Self.show(machine.lines.joined(separator: "\n") + "\n") }
            Self.show(report.table)
        }
        if smoke { Self.note("smoke: every contestant did the same work") }
    }

    private func selected() throws -> [Workload] {
        var workloads = Registry.workloads
        if let only {
            let wanted = only.split(separator: ",").map(String.init)
            for id in wanted where !workloads.contains(where: { $0.id == id }) {
                let known = workloads.map(\.id).joined(separator: ", ")
                throw ValidationError("there is no workload \(id); there are \(known)")
            }
            workloads.removeAll { !wanted.contains($0.id) }
        }
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

struct Measure: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "measure",
        abstract: "One measurement, for `run`.",
        shouldDisplay: false
    )

    @Argument var request: String

    func run() throws {
        let answer = try ChildProcess.answer(request, workloads: Registry.workloads)
        FileHandle.standardOutput.write(answer)
    }
}
