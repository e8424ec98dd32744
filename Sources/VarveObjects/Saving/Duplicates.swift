// New objects whose unique values exist already: by constraint, another object takes their place.
//
// Invariants
// - Judged as if deletions and changes of the same save were in the store already, and new objects
//   came one after the other: an object whose key this save changes is found by its new one only.
// - Constraints that only fail are not looked at: the transaction's end does that.

import VarveBase
import VarveRecords

struct DuplicateFinder {
    let context: ManagedObjectContext
    let changes: ChangeSet
    let transaction: RecordTransaction
    let graph: TransactionGraph?
    private(set) var rulings: Rulings
    /// Objects by the values that they will have after this save, by index.
    private var holders: [TreeID: [[UInt8]: ObjectID]] = [:]
    /// Stored objects whose values in an index this save changes.
    private var movedAway: [TreeID: Set<ObjectID>] = [:]

    init(
        _ context: ManagedObjectContext,
        _ changes: ChangeSet,
        _ transaction: RecordTransaction,
        _ graph: TransactionGraph?,
        _ rulings: Rulings
    ) {
        self.context = context
        self.changes = changes
        self.transaction = transaction
        self.graph = graph
        self.rulings = rulings
        // Found anew, over the edits as they count now.
        self.rulings.given = [:]
    }

    mutating func find() throws {
        if !context.container.has(.upsertLooksBeforeUpdates) { try noteUpdates() }
        for object in changes.inserted where object.storage.model.replacesDuplicates {
            // What others' commit put in the reach of a deletion takes nobody's place.
            if graph?.isDoomed(object.storage.object) == true { continue }
            try judge(object)
        }
    }

    private mutating func noteUpdates() throws {
        // A deletion that does not reach its object any more leaves its edits.
        let saved = try changes.deleted.filter { try graph?.isOutOfReach($0) == true }
        for object in changes.updated + saved {
            let (model, id) = (object.storage.model, object.storage.object)
            guard model.replacesDuplicates, let edits = object.storage.edits,
                !rulings.dropped.contains(id), graph?.isDoomed(id) != true
            else { continue }
            let given = rulings.droppedSlots[id] ?? []
            for index in model.record.indexes where index.replaces {
                let isEdited = index.terms.contains { term in
                    guard let slot = model.slotsByColumn[term.column] else { return false }
                    return edits.values[slot] != nil && !given.contains(slot)
                }
                guard isEdited else { continue }
                movedAway[index.tree, default: []].insert(id)
                let key = try transaction.uniqueKey(index) { column throws(RecordError) in
                    let slot = model.slotsByColumn[column]
                    if let slot, !given.contains(slot), let edited = edits.values[slot] {
                        return edited
                    }
                    guard let row = try self.transaction.row(model.record.id, id) else {
                        return .null
                    }
                    return try self.transaction.value(of: row, column)
                }
                if let key { holders[index.tree, default: [:]][key] = id }
            }
        }
    }

    private mutating func judge(_ object: any ManagedObject) throws {
        let (model, id) = (object.storage.model, object.storage.object)
        guard let edits = object.storage.edits else { return }
        var keys: [(index: RecordIndex, key: [UInt8])] = []
        for index in model.record.indexes where index.replaces {
            let key = try transaction.uniqueKey(index) { column throws(RecordError) in
                model.slotsByColumn[column].flatMap { edits.values[$0] } ?? .null
            }
            if let key { keys.append((index, key)) }
        }
        for (index, key) in keys {
            guard let existing = try holder(of: key, index, object) else { continue }
            rulings.replaced[id] = existing
            if index.uniqueness == .upsert {
                let values = given(by: object)
                rulings.given[existing, default: (model, [])].values += values
            } else {
                rulings.ignored.insert(id)
            }
            return
        }
        for (index, key) in keys { holders[index.tree, default: [:]][key] = id }
    }

    /// The object that will hold these values when the new one comes.
    private func holder(
        of key: [UInt8],
        _ index: RecordIndex,
        _ object: any ManagedObject
    ) throws -> ObjectID? {
        let (model, id) = (object.storage.model, object.storage.object)
        if let holder = holders[index.tree]?[key] { return holder }
        let values: [ColumnValue] = index.terms.compactMap { term in
            guard let slot = model.slotsByColumn[term.column],
                let value = object.storage.edits?.values[slot]
            else { return nil }
            return ColumnValue(term.column, value)
        }
        let violations = try transaction.uniqueConflicts(
            model.record.id,
            values: values,
            excluding: id
        )
        let away = movedAway[index.tree] ?? []
        return violations.filter { $0.properties == index.names && $0.policy == index.uniqueness }
            .flatMap(\.objects)
            .first { $0 != id && !away.contains($0) && !isDeleted($0) }
    }

    private func isDeleted(_ id: ObjectID) -> Bool {
        if let graph { return graph.isDoomed(id) }
        return context.doomed[id] != nil
    }

    /// Attributes that the app set on a new object.
    private func given(by object: any ManagedObject) -> [ColumnValue] {
        guard let edits = object.storage.edits else { return [] }
        let model = object.storage.model
        return edits.values.enumerated().compactMap { slot, value in
            guard let value, edits.isAssigned(slot), model.properties[slot].attribute != nil else {
                return nil
            }
            return ColumnValue(model.columns[slot], value)
        }
    }
}

extension RecordIndex {
    /// Whether a duplicate takes another object's place instead of failing.
    var replaces: Bool { uniqueness == .upsert || uniqueness == .ignore }
}

extension EntityModel {
    /// Whether some constraint replaces new objects instead of failing.
    var replacesDuplicates: Bool { record.indexes.contains(where: \.replaces) }
}
