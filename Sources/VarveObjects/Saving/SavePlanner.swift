// What a save writes: the journal applied to the newest commit, conflicts settled by policy.
//
// Invariants
// - Works with the writer lock held, so what it compares cannot change under it.
// - Writes nothing. What a failed save leaves behind is only this planner.
// - A row conflicts when the save would change or delete it and a commit after the context's own
//   changed it; an object that the app edited, also when it is gone.
// - Where nobody saved since the context's commit, what the context shows is what is written.

import VarveBase
import VarveRecords

/// What one save is about to write.
struct SavePlan {
    /// Nil: what the context shows.
    let graph: TransactionGraph?
    let rulings: Rulings
    /// Objects that others deleted, and that come back though the app edited only relationships of
    /// theirs: they are not among the changed ones.
    var linked: [any ManagedObject] = []
}

struct SavePlanner {
    let context: ManagedObjectContext
    let policy: MergePolicy
    private(set) var changes: ChangeSet
    let transaction: RecordTransaction
    private var linked: [any ManagedObject] = []
    private var container: PersistentContainer { context.container }
    private var rulings = Rulings()
    /// Objects of which the app set a relationship.
    private lazy var intentsOfObjects: [ObjectID: [Intent]] = {
        var found: [ObjectID: [Intent]] = [:]
        for intent in context.journal.intents {
            if let owner = intent.subject?.owner { found[owner, default: []].append(intent) }
        }
        return found
    }()
    /// Objects that are changed, or are known to be edited or not (`findLinked`).
    private var searched: Set<ObjectID> = []

    init(
        _ context: ManagedObjectContext,
        _ policy: MergePolicy,
        _ changes: ChangeSet,
        _ transaction: RecordTransaction
    ) {
        self.context = context
        self.policy = policy
        self.changes = changes
        self.transaction = transaction
    }

    /// The plan.
    /// - Throws: `conflict`, `deleteDenied`, what a custom policy throws.
    mutating func plan() throws -> SavePlan {
        if standsOnNewest {
            let isSettled = try !findDuplicates(nil)
            if isSettled { return SavePlan(graph: nil, rulings: rulings) }
        }
        try findReturned()
        while true {
            let graph = try evaluate()
            // What is decided changes what the journal means; so once more, until nothing is new.
            if try settleConflicts(graph) { continue }
            if try findDuplicates(graph) { continue }
            try checkLost(graph)
            // What is new was in no commit: its rules forbid nothing.
            try context.check(
                try graph.denials(of: graph.doomed.filter { !graph.isUnsaved($0.id) })
            )
            try context.checkCounts(graph)
            try context.checkPhantoms(changes, graph)
            // Those that stay gone are lost as the context moves on, like any object without edits.
            linked.removeAll { rulings.lost.contains($0.storage.object) }
            return SavePlan(graph: graph, rulings: rulings, linked: linked)
        }
    }

    /// Whether nobody saved since the context's commit, and no edit waits for a decision.
    private var standsOnNewest: Bool {
        if container.has(.rulesOnTheSnapshot) { return true }
        guard context.lostTargets.isEmpty, changes.phantoms.isEmpty,
            !changes.updated.contains(where: { $0.storage.state.contains(.gone) })
        else { return false }
        guard let commit = context.commit else { return changes.onlyInserts }
        return transaction.number.rawValue == commit.rawValue + 1
    }

    /// Objects that this context brings back, and others brought back before it.
    private mutating func findReturned() throws {
        for object in changes.inserted where object.storage.state.contains(.returned) {
            let (model, id) = (object.storage.model, object.storage.object)
            let row = try container.translating { () throws(RecordError) in
                try transaction.row(model.record.id, id)
            }
            guard let row else { continue }
            rulings.met.insert(id)
            switch policy.kind {
            case .error, .custom:
                let detail = StoreError.Detail(
                    code: .conflict,
                    message: "\(model.name) was brought back by another context as well",
                    place: StoreError.Place(
                        entity: model.name,
                        object: object.objectID,
                        commit: row.version
                    ),
                    objects: [object.objectID]
                )
                throw StoreError.conflict([detail])
            case .objectWinsByProperty, .overwrite: break
            case .storeWinsByProperty, .rollback: giveUp(id, isGone: false)
            }
        }
    }

    // MARK: The journal

    private func evaluate() throws -> TransactionGraph {
        var added: [ObjectID: EntityModel] = [:]
        var returning: Set<ObjectID> = []
        for object in changes.inserted where rulings.replaced[object.storage.object] == nil {
            let id = object.storage.object
            // Others brought it back as well: it has a row.
            if rulings.met.contains(id) { continue }
            added[id] = object.storage.model
            if object.storage.state.contains(.returned) { returning.insert(id) }
        }
        let graph = TransactionGraph(
            transaction,
            container,
            added: added,
            returning: returning,
            deletedHere: Set(context.alsoDeleted.keys).union(context.doomed.keys)
                .union(context.endedWithOwners)
        )
        for object in changes.updated {
            let id = object.storage.object
            if rulings.revived.contains(id) {
                graph.revive(id, object.storage.model)
            }
        }
        for object in changes.updated where rulings.whole.contains(object.storage.object) {
            try makeWhole(object, graph)
        }
        for intent in context.journal.intents {
            if let ruled = rulings.ruled(intent) { try graph.apply(ruled) }
        }
        return graph
    }

