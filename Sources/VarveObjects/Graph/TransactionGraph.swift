// The graph that a save is about to write: the newest commit with the context's journal applied.
//
// Invariants
// - Reads the transaction and changes nothing in it; `SaveWriter` writes what came out.
// - Lives under the writer lock, so that the commit beneath it is the newest one to the end.

import VarveBase
import VarveRecords

final class TransactionGraph: GraphState {
    private struct Target {
        let id: ObjectID?
    }

    let schema: SchemaModel
    let container: PersistentContainer
    let transaction: RecordTransaction
    /// New objects of the save, and those that come back.
    private(set) var added: [ObjectID: EntityModel]
    private var references: [ToManyKey: Target] = [:]
    private var looseReferences: [LooseKey: Set<ObjectID>] = [:]
    private var rows: [ObjectID: CachedRow?] = [:]
    /// Lists of the commit, read once.
    private var bases: [ToManyKey: [ObjectID]] = [:]
    private var doomedSet: Set<ObjectID> = []
    /// What the save deletes, in the order in which it was found.
    private(set) var doomed: [(model: EntityModel, id: ObjectID)] = []
    private(set) var deletions: [ObjectID] = []
    /// From which object a cascade came to another one.
    private(set) var reachedBy: [ObjectID: ObjectID] = [:]
    private(set) var lists: [ToManyKey: ToManyEdit] = [:]
    /// Objects whose columns changed.
    private(set) var touched: [ObjectID: EntityModel] = [:]
    private(set) var lost: [LostTarget] = []
    /// What the context deleted as well: nobody misses it.
    private let deletedHere: Set<ObjectID>
    /// Of `added`, those that a commit had before: what was left of them leads to them again.
    private let returning: Set<ObjectID>

    init(
        _ transaction: RecordTransaction,
        _ container: PersistentContainer,
        added: [ObjectID: EntityModel],
        returning: Set<ObjectID> = [],
        deletedHere: Set<ObjectID>
    ) {
        self.deletedHere = deletedHere
        self.returning = returning
        self.transaction = transaction
        self.container = container
        self.schema = container.schema
        self.added = added
    }

    func has(_ bug: PlantedObjectBug) -> Bool { container.has(bug) }

    /// No code of an app runs under the writer lock.
    var isInterrupted: Bool { false }

    /// An object that others deleted is there again.
    func revive(_ id: ObjectID, _ model: EntityModel) { added[id] = model }

    func isDoomed(_ id: ObjectID) -> Bool { doomedSet.contains(id) }

    /// The changed to-one columns of an object, by slot.
    func changes(of id: ObjectID, _ model: EntityModel) -> [(slot: Int, target: ObjectID?)] {
        model.relationshipSlots.compactMap { slot in
            references[ToManyKey(owner: id, slot: slot)].map { (slot, $0.id) }
        }
    }

    private func reading<Value>(
        _ body: () throws(RecordError) -> Value
    ) throws(StoreError) -> Value {
        try container.translating(body)
    }

    /// The row of an object in the newest commit.
    func row(_ id: ObjectID, _ model: EntityModel) throws(StoreError) -> CachedRow? {
        if let known = rows[id] { return known }
        let row = try reading { () throws(RecordError) in try transaction.row(model.record.id, id) }
        rows[id] = row
        return row
    }

    // MARK: GraphState

    func isAlive(_ id: ObjectID, _ model: EntityModel) throws(StoreError) -> Bool {
        if doomedSet.contains(id) { return false }
        if added[id] != nil { return true }
        return try row(id, model) != nil
    }

    func isUnsaved(_ id: ObjectID) -> Bool { isNew(id) && (rows[id] ?? nil) == nil }

    /// Whether the commit can know nothing of it.
    private func isNew(_ id: ObjectID) -> Bool { added[id] != nil && !returning.contains(id) }

    func reference(
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) throws(StoreError) -> ObjectID? {
        if let changed = references[ToManyKey(owner: id, slot: slot)] { return changed.id }
        if added[id] != nil { return nil }
        let row = try row(id, model)
        return try reading { () throws(RecordError) in try row?.reference(model.columns[slot]) }
    }

    func savedMembers(
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) throws(StoreError) -> [ObjectID] {
        guard !isNew(id), let relationship = model.properties[slot].relationship else {
            return []
        }
        let key = ToManyKey(owner: id, slot: slot)
        if let known = bases[key] { return known }
        let ids = try reading { () throws(RecordError) in
            try transaction.relatedIDs(model.record, relationship.record, of: id)
        }
        bases[key] = ids
        return ids
    }

