// Folders for tests, and running the program itself.

import Foundation
import GalleryKit
import Testing

/// Runs `body` with a fresh folder that is gone afterwards.
func withTemporaryFolder<R>(_ body: (URL) throws -> R) throws -> R {
    let folder = try makeTemporaryFolder()
    defer { try? FileManager.default.removeItem(at: folder) }
    return try body(folder)
}

/// Runs `body` with a fresh folder that is gone afterwards.
@MainActor
func withTemporaryFolder<R>(_ body: (URL) async throws -> R) async throws -> R {
    let folder = try makeTemporaryFolder()
    defer { try? FileManager.default.removeItem(at: folder) }
    return try await body(folder)
}

private func makeTemporaryFolder() throws -> URL {
    let folder = FileManager.default.temporaryDirectory
        .appending(path: "gallery-tests-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return folder
}

/// The `gallery` program, which is built beside the tests.
enum GalleryProgram {
    struct Run {
        var status: Int32
        var output: String
        var errors: String

        var lines: [String] { output.split(separator: "\n").map(String.init) }

        /// Each line of the output as a JSON object.
        func objects() throws -> [[String: Any]] {
            try lines.map { line in
                let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
                return try #require(object as? [String: Any], "\(line)")
            }
        }
    }

    static func url() throws -> URL {
        let tests = try #require(Bundle.main.executableURL)
        let program = tests.deletingLastPathComponent().appending(path: "gallery")
        try #require(FileManager.default.isExecutableFile(atPath: program.path), "\(program.path)")
        return program
    }

    static func run(_ arguments: [String]) throws -> Run {
        let process = Process()
        let output = Pipe()
        let errors = FileManager.default.temporaryDirectory
            .appending(path: "gallery-errors-\(UUID().uuidString)")
        try Data().write(to: errors)
        defer { try? FileManager.default.removeItem(at: errors) }
        process.executableURL = try url()
        process.arguments = arguments
        process.standardOutput = output
        process.standardError = try FileHandle(forWritingTo: errors)
        try process.run()
        let text = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return Run(
            status: process.terminationStatus,
            output: String(decoding: text, as: UTF8.self),
            errors: try String(contentsOf: errors, encoding: .utf8)
        )
    }
}
