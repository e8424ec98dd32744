// Rows from files: cities of the world, from a file of tools/varve-gallery or one like it, and
// paragraphs of texts.

internal import Foundation

extension Dataset {
    /// The cities of a tab-separated file, with or without the column of alternate names.
    public static func cities(path: String, alternateNames: Bool, seed: UInt64) throws -> Dataset {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        var types: [ColumnType] = [.int, .text, .double, .double, .text, .int, .text, .text]
        if alternateNames { types.append(.text) }
        let name = alternateNames ? "cities, alternate names" : "cities"
        var builder = DatasetBuilder(name, types, seed: seed)
        for line in text.split(separator: "\n").dropFirst() {
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
            guard fields.count >= (alternateNames ? 9 : 8) else { continue }
            builder.int(Int64(fields[0]))
            builder.text(String(fields[1]))
            builder.double(Double(fields[2]))
            builder.double(Double(fields[3]))
            builder.text(String(fields[4]))
            builder.int(Int64(fields[5]))
            builder.text(String(fields[6]))
            builder.text(String(fields[7]))
            if alternateNames { builder.text(fields[8].isEmpty ? nil : String(fields[8])) }
            builder.endRow()
        }
        return builder.finish(filter: 5, above: 20_000)
    }

    /// The paragraphs of text files, of 40 to 300 bytes.
    public static func paragraphs(paths: [String], seed: UInt64) throws -> Dataset {
        var builder = DatasetBuilder("paragraphs of files", [.int, .double, .text], seed: seed)
        var number: Int64 = 0
        for path in paths {
            let text = try String(contentsOfFile: path, encoding: .utf8)
            for line in text.split(separator: "\n") where line.utf8.count >= 40 {
                var rest = Substring(line)
                while rest.utf8.count >= 40 {
                    let part = rest.prefix(280)
                    number += 1
                    builder.int(number * 7 % 4001)
                    builder.double(8e8 + Double(number) * 61)
                    builder.text(String(part))
                    builder.endRow()
                    rest = rest.dropFirst(280)
                }
            }
        }
        return builder.finish(filter: 0, above: 2000)
    }
}

/// The bytes of text files, one after the other.
public func textBytes(paths: [String]) throws -> [UInt8] {
    try paths.flatMap { Array(try String(contentsOfFile: $0, encoding: .utf8).utf8) }
}