    func list(_ id: ObjectID, _ slot: Int) -> ToManyEdit? {
        lists[ToManyKey(owner: id, slot: slot)]
    }

    func members(
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) throws(StoreError) -> [ObjectID] {
        let base = try savedMembers(id, model, slot)
        let edit = lists[ToManyKey(owner: id, slot: slot)]
        let ids = edit?.members(over: base, commit: nil) ?? base
        return doomedSet.isEmpty ? ids : ids.filter { !doomedSet.contains($0) }
    }

    func memberCount(
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) throws(StoreError) -> Int {
        let key = ToManyKey(owner: id, slot: slot)
        // Which of the deleted ones are members, only the list tells.
        guard doomedSet.isEmpty, bases[key] == nil, !isNew(id),
            let relationship = model.properties[slot].relationship
        else { return try members(id, model, slot).count }
        let base = try reading { () throws(RecordError) in
            try transaction.relatedCount(model.record, relationship.record, of: id)
        }
        return lists[key]?.count(over: base) ?? base
    }

    func savedReference(
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) throws(StoreError) -> ObjectID? {
        let row = try row(id, model)
        return try reading { () throws(RecordError) in try row?.reference(model.columns[slot]) }
    }

    func isMember(
        _ member: ObjectID,
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) throws(StoreError) -> Bool {
        if doomedSet.contains(member) { return false }
        if let said = lists[ToManyKey(owner: id, slot: slot)]?.contains(member) { return said }
        guard !isNew(id), let relationship = model.properties[slot].relationship else {
            return false
        }
        return try reading { () throws(RecordError) in
            try transaction.leads(model.record, relationship.record, from: id, to: member)
        }
    }

    func referring(
        _ owner: EntityModel,
        _ slot: Int,
        to id: ObjectID
    ) throws(StoreError) -> [ObjectID] {
        let key = LooseKey(owner: owner.record.id, slot: slot, target: id)
        var ids = looseReferences[key] ?? []
        if !isNew(id), let relationship = owner.properties[slot].relationship {
            ids.formUnion(
                try reading { () throws(RecordError) in
                    try transaction.owners(owner.record, relationship.record, of: id)
                }
            )
        }
        return ids.sorted()
    }

    func setReference(
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int,
        _ target: ObjectID?
    ) throws(StoreError) {
        if model.properties[slot].relationship?.inverseSlot == nil {
            if let old = try reference(id, model, slot) {
                let key = LooseKey(owner: model.record.id, slot: slot, target: old)
                looseReferences[key]?.remove(id)
            }
            if let target {
                let key = LooseKey(owner: model.record.id, slot: slot, target: target)
                looseReferences[key, default: []].insert(id)
            }
        }
        let key = ToManyKey(owner: id, slot: slot)
        if added[id] == nil {
            let row = try row(id, model)
            let stored = try reading { () throws(RecordError) in
                try row?.reference(model.columns[slot])
            }
            // There and back is no change: the row is not written, so nobody's edit meets it.
            if stored == target {
                references[key] = nil
                let isOther = model.relationshipSlots.contains {
                    references[ToManyKey(owner: id, slot: $0)] != nil
                }
                if !isOther { touched[id] = nil }
                return
            }
        }
        references[key] = Target(id: target)
        touched[id] = model
    }

    func edit(
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int,
        _ change: (ToManyEdit) throws(StoreError) -> Void
    ) throws(StoreError) {
        let key = ToManyKey(owner: id, slot: slot)
        let edit = lists[key] ?? ToManyEdit(owner: id, model: model, slot: slot)
        try change(edit)
        lists[key] = edit
    }

    /// What is deleted here is left out when members are read.
    func noteListed(_ member: ObjectID, by owner: ObjectID, _ slot: Int) {}

    func doom(_ id: ObjectID, _ model: EntityModel, by other: ObjectID?) throws(StoreError) {
        guard doomedSet.insert(id).inserted else { return }
        doomed.append((model, id))
        deletions.append(id)
        reachedBy[id] = other
    }

    func noteLost(
        _ target: ObjectID,
        wantedBy id: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) {
        if deletedHere.contains(target) || deletedHere.contains(id) { return }
        lost.append(LostTarget(owner: id, model: model, slot: slot, target: target))
    }

    func forgetLost(_ id: ObjectID, _ slot: Int, _ target: ObjectID?) {
        if !lost.isEmpty { lost.removeAll { $0.isAbout(id, slot, target) } }
    }

    func noteLost(_ id: ObjectID, _ model: EntityModel, _ slot: Int) {
        if deletedHere.contains(id) { return }
        lost.append(LostTarget(owner: id, model: model, slot: slot, target: nil))
    }
}
