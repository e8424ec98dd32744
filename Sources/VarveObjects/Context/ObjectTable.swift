// The living objects of a context, by ID, held weakly.
//
// Invariants
// - `places` leads each ID to one slot; a slot in use has a reference that may be dead by now.
// - Slots stay where they are while the dictionary grows: moving a weak reference is not free.

import VarveBase

/// Objects by ID, not kept alive. Every call costs O(1), but for `all`.
struct ObjectTable {
    private var places: [ObjectID: Int32] = [:]
    private var slots: ContiguousArray<WeakObject> = []
    private var free: [Int32] = []

    /// Whether no ID leads anywhere.
    var isEmpty: Bool { places.isEmpty }

    /// The living object with that ID.
    subscript(id: ObjectID) -> (any ManagedObject)? {
        guard let place = places[id] else { return nil }
        return slots[Int(place)].object
    }

    /// Makes room for so many more, if the table is empty.
    mutating func reserve(_ count: Int) {
        guard places.isEmpty else { return }
        places.reserveCapacity(count)
        slots.reserveCapacity(count)
    }

    /// Lets an ID lead to an object.
    mutating func insert(_ object: any ManagedObject, at id: ObjectID) {
        let next = free.last ?? Int32(slots.count)
        let place = Self.place(of: id, in: &places, orNew: next)
        if place != next {
            slots[Int(place)].object = object
        } else if free.popLast() != nil {
            slots[Int(place)].object = object
        } else {
            slots.append(WeakObject(object))
        }
    }

    private static func place(
        of id: ObjectID,
        in places: inout [ObjectID: Int32],
        orNew next: Int32
    ) -> Int32 {
        func take(_ place: inout Int32) -> Int32 {
            if place < 0 { place = next }
            return place
        }
        return take(&places[id, default: -1])
    }

    /// Forgets an ID.
    mutating func remove(_ id: ObjectID) {
        guard let place = places.removeValue(forKey: id) else { return }
        slots[Int(place)].object = nil
        free.append(place)
        // Memory follows what lives, and a few objects that come and go do not fetch it each time.
        if places.isEmpty, slots.count > 256 { self = ObjectTable() }
    }

    /// Forgets an ID whose object died; one that has a new object by now keeps it.
    mutating func removeDead(_ id: ObjectID) {
        guard let place = places[id], slots[Int(place)].object == nil else { return }
        remove(id)
    }

    /// All living objects, ascending by ID.
    var all: [any ManagedObject] {
        places.sorted { $0.key < $1.key }.compactMap { slots[Int($0.value)].object }
    }
}

/// An object that does not keep its object alive.
private struct WeakObject {
    weak var object: (any ManagedObject)?

    init(_ object: any ManagedObject) { self.object = object }
}
