// Branches: a context over another one, with its unsaved edits and edits of its own. An edit sheet.
//
// Invariants
// - A branch stands on the commit and the edits that its parent had when it was made, or when it
//   last took them over. What the parent does meanwhile is not seen.
// - Its own edits are recorded against that. Merging lays them over the parent, as values.
// - A branch writes nothing: what it edits reaches the store through its parent.

import Synchronization
import VarveBase
import VarveRecords

/// What becomes of a property that a branch and its parent changed both.
public struct BranchMergePolicy: Hashable, Sendable {
    enum Kind { case error, branchWins, parentWins }
    let kind: Kind

    /// Nothing is merged, and `conflict` lists every such property.
    public static let error = BranchMergePolicy(kind: .error)
    /// The branch's value counts. An object that the branch deletes is deleted. One that the parent
    /// deleted stays deleted.
    public static let branchWins = BranchMergePolicy(kind: .branchWins)
    /// The parent's value counts. An object that the branch deletes and the parent changed stays.
    public static let parentWins = BranchMergePolicy(kind: .parentWins)
}

/// What a branch knows beside its edits.
final class BranchState {
    let parent: ManagedObjectContext
    let recorder = EditRecorder()
    /// Own edits that met what the parent had done when the branch took that over.
    var unplaced: [DeltaConflict] = []

    init(parent: ManagedObjectContext) { self.parent = parent }
}

extension ManagedObjectContext {
    /// The context that this one is a branch of; nil: it is none.
    public var parent: ManagedObjectContext? { branchState?.parent }

    /// Makes a context over this one, in the same isolation: it shows the objects with the unsaved
    /// edits of this one and takes edits of its own. `mergeIntoParent()` brings them here, as
    /// unsaved edits; dropping the branch drops them. So an edit sheet does not touch the list
    /// behind it. Branches may have branches.
    ///
    /// What this context does later is not seen in the branch until it calls `advance()`. The
    /// branch has objects of its own: get one by the ID of yours. In a branch `hasChanges` is about
    /// its own edits, and `rollback()` drops those; `hasChanges` of an object is about the store.
    /// Saves and batches throw `invalidRequest` there.
    ///
    /// - Throws: `closed`, `ioFailed`, `damaged`, as the first read of a context.
    /// - Complexity: O(unsaved edits of this context).
    public func branch() throws -> ManagedObjectContext {
        processPendingDeletions()
        let snapshot = try currentSnapshot()
        let made = ManagedObjectContext(
            container: container,
            author: author,
            label: "branch of \(core.registry.label)",
            observes: core.observes
        )
        let state = BranchState(parent: self)
        made.branchState = state
        let held = snapshot.held(for: PinOwner(.context, label: made.core.registry.label))
        if isOfThePast { made.stay(at: held) } else { made.snapshot = held }
        made.takeEdits(of: self, [:])
        made.recorders.append(state.recorder)
        made.tellUnsaved()
        return made
    }

    /// Brings this branch's own edits into its parent, as unsaved edits of that one and as one step
    /// to undo there. Afterwards the branch shows what the parent shows, and has no edits.
    ///
    /// - Parameters:
    ///   - policy: what becomes of a property, or object, that the parent changed since the branch
    ///     was made or last advanced.
    ///   - undoActionName: the name of the step in the parent.
    /// - Returns: what was left as the parent has it: with `parentWins` what it changed; edits of
    ///   objects that it deleted.
    /// - Throws: `StoreError`: `conflict`, with a detail for each property; what `validate` of the
    ///   edited objects and `deny` say, as in a save; `contextFailed` and what was refused;
    ///   `invalidRequest` if this is no branch; `reentrantSave` inside a hook or observer. Then
    ///   nothing was merged.
    /// - Complexity: O(edits of both).
    @discardableResult
    public func mergeIntoParent(
        _ policy: BranchMergePolicy = .error,
        undoActionName: String = ""
    ) throws -> [SkippedEdit] {
        guard let state = branchState else { throw StoreError.noBranch(container.place) }
        let parent = state.parent
        // 1. checkMergeable: both stand still, and every edit is one.
        try checkMergeable()
        // 2. process: rules of deletions run in both.
        processPendingDeletions()
        parent.processPendingDeletions()
        // 3. validate: the edited objects, as a save would.
        let delta = state.recorder.wholeDelta(self)
        let deleted = Set(delta.items.filter { !$0.exists }.map(\.id))
        var edited = edited(by: delta)
        try validate(&edited, judgesCounts: false) { deleted.contains($0) }
        // 4. decide: what meets edits of the parent.
        let overwrites = policy.kind == .branchWins || has(.branchForgetsOthers)
        let plan = parent.plan(delta, to: .after, overwrites: overwrites, isMerge: true)
        let conflicts = state.unplaced.filter { !delta.decides($0) } + plan.conflicts
        if policy.kind == .error, !conflicts.isEmpty { throw parent.conflict(conflicts, self) }
        // 5. lay: as one step of the parent.
        parent.withUndoGroup(undoActionName) { _ = parent.lay(plan, of: delta) }
        // What the edits rest on must be so when they are saved.
        parent.relied.merge(relied) { known, _ in known }
        relied = [:]
        // 6. rebase: from here on the branch is what the parent is.
        state.recorder.forget()
        state.unplaced = []
        standOnParent()
        return conflicts.map(parent.skippedEdit)
    }

