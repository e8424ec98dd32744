// What the batch operations share: commits, checks, inverses.
//
// Invariants
// - Works with the writer lock held on the newest state, so what it compares cannot change under
//   it.
// - `result` grows only with commits that stand.

import VarveBase
import VarveRecords

/// Runs one batch operation.
final class BatchWriter<Entity: ManagedObject> {
    let context: ManagedObjectContext
    let container: PersistentContainer
    let model: EntityModel
    let rowsPerCommit: Int
    private(set) var result = BatchResult()
    /// What the commit under way did.
    var pending = BatchResult()
    /// The clock of the operation; nil where nobody wants to hear of it.
    private var timer: BatchTimer?
    /// Blobs that the rows of the commit under way name.
    private var blobs: [Blob] = []
    /// False: whoever writes rows with it keeps them.
    var keepsBlobs = true
    /// Whether relationships are counted at the end of a commit. False: whoever writes rows with it
    /// has no such end; a stage of a migration leaves counts to the saves that come.
    lazy var judgesCounts = container.schema.hasCounts
    /// Whose counts the commit under way may have changed.
    var counted = CountedOwners()
    private var freeID = ObjectID(0)
    private var freeIDs = 0
    private var idsTaken = 64
    /// Slots of to-one relationships.
    private let toOneSlots: [Int]
    private let replacesDuplicates: Bool
    private let conflicts: BatchConflictPolicy<Entity>.Kind
    /// The constraint by which rows take an existing object's place.
    private let decisive: RecordIndex?
    /// Whether rows are shown to the entity's own `validate`; found out with the first row.
    private var validates = true

    init(
        _ context: ManagedObjectContext,
        _ rowsPerCommit: Int?,
        _ conflicts: BatchConflictPolicy<Entity> = .asDeclared
    ) throws(StoreError) {
        try context.checkWritable()
        let model = try context.container.model(of: Entity.self)
        if let rowsPerCommit, rowsPerCommit < 1 {
            throw StoreError(
                .invalidRequest,
                "a commit of a batch must have at least one row",
                place: .init(entity: model.name)
            )
        }
        self.context = context
        self.container = context.container
        self.model = model
        self.rowsPerCommit = rowsPerCommit ?? Int.max
        toOneSlots = model.relationshipSlots.filter {
            model.properties[$0].relationship?.isToMany == false
        }
        self.conflicts = conflicts.kind
        switch conflicts.kind {
        case .asDeclared:
            replacesDuplicates = model.replacesDuplicates
            decisive = nil
        case .error: (replacesDuplicates, decisive) = (false, nil)
        case .ignore: (replacesDuplicates, decisive) = (true, nil)
        case .upsert(let names):
            replacesDuplicates = false
            guard let index = model.constraint(over: names) else {
                throw model.noConstraint(over: names)
            }
            decisive = index
        }
    }

    // MARK: The operation

    /// Runs an operation, which commits what it likes, and tells of it.
    func traced(_ kind: BatchTrace.Kind, _ body: () throws -> Void) throws -> BatchResult {
        timer = BatchTimer(context, kind, model)
        do { try body() } catch {
            timer?.end(result, error)
            throw error
        }
        timer?.end(result)
        return result
    }

    /// The same for one that awaits what it writes.
    nonisolated(nonsending) func tracedAsync(
        _ kind: BatchTrace.Kind,
        _ body: () async throws -> Void
    ) async throws -> BatchResult {
        timer = BatchTimer(context, kind, model)
        do { try await body() } catch {
            timer?.end(result, error)
            throw error
        }
        timer?.end(result)
        return result
    }

