// The tool as its user sees it: text, JSON and exit codes of the real program, on a store that is
// the same in every run.

import Foundation
import Testing
import VarveTesting

/// A run of the program.
struct Run {
    let status: Int32
    let output: String
    let errors: String
    var lines: [String] { output.split(separator: "\n").map(String.init) }
}

/// The sample store, and the program beside the test bundle.
final class ToolSample {
    let place: TemporaryStore

    init(books: Int = 40) throws {
        place = try TemporaryStore("Library")
        let store = try SampleStore.make(
            .file(directory: place.folder.path, name: "Library"),
            books: books
        )
        try store.close()
    }

    func run(_ arguments: String...) throws -> Run {
        try Self.run(arguments.map { $0 == "STORE" ? "Library.varve" : $0 }, in: place.folder)
    }

    static func run(_ arguments: [String], in folder: URL) throws -> Run {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.currentDirectoryURL = folder
        let output = folder.appending(path: "stdout")
        let errors = folder.appending(path: "stderr")
        for file in [output, errors] {
            try Data().write(to: file)
        }
        process.standardOutput = try FileHandle(forWritingTo: output)
        process.standardError = try FileHandle(forWritingTo: errors)
        process.standardInput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return Run(
            status: process.terminationStatus,
            output: String(decoding: try Data(contentsOf: output), as: UTF8.self),
            errors: String(decoding: try Data(contentsOf: errors), as: UTF8.self)
        )
    }

    /// Test bundle and program are built into the same folder.
    private static var program: URL {
        let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }
        let folder =
            bundle?.bundleURL.deletingLastPathComponent()
            ?? URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        return folder.appending(path: "varve")
    }
}

@Suite struct ToolTests {
    @Test func `log lists commits, tab separated when piped`() throws {
        let run = try ToolSample().run("log", "STORE")
        #expect(run.status == 0)
        #expect(run.lines[0] == "commit\ttime\tauthor\tchanges\tform\tbytes\tplace")
        let cells = run.lines.dropFirst().map { $0.split(separator: "\t").map(String.init) }
        #expect(cells.map { $0[2] } == ["lend", "edit", "import", "schema"])
        #expect(cells.map { $0[3] }.prefix(2) == ["+1 -1 Loan", "~1 Book"])
        #expect(cells.allSatisfy { $0.count == 7 && $0[1].hasSuffix("Z") })
        #expect(run.errors == "")
        let cut = try ToolSample().run("log", "STORE", "--limit", "1", "--json")
        #expect(cut.lines.count == 1)
        #expect(cut.lines[0].hasPrefix("{\"format\":1,\"commit\":"))
        #expect(cut.errors == "older commits are left out (--limit)\n")
    }

