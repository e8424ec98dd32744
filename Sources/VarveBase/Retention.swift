// Which earlier commits a store keeps: a setting that every layer names.

/// Which commits before the newest one a compaction keeps, so that they can be shown again.
///
/// Until a compaction runs, all of them are in the file. Whatever is kept, snapshots that are held
/// stay readable.
public enum Retention: Sendable, Hashable {
    /// The newest commit alone.
    case newest
    /// The last days: every commit since, and the state at their beginning.
    case days(Int)
    /// So many commits, the newest among them.
    case commits(Int)
    /// Commits in the last bytes of the log.
    case bytes(UInt64)
    /// Every commit.
    case all
}
