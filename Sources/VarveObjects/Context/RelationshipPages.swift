// A part of a long to-many relationship: its index entries and its rows, and no others.
//
// Invariants
// - A page is the part of `members(of:slot:)` at its positions, whichever way it is read.
// - The list as a whole is read only where unsaved edits or observers of many pages need it.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// The members at some positions; fewer where there are fewer.
    /// - Complexity: O(log n + positions) for a saved list without unsaved edits, else O(n).
    func members(
        of object: any ManagedObject,
        slot: Int,
        at positions: Range<Int>
    ) throws(StoreError) -> [ObjectID] {
        let key = ToManyKey(owner: object.storage.object, slot: slot)
        guard toManyEdits[key] == nil || has(.pagesForgetEdits), doomed.isEmpty, observersTold == 0,
            object.storage.state.isDisjoint(with: [.inserted, .deleted, .gone, .invalid]),
            knownMembers(of: object, slot: slot) == nil,
            let relationship = object.storage.model.properties[slot].relationship,
            mayWatchPage(of: object, slot)
        else {
            let all = try members(of: object, slot: slot)
            return Array(all[positions.clamped(to: all.indices)])
        }
        let snapshot = try currentSnapshot()
        let ids = try container.translating { () throws(RecordError) in
            try snapshot.relatedIDs(relationship.record, of: object.storage.object, at: positions)
        }
        watchPage(of: object, slot, positions, ids)
        return ids
    }

    /// The objects of these IDs, all of one entity, with their rows, which are read in one pass.
    /// Whatever has no row stays as it is.
    func filledObjects(
        _ ids: [ObjectID],
        _ model: EntityModel
    ) throws(StoreError) -> [any ManagedObject] {
        let snapshot = try currentSnapshot()
        let rows = try container.translating { () throws(RecordError) in
            try snapshot.rows(model.record.id, ids, pin: true)
        }
        func make<Entity: ManagedObject>(_: Entity.Type) -> [any ManagedObject] {
            objects(ids, model, rows: rows) as [Entity]
        }
        return make(model.type)
    }
}