    /// Relationships of an object that is written in full: those that the context shows, as far as
    /// their other ends exist and are free.
    private func makeWhole(_ object: any ManagedObject, _ graph: TransactionGraph) throws {
        let (model, id) = (object.storage.model, object.storage.object)
        guard rulings.revived.contains(id) else {
            for slot in model.relationshipSlots
            where model.properties[slot].relationship?.isToMany == false {
                let shown = context.value(of: object, slot: slot)?.object
                guard let far = context.targetModel(model, slot) else { continue }
                if let shown, try !graph.isAlive(shown, far) { continue }
                try graph.apply(.relate(model, id, slot: slot, to: shown))
            }
            return
        }
        if container.has(.revivedWithoutLinks) { return }
        for intent in try context.intents(thatBringBack: object, into: graph) {
            try graph.apply(intent)
        }
    }

    /// An edit that leads to an object which others deleted: an error, or it leads nowhere.
    private func checkLost(_ graph: TransactionGraph) throws(StoreError) {
        guard case .error = policy.kind, !graph.lost.isEmpty else { return }
        let details = graph.lost.map { lost in
            let name = lost.model.properties[lost.slot].name
            let owner = context.identity(lost.model, lost.owner)
            guard let target = lost.target else {
                return StoreError.Detail(
                    code: .conflict,
                    message: "\(lost.model.name), whose \(name) was edited, was deleted by another "
                        + "context",
                    place: .init(entity: lost.model.name, attribute: name, object: owner),
                    objects: [owner]
                )
            }
            let far = context.targetModel(lost.model, lost.slot) ?? lost.model
            return StoreError.Detail(
                code: .conflict,
                message: "\(lost.model.name).\(name) is to lead to a \(far.name) that another "
                    + "context deleted",
                place: .init(entity: lost.model.name, attribute: name, object: owner),
                objects: [owner, context.identity(far, target)]
            )
        }
        throw StoreError.conflict(details)
    }

    // MARK: Conflicts

    /// Judges what was not judged before; true: something was decided.
    private mutating func settleConflicts(_ graph: TransactionGraph) throws -> Bool {
        var details: [StoreError.Detail] = []
        let known = rulings.decided.count
        try findLinked(graph)
        for object in changes.updated {
            try judge(object, isDeletion: false, graph, &details)
        }
        for object in changes.deleted {
            let isDeletion = try !graph.isOutOfReach(object)
            try judge(object, isDeletion: isDeletion, graph, &details)
        }
        if case .error = policy.kind {
            for (model, id) in graph.rowsInReach { try judge(id, model, graph, &details) }
        }
        for (id, model) in context.relied.sorted(by: { $0.key < $1.key }) {
            try judgeRelied(id, model, graph, &details)
        }
        if !details.isEmpty { throw StoreError.conflict(details) }
        return rulings.decided.count != known
    }

    /// Edits of relationships that met a deletion of their object: it is judged as one with edited
    /// attributes. Where nothing has its values any more they lead nowhere.
    private mutating func findLinked(_ graph: TransactionGraph) throws(StoreError) {
        // Without a policy the edits themselves are told (`checkLost`).
        if case .error = policy.kind { return }
        if graph.lost.isEmpty || container.has(.goneForgetsLinks) { return }
        if searched.isEmpty {
            for object in [changes.inserted, changes.updated, changes.deleted].joined() {
                searched.insert(object.storage.object)
            }
        }
        for lost in graph.lost {
            let id = lost.target ?? lost.owner
            guard let intents = intentsOfObjects[id], searched.insert(id).inserted,
                let model = lost.target == nil
                    ? lost.model : context.targetModel(lost.model, lost.slot),
                let object = try context.editedAndGone(id, model),
                try context.isLinkedAnew(object, intents)
            else { continue }
            linked.append(object)
            changes.updated.append(object)
        }
    }

    /// A row that the context's edits reach without having been edited itself.
    private mutating func judge(
        _ id: ObjectID,
        _ model: EntityModel,
        _ graph: TransactionGraph,
        _ details: inout [StoreError.Detail]
    ) throws {
        // What stands in the place of a new object is changed as the constraint says.
        guard context.changed[id] == nil, !rulings.replaced.values.contains(id),
            let commit = context.commit,
            let version = try graph.row(id, model)?.version, version > commit
        else { return }
        details.append(conflictDetail(model, context.identity(model, id), version, nil))
    }

