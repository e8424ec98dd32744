// Unsaved additions to and removals from one to-many relationship, over the members of one commit.
//
// Invariants
// - `add` is called for what is no member at that moment, `remove` for what is one.
// - An ordered relationship keeps its whole list once something was placed in it.
// - Additions and removals cost O(1); placing costs a move within an array.

import VarveBase

/// One side of a relationship: an object and a slot of its entity.
struct ToManyKey: Hashable {
    var owner: ObjectID
    var slot: Int
}

/// The edits of one to-many relationship.
final class ToManyEdit {
    let owner: ObjectID
    let model: EntityModel
    let slot: Int
    private let isOrdered: Bool
    /// Added members, with the order in which they came.
    private var additions: [ObjectID: Int] = [:]
    private var next = 0
    private(set) var removed: Set<ObjectID> = []
    /// All members, once an ordered relationship was rearranged.
    private(set) var order: [ObjectID]?
    /// The members, for the commit that they were computed on.
    private var cached: (commit: CommitNumber?, ids: [ObjectID])?

    init(owner: ObjectID, model: EntityModel, slot: Int) {
        self.owner = owner
        self.model = model
        self.slot = slot
        isOrdered = model.properties[slot].relationship?.isOrdered ?? false
    }

    /// Members that the commit does not have, or has elsewhere, in the order in which they came.
    var added: [ObjectID] { additions.sorted { $0.value < $1.value }.map(\.key) }

    /// Whether nothing is different from the commit.
    var isEmpty: Bool { additions.isEmpty && removed.isEmpty && order == nil }

    func add(_ id: ObjectID) {
        cached = nil
        order?.append(id)
        // Back again is as if nothing had been; in an order it stands elsewhere.
        if removed.contains(id), !isOrdered {
            removed.remove(id)
            return
        }
        additions[id] = next
        next += 1
    }

    func remove(_ id: ObjectID) {
        cached = nil
        if additions.removeValue(forKey: id) == nil { removed.insert(id) }
        if let place = order?.firstIndex(of: id) { order?.remove(at: place) }
    }

    /// Puts a member between two others; `members` are all there are now, itself included.
    func place(_ id: ObjectID, _ place: LinkPlace, among members: [ObjectID]) {
        cached = nil
        var list = order ?? members
        order = nil
        if let old = list.last == id ? list.count - 1 : list.firstIndex(of: id) {
            list.remove(at: old)
        }
        list.insert(id, at: Self.index(of: place, in: list))
        order = list
    }

    private static func index(of place: LinkPlace, in list: [ObjectID]) -> Int {
        switch place {
        case .end: return list.count
        case .between(nil, nil): return 0
        case .between(nil, let behind?):
            // It stood in front of this one, and in front of all.
            if list.first == behind { return 0 }
            return list.firstIndex(of: behind) ?? 0
        case .between(let before?, let behind):
            if let index = list.firstIndex(of: before) { return index + 1 }
            return behind.flatMap { list.firstIndex(of: $0) } ?? list.count
        }
    }

    /// Makes the members come in this order.
    func arrange(_ ids: [ObjectID]) {
        cached = nil
        order = ids
    }

    /// Whether all that may be different from the commit is the order.
    var isOnlyOrdered: Bool { order != nil && additions.isEmpty && removed.isEmpty }

    /// Takes an order back that is the commit's own.
    func dropOrder(over base: [ObjectID]) {
        guard additions.isEmpty, removed.isEmpty, order == base else { return }
        order = nil
        cached = nil
    }

    /// Whether all that was taken out of an order was added again.
    var isOnlyMoved: Bool {
        !removed.isEmpty && additions.count == removed.count
            && removed.allSatisfy { additions[$0] != nil }
    }

    /// Takes everything back if what was taken out stands where it stood.
    func dropMoves(over base: [ObjectID]) {
        guard isOnlyMoved, members(over: base, commit: nil) == base else { return }
        additions = [:]
        removed = []
        order = nil
        cached = nil
    }

    func says(_ id: ObjectID) -> Bool? {
        additions[id] != nil ? true : removed.contains(id) ? false : nil
    }

    /// The members: those of the commit, without the removed, with the added.
    func members(over base: [ObjectID], commit: CommitNumber?) -> [ObjectID] {
        if let order { return order }
        if let cached, cached.commit == commit { return cached.ids }
        var ids = removed.isEmpty ? base : base.filter { !removed.contains($0) }
        if isOrdered {
            ids += added
        } else if !additions.isEmpty {
            ids = Self.merge(ids, additions.keys.sorted())
        }
        cached = (commit, ids)
        return ids
    }

    private static func merge(_ left: [ObjectID], _ right: [ObjectID]) -> [ObjectID] {
        var result: [ObjectID] = []
        result.reserveCapacity(left.count + right.count)
        var index = 0
        for id in right {
            while index < left.count, left[index] < id {
                result.append(left[index])
                index += 1
            }
            if index < left.count, left[index] == id { index += 1 }
            result.append(id)
        }
        result += left[index...]
        return result
    }
}