    /// Makes what `body` changes one commit. Afterwards the context reads it.
    func commit(_ body: (RecordTransaction) throws -> Void) throws {
        pending = BatchResult()
        counted = CountedOwners()
        defer { blobs = [] }
        let commit: CommitNumber?
        timer?.waits()
        do {
            (_, commit) = try container.store.write(author: context.author) { transaction in
                timer?.beginsToWrite()
                try body(transaction)
                try counted.check(container, transaction)
            }
        } catch {
            timer?.beginsToWrite()
            let error = StoreError.translatingAny(error, in: container)
            guard result.commit != nil, let failure = error as? StoreError else { throw error }
            throw failure.afterCommit
        }
        result.skipped += pending.skipped
        if let commit {
            result.inserted += pending.inserted
            result.updated += pending.updated
            result.deleted += pending.deleted
            result.commit = commit
            timer?.hasCommitted()
        }
        // Nothing changed because others did it all: that is read, too.
        guard context.snapshot != nil else { return }
        do throws(StoreError) {
            context.move(to: try context.newestSnapshot(), except: [])
            context.moveLive()
        } catch {
            throw result.commit == nil ? error : error.afterCommit
        }
    }

    /// An ID for the next row; taken in blocks that grow.
    func nextID() -> ObjectID {
        if freeIDs == 0 {
            freeID = container.store.allocateObjectIDs(idsTaken)
            freeIDs = idsTaken
            idsTaken = min(2 * idsTaken, 1_024)
        }
        defer {
            freeID = ObjectID(freeID.rawValue + 1)
            freeIDs -= 1
        }
        return freeID
    }

    // MARK: Rows

    /// Checks and adds a new row.
    func insert(
        _ row: inout BatchRow<Entity>,
        _ transaction: RecordTransaction
    ) throws {
        if let foreign = row.foreign { throw foreignID(foreign) }
        if let unstorable = row.unstorable { throw unstorable }
        if let decisive, let existing = try existing(row, decisive, transaction) {
            row.object = existing
            row.old = try transaction.row(model.record.id, existing)
            return try update(&row, transaction)
        }
        if keepsBlobs, !row.blobs.isEmpty { blobs += row.blobs }
        let given = replacesDuplicates ? row.record.columns : []
        row.fillDefaults()
        try row.derive()
        if validates || !model.rules.isEmpty { try validate(&row, isNew: true) }
        if replacesDuplicates, try replace(&row, given, transaction) { return }
        if judgesCounts { try countOwners(of: &row, transaction) }
        if !toOneSlots.isEmpty { try relate(&row, transaction) }
        if judgesCounts { counted.add(row.object, model) }
        try transaction.insert(&row.record, row.object)
        if !row.links.isEmpty { try link(row, isNew: true, transaction) }
        pending.inserted += 1
    }

    /// Checks and writes the change of a row.
    func update(
        _ row: inout BatchRow<Entity>,
        _ transaction: RecordTransaction
    ) throws {
        if let foreign = row.foreign { throw foreignID(foreign) }
        if let unstorable = row.unstorable { throw unstorable }
        guard let old = row.old else { return }
        try row.derive()
        row.record.unsetUnchanged(from: old)
        let isLinked = row.links.isEmpty ? false : try link(row, isNew: false, transaction)
        if row.record.isEmpty {
            if isLinked { pending.updated += 1 } else { pending.skipped += 1 }
            return
        }
        if keepsBlobs, !row.blobs.isEmpty { blobs += row.blobs }
        if validates || !model.rules.isEmpty { try validate(&row, isNew: false) }
        if judgesCounts { try countOwners(of: &row, transaction) }
        if !toOneSlots.isEmpty { try relate(&row, transaction) }
        try transaction.update(&row.record, row.object)
        pending.updated += 1
    }

    private func foreignID(_ id: ManagedObjectID) -> StoreError {
        StoreError(
            .foreignID,
            "the ID belongs to another store",
            place: .init(store: container.place, entity: model.name, object: id)
        )
    }

    // MARK: Duplicates

    /// The object that has a row's values of a constraint.
    private func existing(
        _ row: borrowing BatchRow<Entity>,
        _ index: RecordIndex,
        _ transaction: RecordTransaction
    ) throws -> ObjectID? {
        var values: [ColumnValue] = []
        for term in index.terms {
            guard let slot = model.slotsByColumn[term.column] else { return nil }
            values.append(ColumnValue(term.column, row.stored(slot) ?? .null))
        }
        return try transaction.object(model, index, values)
    }

