// Checks before a save: required values, the attributes' rules, and what objects say themselves.

import VarveBase
import VarveRecords

/// Collects what is wrong with one object. Given to `validate(_:)`.
public struct ValidationReport {
    let entity: String
    let object: ManagedObjectID
    private(set) var failures: [StoreError.Detail] = []
    /// Whether the entity has no check of its own.
    var isByDefault = false

    init(entity: String, object: ManagedObjectID) {
        self.entity = entity
        self.object = object
    }

    /// Notes that a property, or the object as a whole, must not be saved like this.
    /// - Parameters:
    ///   - property: its name; empty for the object as a whole.
    ///   - reason: what is wrong, without the value.
    public mutating func fail(_ property: String, _ reason: String) {
        failures.append(
            StoreError.Detail(
                code: .invalid,
                message: property.isEmpty ? reason : "\(property) \(reason)",
                place: StoreError.Place(
                    entity: entity,
                    attribute: property.isEmpty ? nil : property,
                    object: object
                ),
                objects: [object]
            )
        )
    }

    /// Holds values against the rules of their attributes.
    /// - Parameter value: what a slot is about to be saved with; nil: it is not.
    mutating func check(
        _ model: EntityModel,
        _ value: (Int) throws -> StoredValue?
    ) rethrows {
        for (slot, rules) in model.rules {
            guard let value = try value(slot) else { continue }
            for reason in rules.failures(value) { fail(model.properties[slot].name, reason) }
        }
    }

    mutating func miss(_ property: String) {
        failures.append(
            StoreError.Detail(
                code: .missingValue,
                message: "\(property) must have a value",
                place: StoreError.Place(entity: entity, attribute: property, object: object),
                objects: [object]
            )
        )
    }
}

extension ManagedObjectContext {
    /// All failures of all objects, in one error.
    /// - Parameters:
    ///   - changes: the edits.
    ///   - judgesCounts: whether relationships are counted: a branch leaves that to its parent,
    ///     whose edits are half of it.
    ///   - isIncluded: which deletions are looked at.
    func validate(
        _ changes: inout ChangeSet,
        judgesCounts: Bool = true,
        deleting isIncluded: (ObjectID) -> Bool = { _ in true }
    ) throws(StoreError) {
        let phantoms = changes.phantoms
        let denials = try denials(
            of: doomed.filter { isIncluded($0.key) && !phantoms.contains($0.key) }
                .sorted { $0.key < $1.key }.map { ($0.value, $0.key) }
        )
        var details = self.details(of: denials)
        for object in [changes.inserted, changes.updated].joined() {
            let model = object.storage.model
            var report = ValidationReport(entity: model.name, object: object.objectID)
            if let edits = object.storage.edits {
                for slot in model.requiredSlots where edits.values[slot] == .null {
                    report.miss(model.properties[slot].name)
                }
            }
            report.check(model) { object.storage.edits?.values[$0] }
            object.validate(&report)
            if phantoms.contains(object.storage.object) {
                changes.phantomFailures[object.storage.object] = report.failures
            } else {
                details += report.failures
            }
        }
        if judgesCounts { details += try countFailures(changes) }
        details += deletionFailures(changes, deleting: isIncluded)
        try checkRefusals()
        try throwFailures(details)
    }

    /// What deleted objects say against their deletion.
    private func deletionFailures(
        _ changes: ChangeSet,
        deleting isIncluded: (ObjectID) -> Bool
    ) -> [StoreError.Detail] {
        changes.deleted.flatMap { object -> [StoreError.Detail] in
            guard isIncluded(object.storage.object) else { return [] }
            let name = object.storage.model.name
            var report = ValidationReport(entity: name, object: object.objectID)
            object.validateForDeletion(&report)
            return report.failures
        }
    }

    /// Throws when a rule forbids a deletion.
    func check(_ denials: [Denial]) throws(StoreError) {
        try throwFailures(details(of: denials))
    }

    /// Throws what checks say against new objects that are shown as deleted and are saved after
    /// all: no code of the app runs under the writer lock.
    func checkPhantoms(_ changes: ChangeSet, _ graph: TransactionGraph) throws(StoreError) {
        let alive = changes.phantoms.filter { !graph.isDoomed($0) }.sorted()
        try throwFailures(alive.flatMap { changes.phantomFailures[$0] ?? [] })
    }

    /// Throws when what a save would write has too few or too many objects in a relationship.
    func checkCounts(_ graph: TransactionGraph) throws(StoreError) {
        try throwFailures(try graph.countFailures(identity))
    }

    private func throwFailures(_ details: [StoreError.Detail]) throws(StoreError) {
        guard let first = details.first else { return }
        let code = Set(details.map(\.code)).count == 1 ? first.code : .invalid
        throw StoreError(
            code,
            details.count == 1
                ? first.message : "\(details.count) checks failed; the first: \(first.message)",
            place: first.place,
            details: details,
            suggestion: "Nothing was saved; the edits stand. "
                + (code == .deleteDenied
                    ? "Delete what the relationship leads to as well, or lead it elsewhere, and "
                        + "save again; rollback() takes back all edits."
                    : "Correct the values that the details name, and save again.")
        )
    }
}
