// Laying a delta over what a context shows: objects come back, properties get their values, objects
// go. Undo lays it backward, redo and branches forward.
//
// Invariants
// - What is to be done is decided before anything is done: one step must not look like somebody
//   else's change to the next.
// - A property that has neither the value that the delta left nor the one that it leads to was
//   changed by somebody else. It is skipped and said, or overwritten, as the caller asks.
// - All is done by ordinary edits: inverses, conflicts and observers work as they do for the app's.

import Synchronization
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
    fileprivate var leaving: [GraphDelta.Item] = []
    var conflicts: [DeltaConflict] = []
    /// What stands for all relationships and deletions.
    fileprivate var journal: Journal?
    /// Edits are taken back that are not saved: what others saved beneath them is shown.
    fileprivate var uncovers = false
}

extension DeltaPlan {
    /// Whether relationships and deletions get their values one by one.
    var isLaidByValues: Bool { journal == nil }

    /// Edits of attributes that ended with the deletion of an object, which is there again.
    fileprivate mutating func giveBackEdits(of item: GraphDelta.Item) {
        let slots = item.values.filter { !$0.wasStored && item.isAttribute($0.slot) }
            .map { ($0.slot, $0.on(side)) }
        if slots.isEmpty { return }
        changing.append(Step(item: item, slots: slots, lists: []))
    }
}

extension GraphDelta.Item {
    fileprivate func isAttribute(_ slot: Int) -> Bool {
        model.properties[slot].relationship == nil
    }
}

extension ManagedObjectContext {
    // MARK: Deciding

    /// What has to be done to bring the objects of a delta to one of its sides.
    /// - Parameter overwrites: whether what others changed gives way.
    func plan(_ delta: GraphDelta, to side: DeltaSide, overwrites: Bool) -> DeltaPlan {
        var plan = DeltaPlan(side: side)
        // Unsaved edits of relationships are taken back as such, whatever others did.
        let isUnsaved = delta.journals?.era == era
        if isUnsaved, !has(.undoForgetsTheJournal) { plan.journal = delta.journals?.on(side) }
        plan.uncovers = isUnsaved && side == .before
        let isReturning = Set(
            delta.items.filter { $0.isThere(side) && !$0.isThere(side.other) }.map(\.id)
        )
        lazy var links = DeltaLinks(delta, side.other)
        // A deletion that is done again over what others did is decided object by object.
        if side == .after, plan.journal != nil, takesFromOthers(delta) { plan.journal = nil }
        for item in delta.items {
            let isThere = isThere(item.id, item.model)
            switch (item.isThere(side), isThere) {
            case (false, false) where !isOutOfSight(item, plan): continue
            case (false, _):
                // What is not saved nobody else can have changed.
                let isOurs = overwrites || plan.journal != nil || self.isUnsaved(item.id)
                if let conflict = isOurs ? nil : othersChange(of: item, side, links) {
                    plan.conflicts.append(conflict)
                } else {
                    plan.leaving.append(item)
                }
            case (true, false):
                if !item.isThere(side.other) {
                    decideReturning(item, &plan)
                } else if plan.journal != nil, isHidden(item.id) {
                    // Out of sight, its edits are taken back all the same.
                    decideChanges(item, &plan, overwrites, isReturning)
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
                }
            }
        }
        if !overwrites { plan.leavePartnersOfOthers() }
        return plan
    }

