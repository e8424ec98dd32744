// Deciding how a delta is laid over what a context shows. Undo lays it backward, redo and branches
// forward; `Restoring.swift` does it.
//
// Invariants
// - What is to be done is decided before anything is done: one step must not look like somebody
//   else's change to the next.
// - A property that has neither the value that the delta left nor the one that it leads to was
//   changed by somebody else. It is skipped and said, or overwritten, as the caller asks.

import VarveBase
import VarveRecords

/// Why a part of a delta was not laid.
enum DeltaObstacle {
    /// The property has another value meanwhile.
    case changed
    /// The object is gone.
    case gone
    /// The relationship would lead to an object that is gone.
    case targetGone
}

/// A part of a delta that meets what others did.
struct DeltaConflict {
    let item: GraphDelta.Item
    /// Nil: the object as a whole.
    let slot: Int?
    let obstacle: DeltaObstacle
    /// The property that others changed of an object that was to go.
    var changedSlot: Int?
}

/// What laying a delta comes to.
struct DeltaPlan {
    struct Step {
        let item: GraphDelta.Item
        let slots: [(slot: Int, value: StoredValue)]
        let lists: [GraphDelta.List]
    }

    let side: DeltaSide
    var returning: [Step] = []
    var changing: [Step] = []
    var leaving: [GraphDelta.Item] = []
    /// Others deleted them as well, and that stays: only the own deletion is taken back.
    var missed: [GraphDelta.Item] = []
    var conflicts: [DeltaConflict] = []
    /// What stands for all relationships and deletions.
    var journal: Journal?
    /// The edits are not saved.
    var isUnsaved = false
    /// Edits are taken back that are not saved: what others saved beneath them is shown.
    var uncovers: Bool { isUnsaved && side == .before }
}

extension DeltaPlan {
    /// Whether relationships and deletions get their values one by one.
    var isLaidByValues: Bool { journal == nil }

    /// Edits of attributes that ended with the deletion of an object, which is there again.
    mutating func giveBackEdits(of item: GraphDelta.Item) {
        let slots = item.values.filter { !$0.wasStored && item.isAttribute($0.slot) }
            .map { ($0.slot, $0.on(side)) }
        if slots.isEmpty { return }
        changing.append(Step(item: item, slots: slots, lists: []))
    }
}

extension GraphDelta.Item {
    func isAttribute(_ slot: Int) -> Bool {
        model.properties[slot].relationship == nil
    }
}

extension ManagedObjectContext {
    // MARK: Deciding

    /// What is not saved nobody else can have changed, but between a branch and its parent.
    private func isOnlyOurs(_ id: ObjectID, _ isMerge: Bool) -> Bool {
        !isMerge && branchState == nil && isUnsaved(id)
    }

