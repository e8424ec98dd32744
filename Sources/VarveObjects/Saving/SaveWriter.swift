// Turns a context's edits into rows of a transaction: conflicts, duplicates, rows, links.
//
// Invariants
// - Works with the writer lock held, so what it compares cannot change under it.
// - Touches no object: what a failed save leaves behind is only this writer.

import VarveBase
import VarveRecords

final class SaveWriter {
    let context: ManagedObjectContext
    let policy: MergePolicy
    /// Edited slots that the policy gives up, by object.
    private var dropped: [ObjectID: Set<Int>] = [:]
    /// Objects whose row is written in full.
    private var whole: Set<ObjectID> = []
    /// Objects whose edits or deletion the policy gives up altogether.
    private(set) var abandoned: Set<ObjectID> = []
    /// Objects deleted by others that this save leaves so.
    private(set) var lost: Set<ObjectID> = []
    /// New objects, and the existing ones in their place.
    private(set) var replaced: [ObjectID: ObjectID] = [:]
    private(set) var replacedIDs: [ManagedObjectID: ManagedObjectID] = [:]
    private var updatesOfReplacements: [(EntityModel, ObjectID, [ColumnValue])] = []

    init(context: ManagedObjectContext, policy: MergePolicy) {
        self.context = context
        self.policy = policy
    }

    // MARK: Conflicts

    func resolveConflicts(_ changes: ChangeSet, in transaction: RecordTransaction) throws {
        var details: [StoreError.Detail] = []
        for object in changes.updated {
            try resolve(object, isDeletion: false, in: transaction, &details)
        }
        for object in changes.deleted {
            try resolve(object, isDeletion: true, in: transaction, &details)
        }
        guard let first = details.first else { return }
        throw StoreError(
            .conflict,
            "\(details.count) objects were saved by others since this context read them",
            place: first.place,
            details: details,
            suggestion:
                "refresh(_:mergeChanges: true) takes their values under the edits; or save with "
                + "another merge policy."
        )
    }

    private func resolve(
        _ object: any ManagedObject,
        isDeletion: Bool,
        in transaction: RecordTransaction,
        _ details: inout [StoreError.Detail]
    ) throws {
        let model = object.storage.model
        let id = object.storage.object
        let version = try transaction.version(model.record.id, id)
        guard let row = object.storage.row, version != row.version else { return }
        if isDeletion, version == nil { return }
        let conflict = try describe(object, row, isDeletion, transaction)
        switch try decide(conflict) {
        case .fail:
            details.append(
                StoreError.Detail(
                    code: .conflict,
                    message: version == nil
                        ? "\(model.name) was deleted by another context"
                        : "\(model.name) was changed by commit \(version?.rawValue ?? 0)",
                    place: StoreError.Place(
                        entity: model.name,
                        object: object.objectID,
                        commit: version
                    ),
                    objects: [object.objectID],
                    conflict: conflict
                )
            )
        case .objectWinsByProperty:
            if version == nil { whole.insert(id) }
        case .overwrite:
            whole.insert(id)
        case .rollback:
            abandoned.insert(id)
            if version == nil { lost.insert(id) }
        case .storeWinsByProperty:
            guard let theirs = conflict.theirs, !isDeletion else {
                abandoned.insert(id)
                if version == nil { lost.insert(id) }
                return
            }
            dropped[id] = Set(
                model.properties.indices.filter {
                    theirs.values[$0] != conflict.base.values[$0]
                }
            )
        }
    }

    private func decide(_ conflict: SaveConflict) throws -> ConflictResolution {
        switch policy.kind {
        case .error: .fail
        case .objectWinsByProperty: .objectWinsByProperty
        case .storeWinsByProperty: .storeWinsByProperty
        case .overwrite: .overwrite
        case .rollback: .rollback
        case .custom(let decide): try decide(conflict)
        }
    }

    private func describe(
        _ object: any ManagedObject,
        _ row: CachedRow,
        _ isDeletion: Bool,
        _ transaction: RecordTransaction
    ) throws -> SaveConflict {
        let model = object.storage.model
        let id = object.objectID
        let base = try values(of: row, model) { column throws(StoreError) in
            try self.context.value(in: row, column)
        }
        var mine = base
        for slot in mine.indices {
            if let edited = object.storage.edits?.values[slot] { mine[slot] = edited }
        }
        var theirs: [StoredValue]?
        if let stored = try transaction.row(model.record.id, object.storage.object) {
            theirs = try values(of: stored, model) { column throws(RecordError) in
                try transaction.value(of: stored, column)
            }
        }
        func side(_ values: [StoredValue]) -> ConflictValues {
            ConflictValues(
                model: model,
                object: id,
                values: values,
                blobs: context.blobSource
            )
        }
        return SaveConflict(
            object: id,
            entity: model.name,
            base: side(base),
            mine: isDeletion ? nil : side(mine),
            theirs: theirs.map(side)
        )
    }

    private func values<Failure: Error>(
        of row: CachedRow,
        _ model: EntityModel,
        _ read: (ColumnID) throws(Failure) -> StoredValue
    ) throws(Failure) -> [StoredValue] {
        var values: [StoredValue] = []
        for property in model.properties {
            guard let column = property.column else {
                values.append(.null)
                continue
            }
            values.append(try read(column))
        }
        return values
    }

    // MARK: Duplicates

