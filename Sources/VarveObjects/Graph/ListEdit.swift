// Unsaved additions to and removals from one to-many relationship, over the members of one commit.
//
// Invariants
// - `add` is called for what is no member at that moment, `remove` for what is one.
// - An ordered relationship keeps its whole list once something was placed in it.
// - Additions, removals and places cost O(log n) each, however long the list is.

import VarveBase

/// One side of a relationship: an object and a slot of its entity.
struct ToManyKey: Hashable {
    var owner: ObjectID
    var slot: Int

    /// See `NumberHash`. Every edit of a relationship is looked up a few times.
    func _rawHashValue(seed: Int) -> Int {
        NumberHash.mix(owner.rawValue ^ UInt64(truncatingIfNeeded: slot) &<< 52, seed)
    }
}

/// The edits of one to-many relationship.
final class ToManyEdit {
    let owner: ObjectID
    let model: EntityModel
    let slot: Int
    private let isOrdered: Bool
    private var additions = Additions()
    private(set) var removed: Set<ObjectID> = []
    /// Members that were removed and added again.
    private var moved = 0
    /// All members, once an ordered relationship was rearranged.
    private(set) var order: MemberOrder?
    /// Deleted objects that are not in `order` any more: the first of all.
    private var stripped = 0
    /// The members, for the commit that they were computed on.
    private var cached: (commit: CommitNumber?, ids: [ObjectID])?

    init(owner: ObjectID, model: EntityModel, slot: Int) {
        self.owner = owner
        self.model = model
        self.slot = slot
        isOrdered = model.properties[slot].relationship?.isOrdered ?? false
    }

    /// Members that the commit does not have, or has elsewhere, in the order in which they came.
    var added: [ObjectID] { additions.ids }

    /// What the edits say of members, wherever they stand.
    var marks: Marks { Marks(additions: Set(additions.ids), removed: removed) }

    /// Whether nothing is different from the commit.
    var isEmpty: Bool { additions.isEmpty && removed.isEmpty && order == nil }

    func add(_ id: ObjectID) {
        cached = nil
        if let count = order?.count, order?.contains(id) == false { order?.insert(id, at: count) }
        // Back again is as if nothing had been; in an order it stands elsewhere.
        if !removed.isEmpty, removed.contains(id) {
            if !isOrdered {
                removed.remove(id)
                return
            }
            moved += 1
        }
        additions.append(id)
    }

    func remove(_ id: ObjectID) {
        cached = nil
        if !additions.remove(id) {
            removed.insert(id)
        } else if removed.contains(id) {
            moved -= 1
        }
        order?.remove(id)
    }

    /// Keeps the whole list from here on. `base` are the members of the commit, `gone` as for
    /// `strip`.
    func startOrder(_ members: [ObjectID], over base: [ObjectID], gone: Int) {
        if order != nil { return }
        order = MemberOrder(members, over: base)
        stripped = gone
    }

    /// Puts a member between two others. The list must be kept as a whole.
    func place(_ id: ObjectID, _ place: LinkPlace) {
        guard var list = order else { return }
        cached = nil
        order = nil
        list.remove(id)
        list.insert(id, at: Self.index(of: place, in: list))
        order = list
    }

    private static func index(of place: LinkPlace, in list: MemberOrder) -> Int {
        switch place {
        case .end: return list.count
        case .between(nil, let behind):
            // It stood in front of this one, and in front of all.
            return behind.flatMap { list.index(of: $0) } ?? 0
        case .between(let before?, let behind):
            if let index = list.index(of: before) { return index + 1 }
            return behind.flatMap { list.index(of: $0) } ?? list.count
        }
    }

    /// Makes the members come in this order.
    func arrange(_ ids: [ObjectID], over base: [ObjectID], gone: Int) {
        cached = nil
        order = MemberOrder(ids, over: base)
        stripped = gone
    }

