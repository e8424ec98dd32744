// What is printed, and where: stdout is data, stderr is everything else.
//
// Invariants
// - Piped output is tab separated, without decoration, and nothing is cut short.
// - Colour never carries a meaning alone. NO_COLOR, TERM=dumb and --color are obeyed.

import ArgumentParser
import Foundation

/// When to use colour.
enum ColorChoice: String, ExpressibleByArgument, CaseIterable {
    case auto
    case always
    case never
}

/// Options that every command has.
struct CommonOptions: ParsableArguments {
    @Argument(help: "The store: a path to NAME.varve.", completion: .file(extensions: ["varve"]))
    var store: String

    @Flag(help: "Print JSON: one object, or one per line where there are many.")
    var json = false

    @Option(help: ArgumentHelp("Colour: auto, always or never.", valueName: "when"))
    var color: ColorChoice = .auto

    var style: Style { Style(color) }
}

/// Whether stdout is a terminal, and how to write on it.
struct Style {
    let isTerminal: Bool
    let hasColor: Bool

    init(_ choice: ColorChoice) {
        isTerminal = isatty(STDOUT_FILENO) == 1
        let environment = ProcessInfo.processInfo.environment
        let isWanted =
            isTerminal && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
        hasColor =
            switch choice {
            case .auto: isWanted
            case .always: true
            case .never: false
            }
    }

    /// Columns of the terminal.
    var width: Int {
        var size = winsize()
        guard isTerminal, ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 20
        else { return 80 }
        return Int(size.ws_col)
    }

    func bold(_ text: String) -> String { hasColor ? "\u{1B}[1m\(text)\u{1B}[0m" : text }
    func red(_ text: String) -> String { hasColor ? "\u{1B}[1;31m\(text)\u{1B}[0m" : text }
    func green(_ text: String) -> String { hasColor ? "\u{1B}[32m\(text)\u{1B}[0m" : text }
    func faint(_ text: String) -> String { hasColor ? "\u{1B}[2m\(text)\u{1B}[0m" : text }
}

enum Output {
    /// A line of data.
    static func line(_ text: String) { write(text + "\n", to: .standardOutput) }

    /// A note, a warning, an error.
    static func error(_ text: String) { write(text + "\n", to: .standardError) }

    /// Bytes of data.
    static func bytes(_ bytes: [UInt8]) { write(Data(bytes), to: .standardOutput) }

    private static func write(_ text: String, to file: FileHandle) {
        write(Data(text.utf8), to: file)
    }

    private static func write(_ data: Data, to file: FileHandle) {
        do {
            try file.write(contentsOf: data)
        } catch {
            // The reader of the pipe went away, or the disk is full: there is nobody to tell.
            Foundation.exit(ExitStatus.ioFailed.rawValue)
        }
    }

    /// A table: aligned under its heading on a terminal, tab separated when piped.
    ///
    /// - Parameter right: columns of numbers.
    static func table(
        _ heading: [String],
        _ rows: [[String]],
        right: Set<Int> = [],
        _ style: Style
    ) {
        guard style.isTerminal else {
            line(heading.joined(separator: "\t"))
            for row in rows { line(row.joined(separator: "\t")) }
            return
        }
        var widths = heading.map(\.count)
        for row in rows {
            for (index, cell) in row.enumerated() { widths[index] = max(widths[index], cell.count) }
        }
        func text(_ cells: [String]) -> String {
            var result = ""
            for (index, cell) in cells.enumerated() {
                let padding = String(repeating: " ", count: widths[index] - cell.count)
                let isLast = index == cells.count - 1
                result += right.contains(index) ? padding + cell : cell + (isLast ? "" : padding)
                if !isLast { result += "  " }
            }
            return result
        }
        line(style.bold(text(heading)))
        for row in rows { line(text(row)) }
    }
}
