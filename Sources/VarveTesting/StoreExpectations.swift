// What a test asks of a store: what is stored, whether it is sound, which commits were made.

import VarveBase
public import VarveInspection
public import VarveObjects

extension PersistentContainer {
    /// What the newest commit has, read in a context of its own, as values that `#expect` can
    /// compare: `#expect(try container.stored(City.all) { $0.name } == ["Vík"])`.
    ///
    /// - Parameters:
    ///   - request: which objects, in which order.
    ///   - value: what is asked of each.
    /// - Throws: what the request and `value` throw; the error of a read that failed on the way.
    public func stored<Entity: ManagedObject, Value>(
        _ request: FetchDescriptor<Entity>,
        _ value: (Entity) throws -> Value
    ) throws -> [Value] {
        let context = newContext(author: "")
        let values = try context.fetch(request).map(value)
        if let failure = context.readFailures.first { throw failure.error }
        return values
    }

    /// Everything that is wrong with the store, as `varve verify` finds it; empty: it is sound.
    ///
    /// ```swift
    /// #expect(try container.problems().isEmpty)
    /// ```
    ///
    /// - Parameter level: how thorough the check is.
    /// - Throws: `InspectionError` when nothing at all can be told.
    /// - Complexity: O(bytes of the store).
    public func problems(_ level: VerifyLevel = .full) throws -> [VerifyProblem] {
        try StoreObserver.open(storeLocation).verify(level: level).problems
    }
}

/// The commits that were made since it began, or was asked last.
///
/// ```swift
/// let recorder = try CommitRecorder(container)
/// try model.rename(city)
/// let commits = try recorder.take()
/// #expect(commits.map(\.author) == ["editor"])
/// #expect(commits[0].ids(.updated) == [city.objectID])
/// ```
public final class CommitRecorder {
    private let container: PersistentContainer
    private var token: HistoryToken

    /// Begins with the next commit.
    /// - Throws: `StoreError` with `closed`, `ioFailed`, `damaged`.
    public init(_ container: PersistentContainer) throws {
        self.container = container
        token = try container.historyToken
    }

    /// The commits of everybody since, oldest first.
    /// - Throws: `StoreError` with `commitExpired` after a compaction; `closed`, `ioFailed`,
    ///   `damaged`.
    public func take() throws -> [HistoryCommit] {
        let commits = try container.history(after: token).commits()
        if let last = commits.last { token = try container.historyToken(at: last.number) }
        return commits
    }
}