    func resolveDuplicates(_ changes: ChangeSet, in transaction: RecordTransaction) throws {
        for object in changes.deleted where !abandoned.contains(object.storage.object) {
            let entity = object.storage.model.record.id
            let id = object.storage.object
            if try transaction.version(entity, id) != nil { try transaction.delete(entity, id) }
        }
        for object in changes.inserted {
            let model = object.storage.model
            guard model.replacesDuplicates else { continue }
            let violations = try transaction.uniqueConflicts(
                model.record.id,
                values: insertValues(object),
                excluding: object.storage.object
            )
            guard let violation = violations.first(where: { $0.policy != .error }),
                let existing = violation.objects.first(where: { $0 != object.storage.object })
            else { continue }
            replaced[object.storage.object] = existing
            replacedIDs[object.objectID] = ManagedObjectID(
                store: context.container.identity,
                entity: model.record.id,
                object: existing
            )
            if violation.policy == .upsert {
                updatesOfReplacements.append((model, existing, givenValues(object)))
            }
        }
    }

    // MARK: Rows and links

    func apply(_ changes: ChangeSet, in transaction: RecordTransaction) throws {
        for object in changes.inserted where replaced[object.storage.object] == nil {
            try transaction.insert(
                object.storage.model.record.id,
                object.storage.object,
                insertValues(object)
            )
        }
        for (model, id, values) in updatesOfReplacements where !values.isEmpty {
            try transaction.update(model.record.id, id, values)
        }
        for object in changes.updated {
            let id = object.storage.object
            guard !abandoned.contains(id) else { continue }
            let model = object.storage.model
            if whole.contains(id) {
                let values = try wholeValues(object)
                if try transaction.version(model.record.id, id) == nil {
                    try transaction.insert(model.record.id, id, values)
                } else {
                    try transaction.update(model.record.id, id, values)
                }
                continue
            }
            let values = editedValues(object, without: dropped[id] ?? [])
            if !values.isEmpty { try transaction.update(model.record.id, id, values) }
        }
        let deleted = Set(changes.deleted.map { $0.storage.object }).subtracting(abandoned)
        for edit in changes.relationships {
            try write(edit, deleted, in: transaction)
        }
    }

    private func write(
        _ edit: ToManyEdit,
        _ deleted: Set<ObjectID>,
        in transaction: RecordTransaction
    ) throws {
        guard let relationship = edit.model.properties[edit.slot].relationship,
            relationship.isLinked, !deleted.contains(edit.owner), !lost.contains(edit.owner)
        else { return }
        let entity = edit.model.record
        let record = relationship.record
        let owner = replaced[edit.owner] ?? edit.owner
        for id in edit.removed.sorted() where replaced[id] == nil {
            try transaction.removeLink(entity, record, from: owner, to: id)
        }
        for id in edit.added where !deleted.contains(id) && !lost.contains(id) {
            try transaction.addLink(entity, record, from: owner, to: replaced[id] ?? id)
        }
        guard relationship.isOrdered, let order = edit.order else { return }
        let present = try transaction.relatedIDs(entity, record, of: owner)
        let isPresent = Set(present)
        let wanted = order.map { replaced[$0] ?? $0 }
        let isWanted = Set(wanted)
        let list =
            wanted.filter { isPresent.contains($0) } + present.filter { !isWanted.contains($0) }
        if list != present { try transaction.setOrder(entity, record, of: owner, list) }
    }

    // MARK: Values

    private func column(
        _ model: EntityModel,
        _ slot: Int,
        _ value: StoredValue
    ) -> ColumnValue? {
        let column = model.columns[slot]
        guard column != EntityModel.noColumn else { return nil }
        if case .reference(let id) = value, let other = replaced[id] {
            return ColumnValue(column, .reference(other))
        }
        return ColumnValue(column, value)
    }

    private func insertValues(_ object: any ManagedObject) -> [ColumnValue] {
        editedValues(object, without: [])
    }

    private func editedValues(
        _ object: any ManagedObject,
        without dropped: Set<Int>
    ) -> [ColumnValue] {
        guard let edits = object.storage.edits else { return [] }
        let model = object.storage.model
        var values: [ColumnValue] = []
        values.reserveCapacity(edits.values.count)
        for (slot, value) in edits.values.enumerated() where !dropped.contains(slot) {
            guard let value, let column = column(model, slot, value) else { continue }
            values.append(column)
        }
        return values
    }

    /// Attributes that the app set on a new object.
    private func givenValues(_ object: any ManagedObject) -> [ColumnValue] {
        guard let edits = object.storage.edits else { return [] }
        let model = object.storage.model
        return edits.values.enumerated().compactMap { slot, value in
            guard let value, edits.isAssigned(slot), model.properties[slot].attribute != nil else {
                return nil
            }
            return column(model, slot, value)
        }
    }

    private func wholeValues(_ object: any ManagedObject) throws -> [ColumnValue] {
        let model = object.storage.model
        return try model.properties.indices.compactMap { slot in
            guard model.properties[slot].column != nil else { return nil }
            if let edited = object.storage.edits?.values[slot] {
                return column(model, slot, edited)
            }
            return column(model, slot, try context.storedValue(of: object, slot: slot))
        }
    }
}

extension EntityModel {
    /// Whether some constraint replaces new objects instead of failing.
    var replacesDuplicates: Bool {
        record.indexes.contains { $0.uniqueness == .upsert || $0.uniqueness == .ignore }
    }
}