    @Test func `schema prints what is stored`() throws {
        let run = try ToolSample().run("schema", "STORE")
        #expect(
            run.output == """
                version 7

                Author  5 rows
                  name   String
                  books  -> [Book]  inverse author  on delete nullify
                  unique name

                Book  40 rows
                  title    String = ""
                  year     Int32?
                  price    Decimal?
                  notes    String?
                  cover    Blob?  a file above 4096 bytes
                  author   -> Author?  inverse books  on delete nullify
                  loans    -> [Loan]  inverse book  on delete nullify
                  similar  -> ordered [Book]  on delete nullify
                  index author
                  index title
                  index author, year

                Loan  80 rows
                  due     Date
                  isBack  Bool = false
                  book    -> Book?  inverse loans  on delete nullify
                  index book
                  index due

                """,
            "\(run.output)"
        )
    }

    @Test func `rows are filtered, and sizes and control characters are safe`() throws {
        let sample = try ToolSample()
        let run = try sample.run(
            "rows",
            "STORE",
            "Book",
            "--where",
            "year > 1980 && author.name == \"Lem\"",
            "--columns",
            "title,year",
            "--sort=-year"
        )
        #expect(run.output == "object\ttitle\tyear\nBook:42\tVolume 36\t1986\n", "\(run)")
        let text = try sample.run("rows", "STORE", "Book", "--where", "id == Book:10")
        #expect(text.output.contains("bell \\u{7}, escape \\u{1B}[31m"))
        #expect(!text.output.contains("\u{1B}"))
        let json = try sample.run("rows", "STORE", "Book", "--where", "id == Book:7", "--json")
        #expect(
            json.output == """
                {"format":1,"object":"Book:7","version":\(Self.editCommit),"values":\
                {"title":"Solaris","year":1961,"price":"10.95","notes":null,"cover":\
                {"blob":"\(Self.coverDigest(json.output))","bytes":1000},"author":"Author:2"}}

                """,
            "\(json.output)"
        )
        let count = try sample.run("rows", "STORE", "Loan", "--count")
        #expect(count.output == "80\n")
    }

    private static let editCommit = 3

    private static func coverDigest(_ text: String) -> String {
        String(text.firstMatch(of: #/"blob":"([0-9a-f]{64})"/#)?.output.1 ?? "")
    }

    @Test func `get prints one object, and writes a blob's bytes`() throws {
        let sample = try ToolSample()
        let run = try sample.run("get", "STORE", "Book:6")
        #expect(
            run.output == """
                Book:6  last changed by c2
                  title    The Sea, The Sea
                  year     1950
                  price    9.95
                  notes    -
                  cover    -
                  author   -> Author:1
                  loans    -> 1  Loan:47
                  similar  -> 3  Book:9, Book:7, Book:8

                """,
            "\(run)"
        )
        let blob = try sample.run("get", "STORE", "Book:8", "--blob", "cover")
        #expect(blob.status == 0)
        #expect(sample.place.files["stdout"] == 20_000)
    }

    @Test func `info and frames tell the same in text and JSON`() throws {
        let sample = try ToolSample()
        let info = try sample.run("info", "STORE")
        #expect(info.status == 0)
        #expect(info.output.contains("by \"SampleStore 1\""))
        #expect(info.output.contains("entities        Author  5\n                Book  40\n"))
        let json = try sample.run("info", "STORE", "--json")
        #expect(
            json.output.hasPrefix("{\"format\":1,\"path\":\"Library.varve\",\"formatVersion\":1,")
        )
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any]
        )
        let expected: Set<String> = [
            "format", "path", "formatVersion", "readerNeeds", "writerNeeds", "storeID", "fileID",
            "generation", "created", "creator", "schemaVersion", "newest", "newestIsProven",
            "checkpoint", "replayedCommits", "replayedBytes", "closed", "fileBytes", "liveBytes",
            "tailZeros", "blobs", "blobBytes", "entities", "damage",
        ]
        #expect(Set(object.keys) == expected)
        let frames = try sample.run("frames", "STORE", "--json")
        let sum = try frames.lines.reduce(0) { sum, line in
            let entry = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return sum + (try #require(entry?["bytes"] as? Int))
        }
        #expect(sum == object["fileBytes"] as? Int)
    }

    @Test func `page decodes a frame that log names`() throws {
        let sample = try ToolSample()
        let log = try sample.run("log", "STORE")
        let place = String(try #require(log.lines[2].split(separator: "\t").last))
        let run = try sample.run("page", "STORE", place)
        #expect(run.status == 0)
        #expect(run.lines[0].hasPrefix("\(place)  DELTA  "))
        #expect(run.lines[1] == "header hash ok   payload hash ok   tail word ok")
        #expect(run.lines.last == "  updated Book:7 title, year")
        let hex = try sample.run("page", "STORE", place, "--hex")
        #expect(hex.output.contains("46 56 01"))
    }

    @Test func `verify says sound, or names the damaged frame and ends with 1`() throws {
        let sample = try ToolSample(books: 200)
        let sound = try sample.run("verify", "STORE", "--full")
        #expect(sound.status == 0, "\(sound)")
        #expect(sound.lines.contains("SOUND"))
        let frames = try sample.run("frames", "STORE")
        let leaf = try #require(
            frames.lines.last { $0.contains("\tlive\t") && $0.contains("\tleaf of Loan\t") }
        )
        let place = String(leaf.prefix { $0 != "\t" })
        let offset = try #require(Int(place.dropFirst(2), radix: 16))
        var bytes = try Data(contentsOf: sample.place.url)
        bytes[offset + 50] ^= 1
        try bytes.write(to: sample.place.url)
        let damaged = try sample.run("verify", "STORE")
        #expect(damaged.status == 1)
        #expect(damaged.lines[1] == "1 PROBLEM")
        #expect(damaged.lines[2].hasPrefix("  \(place)  leaf of Loan, "), "\(damaged.output)")
        #expect(damaged.output.contains("entries cannot be reached: Loan:"))
        let json = try sample.run("verify", "STORE", "--json")
        #expect(json.status == 1)
        #expect(json.output.contains("\"sound\":false,\"complete\":true"))
        #expect(json.output.contains("\"place\":\"\(place)\""))
        #expect(try sample.run("frames", "STORE", "--table").status == 1)
        #expect(try sample.run("page", "STORE", place).status == 1)
        let rows = try sample.run("rows", "STORE", "Loan")
        #expect(rows.status == 2)
        #expect(rows.errors.contains("cannot be read"))
        #expect(rows.lines.count > 200)
        #expect(try sample.run("verify", "STORE", "--time-limit", "0").status != 0)
    }

    @Test func `recover writes what is sound, and names the rest`() throws {
        let sample = try ToolSample(books: 200)
        // The cover of Book:8.
        let blobs = sample.place.folder.appending(path: "Library.varve-blobs")
        let names = try FileManager.default.contentsOfDirectory(atPath: blobs.path)
        try FileManager.default.removeItem(at: blobs.appending(path: try #require(names.first)))
        let plan = try sample.run("recover", "STORE", "Fixed.varve", "--plan")
        #expect(plan.status == 1, "\(plan)")
        #expect(plan.lines.first == "nothing written yet")
        #expect(plan.output.contains("  lost        Book:8.cover: blob "), "\(plan.output)")
        #expect(plan.output.contains("  keeps       200 Book\n"), "\(plan.output)")
        #expect(sample.place.files["Fixed.varve"] == nil)
        let run = try sample.run("recover", "STORE", "Fixed.varve")
        #expect(run.status == 1, "\(run)")
        #expect(run.lines.first == "Fixed.varve written and verified")
        #expect(run.errors == "")
        let written = sample.place.files
        #expect(written["Fixed.varve"] != nil && written["Fixed.report.json"] != nil)
        #expect(!written.keys.contains { $0.contains("recovering") })
        #expect(try sample.run("verify", "Fixed.varve", "--full").status == 0)
        #expect(try sample.run("recover", "STORE", "Fixed.varve").status == 73)
        let json = try sample.run("recover", "STORE", "Again.varve", "--json", "--report", "r.json")
        #expect(json.status == 1)
        #expect(json.output.hasPrefix("{\"format\":1,\"written\":true,\"whole\":false"))
        #expect(sample.place.files["r.json"] == json.output.utf8.count)
    }

    private static let endings: [(String, Int32)] = [
        ("--help", 0), ("help rows", 0), ("info", 64), ("info Library.varve --jsn", 64),
        ("vrify Library.varve", 64), ("rows Library.varve Bok", 64),
        ("rows Library.varve Book --where year", 64), ("page Library.varve here", 64),
        ("page Library.varve p@2001", 64), ("verify Library.varve --quick --full", 64),
        ("info nothing.varve", 66), ("info /nowhere/nothing.varve", 66),
        ("info other.varve", 65), ("info other.text", 65), ("get Library.varve Book:9999", 1),
        ("verify Library.varve --time-limit 0", 2), ("verify Library.varve --max-memory 1X", 64),
        ("recover Library.varve", 64), ("recover Library.varve Library.varve", 73),
        ("recover Library.varve Fixed.varve --to c99", 64),
        ("recover nothing.varve Fixed.varve", 66), ("recover Library.varve Fixed.varve", 0),
    ]

    @Test(arguments: endings)
    func `The exit code says how it ended`(line: String, code: Int32) throws {
        let sample = try ToolSample()
        for name in ["other.varve", "other.text"] {
            try Data("not a store".utf8).write(to: sample.place.folder.appending(path: name))
        }
        let arguments = line.split(separator: " ").map(String.init)
        let run = try ToolSample.run(arguments, in: sample.place.folder)
        #expect(run.status == code, "\(run)")
        #expect(code == 0 ? run.errors.isEmpty : !(run.errors + run.output).isEmpty, "\(run)")
    }

    @Test func `A mistyped command, entity or property gets a suggestion`() throws {
        let sample = try ToolSample()
        #expect(try sample.run("vrify", "STORE").errors.contains("did you mean verify?"))
        #expect(try sample.run("rows", "STORE", "Bok").errors.contains("did you mean Book?"))
        #expect(
            try sample.run("rows", "STORE", "Book", "--where", "yeer == 1").errors
                .contains("did you mean year?")
        )
    }

    @Test func `The manual's exit codes are those of the tool`() throws {
        let document = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../docs/Inspection.md").standardized
        let text = String(decoding: try Data(contentsOf: document), as: UTF8.self)
        let codes = text.matches(of: #/\n\| ([0-9]+) \| /#).compactMap { Int32($0.output.1) }
        #expect(codes == [0, 1, 2, 64, 65, 66, 70, 73, 74, 77, 130])
    }
}
