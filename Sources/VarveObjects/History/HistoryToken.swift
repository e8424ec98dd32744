// A place in the history of a store that an app can keep: what came after it can be asked for.
//
// Invariants
// - A token names one commit for ever: number alone would name another one after a store was
//   recovered, or put back from a backup, so it has the epoch of the opening, too.

import Foundation
public import VarveBase
import VarveEngine
import VarveRecords

/// A place in the history of a store: one commit. Keep it, across launches too, and ask
/// `PersistentContainer.history(after:)` for what came later.
public struct HistoryToken: Hashable, Sendable {
    let store: UUIDValue
    /// The commit.
    public let commit: CommitNumber
    /// 0: not known.
    let epoch: UInt64

    init(store: UUIDValue, _ commit: CommitIdentity) {
        self.store = store
        self.commit = CommitNumber(commit.number)
        epoch = commit.epoch
    }

    private static let scheme = "varve-history:"

    /// Text form `varve-history:STORE/COMMIT/EPOCH`.
    public var text: String {
        let epoch = String(epoch, radix: 16)
        return "\(Self.scheme)\(UUID(store).uuidString)/\(commit.rawValue)/\(epoch)"
    }

    /// Reads the text form; nil if `text` is none.
    public init?(text: String) {
        guard text.hasPrefix(Self.scheme) else { return nil }
        let parts = text.dropFirst(Self.scheme.count).split(
            separator: "/",
            omittingEmptySubsequences: false
        )
        guard parts.count == 3, let uuid = UUID(uuidString: String(parts[0])),
            let number = UInt64(parts[1]), let epoch = UInt64(parts[2], radix: 16)
        else { return nil }
        self.init(store: UUIDValue(uuid), CommitIdentity(epoch: epoch, number: number))
    }
}

extension HistoryToken: CustomStringConvertible {
    /// The text form.
    public var description: String { text }
}

extension HistoryToken: Codable {
    /// Reads the text form.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let token = HistoryToken(text: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "not the text form of a history token"
            )
        }
        self = token
    }

    /// Writes the text form.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}

extension PersistentContainer {
    /// The newest commit, as a token.
    /// - Throws: `damaged`, `ioFailed`, `closed`.
    /// - Complexity: O(log n).
    public var historyToken: HistoryToken {
        get throws {
            try checkOpen()
            return try translating { () throws(RecordError) in
                HistoryToken(store: identity, try store.snapshot().identity())
            }
        }
    }

    /// A token of a commit: of one that `commits` told of, or that a save returned.
    /// - Throws: `unknownCommit` when no commit has that number; `damaged`, `ioFailed`, `closed`.
    /// - Complexity: O(log n).
    public func historyToken(at commit: CommitNumber) throws -> HistoryToken {
        try checkOpen()
        let newest = try translating { () throws(RecordError) in try store.snapshot() }
        guard commit.rawValue > 0, commit <= newest.number else {
            throw StoreError.unknownCommit(commit, newest.number, self)
        }
        return try translating { () throws(RecordError) in
            HistoryToken(store: identity, try newest.identity(of: commit))
        }
    }

    /// Whether the store still has everything that came after a token, so that `history(after:)`
    /// does not throw `commitExpired`.
    /// - Throws: `foreignID`, `unknownCommit`, `damaged`, `ioFailed`, `closed`.
    /// - Complexity: O(log n + checkpoints since).
    public func hasHistory(after token: HistoryToken) throws -> Bool {
        if case .retained = try standing(of: token) { return true }
        return false
    }

    /// The commits that `newContext(at:)` can show, and after which history can be asked for.
    ///
    /// Before the newest change of the schema they cannot be shown, though their changes are told.
    /// - Throws: `damaged`, `ioFailed`, `closed`.
    /// - Complexity: O(checkpoints).
    public var retainedCommits: ClosedRange<CommitNumber> {
        get throws {
            try checkOpen()
            return try translating { () throws(RecordError) in try store.retainedCommits() }
        }
    }

    /// Throws unless the store has everything that came after a token.
    func check(_ token: HistoryToken) throws(StoreError) {
        if case .expired(let oldest) = try standing(of: token) {
            throw StoreError.expired(
                "what came after commit \(token.commit.rawValue)",
                oldest,
                self
            )
        }
    }

    private func standing(of token: HistoryToken) throws(StoreError) -> RememberedCommit {
        try checkOpen()
        guard token.store == identity else {
            throw StoreError(
                .foreignID,
                "the history token belongs to another store",
                place: .init(store: place, commit: token.commit),
                suggestion: "Keep tokens of different stores apart; for this one begin with "
                    + "container.historyToken."
            )
        }
        let commit = CommitIdentity(epoch: token.epoch, number: token.commit.rawValue)
        let standing = try translating { () throws(RecordError) in
            try store.standing(of: commit)
        }
        if case .neverThere = standing {
            let newest = try translating { () throws(RecordError) in try store.snapshot().number }
            throw StoreError.unknownCommit(token.commit, newest, self)
        }
        return standing
    }
}

extension ManagedObjectContext {
    /// The commit that the context reads, as a token; nil before its first read.
    /// - Throws: `damaged`, `ioFailed`, `closed`.
    /// - Complexity: O(log n).
    public var historyToken: HistoryToken? {
        get throws {
            try container.checkOpen()
            guard let snapshot else { return nil }
            return try container.translating { () throws(RecordError) in
                HistoryToken(store: container.identity, try snapshot.identity())
            }
        }
    }
}

extension StoreError {
    /// What keeps a commit from being shown, or its changes from being told.
    static func expired(
        _ what: String,
        _ oldest: CommitNumber,
        _ container: PersistentContainer
    ) -> StoreError {
        StoreError(
            .commitExpired,
            "\(what) is not in the store any more: the oldest commit left is \(oldest.rawValue)",
            place: .init(store: container.place, commit: oldest),
            suggestion: moreHistory
        )
    }

    /// What helps when a commit is not kept.
    static let moreHistory =
        "Read anew what is wanted, and go on from container.historyToken. A compaction keeps the "
        + "newest commit and those that are read; ContainerOptions.retention asks for more."

    /// No commit has that number, or another one.
    static func unknownCommit(
        _ commit: CommitNumber,
        _ newest: CommitNumber,
        _ container: PersistentContainer
    ) -> StoreError {
        StoreError(
            .unknownCommit,
            "commit \(commit.rawValue) was never in this store, whose newest is \(newest.rawValue)",
            place: .init(store: container.place, commit: commit),
            suggestion: "The store was put back from a backup, or recovered, or lost unproven "
                + "commits in a crash. Read anew what is wanted, and go on from "
                + "container.historyToken."
        )
    }
}
