// Who holds a commit: a kind, and a name where one was given.

/// What holds a commit.
public enum PinKind: String, Sendable, Hashable, CaseIterable {
    /// A read transaction.
    case snapshot
    /// A context of managed objects.
    case context
    /// An open blob.
    case blob
    /// A backup that runs.
    case backup
    /// A compaction that runs.
    case compaction
}

/// Who holds a commit, for statistics.
public struct PinOwner: Sendable, Hashable {
    /// What it is.
    public var kind: PinKind
    /// The name that it was given, or an empty text.
    public var label: String

    /// Joins the two.
    public init(_ kind: PinKind, label: String = "") {
        self.kind = kind
        self.label = label
    }
}
