// How many objects a relationship must lead to, judged when it is saved.
//
// Invariants
// - A count is a rule of the app's schema, as those for values are: the store does not know it, and
//   it changes no stored schema. What is in the store already is judged when it is touched next.
// - Whatever can change a count names its owner here: the owner is new, its list or reference was
//   edited from either side, or a member is deleted. Nobody else is looked at.
// - Judged on the graph that is written: edits that are right alone and wrong together fail.

import VarveBase
import VarveRecords

/// A minimum and maximum.
struct CountRule: Sendable {
    private let range: any RangeExpression<Int> & Sendable
    /// "1 to 5 objects".
    private let text: String

    init(_ range: any RangeExpression<Int> & Sendable) {
        self.range = range
        text = Self.text(of: range)
    }

    private static func text(of range: some RangeExpression<Int>) -> String {
        describeCount(range, "object")
    }

    private func contains(_ count: Int) -> Bool { range.contains(count) }

    /// Why a relationship with so many members must not be saved; nil: it may.
    func failure(_ count: Int) -> String? {
        contains(count) ? nil : "must lead to \(text), not to \(count)"
    }

    /// What is wrong with the rule itself, as the end of a sentence; nil: nothing.
    func problem(isToMany: Bool) -> String? {
        if !isToMany {
            if contains(1), !contains(0), !contains(2) { return nil }
            return "has a count of \(text), but leads to one object or to none: write count: "
                + "1...1 where it must lead to one, and no count where it need not"
        }
        let lower =
            switch range {
            case let range as ClosedRange<Int>: range.lowerBound
            case let range as Range<Int>: range.lowerBound
            case let range as PartialRangeFrom<Int>: range.lowerBound
            default: 0
            }
        if lower < 0 {
            return "has a count of \(text), but no relationship leads to fewer than 0 objects: "
                + "write a count that begins at 0 or more"
        }
        let holdsSome =
            switch range {
            case let range as ClosedRange<Int>: range.upperBound > 0
            case let range as Range<Int>: !range.isEmpty && range.upperBound > 1
            case let range as PartialRangeThrough<Int>: range.upperBound > 0
            case let range as PartialRangeUpTo<Int>: range.upperBound > 1
            default: true
            }
        if holdsSome { return nil }
        return "has a count of \(text), so that no object could ever be in it: write a count of 1 "
            + "and more, such as 1...5"
    }
}

/// Owners whose counts may have changed.
struct CountedOwners {
    private var owners: [ToManyKey: EntityModel] = [:]

    var isEmpty: Bool { owners.isEmpty }

    /// An object of which every relationship may have changed.
    mutating func add(_ id: ObjectID, _ model: EntityModel) {
        for slot in model.countedSlots { owners[ToManyKey(owner: id, slot: slot)] = model }
    }

    /// One relationship of an object.
    mutating func add(_ id: ObjectID, _ model: EntityModel, _ slot: Int) {
        if model.properties[slot].relationship?.count == nil { return }
        owners[ToManyKey(owner: id, slot: slot)] = model
    }

    /// The failures, in the order of the owners.
    /// - Parameter count: how many objects a relationship leads to; nil: its owner is gone.
    func failures(
        _ identity: (EntityModel, ObjectID) -> ManagedObjectID,
        _ count: (ObjectID, EntityModel, Int) throws(StoreError) -> Int?
    ) throws(StoreError) -> [StoreError.Detail] {
        var details: [StoreError.Detail] = []
        let sorted = owners.sorted { ($0.key.owner, $0.key.slot) < ($1.key.owner, $1.key.slot) }
        for (key, model) in sorted {
            guard let rule = model.properties[key.slot].relationship?.count,
                let count = try count(key.owner, model, key.slot),
                let reason = rule.failure(count)
            else { continue }
            var report = ValidationReport(entity: model.name, object: identity(model, key.owner))
            report.fail(model.properties[key.slot].name, reason)
            details += report.failures
        }
        return details
    }
}

extension GraphState {
    /// How many objects a relationship leads to; nil: its owner is not there.
    func counted(_ id: ObjectID, _ model: EntityModel, _ slot: Int) throws(StoreError) -> Int? {
        guard try isAlive(id, model), let relationship = model.properties[slot].relationship,
            let far = schema.entity(relationship.target)
        else { return nil }
        if relationship.isToMany { return try memberCount(id, model, slot) }
        guard let target = try reference(id, model, slot) else { return 0 }
        return try isAlive(target, far) ? 1 : 0
    }

