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
    /// - Complexity: O(n) for n objects that go, and what their relationships cost.
    func leaveWhatBelongsTogether(_ delta: GraphDelta, _ plan: inout DeltaPlan) {
        leaveTogether(delta, &plan)
        if plan.side == .after { leaveLinks(&plan) }
    }

    /// What leads to an object that stays, although a deletion that is done again was to take it,
    /// leads there still.
    private func leaveLinks(_ plan: inout DeltaPlan) {
        let side = plan.side
        let stays = Set(
            plan.conflicts.filter { $0.slot == nil && !$0.item.isThere(side) }.map(\.item.id)
        )
        if stays.isEmpty { return }
        plan.changing = plan.changing.compactMap { step in
            let slots = step.slots.filter { slot, value in
                let before = step.item.values.first { $0.slot == slot }?.before.object
                return value != .null || before.map(stays.contains) != true
            }
            let lists = step.lists.map { $0.keeping(stays) }
            if slots.isEmpty, lists.isEmpty { return nil }
            return DeltaPlan.Step(item: step.item, slots: slots, lists: lists)
        }
    }

    private func leaveTogether(_ delta: GraphDelta, _ plan: inout DeltaPlan) {
        if plan.leaving.isEmpty { return }
        let leaving = Set(plan.leaving.map(\.id))
        let reach = DeltaReach(delta, plan)
        // Who stays with an object: its owners, and what belongs to it.
        var fellows: [ObjectID: [ObjectID]] = [:]
        var next: [ObjectID] = []
        for item in plan.leaving {
            if plan.side == .after, let owner = owner(of: item, reach) {
                if !leaving.contains(owner.id) || isTakenOut(item, of: owner, reach) {
                    next.append(item.id)
                } else {
                    fellows[owner.id, default: []].append(item.id)
                }
            }
            for target in reached(by: item, reach) {
                if leaving.contains(target) {
                    fellows[target, default: []].append(item.id)
                } else {
                    next.append(item.id)
                }
            }
        }
        var stays: Set<ObjectID> = []
        while let id = next.popLast() {
            if stays.insert(id).inserted { next += fellows[id] ?? [] }
        }
        if stays.isEmpty { return }
        for item in plan.leaving where stays.contains(item.id) {
            plan.conflicts.append(DeltaConflict(item: item, slot: nil, obstacle: .changed))
        }
        plan.leaving.removeAll { stays.contains($0.id) }
    }

    /// The object from which a cascade came to another one that is to be deleted again.
    private func owner(of item: GraphDelta.Item, _ reach: DeltaReach) -> GraphDelta.Item? {
        guard let id = item.reachedBy, let owner = reach.items[id], !isHidden(item.id),
            isThere(id, owner.model)
        else { return nil }
        return owner
    }

    /// Whether others took it out of the list by which the cascade came to it.
    private func isTakenOut(
        _ item: GraphDelta.Item,
        of owner: GraphDelta.Item,
        _ reach: DeltaReach
    ) -> Bool {
        owner.lists.contains { list in
            reach.hadMember(item.id, of: owner.id, list.slot)
                && owner.model.cascadeSlots.contains(list.slot)
                && (try? isMember(item.id, owner.id, owner.model, list.slot)) == false
        }
    }

    /// What the cascades of an object that is to go will come to.
    private func reached(by item: GraphDelta.Item, _ reach: DeltaReach) -> [ObjectID] {
        let (model, id) = (item.model, item.id)
        if has(.ownersGoAlone) || isHidden(id) { return [] }
        return model.cascadeSlots.flatMap { slot -> [ObjectID] in
            guard let relationship = model.properties[slot].relationship,
                let far = targetModel(model, slot),
                let now = try? targets(model, id, slot)
            else { return [] }
            // What it led to when it was deleted, it leads to again before it goes.
            let last = item.values.first { $0.slot == slot && item.existed }?.after.object
            return (now + [last].compactMap(\.self)).filter { target in
                isThere(target, far) && !reach.takesOut(target, of: id, slot, relationship)
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
    /// The members that owners had when they were deleted.
    private var members: Set<Link> = []

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
        if plan.side == .before { return }
        for item in delta.items where !item.exists {
            for list in item.lists {
                for member in list.sides(.after)?.left ?? [] {
                    members.insert(Link(owner: item.id, slot: list.slot, target: member))
                }
            }
        }
    }

    func hadMember(_ target: ObjectID, of owner: ObjectID, _ slot: Int) -> Bool {
        members.contains(Link(owner: owner, slot: slot, target: target))
    }

    private mutating func note(
        _ lists: [GraphDelta.List],
        of item: GraphDelta.Item,
        _ side: DeltaSide
    ) {
        for list in lists {
            for member in list.wanted(side).removed
            // What was made with it does not go back to where it was.
            where side == .after || items[member]?.existed != false {
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

extension GraphDelta.List {
    /// The same list, which does not lose some members by a deletion.
    func keeping(_ stays: Set<ObjectID>) -> Self {
        let kept = removed.filter(stays.contains)
        if kept.isEmpty { return self }
        let keeps = Set(kept)
        return Self(
            slot: slot,
            removed: removed.filter { !keeps.contains($0) },
            added: added,
            members: members.map { sides in
                let (known, wanted) = (Set(sides.before), keeps.union(sides.after))
                return (
                    sides.before,
                    sides.before.filter(wanted.contains)
                        + sides.after.filter { !known.contains($0) }
                )
            },
            leavesOrder: leavesOrder,
            wasStored: wasStored
        )
    }
}
