// Laying a delta over to-many relationships: members come and go, and orders are as they were.
//
// Invariants
// - An order that somebody else changed since is his: members come to their neighbours and leave,
//   all others stay where he put them, and an order that the step itself had made is told.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// The lists of an object as a step may lay them.
    /// - Complexity: O(members) for each list with an order.
    func decideLists(_ item: GraphDelta.Item, _ plan: inout DeltaPlan) -> [GraphDelta.List] {
        if has(.undoForgetsOthersOrder) { return item.lists }
        return item.lists.map { list in
            guard isRearranged(list, item, plan.side), let (left, wanted) = list.sides(plan.side),
                let now = try? members(of: object(item.id, item.model), slot: list.slot)
            else { return list }
            let stays = Set(left).intersection(wanted)
            if left.filter(stays.contains) != wanted.filter(stays.contains) {
                let conflict = DeltaConflict(item: item, slot: list.slot, obstacle: .changed)
                plan.conflicts.append(conflict)
            }
            return list.leavingOrder(plan.side, Set(now))
        }
    }

    /// Whether the members of a list stand otherwise than a delta left them.
    func isRearranged(
        _ list: GraphDelta.List,
        _ item: GraphDelta.Item,
        _ side: DeltaSide
    ) -> Bool {
        guard let (left, _) = list.sides(side),
            item.model.properties[list.slot].relationship?.isOrdered == true,
            let now = try? members(of: object(item.id, item.model), slot: list.slot)
        else { return false }
        let (present, known) = (Set(now), Set(left))
        return now.filter(known.contains) != left.filter(present.contains)
    }

    func setLists(_ step: DeltaPlan.Step, _ side: DeltaSide) {
        for list in step.lists { set(list, of: step.item, to: side) }
    }

    private func set(_ list: GraphDelta.List, of item: GraphDelta.Item, to side: DeltaSide) {
        if has(.undoForgetsLists) { return }
        let (model, id, slot) = (item.model, item.id, list.slot)
        guard let far = targetModel(model, slot),
            let relationship = model.properties[slot].relationship
        else { return }
        let object = object(id, model)
        do throws(StoreError) {
            var (added, removed) = list.wanted(side)
            let members = list.sides(side)?.wanted
            if item.existed != item.exists, let members {
                // It comes back with these, whatever its edits made of it.
                let wanted = Set(members)
                removed = try self.members(of: object, slot: slot).filter { !wanted.contains($0) }
                added = members
            }
            for member in removed where try isMember(member, of: object, slot: slot) {
                submit(.unlink(model, id, slot: slot, member), object)
            }
            for member in added where isThere(member, far) {
                // Its other side may have brought it, behind all others.
                if !list.leavesOrder, try isMember(member, of: object, slot: slot) { continue }
                var place = LinkPlace.end
                if list.leavesOrder, let members {
                    let now = try self.members(of: object, slot: slot).filter { $0 != member }
                    place = Self.place(of: member, among: now, as: members)
                }
                submit(.link(model, id, slot: slot, member, place), object)
            }
            guard relationship.isOrdered, let members, !list.leavesOrder else { return }
            let now = try self.members(of: object, slot: slot)
            let wanted = Self.merged(now, into: members)
            if wanted != now { submit(.arrange(model, id, slot: slot, wanted), object) }
        } catch {
            note(error, object)
        }
    }

    /// Behind the nearest one that stood before it in `order` and is there.
    private static func place(
        of member: ObjectID,
        among now: [ObjectID],
        as order: [ObjectID]
    ) -> LinkPlace {
        let present = Set(now)
        guard let index = order.firstIndex(of: member) else { return .end }
        guard let before = order[..<index].last(where: present.contains),
            let place = now.firstIndex(of: before)
        else { return .between(nil, now.first) }
        return .between(before, place + 1 < now.count ? now[place + 1] : nil)
    }

    /// The members of now in an order that some of them had; what others added stays behind the one
    /// that it came after.
    private static func merged(_ now: [ObjectID], into order: [ObjectID]) -> [ObjectID] {
        let (present, known) = (Set(now), Set(order))
        var strangers: [ObjectID: [ObjectID]] = [:]
        var first: [ObjectID] = []
        var last: ObjectID?
        for id in now {
            if known.contains(id) {
                last = id
            } else if let last {
                strangers[last, default: []].append(id)
            } else {
                first.append(id)
            }
        }
        return first + order.filter(present.contains).flatMap { [$0] + (strangers[$0] ?? []) }
    }
}
