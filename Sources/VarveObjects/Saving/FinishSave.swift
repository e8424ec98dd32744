// After a commit: objects become saved ones, the context moves to the newest commit.
//
// Invariants
// - What the plan wrote decides, not what the context showed.
// - The edits end first, before anything that can fail: what is on disk is never written again.
// - `didSave` runs when everything is as it will be: the context reads the commit, the object has
//   no edits. What it edits belongs to the next save.
// - Objects that nobody but the context held are let go before rows are read again: a background
//   import reads nothing back.

import Synchronization
import VarveBase
import VarveRecords

extension ManagedObjectContext {
    func finishSave(
        _ changes: inout ChangeSet,
        _ plan: SavePlan,
        _ commit: CommitNumber?,
        _ reached: ReachedDeletions?
    ) throws(StoreError) {
        endStretches()
        endUndoStep("")
        learn(reached, plan)
        endEra()
        let lists = shownLists()
        let exchanged = references(to: plan.rulings.replaced, changes)
        var written = endEdits(of: changes, plan)
        var objects = changes.inserted + changes.updated + changes.deleted
        changes = ChangeSet()
        changed =
            has(.editsOutliveTheirDelete)
            ? changed.filter { $0.value.storage.state.contains([.gone, .updated]) } : [:]
        endedWithOwners = []
        forgetJournal()
        // An edit under way, whose observer saves, is in the commit: nothing of it may stay.
        (withdrawals, graphVersion) = (withdrawals + 1, graphVersion + 1)
        (savedBlobs, pendingBlobs) = (pendingBlobs, [:])
        refusals = Refusals()
        relied = [:]
        let own = Set(objects.map { $0.storage.object })
        // Rows that are gone still have their large values there.
        let left = snapshot
        if let left { leaving.append(left) }
        defer { (leaving, savedBlobs) = (leaving.dropLast(left == nil ? 0 : 1), [:]) }
        var waiting: [Waiting] = []
        var failure: StoreError?
        do throws(StoreError) {
            let newest = try newestSnapshot()
            // Before observers are told of anything: they may read it.
            if plan.graph != nil || newest.number != commit { endGone(of: &written, newest) }
            let saved = written.map { $0.storage.edits?.values ?? [] }
            // Edits that a policy gave up, and old rows, are there until they are dropped below.
            behindReads += 1
            defer { behindReads -= 1 }
            move(to: newest, except: own)
            // What was shown is what was written, unless others saved, or a policy or a constraint
            // put other values in its place.
            let tells = core.observes && (plan.graph != nil || newest.number != commit)
            waiting = dropOldRows(of: &written, saved, tells)
        } catch {
            failure = error
            forgetRows(of: &written)
        }
        for object in objects { object.didSave() }
        objects = []
        if let left { keepLargeValues(ofGone: own, left) }
        if let failure { throw failure.afterCommit }
        // Held by the app, or edited by `didSave`.
        waiting = waiting.filter { registered($0.id) != nil }
        // `didSave` may have moved the context on.
        if let snapshot { try takeNewRows(of: waiting, snapshot) }
        announceOthers(lists, exchanged)
    }

    /// The references of observed objects to new ones in whose place another one stands.
    private func references(
        to replaced: [ObjectID: ObjectID],
        _ changes: ChangeSet
    ) -> [(object: any ManagedObject, slot: Int)] {
        if replaced.isEmpty || !core.observes { return [] }
        var found: [(object: any ManagedObject, slot: Int)] = []
        for object in changes.inserted + changes.updated where object.storage.observation != nil {
            for (slot, value) in (object.storage.edits?.values ?? []).enumerated() {
                guard let target = value?.object, replaced[target] != nil else { continue }
                found.append((object, slot))
            }
        }
        return found
    }

    /// The large values of those whose row is gone stay readable.
    private func keepLargeValues(ofGone own: Set<ObjectID>, _ leaving: RecordSnapshot) {
        forgetKeptValues()
        for id in own {
            guard let object = registered(id), object.storage.state.contains(.gone) else {
                continue
            }
            // What others deleted, an edit behind the save that gave ours up may bring back.
            let isOurs = object.storage.state.contains(.ended)
            keepLargeValues(of: object, leaving, keepsBlobs: !isOurs)
        }
    }

