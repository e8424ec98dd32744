// FENCE: the living objects of a context by their IDs, not kept alive: plain pointers under a lock.
//
// Invariants
// - An entry's object is not freed: the end of an object takes its entry out first, under the same
//   lock, on whatever thread it ends (`ObjectStorage.deinit`).
// - A reference leaves the registry only through `varve_try_retain`, which fails for an object
//   whose end has begun. So nobody is brought back to life, and nobody reads freed memory.
// - A token, given out by the context, tells an object from a later one with the same ID: the end
//   of the first leaves the entry of the second alone.
// - No code but this file's runs while the lock is held, and nothing is released.
// - Rows of ended objects are pinned until `endedMax` of them are here, or no object is left; who
//   looks at the row cache has them unpinned first (`RegistryList.settle`).
// - While an object lives, the registry keeps its context, unless that keeps objects itself
//   (`mayKeepContext`): edits and undo steps. Then each would keep the other for ever.
//
// Why not weak references: each costs an allocation beside its object and slows all later retains
// and releases of it; lists of objects were mostly that.

import Synchronization
public import VarveBase
import VarveRecords

/// The living objects of one context, by ID. Every call costs O(1) per object, but for `all`.
@usableFromInline final class ObjectRegistry: Sendable {
    private let table = Mutex(RegistryTable())
    /// The context's name.
    let label: String
    /// How many objects of the context have unsaved edits, for any thread to look at.
    let unsaved = Atomic<Int>(0)

    /// How many IDs ahead memory is asked for.
    private static let ahead = 8

    /// Rows of ended objects that may wait here for others.
    private let endedMax: Int

    init(label: String = "", endedMax: Int = 0) {
        self.label = label
        self.endedMax = endedMax
    }

    /// Says whose objects these are. The context calls `endContext` in its end.
    func setContext(_ context: ManagedObjectContext) {
        let bits = Self.bits(context)
        table.withLock { $0.context = bits }
    }

    /// The context; nil once its end has begun.
    ///
    /// Not as a weak reference: that costs an allocation beside the context, and slows all retains
    /// and releases of it.
    var context: ManagedObjectContext? {
        let bits = table.withLock { $0.retainedContext() }
        return bits == 0 ? nil : Self.take(bits, as: ManagedObjectContext.self)
    }

    /// The context ends.
    func endContext() {
        let kept = table.withLock { table in
            table.context = 0
            return table.isContextKept
        }
        precondition(!kept, "a context that is kept ends")
    }

    /// Whether objects keep their context: not while it keeps objects.
    func keepContext(_ mayKeep: Bool) {
        let ended = table.withLock { table in
            table.mayKeepContext = mayKeep
            return table.contextLetGo()
        }
        Self.release(ended)
    }

    /// Ends a reference that `contextLetGo` gave; 0 is none.
    private static func release(_ bits: UInt) {
        if bits != 0 { _ = object(bits) }
    }

    /// Number of living objects.
    var count: Int { table.withLock { $0.count } }

    /// How many objects there is room for.
    var capacity: Int { table.withLock { $0.room } }

    /// Whether an object with that ID lives.
    func contains(_ id: ObjectID) -> Bool { table.withLock { $0.entry(of: id) != nil } }

    /// Whether one of some IDs leads to a living object of another entity: never in a sound store.
    func containsOthers(than entity: Int, _ ids: [ObjectID]) -> Bool {
        table.withLock { table in
            if table.count == 0 { return false }
            return ids.contains { id in
                table.entry(of: id).map { table.entity(at: $0) != entity } ?? false
            }
        }
    }

    /// The living object with that ID, with its entity's number.
    func find(_ id: ObjectID) -> (object: AnyObject, entity: Int)? {
        let (bits, entity) = table.withLock { table in
            guard let number = table.entry(of: id) else { return (UInt(0), 0) }
            return (table.retained(at: number), table.entity(at: number))
        }
        return bits == 0 ? nil : (Self.object(bits), entity)
    }

    /// The living object with that ID if it is one of the entity; `Entity` must be its class.
    @usableFromInline func find<Entity: AnyObject>(
        _ id: ObjectID,
        entity: Int,
        as: Entity.Type
    ) -> Entity? {
        let bits = table.withLock { $0.retained(id, entity: entity) }
        return bits == 0 ? nil : Self.take(bits, as: Entity.self)
    }

    /// The living objects among some IDs of one entity; nil when the registry is empty. Each is a
    /// reference that the caller has to `take`, or 0.
    @usableFromInline func find(_ ids: [ObjectID], entity: Int) -> [UInt]? {
        table.withLock { table in
            if table.count == 0 { return nil }
            var found: [UInt] = []
            found.reserveCapacity(ids.count)
            for (index, id) in ids.enumerated() {
                if index + Self.ahead < ids.count { table.foresee(ids[index + Self.ahead]) }
                found.append(table.retained(id, entity: entity))
            }
            return found
        }
    }

