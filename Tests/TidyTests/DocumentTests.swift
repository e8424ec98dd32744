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

    @Test("The documents that the README names are there") func linkedDocumentsExist() throws {
        for document in [
            "README.md", "CONTRIBUTING.md", "docs/PublicAPI.md", "docs/Architecture.md",
        ] {
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
}
