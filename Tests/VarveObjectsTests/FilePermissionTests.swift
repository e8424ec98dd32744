// The rights of the files that a container makes.

import Foundation
import Testing

@testable import VarveObjects

@Suite(.verified) struct FilePermissionTests {
    private static func modes(_ folder: URL) throws -> [String: Int] {
        var modes: [String: Int] = [:]
        for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path) {
            let facts = try FileManager.default.attributesOfItem(
                atPath: folder.appending(path: path).path
            )
            modes[path] = (facts[.posixPermissions] as? NSNumber)?.intValue
        }
        return modes
    }

    @Test(arguments: [UInt16(0o600), 0o640, 0o644, 0o660])
    func filesHaveTheRightsThatWereAskedFor(mode: UInt16) async throws {
        let folder = try TemporaryFolder()
        var options = ContainerOptions(allowsForeignWriters: mode & 0o022 != 0)
        if mode != 0o600 { options.filePermissions = mode }
        let container = try folder.open(options)
        let context = container.newContext()
        let picture = Picture(in: context)
        picture.data = try context.makeBlob(
            Data(repeating: 3, count: 20_000),
            for: Picture.columns.data
        )
        try context.save()
        try await container.backup(to: folder.url.appending(path: "copy.varve"))
        func check() throws {
            let found = try Self.modes(folder.url)
            #expect(found.count >= 7)
            for (path, bits) in found {
                let isFolder = path.hasSuffix("-blobs")
                let expected = isFolder ? mode | (mode & 0o444) >> 2 : mode
                #expect(bits == Int(expected), "\(path)")
            }
        }
        try check()
        try await container.compact()
        try check()
        try container.closeNow()
        let again = try folder.open(options)
        #expect(try again.newContext().count(Picture.all) == 1)
        try again.closeNow()
    }

    @Test func rightsThatMakeNoSenseAreRefused() throws {
        let folder = try TemporaryFolder()
        for mode in [UInt16(0o400), 0o060, 0o700, 0o1600, 0o620, 0o602] {
            var options = ContainerOptions()
            options.filePermissions = mode
            #expect(code { _ = try folder.open(options) } == .invalidRequest)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).isEmpty)
    }
}
