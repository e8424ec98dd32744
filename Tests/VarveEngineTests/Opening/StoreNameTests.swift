// Stores whose names look alike, and files beside a store that are not its own.

import Foundation
import Testing
import VarveBase
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Names beside a store", .verified) struct StoreNameTests {
    private func make(_ name: String, in directory: any StoreDirectory) throws {
        try directory.openFile(name, mode: .createExclusive).close()
    }

    private func open(_ name: String, in directory: any StoreDirectory) throws -> Engine {
        // A round of maintenance would close the log behind a moment of idleness.
        var options = EngineOptions()
        options.maintenance = .inline
        return try Engine.open(
            .directory(directory, name: name),
            options: options,
            delegate: TestDelegate()
        )
    }

    /// "backup2026.varve" has as many characters as the digits of a file that is being made.
    @Test("Opening a store leaves one alone whose name begins with it")
    func aStoreWithALongerName() throws {
        let directory = MemoryDirectory()
        let other = try open("notes.varve-new-backup2026", in: directory)
        _ = try other.write { try $0.replaceSchema([1], version: 1) }
        try other.close()
        try open("notes", in: directory).close()
        // Opened again: only then are there leftovers to look for.
        try open("notes", in: directory).close()
        #expect(try directory.exists("notes.varve-new-backup2026.varve"))
        let again = try open("notes.varve-new-backup2026", in: directory)
        #expect(again.snapshot().schema == [1])
        try again.close()
    }

    @Test("Only names that a making store gives are swept, the whole name matched")
    func onlyItsOwn() throws {
        let directory = MemoryDirectory()
        try open("notes", in: directory).close()
        let digits = "0123456789abcdef"
        let others = [
            "notes.varve-new-0123456789abcdeg", "notes.varve-new-0123456789ABCDEF",
            "notes.varve-new-0123456789abcde", "notes.varve-new-0123456789abcdef0",
            "notes.varve-new-0123456789abcde\u{e9}", "notes.varve-new-", "notes.varve-new",
            "my-notes.varve-new-" + digits, "notes2.varve-new-" + digits,
            "Notes.varve-new-" + digits, "notes.varve-new-" + digits + ".varve",
        ]
        for name in others { try make(name, in: directory) }
        try make("notes.varve-new-" + digits, in: directory)
        try make("notes.varve-new-" + String(repeating: "0", count: 16), in: directory)
        try open("notes", in: directory).close()
        let left = try directory.list()
        #expect(left.filter { $0.hasPrefix("notes.varve-new-0000") } == [])
        #expect(!left.contains("notes.varve-new-" + digits))
        for name in others { #expect(left.contains(name), "\(name)") }
    }

    /// Where other processes may be, an opening that finds a closed log does not list the folder.
    @Test("A leftover beside a closed store goes before the first write, or with the close")
    func aLeftoverIsNotWaitedFor() throws {
        let store = try TemporaryStore("notes")
        let directory = try PosixDirectory.open(path: store.folder.path)
        let leftover = "notes" + Engine.newSuffix + String(repeating: "0", count: 16)
        try open("notes", in: directory).close()
        // With the close, though nothing was written.
        try make(leftover, in: directory)
        try open("notes", in: directory).close()
        #expect(try !directory.exists(leftover))
        // Before a write ends.
        try make(leftover, in: directory)
        var engine = try open("notes", in: directory)
        _ = try engine.write { transaction in
            #expect(try !directory.exists(leftover))
            try transaction.replaceSchema([1], version: 1)
        }
        #expect(try !directory.exists(leftover))
        // Behind a crash it is gone when the opening returns: what is mended may need its room.
        let copy = try TemporaryStore("notes")
        let name = store.url.lastPathComponent
        try FileManager.default.copyItem(
            at: store.url,
            to: copy.folder.appending(path: name)
        )
        let other = try PosixDirectory.open(path: copy.folder.path)
        try make(leftover, in: other)
        let mended = try open("notes", in: other)
        #expect(try !other.exists(leftover))
        try mended.close()
        // Another process's file that is being made stays.
        let second = try open("notes", in: directory)
        try make(leftover, in: directory)
        _ = try second.write { try $0.replaceSchema([2], version: 1) }
        try second.close()
        #expect(try directory.exists(leftover))
        try engine.close()
        engine = try open("notes", in: directory)
        try engine.close()
        #expect(try !directory.exists(leftover))
    }

    /// On a file system that tells the two spellings apart they are two stores.
    @Test("Names are compared by their bytes")
    func spellings() throws {
        let directory = MemoryDirectory()
        let (composed, decomposed) = ("\u{e9}", "e\u{301}")
        let leftover = decomposed + Engine.newSuffix + String(repeating: "0", count: 16)
        #expect(Engine.isTemporary(leftover, of: decomposed))
        #expect(!Engine.isTemporary(leftover, of: composed))
        #expect(
            Engine.isTemporary(
                Engine.temporaryName("notes", SystemEnvironment()),
                of: "notes"
            )
        )
        try open(composed, in: directory).close()
    }

    @Test("A folder with such a name is nobody's leftover")
    func aFolder() throws {
        let directory = MemoryDirectory()
        try open("notes", in: directory).close()
        let name = "notes" + Engine.newSuffix + String(repeating: "0", count: 16)
        _ = try directory.directory(name, create: true)
        try open("notes", in: directory).close()
        #expect(try directory.exists(name))
    }
}
