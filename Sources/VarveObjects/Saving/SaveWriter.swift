// Writes a plan into a transaction: rows first, then links.
//
// Invariants
// - What is written is what the plan says, nothing is decided here.
// - Deletions come first, so that their values are free; lists with an order before their inverse
//   sides, so that links are made in that order.

import VarveBase
import VarveRecords

struct SaveWriter {
    let context: ManagedObjectContext
    let changes: ChangeSet
    let plan: SavePlan
    let transaction: RecordTransaction
    private var rulings: Rulings { plan.rulings }

    func write() throws {
        let lists = try lists()
        try writeDeletions()
        for object in changes.inserted where rulings.replaced[object.storage.object] == nil {
            try insert(object)
        }
        var updated: Set<ObjectID> = []
        // One after the other: a copy of both would keep each object once more.
        for objects in [changes.updated, try outOfReach()] {
            for object in objects {
                updated.insert(object.storage.object)
                try update(object)
            }
        }
        try writeOthers(but: updated)
        for list in lists { try write(list) }
    }

    private func outOfReach() throws -> [any ManagedObject] {
        guard let graph = plan.graph else { return [] }
        return try changes.deleted.filter { try graph.isOutOfReach($0) }
    }

    // MARK: Rows

    private func writeDeletions() throws {
        guard let graph = plan.graph else {
            for object in changes.deleted {
                try transaction.delete(object.storage.model.record.id, object.storage.object)
            }
            return
        }
        for (model, id) in graph.doomed where try graph.row(id, model) != nil {
            try transaction.delete(model.record.id, id)
        }
    }

    private func insert(_ object: any ManagedObject) throws {
        let (model, id) = (object.storage.model, object.storage.object)
        if plan.graph?.isDoomed(id) == true { return }
        if rulings.met.contains(id) {
            try update(object)
            return
        }
        var values = editedValues(object)
        if let given = rulings.given[id] {
            let columns = Set(given.values.map(\.column))
            values.removeAll { columns.contains($0.column) }
            values += given.values
        }
        try transaction.insert(model.record.id, id, whole(values, nil, model))
    }

    /// The values of a row with what belongs to them: missing fields, derived values.
    private func whole(
        _ values: [ColumnValue],
        _ id: ObjectID?,
        _ model: EntityModel
    ) throws -> [ColumnValue] {
        if model.derived.isEmpty, !model.concernsComposites(values) { return values }
        let row = try id.flatMap { try transaction.row(model.record.id, $0) }
        let isWhole = context.has(.compositesLackFields)
        let values = isWhole ? values : try model.withFields(values, over: row, transaction)
        if context.has(.derivedIgnoresTheRest) { return values }
        return try model.withDerived(values, over: row, transaction)
    }

    private func update(_ object: any ManagedObject) throws {
        let (model, id) = (object.storage.model, object.storage.object)
        if let graph = plan.graph {
            if graph.isDoomed(id) { return }
            if rulings.lost.contains(id) { return }
            if rulings.whole.contains(id) {
                try writeWhole(object, graph)
                return
            }
            guard let row = try graph.row(id, model) else { return }
            let values = try news(editedValues(object), over: row)
            if values.isEmpty { return }
            try transaction.update(model.record.id, id, whole(values, id, model))
            return
        }
        let values = editedValues(object)
        if values.isEmpty { return }
        try transaction.update(model.record.id, id, whole(values, id, model))
    }

    /// The values that a row does not have yet. What others set to the same value is as the app
    /// wants it: nothing is written, so that nobody's edit meets it.
    private func news(_ values: [ColumnValue], over row: CachedRow) throws -> [ColumnValue] {
        try values.filter { value in
            !(try transaction.value(of: row, value.column).isSame(as: value.value))
        }
    }

    private func writeWhole(_ object: any ManagedObject, _ graph: TransactionGraph) throws {
        let (model, id) = (object.storage.model, object.storage.object)
        let isBack = rulings.revived.contains(id)
        // Others may have given the row other blobs, or deleted it.
        if let snapshot = context.snapshot { try context.keepBlobs(of: object, at: snapshot) }
        var values: [ColumnValue] = []
        for slot in model.properties.indices where model.properties[slot].column != nil {
            if model.properties[slot].relationship != nil {
                let target = try graph.reference(id, model, slot)
                values.append(ColumnValue(model.columns[slot], reference(target)))
                continue
            }
            let value =
                try object.storage.edits?.values[slot]
                ?? context.storedValue(of: object, slot: slot)
            values.append(ColumnValue(model.columns[slot], value))
        }
        if isBack {
            try transaction.insert(model.record.id, id, whole(values, nil, model))
        } else {
            try transaction.update(model.record.id, id, whole(values, nil, model))
        }
    }

