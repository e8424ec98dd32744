// What is told of work on the whole store: checkpoints, compactions, migrations, backups.

public import VarveBase

/// A checkpoint: pages of what commits wrote as changes. The store makes them by itself.
public struct CheckpointTrace: Sendable {
    /// The commit whose content it wrote; nil if it failed.
    public var commit: CommitNumber?
    /// Pages that were written.
    public var pages: Int
    /// Their bytes.
    public var bytesWritten: Int
    /// Whether it was written while commits went on; false also if it failed.
    public var isInBackground: Bool
    /// How long it took.
    public var duration: Duration
    /// Why it failed; nil if it did not. No commit is lost; the next checkpoint makes up for it.
    public var failure: TraceFailure?
}

/// A compaction.
public struct CompactionTrace: Sendable {
    /// Bytes of the log before; 0 if it failed.
    public var bytesBefore: Int
    /// Bytes of the log after; 0 if it failed.
    public var bytesAfter: Int
    /// How long it took.
    public var duration: Duration
    /// Why it failed; nil if it did not. The store is as it was then.
    public var failure: TraceFailure?
}

/// A store that was opened with another schema than it had, or whose migration was taken back.
public struct MigrationTrace: Sendable {
    /// The version that it had; nil if taking back failed.
    public var fromVersion: Int?
    /// The version that it was to have; nil if taking back failed.
    public var toVersion: Int?
    /// Whether a migration was taken back (`PersistentContainer.revertMigration`).
    public var isRevert: Bool
    /// Stages that were taken, or begun; automatic steps without a plan are one. 0 for a revert.
    public var stages: Int
    /// Rows that the steps had to go through, each step for itself. 0 for a revert.
    public var rows: Int
    /// How long the opening took, or the revert.
    public var duration: Duration
    /// Why it failed; nil if it did not. The store is as it was then.
    public var failure: TraceFailure?
}

/// A backup, or a store that was restored from one.
public struct BackupTrace: Sendable {
    /// What was done.
    public enum Kind: String, Sendable {
        /// A backup of the whole store; also one that failed.
        case backup
        /// An earlier backup was brought up to date.
        case increment
        /// A backup was made the store.
        case restore
    }
    /// What was done.
    public var kind: Kind
    /// The newest commit in it; nil if it failed.
    public var commit: CommitNumber?
    /// Bytes of the log that were copied.
    public var bytesCopied: Int
    /// Blob files that were copied.
    public var blobsCopied: Int
    /// How long it took.
    public var duration: Duration
    /// Why it failed; nil if it did not.
    public var failure: TraceFailure?
}
