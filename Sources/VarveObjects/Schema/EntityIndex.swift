// Indexes and uniqueness constraints as an entity declares them.

import VarveRecords

/// A property that an index can run over: a column, a to-one relationship, or either with a
/// direction.
public protocol IndexTerm: Sendable {
    /// Name and direction.
    var indexTerm: IndexTermDescription { get }
}

/// One property of an index.
public struct IndexTermDescription: Hashable, Sendable {
    let name: String
    let isDescending: Bool
}

extension Column: IndexTerm {
    /// Ascending.
    public var indexTerm: IndexTermDescription {
        IndexTermDescription(name: definition.name, isDescending: false)
    }
}

extension ToOneColumn: IndexTerm {
    /// Ascending by the target's ID.
    public var indexTerm: IndexTermDescription {
        IndexTermDescription(name: _definition.name, isDescending: false)
    }
}

extension SortTerm: IndexTerm {
    /// In the term's direction.
    public var indexTerm: IndexTermDescription {
        IndexTermDescription(name: path.names.last ?? "", isDescending: isDescending)
    }
}

/// An index over one or several properties of an entity.
public struct EntityIndex: Hashable, Sendable {
    let terms: [IndexTermDescription]

    /// An index over `terms`, most significant first.
    public init(_ terms: any IndexTerm...) {
        self.terms = terms.map(\.indexTerm)
    }
}

/// What a save does with a new object whose unique values exist already.
public enum UniquenessPolicy: Hashable, Sendable {
    /// The save fails and lists every duplicate.
    case error
    /// The existing object takes the new one's values and keeps its own ID and relationships.
    case upsert
    /// The new object is dropped.
    case ignore
}

/// A combination of properties that no two objects of an entity may share. Nil equals nothing.
public struct EntityConstraint: Hashable, Sendable {
    let properties: [String]
    let policy: UniquenessPolicy

    /// A constraint over `terms`, compared together.
    public init(_ terms: any IndexTerm..., onConflict policy: UniquenessPolicy = .error) {
        self.properties = terms.map(\.indexTerm.name)
        self.policy = policy
    }
}
