// The changes of a live list as an async sequence.
//
// Invariants
// - Each iterator has its own changes, in order. When it lags far behind, they become one that says
//   that the list was replaced.
// - `next` runs in its caller's isolation, which is the context's. It moves the context on, unless
//   that follows commits by itself.

import VarveBase

/// The changes of a live list, one for each step: `for await change in list.changes`.
///
/// Each loop sees what changes from its beginning on. In the view context, which follows commits by
/// itself, it only listens. In every other context waiting for the next change moves the context on
/// (`advance()`) whenever somebody has committed. It ends when its task is cancelled or the
/// container is closed.
public struct LiveChanges<Entity: ManagedObject>: AsyncSequence {
    /// One for each step.
    public typealias Element = LiveChange<Entity>
    /// It does not fail.
    public typealias Failure = Never

    let list: LiveResults<Entity>

    /// Begins to listen.
    public func makeAsyncIterator() -> Iterator { Iterator(list) }

    /// One loop over the changes. It keeps the list.
    public struct Iterator: AsyncIteratorProtocol {
        private let list: LiveResults<Entity>
        private let buffer: LiveBuffer<Entity>

        init(_ list: LiveResults<Entity>) {
            self.list = list
            buffer = LiveBuffer(list.context.container.signals)
            list.add(buffer)
        }

        /// The next change; nil when the task was cancelled or the container closed.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async -> LiveChange<Entity>? {
            let context = list.context
            while true {
                // Before anything is looked at: what comes later wakes.
                let heard = buffer.signal.heard
                if !context.automaticallyMergesChanges {
                    context.advance(isMerge: true)
                }
                context.processPendingChanges()
                if let change = buffer.take() { return change }
                if context.container.isClosed || Task.isCancelled { return nil }
                await buffer.signal.wait(after: heard)
            }
        }

        /// The next change; nil when the task was cancelled or the container closed.
        public mutating func next() async -> LiveChange<Entity>? {
            await next(isolation: #isolation)
        }
    }
}

/// The changes that one loop has not taken.
final class LiveBuffer<Entity: ManagedObject> {
    /// More than these become one: the list was replaced.
    private static var changesMax: Int { 256 }

    let signal = LiveSignal()
    private let signals: LiveSignals
    private var changes: [LiveChange<Entity>] = []

    init(_ signals: LiveSignals) {
        self.signals = signals
        signals.add(signal)
    }

    deinit { signals.remove(signal) }

    func append(_ change: LiveChange<Entity>) {
        if changes.count >= Self.changesMax || changes.first?.isReplaced == true {
            changes = [.replaced(change.commit)]
        } else {
            changes.append(change)
        }
        signal.wake()
    }

    func take() -> LiveChange<Entity>? { changes.isEmpty ? nil : changes.removeFirst() }
}