    /// What has to be done to bring the objects of a delta to one of its sides.
    /// - Parameters:
    ///   - overwrites: whether what others changed gives way.
    ///   - leavesOthersDeletions: whether what others deleted as well stays deleted.
    ///   - isMerge: whether the delta is that of a branch, whose parent went on meanwhile.
    func plan(
        _ delta: GraphDelta,
        to side: DeltaSide,
        overwrites: Bool,
        leavesOthersDeletions: Bool = false,
        isMerge: Bool = false
    ) -> DeltaPlan {
        var plan = DeltaPlan(side: side)
        // Unsaved edits of relationships are taken back as such, whatever others did.
        plan.isUnsaved = delta.journals?.era == era
        if plan.isUnsaved, !has(.undoForgetsTheJournal) {
            plan.journal = delta.journals?.on(side)
        }
        let isReturning = Set(
            delta.items.filter { $0.isThere(side) && !$0.isThere(side.other) }
                .filter { !isThere($0.id, $0.model) }.map(\.id)
        )
        lazy var links = DeltaLinks(delta, side.other)
        // A deletion that is done again over what others did is decided object by object.
        if side == .after, plan.journal != nil, takesFromOthers(delta) { plan.journal = nil }
        for item in delta.items {
            let isThere = isThere(item.id, item.model)
            switch (item.isThere(side), isThere) {
            case (false, false) where !isOutOfSight(item, plan): continue
            case (false, _):
                let isOurs = overwrites || plan.journal != nil || isOnlyOurs(item.id, isMerge)
                if let conflict = isOurs ? nil : othersChange(of: item, side, links) {
                    plan.conflicts.append(conflict)
                } else {
                    plan.leaving.append(item)
                }
            case (true, false):
                if !item.isThere(side.other) {
                    // A deletion that is not saved is taken back, and not that of others.
                    let leaves = leavesOthersDeletions || plan.uncovers
                    decideReturning(item, &plan, isReturning, leaves)
                } else if let edits = editsOfGone(item, plan, leavesOthersDeletions) {
                    decideChanges(edits, &plan, overwrites, isReturning)
                } else {
                    plan.conflicts.append(DeltaConflict(item: item, slot: nil, obstacle: .gone))
                }
            case (true, true):
                if item.isThere(side.other) {
                    decideChanges(item, &plan, overwrites, isReturning)
                } else if plan.uncovers, plan.journal != nil {
                    // Somebody has brought it back, or out of reach, already: it is his. Edits that
                    // ended with it are ours.
                    plan.giveBackEdits(of: item)
                } else if plan.isLaidByValues, !isReturning.isEmpty {
                    // It had stayed where others came with it: what led to them leads there again.
                    decideLinks(of: item, &plan, isReturning)
                }
            }
        }
        if !overwrites {
            plan.leavePartnersOfOthers()
            if plan.isLaidByValues { leaveWhatBelongsTogether(delta, &plan) }
        }
        return plan
    }

    /// Out of sight, edits are taken back all the same. So are edits that are not saved of an
    /// object that others deleted, and those of a transaction that throws: its attributes. Of
    /// relationships nothing is left where the journal says nothing of them: an object that is gone
    /// leads nowhere.
    private func editsOfGone(
        _ item: GraphDelta.Item,
        _ plan: DeltaPlan,
        _ leavesOthersDeletions: Bool
    ) -> GraphDelta.Item? {
        if plan.journal != nil, isHidden(item.id) { return item }
        let isUnsaved = plan.isUnsaved && !has(.undoLeavesEditsOfTheGone)
        guard leavesOthersDeletions || isUnsaved, isDeletedByOthers(item) else { return nil }
        return item.with(item.values.filter { item.isAttribute($0.slot) }, [])
    }

    func isDeletedByOthers(_ item: GraphDelta.Item) -> Bool {
        guard let object = registered(item.id) ?? item.object else { return false }
        let state = object.storage.state
        return state.contains(.gone) && state.isDisjoint(with: [.ended, .invalid])
    }

    /// The object of an item that stays: one that others deleted cannot be read again.
    func shownInstance(_ item: GraphDelta.Item) -> any ManagedObject {
        isDeletedByOthers(item)
            ? instance(item.id, item.model, item.object) : object(item.id, item.model)
    }

    private func decideReturning(
        _ item: GraphDelta.Item,
        _ plan: inout DeltaPlan,
        _ isReturning: Set<ObjectID>,
        _ leavesOthersDeletions: Bool
    ) {
        if leavesOthersDeletions, isDeletedByOthers(item) {
            plan.missed.append(item)
            plan.conflicts.append(DeltaConflict(item: item, slot: nil, obstacle: .gone))
            return
        }
        var values = item.values
        if plan.journal == nil {
            values.removeAll { value in
                guard let target = value.on(plan.side).object, !isReturning.contains(target),
                    let far = targetModel(item.model, value.slot), !isThere(target, far)
                else { return false }
                plan.conflicts.append(
                    DeltaConflict(item: item, slot: value.slot, obstacle: .targetGone)
                )
                return true
            }
        }
        if plan.uncovers, let object = registered(item.id), isPending(object) {
            values.removeAll { $0.wasStored && item.isAttribute($0.slot) }
        }
        let slots = values.map { ($0.slot, $0.on(plan.side)) }
        plan.returning.append(DeltaPlan.Step(item: item, slots: slots, lists: item.lists))
    }

