// A migration taken back, so that an older build can open the store again.

public import Foundation
import VarveBase
package import VarveEngine
import VarveRecords

/// What `PersistentContainer.revertMigration` did.
public struct RevertedMigration: Hashable, Sendable {
    /// The version of the schema that the store had.
    public let fromVersion: Int
    /// The version that it has now.
    public let toVersion: Int
    /// The commit whose content the store has again.
    public let restored: CommitNumber
    /// Commits after the migration whose changes are gone.
    public let discardedCommits: Int
}

extension PersistentContainer {
    /// Takes the newest migration of a store back: schema, rows and blobs become those of the
    /// commit before it, as a new commit. The store must not be open in this process.
    ///
    /// It can be done as long as the store has that commit: `ContainerOptions.retention` says what
    /// a compaction keeps, and until one runs all commits are there. Taking back what was taken
    /// back brings the migration again.
    ///
    /// - Parameters:
    ///   - url: the store.
    ///   - discardingLaterCommits: commits after the migration have rows of the new schema and
    ///     cannot be kept. True: their changes go. False, the default: if there are any, nothing is
    ///     done, and `revertConflict` says how many.
    ///   - options: how the store is opened.
    /// - Throws: `StoreError`: `revertConflict`; `commitExpired` when the commit before, or a blob
    ///   of it, is gone; `invalidRequest` when the store has had one schema since it was made; and
    ///   what opening throws. The store is as it was then.
    /// - Complexity: O(commits since the migration + pages that differ).
    @discardableResult
    public static func revertMigration(
        at url: URL,
        discardingLaterCommits: Bool = false,
        options: ContainerOptions = ContainerOptions()
    ) async throws -> RevertedMigration {
        try await onThread {
            try revertNow(
                try location(of: url),
                place: url.path,
                discardingLaterCommits,
                options
            )
        }
    }

    /// The same wherever the store lies.
    package static func revertNow(
        _ location: StoreLocation,
        place: String,
        _ discardsLater: Bool,
        _ options: ContainerOptions
    ) throws -> RevertedMigration {
        var options = options
        options.createIfMissing = false
        return try traced(options.trace, RevertedMigration.event) {
            do {
                let result = try RecordStore.revertMigration(
                    location,
                    discardsLater: discardsLater,
                    options: try options.records(place, [])
                )
                return RevertedMigration(
                    fromVersion: Int(result.from),
                    toVersion: Int(result.to),
                    restored: result.restored,
                    discardedCommits: result.discarded
                )
            } catch let error as RecordError {
                throw StoreError.translating(error, store: place, isOpening: true)
            } catch let refusal as RevertRefusal {
                throw StoreError.refusing(refusal, place)
            }
        }
    }
}

extension StoreError {
    fileprivate static func refusing(_ refusal: RevertRefusal, _ place: String) -> StoreError {
        switch refusal {
        case .noMigration:
            StoreError(
                .invalidRequest,
                "the store has had one schema since it was made: there is no migration to take "
                    + "back",
                place: .init(store: place)
            )
        case .laterCommits(let migration, let count):
            StoreError(
                .revertConflict,
                "\(count) \(count == 1 ? "commit was" : "commits were") made after the migration, "
                    + "commit \(migration.rawValue), and would be gone with it",
                place: .init(store: place, commit: migration),
                suggestion: "Say discardingLaterCommits: true if their changes may go; "
                    + "history(after:) tells what they are."
            )
        }
    }
}
