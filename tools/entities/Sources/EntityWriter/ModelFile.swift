// One file of a model: what it becomes without macros, and what is wrong with it.
//
// The macros are expanded by the plugin's own types, so what they write and what they refuse is
// what the compiler would get from them.
import SwiftDiagnostics
import SwiftParser
import SwiftParserDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacroExpansion
import SwiftSyntaxMacros

package struct ModelFile {
    /// How complaints name it.
    private let path: String
    private let tree: SourceFileSyntax

    package init(path: String, text: String) {
        self.path = path
        tree = Parser.parse(source: text)
    }

    /// The macros by the names they have in source, with what the compiler knows of them.
    private static let macros: [String: MacroSpec] = [
        "Entity": MacroSpec(type: EntityInFile.self, conformances: ["Sendable"]),
        "Attribute": MacroSpec(type: AttributeMacro.self),
        "Relationship": MacroSpec(type: RelationshipMacro.self),
        "Composite": MacroSpec(type: CompositeMacro.self, conformances: ["StoredComposite"]),
        "Derived": MacroSpec(type: DerivedMacro.self),
        "Transient": MacroSpec(type: TransientMacro.self),
        "_ObservedTransient": MacroSpec(type: ObservedTransientMacro.self),
        "Index": MacroSpec(type: IndexMacro.self),
        "Unique": MacroSpec(type: UniqueMacro.self),
    ]

    /// The file without macros, and lines such as `Item.swift:3:9: error: …`, in the order of the
    /// places. With a complaint the text is of no use.
    package func expanded() -> (text: String, complaints: [String]) {
        let mistakes = ParseDiagnosticsGenerator.diagnostics(for: tree)
            .filter { $0.diagMessage.severity == .error }
        if !mistakes.isEmpty {
            let converter = SourceLocationConverter(fileName: path, tree: tree)
            return ("", lines(mistakes) { converter.location(for: $0.position) })
        }
        let checker = ArgumentChecker(viewMode: .sourceAccurate)
        checker.walk(tree)
        let context = BasicMacroExpansionContext(
            sourceFiles: [tree: .init(moduleName: "Model", fullFilePath: path)]
        )
        let expanded = tree.expand(
            macroSpecs: Self.macros,
            contextGenerator: {
                BasicMacroExpansionContext(
                    sharingWith: context,
                    lexicalContext: $0.allMacroLexicalContexts()
                )
            },
            indentationWidth: .spaces(4)
        )
        let complaints = lines(checker.complaints.all + context.diagnostics) {
            context.location(for: $0.position, anchoredAt: $0.node, fileName: path)
        }
        return (ModuleNames().rewrite(leavingTheRest(of: expanded)).description, complaints)
    }

    /// The expanded file with what has no macro in it as it was written: an expansion sets the
    /// lines of everything anew.
    private func leavingTheRest(of expanded: Syntax) -> Syntax {
        guard var file = expanded.as(SourceFileSyntax.self) else { return expanded }
        var items = Array(file.statements)
        // Extensions come after what was there.
        guard items.count >= tree.statements.count else { return expanded }
        for (index, item) in tree.statements.enumerated() {
            let hasMacro = item.tokens(viewMode: .sourceAccurate).contains {
                Self.macros[$0.text] != nil
            }
            if !hasMacro { items[index] = item }
        }
        file.statements = CodeBlockItemListSyntax(items)
        return Syntax(file)
    }

    /// Each complaint as a compiler writes it, with the changes that settle it as notes.
    private func lines(
        _ diagnostics: [Diagnostic],
        location: (Diagnostic) -> SourceLocation
    ) -> [String] {
        let placed = diagnostics.map { (place: location($0), diagnostic: $0) }
            .sorted { ($0.place.line, $0.place.column) < ($1.place.line, $1.place.column) }
        return placed.flatMap { place, diagnostic in
            let start = "\(path):\(place.line):\(place.column): "
            return ["\(start)error: \(diagnostic.message)"]
                + diagnostic.fixIts.map { "\(start)note: \($0.message.message)" }
        }
    }
}

/// Names the module that has no macros: `import Varve` becomes `import VarveObjects`, and so does
/// `Varve` in front of a name.
private final class ModuleNames: SyntaxRewriter {
    private func renamed(_ token: TokenSyntax) -> TokenSyntax {
        token.text == "Varve" ? token.with(\.tokenKind, .identifier("VarveObjects")) : token
    }

    override func visit(_ node: ImportDeclSyntax) -> DeclSyntax {
        var node = node
        if let first = node.path.indices.first {
            node.path[first].name = renamed(node.path[first].name)
        }
        return DeclSyntax(node)
    }

    override func visit(_ node: MemberTypeSyntax) -> TypeSyntax {
        var node = node
        if var base = node.baseType.as(IdentifierTypeSyntax.self) {
            base.name = renamed(base.name)
            node.baseType = TypeSyntax(base)
        }
        return super.visit(node)
    }

    override func visit(_ node: MemberAccessExprSyntax) -> ExprSyntax {
        var node = node
        if var base = node.base?.as(DeclReferenceExprSyntax.self) {
            base.baseName = renamed(base.baseName)
            node.base = ExprSyntax(base)
        }
        return super.visit(node)
    }

    override func visit(_ node: ModuleSelectorSyntax) -> ModuleSelectorSyntax {
        node.with(\.moduleName, renamed(node.moduleName))
    }
}
