// varve verify: is the store damaged, where, and what does that hide.

import ArgumentParser
import Foundation
import VarveInspection

struct Verify: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Checks the store; 0: sound, 1: something is wrong, 2: not finished.",
        discussion: """
            By default every page of the newest commit, rows against indexes both ways, \
            relationships, large values, and that blobs are there with their length.
            """
    )

    @OptionGroup var common: CommonOptions

    @Flag(help: "Only header, tail and pages.") var quick = false
    @Flag(help: "Also every frame of the file, and the digest of every blob.") var full = false
    @Option(help: ArgumentHelp("Stop after so many seconds, with code 2.", valueName: "seconds"))
    var timeLimit: Seconds?
    @Option(help: ArgumentHelp("Memory for what has to be kept in mind: 256M.", valueName: "bytes"))
    var maxMemory: ByteCount?

    func validate() throws {
        if quick && full { throw ValidationError("--quick and --full exclude each other") }
    }

    func run() throws {
        let level: VerifyLevel = quick ? .quick : full ? .full : .normal
        let observer = try StoreObserver.open(common.store)
        let progress = ProgressLine("verify", isShown: !common.json, timeLimit: timeLimit?.seconds)
        let report = try observer.verify(
            level: level,
            memoryBytesMax: maxMemory?.bytes ?? VerifyReport.memoryBytesMax
        ) { progress.show($0, $1) }
        progress.end()
        if common.json {
            Output.line(report.json.text)
        } else {
            print(report)
        }
        if progress.isInterrupted { throw ExitStatus.interrupted.code }
        if !report.isSound { throw ExitStatus.found.code }
        if !report.isComplete { throw ExitStatus.incomplete.code }
    }

    private func print(_ report: VerifyReport) {
        let style = common.style
        let commit = report.commit.map { Spelling.commit($0) } ?? "no commit"
        var parts = [
            report.level == .normal ? "verify" : "verify --\(report.level.rawValue)",
            commit, Spelling.size(report.bytes), "\(report.pages) pages",
        ]
        if report.level != .quick {
            parts += [
                "\(report.rows) rows", "\(report.indexEntries) index entries",
                "\(report.values) large values", "\(report.blobs) blobs",
            ]
        }
        if report.level == .full { parts.append("\(report.frames) frames") }
        Output.line(parts.joined(separator: "  "))
        let count = report.problems.count + report.problemsLeftOut
        if count == 0 {
            Output.line(
                report.isComplete
                    ? style.green("SOUND") : "no problem so far; the check was not finished"
            )
        } else {
            Output.line(style.red("\(count) PROBLEM\(count == 1 ? "" : "S")"))
        }
        for problem in report.problems {
            let place = problem.place.map { Spelling.place($0) + "  " } ?? ""
            let bytes = problem.bytes.map { ", \($0) bytes" } ?? ""
            let need = problem.isNeeded ? "" : ", not needed by the newest commit"
            Output.line(
                "  " + style.bold("\(place)\(Spelling.escaped(problem.subject))")
                    + "\(bytes)  \(problem.kind.rawValue)\(need)"
            )
            Output.line("    \(Spelling.escaped(problem.message))")
            if let text = Self.objects(problem) { Output.line("    \(text)") }
            for detail in problem.details { Output.line("    \(Spelling.escaped(detail))") }
        }
        if report.problemsLeftOut > 0 {
            Output.line("  and \(report.problemsLeftOut) more problems")
        }
        for text in report.notChecked {
            Output.line("not checked  \(Spelling.escaped(text))")
        }
        for text in report.notes { Output.line("note  \(Spelling.escaped(text))") }
    }

    /// "held 143 entries, Loan:1043906 … Loan:1044048"
    private static func objects(_ problem: VerifyProblem) -> String? {
        var parts: [String] = []
        if let rows = problem.rows { parts.append("\(rows) entries cannot be reached") }
        if let first = problem.objects.first, let last = problem.objects.last {
            parts.append(
                problem.objects.count <= 3
                    ? problem.objects.joined(separator: ", ") : "\(first) … \(last)"
            )
        }
        return parts.isEmpty ? nil : parts.joined(separator: ": ")
    }
}
