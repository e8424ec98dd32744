// The macros inside an entity: @Attribute, @Relationship, @Transient, #Index, #Unique.
#if Macros
package import SwiftSyntax
import SwiftSyntaxBuilder
package import SwiftSyntaxMacros

/// The accessors of a property that its row keeps.
package enum AttributeMacro: AccessorMacro {
    package static func expansion(
        of node: AttributeSyntax,
        providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        accessors(of: declaration, marked: node, in: context)
    }
}

/// The accessors of a relationship.
package enum RelationshipMacro: AccessorMacro {
    package static func expansion(
        of node: AttributeSyntax,
        providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        accessors(of: declaration, marked: node, in: context)
    }
}

/// A mark that @Entity reads. Adds nothing itself.
package enum TransientMacro: PeerMacro {
    package static func expansion(
        of node: AttributeSyntax,
        providingPeersOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        complainOutsideEntity("@Transient", at: node, in: context)
        return []
    }
}

/// A mark that @Entity reads. Adds nothing itself.
package enum DerivedMacro: PeerMacro {
    package static func expansion(
        of node: AttributeSyntax,
        providingPeersOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        complainOutsideEntity("@Derived", at: node, in: context)
        return []
    }
}

/// The accessors of a transient property, and what stands behind them: it tells observers.
package enum ObservedTransientMacro: AccessorMacro, PeerMacro {
    package static func expansion(
        of node: AttributeSyntax,
        providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        guard let name = declaration.as(VariableDeclSyntax.self)?.observedName else { return [] }
        return [
            """
            get {
                accessTransient(\\.\(raw: name))
                return _\(raw: name)
            }
            """,
            """
            set {
                willChangeTransient(\\.\(raw: name))
                _\(raw: name) = newValue
                didChangeTransient(\\.\(raw: name))
            }
            """,
            """
            _modify {
                willChangeTransient(\\.\(raw: name))
                defer { didChangeTransient(\\.\(raw: name)) }
                yield &_\(raw: name)
            }
            """,
        ]
    }

    package static func expansion(
        of node: AttributeSyntax,
        providingPeersOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        guard let variable = declaration.as(VariableDeclSyntax.self),
            let name = variable.observedName, let binding = variable.bindings.first
        else { return [] }
        let type = binding.typeAnnotation.map { "\($0.trimmedDescription)" } ?? ""
        let value = binding.initializer.map { " \($0.trimmedDescription)" } ?? ""
        return ["private var _\(raw: name)\(raw: type)\(raw: value)"]
    }
}

extension VariableDeclSyntax {
    /// The name of a transient property that can tell observers: one that is set like any other.
    /// Nil where its declaration leaves no room for accessors.
    var observedName: String? {
        guard attribute("Transient") != nil, !isTypeMember,
            bindingSpecifier.tokenKind == .keyword(.var), bindings.count == 1,
            let binding = bindings.first, binding.accessorBlock == nil,
            ![Keyword.lazy, .weak, .unowned].contains(where: hasModifier),
            binding.initializer != nil || binding.typeAnnotation?.type.wrappedByOptional != nil
        else { return nil }
        return binding.pattern.as(IdentifierPatternSyntax.self)?.identifier.text
    }
}

/// A line that @Entity reads. Adds nothing itself.
package enum IndexMacro: DeclarationMacro {
    package static func expansion(
        of node: some FreestandingMacroExpansionSyntax,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        complainOutsideEntity("#Index", at: node, in: context)
        return []
    }
}

/// A line that @Entity reads. Adds nothing itself.
package enum UniqueMacro: DeclarationMacro {
    package static func expansion(
        of node: some FreestandingMacroExpansionSyntax,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        complainOutsideEntity("#Unique", at: node, in: context)
        return []
    }
}

private func accessors(
    of declaration: some DeclSyntaxProtocol,
    marked node: AttributeSyntax,
    in context: some MacroExpansionContext
) -> [AccessorDeclSyntax] {
    let name = node.attributeName.lastName ?? ""
    guard complainOutsideEntity("@\(name)", at: node, in: context),
        let variable = declaration.as(VariableDeclSyntax.self)
    else { return [] }
    // What is wrong with the property, @Entity has said.
    var reader = PropertyReader()
    return reader.read(variable)?.accessors ?? []
}

/// - Returns: whether the macro stands directly inside an @Entity class.
@discardableResult
private func complainOutsideEntity(
    _ macro: String,
    at node: some SyntaxProtocol,
    in context: some MacroExpansionContext
) -> Bool {
    let entity = context.lexicalContext.first?.asProtocol((any WithAttributesSyntax).self)
    let isEntity = entity?.attributes.contains { element in
        element.as(AttributeSyntax.self)?.attributeName.lastName == "Entity"
    }
    if isEntity == true { return true }
    var complaints = Complaints()
    complaints.add(
        "outsideEntity",
        "'\(macro)' has a meaning inside an @Entity class only",
        at: node
    )
    for diagnostic in complaints.all { context.diagnose(diagnostic) }
    return false
}
#endif
