// Reads attributes: their options, rules, codecs and defaults.
#if Macros
import SwiftSyntax
import SwiftSyntaxBuilder

/// What the options of `@Attribute` say.
private struct AttributeOptions {
    var isRequired = false
    var isComposite = false
    var codec: String?
    /// `externalStorageAbove: 100`
    var limit: String?
    var hasExternalStorage: ExprSyntax?
    /// Options that are rules for values, as written.
    var rules: [ExprSyntax] = []

    init(_ options: [ExprSyntax]) {
        for option in options {
            let call = option.as(FunctionCallExprSyntax.self)
            let member = (call?.calledExpression ?? option).as(MemberAccessExprSyntax.self)
            let argument = call?.arguments.first?.expression.trimmedDescription
            switch member?.declName.baseName.text {
            case "externalStorage":
                hasExternalStorage = option
                limit = argument
            case "required": isRequired = true
            case "composite": isComposite = true
            case "coded":
                codec = argument.map { $0.hasSuffix(".self") ? String($0.dropLast(5)) : $0 }
            case "range", "length", "pattern", "check": rules.append(option)
            default: break  // An option that does not exist: the compiler says so.
            }
        }
    }
}

extension PropertyReader {
    mutating func readAttribute(
        _ variable: VariableDeclSyntax,
        _ binding: PatternBindingSyntax,
        type: TypeSyntax,
        name: String
    ) -> EntityProperty? {
        let wrapped = type.wrappedByOptional ?? type
        let isOptional = type.wrappedByOptional != nil
        let attribute = variable.attribute("Attribute")
        let options = AttributeOptions(attribute?.unlabelledArguments ?? [])
        if options.codec == nil {
            guard checkType(wrapped, written: type) else { return nil }
        }
        guard checkOptions(options, wrapped, type) else { return nil }
        var arguments: [String] = []
        let initial = binding.initializer?.value.trimmedDescription
        if wrapped.lastName == "Blob" {
            guard checkBlob(type, isOptional: isOptional, initial: binding.initializer) else {
                return nil
            }
        } else if let value = binding.initializer, options.isComposite, isOptional,
            initial != "nil"
        {
            complaints.add(
                "compositeDefault",
                "an optional composite begins as nil: leave its default out, or make it not "
                    + "optional",
                at: value
            )
            return nil
        } else if let initial, !(isOptional && initial == "nil") {
            arguments.append("default: " + (options.codec == nil ? initial : "Coded(\(initial))"))
        }
        if let limit = options.limit { arguments.append("externalStorageAbove: \(limit)") }
        if !options.rules.isEmpty {
            let subject = options.codec.map { "Coded<\($0)>" } ?? wrapped.trimmedDescription
            let rules = ["\(subject).self"] + options.rules.map(\.trimmedDescription)
            arguments.append("rules: .of(\(rules.joined(separator: ", ")))")
        }
        if let names = attribute?.originalNames { arguments.append("originalName: \(names)") }
        if !isOptional && initial == nil && !options.isRequired {
            complainAboutMissingDefault(binding, variable, type: type, name: name)
            return nil
        }
        let kind: EntityProperty.Kind =
            if options.isComposite {
                .composite(wrapped: wrapped.trimmedDescription, isOptional: isOptional)
            } else if let codec = options.codec {
                .coded(codec: codec, isOptional: isOptional)
            } else {
                .attribute(wrapped: wrapped.trimmedDescription, isOptional: isOptional)
            }
        return EntityProperty(
            name: name,
            type: type.trimmedDescription,
            kind: kind,
            columnArguments: arguments,
            access: Self.access(variable)
        )
    }

    private mutating func checkOptions(
        _ options: AttributeOptions,
        _ wrapped: TypeSyntax,
        _ type: TypeSyntax
    ) -> Bool {
        if let option = options.hasExternalStorage, wrapped.lastName != "Blob" {
            complaints.add(
                "externalStorageNeedsBlob",
                "only a property of type 'Blob?' can be kept outside the store",
                at: option,
                fixes: [type.fix("Blob?")]
            )
            return false
        }
        guard options.isComposite else { return true }
        if let rule = options.rules.first {
            complaints.add(
                "compositeRule",
                "a rule is about one value; check the fields of a composite in validate(_:)",
                at: rule
            )
            return false
        }
        if options.isRequired {
            complaints.add(
                "compositeRequired",
                "a composite has a default, or is optional: its fields have defaults of their own",
                at: type
            )
            return false
        }
        return true
    }

    // MARK: Derived attributes

    /// A computed property that is kept, too.
    mutating func readDerived(_ variable: VariableDeclSyntax) -> EntityProperty? {
        guard let attribute = variable.attribute("Derived") else { return nil }
        let binding = variable.bindings.first
        guard !variable.isTypeMember, variable.bindings.count == 1, let binding,
            let pattern = binding.pattern.as(IdentifierPatternSyntax.self),
            let type = binding.typeAnnotation?.type, let body = binding.accessorBlock,
            body.isGetter
        else {
            complaints.add(
                "derivedForm",
                "a derived attribute is a computed property with a getter only: "
                    + "'@Derived var initial: String { String(name.prefix(1)) }'",
                at: variable
            )
            return nil
        }
        guard checkName(pattern) else { return nil }
        let wrapped = type.wrappedByOptional ?? type
        guard checkType(wrapped, written: type) else { return nil }
        if wrapped.lastName == "Blob" {
            complaints.add(
                "derivedBlob",
                "a Blob cannot be derived: it is written through a context",
                at: type
            )
            return nil
        }
        return EntityProperty(
            name: pattern.identifier.text,
            type: type.trimmedDescription,
            kind: .derived(body: body),
            columnArguments: attribute.originalNames.map { ["originalName: \($0)"] } ?? [],
            access: Self.access(variable)
        )
    }
}

extension AccessorBlockSyntax {
    /// Whether this is a getter that neither throws nor waits, and nothing else.
    fileprivate var isGetter: Bool {
        switch accessors {
        case .getter: true
        case .accessors(let list):
            list.count == 1
                && list.allSatisfy {
                    $0.accessorSpecifier.tokenKind == .keyword(.get) && $0.effectSpecifiers == nil
                }
        }
    }
}
#endif
