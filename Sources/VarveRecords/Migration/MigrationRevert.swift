// A migration taken back: the commit before it once more, as a new commit.
//
// Invariants
// - Nothing but the commit before is brought back, whole: rows, links, indexes, large values,
//   blobs.
// - Numbers of entities, columns and trees that the migration gave out stay given.
// - Commits that came after the migration go only when that was said.

public import VarveBase
public import VarveEngine
import VarveFormat

/// What a revert did.
public struct RevertedSchema: Hashable, Sendable {
    /// The version of the schema that was there.
    public var from: UInt32
    /// The version that is there now.
    public var to: UInt32
    /// The commit whose content is there now.
    public var restored: CommitNumber
    /// Commits behind the migration whose changes are gone.
    public var discarded: Int
}

/// Why a migration cannot be taken back.
public enum RevertRefusal: Error, Sendable {
    /// The store has had one schema since it was made, as far as it knows.
    case noMigration(oldest: CommitNumber)
    /// Commits came after it.
    case laterCommits(migration: CommitNumber, count: Int)
}

extension RecordStore {
    /// Takes the newest change of the schema back, and with it every commit since.
    ///
    /// - Parameter discardsLater: whether commits after it may go; false: there must be none.
    ///
    /// Throws `RevertRefusal`, `engine` with `notRetained` when the commit before is gone.
    /// - Complexity: O(commits since + pages and blobs that differ).
    public static func revertMigration(
        _ location: StoreLocation,
        discardsLater: Bool,
        options: RecordOptions = RecordOptions()
    ) throws -> RevertedSchema {
        let store = try RecordStore.openAsStored(location, options: options)
        do {
            let result = try store.revertMigration(discardsLater: discardsLater)
            try store.close()
            return result
        } catch {
            try? store.engine.close()
            throw error
        }
    }

    private func revertMigration(discardsLater: Bool) throws -> RevertedSchema {
        var result: RevertedSchema?
        // Inside the transaction: neither a commit nor a compaction comes in between.
        try writeAny(author: "revert of a migration") { transaction in
            let (migration, before) = try newestMigration()
            let later = Int(clamping: transaction.number.rawValue - migration.rawValue - 1)
            if later > 0, !discardsLater {
                throw RevertRefusal.laterCommits(migration: migration, count: later)
            }
            let past = try RecordError.ofEngine { () throws(EngineError) in
                try engine.snapshot(at: before, for: PinOwner(.snapshot, label: "revert"))
            }
            guard let now = try record(transaction.schema), let old = try record(past.schema) else {
                throw RevertRefusal.noMigration(oldest: before)
            }
            let entities = Dictionary(
                (now.entities + old.entities).map { ($0.id, $0.tree) },
                uniquingKeysWith: { first, _ in first }
            )
            try transaction.restoreTrees(
                from: past,
                entities: entities.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
            )
            let next = old.after(now)
            try transaction.replaceSchema(next.encoded(), version: next.revision)
            result = RevertedSchema(
                from: now.version,
                to: old.version,
                restored: before,
                discarded: later
            )
        }
        guard let result else { preconditionFailure("a commit was made, or an error thrown") }
        return result
    }

    /// The commit that made the schema what it is, and the one before it.
    private func newestMigration() throws -> (migration: CommitNumber, before: CommitNumber) {
        let current = engine.snapshot().schemaVersion
        var last: CommitNumber?
        while true {
            let page = try commits(1_000, below: last)
            for commit in page {
                if commit.schemaVersion != current, let last { return (last, commit.number) }
                last = commit.number
            }
            if page.count < 1_000 { break }
        }
        let oldest = try retainedCommits().lowerBound
        // The first commit of a store is that of its schema.
        if oldest.rawValue <= 1 { throw RevertRefusal.noMigration(oldest: oldest) }
        throw RecordError.engine(
            EngineError(
                .notRetained,
                "the commit before the migration is not kept any more; the oldest commit left is"
                    + " \(oldest.rawValue)"
            )
        )
    }
}

extension SchemaRecord {
    /// The same schema as the one that follows another: no number is given out twice.
    fileprivate func after(_ now: SchemaRecord) -> SchemaRecord {
        var next = self
        next.revision = now.revision + 1
        next.nextEntity = max(nextEntity, now.nextEntity)
        next.nextTree = max(nextTree, now.nextTree)
        for index in next.entities.indices {
            let other = now.entities.first { $0.id == next.entities[index].id }
            next.entities[index].nextColumn = max(
                next.entities[index].nextColumn,
                other?.nextColumn ?? 0
            )
        }
        return next
    }
}
