// The commits after a token, read a page at a time: as an async sequence, or with a cursor where
// nothing can be awaited.
//
// Invariants
// - It ends with the commit that was the newest when it was asked for, and keeps that one pinned.
// - Whatever its length, a page of commits is in memory, and 8 bytes for each commit between two
//   checkpoints.
// - The log is never read on a cooperative thread: the async form reads on the container's pool.

import VarveBase
import VarveEngine
import VarveRecords

/// Commits of a store, oldest first: `for try await commit in try container.history(after: token)`.
///
/// Where nothing can be awaited, `makeCursor()` reads them one by one, and `commits(_:)` gives an
/// array. Each loop begins anew.
public struct CommitHistory: AsyncSequence, Sendable {
    /// One for each commit.
    public typealias Element = HistoryCommit
    /// What reading throws, and `CancellationError`.
    public typealias Failure = any Error

    fileprivate let container: PersistentContainer
    fileprivate let stream: CommitStream
    fileprivate let filter: HistoryFilter

    /// Begins with the oldest commit.
    public func makeAsyncIterator() -> Iterator { Iterator(cursor: makeCursor()) }

    /// Begins with the oldest commit, for code that cannot wait.
    public func makeCursor() -> HistoryCursor {
        HistoryCursor(container: container, stream: stream, filter: filter)
    }

    /// The commits as an array, at most so many.
    /// - Throws: `damaged`, `ioFailed`, `closed`.
    /// - Complexity: O(commits that are passed + their changes).
    public func commits(_ max: Int = .max) throws -> [HistoryCommit] {
        var cursor = makeCursor()
        var commits: [HistoryCommit] = []
        while commits.count < max, let commit = try cursor.next() { commits.append(commit) }
        return commits
    }

    /// One loop over the commits.
    public struct Iterator: AsyncIteratorProtocol {
        private var cursor: HistoryCursor
        /// The next one last.
        private var page: [HistoryCommit] = []
        private var isAtEnd = false

        fileprivate init(cursor: HistoryCursor) { self.cursor = cursor }

        /// The next commit; nil after the newest.
        /// - Throws: `damaged`, `ioFailed`, `closed`; `CancellationError` when the task was
        ///   cancelled.
        public mutating func next() async throws -> HistoryCommit? {
            if page.isEmpty, !isAtEnd {
                try Task.checkCancellation()
                let before = cursor
                let (read, after) = try await cursor.container.workers.run {
                    var cursor = before
                    return (try cursor.page(), cursor)
                }
                page = read.reversed()
                cursor = after
                isAtEnd = read.isEmpty
            }
            return page.popLast()
        }
    }
}

/// Commits one by one: `while let commit = try cursor.next()`.
public struct HistoryCursor: Sendable {
    fileprivate let container: PersistentContainer
    private var stream: CommitStream
    private let filter: HistoryFilter
    private static let pageCommits = 64
    /// Changed objects, consecutive ones counting as one, that end a page.
    private static let pageRuns = 4_096

    fileprivate init(
        container: PersistentContainer,
        stream: CommitStream,
        filter: HistoryFilter
    ) {
        (self.container, self.stream, self.filter) = (container, stream, filter)
    }

    /// The next commit; nil after the newest.
    /// - Throws: `damaged`, `ioFailed`, `closed`.
    /// - Complexity: O(commits that are passed + its changes). The first one after a checkpoint
    ///   also costs the commits up to the next checkpoint.
    public mutating func next() throws -> HistoryCommit? {
        try container.checkOpen()
        while true {
            let entry: HistoryEntry?
            do throws(EngineError) {
                entry = try stream.next { filter.wants($0) }
            } catch {
                throw StoreError.translating(error, .init(store: container.place))
            }
            guard let entry else { return nil }
            let commit = HistoryCommit(entry, container)
            if filter.wants(commit) { return commit }
        }
    }

    /// Commits for one way to the pool's thread and back; none after the newest.
    fileprivate mutating func page() throws -> [HistoryCommit] {
        var commits: [HistoryCommit] = []
        var runs = 0
        while commits.count < Self.pageCommits, runs < Self.pageRuns, let commit = try next() {
            commits.append(commit)
            runs += commit.runs
        }
        return commits
    }

    /// Commit frames that were read so far.
    var framesRead: Int { stream.framesRead }
}

/// Which commits are wanted.
struct HistoryFilter: Sendable {
    var authors: Set<String>?
    var others: Set<String> = []
    var entities: Set<EntityID>?

    /// Before the changes are read.
    func wants(_ commit: CommitSummary) -> Bool {
        guard wants(author: commit.author) else { return false }
        return entities.map { commit.mayChange($0) } ?? true
    }

    /// What stands for several commits is wanted whoever made them: nobody knows which author
    /// changed what.
    func wants(_ commit: HistoryCommit) -> Bool {
        switch commit.known {
        case .unknown: return true
        case .together: break
        case .exactly, .later: guard wants(author: commit.author) else { return false }
        }
        if case .later = commit.known { return entities == nil }
        return entities.map { commit.changes(anyOf: $0) } ?? true
    }

    private func wants(author: String) -> Bool {
        (authors?.contains(author) ?? true) && !others.contains(author)
    }
}

extension PersistentContainer {
    /// The commits after a token, oldest first, up to the newest of this moment: of all contexts,
    /// containers and processes that write to the store.
    ///
    /// Reading them costs what they are, however long the history before them is. `commits` tells
    /// of those to come.
    ///
    /// - Parameters:
    ///   - token: what was dealt with already. Nil: all commits that the store has; of the oldest
    ///     one after a compaction no changes are known.
    ///   - authors: only commits of these; nil: of all.
    ///   - others: no commits of these: a context's own, mostly.
    ///   - types: only commits that changed objects of these entities; none: all.
    /// - Throws: `commitExpired` when the store has not kept all that came after the token, and the
    ///   error names the oldest commit left; `foreignID` of a token of another store;
    ///   `unknownCommit` of one whose commit is not in this store, which was recovered or put back
    ///   from a backup; `unknownEntity`, `damaged`, `ioFailed`, `closed`.
    /// - Complexity: O(log n + checkpoints since).
    public func history(
        after token: HistoryToken?,
        by authors: Set<String>? = nil,
        notBy others: Set<String> = [],
        changing types: [any ManagedObject.Type] = []
    ) throws -> CommitHistory {
        try checkOpen()
        if let token { try check(token) }
        var filter = HistoryFilter(authors: authors, others: others)
        if !types.isEmpty {
            filter.entities = []
            for type in types { filter.entities?.insert(try model(of: type).record.id) }
        }
        let stream = try translating { () throws(RecordError) in
            try store.commits(after: token?.commit)
        }
        return CommitHistory(container: self, stream: stream, filter: filter)
    }
}