    private func decideReturning(_ item: GraphDelta.Item, _ plan: inout DeltaPlan) {
        var values = item.values
        if plan.uncovers, let object = registered(item.id), isPending(object) {
            values.removeAll { $0.wasStored && item.isAttribute($0.slot) }
        }
        let slots = values.map { ($0.slot, $0.on(plan.side)) }
        plan.returning.append(DeltaPlan.Step(item: item, slots: slots, lists: item.lists))
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
        let object = object(item.id, item.model)
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

    // MARK: Doing

    /// Does what was decided, as one edit.
    func lay(_ plan: DeltaPlan, of delta: GraphDelta) {
        journal.settle()
        asOneEdit {
            record(plan)
            if let journal = plan.journal {
                lay(journal, plan, delta)
                return
            }
            bringBack(plan.returning, delta)
            for step in plan.changing { setAttributes(step, delta) }
            for step in plan.returning + plan.changing { setReferences(step, plan.side) }
            for step in plan.returning + plan.changing { setLists(step, plan.side) }
            remove(plan.leaving)
        }
        noteLiveEdit()
    }

    /// The journal is another one; attributes are not in it, nor is who is new.
    private func lay(_ journal: Journal, _ plan: DeltaPlan, _ delta: GraphDelta) {
        for item in plan.leaving {
            guard let object = registered(item.id), object.isInserted, !object.storage.isOver
            else { continue }
            recordDeletion(object)
        }
        for step in plan.returning {
            if let object = registered(step.item.id), isPending(object) {
                recordInsertion(object)
            } else {
                makeAgain(step, delta)
            }
        }
        self.journal = journal
        replay()
        // What others deleted as well, and came back here as new, is deleted by the journal again.
        endEdits(ofDoomed: delta.items.filter { !$0.isThere(plan.side) }.map(\.id))
        for step in plan.returning + plan.changing { setAttributes(step, delta) }
        for item in plan.leaving {
            guard let object = registered(item.id), !object.isInserted, !object.storage.isOver
            else { continue }
            remove([item])
        }
        endNew(plan.leaving)
        forgetIfNothingIsLeft()
    }

    /// Ends new objects that a journal knows nothing of. One that others deleted, and an undo
    /// brought back, may be in it: what leads to it leads nowhere again, and nobody misses it.
    private func endNew(_ items: [GraphDelta.Item]) {
        let ended = items.filter { registered($0.id)?.isInserted == true }
        let returned = ended.filter {
            registered($0.id)?.storage.state.contains(.returned) == true
        }
        if !returned.isEmpty { journal.forget(Set(ended.map(\.id)), schema) }
        for item in ended { endNew(item.id) }
        if returned.isEmpty { return }
        for item in returned { alsoDeleted[item.id] = item.model }
        replay()
    }

    /// Whether an object is deleted, and that is not saved.
    private func isPending(_ object: any ManagedObject) -> Bool {
        !object.isInserted && object.storage.state.contains(.deleted)
    }

    /// Who records beside the undo steps learns what will be touched before deletions are taken
    /// back, which changes more than one property at once.
    private func record(_ plan: DeltaPlan) {
        for step in plan.changing {
            guard let object = registered(step.item.id) else { continue }
            for value in step.item.values { recordValue(of: object, value.slot) }
            for list in step.item.lists { recordList(step.item.id, step.item.model, list.slot) }
        }
    }

    private func bringBack(_ steps: [DeltaPlan.Step], _ delta: GraphDelta) {
        // A deletion that is not saved is taken back: what it did goes with it.
        var pending: Set<ObjectID> = []
        for step in steps {
            guard let object = registered(step.item.id), isPending(object) else { continue }
            pending.insert(step.item.id)
            recordInsertion(object)
        }
        if !pending.isEmpty { takeBackDeletions(pending) }
        for step in steps {
            guard pending.contains(step.item.id) else {
                makeAgain(step, delta)
                continue
            }
            setAttributes(step, delta)
        }
    }

    /// Takes deletions out of the journal. Their objects are as their commit has them.
    private func takeBackDeletions(_ ids: Set<ObjectID>) {
        journal.removeAll { intent in
            if case .delete(_, let id) = intent { return ids.contains(id) }
            return false
        }
        deletesToProcess.removeAll { ids.contains($0) }
        replay()
        for id in ids.sorted() {
            guard let object = registered(id), doomed[id] == nil else { continue }
            unmark(object)
        }
    }

    /// Makes an object again whose row is gone, or that never had one: as a new one with its ID.
    private func makeAgain(_ step: DeltaPlan.Step, _ delta: GraphDelta) {
        let (model, id) = (step.item.model, step.item.id)
        let object = instance(id, model, step.item.object)
        let wasSaved =
            step.item.wasSaved || !object.storage.state.isDisjoint(with: [.gone, .returned])
        object.storage.observation?.announce(object, nil, isBefore: true)
        if let row = object.storage.row {
            object.storage.row = nil
            container.store.rowCache.unpin(row)
            container.counters.realised.subtract(1, ordering: .relaxed)
        }
        object.storage.related = nil
        object.storage.state = wasSaved ? [.inserted, .returned] : .inserted
        let edits = ObjectEdits(values: model.makeInsertValues())
        object.storage.edits = edits
        keptValues[id] = nil
        alsoDeleted[id] = nil
        failures[id] = nil
        for (slot, value) in step.slots where model.properties[slot].relationship == nil {
            keepBlob(value, delta, object, slot)
            edits.values[slot] = value
            edits.assign(slot)
        }
        for (slot, value) in model.derivedValues({ edits.values[$0] }) {
            edits.values[slot] = value
        }
        recordInsertion(object)
        noteChanged(object, id)
        object.storage.observation?.announce(object, nil, isBefore: false)
    }

    /// The instance that the object was, if it can be had.
    func instance(
        _ id: ObjectID,
        _ model: EntityModel,
        _ kept: (any ManagedObject)?
    ) -> any ManagedObject {
        if let known = registered(id) { return known }
        guard let kept, kept.storage.core === core else { return object(id, model) }
        core.registry.insert(kept, id, entity: model.number, token: kept.storage.token)
        return kept
    }

    private func keepBlob(
        _ value: StoredValue,
        _ delta: GraphDelta,
        _ object: any ManagedObject,
        _ slot: Int
    ) {
        guard case .blob(let reference) = value, let blob = delta.blobs[reference] else { return }
        _ = keepPending(blob, for: object, slot)
    }

    private func setAttributes(_ step: DeltaPlan.Step, _ delta: GraphDelta) {
        let object = object(step.item.id, step.item.model)
        // Something else that is deleted takes it along, and may give it back.
        let isHidden = isHidden(step.item.id)
        if object.storage.isDeleted, !isHidden { return }
        for (slot, value) in step.slots
        where step.item.model.properties[slot].relationship == nil {
            keepBlob(value, delta, object, slot)
            if isHidden {
                hide(value, in: object, slot)
            } else {
                set(value, of: object, slot: slot)
            }
        }
    }

    private func setReferences(_ step: DeltaPlan.Step, _ side: DeltaSide) {
        let (model, id) = (step.item.model, step.item.id)
        for (slot, value) in step.slots {
            guard let far = targetModel(model, slot) else { continue }
            let object = object(id, model)
            var target = value.object
            if let wanted = target, !isThere(wanted, far) { target = nil }
            if self.value(of: object, slot: slot)?.object == target { continue }
            submit(.relate(model, id, slot: slot, to: target), object)
        }
    }

    private func remove(_ items: [GraphDelta.Item]) {
        if items.isEmpty { return }
        // What is out of sight is deleted already, and stays so when it is out of reach.
        let hidden = items.filter { isHidden($0.id) }
        endEdits(ofDoomed: hidden.map(\.id).filter(isUnsaved))
        for item in hidden where registered(item.id)?.storage.isOver == true {
            guard let object = changed[item.id] else { continue }
            submit(.delete(item.model, item.id), object)
        }
        let out = Set(hidden.map(\.id))
        let items = items.filter { !out.contains($0.id) }
        hooksAreSilent += 1
        // What was new leads to nothing before it goes, and what was not to what it led to then: no
        // cascade takes others along.
        for item in items where !has(.redoCascadesFurther) {
            if item.existed { leadAsAtLast(item) } else { detach(item) }
        }
        for item in items { markDeleted(object(item.id, item.model)) }
        processPendingDeletions()
        hooksAreSilent -= 1
    }

    /// Gives an object that is to be deleted again the relationships that it had when it was.
    private func leadAsAtLast(_ item: GraphDelta.Item) {
        let slots = item.values.filter { !$0.before.isSame(as: $0.after) }
            .map { ($0.slot, isTaken($0.after, item, $0.slot) ? .null : $0.after) }
        let step = DeltaPlan.Step(item: item, slots: slots, lists: item.lists)
        setReferences(step, .after)
        for list in item.lists {
            for member in list.removed
            where (try? isMember(member, item.id, item.model, list.slot)) == true {
                submit(
                    .unlink(item.model, item.id, slot: list.slot, member),
                    object(item.id, item.model)
                )
            }
        }
    }

    /// Whether what a one-to-one led to has another partner, which keeps it.
    private func isTaken(_ value: StoredValue, _ item: GraphDelta.Item, _ slot: Int) -> Bool {
        guard let target = value.object, let far = targetModel(item.model, slot),
            let relationship = item.model.properties[slot].relationship,
            !relationship.inverseIsToMany, let inverse = relationship.inverseSlot,
            isThere(target, far)
        else { return false }
        let partner = self.value(of: object(target, far), slot: inverse)?.object
        return partner.map { $0 != item.id && isThere($0, item.model) } ?? false
    }

    private func detach(_ item: GraphDelta.Item) {
        let (model, id) = (item.model, item.id)
        let object = object(id, model)
        for slot in model.relationshipSlots {
            if model.properties[slot].relationship?.isToMany == false {
                if value(of: object, slot: slot)?.object == nil { continue }
                submit(.relate(model, id, slot: slot, to: nil), object)
                continue
            }
            var members = item.lists.filter { $0.slot == slot }.flatMap(\.added)
            if model.cascadeSlots.contains(slot) {
                // What others linked to it stays, too.
                members = (try? self.members(of: object, slot: slot)) ?? members
            }
            for member in members where (try? isMember(member, id, model, slot)) == true {
                submit(.unlink(model, id, slot: slot, member), object)
            }
        }
    }
}