    // MARK: What observers see

    private typealias ShownList = (owner: any ManagedObject, slot: Int, members: [ObjectID])

    /// The edited lists that observers may have read, as they show.
    private func shownLists() -> [ShownList] {
        guard core.observes else { return [] }
        let keys = toManyEdits.keys.sorted { ($0.owner, $0.slot) < ($1.owner, $1.slot) }
        var shown: [ShownList] = keys.compactMap { key in
            guard let owner = registered(key.owner), owner.storage.observation != nil,
                let members = try? members(of: owner, slot: key.slot)
            else { return nil }
            return (owner, key.slot, members)
        }
        // A deletion that a policy gives up: its object is in lists again that have no edit.
        for (id, model) in doomed.sorted(by: { $0.key < $1.key }) {
            for (owner, slot) in observedLists(with: id, model) {
                let isKnown = shown.contains { $0.owner === owner && $0.slot == slot }
                guard !isKnown, let members = try? members(of: owner, slot: slot) else { continue }
                shown.append((owner, slot, members))
            }
        }
        return shown
    }

    /// A policy may have given edits of lists up, or a member may have another one's place.
    private func announceOthers(
        _ lists: [ShownList],
        _ exchanged: [(object: any ManagedObject, slot: Int)]
    ) {
        for (object, slot) in exchanged where !object.storage.isDeleted {
            object.storage.observation?.announce(object, [slot], isBefore: true)
            object.storage.observation?.announce(object, [slot], isBefore: false)
        }
        for (owner, slot, members) in lists where !owner.storage.isDeleted {
            guard let now = try? self.members(of: owner, slot: slot), now != members else {
                continue
            }
            owner.storage.observation?.announce(owner, [slot], isBefore: true)
            owner.storage.observation?.announce(owner, [slot], isBefore: false)
        }
    }

    /// What an observed object showed before its save.
    private struct ShownValues {
        let row: CachedRow?
        let edits: [StoredValue?]

        /// The slots in which another row shows something else.
        func others(_ object: any ManagedObject, _ new: CachedRow) -> [Int] {
            let model = object.storage.model
            return model.properties.indices.filter { slot in
                guard let column = model.properties[slot].column,
                    object.storage.edits?.values[slot] == nil
                else { return false }
                if new.isOutside(column) { return true }
                var before = edits.indices.contains(slot) ? edits[slot] : nil
                if before == nil, let row, !row.isOutside(column) {
                    before = try? row.value(column)
                }
                guard let before, let after = try? new.value(column) else { return true }
                return !before.isSame(as: after)
            }
        }
    }

    /// What each object is from here on. Returns those whose row was written.
    private func endEdits(of changes: ChangeSet, _ plan: SavePlan) -> [any ManagedObject] {
        var written: [any ManagedObject] = []
        for object in changes.inserted {
            object.storage.state.subtract([.inserted, .returned, .deleted])
            if isEnded(object, plan) || plan.rulings.replaced[object.storage.object] != nil {
                // Its values stay readable; its row never was.
                object.storage.state.insert([.gone, .ended])
                continue
            }
            object.storage.state.insert(.settling)
            written.append(object)
        }
        for object in changes.updated {
            object.storage.state.remove(.updated)
            if isEnded(object, plan) || plan.rulings.lost.contains(object.storage.object) {
                if !isEnded(object, plan) { keepLists(of: object) }
                object.storage.edits = nil
                object.storage.state.insert(.gone)
                continue
            }
            object.storage.state.subtract([.gone, .ended])
            written.append(object)
        }
        for object in changes.deleted {
            object.storage.state.subtract([.deleted, .updated])
            if has(.editsOutliveTheirDelete), object.storage.edits != nil {
                object.storage.state.insert([.gone, .updated])
            } else if plan.graph == nil || isEnded(object, plan) {
                object.storage.edits = nil
                object.storage.state.insert([.gone, .ended])
            } else {
                // A policy gave the deletion up, or a cascade does not reach it any more.
                written.append(object)
            }
        }
        for object in written { object.storage.edits?.isSaved = true }
        return written
    }

