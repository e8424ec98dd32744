// What a redo really did. Others may have changed what its step had done: that is theirs, and an
// undo of the redo does not bring it back.
//
// Invariants
// - The step of a redo has what changed by it, and nothing that was so already or was skipped.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// The part of a delta that a plan does. Call it before that is done.
    /// - Complexity: O(values and members of the delta).
    func trimmed(_ delta: GraphDelta, to plan: DeltaPlan) -> GraphDelta {
        guard plan.side == .after, plan.isLaidByValues else { return delta }
        var stays: Set<ObjectID> = []
        var skipped: Set<ToManyKey> = []
        for conflict in plan.conflicts {
            let id = conflict.item.id
            if let slot = conflict.slot {
                skipped.insert(ToManyKey(owner: id, slot: slot))
            } else {
                stays.insert(id)
            }
        }
        var trimmed = delta
        // They say more than was done.
        trimmed.journals = nil
        trimmed.items = delta.items.compactMap { item in
            if stays.contains(item.id) { return nil }
            guard item.existed, isThere(item.id, item.model) else { return item }
            if !item.exists { return item.with(item.values, done(item.lists, item)) }
            let object = object(item.id, item.model)
            let values = item.values.filter { value in
                if skipped.contains(ToManyKey(owner: item.id, slot: value.slot)) { return false }
                if value.after == .null, value.before.object.map(stays.contains) == true {
                    return false
                }
                return shownValue(of: object, value.slot)?.isSame(as: value.after) != true
            }
            let lists = done(item.lists.map { $0.keeping(stays) }, item)
            return values.isEmpty && lists.isEmpty ? nil : item.with(values, lists)
        }
        return trimmed
    }

    private func done(_ lists: [GraphDelta.List], _ item: GraphDelta.Item) -> [GraphDelta.List] {
        let object = object(item.id, item.model)
        return lists.compactMap { list in
            guard let now = try? members(of: object, slot: list.slot) else { return list }
            return list.done(over: Set(now), isWhole: !item.exists)
        }
    }
}

extension GraphDelta.List {
    /// What is done of it where these are members.
    /// - Parameter isWhole: whether its object goes with it.
    fileprivate func done(over present: Set<ObjectID>, isWhole: Bool) -> Self? {
        let list = Self(
            slot: slot,
            removed: removed.filter(present.contains),
            added: added.filter { !present.contains($0) },
            members: members.map { sides in
                (
                    sides.before.filter {
                        present.contains($0) || !isWhole && !removed.contains($0)
                    },
                    sides.after
                )
            },
            leavesOrder: leavesOrder,
            wasStored: wasStored
        )
        if isWhole { return list }
        let isSame = list.members.map { $0.before == $0.after } ?? true
        return list.removed.isEmpty && list.added.isEmpty && isSame ? nil : list
    }
}
