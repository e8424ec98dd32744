// Every commit of a store as an async sequence: who made it, and which objects it changed.
//
// Invariants
// - Notices come in the order of commits, each once, after the commit can be read.
// - A listener that lags loses the oldest ones, and is told how many.

public import Foundation
import Synchronization
public import VarveBase
import VarveEngine
import VarveRecords

/// One commit, as those who listen hear of it.
public struct CommitNotice: Sendable {
    /// What a commit did to an object.
    public enum Change: Hashable, Sendable {
        /// It is new.
        case inserted
        /// It has other values.
        case updated
        /// It is gone.
        case deleted
    }

    /// The commit.
    public let commit: CommitNumber
    /// The author that its context gave.
    public let author: String
    /// When it was made, by the clock of its writer.
    public let date: Date
    /// Whether this container made it. Else another one did: of this process, or of another.
    public let isOwn: Bool
    /// Whether nobody knows what it changed: then any object may be another one. So it is when
    /// another process has compacted the store more than once since this one looked.
    public let isUnknown: Bool
    /// Commits whose notices were dropped just before this one, because the listener lagged.
    public internal(set) var missed = 0
    private let changed: ChangedObjectIDs

    init(_ changes: CommitChanges, _ container: PersistentContainer) {
        commit = changes.number
        author = changes.author
        date = Date(timeIntervalSince1970: Double(changes.timeMicroseconds) / 1_000_000)
        isOwn = !changes.isForeign
        isUnknown = changes.isUnknown
        changed = ChangedObjectIDs(changes, container)
    }

    /// The objects of an entity to which the commit did something, by ID.
    /// - Complexity: O(objects).
    public func ids<Entity: ManagedObject>(
        of type: Entity.Type,
        _ change: Change
    ) -> [Entity.ID] {
        changed.ids(of: type, change)
    }

    /// All objects to which the commit did something.
    /// - Complexity: O(objects).
    public func ids(_ change: Change) -> [ManagedObjectID] { changed.ids(change) }

    /// How many objects were inserted, changed or deleted. O(entities).
    public var changedObjects: Int { changed.count }
}

extension PersistentContainer {
    /// The commits from now on: of this container's contexts, of other containers, of other
    /// processes. Each loop has its own; it ends when its task is cancelled or the container is
    /// closed.
    ///
    /// What links objects without being a value of one of them (members of a many-to-many or
    /// ordered relationship) is no change of an object.
    /// - Parameter bufferSize: notices that wait for a slow loop; older ones are dropped, and the
    ///   next says how many (`missed`).
    public func commits(bufferSize: Int = 1_024) -> CommitNotices {
        CommitNotices(listeners: listeners, bufferSize: max(1, bufferSize))
    }

    /// The commits from now on, up to 1,024 of which wait for a slow loop.
    public var commits: CommitNotices { commits() }
}

/// The commits of a store: `for await commit in container.commits`.
public struct CommitNotices: AsyncSequence, Sendable {
    /// One for each commit.
    public typealias Element = CommitNotice
    /// It does not fail.
    public typealias Failure = Never

    let listeners: CommitListeners
    let bufferSize: Int

    /// Begins to listen.
    public func makeAsyncIterator() -> Iterator {
        Iterator(listener: listeners.add(bufferSize: bufferSize))
    }

    /// One loop over the commits.
    public struct Iterator: AsyncIteratorProtocol {
        let listener: CommitListener

        /// The next commit; nil when the task was cancelled or the container closed.
        public mutating func next() async -> CommitNotice? { await listener.next() }
    }
}

/// Who listens to a container's commits.
final class CommitListeners: Sendable {
    private struct Entry {
        weak var listener: CommitListener?
    }
    private struct State {
        var all: [Entry] = []
        var hasEnded = false
    }
    private let state = Mutex(State())

    func add(bufferSize: Int) -> CommitListener {
        let listener = CommitListener(bufferSize)
        let hasEnded = state.withLock { state in
            state.all.removeAll { $0.listener == nil }
            state.all.append(Entry(listener: listener))
            return state.hasEnded
        }
        if hasEnded { listener.end() }
        return listener
    }

    private var living: [CommitListener] { state.withLock { $0.all.compactMap(\.listener) } }

    func tell(_ changes: CommitChanges, in container: PersistentContainer) {
        let listeners = living
        if listeners.isEmpty { return }
        let notice = CommitNotice(changes, container)
        for listener in listeners { listener.take(notice) }
    }

    func end() {
        state.withLock { $0.hasEnded = true }
        for listener in living { listener.end() }
    }
}

/// The notices that one loop has not taken.
final class CommitListener: Sendable {
    private struct State {
        var waiting: [CommitNotice] = []
        var missed = 0
        var hasEnded = false
    }
    private let state = Mutex(State())
    private let signal = LiveSignal()
    private let bufferSize: Int

    init(_ bufferSize: Int) { self.bufferSize = bufferSize }

    func take(_ notice: CommitNotice) {
        state.withLock { state in
            state.waiting.append(notice)
            guard state.waiting.count > bufferSize else { return }
            let dropped = state.waiting.removeFirst()
            state.missed += 1 + dropped.missed
        }
        signal.wake()
    }

    func end() {
        state.withLock { $0.hasEnded = true }
        signal.wake()
    }

    func next() async -> CommitNotice? {
        while true {
            let heard = signal.heard
            let (notice, hasEnded) = state.withLock { state -> (CommitNotice?, Bool) in
                if state.waiting.isEmpty { return (nil, state.hasEnded) }
                var first = state.waiting.removeFirst()
                first.missed += state.missed
                state.missed = 0
                return (first, false)
            }
            if let notice { return notice }
            if hasEnded || Task.isCancelled { return nil }
            await signal.wait(after: heard)
        }
    }
}