    /// Owners whose relationship led to an object that is deleted.
    func addOwners(
        losing id: ObjectID,
        _ model: EntityModel,
        to owners: inout CountedOwners
    ) throws(StoreError) {
        if isUnsaved(id) { return }
        for (owner, slot) in schema.counting(model.record.id) {
            guard let inverse = owner.properties[slot].relationship?.inverseSlot else {
                for object in try referring(owner, slot, to: id) { owners.add(object, owner, slot) }
                continue
            }
            if model.properties[inverse].relationship?.isToMany == true {
                for object in try savedMembers(id, model, inverse) {
                    owners.add(object, owner, slot)
                }
            } else if let object = try savedReference(id, model, inverse) {
                owners.add(object, owner, slot)
            }
        }
    }
}

extension ManagedObjectContext {
    /// Relationships that the unsaved edits leave with too few or too many objects. Where others
    /// saved since the context's commit, the plan of the save counts on the newest one.
    func countFailures(_ changes: ChangeSet) throws(StoreError) -> [StoreError.Detail] {
        guard schema.hasCounts else { return [] }
        if let commit, commit < container.feed.newest { return [] }
        var owners = CountedOwners()
        for object in changes.inserted { owners.add(object.storage.object, object.storage.model) }
        for object in changes.updated {
            let model = object.storage.model
            for slot in model.countedSlots where object.storage.edits?.values[slot] != nil {
                owners.add(object.storage.object, model, slot)
            }
        }
        if doomed.isEmpty || !has(.countsForgetDeletions) {
            for edit in toManyEdits.values { owners.add(edit.owner, edit.model, edit.slot) }
            for (id, model) in doomed { try addOwners(losing: id, model, to: &owners) }
        }
        return try owners.failures(identity) { (id, model, slot) throws(StoreError) in
            try counted(id, model, slot)
        }
    }
}

extension TransactionGraph {
    /// The same of what the save is about to write, which others' saves are part of.
    func countFailures(
        _ identity: (EntityModel, ObjectID) -> ManagedObjectID
    ) throws(StoreError) -> [StoreError.Detail] {
        guard schema.hasCounts, !has(.countsOnTheSnapshot) else { return [] }
        var owners = CountedOwners()
        for (id, model) in added { owners.add(id, model) }
        for (id, model) in touched {
            for (slot, _) in changes(of: id, model) { owners.add(id, model, slot) }
        }
        if doomed.isEmpty || !has(.countsForgetDeletions) {
            for edit in lists.values { owners.add(edit.owner, edit.model, edit.slot) }
            for (model, id) in doomed { try addOwners(losing: id, model, to: &owners) }
        }
        return try owners.failures(identity) { (id, model, slot) throws(StoreError) in
            try counted(id, model, slot)
        }
    }
}

extension CountedOwners {
    /// Owners whose relationship leads to a row that a batch is about to delete.
    mutating func add(
        losing id: ObjectID,
        _ model: EntityModel,
        _ schema: SchemaModel,
        _ transaction: RecordTransaction
    ) throws(RecordError) {
        for (owner, slot) in schema.counting(model.record.id) {
            guard let relationship = owner.properties[slot].relationship else { continue }
            for object in try transaction.owners(owner.record, relationship.record, of: id) {
                add(object, owner, slot)
            }
        }
    }

    /// Throws when what a batch wrote has too few or too many. Where nothing counts it costs
    /// nothing.
    func check(
        _ container: PersistentContainer,
        _ transaction: RecordTransaction
    ) throws(StoreError) {
        if isEmpty || container.has(.batchesForgetCounts) { return }
        let details = try failures(container.identity) {
            (id, model, slot) throws(StoreError) -> Int? in
            guard let relationship = model.properties[slot].relationship else { return nil }
            return try container.translating { () throws(RecordError) -> Int? in
                guard try transaction.version(model.record.id, id) != nil else { return nil }
                if relationship.isToMany {
                    return try transaction.relatedCount(model.record, relationship.record, of: id)
                }
                // What `noAction` left leads to nothing.
                var count = 0
                for target in try transaction.relatedIDs(
                    model.record,
                    relationship.record,
                    of: id
                ) where try transaction.version(relationship.target, target) != nil {
                    count += 1
                }
                return count
            }
        }
        guard let first = details.first else { return }
        throw StoreError(
            .invalid,
            details.count == 1
                ? first.message : "\(details.count) checks failed; the first: \(first.message)",
            place: first.place,
            details: details,
            suggestion: "The commit that the rows belong to was not written. Each commit of a "
                + "batch must hold by itself: write what belongs together in one, or give "
                + "rowsPerCommit more rows."
        )
    }
}

extension PersistentContainer {
    func identity(_ model: EntityModel, _ id: ObjectID) -> ManagedObjectID {
        ManagedObjectID(store: identity, entity: model.record.id, object: id)
    }
}
