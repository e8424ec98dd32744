// The command `varve`: its subcommands, and one table of exit codes for all.

import ArgumentParser
import Foundation
import VarveInspection

/// How the tool ends (docs/Inspection.md, "Exit codes").
enum ExitStatus: Int32 {
    /// Done; the answer is fine.
    case fine = 0
    /// Done; the answer is damaged, or some were found.
    case found = 1
    /// Done but incomplete.
    case incomplete = 2
    /// Wrong usage.
    case usage = 64
    /// Not a store, or newer than this tool.
    case notAStore = 65
    /// The path does not exist.
    case missing = 66
    /// A bug in the tool.
    case bug = 70
    /// What was to be written is there already, or cannot be made.
    case exists = 73
    /// The system refused to read or write.
    case ioFailed = 74
    /// No permission.
    case permission = 77
    /// Interrupted.
    case interrupted = 130

    var code: ExitCode { ExitCode(rawValue) }

    init(_ kind: InspectionError.Kind) {
        switch kind {
        case .notAStore: self = .notAStore
        case .missing: self = .missing
        case .permission: self = .permission
        case .ioFailed: self = .ioFailed
        case .damaged: self = .incomplete
        case .badRequest: self = .usage
        case .notFound: self = .found
        case .exists: self = .exists
        case .limit: self = .incomplete
        case .cancelled: self = .interrupted
        }
    }
}

@main struct VarveTool: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "varve",
        abstract: "Looks inside a Varve store. Nothing here ever changes one.",
        discussion: """
            In an incident: info (what is it), verify (is it damaged), rows and get (my data), \
            frames (where do the bytes go), log (what happened). Every command takes --json.
            """,
        subcommands: [
            Info.self, Log.self, Frames.self, Page.self, Schema.self, Rows.self, Get.self,
            Verify.self, Recover.self,
        ]
    )

    /// Runs the command. An error that is not the parser's own would exit 1, which means
    /// "damaged" here: so every error is mapped to the table.
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        Foundation.exit(run(arguments))
    }

    /// Runs a command line; gives the exit code.
    static func run(_ arguments: [String]) -> Int32 {
        do {
            var command = try parseAsRoot(arguments)
            try command.run()
            return ExitStatus.fine.rawValue
        } catch let error as InspectionError {
            Output.error("varve: \(error.message)")
            if let hint = error.hint { Output.error(hint) }
            if error.kind == .damaged, let store = arguments.dropFirst().first {
                Output.error("a full check: varve verify --full \(store)")
            }
            return ExitStatus(error.kind).rawValue
        } catch let error as ExitCode {
            return error.rawValue
        } catch {
            let code = exitCode(for: error)
            let text = fullMessage(for: error)
            if code == .success {
                Output.line(text)
                return code.rawValue
            }
            Output.error(text)
            suggestCommand(arguments)
            let isUsage = code == .validationFailure
            return isUsage ? ExitStatus.usage.rawValue : ExitStatus.bug.rawValue
        }
    }

    /// A mistyped option gets a suggestion from the parser, a mistyped command does not.
    private static func suggestCommand(_ arguments: [String]) {
        let names = configuration.subcommands.map { $0._commandName }
        guard let first = arguments.first, !first.hasPrefix("-"), !names.contains(first),
            let meant = Spelling.suggestion(for: first, among: names)
        else { return }
        Output.error("did you mean \(meant)?")
    }
}
