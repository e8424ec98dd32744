// The command. `run` is the default; `measure` is how it starts itself for one measurement.

import ArgumentParser
import BenchmarkHarness
import Foundation

@main
struct VarveBench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "varve-bench",
        abstract: "Measures Varve beside SQLite, GRDB and others on the same work.",
        subcommands: [Run.self, Calls.self, MigrationCommand.self, Measure.self],
        defaultSubcommand: Run.self
    )
}

struct Measure: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "measure",
        abstract: "One measurement, for `run`.",
        shouldDisplay: false
    )

    @Argument var request: String

    func run() throws {
        let answer = try ChildProcess.answer(request, workload: Registry.workload)
        FileHandle.standardOutput.write(answer)
    }
}
