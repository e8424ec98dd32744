// Columns of composite attributes: one column for each field, behind one name.
//
// Invariants
// - `members` stand in the order of the composite's fields; an optional attribute has one more, at
//   the end: whether there is a value. Its name is the attribute's own.
// - Where an optional composite is nil, all its columns are null. It is there when the additional
//   column says so, or any field has a value: so rows of a time when it was not optional have
//   theirs.

import VarveBase
import VarveRecords

/// A composite attribute of an entity, or, in a request, one that a to-one relationship leads to.
///
/// Its fields are columns: `$0.address.city == "Paris"`.
@dynamicMemberLookup
public struct CompositeColumn<Root: ManagedObject, Composite: StoredComposite>: Sendable {
    let layout: CompositeLayout

    /// Declares a composite attribute. `@Attribute(.composite)` writes it.
    /// - Parameters:
    ///   - name: the property's name; the fields are stored as "name.field".
    ///   - value: its value in a new object.
    ///   - originalName: names that stores may still have it under, the latest first.
    public init(
        _ name: String,
        default value: @autoclosure @escaping @Sendable () -> Composite,
        originalName: String...
    ) {
        layout = CompositeLayout(name, originalName, Composite.self, makeDefault: { value() })
    }

    init(layout: CompositeLayout) { self.layout = layout }

    /// A field as a column.
    public subscript<Value>(
        dynamicMember member: KeyPath<Composite.Fields, CompositeField<Composite, Value>>
    ) -> Column<Root, Value> {
        Column(definition: layout.member(Composite.fields[keyPath: member].erased.name))
    }

    /// All fields are as in `value`.
    public static func == (column: CompositeColumn, value: Composite) -> TypedPredicate<Root> {
        column.layout.equals(value)
    }

    /// At least one field is not as in `value`.
    public static func != (column: CompositeColumn, value: Composite) -> TypedPredicate<Root> {
        !(column == value)
    }
}

/// A composite attribute that can be nil.
///
/// Where it is nil all its fields are null in requests: `$0.address.city == "Paris"` is false.
@dynamicMemberLookup
public struct OptionalCompositeColumn<Root: ManagedObject, Composite: StoredComposite>: Sendable {
    let layout: CompositeLayout

    /// Declares an optional composite attribute. `@Attribute(.composite)` writes it.
    /// - Parameters:
    ///   - name: the property's name; the fields are stored as "name.field".
    ///   - originalName: names that stores may still have it under, the latest first.
    public init(_ name: String, originalName: String...) {
        layout = CompositeLayout(name, originalName, Composite.self, makeDefault: nil)
    }

    init(layout: CompositeLayout) { self.layout = layout }

    /// A field as a column.
    public subscript<Value>(
        dynamicMember member: KeyPath<Composite.Fields, CompositeField<Composite, Value>>
    ) -> Column<Root, Value> {
        Column(definition: layout.member(Composite.fields[keyPath: member].erased.name))
    }

    /// There is a value and all its fields are as in `value`; for nil: there is none.
    public static func == (
        column: OptionalCompositeColumn,
        value: Composite?
    ) -> TypedPredicate<Root> {
        guard let value else { return TypedPredicate(column.layout.isPresent(false)) }
        let fields: TypedPredicate<Root> = column.layout.equals(value)
        return TypedPredicate(column.layout.isPresent(true)) && fields
    }

    /// The opposite of `==`.
    public static func != (
        column: OptionalCompositeColumn,
        value: Composite?
    ) -> TypedPredicate<Root> {
        !(column == value)
    }
}

/// How a composite attribute lies in its row.
struct CompositeLayout: Sendable {
    let fields: [AnyField]
    /// By field; in an optional attribute one more.
    let members: [PropertyDefinition]
    let isOptional: Bool
    let type: any StoredComposite.Type

    init(
        _ name: String,
        _ originalNames: [String],
        _ type: any StoredComposite.Type,
        makeDefault: (@Sendable () -> any StoredComposite)?
    ) {
        func fields<Composite: StoredComposite>(_: Composite.Type) -> [AnyField] {
            Composite.allFields()
        }
        let all = fields(type)
        self.fields = all
        self.type = type
        isOptional = makeDefault == nil
        var members = all.map { field in
            let names = [name] + originalNames
            let fieldDefault: @Sendable () -> StoredValue =
                if let makeDefault { { field.get(makeDefault()) } } else { { .null } }
            let olds = names.flatMap { owner in
                ([field.name] + field.originalNames).map { "\(owner).\($0)" }
            }
            return PropertyDefinition(
                path: PropertyPath("\(name).\(field.name)"),
                originalNames: Array(olds.dropFirst()),
                kind: .attribute(
                    .init(
                        type: field.type,
                        isOptional: field.isOptional || makeDefault == nil,
                        makeDefault: fieldDefault,
                        canRead: field.canRead,
                        member: makeDefault == nil
                            ? CompositeMember(
                                of: name,
                                fill: field.isOptional ? nil : field.makeDefault
                            ) : nil
                    )
                )
            )
        }
        if makeDefault == nil {
            members.append(
                PropertyDefinition(
                    path: PropertyPath(name),
                    originalNames: originalNames,
                    kind: .attribute(
                        .init(
                            type: .bool,
                            isOptional: true,
                            makeDefault: { .null },
                            member: CompositeMember(of: name, fill: { .bool(true) })
                        )
                    )
                )
            )
        }
        self.members = members
    }

