// Stores whose names look alike, and files beside a store that are not its own.

import Foundation
import Testing
import VarveBase
import VarveIO

@testable import VarveEngine

@Suite("Names beside a store", .verified) struct StoreNameTests {
    private func make(_ name: String, in directory: any StoreDirectory) throws {
        try directory.openFile(name, mode: .createExclusive).close()
    }

    private func open(_ name: String, in directory: any StoreDirectory) throws -> Engine {
        try Engine.open(.directory(directory, name: name), delegate: TestDelegate())
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
