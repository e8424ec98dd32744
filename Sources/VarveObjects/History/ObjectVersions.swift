// The versions of one object: what each commit made of its values.
//
// Invariants
// - A version is a value; blobs in it are handles that find their bytes when they are read.
// - Versions are the row's: what links objects without being a value of one (members of a to-many
//   relationship) makes no version. A context of the past shows members.

public import Foundation
public import VarveBase
import VarveEngine
import VarveRecords

/// One version of an object.
public struct ObjectVersion<Entity: ManagedObject>: Sendable {
    /// The commit that made it.
    public let commit: CommitNumber
    /// What that commit did; nil: the store no longer knows, since this is the oldest version that
    /// it can show.
    public let change: CommitNotice.Change?
    /// When it was made, by the clock of its writer; nil: the store does not have the commit any
    /// more.
    public let date: Date?
    /// The author that its context gave; nil: the store does not have the commit any more.
    public let author: String?
    /// The values; nil: the commit deleted the object, and `previous` has its last ones.
    public let values: RowSnapshot<Entity>?
    /// The values before; nil: there were none, or the store does not have them any more.
    public let previous: RowSnapshot<Entity>?
    /// Names of the attributes and to-one relationships that the commit changed; all of them for a
    /// new or deleted object, none for a version whose `previous` is not known.
    public let changedProperties: [String]
}

extension PersistentContainer {
    /// The versions of an object that the store still has, newest first: what each commit made of
    /// its attributes and to-one relationships, and what a deleted object had last.
    ///
    /// They reach back to the oldest commit left (`retainedCommits`), or to the newest change of
    /// the schema.
    ///
    /// - Parameters:
    ///   - id: the object; it may be deleted.
    ///   - limit: at most so many.
    ///   - before: only versions of commits before this one: the last of a page gives the next.
    /// - Returns: none for an object that never was, or was gone before the oldest commit left.
    /// - Throws: `foreignID`, `wrongEntity`, `unknownEntity`, `invalidRequest`, `damaged`,
    ///   `ioFailed`, `closed`.
    /// - Complexity: O(checkpoints), and O(commits between two of them) for each two between which
    ///   the object changed. For a deleted object, O(commits since) until it is found.
    public func versions<Entity>(
        of id: TypedObjectID<Entity>,
        limit: Int = 100,
        before: CommitNumber? = nil
    ) throws -> [ObjectVersion<Entity>] {
        try measuredVersions(of: id, limit: limit, before: before).versions
    }

    /// The same, with the commit frames that it read.
    func measuredVersions<Entity>(
        of id: TypedObjectID<Entity>,
        limit: Int,
        before: CommitNumber? = nil
    ) throws -> (versions: [ObjectVersion<Entity>], framesRead: Int) {
        try checkOpen()
        let model = try check(id)
        guard limit >= 0 else {
            throw StoreError(
                .invalidRequest,
                "a negative number of versions was asked for",
                place: .init(store: place, entity: model.name)
            )
        }
        var versions: [ObjectVersion<Entity>] = []
        if limit == 0 { return ([], 0) }
        let object = id.objectID.object
        var rows = try translating { () throws(RecordError) in
            try store.versions(of: object, in: model.record)
        }
        var newer: (version: RecordVersion, values: RowSnapshot<Entity>?)?
        while versions.count < limit {
            let version = try translating { () throws(RecordError) in try rows.next() }
            let isWanted = version.map { found in before.map { found.number < $0 } ?? true } ?? true
            if !isWanted { continue }
            let values = try version.map { try self.values(of: id, $0, model) }
            if let newer {
                versions.append(made(newer.version, newer.values, values, model))
            }
            guard let version else { break }
            newer = (version, values ?? nil)
        }
        return (versions, rows.framesRead)
    }

    /// A version, once the one before it is known: nil when there is none.
    private func made<Entity>(
        _ version: RecordVersion,
        _ values: RowSnapshot<Entity>?,
        _ older: RowSnapshot<Entity>??,
        _ model: EntityModel
    ) -> ObjectVersion<Entity> {
        let previous = has(.versionsForgetTheOld) ? values : older ?? nil
        // A new object has no version before it, like the oldest one that is left.
        let isOldest = older == nil && version.isOldest
        let change: CommitNotice.Change? =
            if isOldest { nil } else if values == nil { .deleted } else {
                previous == nil ? .inserted : .updated
            }
        let names = model.properties.indices.filter { slot in
            guard model.properties[slot].column != nil, !isOldest else { return false }
            guard let values, let previous else { return true }
            return !values.values[slot].isSame(as: previous.values[slot])
        }
        return ObjectVersion(
            commit: version.number,
            change: change,
            date: version.commit.map {
                Date(timeIntervalSince1970: Double($0.timeMicroseconds) / 1_000_000)
            },
            author: version.commit?.author,
            values: values,
            previous: previous,
            changedProperties: names.map { model.properties[$0].name }
        )
    }

    private func values<Entity>(
        of id: TypedObjectID<Entity>,
        _ version: RecordVersion,
        _ model: EntityModel
    ) throws(StoreError) -> RowSnapshot<Entity>? {
        guard let row = version.row else { return nil }
        let blobs = BlobSource(keeper: .past(version.shownAt), container: self)
        return try rowSnapshot(id, model, blobs) { column throws(RecordError) in
            try version.value(of: row, column)
        }
    }

    /// The values of a row as a value.
    func rowSnapshot<Entity>(
        _ id: TypedObjectID<Entity>,
        _ model: EntityModel,
        _ blobs: BlobSource,
        _ read: (ColumnID) throws(RecordError) -> StoredValue
    ) throws(StoreError) -> RowSnapshot<Entity> {
        var values: [StoredValue] = []
        var targets: [Int: EntityID] = [:]
        values.reserveCapacity(model.properties.count)
        for (slot, property) in model.properties.enumerated() {
            var value = StoredValue.null
            if let column = property.column {
                value = try translating { () throws(RecordError) in try read(column) }
            }
            values.append(value)
            if let relationship = property.relationship { targets[slot] = relationship.target }
        }
        return RowSnapshot(
            id: id,
            values: values,
            blobs: values.contains(where: \.isBlob) ? blobs : nil,
            targets: targets
        )
    }

    /// The values that objects had at a commit, for those that existed.
    func values<Entity>(
        of ids: [TypedObjectID<Entity>],
        at commit: CommitNumber
    ) throws -> [TypedObjectID<Entity>: RowSnapshot<Entity>] {
        let model = try self.model(of: Entity.self)
        for id in ids { _ = try check(id) }
        let past = try pastSnapshot(at: .commit(commit), for: PinOwner(.snapshot))
        let rows = try translating { () throws(RecordError) in
            try past.rows(model.record.id, ids.map(\.objectID.object))
        }
        var values: [TypedObjectID<Entity>: RowSnapshot<Entity>] = [:]
        let blobs = BlobSource(keeper: .past(commit), container: self)
        for (id, row) in zip(ids, rows) {
            guard let row else { continue }
            values[id] = try rowSnapshot(id, model, blobs) { column throws(RecordError) in
                try past.value(of: row, column)
            }
        }
        return values
    }
}
