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
        // What the journal wants of an object that is gone was noted as lost: else there is none.
        if linkedAndGone.isEmpty, lostTargets.isEmpty { return }
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
    func editedAndGone(
        _ id: ObjectID,
        _ model: EntityModel
    ) throws(StoreError) -> (any ManagedObject)? {
        if let object = registered(id) {
            guard object.storage.state.isDisjoint(with: [.ended, .invalid, .deleted, .inserted])
            else { return nil }
            if object.storage.row != nil { return object }
        }
        guard let snapshot else { return nil }
        let row = try container.translating { () throws(RecordError) in
            try snapshot.row(model.record.id, id, pin: true)
        }
        guard let row else { return nil }
        let object = object(id, model)
        replaceRow(row, of: object)
        return object
    }

    /// Whether intents want other relationships of an object than its row has.
    func isLinkedAnew(
        _ object: any ManagedObject,
        _ intents: [Intent]
    ) throws(StoreError) -> Bool {
        try wantedLinks(of: object, intents) != wantedLinks(of: object, [])
    }

    /// The relationship of an object that others deleted is as it was at last: nothing is wanted.
    func forgetIfAsItWas(_ key: ToManyKey, _ object: any ManagedObject) {
        guard object.storage.object == key.owner,
            let relationship = object.storage.model.properties[key.slot].relationship
        else { return }
        let intents = journal.intents
        do throws(StoreError) {
            if relationship.isToMany {
                let now = try wantedMembers(of: object, key.slot, intents)
                if try now != wantedMembers(of: object, key.slot, []) { return }
            } else {
                let now = try wantedTarget(of: object, key.slot, intents)
                if try now != wantedTarget(of: object, key.slot, []) { return }
            }
        } catch { return }
        forgetWanted(key)
    }

    /// What is wanted of the relationships of an object that others deleted, over what it had at
    /// last.
    ///
    /// - Parameter intents: those of other objects count nothing.
    /// - Complexity: O(relationships x intents), and O(n) for each list of n members.
    func wantedLinks(
        of object: any ManagedObject,
        _ intents: [Intent]
    ) throws(StoreError) -> WantedLinks {
        let model = object.storage.model
        var links = WantedLinks()
        for slot in model.relationshipSlots {
            if model.properties[slot].relationship?.isToMany == true {
                links.members[slot] = try wantedMembers(of: object, slot, intents)
            } else {
                links.targets[slot] = try wantedTarget(of: object, slot, intents)
            }
        }
        return links
    }

    private func wantedTarget(
        of object: any ManagedObject,
        _ slot: Int,
        _ intents: [Intent]
    ) throws(StoreError) -> ObjectID? {
        let key = ToManyKey(owner: object.storage.object, slot: slot)
        var target = try storedValue(of: object, slot: slot).object
        for intent in intents where intent.subject == key {
            switch intent {
            case .relate(_, _, _, let wanted): target = wanted
            case .link(_, let owner, _, _, _): target = owner
            case .unlink(_, let owner, _, _): if target == owner { target = nil }
            case .arrange, .delete: break
            }
        }
        return target
    }

    /// The members that a list of an object which others deleted is to have; in the order of their
    /// IDs where it has none.
    private func wantedMembers(
        of object: any ManagedObject,
        _ slot: Int,
        _ intents: [Intent]
    ) throws(StoreError) -> [ObjectID] {
        let key = ToManyKey(owner: object.storage.object, slot: slot)
        var list = try savedMembers(of: object, slot: slot)
        var known = Set(list)
        for intent in intents where intent.subject == key {
            switch intent {
            case .link(_, _, _, let member, let place):
                let isNew = known.insert(member).inserted
                if case .end = place {
                    // Appended once more, a member stays where it is.
                    if isNew { list.append(member) }
                    continue
                }
                if !isNew { list.removeAll { $0 == member } }
                list.insert(member, at: place.index(in: list))
            case .unlink(_, _, _, let member):
                if known.remove(member) != nil { list.removeAll { $0 == member } }
            case .arrange(_, _, _, let ids):
                let named = Set(ids)
                list = ids.filter(known.contains) + list.filter { !named.contains($0) }
            case .relate, .delete: break
            }
        }
        if object.storage.model.properties[slot].relationship?.isOrdered == false { list.sort() }
        return list
    }

    /// The members of a list as the app wants them. Of what others deleted, edits show nowhere, but
    /// what is edited next goes by them.
    func membersAsWanted(of object: any ManagedObject, slot: Int) throws(StoreError) -> [ObjectID] {
        guard isWantedOnly(object, slot) else { return try members(of: object, slot: slot) }
        return try wantedMembers(of: object, slot, journal.intents)
    }

    /// The same of one object.
    func isMemberAsWanted(
        _ member: ObjectID,
        of object: any ManagedObject,
        slot: Int
    ) throws(StoreError) -> Bool {
        guard isWantedOnly(object, slot) else {
            return try isMember(member, of: object, slot: slot)
        }
        return try wantedMembers(of: object, slot, journal.intents).contains(member)
    }

    /// Whether a list shows nothing of its edits: it is of an object that others deleted, and not
    /// kept by its members.
    private func isWantedOnly(_ object: any ManagedObject, _ slot: Int) -> Bool {
        object.storage.state.contains(.gone)
            && object.storage.model.properties[slot].relationship?.isKeptByInverse == false
    }
}

extension LinkPlace {
    fileprivate func index(in list: [ObjectID]) -> Int {
        guard case .between(let before, let after) = self else { return list.count }
        if let found = before.flatMap({ list.firstIndex(of: $0) }) { return found + 1 }
        if let found = after.flatMap({ list.firstIndex(of: $0) }) { return found }
        return before == nil ? 0 : list.count
    }
}
