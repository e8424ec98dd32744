// Reads the declaration of a property and says what is wrong with it.
#if Macros
import SwiftSyntax
import SwiftSyntaxBuilder

/// Turns one `var` of an entity into an `EntityProperty`, or into complaints.
struct PropertyReader {
    var complaints = Complaints()
    /// Those that were read, in the order of declaration.
    private(set) var relationships: [DeclaredRelationship] = []

    /// Names that every managed object already has; the text says what to do instead.
    private static let reserved: Set<String> = [
        "id", "objectID", "storage", "columns", "context", "entityName", "indexes",
        "uniqueConstraints", "isFault", "isInserted", "isUpdated", "isDeleted", "hasChanges",
        "readFailure", "keyPaths",
    ]

    /// Types that look storable and are not.
    private static let unsupported: Set<String> = [
        "Any", "AnyObject", "Set", "ContiguousArray", "Character",
        "Substring", "CGFloat", "Float16", "Float80", "Int128", "UInt128", "NSData", "NSString",
        "NSDate", "NSNumber", "Range", "ClosedRange", "Duration",
    ]

    /// - Returns: nil for a property that the store does not keep, and for one it cannot keep.
    mutating func read(_ variable: VariableDeclSyntax) -> EntityProperty? {
        if variable.isDerived { return readDerived(variable) }
        guard variable.isPersisted else {
            checkNotPersisted(variable)
            return nil
        }
        guard checkForm(variable), let binding = variable.bindings.first,
            let pattern = binding.pattern.as(IdentifierPatternSyntax.self)
        else { return nil }
        guard checkName(pattern) else { return nil }
        let name = pattern.identifier.text
        guard let annotation = binding.typeAnnotation else {
            complainAboutMissingType(binding)
            return nil
        }
        let type = annotation.type
        if variable.attribute("Relationship") != nil || type.lastName == "ToMany"
            || type.wrappedByOptional?.lastName == "ToMany"
        {
            return readRelationship(variable, binding, type: type, name: name)
        }
        return readAttribute(variable, binding, type: type, name: name)
    }

    mutating func checkName(_ pattern: IdentifierPatternSyntax) -> Bool {
        let name = pattern.identifier.text
        guard Self.reserved.contains(name) else { return true }
        complaints.add(
            "reservedName",
            "every managed object has '\(name)' already; give this property another name",
            at: pattern
        )
        return false
    }

    mutating func checkType(_ wrapped: TypeSyntax, written: TypeSyntax) -> Bool {
        if let forced = written.as(ImplicitlyUnwrappedOptionalTypeSyntax.self) {
            let new = "\(forced.wrappedType.trimmedDescription)?"
            complaints.add(
                "implicitlyUnwrapped",
                "an attribute is optional or it is not; '!' is neither",
                at: written,
                fixes: [written.fix(new)]
            )
            return false
        }
        let isList = wrapped.is(ArrayTypeSyntax.self) || wrapped.is(DictionaryTypeSyntax.self)
        if isList { return true }
        let isNamed = wrapped.is(IdentifierTypeSyntax.self) || wrapped.is(MemberTypeSyntax.self)
        if isNamed, wrapped.wrappedByOptional == nil, let name = wrapped.lastName,
            !Self.unsupported.contains(name)
        {
            return true
        }
        complaints.add(
            "unsupportedType",
            "'\(written.trimmedDescription)' cannot be stored: an attribute is a Bool, an integer, "
                + "a Double or Float, a String, Date, UUID, URL, Data, Decimal, Blob?, an enum "
                + "that is a StoredEnum, a struct that is StoredCodable, an array or a dictionary "
                + "with String keys of these, or an optional of these; a type of others is kept "
                + "with @Attribute(.coded(by:)); mark a property that is not stored with "
                + "@Transient",
            at: written
        )
        return false
    }

    mutating func checkBlob(
        _ type: TypeSyntax,
        isOptional: Bool,
        initial: InitializerClauseSyntax?
    ) -> Bool {
        if !isOptional {
            complaints.add(
                "blobNotOptional",
                "a Blob is always optional: a new object has none yet",
                at: type,
                fixes: [type.fix("Blob?")]
            )
            return false
        }
        if let initial, !initial.value.is(NilLiteralExprSyntax.self) {
            complaints.add(
                "blobDefault",
                "a Blob has no default: it is written through a context",
                at: initial
            )
            return false
        }
        return true
    }

    // MARK: Relationships

