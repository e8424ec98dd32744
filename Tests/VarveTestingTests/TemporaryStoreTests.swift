// That temporary stores come fresh and go entirely.
import Foundation
import Testing
import VarveTesting

@Suite("Temporary stores") struct TemporaryStoreTests {
    @Test("Two stores share no folder, and a store that goes takes its files along")
    func goesWithItsFiles() throws {
        let parent = FileManager.default.temporaryDirectory
            .appending(path: "varve-tests-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: parent) }
        var first: TemporaryStore? = try TemporaryStore(in: parent)
        let second = try TemporaryStore("other", in: parent, isKept: false)
        let folder = try #require(first?.folder)
        #expect(folder != second.folder)
        #expect(second.url.lastPathComponent == "other.varve")
        let blobs = folder.appending(path: "test.varve-blobs")
        try FileManager.default.createDirectory(at: blobs, withIntermediateDirectories: true)
        try Data(count: 12).write(to: blobs.appending(path: "a"))
        #expect(first?.files == ["test.varve-blobs/a": 12])
        first = nil
        #expect(!FileManager.default.fileExists(atPath: folder.path))
        #expect(FileManager.default.fileExists(atPath: second.folder.path))
    }
}