    private func checkMergeable() throws(StoreError) {
        guard isWhole, branchState?.parent.isWhole ?? true, openTransactions == 0 else {
            throw StoreError(
                .reentrantSave,
                "a branch was merged inside a save, a hook, an observer or a transaction",
                place: .init(store: container.place),
                suggestion: "Merge it when that has returned."
            )
        }
        try container.checkOpen()
        try checkFailures()
        try checkRefusals()
    }

    /// The objects that a delta changes, as a save would see them.
    private func edited(by delta: GraphDelta) -> ChangeSet {
        var changes = ChangeSet()
        for item in delta.items where item.exists {
            let object = object(item.id, item.model)
            if object.isInserted {
                changes.inserted.append(object)
            } else {
                changes.updated.append(object)
            }
        }
        return changes
    }

    // MARK: Standing on the parent

    /// Shows what the parent shows now, with the own edits laid over.
    func standOnParent() {
        guard let state = branchState, phase == .idle else { return }
        processPendingDeletions()
        let own = state.recorder.wholeDelta(self)
        endStretches()
        state.recorder.forget()
        state.recorder.isPaused = true
        undoSteps?.recorder.isPaused = true
        let living = Dictionary(
            uniqueKeysWithValues: changed.map { ($0.key, $0.value) }
        )
        // The edits are laid again: what they rest on, and what was refused of them, stays.
        let kept = (relied, refusals, failureList, listedFailures, failures)
        _ = dropAllEdits()
        (relied, refusals, failureList, listedFailures, failures) = kept
        era += 1
        state.parent.processPendingDeletions()
        if let theirs = try? state.parent.currentSnapshot(), theirs.number != snapshot?.number {
            move(to: theirs.held(for: PinOwner(.context, label: core.registry.label)), except: [])
        }
        takeSaved(living, of: state.parent)
        takeEdits(of: state.parent, living)
        state.recorder.isPaused = false
        let plan = plan(own, to: .after, overwrites: true)
        state.unplaced += plan.conflicts
        lay(plan, of: own)
        undoSteps?.recorder.isPaused = false
        announceStates()
        moveLive()
    }

    /// What was new here, and has been saved by the parent since, is the same instance.
    private func takeSaved(
        _ living: [ObjectID: any ManagedObject],
        of parent: ManagedObjectContext
    ) {
        for (id, object) in living.sorted(by: { $0.key < $1.key })
        where object.storage.state.contains(.invalid) && registered(id) == nil {
            let model = object.storage.model
            guard parent.changed[id]?.isInserted != true, let snapshot,
                (try? snapshot.exists(model.record.id, id)) == true
            else { continue }
            _ = instance(id, model, object)
            object.storage.state = []
        }
    }

    /// Takes over the unsaved edits of the parent. The context has none, and stands on its commit.
    /// - Parameter living: instances that new objects had.
    private func takeEdits(
        of parent: ManagedObjectContext,
        _ living: [ObjectID: any ManagedObject]
    ) {
        replays += 1
        for (id, theirs) in parent.changed.sorted(by: { $0.key < $1.key }) {
            guard let edits = theirs.storage.edits else { continue }
            let model = theirs.storage.model
            if theirs.isInserted {
                let object = instance(id, model, living[id])
                object.storage.state = theirs.storage.state.intersection([.inserted, .returned])
                object.storage.edits = edits.copy()
                noteChanged(object, id)
                continue
            }
            let own = edits.copy()
            for slot in model.relationshipSlots { own.values[slot] = nil }
            if own.isEmpty || has(.branchForgetsValues) { continue }
            let object = object(id, model)
            object.storage.edits = own
            object.storage.state.insert(.updated)
            if theirs.storage.state.contains(.gone) { takeLastRow(of: theirs, object) }
            noteChanged(object, id)
        }
        pendingBlobs = parent.pendingBlobs
        alsoDeleted = parent.alsoDeleted
        lastPlaces = parent.lastPlaces
        journal = parent.journal
        // An edit may be under way there.
        journal.end()
        replay()
        replays -= 1
    }

