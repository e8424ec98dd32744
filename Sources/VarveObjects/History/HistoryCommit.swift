// One commit of the history: who made it, when, and which objects it changed.
//
// Invariants
// - A value: nothing of the store is held by it, and it can be kept.
// - It says what is known of its changes; what a store no longer knows is never told as nothing.

public import Foundation
public import VarveBase
import VarveEngine
import VarveRecords

/// One commit, as `PersistentContainer.history(after:)` tells it.
public struct HistoryCommit: Sendable {
    /// What the store still knows of the changes of a commit.
    public enum Known: Hashable, Sendable {
        /// All of them, and nothing else.
        case exactly
        /// After a crash it was written again together with those before it: these are the changes
        /// of all, from this commit on.
        case together(since: CommitNumber)
        /// They are among those of this later commit, with which it was written again.
        case later(in: CommitNumber)
        /// A compaction kept its state and nothing of what led to it. Only the oldest commit left
        /// is like this.
        case unknown
    }

    /// The commit.
    public let number: CommitNumber
    /// The same as a token: ask for what comes after it when this one was dealt with.
    public let token: HistoryToken
    /// When it was made, by the clock of its writer.
    public let date: Date
    /// The author that its context gave.
    public let author: String
    /// What is known of its changes.
    public let known: Known
    /// Whether it changed the schema.
    public let changesSchema: Bool
    private let changed: ChangedObjectIDs
    private let container: PersistentContainer

    init(_ entry: HistoryEntry, _ container: PersistentContainer) {
        let commit = entry.summary
        number = commit.number
        token = HistoryToken(
            store: container.identity,
            CommitIdentity(epoch: commit.epoch, number: commit.number.rawValue)
        )
        date = Date(timeIntervalSince1970: Double(commit.timeMicroseconds) / 1_000_000)
        author = commit.author
        known =
            switch entry.known {
            case .exactly: .exactly
            case .together(let first): .together(since: first)
            case .later(let last): .later(in: last)
            case .unknown: .unknown
            }
        changesSchema = entry.changes.schemaChanged
        changed = ChangedObjectIDs(entry.changes, container)
        self.container = container
    }

    // MARK: Which objects

    /// What the commit did to the objects of an entity.
    ///
    /// What links objects without being a value of one of them (members of a many-to-many or
    /// ordered relationship) is no change of an object.
    /// - Complexity: O(objects).
    public func changes<Entity: ManagedObject>(of type: Entity.Type) -> EntityChanges<Entity> {
        EntityChanges(
            inserted: changed.ids(of: type, .inserted),
            updated: changed.ids(of: type, .updated),
            deleted: changed.ids(of: type, .deleted)
        )
    }

    /// The objects of an entity to which the commit did something, by ID.
    /// - Complexity: O(objects).
    public func ids<Entity: ManagedObject>(
        of type: Entity.Type,
        _ change: CommitNotice.Change
    ) -> [Entity.ID] {
        changed.ids(of: type, change)
    }

    /// All objects to which the commit did something.
    /// - Complexity: O(objects).
    public func ids(_ change: CommitNotice.Change) -> [ManagedObjectID] { changed.ids(change) }

    /// How many objects were inserted, changed or deleted. O(entities).
    public var changedObjects: Int { changed.count }

    /// About what it weighs.
    var runs: Int { changed.runs }

    func changes(anyOf entities: Set<EntityID>) -> Bool { changed.contains(entities) }

    // MARK: Their values

    /// The values that objects have after this commit, for those that exist.
    /// - Throws: `commitExpired`, `schemaMismatch`, `damaged`, `ioFailed`, `closed`.
    /// - Complexity: that of `newContext(at:)`, and of reading the rows.
    public func values<Entity>(
        of ids: [TypedObjectID<Entity>]
    ) throws -> [TypedObjectID<Entity>: RowSnapshot<Entity>] {
        try container.values(of: ids, at: number)
    }

    /// The values that objects had before this commit, for those that existed: of one that it
    /// deleted, the last. `versions(of:)` tells them for one object.
    /// - Throws: `commitExpired` when the commit before is not kept; `schemaMismatch`, `damaged`,
    ///   `ioFailed`, `closed`.
    /// - Complexity: that of `newContext(at:)`, and of reading the rows.
    public func valuesBefore<Entity>(
        of ids: [TypedObjectID<Entity>]
    ) throws -> [TypedObjectID<Entity>: RowSnapshot<Entity>] {
        var first = number
        if case .together(let since) = known { first = since }
        if container.has(.historyForgetsTheOld) { first = first.next }
        let before = first.rawValue - min(1, first.rawValue)
        return try container.values(of: ids, at: CommitNumber(before))
    }
}

/// The objects of one entity that a commit inserted, changed and deleted, each list by ID.
public struct EntityChanges<Entity: ManagedObject>: Hashable, Sendable {
    /// New objects.
    public let inserted: [Entity.ID]
    /// Objects with other values.
    public let updated: [Entity.ID]
    /// Objects that are gone.
    public let deleted: [Entity.ID]

    /// Whether there are none.
    public var isEmpty: Bool { inserted.isEmpty && updated.isEmpty && deleted.isEmpty }
}
