// One change of a store's schema, as a value to show before it is done.

/// One change of a store's schema.
public struct MigrationStep: Hashable, Sendable, CustomStringConvertible {
    /// What is done.
    public enum Kind: String, Hashable, Sendable {
        case setVersion = "set version"
        case addEntity = "add entity"
        case renameEntity = "rename entity"
        case dropEntity = "drop entity and its objects"
        case addAttribute = "add attribute"
        case renameAttribute = "rename attribute"
        case changeAttribute = "change attribute"
        case convertAttribute = "convert attribute"
        case dropAttribute = "drop attribute and its values"
        case addRelationship = "add relationship"
        case renameRelationship = "rename relationship"
        case changeRelationship = "change relationship"
        case dropRelationship = "drop relationship and its links"
        case buildIndex = "build index"
        case dropIndex = "drop index"
    }

    /// Joins the parts of a step.
    package init(kind: Kind, entity: String, detail: String) {
        self.kind = kind
        self.entity = entity
        self.detail = detail
    }

    /// What is done.
    public let kind: Kind
    /// The entity, by its new name; empty for the store as a whole.
    public let entity: String
    /// The property, index or change.
    public let detail: String

    /// One line, as "Item: rename attribute title -> name".
    public var description: String {
        (entity.isEmpty ? "" : "\(entity): ") + kind.rawValue + (detail.isEmpty ? "" : " \(detail)")
    }
}
