// FENCE: the living objects of a context by their IDs, not kept alive: plain pointers under a lock.
//
// Invariants
// - An entry's object is not freed: the end of an object takes its entry out first, under the same
//   lock, on whatever thread it ends (`ObjectStorage.deinit`).
// - A reference leaves the registry only through `varve_try_retain`, which fails for an object
//   whose end has begun. So nobody is brought back to life, and nobody reads freed memory.
// - A token, given out by the context, tells an object from a later one with the same ID: the end
//   of the first leaves the entry of the second alone.
// - The number of slots is a power of two. Each of eight lanes has every eighth slot, and at least
//   a third more of them than entries. A lane is a table of its own, with one free slot at least
//   behind each run of entries.
// - No code but this file's runs while the lock is held, and nothing is released.
// - While an object lives, the registry keeps its context, unless that keeps objects itself
//   (`mayKeepContext`): edits and undo steps. Then each would keep the other for ever.
//
// Why not weak references: each costs an allocation beside its object and slows all later retains
// and releases of it; lists of objects were mostly that.

internal import CVarve
import Synchronization
public import VarveBase

/// The living objects of one context, by ID. Every call costs O(1) per object, but for `all`.
@usableFromInline final class ObjectRegistry: Sendable {
    private let table = Mutex(RegistryTable())
    /// The context's name.
    let label: String
    /// How many objects of the context have unsaved edits, for any thread to look at.
    let unsaved = Atomic<Int>(0)

    init(label: String = "") { self.label = label }

