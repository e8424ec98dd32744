// What the engine relies on in a file, over both implementations.

import Testing
import VarveBase
import VarveIO
import VarveTesting

@Suite struct FileTests {
    #if os(Linux)
    @Test("A limit on the size of files gives an error, and does not end the process")
    func aSizeLimitIsAnError() async throws {
        await #expect(processExitsWith: .success) {
            try withTemporaryPath { path in
                let file = try PosixDirectory.open(path: path).create("a", [1, 2, 3])
                try limitFileSizes(to: 4096)
                try file.write([7], at: FileOffset(4095))
                #expect {
                    try file.write([UInt8](repeating: 8, count: 5000), at: FileOffset(3))
                } throws: { ($0 as? IOError)?.isNoSpace == true }
                #expect {
                    try file.write([9], at: FileOffset(8000))
                } throws: { ($0 as? IOError)?.isNoSpace == true }
                // What fits was written, as when the disk is full.
                #expect(try file.size() == 4096)
                #expect(try file.read(at: FileOffset(4094), count: 2) == [8, 8])
            }
        }
    }
    #endif

    @Test("A file system says how much it has left, until the file is closed")
    func freeBytes() throws {
        try withTemporaryPath { path in
            let file = try PosixDirectory.open(path: path).create("a", [1, 2, 3])
            #expect(try #require(file.freeBytes()) > 0)
            file.close()
            #expect(file.freeBytes() == nil)
        }
    }

    @Test(arguments: Implementation.allCases)
    func whatIsWrittenIsRead(_ implementation: Implementation) throws {
        try implementation.withDirectory { directory in
            let file = try directory.create("a", [1, 2, 3, 4])
            try file.write([9, 8], at: FileOffset(1))
            try file.syncData()
            try file.syncAll()
            #expect(try file.read(at: FileOffset(0), count: 4) == [1, 9, 8, 4])
            #expect(try file.read(at: FileOffset(1), count: 2) == [9, 8])
            #expect(try file.size() == 4)
            file.adviseDontNeed()
            #expect(try directory.contents("a") == [1, 9, 8, 4])
        }
    }

    @Test(arguments: Implementation.allCases)
    func readsAreShortOnlyAtTheEnd(_ implementation: Implementation) throws {
        try implementation.withDirectory { directory in
            let file = try directory.create("a", [1, 2, 3])
            #expect(try file.read(at: FileOffset(1), count: 10) == [2, 3])
            #expect(try file.read(at: FileOffset(3), count: 10) == [])
            #expect(try file.read(at: FileOffset(1 << 40), count: 10) == [])
            #expect(try file.read(at: FileOffset(0), count: 0) == [])
        }
    }

    @Test(arguments: Implementation.allCases)
    func readingIntoABuffer(_ implementation: Implementation) throws {
        try implementation.withDirectory { directory in
            let file = try directory.create("a", [1, 2, 3, 4, 5])
            var buffer = [UInt8](repeating: 9, count: 6)
            #expect(try file.read(at: FileOffset(1), count: 3, into: &buffer) == 3)
            #expect(buffer == [2, 3, 4, 9, 9, 9])
            // What is behind the end of the file stays as it was.
            #expect(try file.read(at: FileOffset(3), count: 6, into: &buffer) == 2)
            #expect(buffer == [4, 5, 4, 9, 9, 9])
            #expect(try file.read(at: FileOffset(5), count: 6, into: &buffer) == 0)
            #expect(try file.read(at: FileOffset(0), count: 0, into: &buffer) == 0)
            file.close()
            #expect(throws: IOError.self) {
                try file.read(at: FileOffset(0), count: 2, into: &buffer)
            }
            #expect(buffer == [4, 5, 4, 9, 9, 9])
        }
    }

    @Test(arguments: Implementation.allCases)
    func gapsAndCutsReadAsZeros(_ implementation: Implementation) throws {
        try implementation.withDirectory { directory in
            let file = try directory.create("a", [1, 2, 3])
            try file.write([7], at: FileOffset(200_000))
            #expect(try file.size() == 200_001)
            let all = try file.read(at: FileOffset(0), count: 300_000)
            #expect(all.count == 200_001)
            #expect(all[3..<200_000].allSatisfy { $0 == 0 })
            try file.cut(to: 2)
            #expect(try file.size() == 2)
            try file.cut(to: 5)
            #expect(try file.read(at: FileOffset(0), count: 9) == [1, 2, 0, 0, 0])
        }
    }

    @Test(arguments: Implementation.allCases)
    func randomWritesMatchAModel(_ implementation: Implementation) throws {
        let seed: UInt64 = 20_251_121
        var random = SeededRandom(seed: seed)
        try implementation.withDirectory { directory in
            let file = try directory.create("a")
            var model: [UInt8] = []
            for step in 0..<300 {
                let start = Int.random(in: 0..<150_000, using: &random)
                switch Int.random(in: 0..<10, using: &random) {
                case 0:
                    try file.cut(to: UInt64(start))
                    if start < model.count {
                        model.removeLast(model.count - start)
                    } else {
                        model += [UInt8](repeating: 0, count: start - model.count)
                    }
                case 1...4:
                    let count = Int.random(in: 0..<70_000, using: &random)
                    let end = min(model.count, start + count)
                    let expected = start < end ? Array(model[start..<end]) : []
                    #expect(
                        try file.read(at: FileOffset(UInt64(start)), count: count) == expected,
                        "seed \(seed), step \(step)"
                    )
                default:
                    let count = Int.random(in: 1..<5000, using: &random)
                    let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
                    try file.write(bytes, at: FileOffset(UInt64(start)))
                    if model.count < start + count {
                        model += [UInt8](repeating: 0, count: start + count - model.count)
                    }
                    model.replaceSubrange(start..<start + count, with: bytes)
                }
            }
            #expect(try directory.contents("a") == model, "seed \(seed)")
        }
    }

    @Test(arguments: Implementation.allCases)
    func aClosedFileThrows(_ implementation: Implementation) throws {
        try implementation.withDirectory { directory in
            let file = try directory.create("a", [1])
            file.close()
            file.close()
            let error = #expect(throws: IOError.self) {
                try file.read(at: FileOffset(0), count: 1)
            }
            #expect(error?.kind == .closed)
            #expect(throws: IOError.self) { try file.write([1], at: FileOffset(0)) }
            #expect(throws: IOError.self) { try file.size() }
            #expect(throws: IOError.self) { try file.syncData() }
        }
    }

    @Test(arguments: Implementation.allCases)
    func anOpeningForReadingDoesNotWrite(_ implementation: Implementation) throws {
        try implementation.withDirectory { directory in
            _ = try directory.create("a", [1])
            let file = try directory.openFile("a", mode: .read)
            #expect(throws: IOError.self) { try file.write([2], at: FileOffset(0)) }
            #expect(throws: IOError.self) { try file.cut(to: 0) }
            #expect(try directory.contents("a") == [1])
        }
    }

    @Test(arguments: Implementation.allCases)
    func offsetsBeyondReachAreErrors(_ implementation: Implementation) throws {
        try implementation.withDirectory { directory in
            let file = try directory.create("a", [1])
            for offset in [UInt64.max, UInt64.max - 5, 1 << 63] {
                #expect(throws: IOError.self) {
                    try file.read(at: FileOffset(offset), count: 1)
                }
                #expect(throws: IOError.self) { try file.write([1], at: FileOffset(offset)) }
                #expect(throws: IOError.self) { try file.cut(to: offset) }
            }
        }
    }

    @Test(arguments: Implementation.allCases)
    func identityTellsFilesApart(_ implementation: Implementation) throws {
        try implementation.withDirectory { directory in
            let one = try directory.create("a", [1, 2])
            let two = try directory.create("b")
            let again = try directory.openFile("a", mode: .read)
            #expect(try one.identity().isSameFile(as: again.identity()))
            #expect(try !one.identity().isSameFile(as: two.identity()))
            let identity = try one.identity()
            #expect(identity.links == 1)
            #expect(identity.size == 2)
            #expect(identity.isOwn)
            #expect(!identity.isWritableByOthers)
            try directory.remove("a")
            #expect(try one.identity().links == 0)
        }
    }
}