    /// An object without edits that the app relies on (`detectConflicts`). There is nothing of it
    /// to write, so only policies that can make the save fail are asked.
    private mutating func judgeRelied(
        _ id: ObjectID,
        _ model: EntityModel,
        _ graph: TransactionGraph,
        _ details: inout [StoreError.Detail]
    ) throws {
        guard context.changed[id] == nil, !rulings.decided.contains(id),
            let commit = context.commit
        else { return }
        let version = try graph.row(id, model)?.version
        if let version, version <= commit { return }
        var conflict: SaveConflict?
        switch policy.kind {
        case .error:
            // Edits that reach its row have told it.
            if details.contains(where: { $0.objects.first?.object == id }) { return }
        case .custom(let decide):
            rulings.decided.insert(id)
            let asked = try context.describe(context.object(id, model), false, graph)
            guard case .fail = try decide(asked) else { return }
            conflict = asked
        default: return
        }
        details.append(conflictDetail(model, context.identity(model, id), version, conflict))
    }

    private mutating func judge(
        _ object: any ManagedObject,
        isDeletion: Bool,
        _ graph: TransactionGraph,
        _ details: inout [StoreError.Detail]
    ) throws {
        let (model, id) = (object.storage.model, object.storage.object)
        if rulings.decided.contains(id) { return }
        let version = try graph.row(id, model)?.version
        if let version {
            guard let commit = context.commit, version > commit else { return }
        } else if isDeletion {
            return
        } else if !isEditedItself(object) {
            // Only others' edits led to it: they lead nowhere now, which is told of them.
            rulings.lost.insert(id)
            return
        }
        let conflict = try context.describe(object, isDeletion, graph)
        rulings.decided.insert(id)
        switch try decide(conflict) {
        case .fail:
            details.append(conflictDetail(model, object.objectID, version, conflict))
        case .objectWinsByProperty:
            if version == nil { bringBack(id) }
        case .overwrite:
            if version == nil { bringBack(id) }
            if !isDeletion { rulings.whole.insert(id) }
        case .rollback:
            giveUp(id, isGone: version == nil)
        case .storeWinsByProperty:
            guard let theirs = conflict.theirs, !isDeletion else {
                giveUp(id, isGone: version == nil)
                return
            }
            rulings.droppedSlots[id] = Set(
                model.properties.indices.filter {
                    !theirs.values[$0].isSame(as: conflict.base.values[$0])
                }
            )
        }
    }

    /// Whether the app set something of this object, and not only of what its inverses lead to.
    private mutating func isEditedItself(_ object: any ManagedObject) -> Bool {
        let model = object.storage.model
        let values = object.storage.edits?.values ?? []
        let setsAttribute = values.indices.contains { slot in
            values[slot] != nil && model.properties[slot].relationship == nil
        }
        return setsAttribute || intentsOfObjects[object.storage.object] != nil
    }

    private mutating func bringBack(_ id: ObjectID) {
        rulings.revived.insert(id)
        rulings.whole.insert(id)
    }

    private mutating func giveUp(_ id: ObjectID, isGone: Bool) {
        rulings.dropped.insert(id)
        if isGone { rulings.lost.insert(id) }
    }

    private func conflictDetail(
        _ model: EntityModel,
        _ object: ManagedObjectID,
        _ version: CommitNumber?,
        _ conflict: SaveConflict?
    ) -> StoreError.Detail {
        StoreError.Detail(
            code: .conflict,
            message: version.map { "\(model.name) was changed by commit \($0.rawValue)" }
                ?? "\(model.name) was deleted by another context",
            place: StoreError.Place(entity: model.name, object: object, commit: version),
            objects: [object],
            conflict: conflict
        )
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

    // MARK: Duplicates

    /// New objects in whose place another one stands; true: there are more than before.
    private mutating func findDuplicates(_ graph: TransactionGraph?) throws -> Bool {
        guard changes.inserted.contains(where: { $0.storage.model.replacesDuplicates }) else {
            return false
        }
        var finder = DuplicateFinder(context, changes, transaction, graph, rulings)
        try finder.find()
        let isNew = finder.rulings.replaced.count != rulings.replaced.count
        if isNew || graph != nil { rulings = finder.rulings }
        return isNew
    }
}

extension StoreError {
    fileprivate static func conflict(_ details: [Detail]) -> StoreError {
        StoreError(
            .conflict,
            details.count == 1
                ? details[0].message
                : "\(details.count) edits meet what others saved since this context read it; the "
                    + "first: \(details[0].message)",
            place: details[0].place,
            details: details,
            suggestion:
                "context.advance() takes the others' values under the edits, then save again. "
                + "Where something was deleted: set the property anew, drop the edits with "
                + "refresh(_:mergeChanges: false), or save with another merge policy."
        )
    }
}

extension TransactionGraph {
    /// Whether an edited object that is shown as deleted is to be saved as edited: the newest
    /// commit has it out of reach, or a policy gave the deletion up.
    func isOutOfReach(_ object: any ManagedObject) throws(StoreError) -> Bool {
        let (model, id) = (object.storage.model, object.storage.object)
        guard let edits = object.storage.edits, !isDoomed(id), try row(id, model) != nil else {
            return false
        }
        return edits.values.indices.contains { slot in
            edits.values[slot] != nil && model.properties[slot].relationship == nil
        }
    }

    /// Stored rows that the save changes or deletes.
    var rowsInReach: [(model: EntityModel, id: ObjectID)] {
        doomed
            + touched.sorted { $0.key < $1.key }.filter { !isDoomed($0.key) }.map {
                (model: $0.value, id: $0.key)
            }
    }
}
