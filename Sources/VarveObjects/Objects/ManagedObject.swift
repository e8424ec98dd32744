// The protocol of stored classes, with creation, identity and state.
//
// Invariants
// - Identity, state and description load nothing.

public import Observation
import VarveBase
import VarveRecords

/// A class whose instances are kept in a store.
///
/// The macro `@Entity` writes everything but the conformance itself; a class written by hand
/// follows the same shape: a `Columns` struct, a `storage`, and one accessor per property that
/// calls `storedValue` and `setStoredValue`. Objects belong to their context and are not Sendable;
/// pass `id` or `snapshot()`.
public protocol ManagedObject: AnyObject, Hashable, Identifiable, Observable, SendableMetatype,
    CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable
where ID == TypedObjectID<Self> {
    /// The entity's columns, as stored properties in their order.
    associatedtype Columns: Sendable
    /// The entity's name, as it is stored.
    static var entityName: String { get }
    /// The name that a store may still have the entity under.
    static var originalEntityNames: [String] { get }
    /// The entity's columns: a `static let`.
    static var columns: Columns { get }
    /// Indexes beyond those of relationships and constraints.
    static var indexes: [EntityIndex] { get }
    /// Combinations of properties that no two objects may share.
    static var uniqueConstraints: [EntityConstraint] { get }
    /// The name in `columns` of each stored property, by its key path: for requests that are
    /// written with Foundation's `#Predicate` and `SortDescriptor`. Without it those are refused.
    /// `\.id` and `\.objectID` are in it under their own names, if predicates ask about them.
    static var keyPaths: [PartialKeyPath<Self>: String] { get }
    /// What the library keeps in the object.
    var storage: ObjectStorage { get set }
    /// Makes an object around its storage. Apps call `init(in:)`.
    init(storage: consuming ObjectStorage)

    /// Called at save for each inserted and changed object; each `report.fail` makes the save fail.
    /// It sees what its context shows, before that is held against newer commits. It may only
    /// look: an edit made here is refused, and the save throws `reentrantSave`.
    func validate(_ report: inout ValidationReport)
    /// Called at save for each object that it deletes and that this context finds, cascades
    /// included; each `report.fail` makes the save fail. As `validate(_:)` it may only look.
    /// Batches delete rows without objects and do not call it: `deleteRule: .deny` holds for them
    /// too.
    func validateForDeletion(_ report: inout ValidationReport)
    /// Called once, when the object was made with `init(in:)`.
    func awakeFromInsert()
    /// Called each time a fault was filled.
    func awakeFromFetch()
    /// Called once before a save writes or deletes the object. Edits made here are saved too.
    func willSave()
    /// Called after a save for each object that it was about: written, deleted, replaced by another
    /// one, or given up by a merge policy. Edits made here belong to the next save.
    func didSave()
    /// Called before delete rules run for the object, once for each that this context finds: not
    /// for those that only the newest commit, at a save, shows to be in a cascade's reach. It may
    /// edit; what it takes out of a cascade's reach is not deleted.
    func prepareForDeletion()
    /// Called when the object's values were dropped.
    func didTurnIntoFault()
}

extension ManagedObject {
    /// Not renamed.
    public static var originalEntityNames: [String] { [] }
    /// None: Foundation's predicates are refused.
    public static var keyPaths: [PartialKeyPath<Self>: String] { [:] }
    /// None.
    public static var indexes: [EntityIndex] { [] }
    /// None.
    public static var uniqueConstraints: [EntityConstraint] { [] }
    /// Nothing to check.
    public func validate(_ report: inout ValidationReport) { report.isByDefault = true }
    /// Nothing to check.
    public func validateForDeletion(_ report: inout ValidationReport) {}
    /// Nothing to do.
    public func awakeFromInsert() {}
    /// Nothing to do.
    public func awakeFromFetch() {}
    /// Nothing to do.
    public func willSave() {}
    /// Nothing to do.
    public func didSave() {}
    /// Nothing to do.
    public func prepareForDeletion() {}
    /// Nothing to do.
    public func didTurnIntoFault() {}
}

extension ManagedObject {
    /// Makes a new object in `context`. It has its permanent ID at once, its defaults, and is
    /// written by the context's next save. The context keeps it until then.
    ///
    /// If the container's schema does not list the entity, the object belongs to no context and
    /// the next save throws `unknownEntity`.
    public init(in context: ManagedObjectContext) {
        self.init(storage: context.storageForInsert(Self.self))
        context.registerInserted(self)
        awakeFromInsert()
    }

    /// The object's permanent identity. No I/O.
    public var objectID: ManagedObjectID {
        ManagedObjectID(
            store: storage.core.container.identity,
            entity: storage.model.record.id,
            object: storage.object
        )
    }

    /// The object's permanent identity, typed by its entity. No I/O.
    public var id: TypedObjectID<Self> { TypedObjectID(objectID) }

    /// Whether the values are not in memory. True says nothing about the row cache:
    /// `container.isRowCached(_:)` does.
    public var isFault: Bool { storage.isFault }

    /// Whether the object was made in its context and is not saved yet.
    public var isInserted: Bool { storage.state.contains(.inserted) }

    /// Whether a saved object has unsaved edits.
    public var isUpdated: Bool {
        storage.state.contains(.updated) && storage.state.isDisjoint(with: [.inserted, .deleted])
    }

    /// Whether the next save deletes the object, or its row is gone already. Observed.
    public var isDeleted: Bool {
        trackState(\.isDeleted, .isDeleted)
        return storage.isDeleted
    }

    /// Whether the next save writes anything for the object. Observed.
    public var hasChanges: Bool {
        trackState(\.hasChanges, .hasChanges)
        return storage.hasChanges
    }

    /// The context that the object belongs to; nil once that was reset or has ended.
    ///
    /// A context lives as long as one of its objects. One with unsaved edits, or with undo steps,
    /// is the app's to keep: it ends when the app lets it go, and its edits with it.
    public var context: ManagedObjectContext? {
        if storage.state.contains(.invalid) { return nil }
        if storage.core.context == nil { noteEndedContext(.context) }
        return storage.core.context
    }

    /// The failure of the last implicit read of this object, until one succeeds.
    public var readFailure: StoreError? {
        storage.core.context?.failures[storage.object]
    }

    /// Two references to the same object.
    public static func == (left: Self, right: Self) -> Bool { left === right }

    /// By identity of the object in memory.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
