// What a context shares with its objects, and how objects that die are reported.

import Synchronization
import VarveBase
import VarveRecords

/// Shared by a context and its objects. It lives as long as one of them.
@usableFromInline final class ContextCore {
    let container: PersistentContainer
    let releases: ReleaseQueue
    /// Nil once the context is gone; its objects then keep the values they have.
    weak var context: ManagedObjectContext?
    /// Whether getters tell observers. On for the view context.
    @usableFromInline let observes: Bool

    init(container: PersistentContainer, observes: Bool) {
        self.container = container
        self.observes = observes
        self.releases = ReleaseQueue(container.store.rowCache, container.counters)
    }
}

/// Takes dying objects out of the row cache at once, from any thread, and remembers their IDs until
/// the context cleans its table.
final class ReleaseQueue: Sendable {
    private let rowCache: RowCache
    private let counters: ObjectCounters
    private let dead = Mutex<[ObjectID]>([])
    private let count = Atomic<Int>(0)

    init(_ rowCache: RowCache, _ counters: ObjectCounters) {
        self.rowCache = rowCache
        self.counters = counters
    }

    /// Called on any thread.
    func objectDied(_ object: ObjectID, _ row: CachedRow?, isListed: Bool) {
        objectLeft(object, row)
        guard isListed else { return }
        dead.withLock { $0.append(object) }
        count.add(1, ordering: .relaxed)
    }

    /// Takes an object out of the row cache's and the container's counts.
    func objectLeft(_ object: ObjectID, _ row: CachedRow?) {
        rowCache.leave(object, row)
        if row != nil { counters.realised.subtract(1, ordering: .relaxed) }
        counters.registered.subtract(1, ordering: .relaxed)
    }

    /// The objects that died since the last call.
    func drain() -> [ObjectID] {
        guard count.load(ordering: .relaxed) > 0 else { return [] }
        return dead.withLock { dead in
            count.subtract(dead.count, ordering: .relaxed)
            defer { dead = [] }
            return dead
        }
    }
}

/// Objects alive, over all contexts of a container.
final class ObjectCounters: Sendable {
    let registered = Atomic<Int>(0)
    let realised = Atomic<Int>(0)
    let contexts = Atomic<Int>(0)
    let blobBytesRead = Atomic<Int>(0)
}
