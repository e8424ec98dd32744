// Relationships of the objects of a context: reading them, and what the app's setters mean.
//
// Invariants
// - What an app wants becomes an intent of the journal (`Graph/Intent.swift`); the evaluator makes
//   both sides equal at once (`Graph/GraphEvaluator.swift`).
// - What cannot be is refused at the call, and said at the save (`Context/RefusedEdits.swift`).

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    // MARK: Reading

    /// The object that a to-one relationship leads to. Where the store may hold a reference to an
    /// object that is gone, or will be (rule `noAction`), that reads as nil.
    func target(
        of object: any ManagedObject,
        slot: Int,
        _ target: ObjectID
    ) -> (any ManagedObject)? {
        let model = object.storage.model
        guard let hop = container.schema.hop(model, slot) else { return nil }
        if !doomed.isEmpty, doomed[target] != nil { return nil }
        if let known = registered(target) {
            return known.storage.state.contains(.gone) ? nil : known
        }
        guard leads(object, slot, to: target, hop) else { return nil }
        return self.object(target, container.schema.entities[hop.target])
    }

    /// The same, as an object of its class.
    func typedTarget<Target: ManagedObject>(
        of object: some ManagedObject,
        slot: Int,
        _ target: ObjectID
    ) -> Target? {
        let model = object.storage.model
        guard inHand == nil, doomed.isEmpty, let hop = container.schema.hop(model, slot) else {
            return self.target(of: object, slot: slot, target) as? Target
        }
        let targetModel = container.schema.entities[hop.target]
        guard targetModel.type == Target.self else {
            return self.target(of: object, slot: slot, target) as? Target
        }
        let number = targetModel.number
        if let known = core.registry.find(target, entity: number, as: Target.self) {
            return known.storage.state.contains(.gone) ? nil : known
        }
        // Of another entity, which is in no sound store: that object stays where it is.
        if core.registry.contains(target) {
            return self.target(of: object, slot: slot, target) as? Target
        }
        guard leads(object, slot, to: target, hop) else { return nil }
        return makeObject(target, targetModel, row: nil)
    }

    /// Whether a to-one relationship leads to an object that nobody holds here.
    private func leads(
        _ object: some ManagedObject,
        _ slot: Int,
        to target: ObjectID,
        _ hop: RelationshipHop
    ) -> Bool {
        // What is deleted leads to its like, gone or never saved, which nobody may hold.
        let isOver = !object.storage.state.isDisjoint(with: [.deleted, .gone])
        if isOver || behindReads > 0 || hop.mayDangle, let snapshot {
            let entity = container.schema.entities[hop.target].record.id
            if (try? snapshot.exists(entity, target)) == false { return false }
        }
        faultWatch?.led(to: target, object.storage.model, slot)
        return true
    }

    /// The members of a to-many relationship, unsaved edits included.
    func members(of object: any ManagedObject, slot: Int) throws(StoreError) -> [ObjectID] {
        let base = try savedMembers(of: object, slot: slot)
        let key = ToManyKey(owner: object.storage.object, slot: slot)
        let edit = toManyEdits[key]
        let ids = edit?.members(over: base, commit: snapshot?.number) ?? base
        let shown = doomed.isEmpty ? ids : ids.filter { doomed[$0] == nil }
        let isGone = object.storage.state.contains(.gone)
        guard isGone || object.storage.state.contains(.deleted) && edit != nil else { return shown }
        return try withoutStrangers(shown, of: object, slot, isGone ? nil : edit)
    }

    /// The members of a deleted object's list that somebody holds, or that exist: others are gone,
    /// or were never saved. With an edit, only what it added may be such a one.
    private func withoutStrangers(
        _ ids: [ObjectID],
        of object: any ManagedObject,
        _ slot: Int,
        _ edit: ToManyEdit?
    ) throws(StoreError) -> [ObjectID] {
        guard let far = targetModel(object.storage.model, slot) else { return ids }
        var known: [ObjectID] = []
        for id in ids {
            if edit == nil || edit?.says(id) == true, registered(id) == nil {
                if try !isAlive(id, far) { continue }
            }
            known.append(id)
        }
        return known
    }

    /// The members as the commit has them; read from the relationship's index once per commit.
    func savedMembers(of object: any ManagedObject, slot: Int) throws(StoreError) -> [ObjectID] {
        guard !object.storage.isNew, !object.storage.state.contains(.invalid) else { return [] }
        let model = object.storage.model
        guard let relationship = model.properties[slot].relationship else { return [] }
        let snapshot = try currentSnapshot()
        if let known = object.storage.related?.first(where: { $0.slot == slot }),
            known.commit == snapshot.number || object.storage.state.contains(.gone)
                || known.isPrefetched && has(.prefetchedListsStay)
        {
            return known.ids
        }
        let id = object.storage.object
        let ids = try container.translating { () throws(RecordError) in
            try snapshot.relatedIDs(model.record, relationship.record, of: id)
        }
        keepMembers(ids, of: object, slot: slot, commit: snapshot.number)
        return ids
    }

    /// Keeps what was read. A list that was prefetched once stays one.
    private func keepMembers(
        _ ids: [ObjectID],
        of object: any ManagedObject,
        slot: Int,
        commit: CommitNumber
    ) {
        let known = object.storage.related?.first { $0.slot == slot }
        keepMembers(
            RelatedList(
                slot: slot,
                commit: commit,
                ids: ids,
                isPrefetched: known?.isPrefetched == true
            ),
            of: object
        )
    }

    func keepMembers(_ list: RelatedList, of object: any ManagedObject) {
        var lists = object.storage.related ?? []
        lists.removeAll { $0.slot == list.slot }
        lists.append(list)
        object.storage.related = lists
    }

    /// How many members there are. Without an earlier read only the index is asked.
    func memberCount(of object: any ManagedObject, slot: Int) throws(StoreError) -> Int {
        let model = object.storage.model
        let key = ToManyKey(owner: object.storage.object, slot: slot)
        let edit = toManyEdits[key]
        guard doomed.isEmpty, object.storage.state.isDisjoint(with: [.gone, .invalid]),
            let relationship = model.properties[slot].relationship
        else { return try members(of: object, slot: slot).count }
        let base = try savedCount(of: object, slot: slot, relationship)
        return edit?.count(over: base) ?? base
    }

    func savedCount(
        of object: any ManagedObject,
        slot: Int,
        _ relationship: RelationshipModel
    ) throws(StoreError) -> Int {
        if object.storage.isNew { return 0 }
        // Closed, there are no members, though a list may have been read: a collection that counts
        // more than it has would trap.
        let snapshot = try currentSnapshot()
        if let list = readList(of: object, slot: slot) { return list.ids.count }
        let model = object.storage.model
        let id = object.storage.object
        return try container.translating { () throws(RecordError) in
            try snapshot.relatedCount(model.record, relationship.record, of: id)
        }
    }

    /// Whether `target` is a member. Asks the index only.
    func isMember(
        _ target: ObjectID,
        of object: any ManagedObject,
        slot: Int
    ) throws(StoreError) -> Bool {
        let key = ToManyKey(owner: object.storage.object, slot: slot)
        if !doomed.isEmpty, doomed[target] != nil { return false }
        if let said = toManyEdits[key]?.contains(target) { return said }
        let model = object.storage.model
        guard !object.storage.isNew, let relationship = model.properties[slot].relationship else {
            return false
        }
        if let list = readList(of: object, slot: slot) { return list.contains(target) }
        let snapshot = try currentSnapshot()
        let id = object.storage.object
        return try container.translating { () throws(RecordError) in
            try snapshot.isRelated(model.record, relationship.record, of: id, to: target)
        }
    }

    /// Whether a relationship was not read yet. Loads nothing.
    func hasFault(_ object: any ManagedObject, slot: Int) -> Bool {
        if object.storage.model.properties[slot].relationship?.isToMany != true {
            guard let id = registeredTarget(of: object, slot: slot) else { return object.isFault }
            return registered(id)?.isFault ?? true
        }
        if object.storage.isNew { return false }
        return readList(of: object, slot: slot) == nil
    }

    /// The members as they were read of the context's commit; nil: they were not.
    private func readList(of object: any ManagedObject, slot: Int) -> RelatedList? {
        let list = object.storage.related?.first { $0.slot == slot }
        return list?.commit == snapshot?.number ? list : nil
    }

    /// The saved members, as far as they are in memory; nil: they were not read.
    func knownMembers(of object: any ManagedObject, slot: Int) -> [ObjectID]? {
        object.storage.isNew ? [] : readList(of: object, slot: slot)?.ids
    }

    private func registeredTarget(of object: any ManagedObject, slot: Int) -> ObjectID? {
        if case .reference(let id)? = object.storage.edits?.values[slot] { return id }
        let column = object.storage.model.columns[slot]
        return (try? object.storage.row?.reference(column)) ?? nil
    }

    // MARK: Setting

    /// Sets a to-one relationship and its inverse.
    func setToOne(_ object: any ManagedObject, _ slot: Int, to target: (any ManagedObject)?) {
        let model = object.storage.model
        guard model.properties[slot].relationship != nil,
            mayEdit(object, slot), mayLead(from: object, slot, to: target)
        else { return }
        forgetRefusal(object, slot)
        guard let value = value(of: object, slot: slot) else { return }
        let new = target?.storage.object
        let id = object.storage.object
        if value.object == new, !wantsWhatIsGone(id, slot) { return }
        inHand = ObjectsInHand(id: id, object: object, targetID: new, target: target)
        submit(.relate(model, id, slot: slot, to: new), object)
        inHand = nil
    }

    /// Whether a relationship wanted what is gone: then setting it to what it shows is an edit, by
    /// which it wants something else. Of other relationships it is none: others' values may come.
    private func wantsWhatIsGone(
        _ id: ObjectID,
        _ slot: Int,
        _ target: ObjectID? = nil
    ) -> Bool {
        lostTargets.contains { $0.isAbout(id, slot, target) }
    }

    func addMember(
        _ target: any ManagedObject,
        to object: any ManagedObject,
        slot: Int,
        at index: Int? = nil
    ) {
        let model = object.storage.model
        guard let relationship = model.properties[slot].relationship,
            mayEdit(object, slot), mayLead(from: object, slot, to: target)
        else { return }
        forgetRefusal(object, slot)
        if relationship.isKeptByInverse, let inverse = relationship.inverseSlot {
            guard mayEdit(target, inverse) else { return }
            forgetRefusal(target, inverse)
            if !relationship.isOrdered {
                setToOne(target, inverse, to: object)
                return
            }
        }
        let (id, member) = (object.storage.object, target.storage.object)
        var place = LinkPlace.end
        do throws(StoreError) {
            if let index, relationship.isOrdered {
                guard let found = try self.place(index, of: member, in: object, slot) else {
                    return
                }
                place = found
            } else if try isMemberAsWanted(member, of: object, slot: slot) {
                return
            }
        } catch {
            note(error, object)
            return
        }
        submit(.link(model, id, slot: slot, member, place), object)
    }

    /// The neighbours at a position, counted without the member that comes there; nil: it is there
    /// already.
    private func place(
        _ index: Int,
        of member: ObjectID,
        in object: any ManagedObject,
        _ slot: Int
    ) throws(StoreError) -> LinkPlace? {
        let key = ToManyKey(owner: object.storage.object, slot: slot)
        toManyEdits[key]?.strip(deletions)
        if let list = toManyEdits[key]?.order {
            let own = list.index(of: member)
            let others = own == nil ? list.count : list.count - 1
            let place = min(max(index, 0), others)
            if own == place { return nil }
            func other(_ place: Int) -> ObjectID? {
                guard place < others else { return nil }
                if let own, place >= own { return list[place + 1] }
                return list[place]
            }
            return .between(other(place - 1), other(place))
        }
        let ids = try membersAsWanted(of: object, slot: slot)
        let isMember = try isMemberAsWanted(member, of: object, slot: slot)
        let own = isMember ? ids.firstIndex(of: member) : nil
        let others = own == nil ? ids.count : ids.count - 1
        func other(_ place: Int) -> ObjectID? {
            guard place >= 0, place < others else { return nil }
            if let own, place >= own { return ids[place + 1] }
            return ids[place]
        }
        let place = min(max(index, 0), others)
        if own == place { return nil }
        return .between(other(place - 1), other(place))
    }

    func removeMember(_ target: any ManagedObject, from object: any ManagedObject, slot: Int) {
        let model = object.storage.model
        guard let relationship = model.properties[slot].relationship, mayEdit(object, slot) else {
            return
        }
        forgetRefusal(object, slot)
        let (id, member) = (object.storage.object, target.storage.object)
        if relationship.isKeptByInverse, let inverse = relationship.inverseSlot {
            guard target.storage.core === core else { return }
            // A deleted member is in no list any more, or leaves them when the deletion is done.
            if !target.storage.state.isDisjoint(with: [.deleted, .ended]), hookObject !== target {
                return
            }
            if value(of: target, slot: inverse)?.object == id {
                setToOne(target, inverse, to: nil)
                return
            }
        }
        do throws(StoreError) {
            guard
                try isMemberAsWanted(member, of: object, slot: slot)
                    || wantsWhatIsGone(id, slot, member)
            else { return }
        } catch {
            note(error, object)
            return
        }
        submit(.unlink(model, id, slot: slot, member), object)
    }

    /// Makes an ordered relationship's members come in this order.
    func arrange(_ ids: [ObjectID], of object: any ManagedObject, slot: Int) {
        guard mayEdit(object, slot) else { return }
        do throws(StoreError) {
            if try membersAsWanted(of: object, slot: slot) == ids { return }
        } catch {
            note(error, object)
            return
        }
        submit(.arrange(object.storage.model, object.storage.object, slot: slot, ids), object)
    }
}
