// What a context shares with its objects, and how objects that die are reported.

import Synchronization
import VarveBase
import VarveRecords

/// Shared by a context and its objects. It lives as long as one of them.
@usableFromInline final class ContextCore {
    let container: PersistentContainer
    /// The context's living objects.
    @usableFromInline let registry: ObjectRegistry
    /// The context lives as long as one of its objects (`ObjectRegistry`), but for one that ends
    /// with unsaved edits or undo steps: then it is nil, and its objects keep the values they have.
    var context: ManagedObjectContext? { registry.context }
    /// Whether it was said that an object of the ended context is used.
    @safe @exclusivity(unchecked) var saidItEnded = false
    /// Whether getters tell observers. On for the view context.
    @usableFromInline let observes: Bool
    /// Grows whenever objects leave the context while they live: lists that keep some look again.
    @safe @exclusivity(unchecked) @usableFromInline var endings = 0
    /// The next token of an object; 0 is none.
    @safe @exclusivity(unchecked) private var token: UInt32 = 1
    /// Where the container's list has the registry.
    private let place: Int

    init(container: PersistentContainer, observes: Bool, label: String) {
        self.container = container
        let budget = container.store.rowCache.budgetBytes
        registry = ObjectRegistry(label: label, endedMax: Self.endedMax(budget))
        self.observes = observes
        place = container.registries.add(registry)
    }

    deinit { container.registries.remove(place) }

    /// Takes tokens for so many objects; returns the first.
    @usableFromInline func takeTokens(_ count: Int) -> UInt32 {
        let first = token
        token &+= UInt32(truncatingIfNeeded: count)
        return first
    }

    /// Ended objects whose rows may be pinned still: few enough that what they weigh is nothing
    /// beside the row cache's budget, and none where that is small.
    private static func endedMax(_ budgetBytes: Int) -> Int {
        min(EndedRows.room, budgetBytes / (128 << 10))
    }

    /// The end of an object, on any thread.
    ///
    /// - Parameter row: its row as `CachedRow.kept` gave it, or 0.
    func objectDied(_ object: ObjectID, _ token: UInt32, _ row: UInt) {
        let ended = registry.remove(object, token: token, row: row)
        if ended.count > 0 { registry.unpin(ended, in: container) }
    }
}

/// The registries of a container's contexts, for figures over all of them.
final class RegistryList: Sendable {
    private struct Places {
        /// Nil where a place is free.
        var registries: [ObjectRegistry?] = []
        var free: [Int] = []
    }
    private let places = Mutex(Places())

    /// Returns the place that the registry has from now on.
    func add(_ registry: ObjectRegistry) -> Int {
        places.withLock { places in
            if let place = places.free.popLast() {
                places.registries[place] = registry
                return place
            }
            places.registries.append(registry)
            return places.registries.count - 1
        }
    }

    /// Takes out the registry at a place. Its context keeps it: it does not end here.
    func remove(_ place: Int) {
        places.withLock { places in
            places.registries[place] = nil
            places.free.append(place)
        }
    }

    private var all: [ObjectRegistry] {
        places.withLock { places in places.registries.compactMap(\.self) }
    }

    /// Objects alive, over all contexts.
    var objects: Int { all.reduce(0) { $0 + $1.count } }

    /// Takes back the pins of all objects that have ended.
    func settle(in container: PersistentContainer) {
        for registry in all { registry.unpin(registry.takeEnded(), in: container) }
    }

    /// How many contexts have an object.
    func references(_ id: ObjectID) -> Int {
        all.count { $0.contains(id) }
    }

    /// The contexts with unsaved edits, by name, and how many objects each would lose.
    var unsaved: [(label: String, objects: Int)] {
        all.map { ($0.label, $0.unsaved.load(ordering: .relaxed)) }
            .filter { $0.1 > 0 }.sorted { ($0.0, $0.1) < ($1.0, $1.1) }
    }
}

/// Counters over all contexts of a container.
final class ObjectCounters: Sendable {
    let realised = Atomic<Int>(0)
    let contexts = Atomic<Int>(0)
    let blobBytesRead = Atomic<Int>(0)
}
