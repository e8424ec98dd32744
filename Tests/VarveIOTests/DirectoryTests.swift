// What the engine relies on in a directory, over both implementations.

import Testing
import VarveBase
import VarveIO

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite struct DirectoryTests {
    @Test(arguments: Implementation.allCases)
    func aNewNameMustBeFree(_ implementation: Implementation) throws {
        try implementation.withDirectory { directory in
            _ = try directory.create("a", [1])
            let error = #expect(throws: IOError.self) {
                try directory.openFile("a", mode: .createExclusive)
            }
            #expect(error?.isExisting == true)
            let missing = #expect(throws: IOError.self) {
                try directory.openFile("b", mode: .readWrite)
            }
            #expect(missing?.isMissing == true)
            #expect(try directory.exists("a"))
            #expect(try !directory.exists("b"))
        }
    }

    @Test(arguments: Implementation.allCases)
    func renamingReplacesOnlyWhenAsked(_ implementation: Implementation) throws {
        try implementation.withDirectory { directory in
            _ = try directory.create("a", [1])
            let old = try directory.create("b", [2])
            let error = #expect(throws: IOError.self) {
                try directory.rename("a", to: "b", replacing: false)
            }
            #expect(error?.isExisting == true)
            #expect(try directory.contents("b") == [2])
            try directory.rename("a", to: "b", replacing: true)
            try directory.sync()
            #expect(try directory.list() == ["b"])
            #expect(try directory.contents("b") == [1])
            #expect(try old.read(at: FileOffset(0), count: 1) == [2])
            try directory.rename("b", to: "c", replacing: false)
            #expect(try directory.list() == ["c"])
            #expect(throws: IOError.self) {
                try directory.rename("b", to: "d", replacing: true)
            }
        }
    }

    @Test(arguments: Implementation.allCases)
    func anOpenFileOutlivesItsName(_ implementation: Implementation) throws {
        try implementation.withDirectory { directory in
            let file = try directory.create("a", [5])
            try directory.remove("a")
            #expect(try directory.list().isEmpty)
            #expect(try file.read(at: FileOffset(0), count: 1) == [5])
            let error = #expect(throws: IOError.self) { try directory.remove("a") }
            #expect(error?.isMissing == true)
        }
    }

    /// Which file is open is asked of the system once only; which one has the name, each time.
    @Test func aNameIsThatOfAnOpenFileUntilAnotherHasIt() throws {
        try withTemporaryPath { path in
            let directory = try PosixDirectory.open(path: path)
            let file = try directory.create("a", [5])
            for _ in 0..<3 { #expect(try directory.isNamed("a", file) == true) }
            #expect(try directory.isNamed("b", file) == false)
            let other = try directory.create("b", [6])
            #expect(try directory.isNamed("a", other) == false)
            try directory.rename("b", to: "a", replacing: true)
            #expect(try directory.isNamed("a", file) == false)
            #expect(try directory.isNamed("a", other) == true)
            try directory.remove("a")
            #expect(try directory.isNamed("a", other) == false)
        }
    }

    @Test(arguments: Implementation.allCases)
    func onlyAnEmptyDirectoryIsRemoved(_ implementation: Implementation) throws {
        try implementation.withDirectory { directory in
            let inside = try directory.directory("d", create: true)
            _ = try inside.create("a", [1])
            let full = #expect(throws: IOError.self) { try directory.removeDirectory("d") }
            #expect(full?.isExisting == true)
            try inside.remove("a")
            try directory.removeDirectory("d")
            #expect(try !directory.exists("d"))
            let missing = #expect(throws: IOError.self) { try directory.removeDirectory("d") }
            #expect(missing?.isMissing == true)
            _ = try directory.create("f", [1])
            let file = #expect(throws: IOError.self) { try directory.removeDirectory("f") }
            #expect(file?.kind == .notRegular)
            #expect(throws: IOError.self) { try directory.removeDirectory("a/b") }
        }
    }

    @Test(arguments: Implementation.allCases)
    func namesAreSingleComponents(_ implementation: Implementation) throws {
        try implementation.withDirectory { directory in
            let long = String(repeating: "n", count: 256)
            for name in ["", ".", "..", "a/b", "/a", "../a", "a\0b", long] {
                let error = #expect(throws: IOError.self) {
                    try directory.openFile(name, mode: .createExclusive)
                }
                #expect(error?.kind == .badName)
                #expect(throws: IOError.self) { try directory.exists(name) }
                #expect(throws: IOError.self) { try directory.remove(name) }
                #expect(throws: IOError.self) { try directory.directory(name, create: true) }
                #expect(throws: IOError.self) { try directory.lockExclusive(name, wait: false) }
                #expect(throws: IOError.self) {
                    try directory.rename("a", to: name, replacing: true)
                }
            }
            let names = try directory.list()
            #expect(names.isEmpty)
        }
    }

    @Test(arguments: Implementation.allCases)
    func directoriesNest(_ implementation: Implementation) throws {
        try implementation.withDirectory { directory in
            let missing = #expect(throws: IOError.self) {
                try directory.directory("inner", create: false)
            }
            #expect(missing?.isMissing == true)
            let inner = try directory.directory("inner", create: true)
            _ = try inner.create("a", [1])
            #expect(try directory.list() == ["inner"])
            let again = try directory.directory("inner", create: true)
            #expect(try again.list() == ["a"])
            let error = #expect(throws: IOError.self) {
                try directory.openFile("inner", mode: .read)
            }
            #expect(error?.kind == .notRegular)
        }
    }

    @Test func theFileSystemGetsPrivateRights() throws {
        try withTemporaryPath { path in
            let deep = "\(path)/one/two/"
            let directory = try PosixDirectory.open(path: deep, create: true)
            _ = try directory.create("a", [1])
            _ = try directory.directory("inner", create: true)
            #expect(rights("\(deep)a") == 0o600)
            #expect(rights("\(deep)inner") == 0o700)
            #expect(rights("\(path)/one") == 0o700)
        }
    }

    @Test func linksAndPipesAreRefused() throws {
        try withTemporaryPath { path in
            let directory = try PosixDirectory.open(path: path)
            _ = try directory.create("real", [1])
            unsafe #expect(symlink("\(path)/real", "\(path)/link") == 0)
            unsafe #expect(symlink("\(path)/nothing", "\(path)/dangling") == 0)
            unsafe #expect(mkfifo("\(path)/pipe", 0o600) == 0)
            for name in ["link", "pipe", "dangling"] {
                for mode in [OpenMode.read, .readWrite] {
                    let error = #expect(throws: IOError.self, "\(name)") {
                        try directory.openFile(name, mode: mode)
                    }
                    #expect(error?.kind == .notRegular, "\(name)")
                }
            }
            // A planted dangling link must not make a file elsewhere.
            #expect(throws: IOError.self) {
                try directory.openFile("dangling", mode: .createExclusive)
            }
            #expect(throws: IOError.self) {
                try directory.lockExclusive("dangling", wait: false)
            }
            #expect(try !directory.exists("nothing"))
            unsafe #expect(symlink(path, "\(path)/folder") == 0)
            #expect(throws: IOError.self) { try directory.directory("folder", create: true) }
        }
    }

    @Test func errorsSayWhatWhereAndWhy() throws {
        try withTemporaryPath { path in
            let directory = try PosixDirectory.open(path: path)
            let error = #expect(throws: IOError.self) {
                try directory.openFile("none.varve", mode: .read)
            }
            #expect(error?.description == "open of none.varve: No such file or directory (2)")
        }
    }

    private func rights(_ path: String) -> UInt32 {
        var status = stat()
        unsafe stat(path, &status)
        return UInt32(status.st_mode) & 0o777
    }
}
