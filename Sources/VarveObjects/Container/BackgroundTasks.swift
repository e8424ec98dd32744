// performBackgroundTask in both forms.
//
// Invariants
// - Each task has a fresh context, pinned at its start, that ends with it.
// - A body that leaves edits unsaved throws `unsavedChanges`: nothing is dropped silently.

extension PersistentContainer {
    /// Runs `body` with a fresh context on a thread of the container's pool and returns its value.
    ///
    /// Objects and the context cannot leave the body; IDs, snapshots and values can. Edits left
    /// unsaved throw `unsavedChanges`; `context.rollback()` says that dropping them is meant.
    /// - Parameters:
    ///   - author: named in the task's commits.
    ///   - body: synchronous; may save any number of times.
    /// - Throws: what `body` throws; `CancellationError` if cancelled before the start.
    public func performBackgroundTask<Result: Sendable>(
        author: String = "",
        _ body: @escaping @Sendable (ManagedObjectContext) throws -> Result
    ) async throws -> Result {
        let flag = CancellationFlag()
        return try await withTaskCancellationHandler {
            try await workers.run { [self] in try runBackgroundTask(author, flag, body) }
        } onCancel: {
            flag.cancel()
        }
    }

    /// Runs `body` with a fresh context on a thread of the container's pool and hands its value or
    /// error to `completion`, on that thread.
    public func performBackgroundTask<Result: Sendable>(
        author: String = "",
        _ body: @escaping @Sendable (ManagedObjectContext) throws -> Result,
        completion: @escaping @Sendable (Swift.Result<Result, any Error>) -> Void
    ) {
        workers.submit { [self] in
            completion(Swift.Result { try runBackgroundTask(author, CancellationFlag(), body) })
        }
    }

    private func runBackgroundTask<Result>(
        _ author: String,
        _ flag: CancellationFlag,
        _ body: (ManagedObjectContext) throws -> Result
    ) throws -> Result {
        if flag.isCancelled { throw CancellationError() }
        let context = ManagedObjectContext(
            container: self,
            author: author,
            label: author.isEmpty ? "background task" : "background task \(author)"
        )
        context.cancellation = flag
        defer { context.reset() }
        _ = try context.currentSnapshot()
        let result = try body(context)
        guard !context.hasEdits else {
            throw StoreError(
                .unsavedChanges,
                "the background task ended with \(context.changed.count) unsaved objects",
                place: .init(store: place),
                suggestion: "Call context.save(), or context.rollback() if they are not wanted."
            )
        }
        return result
    }
}
