// Relationships that are edited of objects which others deleted. They show nowhere; a merge policy
// may bring the object back with them.
//
// Invariants
// - Nothing else may hold such an object, and no commit that the context reads has its row: as long
//   as the journal wants something of it, it is held here.
// - What both sides deleted is not here: its edits have ended.

import VarveBase
import VarveRecords

/// Where an object's relationships lead and whom its lists have, by slot.
struct WantedLinks: Equatable {
    var targets: [Int: ObjectID] = [:]
    var members: [Int: [ObjectID]] = [:]
}

extension ManagedObjectContext {
    /// A relationship of an object is about to be edited; others may have deleted it.
    func noteEditOfTheGone(_ object: any ManagedObject) {
        guard object.storage.state.contains(.gone), alsoDeleted[object.storage.object] == nil
        else { return }
        linkedAndGone[object.storage.object] = object
        if !isRecorded { return }
        for recorder in recorders { recorder.hold(object) }
    }

    /// The context is about to move on: owners of edited lists that others deleted get their row,
    /// whether or not the app holds them.
    /// - Complexity: O(log n) for each edited list.
    func holdLinked(_ newer: RecordSnapshot) {
        if toManyEdits.isEmpty || has(.goneForgetsLinks) { return }
        for (key, edit) in toManyEdits.sorted(by: { $0.key.owner < $1.key.owner })
        where changed[key.owner] == nil {
            guard (try? newer.exists(edit.model.record.id, key.owner)) == false,
                isThere(key.owner, edit.model)
            else { continue }
            linkedAndGone[key.owner] = object(key.owner, edit.model)
        }
    }

    /// The journal is about to be laid again, which takes edits out of their objects.
    func holdTheGone() {
        if has(.goneForgetsLinks) { return }
        for (id, object) in changed where object.storage.state.contains(.gone) {
            linkedAndGone[id] = object
        }
    }

    /// Lets those go of which the journal wants nothing.
    func releaseTheGone() {
        if linkedAndGone.isEmpty { return }
        let wanted = Set(journal.intents.compactMap { $0.subject?.owner })
        linkedAndGone = linkedAndGone.filter { id, object in
            wanted.contains(id) && object.storage.state.contains(.gone) && alsoDeleted[id] == nil
        }
    }

    /// An object that others deleted, with the values that it had; nil: nobody knows them.
    func editedAndGone(_ id: ObjectID, _ model: EntityModel) -> (any ManagedObject)? {
        if let object = registered(id) {
            guard object.storage.state.isDisjoint(with: [.ended, .invalid, .deleted, .inserted])
            else { return nil }
            if object.storage.row != nil { return object }
        }
        guard let snapshot, (try? snapshot.exists(model.record.id, id)) == true else { return nil }
        return object(id, model)
    }
    /// Whether edits made other relationships of an object than its row has.
    func isLinkedAnew(_ object: any ManagedObject) -> Bool {
        guard object.storage.state.contains(.gone) else {
            // Its to-ones are edits of its own.
            return toManyEdits.contains { $0.key.owner == object.storage.object }
        }
        return wantedLinks(of: object, journal) != wantedLinks(of: object, Journal())
    }

    /// What a journal wants of the relationships of an object that others deleted, over what it
    /// had at last.
    /// - Complexity: O(intents), and O(n) for each list of n members.
    func wantedLinks(of object: any ManagedObject, _ journal: Journal) -> WantedLinks {
        let (model, id) = (object.storage.model, object.storage.object)
        var links = WantedLinks()
        for slot in model.relationshipSlots {
            guard let relationship = model.properties[slot].relationship else { continue }
            if relationship.isToMany {
                links.members[slot] = (try? savedMembers(of: object, slot: slot)) ?? []
            } else {
                links.targets[slot] = (try? storedValue(of: object, slot: slot))?.object
            }
        }
        var journal = journal
        for intent in journal.intents {
            guard let key = intent.subject, key.owner == id else { continue }
            links.apply(intent, at: key)
        }
        return links
    }
}

extension WantedLinks {
    fileprivate mutating func apply(_ intent: Intent, at key: ToManyKey) {
        var list: [ObjectID] {
            get { members[key.slot] ?? [] }
            set { members[key.slot] = newValue }
        }
        switch intent {
        case .relate(_, _, _, let target): targets[key.slot] = target
        case .link(_, let owner, _, _, _) where owner != key.owner: targets[key.slot] = owner
        case .unlink(_, let owner, _, _) where owner != key.owner:
            if targets[key.slot] == owner { targets[key.slot] = nil }
        case .link(_, _, _, let member, let place):
            list.removeAll { $0 == member }
            var index = list.count
            if case .between(let before, let after) = place {
                if let found = before.flatMap({ list.firstIndex(of: $0) }) {
                    index = found + 1
                } else if let found = after.flatMap({ list.firstIndex(of: $0) }) {
                    index = found
                } else if before == nil {
                    index = 0
                }
            }
            list.insert(member, at: index)
        case .unlink(_, _, _, let member): list.removeAll { $0 == member }
        case .arrange(_, _, _, let ids):
            let named = Set(ids)
            let known = Set(list)
            list = ids.filter(known.contains) + list.filter { !named.contains($0) }
        case .delete: break
        }
    }
}
