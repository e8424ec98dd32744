// The graph that a context shows: its commit with its unsaved edits laid over.
//
// Invariants
// - A to-one edit lives in its owner's edits, so that a getter finds it at once; what it means for
//   the list on the other side is in `toManyEdits`.
// - Both are what the journal makes of the context's commit: `replay` gives the same again.
// - An object is doomed when the journal deleted it; one that is only marked (`delete`) still has
//   its relationships until edits are processed.
// - What a deletion of this context reaches when it is processed loses its edits then. What only a
//   later commit of others put in its reach keeps them unseen: it is there again with them when
//   they, or an undo, take it out of reach. A save deletes it, unless the newest commit has it out
//   of reach by then.

import VarveBase
import VarveRecords

/// The objects whose unsaved to-one relationship without inverse leads to an object.
struct LooseKey: Hashable {
    let owner: EntityID
    let slot: Int
    let target: ObjectID

    /// See `NumberHash`.
    func _rawHashValue(seed: Int) -> Int {
        let place = UInt64(truncatingIfNeeded: slot) &<< 16 | UInt64(owner.rawValue)
        return NumberHash.mix(target.rawValue ^ place &<< 32, seed)
    }
}

extension ManagedObjectContext: GraphState {
    var schema: SchemaModel { container.schema }

    func has(_ bug: PlantedObjectBug) -> Bool { container.has(bug) }

    // MARK: Reading

    func isAlive(_ id: ObjectID, _ model: EntityModel) throws(StoreError) -> Bool {
        if !doomed.isEmpty, doomed[id] != nil { return false }
        if let object = registered(id) {
            if !object.storage.state.isDisjoint(with: [.gone, .invalid]) { return false }
            if object.isInserted || object.storage.row != nil { return true }
        }
        let snapshot = try currentSnapshot()
        if existing.contains(id) { return true }
        let exists = try container.translating { () throws(RecordError) in
            try snapshot.exists(model.record.id, id)
        }
        if exists {
            // Bounded: many objects that lead to few are what it is for.
            if existing.count >= 4096 { existing = [] }
            existing.insert(id)
        }
        return exists
    }

    func isUnsaved(_ id: ObjectID) -> Bool { changed[id]?.storage.isNew ?? false }

    func reference(
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) throws(StoreError) -> ObjectID? {
        let object = object(id, model)
        if let edited = object.storage.edits?.values[slot] { return edited.object }
        return try storedValue(of: object, slot: slot).object
    }

    func members(
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) throws(StoreError) -> [ObjectID] {
        try members(of: object(id, model), slot: slot)
    }

    func isMember(
        _ member: ObjectID,
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) throws(StoreError) -> Bool {
        try isMember(member, of: object(id, model), slot: slot)
    }

    func list(_ id: ObjectID, _ slot: Int) -> ToManyEdit? {
        toManyEdits[ToManyKey(owner: id, slot: slot)]
    }

    func savedMembers(
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) throws(StoreError) -> [ObjectID] {
        try savedMembers(of: object(id, model), slot: slot)
    }

    func memberCount(
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) throws(StoreError) -> Int {
        try memberCount(of: object(id, model), slot: slot)
    }

    func savedReference(
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) throws(StoreError) -> ObjectID? {
        let snapshot = try currentSnapshot()
        return try container.translating { () throws(RecordError) in
            try snapshot.row(model.record.id, id)?.reference(model.columns[slot])
        }
    }

    func referring(
        _ owner: EntityModel,
        _ slot: Int,
        to id: ObjectID
    ) throws(StoreError) -> [ObjectID] {
        let key = LooseKey(owner: owner.record.id, slot: slot, target: id)
        var ids = looseReferences[key] ?? []
        if !isUnsaved(id), let snapshot, let relationship = owner.properties[slot].relationship {
            ids.formUnion(
                try container.translating { () throws(RecordError) in
                    try snapshot.owners(owner.record, relationship.record, of: id)
                }
            )
        }
        return ids.sorted()
    }

    // MARK: Changing