    /// Takes deleted objects out of the list that is kept as a whole. `gone` only grows: what was
    /// taken out before is not looked at again.
    func strip(_ gone: [ObjectID]) {
        guard order != nil else { return }
        for id in gone.dropFirst(stripped) where order?.contains(id) == true {
            order?.remove(id)
            cached = nil
        }
        stripped = gone.count
    }

    /// Placed, taken out and back: a list that is the commit's own again is no edit.
    /// - Complexity: O(1), and O(edits) when it is.
    func dropOrder() {
        guard let order, order.isBase else { return }
        forget()
    }

    /// Whether exactly what was taken out was added again, after all others.
    var isOnlyMoved: Bool {
        order == nil && moved > 0 && moved == removed.count && moved == additions.count
    }

    /// Takes everything back if what was taken out stands where it stood.
    /// - Complexity: O(moved members), where the last one is the last of the commit.
    func dropMoves(over base: [ObjectID]) {
        guard isOnlyMoved, let last = base.last, additions.last == last,
            base.suffix(moved).elementsEqual(added)
        else { return }
        forget()
    }

    private func forget() {
        additions = Additions()
        removed = []
        order = nil
        moved = 0
        cached = nil
    }

    /// Whether an object is a member; nil: as the commit has it.
    func contains(_ id: ObjectID) -> Bool? { order?.contains(id) ?? says(id) }

    /// How many members there are, over so many of the commit. - Complexity: O(1).
    func count(over base: Int) -> Int { order?.count ?? base - removed.count + additions.count }

    func says(_ id: ObjectID) -> Bool? {
        additions.contains(id) ? true : removed.contains(id) ? false : nil
    }

    /// The members: those of the commit, without the removed, with the added.
    func members(over base: [ObjectID], commit: CommitNumber?) -> [ObjectID] {
        if let cached, cached.commit == commit { return cached.ids }
        if let order {
            let ids = order.ids
            cached = (commit, ids)
            return ids
        }
        var ids = removed.isEmpty ? base : base.filter { !removed.contains($0) }
        if isOrdered {
            ids += added
        } else if !additions.isEmpty {
            ids = Self.merge(ids, additions.ids.sorted())
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

/// Members that a list got, in the order in which they came.
///
/// Most lists are only added to until they are saved. So nothing but a list is kept until somebody
/// asks for a member by its ID.
private struct Additions {
    /// Nil: taken out again.
    private var entries: [ObjectID?] = []
    /// Where each one stands; nil: nobody has asked yet.
    private var places: [ObjectID: Int]?
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    /// In the order in which they came.
    var ids: [ObjectID] { entries.compactMap(\.self) }

    /// Adds what is not among them.
    mutating func append(_ id: ObjectID) {
        places?[id] = entries.count
        entries.append(id)
        count += 1
    }

    /// The one that came last, if it is still there.
    var last: ObjectID? { entries.last ?? nil }

    /// - Complexity: O(1), but for the first time since they were made.
    mutating func contains(_ id: ObjectID) -> Bool { place(of: id) != nil }

    /// False: it was not among them.
    mutating func remove(_ id: ObjectID) -> Bool {
        guard let place = place(of: id) else { return false }
        places?[id] = nil
        entries[place] = nil
        count -= 1
        // What is added and taken out again and again leaves nothing behind.
        if entries.count > 64, count < entries.count / 2 {
            let isLastGone = last == nil
            entries.removeAll { $0 == nil }
            if isLastGone { entries.append(nil) }
            places = nil
        }
        return true
    }

    private mutating func place(of id: ObjectID) -> Int? {
        if count == 0 { return nil }
        if let places { return places[id] }
        if entries.count <= 8 { return entries.firstIndex(of: id) }
        var found: [ObjectID: Int] = [:]
        found.reserveCapacity(entries.count)
        for (place, entry) in entries.enumerated() {
            if let entry { found[entry] = place }
        }
        places = found
        return found[id]
    }
}
