// What observers are told when the journal is laid again: nobody sees the way, only what is other
// at its end.
//
// Invariants
// - Only what somebody observes is compared.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// Tells what was held back.
    func tellHeldBack() {
        guard let told = heldBack else { return }
        heldBack = nil
        for (object, slots) in told {
            object.storage.observation?.announce(object, slots, isBefore: true)
            object.storage.observation?.announce(object, slots, isBefore: false)
        }
    }

    typealias WatchedTargets = (object: any ManagedObject, slot: Int, targets: [ObjectID])

    func watchedRelationships() -> [WatchedTargets] {
        guard core.observes else { return [] }
        var watched: [WatchedTargets] = []
        for object in livingObjects
        where object.storage.observation != nil && !object.storage.isDeleted {
            for slot in object.storage.model.relationshipSlots {
                let ids = shownTargets(object, slot)
                watched.append((object, slot, ids))
            }
        }
        return watched
    }

    /// Deleted objects that somebody observes: laid again, the journal may not reach them.
    func watchedDeletions() -> [any ManagedObject] {
        guard core.observes, !doomed.isEmpty else { return [] }
        return doomed.keys.sorted().compactMap { id in
            changed[id].flatMap { $0.storage.observation == nil ? nil : $0 }
        }
    }

    private func shownTargets(_ object: any ManagedObject, _ slot: Int) -> [ObjectID] {
        if object.storage.model.properties[slot].relationship?.isToMany == true {
            guard
                object.isInserted
                    || object.storage.related?.contains(where: { $0.slot == slot })
                        == true
                    || toManyEdits[ToManyKey(owner: object.storage.object, slot: slot)] != nil
            else { return [] }
            return (try? members(of: object, slot: slot)) ?? []
        }
        if let edited = object.storage.edits?.values[slot] {
            return edited.object.map { [$0] } ?? []
        }
        let column = object.storage.model.columns[slot]
        return ((try? object.storage.row?.reference(column)) ?? nil).map { [$0] } ?? []
    }

    func announce(_ watched: [WatchedTargets]) {
        for (object, slot, targets) in watched where shownTargets(object, slot) != targets {
            object.storage.observation?.announce(object, [slot], isBefore: true)
            object.storage.observation?.announce(object, [slot], isBefore: false)
        }
    }
}
