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

    /// Holds those of which the journal wants something, and lets others go.
    func releaseTheGone() {
        let wanted = Set(journal.intents.compactMap { $0.subject?.owner })
        func isEdited(_ object: any ManagedObject) -> Bool {
            let (id, state) = (object.storage.object, object.storage.state)
            return wanted.contains(id) && state.contains(.gone) && alsoDeleted[id] == nil
                && state.isDisjoint(with: [.ended, .invalid])
        }
        if !linkedAndGone.isEmpty { linkedAndGone = linkedAndGone.filter { isEdited($0.value) } }
        if has(.goneForgetsLinks) { return }
        // A step that is done again, or a transaction that throws, brings edits back.
        for id in wanted where linkedAndGone[id] == nil {
            guard let object = registered(id), isEdited(object) else { continue }
            linkedAndGone[id] = object
        }
    }

    /// An object that others deleted, with the values that it had; nil: nobody knows them.
    ///
    /// Calls no code of the app: the writer lock may be held.
    func editedAndGone(_ id: ObjectID, _ model: EntityModel) -> (any ManagedObject)? {
        if let object = registered(id) {
            guard object.storage.state.isDisjoint(with: [.ended, .invalid, .deleted, .inserted])
            else { return nil }
            if object.storage.row != nil { return object }
        }
        guard let snapshot, let row = try? snapshot.row(model.record.id, id, pin: true) else {
            return nil
        }
        let object = object(id, model)
        replaceRow(row, of: object)
        return object
    }

    /// Whether intents want other relationships of an object than its row has.
    func isLinkedAnew(_ object: any ManagedObject, _ intents: [Intent]) -> Bool {
        wantedLinks(of: object, intents) != wantedLinks(of: object, [])
    }

    /// The relationship of an object that others deleted is as it was at last: nothing is wanted.
    func forgetIfAsItWas(_ key: ToManyKey, _ object: any ManagedObject) {
        guard object.storage.object == key.owner else { return }
        let (now, was) = (wantedLinks(of: object, journal.intents), wantedLinks(of: object, []))
        if now.targets[key.slot] == was.targets[key.slot],
            now.members[key.slot] == was.members[key.slot]
        {
            forgetWanted(key)
        }
    }

    /// What is wanted of the relationships of an object that others deleted, over what it had at
    /// last.
    ///
    /// - Parameter intents: those of other objects count nothing.
    /// - Complexity: O(intents), and O(n) for each list of n members.
    func wantedLinks(of object: any ManagedObject, _ intents: [Intent]) -> WantedLinks {
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
        for intent in intents {
            guard let key = intent.subject, key.owner == id else { continue }
            links.apply(intent, at: key)
        }
        for slot in model.relationshipSlots
        where model.properties[slot].relationship?.isOrdered == false {
            links.members[slot]?.sort()
        }
        return links
    }

    /// Whether an object is a member, or is to be one: edits of what others deleted show nowhere.
    func isOrBecomesMember(
        _ member: ObjectID,
        of object: any ManagedObject,
        slot: Int
    ) throws(StoreError) -> Bool {
        guard object.storage.state.contains(.gone) else {
            return try isMember(member, of: object, slot: slot)
        }
        let links = wantedLinks(of: object, journal.intents)
        return links.members[slot]?.contains(member) == true
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
            // Appended once more, a member stays where it is.
            if case .end = place, list.contains(member) { return }
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
