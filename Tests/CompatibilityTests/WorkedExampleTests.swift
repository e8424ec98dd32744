// The worked example of Format.md is what the code writes, byte for byte.

import Foundation
import Testing
import VarveBase
import VarveIO
import VarveRecords
import VarveTesting

@testable import VarveEngine

/// A world in which nothing moves, so that no more or fewer looks at a clock change a byte.
private struct StandingEnvironment: Environment {
    func randomBytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8($0 % 16 + 1) } }
    func monotonicNanoseconds() -> UInt64 { 1_000_000 }
    func wallClockMicroseconds() -> Int64 { 1_772_460_660_000_000 }
    func processID() -> Int32 { 1 }
    func yield(_ point: YieldPoint) {}
}

@Suite struct WorkedExampleTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// The lines of the example, without the fences.
    private var listing: [String] {
        get throws {
            let text = try String(
                contentsOf: Self.root.appending(path: "Format.md"),
                encoding: .utf8
            )
            let lines = text.components(separatedBy: "\n")
            let start = try #require(lines.firstIndex(of: "## A worked example"))
            let block = lines[start...].drop { $0 != "```text" }.dropFirst()
            return Array(block.prefix { $0 != "```" })
        }
    }

    /// One city, saved and closed.
    private func makeExample() throws -> TemporaryStore {
        let place = try TemporaryStore("example")
        // Not 1, so that it can be told from the revision.
        let schema = SchemaDescription(
            version: 7,
            entities: [
                EntityDescription(
                    name: "City",
                    attributes: [
                        AttributeDescription(name: "name", type: .text),
                        AttributeDescription(name: "people", type: .int64, isOptional: true),
                    ],
                    indexes: [IndexDescription("people")]
                )
            ]
        )
        var options = RecordOptions()
        options.engine.environment = StandingEnvironment()
        options.engine.maintenance = .inline
        options.engine.creator = "example"
        let store = try RecordStore.open(
            .file(directory: place.folder.path, name: "example"),
            schema: schema,
            options: options
        )
        let city = try #require(try store.schema.entity(named: "City"))
        let id = store.allocateObjectIDs(1)
        _ = try store.write(author: "me") { transaction in
            let values = [
                ColumnValue(ColumnID(0), .text("V\u{ed}k")), ColumnValue(ColumnID(1), .int(318)),
            ]
            try transaction.insert(city.id, id, values)
        }
        try store.close()
        return place
    }

    @Test func theExampleIsWhatTheCodeWrites() throws {
        let place = try makeExample()
        let file = [UInt8](try Data(contentsOf: place.url))
        var bytes: [UInt8] = []
        for line in try listing {
            let words = line.split(separator: " ")
            guard let first = words.first, first.count == 4, let address = Int(first, radix: 16)
            else { continue }
            try #require(address == bytes.count, "\(line)")
            let data = line.dropFirst(7).prefix(23).split(separator: " ")
            if line.hasSuffix("the same 4096 bytes") {
                bytes += bytes[..<4096]
            } else if data.count == 3, data[1] == "x", let count = Int(data[2]) {
                bytes += [UInt8](repeating: 0, count: count)
            } else {
                bytes += try data.map { try #require(UInt8($0, radix: 16), "\(line)") }
            }
        }
        #expect(bytes.count == file.count)
        if let place = zip(bytes, file).enumerated().first(where: { $1.0 != $1.1 })?.offset {
            Issue.record("the first difference is at \(String(place, radix: 16))")
        }
    }

    /// Writes the example into Format.md. Only for a new format version.
    @Test(.enabled(if: writesStores, "only when VARVE_WRITE_GOLDEN_STORES=1"))
    func writeTheExample() throws {
        let place = try makeExample()
        let lines = try readStore([place.url.path, "--dump"]).lines
        let url = Self.root.appending(path: "Format.md")
        let text = try String(contentsOf: url, encoding: .utf8)
        let parts = text.components(separatedBy: "\n```text\n")
        try #require(parts.count == 2)
        let rest = parts[1].components(separatedBy: "\n```\n").dropFirst()
        let block = (lines + ["```"] + rest).joined(separator: "\n")
        try (parts[0] + "\n```text\n" + block)
            .write(to: url, atomically: false, encoding: .utf8)
    }

    /// The words beside the bytes are those of the reader in tools/.
    @Test(.enabled("python3 is missing: the listing is not compared") { python != nil })
    func theListingIsThatOfTheReader() throws {
        let place = try makeExample()
        let (lines, status) = try readStore([place.url.path, "--dump"])
        #expect(status == 0)
        #expect(try lines == listing)
    }
}