    /// What others deleted since, or was new and deleted when a policy gave its deletion up, has no
    /// row. It keeps its last values.
    private func endGone(of written: inout [any ManagedObject], _ newest: RecordSnapshot) {
        written.removeAll { object in
            let (model, id) = (object.storage.model, object.storage.object)
            guard (try? newest.exists(model.record.id, id)) == false else { return false }
            object.storage.edits = nil
            object.storage.state.remove(.settling)
            object.storage.state.insert(.gone)
            return true
        }
    }

    private func isEnded(_ object: any ManagedObject, _ plan: SavePlan) -> Bool {
        plan.graph?.isDoomed(object.storage.object) ?? false
    }

    private typealias Waiting = (id: ObjectID, model: EntityModel, shown: ShownValues?)

    /// Saved objects are faults of the new commit until their rows are read. Returns those that had
    /// values in memory.
    private func dropOldRows(
        of written: inout [any ManagedObject],
        _ saved: [[StoredValue?]],
        _ tells: Bool
    ) -> [Waiting] {
        var waiting: [Waiting] = []
        for (object, values) in zip(written, saved) {
            let (model, id) = (object.storage.model, object.storage.object)
            object.storage.state.remove(.settling)
            object.storage.edits?.isSaved = false
            // Code of the app that the merge ran may have edited it again.
            let isEdited = !changed.isEmpty && changed[id] != nil
            if isEdited, let edits = object.storage.edits { edits.forget(values) }
            // Others deleted it, and an observer moved the context to that.
            if object.storage.state.contains(.gone) {
                if !isEdited { object.storage.edits = nil }
                continue
            }
            var shown: ShownValues?
            if tells, object.storage.observation != nil {
                shown = ShownValues(row: object.storage.row, edits: values)
            }
            if let row = object.storage.row {
                object.storage.row = nil
                container.store.rowCache.unpin(row)
                container.counters.realised.subtract(1, ordering: .relaxed)
            } else if object.storage.edits == nil {
                continue
            }
            if !isEdited { object.storage.edits = nil }
            waiting.append((id, model, shown))
        }
        written = []
        return waiting
    }

    /// The newest commit cannot be had, and no other one shows what was saved: everything is a
    /// fault, and the next read pins the commit that is the newest then. What is gone keeps its
    /// last values.
    private func forgetRows(of written: inout [any ManagedObject]) {
        for object in written {
            object.storage.edits = nil
            object.storage.state.remove(.settling)
        }
        written = []
        snapshot = nil
        for object in livingObjects where object.storage.isSettled {
            turnIntoFault(object)
            object.storage.related = nil
        }
    }

    private func takeNewRows(
        of waiting: [Waiting],
        _ newest: RecordSnapshot
    ) throws(StoreError) {
        var alive: [EntityID: [ObjectID]] = [:]
        var shown: [ObjectID: ShownValues] = [:]
        for (id, model, values) in waiting {
            alive[model.record.id, default: []].append(id)
            shown[id] = values
        }
        for (entity, ids) in alive.sorted(by: { $0.key < $1.key }) {
            do throws(StoreError) {
                let rows = try container.translating { () throws(RecordError) in
                    try newest.rows(entity, ids, pin: true, counting: false)
                }
                for (id, row) in zip(ids, rows) {
                    guard let row else { continue }
                    // An observer may have moved the context on.
                    guard commit == newest.number, let object = registered(id),
                        object.storage.row == nil
                    else {
                        container.store.rowCache.unpin(row)
                        continue
                    }
                    let slots = shown[id]?.others(object, row) ?? []
                    replaceRow(row, of: object)
                    if slots.isEmpty { continue }
                    object.storage.observation?.announce(object, slots, isBefore: true)
                    object.storage.observation?.announce(object, slots, isBefore: false)
                }
            } catch {
                throw error.afterCommit
            }
        }
    }
}

extension StoreError {
    /// The same error, of something that failed when the commit was on disk already.
    var afterCommit: StoreError {
        var error = self
        error.outcome = .saved
        let advice = code == .damaged ? suggestion : nil
        error.suggestion =
            "The save is on disk: do not save it again. What could not be read behind it is read "
            + "anew by the next read, or once the store is open again."
            + (advice.map { " " + $0 } ?? "")
        return error
    }
}
