// The tool as its user sees it: text, JSON and exit codes of the real program, on a store that is
// the same in every run.

import Foundation
import Testing
import VarveTesting

/// A run of the program.
struct Run {
    let status: Int32
    let output: String
    let errors: String
    var lines: [String] { output.split(separator: "\n").map(String.init) }
}

/// The sample store, and the program beside the test bundle.
final class ToolSample {
    let place: TemporaryStore

    init(books: Int = 40) throws {
        place = try TemporaryStore("Library")
        let store = try SampleStore.make(
            .file(directory: place.folder.path, name: "Library"),
            books: books
        )
        try store.close()
    }

    func run(_ arguments: String...) throws -> Run {
        try Self.run(arguments.map { $0 == "STORE" ? "Library.varve" : $0 }, in: place.folder)
    }

    static func run(_ arguments: [String], in folder: URL) throws -> Run {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.currentDirectoryURL = folder
        let output = folder.appending(path: "stdout")
        let errors = folder.appending(path: "stderr")
        for file in [output, errors] {
            FileManager.default.createFile(atPath: file.path, contents: nil)
        }
        process.standardOutput = try FileHandle(forWritingTo: output)
        process.standardError = try FileHandle(forWritingTo: errors)
        process.standardInput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return Run(
            status: process.terminationStatus,
            output: String(decoding: try Data(contentsOf: output), as: UTF8.self),
            errors: String(decoding: try Data(contentsOf: errors), as: UTF8.self)
        )
    }

    /// Test bundle and program are built into the same folder.
    private static var program: URL {
        let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }
        let folder =
            bundle?.bundleURL.deletingLastPathComponent()
            ?? URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        return folder.appending(path: "varve")
    }
}
