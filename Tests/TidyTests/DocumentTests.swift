// That the documents name every file, and no file that is gone.
import Foundation
import Testing

@Suite("Documents") struct DocumentTests {
    @Test("Every source has a line in docs/Files.md, and every line a source")
    func everyFileIsInTheList() throws {
        let text = try Repository.text("docs/Files.md")
        var listed: Set<String> = []
        for line in text.components(separatedBy: "\n") {
            guard line.hasPrefix("| `") else { continue }
            let cells = line.components(separatedBy: "|")
            let path = cells[1].trimmingCharacters(in: CharacterSet(charactersIn: " `"))
            #expect(listed.insert(path).inserted, "docs/Files.md names \(path) twice")
            let purpose = cells.count > 2 ? cells[2].trimmingCharacters(in: .whitespaces) : ""
            #expect(!purpose.isEmpty, "docs/Files.md does not say what \(path) holds")
        }
        let present = Set(Repository.files.map(\.path))
        for path in present.subtracting(listed).sorted() {
            Issue.record("\(path) is missing there: run tools/list-files")
        }
        for path in listed.subtracting(present).sorted() {
            Issue.record("\(path) is listed but gone: run tools/list-files")
        }
    }

    @Test("What a document links to is there") func linkedDocumentsExist() throws {
        for document in try Self.documents() {
            let folder = Repository.root.appending(path: document).deletingLastPathComponent()
            for part in try Repository.text(document).components(separatedBy: "](").dropFirst() {
                let target = String(part.prefix { $0 != ")" && $0 != "#" })
                if target.isEmpty || target.contains("://") { continue }
                #expect(
                    FileManager.default.fileExists(atPath: folder.appending(path: target).path),
                    "\(document) names \(target), which is not there"
                )
            }
        }
    }

    @Test("The sources that a document names are there") func namedSourcesExist() throws {
        let paths = Repository.files.map { "/" + $0.path }
        var named = 0
        for document in try Self.documents() where document != "docs/Files.md" {
            // What lies between two backticks has an odd place.
            let parts = try Repository.text(document).components(separatedBy: "`")
            for (index, name) in parts.enumerated() where index % 2 == 1 {
                guard name.hasSuffix(".swift"), !name.contains("*"), !name.contains(" ") else {
                    continue
                }
                named += 1
                #expect(
                    paths.contains { $0.hasSuffix("/" + name) } || name == "Package.swift",
                    "\(document) names \(name), which is not there"
                )
            }
        }
        #expect(named > 50)
    }

    /// The documents at the root and those in docs.
    private static func documents() throws -> [String] {
        let files = FileManager.default
        let root = try files.contentsOfDirectory(atPath: Repository.root.path)
        let docs = try files.contentsOfDirectory(atPath: Repository.root.path + "/docs")
        return (root + docs.map { "docs/" + $0 }).filter { $0.hasSuffix(".md") }.sorted()
    }
}