    private mutating func readRelationship(
        _ variable: VariableDeclSyntax,
        _ binding: PatternBindingSyntax,
        type: TypeSyntax,
        name: String
    ) -> EntityProperty? {
        guard let relationship = variable.attribute("Relationship") else {
            complainOfToMany(variable, type)
            return nil
        }
        guard let kind = relationshipKind(type) else { return nil }
        if let initial = binding.initializer, !initial.value.is(NilLiteralExprSyntax.self) {
            complaints.add(
                "relationshipDefault",
                "a relationship has no default: a new object has none yet",
                at: initial
            )
            return nil
        }
        let isToMany = if case .toMany = kind { true } else { false }
        let known = complaints.all.count
        let inverse = readInverse(relationship)
        guard complaints.all.count == known,
            let arguments = columnArguments(
                relationship,
                isToMany: isToMany,
                inverse: inverse?.path
            )
        else { return nil }
        relationships.append(
            DeclaredRelationship(
                name: name.filter { $0 != "`" },
                target: kind.target ?? "",
                inverse: inverse
            )
        )
        return EntityProperty(
            name: name,
            type: type.trimmedDescription,
            kind: kind,
            columnArguments: arguments,
            access: Self.access(variable)
        )
    }

    /// A `ToMany` without @Relationship.
    private mutating func complainOfToMany(_ variable: VariableDeclSyntax, _ type: TypeSyntax) {
        var annotated = variable
        annotated.leadingTrivia = []
        annotated.attributes.insert(
            .attribute("@Relationship "),
            at: annotated.attributes.startIndex
        )
        annotated.leadingTrivia = variable.leadingTrivia
        complaints.add(
            "toManyNeedsRelationship",
            "'ToMany' is the type of a relationship",
            at: type,
            fixes: [("add '@Relationship'", Syntax(variable), Syntax(annotated))]
        )
    }

    private mutating func relationshipKind(_ type: TypeSyntax) -> EntityProperty.Kind? {
        if type.lastName == "ToMany", let target = type.genericArguments.first {
            return .toMany(target: target)
        }
        let element: String? =
            if let array = type.as(ArrayTypeSyntax.self) {
                array.element.trimmedDescription
            } else if ["Array", "Set"].contains(type.lastName ?? "") {
                type.genericArguments.first
            } else if type.wrappedByOptional?.lastName == "ToMany" {
                type.wrappedByOptional?.genericArguments.first
            } else {
                nil
            }
        if let element {
            complaints.add(
                "toManyType",
                "a relationship to many objects has the type 'ToMany<\(element)>'",
                at: type,
                fixes: [type.fix("ToMany<\(element)>")]
            )
            return nil
        }
        if let target = type.wrappedByOptional {
            return .toOne(target: target.trimmedDescription)
        }
        let target =
            type.as(ImplicitlyUnwrappedOptionalTypeSyntax.self)?.wrappedType.trimmedDescription
            ?? type.trimmedDescription
        complaints.add(
            "toOneNotOptional",
            "a relationship to one object is always optional",
            at: type,
            fixes: [type.fix("\(target)?")]
        )
        return nil
    }

    // MARK: The form of the declaration

    private mutating func checkNotPersisted(_ variable: VariableDeclSyntax) {
        for name in ["Attribute", "Relationship"] {
            guard let attribute = variable.attribute(name) else { continue }
            let reason =
                variable.isTypeMember
                ? "belongs to the type" : variable.isComputed ? "is computed" : "is transient"
            complaints.add(
                "notStored",
                "'@\(name)' has nothing to keep here: this property \(reason)",
                at: attribute
            )
        }
        guard variable.attribute("Transient") != nil, !variable.isTypeMember, !variable.isComputed
        else { return }
        for binding in variable.bindings
        where binding.initializer == nil && binding.typeAnnotation?.type.wrappedByOptional == nil {
            complaints.add(
                "transientNeedsValue",
                "a transient property needs an initial value: the store makes its object",
                at: binding
            )
        }
    }

    private mutating func checkForm(_ variable: VariableDeclSyntax) -> Bool {
        if variable.bindingSpecifier.tokenKind == .keyword(.let) {
            var token = variable.bindingSpecifier
            token.tokenKind = .keyword(.var)
            complaints.add(
                "letProperty",
                "a stored property of an entity is a 'var': its row can change",
                at: variable.bindingSpecifier,
                fixes: [("use 'var'", Syntax(variable.bindingSpecifier), Syntax(token))]
            )
            return false
        }
        if variable.bindings.count > 1 {
            complaints.add(
                "severalProperties",
                "write one property of an entity per 'var'",
                at: variable.bindings
            )
            return false
        }
        for keyword in [Keyword.lazy, .weak, .unowned] where variable.hasModifier(keyword) {
            complaints.add(
                "modifier",
                "a stored property cannot be '\(keyword)'; mark it with @Transient",
                at: variable.modifiers
            )
            return false
        }
        if let block = variable.bindings.first?.accessorBlock {
            complaints.add(
                "observers",
                "a stored property of an entity has no willSet or didSet",
                at: block
            )
            return false
        }
        return true
    }

