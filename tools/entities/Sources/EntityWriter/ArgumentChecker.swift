// What the compiler says about the arguments of a macro before the macro sees them.
//
// The macros read the arguments they know and leave all others to the compiler, which compares them
// with the declarations in Sources/Varve/Macros.swift. A file of a model meets no compiler, so an
// argument that does not exist would be dropped without a word.
import SwiftDiagnostics
import SwiftSyntax

final class ArgumentChecker: SyntaxVisitor {
    /// The labels of each macro; a test compares them with its declarations.
    static let labels: [String: Set<String>] = [
        "Entity": ["originalName"],
        "Attribute": ["originalName"],
        "Relationship": ["inverse", "deleteRule", "ordered", "count", "originalName"],
        "Composite": ["originalNames"],
        "Derived": ["originalName"],
        "Transient": [],
        "_ObservedTransient": [],
        "Index": ["descending"],
        "Unique": ["onConflict"],
    ]

    private(set) var complaints = Complaints()

    override func visit(_ node: AttributeSyntax) -> SyntaxVisitorContinueKind {
        guard let name = node.attributeName.lastName, let labels = Self.labels[name] else {
            return .visitChildren
        }
        if !node.attributeName.is(IdentifierTypeSyntax.self) {
            complaints.add("qualified", "write '@\(name)', without the module", at: node)
        }
        checkCondition(node, name)
        guard case .argumentList(let arguments) = node.arguments else { return .visitChildren }
        check(arguments, of: "@\(name)", labels)
        let front = node.unlabelledArguments
        if name == "Attribute" {
            front.forEach(checkOption)
        } else if let first = front.first {
            complaints.add("argument", "'@\(name)' has no argument without a name", at: first)
        }
        return .visitChildren
    }

    override func visit(_ node: MacroExpansionDeclSyntax) -> SyntaxVisitorContinueKind {
        let name = node.macroName.text
        if let labels = Self.labels[name] { check(node.arguments, of: "#\(name)", labels) }
        return .visitChildren
    }

    private func check(
        _ arguments: LabeledExprListSyntax,
        of macro: String,
        _ labels: Set<String>
    ) {
        var seen: Set<String> = []
        for argument in arguments {
            guard let label = argument.label?.text else { continue }
            let isNew = seen.insert(label).inserted
            if labels.contains(label), isNew { continue }
            let reason = isNew ? "has no argument '\(label)'" : "has '\(label)' twice"
            complaints.add("argument", "'\(macro)' \(reason)", at: argument)
        }
    }

    private func checkOption(_ option: ExprSyntax) {
        let call = option.as(FunctionCallExprSyntax.self)
        let member = (call?.calledExpression ?? option).as(MemberAccessExprSyntax.self)
        let isOption =
            switch member?.declName.baseName.text {
            case "required", "composite": call == nil
            case "coded": call.map { $0.arguments.map(\.label?.text) == ["by"] } ?? false
            case "range", "length", "pattern":
                call.map { $0.arguments.map(\.label?.text) == [nil] } ?? false
            case "check": call != nil
            case "externalStorage":
                call.map { $0.arguments.isEmpty || $0.arguments.map(\.label?.text) == ["above"] }
                    ?? false
            default: false
            }
        if isOption { return }
        complaints.add(
            "option",
            "an option of '@Attribute' is '.required', '.externalStorage()', "
                + "'.externalStorage(above: 100_000)', '.composite', '.coded(by:)', or a rule: "
                + "'.range', '.length', '.pattern', '.check'",
            at: option
        )
    }

    /// An expansion holds for every build, so nothing that only some builds have is expanded.
    private func checkCondition(_ node: AttributeSyntax, _ name: String) {
        var isInside = node.parent?.parent?.is(IfConfigClauseSyntax.self) == true
        if name == "Entity" {
            var around = node.parent
            while let parent = around, !isInside {
                isInside = parent.is(IfConfigClauseSyntax.self)
                around = parent.parent
            }
        }
        guard isInside else { return }
        complaints.add(
            "conditional",
            "'@\(name)' cannot be expanded inside '#if': one file is written for all builds",
            at: node
        )
    }
}
