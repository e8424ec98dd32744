// varve recover: a new store with everything that is sound, and a report of the rest.

import ArgumentParser
import Foundation
import VarveInspection

struct Recover: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes what is sound into a new store; 0: everything, 1: something is lost.",
        discussion: """
            The damaged store is only read. On a terminal the plan is printed and nothing is \
            written without --yes. Object IDs are kept, commit numbers begin anew.
            """
    )

    @OptionGroup var common: CommonOptions

    @Argument(help: "The new store: a path that is free.", completion: .file())
    var out: String

    @Flag(help: "Only say what would be done.") var plan = false
    @Option(help: ArgumentHelp("The store as of this commit.", valueName: "commit"))
    var to: String?
    @Flag(help: "Rows that are not known as of the commit enter the store as they were before.")
    var useOlder = false
    @Option(
        help: ArgumentHelp("Where the report goes; OUT.report.json if not said.", valueName: "file")
    )
    var report: String?
    @Option(help: ArgumentHelp("Memory for row changes: 256M.", valueName: "bytes"))
    var maxMemory: ByteCount?
    @Flag(help: "Do not stop behind the plan on a terminal.") var yes = false

    func run() throws {
        var options = SalvageOptions()
        options.usesOlder = useOlder
        if let maxMemory { options.memoryBytesMax = maxMemory.bytes }
        if let to {
            guard let number = UInt64(to.hasPrefix("c") ? to.dropFirst() : Substring(to)) else {
                throw InspectionError(.badRequest, "\(to) is no commit; they are called c48211")
            }
            options.commit = number
        }
        let name = out.hasSuffix(".varve") ? String(out.dropLast(6)) : out
        let reportFile = report ?? name + ".report.json"
        // Before anything is read: nothing is ever written over.
        for file in [name + ".varve", name + ".varve-blobs", reportFile] {
            if FileManager.default.fileExists(atPath: file) {
                throw InspectionError(.exists, "\(file) is there already; nothing was written")
            }
        }
        let observer = try StoreObserver.open(common.store)
        let progress = ProgressLine("recover", isShown: !common.json)
        let isPlan = plan || (common.style.isTerminal && !yes)
        if isPlan {
            let result = try observer.salvagePlan(options) { progress.show($0, $1) }
            progress.end()
            if common.json {
                Output.line(result.json.text)
            } else {
                Output.line("nothing written yet")
                for line in result.lines { Output.line("  " + line) }
                Output.line(
                    "  writes      \(name).varve about \(Spelling.size(result.bytes)), "
                        + "\(reportFile)" + (result.blobs > 0 ? "; blobs are copied" : "")
                )
                if !plan { Output.error("to write it: the same command with --yes") }
            }
            throw result.code
        }
        let result = try observer.salvage(toPath: name, options) { progress.show($0, $1) }
        progress.end()
        try Data((result.json.text + "\n").utf8).write(
            to: URL(filePath: reportFile),
            options: .withoutOverwriting
        )
        if common.json {
            Output.line(result.json.text)
        } else {
            Output.line("\(name).varve written and verified")
            for line in result.lines { Output.line("  " + line) }
            Output.line("  report      \(reportFile)")
        }
        throw result.code
    }
}

extension SalvageReport {
    fileprivate var code: ExitCode {
        (isWhole ? ExitStatus.fine : isComplete ? .found : .incomplete).code
    }
}

/// "256M", "64K", "1G" or a number of bytes.
struct ByteCount: ExpressibleByArgument {
    let bytes: Int

    init?(argument: String) {
        let units: [Character: Int] = ["K": 1 << 10, "M": 1 << 20, "G": 1 << 30]
        let unit = argument.last.flatMap { units[$0] }
        let digits = unit == nil ? Substring(argument) : argument.dropLast()
        guard let number = Int(digits), number > 0 else { return nil }
        let (bytes, overflow) = number.multipliedReportingOverflow(by: unit ?? 1)
        if overflow { return nil }
        self.bytes = bytes
    }
}
