// @Entity: what it adds to the class, to its properties and beside it.
#if Macros
import SwiftDiagnostics
package import SwiftSyntax
import SwiftSyntaxBuilder
package import SwiftSyntaxMacros

/// Turns a class with stored properties into an entity.
///
/// The member role alone complains, so that nothing is said three times.
package enum EntityMacro {
    /// The class, if this is one that can be an entity; complaints otherwise.
    private static func entity(
        _ declaration: some DeclGroupSyntax,
        _ complaints: inout Complaints
    ) -> ClassDeclSyntax? {
        guard let entity = declaration.as(ClassDeclSyntax.self) else {
            complainAboutKind(declaration, &complaints)
            return nil
        }
        checkInheritance(entity, &complaints)
        checkFinal(entity, &complaints)
        if let parameters = entity.genericParameterClause {
            complaints.add(
                "generic",
                "an entity cannot be generic: its name stands for one set of rows",
                at: parameters
            )
        }
        return entity
    }

    private static func complainAboutKind(
        _ declaration: some DeclGroupSyntax,
        _ complaints: inout Complaints
    ) {
        var fixes: [(text: String, old: Syntax, new: Syntax)] = []
        var keyword = declaration.introducer
        if declaration.is(StructDeclSyntax.self) {
            keyword.tokenKind = .identifier("final class")
            fixes = [("use 'final class'", Syntax(declaration.introducer), Syntax(keyword))]
        }
        complaints.add(
            "notAClass",
            "an entity is a 'final class': an object has one identity in its context",
            at: declaration.introducer,
            fixes: fixes
        )
    }

    private static func checkInheritance(
        _ entity: ClassDeclSyntax,
        _ complaints: inout Complaints
    ) {
        let inherited = entity.inheritanceClause?.inheritedTypes ?? []
        if inherited.contains(where: { $0.type.lastName == "ManagedObject" }) { return }
        var fixed = entity
        let conformance = InheritedTypeSyntax(type: TypeSyntax("ManagedObject"))
        if var clause = entity.inheritanceClause, let last = clause.inheritedTypes.indices.last {
            var added = conformance
            added.trailingTrivia = clause.trailingTrivia
            clause.inheritedTypes[last].trailingTrivia = []
            clause.inheritedTypes[last].trailingComma = .commaToken(trailingTrivia: .space)
            clause.inheritedTypes.append(added)
            fixed.inheritanceClause = clause
        } else {
            fixed.name.trailingTrivia = []
            fixed.inheritanceClause = InheritanceClauseSyntax(
                colon: .colonToken(trailingTrivia: .space),
                inheritedTypes: [conformance],
                trailingTrivia: .space
            )
        }
        complaints.add(
            "missingConformance",
            "write ': ManagedObject': a conformance that a macro adds would bind the class to the "
                + "main actor in modules that are isolated to it",
            at: entity.name,
            fixes: [("add ': ManagedObject'", Syntax(entity), Syntax(fixed))]
        )
    }

    private static func checkFinal(_ entity: ClassDeclSyntax, _ complaints: inout Complaints) {
        if entity.modifiers.contains(where: { $0.name.tokenKind == .keyword(.final) }) { return }
        var fixed = entity
        let trivia = entity.classKeyword.leadingTrivia
        fixed.classKeyword.leadingTrivia = []
        fixed.modifiers.append(
            DeclModifierSyntax(
                name: .keyword(.final, leadingTrivia: trivia, trailingTrivia: .space)
            )
        )
        complaints.add(
            "notFinal",
            "an entity is a 'final class': entities do not inherit from each other; what several "
                + "share is a '@Composite' struct or an entity that they lead to, and a protocol "
                + "gives them one interface",
            at: entity.classKeyword,
            fixes: [("add 'final'", Syntax(entity), Syntax(fixed))]
        )
    }
}

extension EntityMacro: MemberMacro {
    package static func expansion(
        of node: AttributeSyntax,
        providingMembersOf declaration: some DeclGroupSyntax,
        conformingTo protocols: [TypeSyntax],
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        var complaints = Complaints()
        let entity = entity(declaration, &complaints)
        let reader = entity.map(EntityReader.init)
        for diagnostic in complaints.all + (reader?.diagnostics ?? []) {
            context.diagnose(diagnostic)
        }
        return reader?.members(originalNames: node.originalNames) ?? []
    }
}

extension EntityMacro: MemberAttributeMacro {
    package static func expansion(
        of node: AttributeSyntax,
        attachedTo declaration: some DeclGroupSyntax,
        providingAttributesFor member: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AttributeSyntax] {
        guard declaration.is(ClassDeclSyntax.self),
            let variable = member.as(VariableDeclSyntax.self),
            variable.attribute("Attribute") == nil, variable.attribute("Relationship") == nil
        else { return [] }
        if variable.isDerived { return [] }
        if variable.observedName != nil { return ["@_ObservedTransient"] }
        // A property that cannot be kept gets no accessors either: its complaint is enough.
        var reader = PropertyReader()
        return reader.read(variable) == nil ? [] : ["@Attribute"]
    }
}

extension EntityMacro: ExtensionMacro {
    package static func expansion(
        of node: AttributeSyntax,
        attachedTo declaration: some DeclGroupSyntax,
        providingExtensionsOf type: some TypeSyntaxProtocol,
        conformingTo protocols: [TypeSyntax],
        in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
        guard declaration.is(ClassDeclSyntax.self), !protocols.isEmpty else { return [] }
        let unavailable: DeclSyntax = """
            @available(
                *, unavailable,
                message: "managed objects stay in their context; pass the id or a snapshot"
            )
            extension \(type.trimmed): Sendable {
            }
            """
        return unavailable.as(ExtensionDeclSyntax.self).map { [$0] } ?? []
    }
}
#endif
