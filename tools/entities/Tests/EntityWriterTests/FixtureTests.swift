// The entities that the library's own tests compile without macros (Tests/GeneratedEntityTests) are
// what the models of the macros' tests become.
import EntityWriter
import Foundation
import Testing

/// The repository this test was compiled from.
enum Repository {
    static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
}

@Suite("Generated entities of the library's tests") struct FixtureTests {
    /// Every argument of every macro, in every combination, and a model as an app writes it.
    private static let models = [
        "MacroCombinations", "Model", "PublicModel", "RelationshipCombinations",
        "RelationshipCombinationsFar",
    ]

    /// The models of Tests/VarveTests are compiled only where there are macros; without that
    /// condition they are files of a model.
    @Test("They are as their models say") func upToDate() throws {
        let files = FileManager.default
        let folder = files.temporaryDirectory.appending(path: "varve-\(UUID().uuidString)")
        defer { try? files.removeItem(at: folder) }
        let model = folder.appending(path: "VarveTests")
        try files.createDirectory(at: model, withIntermediateDirectories: true)
        for name in Self.models.map({ $0 + ".swift" }) {
            let source = Repository.root.appending(path: "Tests/VarveTests/\(name)")
            let text = try String(contentsOf: source, encoding: .utf8)
                .replacing(/(?m)^#(if Macros|endif)\n/, with: "")
            try Data(text.utf8).write(to: model.appending(path: name))
        }
        let entities = EntityFolder(
            model: model.path,
            output: Repository.root.appending(path: "Tests/GeneratedEntityTests/Entities").path
        )
        if ProcessInfo.processInfo.environment["VARVE_WRITE_ENTITIES"] == "1" {
            #expect(entities.write().errors == [])
        }
        let errors = entities.check().errors
        #expect(errors == [], "VARVE_WRITE_ENTITIES=1 writes them anew")
    }
}
