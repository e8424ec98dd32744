// Doing what was decided about a delta (`DeltaPlan`): objects come back, properties get their
// values, objects go.
//
// Invariants
// - All is done by ordinary edits: inverses, conflicts and observers work as they do for the app's.
// - An observer that gives all edits up in the middle ends it: nothing of it is done behind that.

import Synchronization
import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// Does what was decided, as one edit.
    /// - Returns: what stays although it was to go: a deletion that is done again does not reach it
    ///   any more.
    @discardableResult
    func lay(_ plan: DeltaPlan, of delta: GraphDelta) -> [DeltaConflict] {
        journal.settle()
        let start = withdrawals
        let steps = plan.returning + plan.changing
        var stays: [GraphDelta.Item] = []
        asOneEdit {
            record(plan)
            for item in plan.missed { miss(item, delta) }
            if let journal = plan.journal {
                lay(journal, plan, delta)
                stays = plan.leaving.filter { registered($0.id)?.storage.isOver == false }
                return
            }
            bringBack(plan.returning, delta)
            each(plan.changing, since: start) { setAttributes($0, delta, since: start) }
            each(steps, since: start) { setReferences($0, plan.side, since: start) }
            each(steps, since: start) { setLists($0, plan.side, since: start) }
            if withdrawals == start { remove(plan.leaving, since: start) }
        }
        noteLiveEdit()
        return stays.map { DeltaConflict(item: $0, slot: nil, obstacle: .changed) }
    }

    /// An observer that gives all edits up in the middle ends the laying.
    private func each<Part>(_ parts: [Part], since start: Int, _ body: (Part) -> Void) {
        for part in parts where withdrawals == start { body(part) }
    }

    /// An object that others deleted, and this context does not delete any more: edits of it are
    /// edits of what is gone, and who leads to it misses it.
    private func miss(_ item: GraphDelta.Item, _ delta: GraphDelta) {
        alsoDeleted[item.id] = nil
        let object = instance(item.id, item.model, item.object)
        for value in item.values where item.isAttribute(value.slot) {
            keepBlob(value.before, delta, object, value.slot)
            if !value.wasStored { hide(value.before, in: object, value.slot) }
        }
    }

    /// The journal is another one; attributes are not in it, nor is who is new.
    private func lay(_ journal: Journal, _ plan: DeltaPlan, _ delta: GraphDelta) {
        for item in plan.leaving {
            guard let object = registered(item.id), object.isInserted, !object.storage.isOver
            else { continue }
            recordDeletion(object)
        }
        let start = withdrawals
        each(plan.returning, since: start) { step in
            if let object = registered(step.item.id), isPending(object) {
                recordInsertion(object)
            } else {
                makeAgain(step, delta)
            }
        }
        if withdrawals != start { return }
        // A deletion is done again that others have made as well.
        for item in delta.items
        where !item.isThere(plan.side) && item.isThere(plan.side.other) && isDeletedByOthers(item) {
            alsoDeleted[item.id] = item.model
        }
        self.journal = journal
        self.journal.end()
        replay()
        if withdrawals != start { return }
        // What others deleted as well, and came back here as new, is deleted by the journal again.
        endEdits(ofDoomed: delta.items.filter { !$0.isThere(plan.side) }.map(\.id))
        each(plan.returning + plan.changing, since: start) {
            setAttributes($0, delta, since: start)
        }
        if withdrawals == start { endNew(plan.leaving) }
        forgetIfNothingIsLeft()
    }

    /// Ends new objects that a journal knows nothing of. One that others deleted, and an undo
    /// brought back, may be in it: what leads to it leads nowhere again, and nobody misses it.
    private func endNew(_ items: [GraphDelta.Item]) {
        let ended = items.filter { registered($0.id)?.isInserted == true }
        let returned = ended.filter {
            registered($0.id)?.storage.state.contains(.returned) == true
        }
        // So may one to which an observer of all that led something.
        let ids = Set(ended.map(\.id))
        let isKnown = !returned.isEmpty || journal.intents.contains { $0.names(ids) }
        if isKnown { journal.forget(ids, schema) }
        let start = withdrawals
        endNew(ended.map(\.id))
        if !isKnown || withdrawals != start { return }
        for item in returned { alsoDeleted[item.id] = item.model }
        replay()
    }

    /// Whether an object is deleted, and that is not saved.
    func isPending(_ object: any ManagedObject) -> Bool {
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
        let start = withdrawals
        if !pending.isEmpty { takeBackDeletions(pending) }
        each(steps, since: start) { step in
            guard pending.contains(step.item.id) else {
                makeAgain(step, delta)
                return
            }
            setAttributes(step, delta, since: start)
        }
        // Edits that led to what was gone have somewhere to lead to.
        if !lostTargets.isEmpty, steps.count > pending.count, withdrawals == start { layAgain() }
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
        let start = withdrawals
        object.storage.observation?.announce(object, nil, isBefore: true)
        if withdrawals != start { return }
        if let row = object.storage.row {
            object.storage.row = nil
            container.store.rowCache.unpin(row)
            container.counters.realised.subtract(1, ordering: .relaxed)
        }
        object.storage.related = nil
        object.storage.state = wasSaved ? [.inserted, .returned] : .inserted
        let edits = ObjectEdits(values: model.makeInsertValues())
        object.storage.edits = edits
        keptValues.forget(id)
        alsoDeleted[id] = nil
        failures[id] = nil
        for (slot, value) in step.slots where model.properties[slot].relationship == nil {
            keepBlob(value, delta, object, slot)
            edits.values[slot] = value
            if wasSaved || !step.item.unset.contains(slot) { edits.assign(slot) }
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
        guard case .blob(let reference) = value, let blob = delta.blobs[reference],
            !has(.undoForgetsBlobs)
        else { return }
        _ = keepPending(blob, for: object, slot)
    }

    private func setAttributes(_ step: DeltaPlan.Step, _ delta: GraphDelta, since start: Int) {
        let object = shownInstance(step.item)
        // Something else that is deleted takes it along, and may give it back.
        let isHidden = isHidden(step.item.id)
        if object.storage.isDeleted, !isHidden, !isDeletedByOthers(step.item) { return }
        for (slot, value) in step.slots
        where withdrawals == start && step.item.isAttribute(slot) {
            let edited = object.storage.edits?.values[slot]
            if step.item.unset.contains(slot), edited?.isSame(as: value) == true { continue }
            keepBlob(value, delta, object, slot)
            if isHidden {
                hide(value, in: object, slot)
            } else {
                set(value, of: object, slot: slot)
            }
        }
    }

    private func setReferences(_ step: DeltaPlan.Step, _ side: DeltaSide, since start: Int) {
        let (model, id) = (step.item.model, step.item.id)
        for (slot, value) in step.slots where withdrawals == start {
            guard let far = targetModel(model, slot) else { continue }
            let object = object(id, model)
            var target = value.object
            if let wanted = target, !isThere(wanted, far) { target = nil }
            if self.value(of: object, slot: slot)?.object == target { continue }
            submit(.relate(model, id, slot: slot, to: target), object)
        }
    }

    private func remove(_ items: [GraphDelta.Item], since start: Int) {
        if items.isEmpty { return }
        // What is out of sight is deleted already, and stays so when it is out of reach.
        let hidden = items.filter { isHidden($0.id) }
        endEdits(ofDoomed: hidden.map(\.id).filter(isUnsaved))
        for item in hidden
        where withdrawals == start && registered(item.id)?.storage.isOver == true {
            guard let object = changed[item.id] else { continue }
            submit(.delete(item.model, item.id), object)
        }
        let out = Set(hidden.map(\.id))
        let items = items.filter { !out.contains($0.id) }
        hooksAreSilent += 1
        // What was new leads to nothing before it goes, and what was not to what it led to then: no
        // cascade takes others along.
        each(has(.redoCascadesFurther) ? [] : items, since: start) { item in
            if item.existed { leadAsAtLast(item, start) } else { detach(item, start) }
        }
        each(items, since: start) { markDeleted(object($0.id, $0.model)) }
        if withdrawals == start { processPendingDeletions() }
        hooksAreSilent -= 1
    }

    /// Gives an object that is to be deleted again the relationships that it had when it was.
    private func leadAsAtLast(_ item: GraphDelta.Item, _ start: Int) {
        let slots = item.values.filter { !$0.before.isSame(as: $0.after) }
            .map { ($0.slot, isTaken($0.after, item, $0.slot) ? .null : $0.after) }
        let step = DeltaPlan.Step(item: item, slots: slots, lists: item.lists)
        setReferences(step, .after, since: start)
        for list in item.lists {
            for member in list.removed
            where withdrawals == start
                && (try? isMember(member, item.id, item.model, list.slot)) == true
            {
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

    private func detach(_ item: GraphDelta.Item, _ start: Int) {
        let (model, id) = (item.model, item.id)
        let object = object(id, model)
        for slot in model.relationshipSlots where withdrawals == start {
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
            for member in members
            where withdrawals == start && (try? isMember(member, id, model, slot)) == true {
                submit(.unlink(model, id, slot: slot, member), object)
            }
        }
    }
}
