// The name of an attempt to commit, and what can have become of it.

/// Names one attempt to commit: two that got the same number are told apart by their openings.
public struct CommitIdentity: Hashable, Sendable, Codable {
    /// The opening that made it.
    public var epoch: UInt64
    /// The number that it has, or would have.
    public var number: UInt64

    /// Joins the parts.
    public init(epoch: UInt64, number: UInt64) {
        self.epoch = epoch
        self.number = number
    }
}

/// What became of a commit.
public enum CommitOutcome: String, Sendable, Hashable, Codable {
    /// It is in the store, for good.
    case present
    /// It is not in the store and never will be.
    case absent
    /// This opening cannot tell: it failed itself, or may only read; or the commit is from before
    /// the store kept account, or older than the account reaches.
    case unknown
}