    /// Whether an existing object stands in the place of a new row.
    private func replace(
        _ row: inout BatchRow<Entity>,
        _ given: [ColumnID],
        _ transaction: RecordTransaction
    ) throws -> Bool {
        let values = try row.record.columns.compactMap { column in
            try row.record.value(column).map { ColumnValue(column, $0) }
        }
        let violations = try transaction.uniqueConflicts(model.record.id, values: values)
        if case .ignore = conflicts {
            if !violations.isEmpty { pending.skipped += 1 }
            return !violations.isEmpty
        }
        guard let violation = violations.first(where: { $0.policy != .error }),
            let existing = violation.objects.first
        else { return false }
        if violation.policy == .ignore {
            pending.skipped += 1
            return true
        }
        let isGiven = Set(given)
        let changes = values.filter { value in
            guard isGiven.contains(value.column), let slot = model.slotsByColumn[value.column]
            else { return false }
            return model.properties[slot].attribute != nil
        }
        let current = try transaction.row(model.record.id, existing)
        if let current {
            let isSame = try changes.allSatisfy {
                try transaction.value(of: current, $0.column).isSame(as: $0.value)
            }
            if isSame {
                pending.skipped += 1
                return true
            }
        }
        let fields = try model.withFields(changes, over: current, transaction)
        let whole = try model.withDerived(fields, over: current, transaction)
        try transaction.update(model.record.id, existing, whole)
        pending.updated += 1
        return true
    }

    // MARK: Relationships

    /// Checks where to-one relationships that were set lead to, and keeps one-to-one inverses
    /// equal.
    private func relate(
        _ row: inout BatchRow<Entity>,
        _ transaction: RecordTransaction
    ) throws {
        let id = row.object
        for slot in toOneSlots {
            let column = model.columns[slot]
            guard let value = try row.record.value(column),
                let relationship = model.properties[slot].relationship
            else { continue }
            var target: ObjectID?
            if case .reference(let object) = value {
                target = object
                let isThere = try transaction.version(relationship.target, object) != nil
                guard isThere || object == id && relationship.target == model.record.id else {
                    throw RecordError.objectNotFound(
                        entity: container.schema.entity(relationship.target)?.name ?? "",
                        object: object
                    )
                }
            }
            guard let inverse = relationship.inverseSlot,
                let far = container.schema.entity(relationship.target)
            else { continue }
            if relationship.inverseIsToMany {
                let list = relationship.inverseIsOrdered ? far.properties[inverse] : nil
                guard let list = list?.relationship?.record else { continue }
                let old = try row.old?.reference(column)
                try place(id, in: (far.record, list), old, target, transaction)
                continue
            }
            try transaction.relate(
                OneToOne(near: model.record.id, column, far: far.record.id, far.columns[inverse]),
                id,
                to: target,
                &pending.updated
            )
        }
    }

    /// Takes an object out of the ordered list that it was in, to the end of another one.
    private func place(
        _ id: ObjectID,
        in list: (entity: RecordEntity, relationship: RecordRelationship),
        _ old: ObjectID?,
        _ new: ObjectID?,
        _ transaction: RecordTransaction
    ) throws {
        if old == new || container.has(.batchesForgetOrderedLists) { return }
        if let old {
            try transaction.removeLink(list.entity, list.relationship, from: old, to: id)
        }
        if let new {
            try transaction.addLink(list.entity, list.relationship, from: new, to: id)
        }
    }

    /// Notes whose counts the to-one relationships change that were set.
    private func countOwners(
        of row: inout BatchRow<Entity>,
        _ transaction: RecordTransaction
    ) throws {
        for slot in toOneSlots {
            let column = model.columns[slot]
            guard let value = try row.record.value(column),
                let relationship = model.properties[slot].relationship
            else { continue }
            counted.add(row.object, model, slot)
            guard let inverse = relationship.inverseSlot,
                let far = container.schema.entity(relationship.target)
            else { continue }
            if let old = try row.old?.reference(column) { counted.add(old, far, inverse) }
            guard case .reference(let target) = value else { continue }
            counted.add(target, far, inverse)
            // The earlier partner of a one-to-one is free.
            if !relationship.inverseIsToMany {
                try countOwner(of: target, far, inverse, transaction)
            }
        }
    }

