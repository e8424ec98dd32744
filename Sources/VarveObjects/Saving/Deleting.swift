// Deleting objects: the mark at once, the rules when edits are processed.
//
// Invariants
// - The rules themselves are the evaluator's. Here stands when they run, and what the app is told.
// - `prepareForDeletion` runs once for each object that this context finds, before its
//   relationships change; what it edits counts. Objects that only the newest commit shows to be
//   reached by a cascade are deleted without it: no code of an app runs under the writer lock.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// Marks an object to be deleted by the next save. Delete rules run when edits are processed:
    /// at `save`, at a fetch that looks at unsaved edits, when the context moves to another commit,
    /// or by `processPendingChanges`. Unsaved values of its attributes are dropped then. Deleting
    /// it again does nothing. An object of another context is not deleted: a refused edit.
    public func delete(_ object: some ManagedObject) { markDeleted(object) }

    func markDeleted(_ object: any ManagedObject) {
        guard object.storage.core === core else {
            refuse(object, nil, .deletedAcrossContexts(object))
            return
        }
        guard object.storage.state.isDisjoint(with: [.deleted, .gone, .invalid]) else { return }
        if phase == .writing {
            refuse(object, nil, .editWhileWriting(object, nil))
            return
        }
        forgetRefusals(of: object.storage.object)
        if mark(object) { deletesToProcess.append(object.storage.object) }
        announceStates(of: object)
    }

    /// Marks an object; false: its row cannot be read, so it is not deleted.
    private func mark(_ object: any ManagedObject) -> Bool {
        if !object.isInserted {
            // Its values stay readable, and lead to what its rules reach.
            do throws(StoreError) { try fill(object) } catch {
                note(error, object)
                return false
            }
        }
        object.storage.observation?.announce(object, nil, isBefore: true)
        defer { object.storage.observation?.announce(object, nil, isBefore: false) }
        // Its observer may have taken it out of the context, or saved its deletion.
        guard object.storage.state.isDisjoint(with: [.gone, .invalid]) else { return false }
        object.storage.state.insert(.deleted)
        noteChanged(object, object.storage.object)
        return true
    }

    func unmark(_ object: any ManagedObject) {
        guard object.storage.state.contains(.deleted) else { return }
        object.storage.observation?.announce(object, nil, isBefore: true)
        object.storage.state.remove(.deleted)
        if !object.storage.hasChanges { changed[object.storage.object] = nil }
        object.storage.observation?.announce(object, nil, isBefore: false)
    }

    /// Runs delete rules for what was deleted so far, and brings live lists and values up to the
    /// unsaved edits. `save` and `advance` do it too; fetches that look at unsaved edits run the
    /// rules. In the view context it is done as soon as the main actor has time. Inside
    /// `prepareForDeletion` it does nothing.
    public func processPendingChanges() {
        processPendingDeletions()
        moveLive()
    }

    func processPendingDeletions() {
        guard hookObject == nil, !deletesToProcess.isEmpty else { return }
        let isInner = isDeleting
        isDeleting = true
        // New objects end, and what a hook kept is as it was.
        defer {
            isDeleting = isInner
            announceStates()
        }
        while !deletesToProcess.isEmpty {
            let batch = deletesToProcess
            deletesToProcess = []
            var marked: [any ManagedObject] = []
            for id in batch { marked += tellAboutDeletion(of: id) }
            for id in batch {
                guard let object = changed[id], object.storage.state.contains(.deleted) else {
                    continue
                }
                submit(.delete(object.storage.model, id), object)
            }
            // A hook may have taken an object out of a cascade's reach.
            for object in marked where doomed[object.storage.object] == nil { unmark(object) }
            // A replay in the middle does not know what was deleted just now.
            endEditsOfDoomed(marked.map { $0.storage.object })
        }
    }

    /// Calls `prepareForDeletion` of an object and of all that its cascades reach; marks them.
    private func tellAboutDeletion(of id: ObjectID) -> [any ManagedObject] {
        guard let first = changed[id], first.storage.state.contains(.deleted) else { return [] }
        var queue: [any ManagedObject] = [first]
        var next = 0
        while next < queue.count {
            let object = queue[next]
            next += 1
            if hooksAreSilent == 0 {
                hookObject = object
                object.prepareForDeletion()
                hookObject = nil
            }
            for target in cascade(of: object)
            where target.storage.state.isDisjoint(with: [.deleted, .gone, .invalid]) {
                if mark(target) { queue.append(target) }
            }
        }
        return queue
    }

    private func cascade(of object: any ManagedObject) -> [any ManagedObject] {
        let model = object.storage.model
        var found: [any ManagedObject] = []
        for slot in model.cascadeSlots {
            guard let relationship = model.properties[slot].relationship,
                let far = schema.entity(relationship.target)
            else { continue }
            do throws(StoreError) {
                let ids = try targets(model, object.storage.object, slot)
                // Where they cannot be read together, each is read by itself, so that the failure
                // is told of the right one.
                let filled = ids.count > 1 ? (try? filledObjects(ids, far)) ?? [] : []
                try withExtendedLifetime(filled) { () throws(StoreError) in
                    for id in ids where try isAlive(id, far) { found.append(self.object(id, far)) }
                }
            } catch {
                note(error, object)
            }
        }
        return found
    }

    /// Ends the edits of objects that this context deletes: of some, and of what is in `deletions`
    /// since the last call or replay.
    private func endEditsOfDoomed(_ marked: [ObjectID]) {
        let new = deletions.dropFirst(deletionsEnded)
        let known = Set(new)
        deletionsEnded = deletions.count
        endEdits(ofDoomed: new + marked.filter { !known.contains($0) })
    }

    /// Drops the edits of deleted objects. New objects were never there: what led to them leads
    /// nowhere.
    func endEdits(ofDoomed ids: [ObjectID]) {
        var phantoms: Set<ObjectID> = []
        var hasReturned = false
        for id in ids {
            guard doomed[id] != nil, let object = changed[id] else { continue }
            let observation = object.storage.edits == nil ? nil : object.storage.observation
            observation?.announce(object, nil, isBefore: true)
            dropAttributes(of: object)
            observation?.announce(object, nil, isBefore: false)
            if object.isInserted { phantoms.insert(id) }
            if object.storage.state.contains(.returned) { hasReturned = true }
        }
        if phantoms.isEmpty { return }
        let reached = deletions(by: phantoms)
        reachedByNew.removeAll { phantoms.contains($0.by) }
        journal.forget(phantoms, schema)
        for intent in reached { journal.append(intent) }
        for id in phantoms {
            for slot in changed[id]?.storage.model.relationshipSlots ?? [] {
                toManyEdits[ToManyKey(owner: id, slot: slot)] = nil
            }
            // Lists without inverse: nothing on the other side told them.
            for key in looseLists.removeValue(forKey: id) ?? [] {
                guard let edit = toManyEdits[key], edit.says(id) == true else { continue }
                edit.remove(id)
                edit.dropOrder()
                if edit.isEmpty { toManyEdits[key] = nil }
            }
        }
        endNew(phantoms.sorted())
        // What was lost may have been wanted by them, or for them; and a deletion leaves references
        // to what was in a commit where its rule says so.
        if !lostTargets.isEmpty || hasReturned { replay() }
        forgetIfNothingIsLeft()
    }

    /// What cascades of new objects reached is deleted for itself once these were never there.
    private func deletions(by phantoms: Set<ObjectID>) -> [Intent] {
        var known: Set<ObjectID> = []
        return reachedByNew.compactMap { (by, model, id) in
            guard phantoms.contains(by), changed[id]?.isInserted != true,
                known.insert(id).inserted
            else { return nil }
            return .delete(model, id)
        }
    }

    /// New objects were never there.
    func endNew(_ ids: [ObjectID]) {
        let version = graphVersion
        for id in ids { endNew(id) }
        guard graphVersion != version, !has(.observersAreNotNoticed) else { return }
        // An observer led something to one of them before it ended.
        journal.forget(Set(ids), schema)
        replay()
    }

    private func endNew(_ id: ObjectID) {
        guard let object = changed.removeValue(forKey: id) else { return }
        doomed[id] = nil
        forgetRefusals(of: id)
        if let observation = object.storage.observation {
            observation.announce(object, nil, isBefore: true)
            // Its observer may have edited it, or marked it as deleted.
            (changed[id], doomed[id]) = (nil, nil)
            deletesToProcess.removeAll { $0 == id }
        }
        invalidate(object)
        object.storage.observation?.announce(object, nil, isBefore: false)
    }

    /// What an error says of deletions that a rule forbids.
    func details(of denials: [Denial]) -> [StoreError.Detail] {
        denials.map { denial in
            let owner = identity(denial.model, denial.owner)
            let target = identity(denial.far, denial.target)
            let name = denial.model.properties[denial.slot].name
            return StoreError.Detail(
                code: .deleteDenied,
                message:
                    "\(owner) of \(denial.model.name) cannot be deleted: its \(name) leads to "
                    + "\(target) of \(denial.far.name)",
                place: StoreError.Place(
                    entity: denial.model.name,
                    attribute: name,
                    object: owner
                ),
                objects: [owner, target]
            )
        }
    }

    func identity(_ model: EntityModel, _ id: ObjectID) -> ManagedObjectID {
        ManagedObjectID(store: container.identity, entity: model.record.id, object: id)
    }
}
