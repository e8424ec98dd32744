// @Composite: makes a struct one that an attribute can have, its fields kept one by one.
#if Macros
import SwiftDiagnostics
package import SwiftSyntax
import SwiftSyntaxBuilder
package import SwiftSyntaxMacros

/// Writes the list of a struct's fields, and its conformance.
package enum CompositeMacro: MemberMacro, ExtensionMacro {
    package static func expansion(
        of node: AttributeSyntax,
        providingMembersOf declaration: some DeclGroupSyntax,
        conformingTo protocols: [TypeSyntax],
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        var complaints = Complaints()
        let fields = fields(of: declaration, &complaints)
        for diagnostic in complaints.all { context.diagnose(diagnostic) }
        guard let composite = declaration.as(StructDeclSyntax.self) else { return [] }
        return members(of: composite, fields, renamed: node.renamedFields)
    }

    package static func expansion(
        of node: AttributeSyntax,
        attachedTo declaration: some DeclGroupSyntax,
        providingExtensionsOf type: some TypeSyntaxProtocol,
        conformingTo protocols: [TypeSyntax],
        in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
        guard declaration.is(StructDeclSyntax.self) else { return [] }
        return [try ExtensionDeclSyntax("extension \(type.trimmed): StoredComposite {}")]
    }

    private static func fields(
        of declaration: some DeclGroupSyntax,
        _ complaints: inout Complaints
    ) -> [EntityProperty] {
        guard declaration.is(StructDeclSyntax.self) else {
            complaints.add(
                "compositeKind",
                "a composite is a struct: it is a value, and its object has the identity",
                at: declaration.introducer
            )
            return []
        }
        var reader = PropertyReader()
        var fields: [EntityProperty] = []
        for member in declaration.memberBlock.members {
            guard let variable = member.decl.as(VariableDeclSyntax.self) else { continue }
            for name in ["Attribute", "Relationship", "Transient", "Derived"] {
                guard let attribute = variable.attribute(name) else { continue }
                complaints.add(
                    "compositeMark",
                    "'@\(name)' has no meaning in a composite: its fields are values with defaults",
                    at: attribute
                )
            }
            guard variable.isPersisted, let field = reader.read(variable) else { continue }
            if let reason = reason(against: field) {
                complaints.add("compositeField", "'\(field.columnName)' \(reason)", at: variable)
                continue
            }
            fields.append(field)
        }
        for diagnostic in reader.complaints.all { complaints.add(diagnostic) }
        return fields
    }

    private static func reason(against field: EntityProperty) -> String? {
        switch field.kind {
        case .attribute(wrapped: "Blob", _): "is a Blob, which belongs to an object"
        case .attribute: nil
        default: "is no value that a composite can have"
        }
    }

    private static func members(
        of composite: StructDeclSyntax,
        _ fields: [EntityProperty],
        renamed: [String: String]
    ) -> [DeclSyntax] {
        let name = composite.name.text
        let access =
            composite.modifiers.lazy.compactMap { modifier -> String? in
                switch modifier.name.tokenKind {
                case .keyword(.public): "public "
                case .keyword(.package): "package "
                default: nil
                }
            }.first ?? ""
        var lines = fields.map { field in
            var arguments = ["\"\(field.columnName)\""]
            arguments += field.columnArguments.isEmpty ? ["default: nil"] : field.columnArguments
            if let old = renamed[field.columnName] { arguments.append("originalName: \(old)") }
            arguments.append("get: { $0.\(field.name) }")
            arguments.append("set: { $0.\(field.name) = $1 }")
            return "let \(field.name) = CompositeField<\(name), \(field.type)>("
                + arguments.joined(separator: ", ") + ")"
        }
        if !access.isEmpty {
            lines = fields.indices.map { index in
                fields[index].access == "public" || fields[index].access == "package"
                    ? access + lines[index] : lines[index]
            }
            lines.append("\(access)init() {}")
        }
        var members: [DeclSyntax] = [
            """
            \(raw: access)struct Fields: Sendable {
            \(raw: lines.map { "    " + $0 }.joined(separator: "\n"))
            }
            """,
            "\(raw: access)static let fields = Fields()",
        ]
        if let checks = EntityProperty.typeChecks(fields) { members.append(checks) }
        return members
    }
}

extension AttributeSyntax {
    /// `originalNames: ["city": "town"]`: by field, as written.
    fileprivate var renamedFields: [String: String] {
        guard
            case .elements(let elements)? = argument("originalNames")?
                .as(DictionaryExprSyntax.self)?.content
        else { return [:] }
        var names: [String: String] = [:]
        for element in elements {
            let key = element.key.as(StringLiteralExprSyntax.self)?.segments.trimmedDescription
            if let key { names[key] = element.value.trimmedDescription }
        }
        return names
    }
}
#endif
