// The files of this repository as the tidy rules see them.
import Foundation

/// One source file: where it is and what its lines say.
struct SourceFile: Sendable {
    /// From the root of the repository, with `/`.
    let path: String
    let lines: [String]

    /// Name without folders.
    var name: String { String(path.split(separator: "/").last ?? "") }

    /// The folders and the name.
    var components: [Substring] { path.split(separator: "/") }

    /// Number (from 1) and text of each line, with string literals and comments blanked out.
    var codeLines: [(number: Int, text: String)] {
        var result: [(number: Int, text: String)] = []
        var isInText = false
        var isInComment = false
        for (index, line) in lines.enumerated() {
            if line.components(separatedBy: "\"\"\"").count % 2 == 0 {
                isInText.toggle()
                continue
            }
            if isInText { continue }
            let trimmed = line.trimmingCharacters(in: .whitespaces)
            if trimmed.hasPrefix("/*") { isInComment = true }
            defer { if trimmed.hasSuffix("*/") { isInComment = false } }
            if isInComment || trimmed.hasPrefix("//") { continue }
            result.append((index + 1, line.withoutLiteralsAndComment))
        }
        return result
    }

    /// The modules this file imports.
    var imports: [(number: Int, module: String)] {
        codeLines.compactMap { number, text in
            let words = text.split(separator: " ")
            guard let position = words.firstIndex(of: "import"), position + 1 < words.count,
                words[..<position].allSatisfy({ Self.beforeImport.contains(String($0)) })
            else { return nil }
            // `import struct Foundation.Date` imports from Foundation.
            let kinds: Set<Substring> = [
                "struct", "class", "enum", "func", "protocol", "var", "let",
            ]
            let name =
                kinds.contains(words[position + 1]) ? words[words.count - 1] : words[position + 1]
            return (number, String(name.split(separator: ".")[0]))
        }
    }

    private static let beforeImport: Set<String> = [
        "public", "package", "internal", "fileprivate", "private", "@_exported", "@testable",
        "@preconcurrency", "@_spi(Testing)",
    ]
}

extension String {
    /// This line with the contents of its string literals and its comment taken out.
    fileprivate var withoutLiteralsAndComment: String {
        var result = ""
        var isInLiteral = false
        var previous: Character = " "
        for character in self {
            if character == "\"" && previous != "\\" {
                isInLiteral.toggle()
            } else if !isInLiteral {
                if character == "/" && previous == "/" {
                    result.removeLast()
                    return result
                }
                result.append(character)
            }
            previous = character == "\\" && previous == "\\" ? " " : character
        }
        return result
    }
}

/// The repository this test was compiled from.
enum Repository {
    static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// Every source below `Sources`, `Tests`, `tools` and `Examples`, sorted by path, without build
    /// folders.
    static let files: [SourceFile] = {
        var found: [SourceFile] = []
        for top in ["Sources", "Tests", "tools", "Examples"] {
            let folder = root.appending(path: top)
            guard
                let walk = FileManager.default.enumerator(
                    at: folder,
                    includingPropertiesForKeys: nil,
                    options: [.skipsHiddenFiles]
                )
            else { continue }
            for case let url as URL in walk {
                guard ["swift", "c", "h"].contains(url.pathExtension) else { continue }
                let path = String(url.path.dropFirst(root.path.count + 1))
                guard !path.contains("/.build"),
                    let text = try? String(contentsOf: url, encoding: .utf8)
                else { continue }
                found.append(SourceFile(path: path, lines: text.components(separatedBy: "\n")))
            }
        }
        return found.sorted { $0.path < $1.path }
    }()

    /// The Swift files of the library.
    static let sources = files.filter {
        $0.path.hasPrefix("Sources/") && $0.path.hasSuffix(".swift")
    }

    /// The Swift files of the library's tests.
    static let tests = files.filter {
        $0.path.hasPrefix("Tests/") && $0.path.hasSuffix(".swift")
    }

    /// The text of one file of the repository.
    static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }
}
