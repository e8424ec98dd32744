// Reads the tables of Format.md, so that tests can compare them with the code.

import Foundation
import Testing

/// The tables of Format.md, found by the heading above them.
struct FormatDocument {
    /// One table: the names of its columns, and its rows by these names.
    struct Table {
        let columns: [String]
        let rows: [[String: String]]

        /// Two columns as names and numbers.
        func numbers(
            _ name: String = "Name",
            _ value: String = "Value"
        ) throws -> [String: UInt64] {
            var numbers: [String: UInt64] = [:]
            for row in rows {
                let key = try #require(row[name])
                let number = try #require(FormatDocument.number(row[value] ?? ""), "\(key)")
                #expect(numbers.updateValue(number, forKey: key) == nil, "\(key) stands twice")
            }
            return numbers
        }
    }

    private let lines: [String]

    /// Reads Format.md at the top of the repository.
    init() throws {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(contentsOf: root.appending(path: "Format.md"), encoding: .utf8)
        lines = text.components(separatedBy: "\n")
    }

    /// All headings that have a table, in order.
    var tableNames: [String] {
        var heading = ""
        var names: [String] = []
        for line in lines {
            if line.hasPrefix("#") {
                heading = Self.title(line)
            } else if line.hasPrefix("|"), names.last != heading {
                names.append(heading)
            }
        }
        return names
    }

    /// The first table below a heading.
    func table(_ heading: String) throws -> Table {
        let starts = lines.indices.filter {
            lines[$0].hasPrefix("#") && Self.title(lines[$0]) == heading
        }
        let start = try #require(
            starts.count == 1 ? starts.first : nil,
            "one heading \(heading) in Format.md"
        )
        let below = lines[(start + 1)...].prefix { !$0.hasPrefix("#") }
        let table = below.drop { !$0.hasPrefix("|") }.prefix { $0.hasPrefix("|") }
            .map(Self.cells)
        let columns = try #require(table.first, "a table below \(heading)")
        let rows = try table.dropFirst(2).map { cells in
            try #require(cells.count == columns.count, "\(heading): \(cells)")
            return Dictionary(uniqueKeysWithValues: zip(columns, cells))
        }
        return Table(columns: columns, rows: rows)
    }

    /// A number as the document writes it: 12, 0x0C.
    static func number(_ text: String) -> UInt64? {
        text.hasPrefix("0x") ? UInt64(text.dropFirst(2), radix: 16) : UInt64(text)
    }

    /// Bytes as the document writes them: 05 0A FF.
    static func bytes(_ text: String) throws -> [UInt8] {
        try text.split(separator: " ").map { try #require(UInt8($0, radix: 16)) }
    }

    private static func title(_ line: String) -> String {
        line.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces)
    }

    private static func cells(_ line: String) -> [String] {
        line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
            .map { $0.trimmingCharacters(in: CharacterSet(charactersIn: " `")) }
    }
}
