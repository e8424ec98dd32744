// What others did to objects that a delta takes away, and what deletions hide.
//
// Invariants
// - An object that is to go takes nothing along that the delta does not know: who changed it, or
//   linked something to it since, keeps it.

import VarveBase
import VarveRecords

/// All links on one side of a delta, from whichever end it knows them.
struct DeltaLinks {
    private struct Link: Hashable {
        let owner: ObjectID
        let slot: Int
        let target: ObjectID
    }

    private var links: Set<Link> = []

    /// - Complexity: O(values and members of the delta).
    init(_ delta: GraphDelta, _ side: DeltaSide) {
        for item in delta.items {
            for value in item.values {
                guard let target = value.on(side).object else { continue }
                links.insert(Link(owner: item.id, slot: value.slot, target: target))
            }
            for list in item.lists {
                let members = list.sides(side)?.wanted ?? []
                // A list without an order names only those that came and went.
                for member in members + list.wanted(side).added {
                    links.insert(Link(owner: item.id, slot: list.slot, target: member))
                }
            }
        }
    }

    func has(_ target: ObjectID, from owner: ObjectID, _ slot: Int) -> Bool {
        links.contains(Link(owner: owner, slot: slot, target: target))
    }
}

extension ManagedObjectContext {
    /// What others did to an object that is to go: a value that is not the delta's, or something
    /// that they linked to it. Nil: nothing.
    /// - Complexity: O(its values and members, and what leads to it).
    func othersChange(
        of item: GraphDelta.Item,
        _ side: DeltaSide,
        _ links: DeltaLinks
    ) -> DeltaConflict? {
        func conflict(_ slot: Int?) -> DeltaConflict {
            DeltaConflict(item: item, slot: nil, obstacle: .changed, changedSlot: slot)
        }
        let object = object(item.id, item.model)
        // What a hidden object leads to may be hidden with it.
        let isHidden = isHidden(item.id)
        for value in item.values {
            let slot = value.slot
            let shown = isHidden ? self.value(of: object, slot: slot) : shownValue(of: object, slot)
            guard let now = shown, now.isSame(as: value.on(side.other))
            else { return conflict(value.slot) }
        }
        if has(.undoForgetsOthersLinks) { return nil }
        let list = item.lists.first { isRearranged($0, item, side) }
        if let slot = list?.slot ?? slotOfStrangers(object, links) { return conflict(slot) }
        return isNamedByStrangers(object, links) ? conflict(nil) : nil
    }

    /// A to-many relationship with a member that the delta does not know.
    private func slotOfStrangers(_ object: any ManagedObject, _ links: DeltaLinks) -> Int? {
        let (model, id) = (object.storage.model, object.storage.object)
        return model.relationshipSlots.first { slot in
            guard let relationship = model.properties[slot].relationship, relationship.isToMany,
                let members = try? members(of: object, slot: slot)
            else { return false }
            return members.contains { member in
                if links.has(member, from: id, slot) { return false }
                return relationship.inverseSlot.map { !links.has(id, from: member, $0) } ?? true
            }
        }
    }

    /// Whether a relationship without inverse leads to an object, and the delta does not know it.
    private func isNamedByStrangers(_ object: any ManagedObject, _ links: DeltaLinks) -> Bool {
        let (model, id) = (object.storage.model, object.storage.object)
        for (owner, slot) in schema.incoming(model.record.id) {
            let others = (try? referring(owner, slot, to: id)) ?? []
            for other in others
            where isThere(other, owner) && !links.has(id, from: other, slot) {
                if (try? reference(other, owner, slot)) == id { return true }
            }
        }
        return looseOwners(of: id, model).contains { owner in
            // Those that had it once are among them.
            !links.has(id, from: owner.id, owner.slot)
                && (try? isMember(id, owner.id, owner.model, owner.slot)) == true
        }
    }

    /// Whether a delta deletes a saved object that others changed or linked something to. One that
    /// others deleted as well, and an undo brought back, is new and nobody else's.
    func takesFromOthers(_ delta: GraphDelta) -> Bool {
        lazy var links = DeltaLinks(delta, .before)
        return delta.items.contains { item in
            item.existed && !item.exists && item.wasSaved && isThere(item.id, item.model)
                && changed[item.id]?.isInserted != true
                && othersChange(of: item, .after, links) != nil
        }
    }

    // MARK: What deletions hide

    /// Whether an object that is to go is only hidden, so that it would come back when the deletion
    /// that hides it is taken back, or does not reach it any more.
    func isOutOfSight(_ item: GraphDelta.Item, _ plan: DeltaPlan) -> Bool {
        guard isHidden(item.id), let object = changed[item.id] else { return false }
        if isPhantom(object) { return true }
        // The journal of the step, or one that is there, deletes it.
        return plan.isLaidByValues
            && !journal.intents.contains { intent in
                if case .delete(_, item.id) = intent { return true }
                return false
            }
    }

    /// Whether a deletion that is not saved hides an object, which may have edits.
    func isHidden(_ id: ObjectID) -> Bool {
        guard isDoomed(id), let object = changed[id] else { return false }
        return object.storage.state.contains(.deleted)
    }

    /// Lays a value over the row of a hidden object.
    func hide(_ value: StoredValue, in object: any ManagedObject, _ slot: Int) {
        do throws(StoreError) { try setEdit(value, of: object, slot: slot) } catch {
            note(error, object)
        }
    }
}
