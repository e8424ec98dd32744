// Where edits are told to whoever records them: an undo step, a transaction, a branch.
//
// Invariants
// - Every way by which an edit changes what a context shows comes through here, before the change.
// - Without a recorder it costs a look at an empty array.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// Whether edits are to be taken down.
    var isRecorded: Bool { !recorders.isEmpty && replays == 0 }

    /// Something is about to change: how the journal was before it.
    func recordJournal() {
        guard isRecorded else { return }
        for recorder in recorders { recorder.note(journal) }
    }

    /// An attribute or to-one relationship is about to change.
    func recordValue(of object: any ManagedObject, _ slot: Int) {
        // A journal that is laid again sets no attributes: an observer did.
        let isEdit = isRecorded || object.storage.model.properties[slot].relationship == nil
        // What is only marked may still lose what others lose with it.
        guard !recorders.isEmpty, isEdit, doomed[object.storage.object] == nil,
            !doomedBefore.contains(object.storage.object),
            object.storage.state.isDisjoint(with: [.ended, .invalid]),
            // What is derived follows the rest, and is no step of its own.
            !object.storage.model.isDerived(slot)
        else { return }
        let id = object.storage.object
        guard recorders.contains(where: { $0.wants(id, slot) }),
            let value = value(of: object, slot: slot)
        else { return }
        recordJournal()
        for recorder in recorders where recorder.wants(id, slot) {
            recorder.note(value, of: object, slot, self)
        }
    }

    /// Whether a value is more than a reference to what is not there.
    func leads(_ value: StoredValue, _ model: EntityModel, _ slot: Int) -> Bool {
        guard let target = value.object, let far = targetModel(model, slot) else { return true }
        return isThere(target, far)
    }

    /// Whether an object is there. One that is only marked is, until rules run.
    func isThere(_ id: ObjectID, _ model: EntityModel) -> Bool {
        (try? isAlive(id, model)) == true
    }

    /// Whether an object is to be deleted, and no rule has run yet: an observer may move the
    /// context before they do.
    func isOnlyMarked(_ object: any ManagedObject) -> Bool {
        object.storage.state.contains(.deleted) && doomed[object.storage.object] == nil
            && object.storage.state.isDisjoint(with: [.ended, .gone, .invalid])
    }

    /// The members of a list, or their order, are about to change.
    func recordList(_ id: ObjectID, _ model: EntityModel, _ slot: Int) {
        guard isRecorded, let relationship = model.properties[slot].relationship,
            relationship.isRecorded, recorders.contains(where: { $0.wantsList(id, slot) }),
            doomed[id] == nil, !doomedBefore.contains(id)
        else { return }
        if relationship.isOrdered {
            guard let members = try? members(id, model, slot) else { return }
            for recorder in recorders where recorder.wantsList(id, slot) {
                recorder.note(members: members, id, model, slot)
            }
            return
        }
        let marks = marks(id, slot)
        for recorder in recorders where recorder.wantsList(id, slot) {
            recorder.note(marks: marks, id, model, slot)
        }
    }

    /// The members of a list, deleted ones included.
    func linkedMembers(
        of object: any ManagedObject,
        slot: Int
    ) throws(StoreError) -> [ObjectID] {
        let base = try savedMembers(of: object, slot: slot)
        let key = ToManyKey(owner: object.storage.object, slot: slot)
        return toManyEdits[key]?.members(over: base, commit: snapshot?.number) ?? base
    }

    /// Members that were added to a list and deleted since.
    func hiddenMembers(_ id: ObjectID, _ slot: Int) -> [ObjectID] {
        guard !doomed.isEmpty, let edit = toManyEdits[ToManyKey(owner: id, slot: slot)] else {
            return []
        }
        return edit.added.filter { doomed[$0] != nil }
    }

    func hasEdits(_ id: ObjectID, _ slot: Int) -> Bool {
        toManyEdits[ToManyKey(owner: id, slot: slot)] != nil
    }

    /// What the edits of a list say of members.
    func marks(_ id: ObjectID, _ slot: Int) -> ToManyEdit.Marks {
        toManyEdits[ToManyKey(owner: id, slot: slot)]?.marks ?? .none
    }

    /// An object came into the context that was not there before.
    func recordInsertion(_ object: any ManagedObject) {
        if recorders.isEmpty { return }
        recordJournal()
        let wasSaved = !object.storage.isNew
        for recorder in recorders { recorder.noteInserted(object, wasSaved: wasSaved) }
    }

    /// An object is about to be deleted: all of it, and its place in others' lists.
    func recordDeletion(_ object: any ManagedObject) {
        guard isRecorded, recorders.contains(where: { !$0.isPaused }) else { return }
        let (model, id) = (object.storage.model, object.storage.object)
        for slot in model.relationshipSlots {
            guard let relationship = model.properties[slot].relationship,
                let inverse = relationship.inverseSlot,
                let far = schema.entity(relationship.target),
                let others = try? targets(model, id, slot)
            else { continue }
            for other in others {
                if relationship.inverseIsToMany {
                    recordList(other, far, inverse)
                } else {
                    recordReference(other, far, inverse)
                }
            }
        }
        for (owner, slot) in schema.incoming(model.record.id) {
            for other in (try? referring(owner, slot, to: id)) ?? [] {
                recordReference(other, owner, slot)
            }
        }
        recordLooseLists(leadingTo: id, model)
        let wasSaved = !object.storage.isNew
        for recorder in recorders { recorder.noteDeleted(object, self, wasSaved: wasSaved) }
    }

    /// A reference is about to lead nowhere, whether or not it is set to nothing.
    private func recordReference(_ id: ObjectID, _ model: EntityModel, _ slot: Int) {
        guard isThere(id, model), !has(.undoForgetsWhatDangles) else { return }
        recordValue(of: object(id, model), slot)
    }

    /// The lists without inverse that an object is a member of.
    private func recordLooseLists(leadingTo id: ObjectID, _ model: EntityModel) {
        for owner in looseOwners(of: id, model) {
            recordMember(id, of: owner.id, owner.model, owner.slot)
        }
    }

    /// The owners of lists without inverse that an object is a member of, and some that had it
    /// once.
    /// - Complexity: O(log n) for each such relationship, and O(owners).
    func looseOwners(
        of id: ObjectID,
        _ model: EntityModel
    ) -> [(model: EntityModel, id: ObjectID, slot: Int)] {
        var found: [(model: EntityModel, id: ObjectID, slot: Int)] = []
        for owner in schema.entities {
            for slot in owner.relationshipSlots {
                guard let relationship = owner.properties[slot].relationship,
                    relationship.isToMany, relationship.inverseSlot == nil,
                    relationship.target == model.record.id
                else { continue }
                var owners = Set(looseLists[id]?.filter { $0.slot == slot }.map(\.owner) ?? [])
                if !isUnsaved(id), let snapshot,
                    let saved = try? snapshot.owners(owner.record, relationship.record, of: id)
                {
                    owners.formUnion(saved)
                }
                for other in owners.sorted() {
                    guard toManyEdits[ToManyKey(owner: other, slot: slot)]?.says(id) != false,
                        (try? isAlive(other, owner)) == true
                    else { continue }
                    found.append((owner, other, slot))
                }
            }
        }
        return found
    }

    /// A member leaves a list without an edit of that list.
    private func recordMember(
        _ id: ObjectID,
        of owner: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) {
        guard let members = try? members(owner, model, slot) else { return }
        for recorder in recorders {
            recorder.widen(owner, model, slot, members, marks(owner, slot))
        }
    }

    /// Takes down all that edits have changed: part of them is about to be dropped.
    /// - Complexity: O(edits).
    func recordAllEdits() {
        guard isRecorded else { return }
        recordJournal()
        for (_, object) in changed.sorted(by: { $0.key < $1.key }) {
            for slot in object.storage.edits?.values.indices ?? 0..<0
            where object.storage.edits?.values[slot] != nil {
                recordValue(of: object, slot)
            }
        }
        for (key, edit) in toManyEdits { recordList(key.owner, edit.model, key.slot) }
        for intent in journal.intents {
            for side in [intent.subject, intent.partner] {
                guard let side, let object = registered(side.owner) else { continue }
                if object.storage.model.properties[side.slot].column != nil {
                    recordValue(of: object, side.slot)
                } else {
                    recordList(side.owner, object.storage.model, side.slot)
                }
            }
        }
    }

    /// The context is about to leave its commit.
    func endStretches() {
        if recorders.isEmpty { return }
        for recorder in recorders { recorder.endStretch(self) }
    }

    /// All edits are given up: there is nothing to go back to.
    func forgetRecords() {
        for recorder in recorders { recorder.forget() }
        undoSteps?.forgetAll()
    }
}
