// What is told of the work of contexts: requests, saves, batches, merges.

public import VarveBase

/// A request.
public struct FetchTrace: Sendable {
    /// What was asked.
    public enum Kind: String, Sendable {
        /// The IDs of objects, in their order: for a fetch, a page, IDs, or edits laid over.
        case objects
        /// How many there are.
        case count
    }
    /// What was asked.
    public var kind: Kind
    /// The entity.
    public var entity: String
    /// Filter, order and window as text, with the values that were compared: they may be personal.
    public var request: String
    /// How it was answered, as `explain` prints it; with values that were compared, too.
    public var plan: String
    /// Objects found, or counted; 0 if it failed.
    public var found: Int
    /// Rows that were looked at; of all requests that ran meanwhile.
    public var rowsScanned: Int
    /// Index entries that were walked over; of all requests that ran meanwhile.
    public var entriesScanned: Int
    /// How long it took, without making objects.
    public var duration: Duration
    /// Why it failed; nil if it did not.
    public var failure: TraceFailure?
}

/// A save of a context that had something to save. Batches are told by themselves.
public struct SaveTrace: Sendable {
    /// The context's author.
    public var author: String
    /// New objects of the context; 0 if it failed before they were counted.
    public var inserted = 0
    /// Changed ones.
    public var updated = 0
    /// Deleted ones.
    public var deleted = 0
    /// The commit; nil if nothing was written, or it failed.
    public var commit: CommitNumber?
    /// Bytes written to the store file; those of saves that ran meanwhile count.
    public var bytesWritten = 0
    /// How long it waited for other savers and processes.
    public var waited = Duration.zero
    /// How long it took in all, with hooks and validation, until it was on disk.
    public var duration = Duration.zero
    /// Why it failed; nil if it did not.
    public var failure: TraceFailure?
}

/// A batch operation, with all of its commits.
public struct BatchTrace: Sendable {
    /// What it did.
    public enum Kind: String, Sendable {
        /// `batchInsert` of elements.
        case insert
        /// `batchUpdate`.
        case update
        /// `batchDelete`.
        case delete
        /// `batchInsert` of JSON Lines.
        case jsonLines
        /// `loadFixtures`, one entity of it.
        case fixtures
    }
    /// What it did.
    public var kind: Kind
    /// The entity.
    public var entity: String
    /// The context's author.
    public var author: String
    /// New rows; here and below those of commits that stand, if it failed.
    public var inserted = 0
    /// Rows that were changed.
    public var updated = 0
    /// Rows that are gone.
    public var deleted = 0
    /// Rows that needed nothing.
    public var skipped = 0
    /// Its commits.
    public var commits = 0
    /// The last of them; nil if there is none.
    public var commit: CommitNumber?
    /// Bytes written to the store file; those of saves that ran meanwhile count.
    public var bytesWritten = 0
    /// How long it waited for other savers and processes.
    public var waited = Duration.zero
    /// How long it took in all; what it read was waited for, too.
    public var duration = Duration.zero
    /// Why it failed; nil if it did not.
    public var failure: TraceFailure?
}

/// A context that moved on.
public struct MergeTrace: Sendable {
    /// The context's author.
    public var author: String
    /// The commit that it read.
    public var from: CommitNumber
    /// The one that it reads now.
    public var to: CommitNumber
    /// How long it took.
    public var duration: Duration
}