    func setReference(
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int,
        _ target: ObjectID?
    ) throws(StoreError) {
        let object = object(id, model)
        if isInterrupted { return }
        if evaluators > 1 { touched?.append(ToManyKey(owner: id, slot: slot)) }
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
        try setEdit(target.map { .reference($0) } ?? .null, of: object, slot: slot)
    }

    func edit(
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int,
        _ change: (ToManyEdit) throws(StoreError) -> Void
    ) throws(StoreError) {
        let key = ToManyKey(owner: id, slot: slot)
        let object = registered(id)
        if let object {
            object.storage.observation?.announce(object, [slot], isBefore: true)
            if object.storage.state.contains(.invalid) { return }
        }
        if isInterrupted { return }
        if evaluators > 1 { touched?.append(key) }
        recordList(id, model, slot)
        let known = toManyEdits[key]
        let edit = known ?? ToManyEdit(owner: id, model: model, slot: slot)
        try change(edit)
        if edit.isEmpty {
            if known != nil { toManyEdits[key] = nil }
        } else if known == nil {
            toManyEdits[key] = edit
        }
        if let object { object.storage.observation?.announce(object, [slot], isBefore: false) }
    }

    func noteListed(_ member: ObjectID, by owner: ObjectID, _ slot: Int) {
        if isInterrupted { return }
        looseLists[member, default: []].insert(ToManyKey(owner: owner, slot: slot))
    }

    func doom(_ id: ObjectID, _ model: EntityModel, by other: ObjectID?) throws(StoreError) {
        let object = object(id, model)
        // Its values stay readable.
        if !object.isInserted { try fill(object) }
        if isInterrupted { return }
        touched = nil
        reachedBy[id] = other
        let isNew = doomed[id] == nil && !doomedBefore.contains(id)
        let lists = isNew ? observedLists(with: id, model) : []
        if isNew { recordDeletion(object) }
        if doomed.updateValue(model, forKey: id) == nil { deletions.append(id) }
        if let other, changed[other]?.isInserted == true {
            reachedByNew.append((other, model, id))
        }
        // Behind the deletion: an observer that edits must not come to it once more.
        announce(lists, isBefore: true)
        announce(lists, isBefore: false)
        if isInterrupted { return }
        guard !object.storage.state.contains(.deleted) else { return }
        object.storage.observation?.announce(object, nil, isBefore: true)
        if isInterrupted { return }
        object.storage.state.insert(.deleted)
        noteChanged(object, id)
        object.storage.observation?.announce(object, nil, isBefore: false)
    }

    func noteLost(
        _ target: ObjectID,
        wantedBy id: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) {
        if alsoDeleted[target] != nil || alsoDeleted[id] != nil { return }
        if endedWithOwners.contains(target) || endedWithOwners.contains(id) { return }
        lostTargets.append(LostTarget(owner: id, model: model, slot: slot, target: target))
    }

    func forgetLost(_ id: ObjectID, _ slot: Int, _ target: ObjectID?) {
        if !lostTargets.isEmpty { lostTargets.removeAll { $0.isAbout(id, slot, target) } }
    }

    func noteLost(_ id: ObjectID, _ model: EntityModel, _ slot: Int) {
        if alsoDeleted[id] != nil || endedWithOwners.contains(id) { return }
        lostTargets.append(LostTarget(owner: id, model: model, slot: slot, target: nil))
    }

    func isDoomed(_ id: ObjectID) -> Bool { !doomed.isEmpty && doomed[id] != nil }

    // MARK: The journal

