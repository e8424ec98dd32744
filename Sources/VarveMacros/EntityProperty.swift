// One stored property of an entity, read from its declaration.
#if Macros
import SwiftSyntax
import SwiftSyntaxBuilder

/// What the declaration of a property says, as far as the schema wants to know it.
struct EntityProperty {
    enum Kind {
        /// A value; `wrapped` is the type without its optional.
        case attribute(wrapped: String, isOptional: Bool)
        /// A struct whose fields are kept one by one.
        case composite(wrapped: String, isOptional: Bool)
        /// A value that a codec keeps.
        case coded(codec: String, isOptional: Bool)
        /// A value made of the others; `body` is its getter, braces included.
        case derived(body: AccessorBlockSyntax)
        case toOne(target: String)
        case toMany(target: String)

        /// The class that a relationship leads to.
        var target: String? {
            switch self {
            case .toOne(let target), .toMany(let target): target
            default: nil
            }
        }
    }

    /// As written, with backticks if it has any.
    let name: String
    let type: String
    let kind: Kind
    /// Arguments of the column besides its name: `default: …`, `originalName: …`, `inverse: …`.
    let columnArguments: [String]
    /// The access level as written, `private` widened to `fileprivate`; nil when none is written.
    let access: String?

    /// The name in the store: without backticks.
    var columnName: String { name.filter { $0 != "`" } }

    /// `let title = Column<Item, String>("title", default: "")`, without its access level.
    func columnDeclaration(owner: String) -> String {
        var arguments = (["\"\(columnName)\""] + columnArguments).joined(separator: ", ")
        let column: String
        switch kind {
        case .derived:
            let make = "derived: { \(owner)._Derived(_source: $0).\(name) }"
            arguments = (["\"\(columnName)\"", make] + columnArguments).joined(separator: ", ")
            column = "Column<\(owner), \(type)>"
        case .coded(let codec, let isOptional):
            column = "Column<\(owner), Coded<\(codec)>\(isOptional ? "?" : "")>"
        case .composite(let wrapped, isOptional: false):
            column = "CompositeColumn<\(owner), \(wrapped)>"
        case .composite(let wrapped, isOptional: true):
            column = "OptionalCompositeColumn<\(owner), \(wrapped)>"
        case .attribute: column = "Column<\(owner), \(type)>"
        case .toOne(let target): column = "ToOneColumn<\(owner), \(target)>"
        case .toMany(let target): column = "ToManyColumn<\(owner), \(target)>"
        }
        return "let \(name) = \(column)(\(arguments))"
    }

    /// Types of the library and of the standard library that are always values of a store.
    private static let known: Set<String> = [
        "Bool", "Int", "Int8", "Int16", "Int32", "Int64", "UInt", "UInt8", "UInt16", "UInt32",
        "UInt64", "Double", "Float", "String", "Date", "UUID", "URL", "Data", "Decimal", "Blob",
    ]

    /// The type of an attribute of the app's own, which may not be a value of a store; nil for all
    /// others.
    var ownType: String? {
        guard case .attribute(let wrapped, _) = kind, !Self.known.contains(wrapped) else {
            return nil
        }
        return wrapped
    }

    /// The property as the rules of derived attributes see it; nil: they do not.
    func derivedMember(owner: String) -> String? {
        let source = "_source[\(owner).columns.\(name)]"
        switch kind {
        case .attribute(wrapped: "Blob", _), .toOne, .toMany: return nil
        case .attribute, .composite: return "var \(name): \(type) { \(source) }"
        case .coded(_, let isOptional):
            return "var \(name): \(type) { \(source)\(isOptional ? "?" : "").value }"
        case .derived(let body): return "var \(name): \(type) \(body.trimmedDescription)"
        }
    }

    /// The bodies of the accessors.
    var accessors: [AccessorDeclSyntax] {
        if case .derived = kind { return [] }
        let get: AccessorDeclSyntax =
            "get { storedValue(Self.columns.\(raw: name), \\.\(raw: name)) }"
        if case .toMany = kind { return [get] }
        return [
            get,
            "set { setStoredValue(newValue, Self.columns.\(raw: name), \\.\(raw: name)) }",
        ]
    }
}

