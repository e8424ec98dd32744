// Reads an entity's class: its properties, indexes and constraints, and what is wrong with them.
#if Macros
import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder

/// What the members of an entity say.
struct EntityReader {
    let name: String
    /// `public`, `package` or nothing: what the generated members carry.
    let access: String?
    private(set) var properties: [EntityProperty] = []
    /// `EntityIndex(columns.a, columns.b.descending)`
    private(set) var indexes: [String] = []
    /// `EntityConstraint(columns.a, onConflict: .error)`
    private(set) var constraints: [String] = []
    private(set) var diagnostics: [Diagnostic] = []

    init(_ entity: ClassDeclSyntax) {
        name = entity.name.text
        access =
            entity.modifiers.lazy.compactMap { modifier in
                switch modifier.name.tokenKind {
                case .keyword(.public), .keyword(.open): "public"
                case .keyword(.package): "package"
                default: nil
                }
            }.first
        var reader = PropertyReader()
        for member in entity.memberBlock.members {
            if let variable = member.decl.as(VariableDeclSyntax.self) {
                if let property = reader.read(variable) { properties.append(property) }
            } else if let conditional = member.decl.as(IfConfigDeclSyntax.self) {
                checkConditional(conditional)
            }
        }
        diagnostics += reader.complaints.all
        // A relationship that could not be read is missing here, and was told already.
        if diagnostics.isEmpty {
            diagnostics += inverseComplaints(reader.relationships).all
        }
        checkDerived()
        for member in entity.memberBlock.members {
            guard let call = member.decl.as(MacroExpansionDeclSyntax.self) else { continue }
            switch call.macroName.text {
            case "Index": readIndexes(call)
            case "Unique": readConstraints(call)
            default: break
            }
        }
    }

    // MARK: Indexes and constraints

    private mutating func readIndexes(_ call: MacroExpansionDeclSyntax) {
        let expression = call.arguments.first { $0.label?.text == "descending" }?.expression
        let isEmpty = expression?.as(ArrayExprSyntax.self)?.elements.isEmpty == true
        var descending: [String] = []
        if let expression, !isEmpty { descending = columns(of: expression, in: call) ?? [] }
        for argument in call.arguments where argument.label == nil {
            guard let columns = columns(of: argument.expression, in: call) else { continue }
            let terms = columns.map {
                "columns.\($0)" + (descending.contains($0) ? ".descending" : "")
            }
            indexes.append("EntityIndex(\(terms.joined(separator: ", ")))")
        }
    }

    private mutating func readConstraints(_ call: MacroExpansionDeclSyntax) {
        let conflict =
            call.arguments.first { $0.label?.text == "onConflict" }?.expression
            .trimmedDescription ?? ".error"
        for argument in call.arguments where argument.label == nil {
            guard let columns = columns(of: argument.expression, in: call) else { continue }
            let terms = columns.map { "columns.\($0)" }.joined(separator: ", ")
            constraints.append("EntityConstraint(\(terms), onConflict: \(conflict))")
        }
    }

    /// The columns of `[\.priority, \.timestamp]`; nil, with a complaint, when one cannot be used.
    private mutating func columns(
        of expression: ExprSyntax,
        in call: MacroExpansionDeclSyntax
    ) -> [String]? {
        let macro = "#\(call.macroName.text)"
        var complaints = Complaints()
        defer { diagnostics += complaints.all }
        let owner = call.genericArgumentClause?.arguments.first?.argument.trimmedDescription
        if let owner, owner.split(separator: ".").last.map(String.init) != name {
            complaints.add(
                "otherEntity",
                "\(macro) stands in '\(name)' and so is about '\(name)'",
                at: call
            )
            return nil
        }
        guard let array = expression.as(ArrayExprSyntax.self), !array.elements.isEmpty else {
            complaints.add(
                "noKeyPaths",
                "\(macro) wants a list of key paths: [\\.title, \\.timestamp]",
                at: expression
            )
            return nil
        }
        var columns: [String] = []
        for element in array.elements {
            guard let path = KeyPathName(element.expression) else {
                complaints.add(
                    "noKeyPath",
                    "\(macro) wants a key path to one stored property: \\.title",
                    at: element
                )
                return nil
            }
            let column = path.name
            guard let property = properties.first(where: { $0.columnName == column }) else {
                complaints.add(
                    "notIndexable",
                    "'\(column)' is not a stored property of '\(name)'",
                    at: element
                )
                return nil
            }
            if let reason = Self.reasonAgainstIndex(property, path.field, macro) {
                complaints.add("notIndexable", "'\(column)' \(reason)", at: element)
                return nil
            }
            columns.append(property.name + (path.field.map { ".\($0)" } ?? ""))
        }
        return columns
    }

    private static func reasonAgainstIndex(
        _ property: EntityProperty,
        _ field: String?,
        _ macro: String
    ) -> String? {
        switch property.kind {
        case .composite where field == nil:
            "is a composite: name one of its fields, '\\.\(property.columnName).city'"
        case .composite: nil
        case _ where field != nil:
            "is no composite; mark it with '@Attribute(.composite)' to name its fields"
        case .toMany: "leads to many objects and cannot be part of \(macro)"
        case .attribute(wrapped: "Blob", _): "is a Blob, whose bytes are not in the row"
        default: nil
        }
    }

