// 8 bytes of a file that are looked at without a system call.

import Foundation
import Testing
import VarveBase
import VarveIO

@Suite("A word of a file") struct MappedWordTests {
    private func open() throws -> (any StoreFile, String) {
        let path = FileManager.default.temporaryDirectory.path + "/varve-word-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        let directory = try PosixDirectory.open(path: path)
        return (try directory.openFile("word", mode: .createExclusive), path)
    }

    @Test("What is written through another descriptor is seen, also when the file was closed")
    func writesAreSeen() throws {
        let (file, path) = try open()
        defer { try? FileManager.default.removeItem(atPath: path) }
        try file.write([UInt8](repeating: 0, count: 128), at: FileOffset(0))
        let word = try #require(file.word(at: FileOffset(64)))
        #expect(word.value == 0)
        let other = try PosixDirectory.open(path: path).openFile("word", mode: .readWrite)
        try other.write([1, 2, 3, 4, 5, 6, 7, 8], at: FileOffset(64))
        #expect(UInt64(littleEndian: word.value) == 0x0807_0605_0403_0201)
        file.close()
        try other.write([9], at: FileOffset(64))
        #expect(UInt64(littleEndian: word.value) == 0x0807_0605_0403_0209)
        word.detach()
        #expect(word.value == 0)
        try other.write([7], at: FileOffset(64))
        #expect(word.value == 0)
    }

    @Test("A place for a word has none at first, then the first that it is given")
    func aWatchedWord() throws {
        let (file, path) = try open()
        defer { try? FileManager.default.removeItem(atPath: path) }
        try file.write([UInt8](repeating: 3, count: 128), at: FileOffset(0))
        let watched = WatchedWord()
        #expect(watched.value == nil)
        watched.set(try #require(file.word(at: FileOffset(64))))
        #expect(watched.value == 0x0303_0303_0303_0303)
        try file.write([UInt8](repeating: 4, count: 8), at: FileOffset(72))
        watched.set(try #require(file.word(at: FileOffset(72))))
        #expect(watched.value == 0x0303_0303_0303_0303)
        file.close()
        #expect(watched.value == 0x0303_0303_0303_0303)
        watched.detach()
        #expect(watched.value == 0)
    }

    @Test("A file that does not hold the word has none: a look behind its end would be a signal")
    func aShortFileHasNoWord() throws {
        let (file, path) = try open()
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(file.word(at: FileOffset(64)) == nil)
        try file.write([UInt8](repeating: 1, count: 71), at: FileOffset(0))
        #expect(file.word(at: FileOffset(64)) == nil)
        try file.write([1], at: FileOffset(71))
        #expect(file.word(at: FileOffset(64)) != nil)
        #expect(file.word(at: FileOffset(1 << 20)) == nil)
    }
}
