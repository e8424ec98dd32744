// Dropping edits and rows: refresh, refreshAllObjects, rollback, reset.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// Reads an object's row again.
    ///
    /// With `mergeChanges: false` edits and row are dropped and the object is a fault again. With
    /// `true` the row of the context's commit is read and the edits stay on top of it; that is
    /// never a conflict. A new object has no row and stays as it is.
    ///
    /// Dropping the edits of an object drops its side of each edited relationship, and with it the
    /// other side. A deletion stays. Of an object that is deleted only the edits are dropped.
    public func refresh(_ object: some ManagedObject, mergeChanges: Bool) {
        guard phase != .writing, object.storage.core === core else { return }
        guard mergeChanges else {
            defer { moveLive() }
            refusals.end(of: object.storage.object)
            if object.isInserted || object.storage.state.contains(.invalid) { return }
            dropEdits(of: object)
            guard object.storage.state.isDisjoint(with: [.deleted, .gone]) else { return }
            turnIntoFault(object)
            // Others' edits may reach it still: as the former partner of a one-to-one.
            guard object.storage.edits != nil else { return }
            do throws(StoreError) { try fill(object) } catch { note(error, object) }
            return
        }
        guard !object.isInserted, object.storage.state.isDisjoint(with: [.invalid, .gone]) else {
            return
        }
        // The edits stay where they are: `didTurnIntoFault` sees them, and may add to them.
        turnIntoFault(object)
        do throws(StoreError) { try fill(object) } catch { note(error, object) }
        announceStates()
    }

    /// Moves the context to the newest commit, then turns every unchanged object back into a fault.
    /// Edits stay.
    public func refreshAllObjects() {
        if phase == .writing { return }
        advance()
        for object in livingObjects where object.storage.isSettled {
            turnIntoFault(object)
        }
        forgetKeptValues()
        announceStates()
    }

    /// Drops all unsaved edits: new objects become invalid, changed ones get their last values
    /// back. Reads nothing. Steps to undo end. A branch drops its own edits, and shows what its
    /// parent shows.
    public func rollback() {
        if phase == .writing { return }
        if branchState == nil {
            _ = dropAllEdits()
            forgetRecords()
        } else {
            deletesToProcess = []
            forgetRecords()
            branchState?.unplaced = []
            (relied, refusals) = ([:], Refusals())
            (failureList, listedFailures, failures) = ([], [], [:])
            standOnParent()
        }
        moveLive()
    }

    /// Gives all edits up. What the caller gets are the objects that had some: the end of one runs
    /// the app's code, which may edit, and must find everything dropped.
    func dropAllEdits() -> [any ManagedObject] {
        // Observers are the app's code, which may edit more: they are told first, then all goes.
        let told = changed.sorted { $0.key < $1.key }.map(\.value)
        let lists = toManyEdits.keys.sorted { ($0.owner, $0.slot) < ($1.owner, $1.slot) }
        let loose = doomed.sorted { $0.key < $1.key }
            .flatMap { observedLists(with: $0.key, $0.value) }
        for object in told { object.storage.observation?.announce(object, nil, isBefore: true) }
        for key in lists {
            guard let owner = registered(key.owner) else { continue }
            owner.storage.observation?.announce(owner, [key.slot], isBefore: true)
        }
        announce(loose, isBefore: true)
        (withdrawals, graphVersion) = (withdrawals + 1, graphVersion + 1)
        let objects = changed.sorted { $0.key < $1.key }.map(\.value)
        // What these edited meanwhile goes too. Its observers are told when it has gone.
        let known = Set(told.map { $0.storage.object })
        let late = objects.filter { !known.contains($0.storage.object) }
        let lateLists = toManyEdits.keys.filter { !lists.contains($0) }
            .sorted { ($0.owner, $0.slot) < ($1.owner, $1.slot) }
        for object in objects {
            object.storage.edits = nil
            if object.isInserted {
                invalidate(object)
            } else {
                object.storage.state.subtract([.updated, .deleted])
            }
        }
        changed = [:]
        endedWithOwners = []
        forgetJournal()
        deletesToProcess = []
        pendingBlobs = [:]
        refusals = Refusals()
        relied = [:]
        failureList = []
        listedFailures = []
        failures = [:]
        for key in lists {
            guard let owner = registered(key.owner) else { continue }
            owner.storage.observation?.announce(owner, [key.slot], isBefore: false)
        }
        announce(loose, isBefore: false)
        for object in told { object.storage.observation?.announce(object, nil, isBefore: false) }
        for key in lateLists {
            guard let owner = registered(key.owner) else { continue }
            owner.storage.observation?.announce(owner, [key.slot], isBefore: true)
            owner.storage.observation?.announce(owner, [key.slot], isBefore: false)
        }
        for object in late {
            object.storage.observation?.announce(object, nil, isBefore: true)
            object.storage.observation?.announce(object, nil, isBefore: false)
        }
        return told + objects
    }

    /// Forgets everything: all objects of the context become invalid, edits are dropped, and the
    /// next read pins the newest commit.
    public func reset() {
        if phase == .writing { return }
        // None of them ends before all have left.
        let ended = dropAllEdits() + livingObjects
        forgetRecords()
        for object in ended { invalidate(object) }
        keptValues = KeptRows()
        branchState?.unplaced = []
        snapshot = branchState?.parent.snapshot?
            .held(for: PinOwner(.context, label: core.registry.label))
        standOnParent()
        withExtendedLifetime(ended) {}
        live?.replacesAll = true
        moveLive()
    }

    func dropEdits(of object: any ManagedObject) {
        guard !object.isInserted else { return }
        let id = object.storage.object
        object.storage.observation?.announce(object, nil, isBefore: true)
        recordAllEdits()
        object.storage.edits = nil
        object.storage.state.remove(.updated)
        if !object.storage.state.contains(.deleted) { changed[id] = nil }
        graphVersion += 1
        if !journal.isEmpty {
            // What became of others through them goes, too.
            journal.removeAll { $0.mentions(id) }
            replay()
        }
        forgetIfNothingIsLeft()
        object.storage.observation?.announce(object, nil, isBefore: false)
    }

    /// Takes an object out of the context for good.
    func invalidate(_ object: any ManagedObject) {
        guard !object.storage.state.contains(.invalid) else { return }
        let row = object.storage.row
        inHand = nil
        object.storage.row = nil
        object.storage.edits = nil
        object.storage.related = nil
        object.storage.state = object.storage.state.intersection(.returned).union(.invalid)
        core.endings += 1
        let id = object.storage.object
        core.objectDied(id, object.storage.token, row?.kept() ?? 0)
    }
}