    /// The rule of a derived attribute sees the attributes of its own object, nothing else.
    private mutating func checkDerived() {
        var unseen: Set<String> = []
        for property in properties where property.derivedMember(owner: name) == nil {
            unseen.insert(property.columnName)
        }
        if unseen.isEmpty { return }
        for property in properties {
            guard case .derived(let body) = property.kind else { continue }
            let finder = NameFinder(unseen, in: body)
            guard let found = finder.found else { continue }
            var complaints = Complaints()
            complaints.add(
                "derivedSees",
                "a derived attribute is made of the attributes of its own object; "
                    + "'\(found.trimmedDescription)' leads beyond them, and what changes there "
                    + "would leave the kept value stale",
                at: found
            )
            diagnostics += complaints.all
        }
    }

    private mutating func checkConditional(_ conditional: IfConfigDeclSyntax) {
        for clause in conditional.clauses {
            guard case .decls(let members) = clause.elements else { continue }
            for member in members {
                guard let variable = member.decl.as(VariableDeclSyntax.self), variable.isPersisted
                else { continue }
                var complaints = Complaints()
                complaints.add(
                    "conditionalProperty",
                    "a stored property cannot stand in '#if': the schema of a store is one",
                    at: variable
                )
                diagnostics += complaints.all
            }
        }
    }

    // MARK: What the entity becomes

    private var prefix: String { access.map { $0 + " " } ?? "" }

    /// Members of the entity. `originalNames` are the entity's former names as written.
    func members(originalNames: String?) -> [DeclSyntax] {
        var members: [DeclSyntax] = [
            "\(raw: prefix)static let entityName = \"\(raw: name)\""
        ]
        if let originalNames {
            members.append(
                "\(raw: prefix)static let originalEntityNames: [String] = [\(raw: originalNames)]"
            )
        }
        var columns = properties.map { property in
            let own = access == nil && property.access != "fileprivate" ? nil : property.access
            return (own.map { $0 + " " } ?? "") + property.columnDeclaration(owner: name)
        }
        if access != nil || properties.isEmpty { columns.append("\(prefix)init() {}") }
        members.append(
            """
            \(raw: prefix)struct Columns: Sendable {
            \(raw: columns.map { "    " + $0 }.joined(separator: "\n"))
            }
            """
        )
        members.append("\(raw: prefix)static let columns = Columns()")
        members += list("indexes", of: "EntityIndex", indexes)
        members += list("uniqueConstraints", of: "EntityConstraint", constraints)
        members.append("@safe @exclusivity(unchecked) \(raw: prefix)var storage: ObjectStorage")
        members.append(
            """
            \(raw: prefix)init(storage: consuming ObjectStorage) {
                self.storage = storage
            }
            """
        )
        if !properties.isEmpty { members.append(keyPaths) }
        if let derived { members.append(derived) }
        if let checks = EntityProperty.typeChecks(properties) { members.append(checks) }
        return members
    }

    /// The attributes once more, as derived ones are made of them.
    private var derived: DeclSyntax? {
        let hasDerived = properties.contains { property in
            if case .derived = property.kind { true } else { false }
        }
        guard hasDerived else { return nil }
        let members = properties.compactMap { $0.derivedMember(owner: name) }
        return """
            fileprivate struct _Derived {
                let _source: DerivedSource<\(raw: name)>
            \(raw: members.map { "    " + $0 }.joined(separator: "\n"))
            }
            """
    }

    /// Which property a key path of Foundation's requests means.
    private var keyPaths: DeclSyntax {
        let names = [("id", "id"), ("objectID", "objectID")]
        let kept = properties.filter { property in
            if case .composite = property.kind { false } else { true }
        }
        let pairs = (names + kept.map { ($0.name, $0.columnName) }).map { property, column in
            "        \\\(name).\(property): \"\(column)\","
        }
        return """
            \(raw: prefix)static var keyPaths: [PartialKeyPath<\(raw: name)>: String] {
                [
            \(raw: pairs.joined(separator: "\n"))
                ]
            }
            """
    }

    private func list(_ name: String, of type: String, _ elements: [String]) -> [DeclSyntax] {
        if elements.isEmpty { return [] }
        return [
            """
            \(raw: prefix)static var \(raw: name): [\(raw: type)] {
                [
            \(raw: elements.map { "        \($0)," }.joined(separator: "\n"))
                ]
            }
            """
        ]
    }
}

/// Finds a name of the entity in code: `tags`, `self.tags`, not `other.tags`.
private final class NameFinder: SyntaxVisitor {
    private let names: Set<String>
    private(set) var found: DeclReferenceExprSyntax?

    init(_ names: Set<String>, in code: some SyntaxProtocol) {
        self.names = names
        super.init(viewMode: .sourceAccurate)
        walk(code)
    }

    override func visit(_ node: DeclReferenceExprSyntax) -> SyntaxVisitorContinueKind {
        guard found == nil, names.contains(node.baseName.text) else { return .skipChildren }
        let access = node.parent?.as(MemberAccessExprSyntax.self)
        if let access, access.declName.id == node.id,
            access.base?.as(DeclReferenceExprSyntax.self)?.baseName.tokenKind != .keyword(.self)
        {
            return .skipChildren
        }
        found = node
        return .skipChildren
    }
}
#endif
