// Misuse in a file of its own, beside its twin that is right.
import Foundation
import Testing

/// A file of `Snippets`. With `REFUSED` defined it must not compile, without it must.
///
/// The two differ in the lines between `#if REFUSED` and `#endif` only, so that the refusal cannot
/// come from something else. The line with the error ends in `// refused`.
struct Snippet: Sendable, CustomTestStringConvertible {
    let url: URL
    /// Numbers (from 1) of the lines where the error is expected.
    let refusedLines: Set<Int>

    var name: String { url.lastPathComponent }
    var testDescription: String { url.deletingPathExtension().lastPathComponent }

    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "Snippets")

    /// What the snippets share: entities, a schema, functions that take values.
    static let model = folder.appending(path: "Model.swift")

    /// Every snippet, by name.
    static let all: [Snippet] = {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return files.sorted().filter { $0.hasSuffix(".swift") && $0 != "Model.swift" }.compactMap {
            let url = folder.appending(path: $0)
            guard let text = try? String(contentsOf: url, encoding: .utf8) else { return nil }
            let lines = text.components(separatedBy: "\n").enumerated()
            return Snippet(
                url: url,
                refusedLines: Set(lines.filter { $1.hasSuffix("// refused") }.map { $0.offset + 1 })
            )
        }
    }()
}

/// What the compiler said about all snippets. Each compilation takes many snippets at once.
struct Verdicts: Sendable {
    /// Errors by snippet, compiled with `REFUSED`.
    private(set) var refusals: [String: [CompilerError]] = [:]
    /// Errors of the twins.
    private(set) var twins: [CompilerError] = []
    /// Why nothing could be compiled.
    private(set) var failure: String?

    /// Computed once for all tests.
    static let all = Verdicts()

    private init() {
        guard let compiler = SwiftCompiler() else {
            failure = "the modules of this build were not found"
            return
        }
        do {
            let snippets = Snippet.all
            twins = try compiler.errors(in: [Snippet.model] + snippets.map(\.url), defining: [])
            // Types are checked before regions, and an error in one file stops the later checks of
            // all others: so whoever was refused leaves, and the rest is compiled again.
            var left = snippets
            while !left.isEmpty {
                let errors = try compiler.errors(
                    in: [Snippet.model] + left.map(\.url),
                    defining: ["REFUSED"]
                )
                let byFile = Dictionary(grouping: errors, by: \.file)
                refusals.merge(byFile) { $0 + $1 }
                let before = left.count
                left.removeAll { byFile[$0.name] != nil }
                if left.count == before { break }
            }
        } catch {
            failure = "the compiler does not run: \(error)"
        }
    }
}