    /// Takes down what the app wants and shows it. A read that fails on the way is remembered, and
    /// nothing changes.
    func submit(_ intent: Intent, _ object: any ManagedObject) {
        if !recorders.isEmpty { recordJournal() }
        noteEditOfTheGone(object)
        // An observer edits while a step, or the journal, is laid. No step knows of it: a journal
        // of one would lose it, values do not.
        if observersTold > 0, replays > 0 || undoSteps?.recorder.isPaused == true { era += 1 }
        if !lostTargets.isEmpty { forgetLost(intent) }
        let isOutermost = journal.begin()
        journal.append(intent, isFirst: isAsStored(intent, object))
        var failure: StoreError?
        editsUnderWay += 1
        let isWhole = besideOthers(intent) {
            do throws(StoreError) { try apply(intent) } catch { failure = error }
        }
        editsUnderWay -= 1
        defer { announceStates() }
        guard isWhole else {
            // What was done of it by then may rest on what is no more. After a rollback, a reset or
            // a save nothing of it stays an edit. An evaluator around this one lays it all again.
            if evaluators == 0 { layAgain() }
            if isOutermost { journal.end() }
            noteLiveEdit()
            return
        }
        if let failure {
            if isOutermost {
                journal.takeBack()
                journal.end()
            } else {
                journal.removeLast()
            }
            note(failure, object)
            replay()
            return
        }
        if isOutermost { journal.end() }
        if let key = intent.subject, object.storage.state.contains(.gone) {
            // No value tells of what is wanted of it.
            forgetIfAsItWas(key, object)
        } else if let key = intent.subject, !object.isInserted, case .relate = intent,
            object.storage.edits?.values[key.slot] == nil
        {
            journal.takeBack(key)
        }
        forgetIfNothingIsLeft()
        noteLiveEdit()
    }

    /// Whether the to-one relationship that is set has no edit yet.
    private func isAsStored(_ intent: Intent, _ object: any ManagedObject) -> Bool {
        guard case .relate(_, let id, let slot, _) = intent, object.storage.object == id else {
            return false
        }
        guard let edited = object.storage.edits?.values[slot] else { return true }
        guard case .null = edited else { return false }
        return object.isInserted
    }

    /// Several edits that an app made with one call. What they have come to is asked at the end:
    /// the removal of the one new member of a list leaves nothing, that of it and another one does,
    /// and it must not count which of them goes first.
    func asOneEdit(_ edits: () -> Void) {
        editsUnderWay += 1
        edits()
        editsUnderWay -= 1
        forgetIfNothingIsLeft()
        announceStates()
    }

    /// A relationship that is set anew does not want what it could not have.
    private func forgetLost(_ intent: Intent) {
        guard let subject = intent.subject else { return }
        if case .unlink(_, _, _, let member) = intent {
            let isWanted = lostTargets.contains { $0.target == member }
            guard isWanted else { return }
            journal.removeAll { other in
                if case .link(_, subject.owner, subject.slot, member, _) = other { return true }
                return false
            }
            lostTargets.removeAll {
                $0.owner == subject.owner && $0.slot == subject.slot && $0.target == member
            }
            return
        }
        guard case .relate = intent, lostTargets.contains(where: { $0.isAbout(subject) }) else {
            return
        }
        forgetWanted(subject)
    }

    /// A relationship wants nothing else than what its row has.
    func forgetWanted(_ key: ToManyKey) {
        journal.removeAll { $0.subject == key }
        lostTargets.removeAll { $0.isAbout(key) }
    }

    /// Without any difference from the commit there is nothing to remember.
    func forgetIfNothingIsLeft() {
        guard changed.isEmpty, toManyEdits.isEmpty, lostTargets.isEmpty, editsUnderWay == 0 else {
            return
        }
        forgetJournal()
        if !pendingBlobs.isEmpty { pendingBlobs = [:] }
    }

    func forgetJournal() {
        journal = Journal()
        toManyEdits = [:]
        looseReferences = [:]
        looseLists = [:]
        lostTargets = []
        alsoDeleted = [:]
        forgetDoomed()
        lastPlaces = [:]
        if !linkedAndGone.isEmpty { linkedAndGone = [:] }
    }

    private func forgetDoomed() {
        doomed = [:]
        deletions = []
        deletionsEnded = 0
        reachedByNew = []
        reachedBy = [:]
    }

