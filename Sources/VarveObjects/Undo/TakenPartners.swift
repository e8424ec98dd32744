// Of a link both ends are in a delta: where others gave one of them another partner, it stays so.

import VarveBase
import VarveRecords

extension DeltaPlan {
    /// Of a link both ends are in a delta. Where others have another partner for one of them, the
    /// other end does not take it away.
    mutating func leavePartnersOfOthers() {
        let changed = conflicts.filter { $0.obstacle == .changed }
        let taken = Set(
            changed.compactMap { conflict in
                conflict.slot.map { ToManyKey(owner: conflict.item.id, slot: $0) }
            }
        )
        if taken.isEmpty { return }
        returning = returning.map { leaving(taken, $0) }
        changing = changing.map { leaving(taken, $0) }
    }

    private mutating func leaving(_ taken: Set<ToManyKey>, _ step: Step) -> Step {
        let model = step.item.model
        func isTaken(_ target: ObjectID?, _ slot: Int) -> Bool {
            guard let target, let relationship = model.properties[slot].relationship,
                !relationship.inverseIsToMany, let inverse = relationship.inverseSlot
            else { return false }
            return taken.contains(ToManyKey(owner: target, slot: inverse))
        }
        var slots = step.slots
        for (slot, value) in step.slots where isTaken(value.object, slot) {
            slots.removeAll { $0.slot == slot }
            conflicts.append(DeltaConflict(item: step.item, slot: slot, obstacle: .changed))
        }
        let lists = step.lists.map { list in list.without { isTaken($0, list.slot) } }
        return Step(item: step.item, slots: slots, lists: lists)
    }
}
