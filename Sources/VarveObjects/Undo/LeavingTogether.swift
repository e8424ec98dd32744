// An owner and what its cascades reach go together, or stay together.
//
// Invariants
// - A deletion that is done again takes along what its cascades reached, but for what belongs to
//   one that stays, or what others took out of a list.
// - An object whose cascades would take one that stays, stays as well: nobody loses what others
//   edited, and no object is left without its owner.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// Takes out of a plan what is to go and belongs to what stays, in either direction.
    /// - Complexity: O(n) for n objects that go, and what their relationships cost; once more for
    ///   each level of owners that stay.
    func leaveWhatBelongsTogether(_ delta: GraphDelta, _ plan: inout DeltaPlan) {
        let reach = DeltaReach(delta, plan)
        while true {
            let leaving = Set(plan.leaving.map(\.id))
            let stays = plan.leaving.filter { item in
                plan.side == .after && isOut(item, leaving, reach) || keepsOne(item, leaving, reach)
            }
            if stays.isEmpty { return }
            let out = Set(stays.map(\.id))
            plan.leaving.removeAll { out.contains($0.id) }
            plan.conflicts += stays.map { DeltaConflict(item: $0, slot: nil, obstacle: .changed) }
        }
    }

    /// Whether the cascade that came to an object does not come to it any more.
    private func isOut(
        _ item: GraphDelta.Item,
        _ leaving: Set<ObjectID>,
        _ reach: DeltaReach
    ) -> Bool {
        guard let id = item.reachedBy, let owner = reach.items[id], !isHidden(item.id),
            isThere(id, owner.model)
        else { return false }
        if !leaving.contains(id) { return true }
        return owner.lists.contains { list in
            list.sides(.after)?.left.contains(item.id) == true
                && owner.model.cascadeSlots.contains(list.slot)
                && (try? isMember(item.id, id, owner.model, list.slot)) == false
        }
    }

    /// Whether the cascades of an object that is to go come to one that stays.
    private func keepsOne(
        _ item: GraphDelta.Item,
        _ leaving: Set<ObjectID>,
        _ reach: DeltaReach
    ) -> Bool {
        let (model, id) = (item.model, item.id)
        if has(.redoCascadesFurther) || isHidden(id) { return false }
        return model.cascadeSlots.contains { slot in
            guard let relationship = model.properties[slot].relationship,
                let far = targetModel(model, slot),
                let now = try? targets(model, id, slot)
            else { return false }
            // What it led to when it was deleted, it leads to again before it goes.
            let last = item.values.first { $0.slot == slot && item.existed }?.after.object
            return (now + [last].compactMap(\.self)).contains { target in
                !leaving.contains(target) && isThere(target, far)
                    && !reach.takesOut(target, of: id, slot, relationship)
            }
        }
    }
}

/// What a plan knows of the objects that leave and of those that are moved before.
private struct DeltaReach {
    private struct Link: Hashable {
        let owner: ObjectID
        let slot: Int
        let target: ObjectID
    }

    let items: [ObjectID: GraphDelta.Item]
    /// To-one relationships that get another value.
    private var values: [ToManyKey: ObjectID?] = [:]
    /// Lists that lose a member.
    private var removed: Set<Link> = []

    init(_ delta: GraphDelta, _ plan: DeltaPlan) {
        items = Dictionary(
            delta.items.map { ($0.id, $0) },
            uniquingKeysWith: { first, _ in first }
        )
        for step in plan.changing + plan.returning {
            for (slot, value) in step.slots
            where step.item.model.properties[slot].relationship != nil {
                values[ToManyKey(owner: step.item.id, slot: slot)] = .some(value.object)
            }
            note(step.lists, of: step.item, plan.side)
        }
        for item in plan.leaving { note(item.lists, of: item, plan.side) }
    }

    private mutating func note(
        _ lists: [GraphDelta.List],
        of item: GraphDelta.Item,
        _ side: DeltaSide
    ) {
        for list in lists {
            for member in list.wanted(side).removed {
                removed.insert(Link(owner: item.id, slot: list.slot, target: member))
            }
        }
    }

    /// Whether a target is led elsewhere before its owner goes.
    func takesOut(
        _ target: ObjectID,
        of owner: ObjectID,
        _ slot: Int,
        _ relationship: RelationshipModel
    ) -> Bool {
        if removed.contains(Link(owner: owner, slot: slot, target: target)) { return true }
        guard let inverse = relationship.inverseSlot else { return false }
        if removed.contains(Link(owner: target, slot: inverse, target: owner)) { return true }
        guard let value = values[ToManyKey(owner: target, slot: inverse)] else { return false }
        return value != owner
    }
}
