// Relationship columns: to-one and to-many, typed by both entities, with dynamic members for paths.

import VarveBase
import VarveRecords

/// What deleting an object does to the objects that a relationship leads to.
public enum DeleteRule: Hashable, Sendable {
    /// They forget the deleted object.
    case nullify
    /// They are deleted too.
    case cascade
    /// The save fails with `deleteDenied` as long as there are any.
    case deny
    /// They keep a reference to an object that is gone.
    case noAction
}

/// A relationship that leads to at most one object.
///
/// In a request, members of the target's `Columns` are members of it: `$0.city.country.name`.
@dynamicMemberLookup
public struct ToOneColumn<Root: ManagedObject, Target: ManagedObject>: Sendable {
    /// The declaration behind it. The underscore keeps the name free for the target's columns.
    @usableFromInline let _definition: PropertyDefinition

    init(definition: PropertyDefinition) { self._definition = definition }

    /// Declares a to-one relationship.
    /// - Parameters:
    ///   - name: the property's name, as it is stored.
    ///   - inverse: name of the relationship back; both sides are kept equal. One side may leave it
    ///     out.
    ///   - deleteRule: what deleting the owner does to the target.
    ///   - count: to how many objects it must lead when it is saved; nil: to any number.
    ///   - originalName: names that stores may still have it under, the latest first.
    public init(
        _ name: String,
        inverse: String? = nil,
        deleteRule: DeleteRule = .nullify,
        count: (any RangeExpression<Int> & Sendable)? = nil,
        originalName: String...
    ) {
        self.init(
            definition: PropertyDefinition(
                path: PropertyPath(name),
                originalNames: originalName,
                kind: .toOne(
                    .init(
                        target: Target.self,
                        inverse: inverse,
                        deleteRule: deleteRule,
                        isOrdered: false,
                        count: count.map(CountRule.init)
                    )
                )
            )
        )
    }

    /// An attribute of the target.
    public subscript<Value>(
        dynamicMember member: KeyPath<Target.Columns, Column<Target, Value>>
    ) -> Column<Root, Value> {
        Column(
            definition: Target.columns[keyPath: member].definition.behind(_definition.path)
        )
    }

    /// A to-one relationship of the target.
    public subscript<Next>(
        dynamicMember member: KeyPath<Target.Columns, ToOneColumn<Target, Next>>
    ) -> ToOneColumn<Root, Next> {
        ToOneColumn<Root, Next>(
            definition: Target.columns[keyPath: member]._definition.behind(_definition.path)
        )
    }

    /// A to-many relationship of the target.
    public subscript<Next>(
        dynamicMember member: KeyPath<Target.Columns, ToManyColumn<Target, Next>>
    ) -> ToManyColumn<Root, Next> {
        ToManyColumn<Root, Next>(
            definition: Target.columns[keyPath: member].definition.behind(_definition.path)
        )
    }
}

/// A relationship that leads to any number of objects.
public struct ToManyColumn<Root: ManagedObject, Target: ManagedObject>: Sendable {
    let definition: PropertyDefinition

    init(definition: PropertyDefinition) { self.definition = definition }

    /// Declares a to-many relationship.
    /// - Parameters:
    ///   - name: the property's name, as it is stored.
    ///   - inverse: name of the relationship back; both sides are kept equal. One side may leave it
    ///     out.
    ///   - ordered: whether the objects have an order of their own; otherwise they come by object
    ///     ID.
    ///   - deleteRule: what deleting the owner does to the targets.
    ///   - count: to how many objects it must lead when it is saved; nil: to any number.
    ///   - originalName: names that stores may still have it under, the latest first.
    public init(
        _ name: String,
        inverse: String? = nil,
        ordered: Bool = false,
        deleteRule: DeleteRule = .nullify,
        count: (any RangeExpression<Int> & Sendable)? = nil,
        originalName: String...
    ) {
        self.init(
            definition: PropertyDefinition(
                path: PropertyPath(name),
                originalNames: originalName,
                kind: .toMany(
                    .init(
                        target: Target.self,
                        inverse: inverse,
                        deleteRule: deleteRule,
                        isOrdered: ordered,
                        count: count.map(CountRule.init)
                    )
                )
            )
        )
    }
}

/// A relationship that a request can prefetch. Attributes are none, so prefetching one does not
/// compile.
public protocol PrefetchableColumn: Sendable {
    /// The relationship as a path from the request's entity.
    var prefetchPath: PrefetchPath { get }
}

/// A path of relationships to fill together with a request's objects.
public struct PrefetchPath: Hashable, Sendable {
    /// Relationship names from the request's entity on.
    public let names: [String]
    /// The entity that the first name belongs to.
    let root: ObjectIdentifier
}

extension ToOneColumn: PrefetchableColumn, AnyProperty {
    /// The relationship as a path.
    public var prefetchPath: PrefetchPath {
        PrefetchPath(names: _definition.path.names, root: ObjectIdentifier(Root.self))
    }
    var anyDefinitions: [PropertyDefinition] { [_definition] }
}

extension ToManyColumn: PrefetchableColumn, AnyProperty {
    /// The relationship as a path.
    public var prefetchPath: PrefetchPath {
        PrefetchPath(names: definition.path.names, root: ObjectIdentifier(Root.self))
    }
    var anyDefinitions: [PropertyDefinition] { [definition] }
}