    /// Rows that the edits reach without being edited themselves, and those that stand in the
    /// place of new objects.
    private func writeOthers(but updated: Set<ObjectID>) throws {
        var values: [ObjectID: (model: EntityModel, values: [ColumnValue])] = [:]
        let inserted = Set(changes.inserted.map { $0.storage.object })
        for (id, given) in rulings.given where !inserted.contains(id) { values[id] = given }
        if let graph = plan.graph {
            for (id, model) in graph.touched
            where !updated.contains(id) && !inserted.contains(id) && !graph.isDoomed(id) {
                values[id, default: (model, [])].values += columns(of: id, model, graph)
            }
        }
        for (id, entry) in values.sorted(by: { $0.key < $1.key }) where !entry.values.isEmpty {
            var values = entry.values
            if let row = try transaction.row(entry.model.record.id, id) {
                values = try news(values, over: row)
                if values.isEmpty { continue }
            }
            values = try whole(values, id, entry.model)
            try transaction.update(entry.model.record.id, id, values)
        }
    }

    /// The edits of an object: attributes as the app set them, references as the plan has them.
    private func editedValues(_ object: any ManagedObject) -> [ColumnValue] {
        let (model, id) = (object.storage.model, object.storage.object)
        var values: [ColumnValue] = []
        if let edits = object.storage.edits, !rulings.dropped.contains(id) {
            let given = rulings.droppedSlots[id] ?? []
            values.reserveCapacity(edits.values.count)
            for (slot, value) in edits.values.enumerated() where !given.contains(slot) {
                guard let value, model.properties[slot].column != nil else { continue }
                if plan.graph != nil, model.properties[slot].relationship != nil { continue }
                values.append(ColumnValue(model.columns[slot], value))
            }
        }
        if let graph = plan.graph { values += columns(of: id, model, graph) }
        return values
    }

    private func columns(
        of id: ObjectID,
        _ model: EntityModel,
        _ graph: TransactionGraph
    ) -> [ColumnValue] {
        graph.changes(of: id, model).map { slot, target in
            ColumnValue(model.columns[slot], reference(target))
        }
    }

    private func reference(_ target: ObjectID?) -> StoredValue {
        target.map { .reference($0) } ?? .null
    }

    // MARK: Links

    /// A list that is about to be written.
    private struct List {
        let edit: ToManyEdit
        let relationship: RelationshipModel
        let far: EntityModel
        /// Where its order counts: its members, and those of the commit.
        let order: (members: [ObjectID], base: [ObjectID])?
    }

    /// The lists to write. Found before anything is written: what is written of one side of a
    /// relationship changes the other.
    private func lists() throws -> [List] {
        let edits = plan.graph.map { Array($0.lists.values) } ?? Array(context.toManyEdits.values)
        // Most saves have none; sorting nothing is 4 % of a save of one new object.
        if edits.isEmpty { return [] }
        let sorted = edits.sorted { left, right in
            let (first, second) = (isOrdered(left), isOrdered(right))
            if first != second { return first }
            return (left.owner, left.slot) < (right.owner, right.slot)
        }
        var lists: [List] = []
        for edit in sorted where try isThere(edit.owner, edit.model) {
            guard let relationship = edit.model.properties[edit.slot].relationship,
                relationship.isLinked, let far = context.targetModel(edit.model, edit.slot)
            else { continue }
            lists.append(
                List(
                    edit: edit,
                    relationship: relationship,
                    far: far,
                    order: try order(edit, relationship)
                )
            )
        }
        return lists
    }

    private func order(
        _ edit: ToManyEdit,
        _ relationship: RelationshipModel
    ) throws -> (members: [ObjectID], base: [ObjectID])? {
        guard relationship.isOrdered, !context.has(.ordersByObjectID),
            edit.order != nil || relationship.inverseIsOrdered && !edit.added.isEmpty
        else { return nil }
        let (id, model, slot) = (edit.owner, edit.model, edit.slot)
        if let graph = plan.graph {
            return (try graph.members(id, model, slot), try graph.savedMembers(id, model, slot))
        }
        return (try context.members(id, model, slot), try context.savedMembers(id, model, slot))
    }

    private func isOrdered(_ edit: ToManyEdit) -> Bool {
        edit.model.properties[edit.slot].relationship?.isOrdered ?? false
    }

    private func isThere(_ id: ObjectID, _ model: EntityModel) throws -> Bool {
        if let graph = plan.graph { return try graph.isAlive(id, model) }
        return context.doomed[id] == nil
    }

    private func write(_ list: List) throws {
        let (entity, record) = (list.edit.model.record, list.relationship.record)
        let owner = list.edit.owner
        if let order = list.order {
            try transaction.setOrder(entity, record, of: owner, order.members, from: order.base)
            return
        }
        for id in list.edit.removed.sorted() {
            try transaction.removeLink(entity, record, from: owner, to: id)
        }
        let isOrdered = list.relationship.isOrdered && !context.has(.ordersByObjectID)
        let added = isOrdered ? list.edit.added : list.edit.added.sorted()
        for id in added where try isThere(id, list.far) {
            try transaction.addLink(entity, record, from: owner, to: id)
        }
    }
}
