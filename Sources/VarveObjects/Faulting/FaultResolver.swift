// Filling faults, turning objects back into faults, and what happens when a read fails.
//
// Invariants
// - A fill reads the row cache first, then the store, and never blob bytes.
// - `row` is pinned when it enters an object and unpinned when it leaves.
// - A failed implicit read leaves the object a fault, so that a later read tries again.

import Synchronization
import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// Fills a fault: the throwing way to do what reading a property does.
    /// - Throws: `objectNotFound`, `damaged`, `ioFailed`, `closed`.
    public func load(_ object: some ManagedObject) throws { try fill(object) }

    func fill(_ object: any ManagedObject) throws(StoreError) {
        guard object.isFault else { return }
        let model = object.storage.model
        let id = object.storage.object
        guard !object.storage.state.contains(.invalid) else {
            throw StoreError(
                .objectNotFound,
                "the context was reset, or the object's insertion rolled back",
                place: .init(entity: model.name, object: object.objectID)
            )
        }
        let snapshot = try currentSnapshot()
        // A fault of a list brings those after it along: they are likely to be asked for next.
        let registry = core.registry
        let row = try container.translating { () throws(RecordError) in
            try snapshot.row(model.record.id, id, pin: true) {
                let followers = registry.followers(of: id, limit: Self.readAheadMax)
                if followers.isEmpty { faultWatch?.isRead(id, self) }
                return followers
            }
        }
        guard let row else {
            throw StoreError(
                .objectNotFound,
                "the commit has no such \(model.name)",
                place: .init(
                    entity: model.name,
                    object: object.objectID,
                    commit: snapshot.number
                )
            )
        }
        take(row, for: object)
    }

    /// Rows that a fault of a list reads beside its own, at most.
    private static var readAheadMax: Int { 127 }

    /// Puts a pinned row into a fault.
    func take(_ row: CachedRow, for object: any ManagedObject) {
        if object.storage.row != nil {
            container.store.rowCache.unpin(row)
            return
        }
        object.storage.row = row
        object.storage.state.subtract([.gone, .ended])
        container.counters.realised.add(1, ordering: .relaxed)
        if !failures.isEmpty { failures[object.storage.object] = nil }
        object.awakeFromFetch()
    }

    /// Exchanges the row of a filled object for another pinned one.
    func replaceRow(_ row: CachedRow, of object: any ManagedObject) {
        if let old = object.storage.row {
            container.store.rowCache.unpin(old)
        } else {
            container.counters.realised.add(1, ordering: .relaxed)
        }
        object.storage.row = row
    }

    /// Drops the row and what was read of relationships. Edits are the caller's concern.
    func turnIntoFault(_ object: any ManagedObject) {
        if object.storage.row == nil { return }
        // An observer is told once. Whoever reads again is a new one, and a fault that nobody looks
        // at need not keep what observing costs, which is more than the object itself. Whoever
        // looks at a property that is not stored is told by its setter alone, and stays.
        let observation = object.storage.observation
        if observation?.hasTransients != true { object.storage.observation = nil }
        observation?.announce(object, nil, isBefore: true)
        // It may have moved the context: the row is another one, or the last that there is.
        guard let row = object.storage.row, !object.storage.state.contains(.gone) else {
            observation?.announce(object, nil, isBefore: false)
            return
        }
        object.storage.row = nil
        object.storage.related = nil
        container.store.rowCache.unpin(row)
        container.counters.realised.subtract(1, ordering: .relaxed)
        observation?.announce(object, nil, isBefore: false)
        object.didTurnIntoFault()
    }

    // MARK: Values

    /// The value of an attribute or to-one relationship, edits first. Nil: the read failed, which
    /// is remembered.
    func value(of object: any ManagedObject, slot: Int) -> StoredValue? {
        if let edited = object.storage.edits?.values[slot] { return edited }
        do throws(StoreError) {
            return try storedValue(of: object, slot: slot)
        } catch {
            note(error, object)
            return nil
        }
    }

    /// The value as the row of the context's commit has it.
    func storedValue(of object: any ManagedObject, slot: Int) throws(StoreError) -> StoredValue {
        try fill(object)
        guard let row = object.storage.row else { return .null }
        return try value(in: row, object.storage.model.columns[slot])
    }

    func value(in row: CachedRow, _ column: ColumnID) throws(StoreError) -> StoredValue {
        if !row.isOutside(column) {
            return try container.translating { () throws(RecordError) in try row.value(column) }
        }
        if let kept = keptValues[row.id], kept.version == row.version {
            if let value = kept.values[column] { return value }
        }
        var snapshot = try currentSnapshot()
        // The first that has it: in a later one it may have been replaced.
        if let left = leaving.first(where: { row.version <= $0.number }) { snapshot = left }
        return try container.translating { () throws(RecordError) in
            try snapshot.value(of: row, column)
        }
    }

    /// Sets an attribute. What the object has already, byte for byte, is no edit.
    func set(_ value: StoredValue, of object: any ManagedObject, slot: Int) {
        guard mayEdit(object, slot) else { return }
        if !refusals.isEmpty { forgetRefusal(object, slot) }
        do throws(StoreError) {
            try setEdit(value, of: object, slot: slot)
        } catch {
            note(error, object)
        }
        if changed.isEmpty { forgetIfNothingIsLeft() }
        noteLiveEdit()
        announceStates(of: object)
    }

    /// Lays a value over an object's row, and what is derived of it.
    func setEdit(
        _ value: StoredValue,
        of object: any ManagedObject,
        slot: Int
    ) throws(StoreError) {
        try layEdit(value, of: object, slot: slot)
        let model = object.storage.model
        if !model.derived.isEmpty, !model.isDerived(slot) { try derive(object) }
    }

    /// Lays a value over an object's row; takes the edit out when it is what the row has.
    private func layEdit(
        _ value: StoredValue,
        of object: any ManagedObject,
        slot: Int
    ) throws(StoreError) {
        let id = object.storage.object
        var unchanged = try isStored(value, of: object, slot: slot)
        let wasDoomed = !doomed.isEmpty && doomed[id] != nil
        if let observation = object.storage.observation {
            observation.announce(object, [slot], isBefore: true)
            // Its observer may have saved another value, or taken it out of the context.
            unchanged = try isStored(value, of: object, slot: slot)
        }
        defer { object.storage.observation?.announce(object, [slot], isBefore: false) }
        if object.storage.state.contains(.invalid) { return }
        // Its observer deleted it: an edit ends with its object.
        if !wasDoomed, !doomed.isEmpty, doomed[id] != nil { return }
        if isInterrupted, object.storage.model.properties[slot].relationship != nil { return }
        recordValue(of: object, slot)
        if unchanged {
            guard let edits = object.storage.edits, edits.values[slot] != nil else { return }
            edits.values[slot] = nil
            if edits.isEmpty {
                object.storage.edits = nil
                object.storage.state.remove(.updated)
                if !object.storage.state.contains(.deleted) { changed[id] = nil }
            }
            return
        }
        let edits: ObjectEdits
        if let known = object.storage.edits {
            edits = known
        } else {
            edits = ObjectEdits(count: object.storage.model.properties.count)
            object.storage.edits = edits
        }
        edits.values[slot] = value
        edits.assign(slot)
        if object.isInserted { return }  // in `changed` since it was made
        object.storage.state.insert(.updated)
        noteChanged(object, id)
    }

    /// Whether the row has that value, byte for byte.
    func isStored(
        _ value: StoredValue,
        of object: any ManagedObject,
        slot: Int
    ) throws(StoreError) -> Bool {
        if object.isInserted || object.storage.state.contains(.invalid) { return false }
        // The row is the one before a save.
        if object.storage.edits?.isSaved == true { return false }
        let stored = try storedValue(of: object, slot: slot)
        return has(.equalMeansSwiftEqual) ? stored == value : stored.isSame(as: value)
    }

    // MARK: Failed reads

    /// Implicit reads that failed since the last `rollback`, `reset` or `acknowledgeReadFailures`.
    /// While there are any, `save` throws `contextFailed`.
    public var readFailures: [ReadFailure] { failureList }

    /// Takes note of the failed reads: `save` works again. Edits of the failed objects are dropped,
    /// all others stay.
    public func acknowledgeReadFailures() {
        for failure in failureList {
            guard let id = failure.object?.object, let object = registered(id),
                object.isUpdated
            else { continue }
            dropEdits(of: object)
        }
        failureList = []
        listedFailures = []
        moveLive()
    }

    func note(_ error: StoreError, _ object: (any ManagedObject)?) {
        let place = object?.objectID
        if let object {
            failures[object.storage.object] = error
            if !object.storage.state.isDisjoint(with: [.gone, .invalid]) { return }
            // Once for each object, until the app takes note of it.
            guard listedFailures.insert(object.storage.object).inserted else { return }
        }
        let failure = ReadFailure(object: place, error: error)
        failureList.append(failure)
        container.report(failure)
    }

    /// A single value that this build does not know: fails that property only, and no save.
    func noteUnreadable(_ object: any ManagedObject, slot: Int) {
        let model = object.storage.model
        let name = model.properties[slot].name
        let error = StoreError(
            .unreadableValue,
            "\(model.name).\(name) has a value that this build does not know",
            place: .init(entity: model.name, attribute: name, object: object.objectID),
            suggestion: "Update the app. The stored value stays as it is unless it is set."
        )
        let isKnown = failures[object.storage.object] != nil
        failures[object.storage.object] = error
        if !isKnown { container.report(ReadFailure(object: object.objectID, error: error)) }
    }
}
