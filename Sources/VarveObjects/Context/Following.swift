// Contexts that move on by themselves when somebody has committed.
//
// Invariants
// - A context moves in the isolation that it has: code of its actor sees one commit until it
//   suspends.
// - What waits for commits holds neither a context nor a container.

import VarveBase

extension ManagedObjectContext {
    /// Moves the context on (`advance()`) whenever somebody has committed, in the isolation of the
    /// caller, until the task is cancelled or the container closed: `await context.follow()` in a
    /// task of the context's actor. It keeps the context meanwhile.
    ///
    /// Several commits may be one step. Edits stay, as with `advance()`. The view context needs no
    /// such loop; a context of the past does not move, and the call returns. A branch takes over
    /// what its parent shows then: let that one follow, too.
    /// - Complexity: that of `advance()` for each step.
    nonisolated(nonsending) public func follow() async {
        if isOfThePast { return }
        let signal = LiveSignal()
        container.signals.add(signal)
        defer { container.signals.remove(signal) }
        while true {
            // Before anything is looked at: what comes later wakes.
            let heard = signal.heard
            if container.isClosed || Task.isCancelled { return }
            advance(isMerge: true)
            await signal.wait(after: heard)
        }
    }

    /// A task of the main actor that moves the context on until one of the two goes.
    @MainActor func followByItself() {
        automaticallyMergesChanges = true
        let signal = LiveSignal()
        let signals = container.signals
        signals.add(signal)
        following = FollowingTask(
            Task { @MainActor [weak self] in
                defer { signals.remove(signal) }
                while !Task.isCancelled {
                    let heard = signal.heard
                    // Not held while nothing happens.
                    do {
                        guard let context = self, !context.container.isClosed else { return }
                        context.advance(isMerge: true)
                    }
                    await signal.wait(after: heard)
                }
            }
        )
    }
}

/// A task that ends with whoever it works for.
final class FollowingTask: Sendable {
    private let task: Task<Void, Never>

    init(_ task: Task<Void, Never>) { self.task = task }

    deinit { task.cancel() }
}

extension PersistentContainer {
    /// A new context of the main actor that follows commits by itself, as the view context does.
    ///
    /// A context of another actor follows with `follow()`, in a task that its owner cancels.
    /// - Parameters:
    ///   - author: named in its commits.
    ///   - observes: whether its objects tell observers.
    ///   - automaticallyMergesChanges: false: as the other `newContext`.
    @MainActor public func newContext(
        author: String = "",
        observes: Bool = true,
        automaticallyMergesChanges: Bool
    ) -> ManagedObjectContext {
        let context = newContext(author: author, observes: observes)
        if automaticallyMergesChanges { context.followByItself() }
        return context
    }

    /// A new context with an actor of its own around it that follows commits by itself.
    ///
    /// It moves on between two calls of `perform`, never within one.
    public func newBackgroundContext(
        author: String = "",
        automaticallyMergesChanges: Bool
    ) -> BackgroundContext {
        let made = newBackgroundContext(author: author)
        if automaticallyMergesChanges { made.followByItself(signals) }
        return made
    }
}

extension BackgroundContext {
    fileprivate nonisolated func followByItself(_ signals: LiveSignals) {
        let signal = LiveSignal()
        signals.add(signal)
        follow(
            FollowingTask(
                Task { [weak self] in
                    defer { signals.remove(signal) }
                    while !Task.isCancelled {
                        let heard = signal.heard
                        guard await self?.moveOn() == true else { return }
                        await signal.wait(after: heard)
                    }
                }
            )
        )
    }
}
