// Unsaved edits of relationships, and keeping both sides equal.
//
// Invariants
// - A to-one edit lives in its owner's edits. What it means for the to-many on the other side is
//   noted in `toManyEdits`, so that both sides read equal before the save.
// - A to-many edit is additions and removals; only an ordered one that was rearranged keeps a whole
//   list. So two contexts that add to the same set do not conflict (C3).

import VarveBase
import VarveRecords

struct ToManyKey: Hashable {
    var owner: ObjectID
    var slot: Int
}

/// Unsaved additions to and removals from one to-many relationship.
final class ToManyEdit {
    let owner: ObjectID
    let model: EntityModel
    let slot: Int
    private(set) var added: [ObjectID] = []
    private(set) var removed: Set<ObjectID> = []
    /// The whole list, once an ordered relationship was rearranged.
    var order: [ObjectID]?
    private var addedSet: Set<ObjectID> = []
    /// The members, for the commit that they were computed on.
    private var cached: (commit: CommitNumber?, ids: [ObjectID])?

    init(owner: ObjectID, model: EntityModel, slot: Int) {
        self.owner = owner
        self.model = model
        self.slot = slot
    }

    func add(_ id: ObjectID) {
        cached = nil
        removed.remove(id)
        if addedSet.insert(id).inserted { added.append(id) }
        if order != nil, order?.contains(id) == false { order?.append(id) }
    }

    func remove(_ id: ObjectID) {
        cached = nil
        removed.insert(id)
        if addedSet.remove(id) != nil { added.removeAll { $0 == id } }
        order?.removeAll { $0 == id }
    }

    func arrange(_ ids: [ObjectID]) {
        cached = nil
        order = ids
    }

    func says(_ id: ObjectID) -> Bool? {
        addedSet.contains(id) ? true : removed.contains(id) ? false : nil
    }

    /// The members: those of the commit, without the removed, with the added.
    func members(over base: [ObjectID], isOrdered: Bool, commit: CommitNumber?) -> [ObjectID] {
        if let cached, cached.commit == commit { return cached.ids }
        var ids: [ObjectID]
        if let order {
            // What others added since the list was made comes behind it.
            let known = Set(order)
            let present = Set(base).union(addedSet)
            ids = order.filter { present.contains($0) && !removed.contains($0) }
            ids += base.filter { !known.contains($0) && !removed.contains($0) }
        } else {
            ids = base.filter { !removed.contains($0) }
            let known = Set(ids)
            ids += added.filter { !known.contains($0) }
            if !isOrdered { ids.sort() }
        }
        cached = (commit, ids)
        return ids
    }
}

extension ManagedObjectContext {
    // MARK: Reading

    /// The object that a to-one relationship leads to. Where the store may hold a reference to an
    /// object that is gone (rule `noAction`), that reads as nil.
    func target(
        of object: any ManagedObject,
        slot: Int,
        _ target: ObjectID
    ) -> (any ManagedObject)? {
        let model = object.storage.model
        guard let relationship = model.properties[slot].relationship,
            let targetModel = container.schema.entity(relationship.target)
        else { return nil }
        if let known = registered(target) {
            return known.storage.state.contains(.gone) ? nil : known
        }
        if mayDangle(relationship, targetModel), let snapshot {
            let exists = try? snapshot.exists(targetModel.record.id, target)
            if exists == false { return nil }
        }
        return self.object(target, targetModel)
    }

    private func mayDangle(_ relationship: RelationshipModel, _ target: EntityModel) -> Bool {
        guard let inverse = relationship.inverseSlot else { return false }
        return target.properties[inverse].relationship?.rule == .noAction
    }

    /// The members of a to-many relationship, unsaved edits included.
    func members(of object: any ManagedObject, slot: Int) throws(StoreError) -> [ObjectID] {
        let base = try savedMembers(of: object, slot: slot)
        let key = ToManyKey(owner: object.storage.object, slot: slot)
        guard let edit = toManyEdits[key] else { return base }
        let isOrdered = object.storage.model.properties[slot].relationship?.isOrdered ?? false
        return edit.members(over: base, isOrdered: isOrdered, commit: snapshot?.number)
    }