    /// Notes the object that a to-one relationship of a row leads to.
    private func countOwner(
        of object: ObjectID,
        _ far: EntityModel,
        _ slot: Int,
        _ transaction: RecordTransaction
    ) throws {
        guard let relationship = far.properties[slot].relationship, !relationship.isToMany,
            let back = relationship.inverseSlot,
            let owner = container.schema.entity(relationship.target),
            let id = try transaction.row(far.record.id, object)?.reference(far.columns[slot])
        else { return }
        counted.add(id, owner, back)
    }

    /// Notes both ends of links that come or go.
    private func countEnds(_ id: ObjectID, _ slot: Int, _ others: Set<ObjectID>) {
        counted.add(id, model, slot)
        guard let relationship = model.properties[slot].relationship,
            let inverse = relationship.inverseSlot,
            let far = container.schema.entity(relationship.target)
        else { return }
        for object in others { counted.add(object, far, inverse) }
    }

    /// Makes the members of to-many relationships those that were set.
    /// - Returns: whether that changed anything.
    @discardableResult
    private func link(
        _ row: borrowing BatchRow<Entity>,
        isNew: Bool,
        _ transaction: RecordTransaction
    ) throws -> Bool {
        var isChanged = false
        for (slot, wanted) in row.links.sorted(by: { $0.key < $1.key }) {
            guard let relationship = model.properties[slot].relationship else { continue }
            let (entity, record) = (model.record, relationship.record)
            let before =
                isNew ? [] : try transaction.relatedIDs(entity, record, of: row.object)
            if before == wanted { continue }
            let known = Set(before)
            for object in wanted where !known.contains(object) {
                if try transaction.version(relationship.target, object) != nil { continue }
                throw RecordError.objectNotFound(
                    entity: container.schema.entity(relationship.target)?.name ?? "",
                    object: object
                )
            }
            let stays = Set(wanted)
            if !relationship.isOrdered, known == stays { continue }
            isChanged = true
            if judgesCounts { countEnds(row.object, slot, known.symmetricDifference(stays)) }
            if relationship.isOrdered {
                try transaction.setOrder(entity, record, of: row.object, wanted)
                continue
            }
            for object in before where !stays.contains(object) {
                try transaction.removeLink(entity, record, from: row.object, to: object)
            }
            for object in wanted where !known.contains(object) {
                try transaction.addLink(entity, record, from: row.object, to: object)
            }
        }
        return isChanged
    }

    // MARK: Validation

    /// Holds a row against the attributes' rules and the entity's own `validate`.
    private func validate(_ row: inout BatchRow<Entity>, isNew: Bool) throws {
        var report = ValidationReport(entity: model.name, object: row.id.objectID)
        try report.check(model) { try row.record.value(model.columns[$0]) }
        if validates { try show(&row, isNew: isNew, &report) }
        guard let first = report.failures.first else { return }
        throw StoreError(
            .invalid,
            first.message,
            place: first.place,
            details: report.failures,
            suggestion: "The commit that the row belongs to was not written. Give it values that "
                + "pass, and do the batch again."
        )
    }

    /// Shows a row to the entity's own `validate`, as an object that no context knows.
    private func show(
        _ row: inout BatchRow<Entity>,
        isNew: Bool,
        _ report: inout ValidationReport
    ) throws {
        let edits = ObjectEdits(count: model.properties.count)
        for slot in model.properties.indices where model.properties[slot].column != nil {
            edits.values[slot] = try row.record.value(model.columns[slot])
        }
        let object = Entity(
            storage: ObjectStorage(
                core: context.core,
                model: model,
                object: row.object,
                state: isNew ? .inserted : []
            )
        )
        object.storage.row = row.old
        object.storage.edits = edits
        // As in a save: it may look, and edit nothing.
        let (phase, refused) = (context.phase, context.refusals.list.count)
        context.phase = .writing
        object.validate(&report)
        context.phase = phase
        // It was never counted, so its end must not be either.
        object.storage.row = nil
        object.storage.edits = nil
        object.storage.related = nil
        object.storage.state = .invalid
        validates = !report.isByDefault
        if context.refusals.list.count > refused {
            let error = context.refusals.list[refused].edit.error
            context.refusals.cut(to: refused)
            throw error
        }
    }
}
