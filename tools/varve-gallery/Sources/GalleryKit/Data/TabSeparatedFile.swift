// Reads tables of tab separated text.

import Foundation

/// Reads a table of tab separated UTF-8 text with one header line, row by row.
struct TabSeparatedFile {
    private let bytes: Data
    private let columns: [String: Int]
    private let firstRow: Int
    private let name: String

    /// Number of columns that the header line names.
    let columnCount: Int

    init(_ url: URL) throws {
        name = url.lastPathComponent
        do {
            bytes = try Data(contentsOf: url, options: .alwaysMapped)
        } catch {
            throw GalleryError("\(url.path) cannot be read: \(error.localizedDescription)")
        }
        let end = bytes.firstIndex(of: 10) ?? bytes.endIndex
        let header = String(decoding: bytes[..<end], as: UTF8.self).split(
            separator: "\t",
            omittingEmptySubsequences: false
        )
        columns = Dictionary(
            header.enumerated().map { (String($1), $0) },
            uniquingKeysWith: { first, _ in first }
        )
        columnCount = header.count
        firstRow = min(end + 1, bytes.endIndex)
    }

    /// The position of a column that must be there.
    func column(_ title: String) throws -> Int {
        guard let position = columns[title] else {
            throw GalleryError("\(name) has no column “\(title)”")
        }
        return position
    }

    /// Calls `body` with the fields of every row and its line number.
    func forEachRow(_ body: (_ fields: [Substring], _ line: Int) throws -> Void) throws {
        var start = firstRow
        var line = 2
        while start < bytes.endIndex {
            let end = bytes[start...].firstIndex(of: 10) ?? bytes.endIndex
            if end > start {
                let fields = String(decoding: bytes[start..<end], as: UTF8.self)
                    .split(separator: "\t", omittingEmptySubsequences: false)
                guard fields.count == columnCount else {
                    throw GalleryError(
                        "\(name), line \(line): \(fields.count) fields instead of \(columnCount)"
                    )
                }
                try body(fields, line)
            }
            start = end + 1
            line += 1
        }
    }

    /// A number that must stand in a field.
    func number<Number: LosslessStringConvertible>(
        _ field: Substring,
        line: Int,
        as type: Number.Type = Number.self
    ) throws -> Number {
        guard let number = Number(String(field)) else {
            throw GalleryError("\(name), line \(line): “\(field)” is not a number")
        }
        return number
    }
}