    /// Others deleted the object, and the parent's edits of it stand.
    private func takeLastRow(of theirs: any ManagedObject, _ object: any ManagedObject) {
        object.storage.state.formUnion(theirs.storage.state.intersection([.gone, .ended]))
        guard object.storage.row == nil, let row = theirs.storage.row else { return }
        container.store.rowCache.pin(row)
        object.storage.row = row
        container.counters.realised.add(1, ordering: .relaxed)
        // Neither its large values nor its blobs are found through a commit any more.
        if let kept = branchState?.parent.keptValues[row.id], !has(.branchForgetsGoneBlobs) {
            keptValues.keep(kept, of: row.id)
        }
    }
}

extension GraphDelta {
    /// Whether a property that could not be placed was edited again since.
    fileprivate func decides(_ conflict: DeltaConflict) -> Bool {
        guard let slot = conflict.slot else { return false }
        return items.contains { item in
            item.id == conflict.item.id && item.values.contains { $0.slot == slot }
        }
    }
}

extension EditRecorder {
    /// All stretches as one delta without journals: for another context, or another commit.
    func wholeDelta(_ context: ManagedObjectContext) -> GraphDelta {
        var whole = delta(context)
        whole.journals = nil
        return whole
    }
}

extension StoreError {
    fileprivate static func noBranch(_ place: String) -> StoreError {
        StoreError(
            .invalidRequest,
            "mergeIntoParent was called for a context that is no branch",
            place: .init(store: place),
            suggestion: "Call it for what context.branch() returned; others are saved."
        )
    }

    /// A save, or a batch, of a branch.
    static func branchWrites(_ place: String) -> StoreError {
        StoreError(
            .invalidRequest,
            "a branch was to be saved, or to run a batch; it reaches the store through its parent",
            place: .init(store: place),
            suggestion: "Call mergeIntoParent(), then save the parent."
        )
    }
}

extension ManagedObjectContext {
    /// The error of edits of a branch that meet those of its parent.
    fileprivate func conflict(
        _ conflicts: [DeltaConflict],
        _ branch: ManagedObjectContext
    ) -> StoreError {
        let details = conflicts.map { conflict -> StoreError.Detail in
            let model = conflict.item.model
            let name = conflict.slot.map { model.properties[$0].name }
            let place = name.map { "\(model.name).\($0)" } ?? model.name
            let message =
                switch conflict.obstacle {
                case .changed:
                    name == nil
                        ? "\(place) is deleted in the branch, and its "
                            + (conflict.changedSlot.map { model.properties[$0].name } ?? "row")
                            + " was changed in its parent"
                        : "\(place) was changed in the branch and in its parent"
                case .gone: "\(place) was changed in the branch and deleted in its parent"
                case .targetGone:
                    "\(place) is to lead to an object that was deleted in the parent"
                }
            let object = identity(model, conflict.item.id)
            return StoreError.Detail(
                code: .conflict,
                message: message,
                place: StoreError.Place(entity: model.name, attribute: name, object: object),
                objects: [object],
                conflict: sides(conflict, branch)
            )
        }
        return StoreError(
            .conflict,
            details.count == 1
                ? details[0].message
                : "\(details.count) edits of a branch meet those of its parent; the first: "
                    + details[0].message,
            place: details[0].place,
            details: details,
            suggestion: "branch.advance() takes the parent's edits under those of the branch; or "
                + "merge with branchWins or parentWins. Nothing was merged."
        )
    }

    /// What the branch began with, what it has, and what its parent has.
    private func sides(
        _ conflict: DeltaConflict,
        _ branch: ManagedObjectContext
    ) -> SaveConflict {
        let (model, id) = (conflict.item.model, conflict.item.id)
        let identity = identity(model, id)
        func values(_ context: ManagedObjectContext) -> [StoredValue] {
            let object = context.object(id, model)
            return model.properties.indices.map { slot in
                guard model.properties[slot].column != nil else { return .null }
                return context.value(of: object, slot: slot) ?? .null
            }
        }
        func side(_ values: [StoredValue], _ context: ManagedObjectContext) -> ConflictValues {
            var pending = context.pendingBlobs(in: values)
            for case .blob(let reference) in values {
                if pending[reference] == nil { pending[reference] = context.blob(for: reference) }
            }
            return ConflictValues(
                model: model,
                object: identity,
                values: values,
                blobs: nil,
                pendingBlobs: pending
            )
        }
        let now = isThere(id, model) ? values(self) : nil
        let mine = branch.isThere(id, model) ? values(branch) : nil
        var base = mine ?? now ?? model.properties.map { _ in .null }
        for value in conflict.item.values { base[value.slot] = value.before }
        return SaveConflict(
            object: identity,
            entity: model.name,
            base: side(base, branch),
            mine: mine.map { side($0, branch) },
            theirs: now.map { side($0, self) }
        )
    }
}
