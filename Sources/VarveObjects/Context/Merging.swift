// Moving a context to a newer commit and bringing its objects along.
//
// Invariants
// - Faults stay faults: only filled objects whose row changed get a new row.
// - Unsaved edits survive; the row beneath them is replaced.
// - No object shows a row of a commit that the context has left: one whose new row cannot be read
//   is a fault, and its next read tries again.
// - A registered fault whose row is deleted is filled from the old commit before the context leaves
//   it.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// Moves the context to the newest commit. Unchanged properties show the new values, edits
    /// stay: what others changed beneath them is no conflict any more. What others deleted is: a
    /// relationship that was set to such an object shows nil, and the next save throws `conflict`
    /// or does as its policy says. Nothing happens before the context's first read.
    ///
    /// A read that fails is in `readFailures`.
    /// - Complexity: O(edits), and a read for each filled object that others changed.
    /// A branch takes over what its parent shows now, and not before its transactions have ended.
    /// An own edit of an object that the parent deleted is dropped, and `mergeIntoParent` says so.
    public func advance() { advance(isMerge: false) }

    /// - Parameter isMerge: nobody asked for it: that the container was closed meanwhile is no
    ///   failed read.
    func advance(isMerge: Bool) {
        if branchState != nil {
            if openTransactions == 0 { standOnParent() }
            return
        }
        guard snapshot != nil, phase != .writing else { return }
        do throws(StoreError) {
            let start = container.options.trace.map { ($0, commit, ContinuousClock.now) }
            move(to: try newestSnapshot(), except: [])
            if let (trace, from, since) = start { tell(trace, from, since) }
            moveLive()
        } catch {
            if isMerge, error.code == .closed { return }
            note(error, nil)
        }
    }

    private func tell(
        _ trace: TraceHandler,
        _ from: CommitNumber?,
        _ start: ContinuousClock.Instant
    ) {
        guard let from, let to = commit, from < to else { return }
        let duration = ContinuousClock.now - start
        trace(.merge(MergeTrace(author: author, from: from, to: to, duration: duration)))
    }

    /// Moves to `newer` and merges what others changed; `own` objects are settled by the caller.
    func move(to newer: RecordSnapshot, except own: Set<ObjectID>) {
        guard let known = snapshot else {
            snapshot = newer
            return
        }
        guard newer.number > known.number else { return }
        // What was deleted is decided by the commit that the app saw.
        processPendingDeletions()
        let (start, isTakenOut) = (withdrawals, makeWholeBeforeAMove())
        defer { if isTakenOut { putBack(since: start) } }
        // Observers of that may have moved it as well.
        guard let older = snapshot, newer.number > older.number else { return }
        endStretches()
        forgetKeptValues()
        leaving.append(has(.movesForgetLargeValues) ? newer : older)
        defer { leaving.removeLast() }
        holdLinked(newer)
        // 1. Rows that are gone. Losing one runs the app's code, which may read more objects as
        //    they were: until all are found.
        let changes = container.feed.changes(after: older.number, through: newer.number)
        var touched = touched(by: changes, newer, except: own)
        while true {
            let lost = touched.filter { $0.isDeletion && !$0.object.storage.state.contains(.gone) }
            if lost.isEmpty { break }
            // Its observers may move the context, and then that has decided.
            for (object, _, _) in lost where commit == older.number { loseRow(of: object, older) }
            if commit != older.number { break }
            touched = self.touched(by: changes, newer, except: own)
        }
        endWhatWentWithOthersDeletions()
        forgetWhatOthersDeletedToo()
        // It may have moved the context, too.
        guard let now = snapshot, newer.number > now.number else { return }
        // 2. Rows that have other values.
        var stale: [EntityID: [ObjectID]] = [:]
        var returned: [any ManagedObject] = []
        for (object, entity, isDeletion) in touched where !isDeletion {
            if !object.isFault {
                stale[entity, default: []].append(object.storage.object)
            } else if object.storage.state.contains(.gone) {
                returned.append(object)
            }
        }
        let watched = watchedLists(changes)
        snapshot = newer
        graphVersion += 1
        behindReads += 1
        forgetWhatCameBack(newer)
        adoptReturned(newer)
        for object in returned { comeBack(object) }
        for (entity, ids) in stale.sorted(by: { $0.key < $1.key }) {
            // An observer may have moved it further meanwhile.
            if let now = snapshot { replaceRows(entity, ids, from: now, older) }
        }
        // 3. Edits of relationships, and what is derived, mean something else over other rows.
        if !journal.isEmpty || !doomed.isEmpty || !toManyEdits.isEmpty { replay() }
        deriveEdited()
        behindReads -= 1
        announceChanged(watched)
    }

    /// New objects in the reach of what both sides deleted: they are shown as deleted, and what
    /// they belong to does not come back.
    private func endWhatWentWithOthersDeletions() {
        if alsoDeleted.isEmpty || doomed.isEmpty { return }
        var ended: Set<ObjectID> = []
        // A cascade comes to an owner before it comes to what it owns.
        for id in deletions {
            guard let object = changed[id], isPhantom(object), let owner = reachedBy[id],
                alsoDeleted[owner] != nil || ended.contains(owner)
            else { continue }
            ended.insert(id)
        }
        if ended.isEmpty { return }
        endEdits(ofDoomed: ended.sorted())
        // Steps to undo may name them.
        endedWithOwners.formUnion(ended)
    }

    /// What both sides deleted was edited for nothing. If others bring it back, it is theirs.
    func forgetWhatOthersDeletedToo() {
        guard !alsoDeleted.isEmpty, !journal.isEmpty else { return }
        let gone = alsoDeleted
        journal.removeAll { intent in
            if case .delete(_, let id) = intent { return gone[id] != nil }
            return intent.subject.map { gone[$0.owner] != nil } ?? false
        }
    }

    /// What others brought back may be deleted, or be missed, once more, whoever holds it.
    /// - Complexity: O(n log n), n the objects that both sides deleted.
    private func forgetWhatCameBack(_ newer: RecordSnapshot) {
        for (id, model) in alsoDeleted
        where (try? newer.exists(model.record.id, id)) == true {
            alsoDeleted[id] = nil
        }
    }

    /// What this context brought back, and others did as well, is theirs: the values of this one
    /// are edits of it.
    private func adoptReturned(_ newer: RecordSnapshot) {
        for (id, object) in changed.sorted(by: { $0.key < $1.key })
        where object.storage.state.isSuperset(of: [.inserted, .returned]) {
            let model = object.storage.model
            do throws(StoreError) {
                let row = try container.translating { () throws(RecordError) in
                    try newer.row(model.record.id, id, pin: true)
                }
                guard let row else { continue }
                object.storage.state.subtract([.inserted, .returned])
                replaceRow(row, of: object)
                try dropEqualEdits(of: object)
            } catch {
                note(error, object)
            }
        }
    }

    /// Of an object that has a row now, edits are what is different from it. Relationships come
    /// from the journal.
    private func dropEqualEdits(of object: any ManagedObject) throws(StoreError) {
        let model = object.storage.model
        guard let edits = object.storage.edits else { return }
        for slot in model.properties.indices {
            guard let value = edits.values[slot] else { continue }
            if model.properties[slot].relationship == nil,
                !(try storedValue(of: object, slot: slot).isSame(as: value))
            {
                continue
            }
            edits.values[slot] = nil
        }
        if edits.isEmpty {
            object.storage.edits = nil
            if !object.storage.state.contains(.deleted) { changed[object.storage.object] = nil }
        } else {
            object.storage.state.insert(.updated)
        }
    }

    private typealias Touched = (object: any ManagedObject, entity: EntityID, isDeletion: Bool)

    /// The registered objects that may have changed between two commits; of which changes, nil:
    /// nobody knows.
    private func touched(
        by changes: [ObjectChanges]?,
        _ newer: RecordSnapshot,
        except own: Set<ObjectID>
    ) -> [Touched] {
        if let changes { return touched(by: changes, except: own) }
        // The feed does not reach back so far: every object.
        return livingObjects.filter { !$0.isInserted && !own.contains($0.storage.object) }.map {
            let entity = $0.storage.model.record.id
            return ($0, entity, (try? newer.exists(entity, $0.storage.object)) == false)
        }
    }

    /// The registered objects that `changes` name, by ID, each with what the last of them says.
    ///
    /// - Complexity: O(n log n), n for each of the changes its objects or those registered here,
    ///   whichever are fewer: an import of a million rows costs a context with few objects little.
    private func touched(
        by changes: [ObjectChanges],
        except own: Set<ObjectID>
    ) -> [Touched] {
        var last: [ObjectID: (object: any ManagedObject, change: Int)] = [:]
        var living: [any ManagedObject]?
        for (index, change) in changes.enumerated() {
            if change.objects.count <= core.registry.count {
                for id in change.objects where !own.contains(id) {
                    guard let object = registered(id), !object.isInserted else { continue }
                    last[id] = (object, index)
                }
            } else {
                let all = living ?? livingObjects
                living = all
                for object in all {
                    let id = object.storage.object
                    if change.objects.contains(id), !own.contains(id), !object.isInserted {
                        last[id] = (object, index)
                    }
                }
            }
        }
        return last.sorted(by: { $0.key < $1.key }).map { _, found in
            (found.object, changes[found.change].entity, changes[found.change].isDeletion)
        }
    }

    /// The row is gone in the newer commit: last values stay, and `isDeleted` is true.
    private func loseRow(of object: any ManagedObject, _ older: RecordSnapshot) {
        guard !object.storage.state.contains(.gone) else { return }
        if object.isFault {
            do throws(StoreError) { try fill(object) } catch { note(error, object) }
        }
        keepPlaces(of: object)
        keepLargeValues(of: object, older, keepsBlobs: !has(.goneForgetsBlobs))
        keepLists(of: object)
        let place = commit
        object.storage.observation?.announce(object, nil, isBefore: true)
        defer { object.storage.observation?.announce(object, nil, isBefore: false) }
        // Its observer may have moved the context: then the row is what the newer commit says.
        guard commit == place else { return }
        // Edits, of its observer too: a policy may bring it back.
        if object.storage.state.contains(.updated) {
            do throws(StoreError) { try keepBlobs(of: object, at: older) } catch {
                note(error, object)
            }
        }
        if object.storage.state.contains(.deleted) || doomedAside.contains(object.storage.object) {
            // Both sides deleted it: there is nothing left to save.
            alsoDeleted[object.storage.object] = object.storage.model
            object.storage.state.subtract([.deleted, .updated])
            object.storage.edits = nil
            changed[object.storage.object] = nil
        }
        object.storage.state.insert(.gone)
    }

    /// Reads the lists of an object whose commit is about to be left: a policy may bring it back.
    func keepLists(of object: any ManagedObject) {
        let model = object.storage.model
        for slot in model.relationshipSlots
        where model.properties[slot].relationship?.isToMany == true {
            _ = try? savedMembers(of: object, slot: slot)
        }
    }

    /// Others brought it back, and it had no row: it ended as a new one, or could not be read. What
    /// it showed till now are no edits.
    private func comeBack(_ object: any ManagedObject) {
        let place = commit
        object.storage.observation?.announce(object, nil, isBefore: true)
        defer { object.storage.observation?.announce(object, nil, isBefore: false) }
        // Its observer may have moved the context, and then that has decided.
        guard commit == place else { return }
        if changed[object.storage.object] == nil { object.storage.edits = nil }
        object.storage.state.subtract([.gone, .ended])
    }

    private func replaceRows(
        _ entity: EntityID,
        _ ids: [ObjectID],
        from newer: RecordSnapshot,
        _ older: RecordSnapshot
    ) {
        do throws(StoreError) {
            let rows = try container.translating { () throws(RecordError) in
                try newer.rows(entity, ids, pin: true)
            }
            for (id, row) in zip(ids, rows) {
                if commit == newer.number {
                    replaceRow(row, of: id, older)
                    continue
                }
                if let row { container.store.rowCache.unpin(row) }
                if let now = snapshot { replaceRow(entity, id, from: now, older) }
            }
        } catch {
            // One page that cannot be read costs the others nothing.
            for id in ids {
                if let now = snapshot { replaceRow(entity, id, from: now, older) }
            }
        }
    }

    private func replaceRow(
        _ entity: EntityID,
        _ id: ObjectID,
        from newer: RecordSnapshot,
        _ older: RecordSnapshot
    ) {
        do throws(StoreError) {
            let row = try container.translating { () throws(RecordError) in
                try newer.row(entity, id, pin: true)
            }
            replaceRow(row, of: id, older)
        } catch {
            guard let object = registered(id), object.storage.row != nil else { return }
            object.storage.state.subtract([.gone, .ended])
            turnIntoFault(object)
            note(error, object)
        }
    }

    /// Gives a filled object the pinned row of the newer commit. Nil: it is gone there, which could
    /// not be read before.
    private func replaceRow(_ row: CachedRow?, of id: ObjectID, _ older: RecordSnapshot) {
        let object = registered(id)
        guard let row else {
            if let object, object.storage.row != nil { loseRow(of: object, older) }
            return
        }
        guard let object, let old = object.storage.row, old.version != row.version else {
            container.store.rowCache.unpin(row)
            return
        }
        let slots = object.storage.observation == nil ? [] : changedSlots(object, old, row)
        let place = commit
        object.storage.observation?.announce(object, slots, isBefore: true)
        defer { object.storage.observation?.announce(object, slots, isBefore: false) }
        // Its observer may have moved the context, and then there is a newer row.
        guard commit == place else {
            container.store.rowCache.unpin(row)
            if let now = snapshot {
                replaceRow(object.storage.model.record.id, id, from: now, older)
            }
            return
        }
        replaceRow(row, of: object)
        object.storage.state.subtract([.gone, .ended])
    }

    private func changedSlots(
        _ object: any ManagedObject,
        _ old: CachedRow,
        _ new: CachedRow
    ) -> [Int] {
        let model = object.storage.model
        return model.properties.indices.filter { slot in
            guard let column = model.properties[slot].column,
                object.storage.edits?.values[slot] == nil
            else { return false }
            if old.isOutside(column) || new.isOutside(column) { return true }
            guard let before = try? old.value(column), let after = try? new.value(column) else {
                return true
            }
            return !before.isSame(as: after)
        }
    }
}
