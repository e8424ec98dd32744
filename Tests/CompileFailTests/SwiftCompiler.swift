// Runs the compiler on files that use the modules this test bundle was built with.
import Foundation

/// One error of the compiler.
struct CompilerError: Sendable, CustomStringConvertible {
    /// Name of the file without its folder; empty when the error names none.
    let file: String
    let line: Int
    let text: String
    var description: String { file.isEmpty ? text : "\(file):\(line): \(text)" }
}

/// The compiler of the toolchain that built this test.
///
/// Files are compiled, not only type-checked: regions are checked after types, so `-typecheck` lets
/// objects leak that a build refuses.
struct SwiftCompiler: Sendable {
    /// Arguments by which the library's modules are found.
    private let search: [String]

    /// Nil when the modules are not where this build keeps them.
    init?() {
        // A bundle with macros in it is built for the host, beside the modules of other products:
        // those of this bundle are the ones built last.
        let found = Self.buildFolders.flatMap { folder in
            ["", "-tool"].map { suffix in (folder, suffix) }
        }.compactMap { folder, suffix -> (folder: URL, suffix: String, built: Date)? in
            let module = folder.appending(path: "Modules\(suffix)/VarveObjects.swiftmodule")
            let values = try? module.resourceValues(forKeys: [.contentModificationDateKey])
            return (values?.contentModificationDate).map { (folder, suffix, $0) }
        }
        guard let newest = found.max(by: { $0.built < $1.built }) else { return nil }
        let build = newest.folder.path
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        search = [
            "-I", "\(build)/Modules\(newest.suffix)",
            "-Xcc", "-fmodule-map-file=\(build)/CVarve\(newest.suffix).build/module.modulemap",
            "-Xcc", "-fmodule-map-file=\(root.path)/Sources/CLZ4/module.modulemap",
        ]
    }

    /// The folders above the running test bundle.
    private static var buildFolders: [URL] {
        let bundles =
            CommandLine.arguments.filter { $0.contains(".xctest") }
            + [CommandLine.arguments[0], Bundle.main.bundlePath]
        var folders: [URL] = []
        for path in bundles {
            var folder = URL(filePath: path).standardizedFileURL
            while folder.path.count > 1 {
                folder.deleteLastPathComponent()
                if !folders.contains(folder) { folders.append(folder) }
            }
        }
        return folders
    }

    /// Compiles `files` as one module of an app in Swift 6 mode and throws the object code away.
    /// - Returns: the errors, and the whole output when the compiler failed without naming one.
    func errors(in files: [URL], defining names: [String]) throws -> [CompilerError] {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "varve-compile-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments =
            [
                "swiftc", "-c", "-whole-module-optimization", "-Onone", "-parse-as-library",
                "-swift-version", "6", "-module-name", "Snippets", "-suppress-warnings",
                "-o", folder.appending(path: "Snippets.o").path,
            ] + names.map { "-D\($0)" } + search + files.map(\.path)
        process.standardInput = FileHandle.nullDevice
        let output = folder.appending(path: "output")
        try Data().write(to: output)
        let handle = try FileHandle(forWritingTo: output)
        process.standardOutput = handle
        process.standardError = handle
        try process.run()
        process.waitUntilExit()
        try handle.close()
        let text = try String(contentsOf: output, encoding: .utf8)
        let errors = text.components(separatedBy: "\n").compactMap(Self.error)
        if process.terminationStatus != 0, errors.isEmpty {
            return [CompilerError(file: "", line: 0, text: text)]
        }
        return errors
    }

    /// Reads `/path/File.swift:12:5: error: text`.
    private static func error(_ line: String) -> CompilerError? {
        guard let mark = line.range(of: ": error: ") else {
            guard line.hasPrefix("error: ") else { return nil }
            return CompilerError(file: "", line: 0, text: line)
        }
        let place = line[..<mark.lowerBound].split(separator: ":")
        guard place.count >= 3, let number = Int(place[place.count - 2]) else { return nil }
        let path = place.dropLast(2).joined(separator: ":")
        return CompilerError(
            file: path.components(separatedBy: "/").last ?? path,
            line: number,
            text: String(line[mark.upperBound...])
        )
    }
}