    private init(_ other: CompositeLayout, behind prefix: PropertyPath) {
        fields = other.fields
        members = other.members.map { $0.behind(prefix) }
        isOptional = other.isOptional
        type = other.type
    }

    func behind(_ prefix: PropertyPath) -> CompositeLayout { CompositeLayout(self, behind: prefix) }

    func member(_ field: String) -> PropertyDefinition {
        guard let index = fields.firstIndex(where: { $0.name == field }) else {
            preconditionFailure("\(type) has no field \(field) in its fields")
        }
        return members[index]
    }

    func isPresent(_ isPresent: Bool) -> Predicate {
        guard isOptional else { return isPresent ? .always : .never }
        if isPresent { return .or(members.map { .compare($0.path, .notEqual, .null) }) }
        return .and(members.map { .compare($0.path, .equal, .null) })
    }

    func equals<Root>(_ value: any StoredComposite) -> TypedPredicate<Root> {
        // No row has a value that a store cannot keep.
        if fields.contains(where: { $0.refusal(value) != nil }) { return TypedPredicate(.never) }
        return TypedPredicate(
            .and(
                zip(fields, members).map { field, member in
                    .compare(member.path, .equal, field.get(value))
                }
            )
        )
    }

    // MARK: Values

    /// The value that stored fields make.
    /// - Parameter stored: what is stored in a slot.
    /// - Returns: nil where an optional attribute has no value; `unreadable` lists slots that hold
    ///   no value of their field.
    func value(
        _ stored: (Int) -> StoredValue?
    ) -> (value: (any StoredComposite)?, unreadable: [Int]) {
        if isOptional, members.allSatisfy({ (stored($0.slot) ?? .null) == .null }) {
            return (nil, [])
        }
        var value: any StoredComposite = type.init()
        var unreadable: [Int] = []
        for (field, member) in zip(fields, members) {
            guard let stored = stored(member.slot) else { continue }
            if !field.set(&value, stored) { unreadable.append(member.slot) }
        }
        return (value, unreadable)
    }

    /// What has to be stored so that the attribute shows `value`: fields that it shows already stay
    /// as they are, also where their stored value is none that this build can read.
    /// - Parameter stored: what is stored in a slot.
    func changes(
        to value: (any StoredComposite)?,
        over stored: (Int) -> StoredValue?
    ) -> [(member: PropertyDefinition, StoredValue)] {
        let shown = value == nil ? nil : self.value(stored).value
        let before = shown.map { self.stored($0) }
        return self.stored(value).enumerated().compactMap { index, new in
            guard let old = stored(new.member.slot) else { return new }
            if old.isSame(as: new.1) { return nil }
            if let before, before[index].1.isSame(as: new.1) { return nil }
            return new
        }
    }

    /// What is stored for a value, by member.
    func stored(_ value: (any StoredComposite)?) -> [(member: PropertyDefinition, StoredValue)] {
        var all = zip(fields, members).map { field, member in
            (member: member, value.map { field.get($0) } ?? .null)
        }
        if isOptional, let presence = members.last {
            all.append((member: presence, value == nil ? .null : .bool(true)))
        }
        return all
    }
}

extension CompositeColumn: AnyProperty {
    var anyDefinitions: [PropertyDefinition] { layout.members }
}

extension OptionalCompositeColumn: AnyProperty {
    var anyDefinitions: [PropertyDefinition] { layout.members }
}

extension ToOneColumn {
    /// A composite attribute of the target.
    public subscript<Composite>(
        dynamicMember member: KeyPath<Target.Columns, CompositeColumn<Target, Composite>>
    ) -> CompositeColumn<Root, Composite> {
        CompositeColumn(
            layout: Target.columns[keyPath: member].layout.behind(_definition.path)
        )
    }

    /// An optional composite attribute of the target.
    public subscript<Composite>(
        dynamicMember member: KeyPath<Target.Columns, OptionalCompositeColumn<Target, Composite>>
    ) -> OptionalCompositeColumn<Root, Composite> {
        OptionalCompositeColumn(
            layout: Target.columns[keyPath: member].layout.behind(_definition.path)
        )
    }
}
