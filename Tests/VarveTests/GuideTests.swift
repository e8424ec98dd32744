// That each example in the articles of the documentation is one that is compiled and run here.
import Foundation
import Testing

@Suite("Guides") struct GuideTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
    private static let catalogue = root.appending(path: "Sources/Varve/Varve.docc")

    /// A part of a source between `// Shown in ARTICLE: NAME` and `// End.`
    private struct Region: Hashable {
        let article: String
        let text: String
    }

    @Test("Each swift block of an article is a region of a test, and each region is shown")
    func blocksAreRegions() throws {
        var shown: Set<Region> = []
        for article in try files(in: Self.catalogue, "md") {
            let name = article.deletingPathExtension().lastPathComponent
            let text = try String(contentsOf: article, encoding: .utf8)
            for block in text.components(separatedBy: "```swift\n").dropFirst() {
                let code = block.components(separatedBy: "\n```")[0]
                shown.insert(Region(article: name, text: code))
            }
        }
        var compiled: Set<Region> = []
        let tests = Self.root.appending(path: "Tests")
        for source in try files(in: tests.appending(path: "VarveTests/Guides"), "swift")
            + [
                "VarveObjectsTests/GuideWithoutMacros.swift",
                "VarveAdapterTests/GuideToAdapters.swift",
            ]
            .map({ tests.appending(path: $0) })
        {
            compiled.formUnion(try regions(of: source))
        }
        #expect(shown.count > 50)
        for block in shown.subtracting(compiled) {
            Issue.record("\(block.article) shows what no test of it compiles:\n\(block.text)")
        }
        for region in compiled.subtracting(shown) {
            Issue.record("\(region.article) does not show:\n\(region.text)")
        }
    }

    @Test("The catalogue has an article for each subject, and the landing page names it")
    func allArticlesAreThere() throws {
        let landing = try String(
            contentsOf: Self.catalogue.appending(path: "Varve.md"),
            encoding: .utf8
        )
        let names = try files(in: Self.catalogue, "md")
            .map { $0.deletingPathExtension().lastPathComponent }.filter { $0 != "Varve" }
        #expect(names.count == 18)
        for name in names { #expect(landing.contains("- <doc:\(name)>"), "\(name)") }
    }

    private func files(in folder: URL, _ kind: String) throws -> [URL] {
        try FileManager.default
            .contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == kind }
    }

    private func regions(of source: URL) throws -> [Region] {
        let mark = "// Shown in "
        var found: [Region] = []
        var open: (article: String, lines: [String])?
        for line in try String(contentsOf: source, encoding: .utf8).components(separatedBy: "\n") {
            let text = line.trimmingCharacters(in: .whitespaces)
            if text.hasPrefix(mark) {
                #expect(open == nil, "\(source.lastPathComponent): a region inside another")
                open = (String(text.dropFirst(mark.count).prefix { $0 != ":" }), [])
            } else if text == "// End." {
                let region = try #require(open, "\(source.lastPathComponent): an end too many")
                found.append(Region(article: region.article, text: dedented(region.lines)))
                open = nil
            } else {
                open?.lines.append(line)
            }
        }
        #expect(open == nil, "\(source.lastPathComponent): a region without end")
        return found
    }

    /// Without the indentation that all lines have in common.
    private func dedented(_ lines: [String]) -> String {
        let common =
            lines.filter { !$0.isEmpty }.map { $0.prefix { $0 == " " }.count }.min() ?? 0
        return lines.map { String($0.dropFirst(common)) }.joined(separator: "\n")
    }
}
