// That the README's first example compiles, gives what it says, and is the one that is tested.
#if Macros
import Foundation
import Testing
import Varve
import VarveTesting

@Suite("README") struct ReadmeTests {
    @Test("The first example gives what the README says") func example() async throws {
        let place = try TemporaryStore()
        #expect(try await firstStore(at: place.url) == ["Reykjavík", "Akureyri"])
        #expect(place.files["test.varve"] != nil)
    }

    @Test("The first example is the one in the README") func sameText() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        let root = folder.deletingLastPathComponent().deletingLastPathComponent()
        let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
        let source = try String(
            contentsOf: folder.appending(path: "ReadmeExample.swift"),
            encoding: .utf8
        )
        let blocks = readme.components(separatedBy: "```swift\n")
        try #require(blocks.count > 1)
        let example = blocks[1].components(separatedBy: "```")[0]
        #expect(source.contains(example), "README.md and ReadmeExample.swift differ")
    }
}
#endif
