// A context that lives on between calls, owned by an actor of its own.

import Synchronization

/// An actor around a context. Calls of `perform` run one at a time, in order, off Swift's
/// cooperative threads; the context and its unsaved edits live from one to the next.
public actor BackgroundContext {
    private let executor: SerialQueueExecutor
    private let context: ManagedObjectContext
    /// What moves the context on when somebody commits.
    private let following = Mutex<FollowingTask?>(nil)

    /// A queue of its own.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe executor.asUnownedSerialExecutor()
    }

    init(container: PersistentContainer, author: String, label: String = "background context") {
        executor = SerialQueueExecutor(label: "varve.context")
        context = ManagedObjectContext(container: container, author: author, label: label)
    }

    /// Runs the body of `withBackgroundContext`. Nobody else has this actor, so while the body
    /// waits nothing runs in between.
    func run<Result: Sendable>(
        _ body: nonisolated(nonsending) @Sendable (ManagedObjectContext) async throws -> Result
    ) async throws -> Result {
        defer { context.reset() }
        _ = try context.currentSnapshot()
        let result = try await body(context)
        try context.checkNothingIsLeft()
        return result
    }

    /// Runs `body` with the context. Objects cannot leave it; IDs, snapshots and values can.
    public func perform<Result: Sendable>(
        _ body: @Sendable (ManagedObjectContext) throws -> Result
    ) async throws -> Result {
        try body(context)
    }

    nonisolated func follow(_ task: FollowingTask) { following.withLock { $0 = task } }

    /// Moves the context on; false: its container was closed.
    func moveOn() -> Bool {
        context.automaticallyMergesChanges = true
        if context.container.isClosed { return false }
        context.advance(isMerge: true)
        return true
    }
}