    /// The members as the commit has them; read from the relationship's index once per commit.
    func savedMembers(of object: any ManagedObject, slot: Int) throws(StoreError) -> [ObjectID] {
        guard !object.isInserted, !object.storage.state.contains(.invalid) else { return [] }
        let model = object.storage.model
        guard let relationship = model.properties[slot].relationship else { return [] }
        let snapshot = try currentSnapshot()
        if let known = object.storage.related?.first(where: { $0.slot == slot }),
            known.commit == snapshot.number || object.storage.state.contains(.gone)
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

    func keepMembers(
        _ ids: [ObjectID],
        of object: any ManagedObject,
        slot: Int,
        commit: CommitNumber
    ) {
        var lists = object.storage.related ?? []
        lists.removeAll { $0.slot == slot }
        lists.append(RelatedList(slot: slot, commit: commit, ids: ids))
        object.storage.related = lists
    }

    /// How many members there are. Without edits and without an earlier read only the index is
    /// asked.
    func memberCount(of object: any ManagedObject, slot: Int) throws(StoreError) -> Int {
        let model = object.storage.model
        let key = ToManyKey(owner: object.storage.object, slot: slot)
        guard toManyEdits[key] == nil, hasFault(object, slot: slot), !object.isInserted,
            let relationship = model.properties[slot].relationship
        else { return try members(of: object, slot: slot).count }
        let snapshot = try currentSnapshot()
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
        if let said = toManyEdits[key]?.says(target) { return said }
        let model = object.storage.model
        guard !object.isInserted, let relationship = model.properties[slot].relationship else {
            return false
        }
        if !hasFault(object, slot: slot) {
            return try savedMembers(of: object, slot: slot).contains(target)
        }
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
        if object.isInserted { return false }
        let list = object.storage.related?.first { $0.slot == slot }
        return list == nil || list?.commit != snapshot?.number
    }

    private func registeredTarget(of object: any ManagedObject, slot: Int) -> ObjectID? {
        if case .reference(let id)? = object.storage.edits?.values[slot] { return id }
        let column = object.storage.model.columns[slot]
        return (try? object.storage.row?.reference(column)) ?? nil
    }

    // MARK: Setting

    /// Sets a to-one relationship and its inverse.
    func setToOne(_ object: any ManagedObject, _ slot: Int, to target: (any ManagedObject)?) {
        guard let relationship = object.storage.model.properties[slot].relationship else { return }
        if let target, !isOwn(target, joinedWith: object) { return }
        guard let value = value(of: object, slot: slot) else { return }
        let id = object.storage.object
        let new = target?.storage.object
        var old: ObjectID?
        if case .reference(let before) = value { old = before }
        set(new.map { .reference($0) } ?? .null, of: object, slot: slot)
        guard old != new, let inverse = relationship.inverseSlot,
            let targetModel = container.schema.entity(relationship.target)
        else { return }
        if relationship.inverseIsToMany {
            if let old { edit(old, targetModel, inverse) { $0.remove(id) } }
            if let new { edit(new, targetModel, inverse) { $0.add(id) } }
            return
        }
        if let old, let before = self.target(of: object, slot: slot, old),
            self.value(of: before, slot: inverse) == .reference(id)
        {
            set(.null, of: before, slot: inverse)
        }
        guard let target, let theirs = self.value(of: target, slot: inverse) else { return }
        if case .reference(let previous) = theirs, previous != id,
            let owner = self.target(of: target, slot: inverse, previous)
        {
            set(.null, of: owner, slot: slot)
        }
        set(.reference(id), of: target, slot: inverse)
    }

    func addMember(_ target: any ManagedObject, to object: any ManagedObject, slot: Int) {
        guard let relationship = object.storage.model.properties[slot].relationship,
            isOwn(target, joinedWith: object), !object.storage.state.contains(.invalid)
        else { return }
        let (id, member) = (object.storage.object, target.storage.object)
        if relationship.isKeptByInverse, let inverse = relationship.inverseSlot {
            setToOne(target, inverse, to: object)
            return
        }
        do throws(StoreError) {
            if try isMember(member, of: object, slot: slot) { return }
        } catch {
            note(error, object)
            return
        }
        edit(id, object.storage.model, slot) { $0.add(member) }
        if let inverse = relationship.inverseSlot {
            edit(member, target.storage.model, inverse) { $0.add(id) }
        }
    }

    func removeMember(_ target: any ManagedObject, from object: any ManagedObject, slot: Int) {
        guard let relationship = object.storage.model.properties[slot].relationship,
            !object.storage.state.contains(.invalid)
        else { return }
        let (id, member) = (object.storage.object, target.storage.object)
        if relationship.isKeptByInverse, let inverse = relationship.inverseSlot {
            if value(of: target, slot: inverse) == .reference(id) {
                setToOne(target, inverse, to: nil)
            }
            return
        }
        edit(id, object.storage.model, slot) { $0.remove(member) }
        if let inverse = relationship.inverseSlot {
            edit(member, target.storage.model, inverse) { $0.remove(id) }
        }
    }

    /// Makes an ordered relationship's members come in this order.
    func arrange(_ ids: [ObjectID], of object: any ManagedObject, slot: Int) {
        edit(object.storage.object, object.storage.model, slot) { $0.arrange(ids) }
    }

    /// Takes a deleted object out of the to-many relationship that leads to it.
    func forget(_ member: ObjectID, in owner: ObjectID, _ model: EntityModel, _ slot: Int) {
        edit(owner, model, slot) { $0.remove(member) }
    }

    private func edit(
        _ owner: ObjectID,
        _ model: EntityModel,
        _ slot: Int,
        _ change: (ToManyEdit) -> Void
    ) {
        let key = ToManyKey(owner: owner, slot: slot)
        let object = registered(owner)
        if let object { object.storage.observation?.announce(object, [slot], isBefore: true) }
        let edit: ToManyEdit
        if let known = toManyEdits[key] {
            edit = known
        } else {
            edit = ToManyEdit(owner: owner, model: model, slot: slot)
            toManyEdits[key] = edit
        }
        change(edit)
        if let object { object.storage.observation?.announce(object, [slot], isBefore: false) }
    }

    /// Whether `target` can be joined with an object of this context. If not, the next save throws.
    private func isOwn(_ target: any ManagedObject, joinedWith object: any ManagedObject) -> Bool {
        let isOwn = target.storage.core === core && !target.storage.state.contains(.invalid)
        if !isOwn, misuse == nil {
            misuse = StoreError(
                .crossContext,
                "a \(target.storage.model.name) of another context was joined with a "
                    + object.storage.model.name,
                place: .init(
                    entity: object.storage.model.name,
                    object: object.objectID
                ),
                suggestion: "Get the object in this context: context.existingObject(with: id)."
            )
        }
        return isOwn
    }
}
