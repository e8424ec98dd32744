// @Entity in a file that no compiler sees: what the macro writes, and what the compiler adds to it.
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `EntityMacro` does the work. What the compiler does besides is to check the key paths that the
/// macro reads as texts; a member is added in which it does so.
enum EntityInFile {}

extension EntityInFile: MemberMacro {
    static func expansion(
        of node: AttributeSyntax,
        providingMembersOf declaration: some DeclGroupSyntax,
        conformingTo protocols: [TypeSyntax],
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        let members = try EntityMacro.expansion(
            of: node,
            providingMembersOf: declaration,
            conformingTo: protocols,
            in: context
        )
        let keyPaths = inverses(of: declaration)
        if members.isEmpty || keyPaths.isEmpty { return members }
        // Never called. An inverse is a text in the columns; this is where its name is checked.
        let checks = keyPaths.map { "    _ = \($0) as AnyKeyPath" }.joined(separator: "\n")
        let check: DeclSyntax = """
            private static func _checkKeyPaths() {
            \(raw: checks)
            }
            """
        return members + [check]
    }

    private static func inverses(of declaration: some DeclGroupSyntax) -> [String] {
        declaration.memberBlock.members.compactMap { member in
            let inverse = member.decl.as(VariableDeclSyntax.self)?
                .attribute("Relationship")?.argument("inverse")
            return inverse?.as(KeyPathExprSyntax.self)?.trimmedDescription
        }
    }
}

extension EntityInFile: MemberAttributeMacro {
    static func expansion(
        of node: AttributeSyntax,
        attachedTo declaration: some DeclGroupSyntax,
        providingAttributesFor member: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AttributeSyntax] {
        let attributes = try EntityMacro.expansion(
            of: node,
            attachedTo: declaration,
            providingAttributesFor: member,
            in: context
        )
        let binding = member.as(VariableDeclSyntax.self)?.bindings.first
        if binding?.typeAnnotation != nil { return attributes }
        // Accessors need the property's type, and only a compiler infers it.
        return attributes.filter { $0.attributeName.trimmedDescription != "_ObservedTransient" }
    }
}

extension EntityInFile: ExtensionMacro {
    static func expansion(
        of node: AttributeSyntax,
        attachedTo declaration: some DeclGroupSyntax,
        providingExtensionsOf type: some TypeSyntaxProtocol,
        conformingTo protocols: [TypeSyntax],
        in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
        try EntityMacro.expansion(
            of: node,
            attachedTo: declaration,
            providingExtensionsOf: type,
            conformingTo: protocols,
            in: context
        )
    }
}
