// Background tasks: performBackgroundTask in both forms, whose body runs through, and
// withBackgroundContext, whose body may wait.
//
// Invariants
// - Each task has a fresh context, pinned at its start, that ends with it.
// - A body that leaves edits unsaved throws `unsavedChanges`: nothing is dropped silently.
// - The form that waits has a name of its own. As an overload it took every body that the other one
//   refuses, and an object that is returned, or an `await` that is out of place, compiled.

extension PersistentContainer {
    /// Runs `body` with a fresh context on a thread of the container's pool and returns its value.
    ///
    /// Objects and the context cannot leave the body; IDs, snapshots and values can. Edits left
    /// unsaved throw `unsavedChanges`; `context.rollback()` says that dropping them is meant.
    /// - Parameters:
    ///   - author: named in the task's commits.
    ///   - body: synchronous; may save any number of times.
    /// - Throws: what `body` throws; `CancellationError` if cancelled before the start, at once: it
    ///   waits for no task that runs before it.
    public func performBackgroundTask<Result: Sendable>(
        author: String = "",
        _ body: @escaping @Sendable (ManagedObjectContext) throws -> Result
    ) async throws -> Result {
        let flag = CancellationFlag()
        return try await withTaskCancellationHandler {
            try await workers.run(isCancellable: true) { [self] in
                try runBackgroundTask(author, flag, body)
            }
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

    /// Runs `body` with a fresh context and returns its value, as `performBackgroundTask` does, but
    /// with a body that may wait (`await`): for an async sequence, JSON Lines, the main actor.
    ///
    /// The body runs on a queue of its own, off the caller's actor, and goes on there after each
    /// wait. It takes none of the threads that `ContainerOptions.backgroundThreads` bounds, so it
    /// may wait for background tasks and for other such bodies.
    ///
    /// Objects and the context cannot leave the body; IDs, snapshots and values can. Functions that
    /// it gives them to are `nonisolated(nonsending)`. Edits left unsaved throw `unsavedChanges`;
    /// `context.rollback()` says that dropping them is meant.
    /// - Parameters:
    ///   - author: named in the body's commits.
    ///   - body: may save any number of times. It is cancelled with the task that calls this, and
    ///     learns it as any task does: by `Task.isCancelled`, and by what it waits for.
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws, its unsaved edits are dropped then; `CancellationError` if
    ///   cancelled before the start; `unsavedChanges`; `closed` and what else reading the newest
    ///   commit throws.
    public func withBackgroundContext<Result: Sendable>(
        author: String = "",
        _ body: nonisolated(nonsending) @Sendable (ManagedObjectContext) async throws -> Result
    ) async throws -> Result {
        try Task.checkCancellation()
        let label = Self.label(ofTask: author)
        return try await BackgroundContext(container: self, author: author, label: label).run(body)
    }

    private static func label(ofTask author: String) -> String {
        author.isEmpty ? "background task" : "background task \(author)"
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
            label: Self.label(ofTask: author)
        )
        context.cancellation = flag
        defer { context.reset() }
        _ = try context.currentSnapshot()
        let result = try body(context)
        try context.checkNothingIsLeft()
        return result
    }
}

extension ManagedObjectContext {
    /// A background task must not end with edits that nobody saves.
    func checkNothingIsLeft() throws(StoreError) {
        guard hasEdits else { return }
        throw StoreError(
            .unsavedChanges,
            "the background task ended with \(changed.count) unsaved objects",
            place: .init(store: container.place),
            suggestion: "Call context.save(), or context.rollback() if they are not wanted."
        )
    }
}