    /// Turns what `find` gave into the object; `Entity` must be the class of that entity. Once for
    /// each.
    @usableFromInline static func take<Entity: AnyObject>(_ bits: UInt, as: Entity.Type) -> Entity {
        // An entry of this entity holds an object of its class.
        unsafe unsafeDowncast(object(bits), to: Entity.self)
    }

    private static func object(_ bits: UInt) -> AnyObject {
        guard let pointer = unsafe UnsafeRawPointer(bitPattern: bits) else {
            preconditionFailure("no object")
        }
        // `find` or the table retained it for us.
        return unsafe Unmanaged<AnyObject>.fromOpaque(pointer).takeRetainedValue()
    }

    /// Lets an ID lead to an object, which has the token.
    @usableFromInline func insert(_ object: AnyObject, _ id: ObjectID, entity: Int, token: UInt32) {
        let bits = Self.bits(object)
        table.withLock { $0.insert(bits, id, entity: entity, token: token, next: nil) }
    }

    /// Lets the IDs of a list lead to its objects. Those that are new have the tokens from
    /// `firstToken` on, by their position.
    ///
    /// - Parameters:
    ///   - isInOrder: whether each object's follower is noted, for reading ahead.
    ///   - newObject: the address (`bits`) of the object at a position; 0: it was here before. An
    ///     array of objects would be read through a generic here, with two reference counts for
    ///     each.
    @usableFromInline func insert(
        _ ids: [ObjectID],
        entity: Int,
        firstToken: UInt32,
        isInOrder: Bool,
        newObject: (Int) -> UInt
    ) {
        table.withLock { table in
            table.reserve(ids.count)
            for index in ids.indices {
                if index + Self.ahead < ids.count { table.foresee(ids[index + Self.ahead]) }
                let next = isInOrder && index + 1 < ids.count ? ids[index + 1] : nil
                let object = newObject(index)
                if object == 0 {
                    if isInOrder { table.setNext(of: ids[index], to: next) }
                    continue
                }
                table.insert(
                    object,
                    ids[index],
                    entity: entity,
                    token: firstToken &+ UInt32(truncatingIfNeeded: index),
                    next: next
                )
            }
        }
    }

    /// The address of an object.
    @inlinable static func bits(_ object: some AnyObject) -> UInt {
        unsafe UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
    }

    /// Forgets an object. Called from its end, on any thread, and when it leaves its context.
    ///
    /// - Parameter row: its row as `CachedRow.kept` gave it, or 0.
    /// - Returns: rows that are to be unpinned now.
    func remove(_ id: ObjectID, token: UInt32, row: UInt = 0) -> EndedRows {
        var due = EndedRows()
        let context = table.withLock { table in
            table.remove(id, token: token)
            if row != 0 { table.ended.append(row) }
            if table.ended.count >= endedMax || table.count == 0 { swap(&due, &table.ended) }
            return table.contextLetGo()
        }
        Self.release(context)
        return due
    }

    /// All rows that wait to be unpinned.
    func takeEnded() -> EndedRows {
        var due = EndedRows()
        table.withLock { swap(&due, &$0.ended) }
        return due
    }

    /// Takes back the pins of objects that have ended.
    func unpin(_ rows: borrowing EndedRows, in container: PersistentContainer) {
        if rows.count == 0 { return }
        container.store.rowCache.unpin(rows)
        container.counters.realised.subtract(rows.count, ordering: .relaxed)
    }

    /// IDs of the objects of the same entity that were fetched after one, in the order of the
    /// list; at most `limit`. Objects that are gone end it.
    func followers(of id: ObjectID, limit: Int) -> [ObjectID] {
        table.withLock { table in
            guard let start = table.entry(of: id) else { return [] }
            var ids: [ObjectID] = []
            var next = unsafe table.entries[start].next
            let entity = unsafe table.entries[start].entity
            while next != 0, ids.count < limit, let number = table.entry(of: ObjectID(next)),
                unsafe table.entries[number].entity == entity, next != id.rawValue
            {
                ids.append(ObjectID(next))
                next = unsafe table.entries[number].next
            }
            return ids
        }
    }

    /// All living objects with their entities' numbers, ascending by ID.
    var all: [(object: AnyObject, entity: Int)] {
        let found = table.withLock { table in
            var found: [(id: ObjectID, bits: UInt, entity: Int)] = []
            found.reserveCapacity(table.count)
            for number in 0..<table.used where unsafe table.entries[number].object != 0 {
                let id = unsafe ObjectID(table.entries[number].id)
                let bits = table.retained(at: number)
                if bits != 0 { found.append((id, bits, table.entity(at: number))) }
            }
            return found
        }
        return found.sorted { $0.id < $1.id }.map { (Self.object($0.bits), $0.entity) }
    }
}

extension EntityModel {
    /// Turns an object of this entity into what contexts hand around.
    static func makeCast<Entity: ManagedObject>(
        _: Entity.Type
    ) -> @Sendable (AnyObject) -> any ManagedObject {
        // Called with objects of the entity's own entries only.
        { object in unsafe unsafeDowncast(object, to: Entity.self) }
    }
}
