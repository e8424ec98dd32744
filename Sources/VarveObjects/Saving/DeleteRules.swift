// What deleting an object does to the objects around it (D1, D2).
//
// Invariants
// - Runs until nothing is added: a cascade's deletions are processed like any other.
// - `deny` is judged at the end, so that deleting both sides is allowed.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// Marks an object to be deleted by the next save. Delete rules run when edits are processed:
    /// at `save` or `processPendingChanges`.
    public func delete(_ object: some ManagedObject) { markDeleted(object) }

    func markDeleted(_ object: any ManagedObject) {
        guard object.storage.core === core,
            object.storage.state.isDisjoint(with: [.deleted, .gone, .invalid])
        else { return }
        if !object.isInserted {
            // Its values decide what else is deleted, and its version whether there is a conflict.
            do throws(StoreError) { try fill(object) } catch {
                note(error, object)
                return
            }
        }
        object.storage.state.insert(.deleted)
        noteChanged(object, object.storage.object)
        deletesToProcess.append(object.storage.object)
    }

    /// Runs delete rules for what was deleted so far. `save` and fetches do it too.
    public func processPendingChanges() {
        while !deletesToProcess.isEmpty {
            let batch = deletesToProcess
            deletesToProcess = []
            for id in batch {
                guard let object = changed[id], object.storage.state.contains(.deleted) else {
                    continue
                }
                object.prepareForDeletion()
                applyRules(of: object)
                if object.isInserted {
                    changed[id] = nil
                    invalidate(object)
                }
            }
        }
    }

    private func applyRules(of object: any ManagedObject) {
        let model = object.storage.model
        for slot in model.relationshipSlots {
            guard let relationship = model.properties[slot].relationship,
                let targetModel = container.schema.entity(relationship.target)
            else { continue }
            let ids = targets(of: object, slot: slot)
            if ids.isEmpty { continue }
            switch relationship.rule {
            case .noAction: break
            case .nullify: detach(object, slot, ids, targetModel)
            case .cascade:
                for id in ids { markDeleted(self.object(id, targetModel)) }
                detach(object, slot, ids, targetModel)
            case .deny: denials.append((object, slot))
            }
        }
        detachIncoming(to: object)
    }

    private func targets(of object: any ManagedObject, slot: Int) -> [ObjectID] {
        let relationship = object.storage.model.properties[slot].relationship
        if relationship?.isToMany == true {
            do throws(StoreError) {
                return try members(of: object, slot: slot)
            } catch {
                note(error, object)
                return []
            }
        }
        guard case .reference(let id)? = value(of: object, slot: slot) else { return [] }
        return target(of: object, slot: slot, id) == nil ? [] : [id]
    }

    /// Takes `object` out of the inverse of each target that is not deleted itself.
    private func detach(
        _ object: any ManagedObject,
        _ slot: Int,
        _ ids: [ObjectID],
        _ targetModel: EntityModel
    ) {
        guard let relationship = object.storage.model.properties[slot].relationship else { return }
        guard let inverse = relationship.inverseSlot else { return }
        for id in ids {
            if relationship.inverseIsToMany {
                forget(object.storage.object, in: id, targetModel, inverse)
                continue
            }
            let target = self.object(id, targetModel)
            guard !target.isDeleted,
                value(of: target, slot: inverse) == .reference(object.storage.object)
            else { continue }
            set(.null, of: target, slot: inverse)
        }
    }

    /// To-one relationships without inverse that lead to `object`: found through their index.
    private func detachIncoming(to object: any ManagedObject) {
        let id = object.storage.object
        for (owner, slot) in container.schema.incoming(object.storage.model.record.id) {
            let name = owner.properties[slot].name
            guard owner.properties[slot].relationship?.rule != .noAction else { continue }
            var ids: Set<ObjectID> = []
            if !object.isInserted, let snapshot {
                let query = RecordQuery(
                    entity: owner.record.id,
                    predicate: .compare(PropertyPath(name), .equal, .reference(id))
                )
                do throws(StoreError) {
                    ids = Set(
                        try container.translating { () throws(RecordError) in
                            try snapshot.fetchIDs(query)
                        }
                    )
                } catch {
                    note(error, object)
                }
            }
            for other in changed.values where other.storage.model === owner {
                ids.insert(other.storage.object)
            }
            for ownerID in ids.sorted() {
                let other = self.object(ownerID, owner)
                guard !other.isDeleted, value(of: other, slot: slot) == .reference(id) else {
                    continue
                }
                set(.null, of: other, slot: slot)
            }
        }
    }

    /// Denials that still hold: the owner is deleted and something it leads to is not.
    func standingDenials() -> [StoreError.Detail] {
        var details: [StoreError.Detail] = []
        for (owner, slot) in denials where owner.storage.state.contains(.deleted) {
            let model = owner.storage.model
            guard let relationship = model.properties[slot].relationship,
                let targetModel = container.schema.entity(relationship.target)
            else { continue }
            for id in targets(of: owner, slot: slot) {
                let target = object(id, targetModel)
                if target.isDeleted { continue }
                let name = model.properties[slot].name
                details.append(
                    StoreError.Detail(
                        code: .deleteDenied,
                        message:
                            "\(owner.objectID) of \(model.name) cannot be deleted: its \(name) "
                            + "leads to \(target.objectID) of \(targetModel.name)",
                        place: StoreError.Place(
                            entity: model.name,
                            attribute: name,
                            object: owner.objectID
                        ),
                        objects: [owner.objectID, target.objectID]
                    )
                )
                break
            }
        }
        return details
    }
}
