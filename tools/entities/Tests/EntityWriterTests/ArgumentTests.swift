// The arguments that the checker knows are those of the macros' declarations.
import Foundation
import SwiftParser
import SwiftSyntax
import Testing

@testable import EntityWriter

@Suite("Arguments of macros") struct ArgumentTests {
    @Test("The checker knows every macro and its labels") func labels() throws {
        let source = try String(
            contentsOf: Repository.root.appending(path: "Sources/Varve/Macros.swift"),
            encoding: .utf8
        )
        // All of it stands in `#if Macros`.
        let tree = Parser.parse(source: source.replacing(/#(if Macros|endif)\n/, with: ""))
        var declared: [String: Set<String>] = [:]
        for item in tree.statements {
            guard let macro = item.item.as(MacroDeclSyntax.self) else { continue }
            let names = macro.signature.parameterClause.parameters.map(\.firstName.text)
            declared[macro.name.text, default: []].formUnion(names.filter { $0 != "_" })
        }
        #expect(declared == ArgumentChecker.labels)
    }
}