    private mutating func complainAboutMissingType(_ binding: PatternBindingSyntax) {
        let value = binding.initializer?.value
        let guess: String? =
            switch value?.kind {
            case .stringLiteralExpr: "String"
            case .integerLiteralExpr: "Int"
            case .floatLiteralExpr: "Double"
            case .booleanLiteralExpr: "Bool"
            default: value?.as(FunctionCallExprSyntax.self)?.calledExpression.trimmedDescription
            }
        var typed = binding
        typed.pattern = binding.pattern.trimmed
        typed.typeAnnotation = TypeAnnotationSyntax(
            colon: .colonToken(trailingTrivia: .space),
            type: TypeSyntax("\(raw: guess ?? "<#Type#>")"),
            trailingTrivia: binding.initializer == nil ? [] : .space
        )
        complaints.add(
            "missingType",
            "a stored property of an entity says its type",
            at: binding,
            fixes: [("add ': \(guess ?? "Type")'", Syntax(binding), Syntax(typed))]
        )
    }

    mutating func complainAboutMissingDefault(
        _ binding: PatternBindingSyntax,
        _ variable: VariableDeclSyntax,
        type: TypeSyntax,
        name: String
    ) {
        let value: String =
            switch type.lastName {
            case "String": "\"\""
            case "Bool": "false"
            case "Date": ".now"
            case "UUID": "UUID()"
            case "Data": "Data()"
            case "Int", "Int8", "Int16", "Int32", "Int64", "UInt", "UInt8", "UInt16", "UInt32",
                "UInt64", "Double", "Float", "Decimal":
                "0"
            default: "<#value#>"
            }
        var withValue = binding
        withValue.initializer = InitializerClauseSyntax(
            equal: .equalToken(leadingTrivia: .space, trailingTrivia: .space),
            value: ExprSyntax("\(raw: value)")
        )
        complaints.add(
            "missingDefault",
            "'\(name)' is not optional, so a new object needs a value for it; write a default, "
                + "make it optional, or mark it with '@Attribute(.required)' and set it before "
                + "every first save",
            at: binding,
            fixes: [
                ("add the default '\(value)'", Syntax(binding), Syntax(withValue)),
                type.fix("\(type.trimmedDescription)?", title: "make it optional"),
            ]
        )
    }

    static func access(_ variable: VariableDeclSyntax) -> String? {
        for modifier in variable.modifiers where modifier.detail == nil {
            switch modifier.name.tokenKind {
            case .keyword(.private), .keyword(.fileprivate): return "fileprivate"
            case .keyword(.internal): return "internal"
            case .keyword(.package): return "package"
            case .keyword(.public): return "public"
            default: continue
            }
        }
        return nil
    }
}

extension TypeSyntax {
    /// The fix-it that writes another type here.
    func fix(
        _ text: String,
        title: String? = nil
    ) -> (text: String, old: Syntax, new: Syntax) {
        var new: TypeSyntax = "\(raw: text)"
        new.leadingTrivia = leadingTrivia
        new.trailingTrivia = trailingTrivia
        return (title ?? "use '\(text)'", Syntax(self), Syntax(new))
    }
}

/// The property that a key path names: `\.title`, `\Item.title`, `\Space.Item.title`, or a field of
/// a composite: `\.address.city`. What stands in front of it are types, which begin with a capital
/// letter.
struct KeyPathName {
    /// The class that the path begins at; nil when none is written.
    let root: String?
    let name: String
    /// Of a composite.
    let field: String?

    init?(_ expression: ExprSyntax) {
        guard let path = expression.as(KeyPathExprSyntax.self) else { return nil }
        var names = path.components.compactMap {
            $0.component.as(KeyPathPropertyComponentSyntax.self)?.declName.baseName.text
        }
        guard names.count == path.components.count else { return nil }
        if let type = path.root {
            let nested = names.prefix { $0.first?.isUppercase == true }
            root = nested.last ?? type.trimmedDescription
            names.removeFirst(nested.count)
        } else {
            root = nil
        }
        guard names.count == 1 || names.count == 2 else { return nil }
        name = names[0]
        field = names.count == 2 ? names[1] : nil
    }
}
#endif