extension EntityProperty {
    /// Never called: so the compiler says what a type lacks in words that name the way out.
    static func typeChecks(_ properties: [EntityProperty]) -> DeclSyntax? {
        var types: [String] = []
        for type in properties.compactMap(\.ownType) where !types.contains(type) {
            types.append(type)
        }
        if types.isEmpty { return nil }
        let checks = types.map { "    _requireStorable(\($0).self)" }.joined(separator: "\n")
        return """
            private static func _checkTypes() {
            \(raw: checks)
            }
            """
    }
}

extension VariableDeclSyntax {
    /// The attribute of that name, as written on this property.
    func attribute(_ name: String) -> AttributeSyntax? {
        attributes.lazy.compactMap { $0.as(AttributeSyntax.self) }
            .first { $0.attributeName.lastName == name }
    }

    func hasModifier(_ keyword: Keyword) -> Bool {
        modifiers.contains { $0.name.tokenKind == .keyword(keyword) }
    }

    var isTypeMember: Bool { hasModifier(.static) || hasModifier(.class) }

    /// Whether a getter is written: such a property stores nothing.
    var isComputed: Bool {
        bindings.contains { binding in
            switch binding.accessorBlock?.accessors {
            case .getter: true
            case .accessors(let list):
                list.contains {
                    let kind = $0.accessorSpecifier.tokenKind
                    return kind != .keyword(.willSet) && kind != .keyword(.didSet)
                }
            case nil: false
            }
        }
    }

    /// Whether the property is made of others and kept nevertheless.
    var isDerived: Bool { attribute("Derived") != nil }

    /// Whether this is a property that the store keeps.
    var isPersisted: Bool { !isTypeMember && !isComputed && attribute("Transient") == nil }
}

extension TypeSyntax {
    /// `Item` of `Model.Item`, `ToMany` of `ToMany<Tag>`.
    var lastName: String? {
        if let identifier = self.as(IdentifierTypeSyntax.self) { return identifier.name.text }
        return self.as(MemberTypeSyntax.self)?.name.text
    }

    /// The arguments between `<` and `>`.
    var genericArguments: [String] {
        let clause =
            self.as(IdentifierTypeSyntax.self)?.genericArgumentClause
            ?? self.as(MemberTypeSyntax.self)?.genericArgumentClause
        return clause?.arguments.map { $0.argument.trimmedDescription } ?? []
    }

    /// The type under one optional, written `T?` or `Optional<T>`; nil when there is none.
    var wrappedByOptional: TypeSyntax? {
        if let optional = self.as(OptionalTypeSyntax.self) { return optional.wrappedType }
        guard lastName == "Optional", let inner = genericArguments.first else { return nil }
        return "\(raw: inner)"
    }
}

extension AttributeSyntax {
    /// The argument with that label as written.
    func argument(_ label: String) -> ExprSyntax? {
        guard case .argumentList(let list) = arguments else { return nil }
        return list.first { $0.label?.text == label }?.expression
    }

    /// The arguments of a list with that label: the labelled one and those without a label after
    /// it.
    func arguments(_ label: String) -> [ExprSyntax] {
        guard case .argumentList(let list) = arguments,
            let first = list.firstIndex(where: { $0.label?.text == label })
        else { return [] }
        let rest = list[list.index(after: first)...].prefix { $0.label == nil }
        return [list[first].expression] + rest.map(\.expression)
    }

    /// The names that `originalName: "a", "b"` lists, as written; nil when there are none.
    var originalNames: String? {
        let names = arguments("originalName").filter { !$0.is(NilLiteralExprSyntax.self) }
        return names.isEmpty ? nil : names.map(\.trimmedDescription).joined(separator: ", ")
    }

    /// The arguments at the front that have no label.
    var unlabelledArguments: [ExprSyntax] {
        guard case .argumentList(let list) = arguments else { return [] }
        return list.prefix { $0.label == nil }.map(\.expression)
    }
}
#endif
