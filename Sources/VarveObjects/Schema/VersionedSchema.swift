// An app's schema: its version and its entities.

/// The entities that an app stores, with a version number that grows when they change.
public protocol VersionedSchema {
    /// The app's number of this schema. A store with a higher one throws `schemaTooNew`.
    static var version: Int { get }
    /// Every entity, in any order; relationships lead to these only.
    static var entities: [any ManagedObject.Type] { get }
}
