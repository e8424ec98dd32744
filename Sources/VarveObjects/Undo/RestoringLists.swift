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

    /// - Parameter start: the count of withdrawals at the beginning: another one ends it.
    func setLists(_ step: DeltaPlan.Step, _ side: DeltaSide, since start: Int) {
        for list in step.lists where withdrawals == start {
            set(list, of: step.item, to: side, since: start)
        }
    }

    private func set(
        _ list: GraphDelta.List,
        of item: GraphDelta.Item,
        to side: DeltaSide,
        since start: Int
    ) {
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
                if withdrawals != start { return }
                submit(.unlink(model, id, slot: slot, member), object)
            }
            if withdrawals != start { return }
            if list.leavesOrder, let members {
                try place(added.filter { isThere($0, far) }, in: object, slot, as: members)
                return
            }
            for member in added where withdrawals == start && isThere(member, far) {
                if try isMember(member, of: object, slot: slot) { continue }
                submit(.link(model, id, slot: slot, member, .end), object)
            }
            guard relationship.isOrdered, let members, withdrawals == start else { return }
            let now = try self.members(of: object, slot: slot)
            let wanted = Self.merged(now, into: members)
            if wanted != now { submit(.arrange(model, id, slot: slot, wanted), object) }
        } catch {
            note(error, object)
        }
    }

    /// Puts members into a list, each behind the nearest one that stood before it in `order` and is
    /// there. Their other sides may have brought them, behind all others.
    /// - Complexity: O(n) for each.
    private func place(
        _ added: [ObjectID],
        in object: any ManagedObject,
        _ slot: Int,
        as order: [ObjectID]
    ) throws(StoreError) {
        let (isAdded, start) = (Set(added), withdrawals)
        var now = try members(of: object, slot: slot).filter { !isAdded.contains($0) }
        var present = Set(now)
        var before: ObjectID?
        for member in order where withdrawals == start {
            if isAdded.contains(member) {
                let index = before.flatMap { now.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
                let place = LinkPlace.between(before, index < now.count ? now[index] : nil)
                let (model, id) = (object.storage.model, object.storage.object)
                submit(.link(model, id, slot: slot, member, place), object)
                now.insert(member, at: index)
                present.insert(member)
            }
            if present.contains(member) { before = member }
        }
        for member in added where withdrawals == start && !present.contains(member) {
            let (model, id) = (object.storage.model, object.storage.object)
            submit(.link(model, id, slot: slot, member, .end), object)
        }
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