    /// Says whose objects these are. The context calls `endContext` in its end.
    func setContext(_ context: ManagedObjectContext) {
        let bits = Self.bits(context)
        table.withLock { $0.context = bits }
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

    /// Number of slots.
    var capacity: Int { table.withLock { $0.capacity } }

    /// Whether an object with that ID lives.
    func contains(_ id: ObjectID) -> Bool { table.withLock { $0.slot(of: id) != nil } }

    /// The living object with that ID, with its entity's number.
    func find(_ id: ObjectID) -> (object: AnyObject, entity: Int)? {
        let (bits, entity) = table.withLock { table in
            guard let place = table.slot(of: id) else { return (UInt(0), 0) }
            return (table.retained(at: place), table.entity(at: place))
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
            for id in ids { found.append(table.retained(id, entity: entity)) }
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
    /// `firstToken` on, by their position. Each object's follower is noted, for reading ahead.
    ///
    /// - Parameter newObject: the address (`bits`) of the object at a position; 0: it was here
    ///   before. An array of objects would be read through a generic here, with two reference
    ///   counts for each.
    @usableFromInline func insert(
        _ ids: [ObjectID],
        entity: Int,
        firstToken: UInt32,
        newObject: (Int) -> UInt
    ) {
        table.withLock { table in
            table.reserve(ids.count)
            for index in ids.indices {
                let next = index + 1 < ids.count ? ids[index + 1] : nil
                let object = newObject(index)
                if object == 0 {
                    table.setNext(of: ids[index], to: next)
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
    func remove(_ id: ObjectID, token: UInt32) {
        let ended = table.withLock { table in
            table.remove(id, token: token)
            return table.contextLetGo()
        }
        Self.release(ended)
    }

    /// IDs of the objects of the same entity that were fetched after one, in the order of the
    /// list; at most `limit`. Objects that are gone end it.
    func followers(of id: ObjectID, limit: Int) -> [ObjectID] {
        table.withLock { table in
            guard let start = table.slot(of: id) else { return [] }
            var ids: [ObjectID] = []
            var next = unsafe table.slots[start].next
            let entity = unsafe table.slots[start].entity
            while next != 0, ids.count < limit, let slot = table.slot(of: ObjectID(next)),
                unsafe table.slots[slot].entity == entity, next != id.rawValue
            {
                ids.append(ObjectID(next))
                next = unsafe table.slots[slot].next
            }
            return ids
        }
    }

    /// All living objects with their entities' numbers, ascending by ID.
    var all: [(object: AnyObject, entity: Int)] {
        let found = table.withLock { table in
            var found: [(id: ObjectID, bits: UInt, entity: Int)] = []
            found.reserveCapacity(table.count)
            for slot in 0..<table.capacity where unsafe table.slots[slot].object != 0 {
                let id = unsafe ObjectID(table.slots[slot].id)
                let bits = table.retained(at: slot)
                if bits != 0 { found.append((id, bits, table.entity(at: slot))) }
            }
            return found
        }
        return found.sorted { $0.id < $1.id }.map { (Self.object($0.bits), $0.entity) }
    }
}

/// Open addressing over entries of 32 bytes.
@safe private struct RegistryTable: ~Copyable {
    struct Slot {
        var id: UInt64 = 0
        /// Address of the object; 0: the slot is free.
        var object: UInt = 0
        /// ID of the next object of the list that this one was fetched with; 0: none.
        var next: UInt64 = 0
        var entity: Int32 = 0
        var token: UInt32 = 0
    }

    private static let capacityMin = 64
    private(set) var slots: UnsafeMutablePointer<Slot>
    private(set) var capacity = 0
    private(set) var count = 0
    /// Entries of each lane.
    private var laneCounts = SIMD8<Int>()
    /// Address of the context; 0 when its end has begun.
    var context: UInt = 0
    /// Whether objects may keep the context.
    var mayKeepContext = true
    /// Whether there is a reference to the context.
    private(set) var isContextKept = false

    init() { unsafe slots = .allocate(capacity: 0) }

    deinit {
        // Allocated in `init` or `rebuild`, owned by this value alone. Slots are trivial.
        unsafe slots.deallocate()
    }

    /// IDs that follow one another share cache lines, eight at a time, each in a lane of its own.
    /// So a list that is let go in any order closes short runs: with one lane for all, a block that
    /// met another moved eight entries on, and these the next.
    @inline(__always)
    private func home(_ id: UInt64) -> Int {
        let mix = NumberHash.mix(id &>> 3, 0)
        return (mix &<< 3 | Self.lane(id, mix)) & (capacity &- 1)
    }

    /// Every eighth ID alone would fill one lane only, if it were not mixed.
    @inline(__always)
    private static func lane(_ id: UInt64, _ mix: Int) -> Int {
        (Int(truncatingIfNeeded: id) ^ (mix >> 58)) & 7
    }

    @inline(__always)
    private func after(_ place: Int) -> Int { (place &+ 8) & (capacity &- 1) }

    /// Where an ID stands; nil when it does not.
    @inline(__always)
    func slot(of id: ObjectID) -> Int? {
        if capacity == 0 { return nil }
        var place = home(id.rawValue)
        // Places are below `capacity` by the mask; a free slot ends every run.
        while unsafe slots[place].object != 0 {
            if unsafe slots[place].id == id.rawValue { return place }
            place = after(place)
        }
        return nil
    }

    /// A new reference to the object of an ID; 0 if its end has begun, or it is of another entity:
    /// retaining that one could mean letting it go for good, here under the lock.
    @inline(__always)
    func retained(_ id: ObjectID, entity: Int? = nil) -> UInt {
        guard let place = slot(of: id) else { return 0 }
        if let entity, self.entity(at: place) != entity { return 0 }
        return retained(at: place)
    }

    /// A new reference to the object of a slot; 0 if its end has begun.
    @inline(__always)
    func retained(at place: Int) -> UInt {
        // The object is not freed while its entry stands here.
        unsafe UInt(
            bitPattern: varve_try_retain(UnsafeMutableRawPointer(bitPattern: slots[place].object))
        )
    }

    /// The number of the entity that a slot's object belongs to.
    @inline(__always)
    func entity(at place: Int) -> Int { Int(unsafe slots[place].entity) }

    mutating func insert(
        _ object: UInt,
        _ id: ObjectID,
        entity: Int,
        token: UInt32,
        next: ObjectID?
    ) {
        reserve(1)
        var place = home(id.rawValue)
        if laneCounts[place & 7] >= capacity / 8 / 4 * 3 {
            rebuild(capacity * 2)
            place = home(id.rawValue)
        }
        while unsafe slots[place].object != 0 {
            if unsafe slots[place].id == id.rawValue {
                count &-= 1
                laneCounts[place & 7] &-= 1
                break
            }
            place = after(place)
        }
        laneCounts[place & 7] &+= 1
        unsafe slots[place] = Slot(
            id: id.rawValue,
            object: object,
            next: next?.rawValue ?? 0,
            entity: Int32(truncatingIfNeeded: entity),
            token: token
        )
        count &+= 1
        if !isContextKept { keepContext() }
    }

    /// Takes a reference to the context if it is to be kept. Objects are inserted by the context,
    /// so it lives.
    private mutating func keepContext() {
        guard mayKeepContext, let pointer = unsafe UnsafeMutableRawPointer(bitPattern: context)
        else { return }
        isContextKept = unsafe varve_try_retain(pointer) != nil
    }

    /// Makes the reference to the context what it should be.
    /// - Returns: the reference that ends, for the caller to release behind the lock; 0: none.
    mutating func contextLetGo() -> UInt {
        let isWanted = mayKeepContext && count > 0
        if isWanted == isContextKept { return 0 }
        if isWanted {
            keepContext()
            return 0
        }
        isContextKept = false
        return context
    }

    mutating func setNext(of id: ObjectID, to next: ObjectID?) {
        guard let place = slot(of: id) else { return }
        unsafe slots[place].next = next?.rawValue ?? 0
    }

    mutating func remove(_ id: ObjectID, token: UInt32) {
        guard let place = slot(of: id), unsafe slots[place].token == token else { return }
        close(place)
        count &-= 1
        laneCounts[place & 7] &-= 1
        if capacity > Self.capacityMin, count < capacity / 8 { shrink() }
    }

    private mutating func shrink() {
        let size = max(Self.capacityMin, capacity / 4)
        for lane in 0..<8 where laneCounts[lane] > size / 8 / 4 * 3 { return }
        rebuild(size)
    }

    /// Makes room for so many more.
    mutating func reserve(_ more: Int) {
        let needed = count &+ more
        if needed <= capacity / 4 * 3 { return }
        var size = max(Self.capacityMin, capacity)
        while needed > size / 4 * 3 { size *= 2 }
        rebuild(size)
    }

    /// Moves later entries back over one that became free, so that none is cut off from its home.
    private mutating func close(_ freed: Int) {
        let mask = capacity &- 1
        var hole = freed
        var place = freed
        while true {
            place = after(place)
            if unsafe slots[place].object == 0 { break }
            let home = home(unsafe slots[place].id)
            if (place &- home) & mask >= (place &- hole) & mask {
                unsafe slots[hole] = slots[place]
                hole = place
            }
        }
        unsafe slots[hole] = Slot()
    }

    private mutating func rebuild(_ size: Int) {
        let old = unsafe UnsafeMutableBufferPointer(start: slots, count: capacity)
        unsafe slots = .allocate(capacity: size)
        unsafe slots.initialize(repeating: Slot(), count: size)
        capacity = size
        for index in old.indices where unsafe old[index].object != 0 {
            var place = unsafe home(old[index].id)
            while unsafe slots[place].object != 0 { place = after(place) }
            unsafe slots[place] = old[index]
        }
        unsafe old.baseAddress?.deallocate()
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