    /// Lays the journal again as a part of the edit under way, which is recorded.
    func layAgain() {
        recordAllEdits()
        let known = doomed
        replay(isRecorded: true)
        // What deletions of observers reach only now ends with them.
        let new = deletions.filter { known[$0] == nil }
        if !new.isEmpty { endEdits(ofDoomed: new) }
    }

    /// Applies the journal to the context's commit once more: the commit is another one, or
    /// intents were taken out.
    /// - Parameters:
    ///   - isRecorded: whether what it changes is a part of the edit under way.
    ///   - holdsBack: whether observers are told when all is laid: whoever moves or records in the
    ///     middle finds half of it.
    func replay(isRecorded: Bool = false, holdsBack: Bool = false) {
        let watched = watchedRelationships()
        let hidden = watchedDeletions()
        // Their deletion was recorded when it was made.
        let outer = doomedBefore
        doomedBefore.formUnion(doomed.keys)
        defer { doomedBefore = outer }
        // Observers are told on the way. What they edit, end or move counts, and the journal is
        // laid again. There may be many of them, and one may begin anew each time: after some
        // rounds they are told behind it.
        var rounds = 0
        if !isRecorded { replays += 1 }
        while !layJournal(holdsBack: holdsBack || rounds >= 4) { rounds += 1 }
        if !isRecorded { replays -= 1 }
        tellHeldBack()
        announce(watched)
        for object in hidden where !object.storage.isDeleted {
            object.storage.observation?.announce(object, nil, isBefore: true)
            object.storage.observation?.announce(object, nil, isBefore: false)
        }
        forgetIfNothingIsLeft()
    }

    /// False: an observer edited, moved or ended something in the middle.
    private func layJournal(holdsBack: Bool) -> Bool {
        holdTheGone()
        for (id, object) in changed.sorted(by: { $0.key < $1.key }) {
            withdrawGraphEdits(of: object, id)
        }
        toManyEdits = [:]
        looseReferences = [:]
        looseLists = [:]
        lostTargets = []
        forgetDoomed()
        // An observer's edit that is none must not find that nothing is left.
        editsUnderWay += 1
        if holdsBack, heldBack == nil { heldBack = [] }
        let outer = concerned
        concerned = nil
        touched = nil
        defer { concerned = outer }
        defer { editsUnderWay -= 1 }
        for intent in journal.intents {
            if has(.replayForgetsUnlinks), case .unlink = intent { continue }
            let isWhole = withoutInterruption {
                do throws(StoreError) { try apply(intent) } catch {
                    if !isInterrupted { note(error, nil) }
                }
            }
            if !isWhole { return false }
        }
        if has(.replayEndsEdits) {
            for (id, object) in changed where doomed[id] != nil { dropAttributes(of: object) }
        }
        deletionsEnded = deletions.count
        releaseTheGone()
        return true
    }

    /// Takes out of an object what the journal put there.
    private func withdrawGraphEdits(of object: any ManagedObject, _ id: ObjectID) {
        if let edits = object.storage.edits {
            for slot in object.storage.model.relationshipSlots
            where edits.values[slot] != nil {
                edits.values[slot] = object.isInserted ? .null : nil
            }
            if !object.isInserted, edits.isEmpty {
                object.storage.edits = nil
                object.storage.state.remove(.updated)
            }
        }
        if object.storage.state.contains(.deleted), doomed[id] != nil {
            object.storage.state.remove(.deleted)
        }
        if !object.storage.hasChanges { changed[id] = nil }
    }

    /// The attributes that a deleted object was given are dropped: an edit ends with its object.
    func dropAttributes(of object: any ManagedObject) {
        guard !object.isInserted, let edits = object.storage.edits,
            !has(.editsOutliveTheirDelete)
        else { return }
        let model = object.storage.model
        for slot in edits.values.indices where model.properties[slot].relationship == nil {
            edits.values[slot] = nil
        }
        if edits.isEmpty { object.storage.edits = nil }
        object.storage.state.remove(.updated)
    }
}

extension StoredValue {
    /// The object that a reference leads to; nil for null.
    var object: ObjectID? {
        if case .reference(let id) = self { return id }
        return nil
    }
}