    /// Of an object that is there: its relationships to those that come back, and nothing else.
    private func decideLinks(
        of item: GraphDelta.Item,
        _ plan: inout DeltaPlan,
        _ isReturning: Set<ObjectID>
    ) {
        let object = object(item.id, item.model)
        let slots = item.values.filter { value in
            guard let target = value.on(plan.side).object else { return false }
            return isReturning.contains(target) && shownValue(of: object, value.slot) == .null
        }
        let lists = item.lists.compactMap { list -> GraphDelta.List? in
            let members = list.sides(plan.side)?.wanted ?? list.wanted(plan.side).added
            let added = members.filter(isReturning.contains)
            if added.isEmpty { return nil }
            return GraphDelta.List(
                slot: list.slot,
                removed: plan.side == .before ? added : [],
                added: plan.side == .before ? [] : added,
                members: list.members,
                leavesOrder: true
            )
        }
        if slots.isEmpty, lists.isEmpty { return }
        let links = GraphDelta.Item(
            model: item.model,
            id: item.id,
            existed: true,
            exists: true,
            wasSaved: item.wasSaved,
            object: nil,
            values: slots,
            lists: lists
        )
        plan.changing.append(
            DeltaPlan.Step(
                item: links,
                slots: slots.map { ($0.slot, $0.on(plan.side)) },
                lists: lists
            )
        )
    }

    /// What others saved of a property, beneath the edit that is to be taken back.
    private func uncovered(
        _ value: GraphDelta.Value,
        of object: any ManagedObject,
        _ plan: DeltaPlan
    ) -> StoredValue? {
        guard plan.uncovers, value.wasStored, !object.isInserted, !has(.undoForgetsOthers),
            let row = try? storedValue(of: object, slot: value.slot),
            !row.isSame(as: value.before)
        else { return nil }
        return row
    }

    /// A value without references to what is not there.
    func shownValue(of object: any ManagedObject, _ slot: Int) -> StoredValue? {
        guard let value = value(of: object, slot: slot) else { return nil }
        return leads(value, object.storage.model, slot) ? value : .null
    }

    private func decideChanges(
        _ item: GraphDelta.Item,
        _ plan: inout DeltaPlan,
        _ overwrites: Bool,
        _ isReturning: Set<ObjectID>
    ) {
        let object = shownInstance(item)
        var slots: [(slot: Int, value: StoredValue)] = []
        for value in item.values {
            let isReference = item.model.properties[value.slot].relationship != nil
            if isReference, plan.journal != nil { continue }
            guard let now = shownValue(of: object, value.slot) else { continue }
            let wanted = value.on(plan.side)
            if !isReference, let theirs = uncovered(value, of: object, plan) {
                slots.append((value.slot, theirs))
                let conflict = DeltaConflict(item: item, slot: value.slot, obstacle: .changed)
                plan.conflicts.append(conflict)
                continue
            }
            if value.isHidden {
                let raw = self.value(of: object, slot: value.slot)
                if raw?.object != nil, now == .null { slots.append((value.slot, .null)) }
                continue
            }
            if now.isSame(as: wanted) || value.dangles && wanted == .null { continue }
            if !overwrites, !now.isSame(as: value.on(plan.side.other)) {
                plan.conflicts.append(
                    DeltaConflict(item: item, slot: value.slot, obstacle: .changed)
                )
                continue
            }
            if let target = wanted.object, !isReturning.contains(target),
                let far = targetModel(item.model, value.slot), !isThere(target, far)
            {
                plan.conflicts.append(
                    DeltaConflict(item: item, slot: value.slot, obstacle: .targetGone)
                )
                continue
            }
            slots.append((value.slot, wanted))
        }
        let isOurs = overwrites || plan.journal != nil
        let lists = isOurs ? item.lists : decideLists(item, &plan)
        if slots.isEmpty, lists.isEmpty { return }
        plan.changing.append(DeltaPlan.Step(item: item, slots: slots, lists: lists))
    }
}
