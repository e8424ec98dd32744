// Files beside a store that have another name as well: what is written to one is written to both.

import Foundation
import Testing
import VarveBase
import VarveIO

@testable import VarveEngine

@Suite("Hard-linked files beside a store", .verified) struct LinkedFileTests {
    /// Somebody's file, as long as what the store would write.
    private static let content = Data("a diary, and no file of a store\n".utf8 + Array(0...255))

    /// Gives somebody's file a second name beside the store; returns its first one.
    private func link(_ name: String, in folder: WritersFolder) throws -> String {
        let diary = folder.path + "/diary.txt"
        try Self.content.write(to: URL(fileURLWithPath: diary))
        try FileManager.default.linkItem(atPath: diary, toPath: folder.path + "/" + name)
        return diary
    }

    /// The bytes of the page were written over those of the other name.
    @Test("A lock file with a second name is not written to", arguments: [true, false])
    func theLockFile(isNew: Bool) throws {
        let folder = try WritersFolder()
        if !isNew {
            let engine = try folder.open()
            try engine.close()
            try FileManager.default.removeItem(atPath: folder.path + "/test.varve-lock")
        }
        let diary = try link("test.varve-lock", in: folder)
        let error = #expect(throws: EngineError.self) { try folder.open() }
        #expect(error?.code == .ioFailed)
        #expect(error?.message.contains("test.varve-lock: the file has 2 names") == true)
        #expect(try Data(contentsOf: URL(fileURLWithPath: diary)) == Self.content)
        // What the error says helps.
        try FileManager.default.removeItem(atPath: folder.path + "/test.varve-lock")
        let engine = try folder.open()
        _ = try engine.write {
            try $0.insert(TestDelegate.entity, ObjectID(1), row: row(1, "a"))
        }
        try engine.close()
        #expect(try Data(contentsOf: URL(fileURLWithPath: diary)) == Self.content)
    }

    @Test("A reader does not write to it")
    func aReader() throws {
        let folder = try WritersFolder()
        try folder.open().close()
        try FileManager.default.removeItem(atPath: folder.path + "/test.varve-lock")
        let diary = try link("test.varve-lock", in: folder)
        let reader = try folder.open(.readOnly)
        #expect(try reader.contents() == [:])
        try reader.close()
        #expect(try Data(contentsOf: URL(fileURLWithPath: diary)) == Self.content)
    }

    @Test("A counter file with a second name is not written to")
    func theCounterFile() throws {
        let folder = try WritersFolder()
        let diary = try link("test.varve-live", in: folder)
        let engine = try folder.open { $0.writesLiveCounters = true }
        _ = try engine.write {
            try $0.insert(TestDelegate.entity, ObjectID(1), row: row(1, "a"))
        }
        try engine.close()
        #expect(try Data(contentsOf: URL(fileURLWithPath: diary)) == Self.content)
    }

    @Test("A link or a folder in the place of the lock file is refused", arguments: [true, false])
    func anotherKind(isLink: Bool) throws {
        let folder = try WritersFolder()
        let path = folder.path + "/test.varve-lock"
        let diary = folder.path + "/diary.txt"
        try Self.content.write(to: URL(fileURLWithPath: diary))
        if isLink {
            try FileManager.default.createSymbolicLink(
                atPath: path,
                withDestinationPath: diary
            )
        } else {
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: false
            )
        }
        let error = #expect(throws: EngineError.self) { try folder.open() }
        #expect(error?.code == .ioFailed)
        #expect(try Data(contentsOf: URL(fileURLWithPath: diary)) == Self.content)
    }
}
