// Results as JSON lines and as tables, and where they are written.

import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// One object of the `--json` output: names in a fixed order, values that are numbers or text, on
/// one line.
package struct JSONLine {
    package enum Value {
        case integer(Int)
        case number(Double)
        case text(String)
        case flag(Bool)
    }

    package let fields: [(name: String, value: Value)]

    package init(fields: [(name: String, value: Value)]) { self.fields = fields }

    package var text: String {
        let members = fields.map { name, value in
            switch value {
            case .integer(let integer): "\(Self.quoted(name)):\(integer)"
            case .number(let number): "\(Self.quoted(name)):\(number.fixed(3))"
            case .text(let text): "\(Self.quoted(name)):\(Self.quoted(text))"
            case .flag(let flag): "\(Self.quoted(name)):\(flag)"
            }
        }
        return "{" + members.joined(separator: ",") + "}"
    }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case _ where scalar.value < 0x20: result += String(format: "\\u%04x", scalar.value)
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}

/// A table for people: the first column stands to the left, numbers to the right.
struct TextTable {
    let header: [String]
    var rows: [[String]] = []

    var text: String {
        let widths = header.indices.map { column in
            ([header] + rows).map { $0[column].count }.max() ?? 0
        }
        let lines = [header, widths.map { String(repeating: "─", count: $0) }] + rows
        return lines.map { line in
            line.enumerated().map { column, cell in
                column == 0
                    ? cell.rightPadded(to: widths[column]) : cell.leftPadded(to: widths[column])
            }.joined(separator: "  ")
        }.joined(separator: "\n")
    }
}

/// Where results go: lines on the standard output stream, each written at once, so that a reader of
/// a pipe sees it even if this process is killed right after.
enum StandardOutput {
    /// Whether results go to a terminal that shows colours, and nobody said that he wants none.
    static var hasColors: Bool {
        let environment = ProcessInfo.processInfo.environment
        return isatty(1) == 1 && environment["TERM"] != "dumb" && environment["NO_COLOR"] == nil
    }

    static func line(_ text: String) {
        try? FileHandle.standardOutput.write(contentsOf: Data((text + "\n").utf8))
    }

    /// A remark for people that is no result.
    static func note(_ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data((text + "\n").utf8))
    }
}
