// Undo and redo of the edits of a context.
//
// Invariants
// - A step is what its edits did, as values. So it can be undone after a save and after a merge.
// - What others changed since is theirs: an undo leaves it, and says so.
// - Steps end with `rollback()` and `reset()`, which give up what they stand on.

import Observation
import VarveBase
import VarveRecords

/// A property or object that an undo or redo left as it is.
public struct SkippedEdit: Hashable, Sendable {
    /// Why it was left.
    public enum Reason: String, Hashable, Sendable {
        /// It has another value than the step left: somebody else changed it since. Of an object
        /// that was to go: or somebody else linked something to it.
        case changedSince
        /// The object was deleted by somebody else.
        case deletedSince
        /// The relationship would lead to an object that is deleted.
        case targetDeleted
    }

    /// The object.
    public let object: ManagedObjectID
    /// The property; nil: the object as a whole.
    public let property: String?
    /// Why it was left.
    public let reason: Reason
}

/// The steps of one context.
final class UndoSteps {
    struct Step {
        let name: String
        fileprivate(set) var deltas: [GraphDelta]
    }

    /// How many steps are kept.
    var limit: Int
    let recorder = EditRecorder()
    fileprivate(set) var undone: [Step] = []
    fileprivate(set) var done: [Step] = []
    /// Groups that are open, one in the other.
    fileprivate var depth = 0
    /// How often all was forgotten.
    private var endings = 0

    init(limit: Int) { self.limit = limit }

    func forgetAll() {
        endings += 1
        recorder.forget()
        done = []
        undone = []
    }

    /// Steps of which nothing is left, now that their edits are saved.
    func forgetVoid(era: Int) {
        done.removeAll { $0.deltas.allSatisfy { $0.isVoid(in: era) } }
        undone.removeAll { $0.deltas.allSatisfy { $0.isVoid(in: era) } }
    }

    /// Changes what steps know, and the one that is open.
    func changeDeltas(_ change: (inout GraphDelta) -> Void) {
        for step in done.indices {
            for place in done[step].deltas.indices { change(&done[step].deltas[place]) }
        }
        for step in undone.indices {
            for place in undone[step].deltas.indices { change(&undone[step].deltas[place]) }
        }
        recorder.changeStretches(change)
    }

    /// The steps to redo stand on what is no more.
    func noteEdit() { if !undone.isEmpty, !recorder.isPaused { undone = [] } }

    /// Takes in what a deletion reached when it was saved.
    func learn(_ delta: GraphDelta, at place: Place) {
        if place.step < done.count {
            done[place.step].deltas[place.delta].learn(delta)
        } else {
            recorder.learn(delta, at: place.delta)
        }
    }

    fileprivate func push(_ step: Step) {
        done.append(step)
        if done.count > limit { done.removeFirst(done.count - limit) }
    }

    // MARK: Transactions that throw

    /// What is there when a transaction begins.
    struct Mark {
        fileprivate let done: [Step]
        fileprivate let undone: [Step]
        /// Of the step that is open.
        fileprivate let stretches: [GraphDelta]
        fileprivate let endings: Int
    }

    /// Edits from before are a stretch of their own: a move or group in the transaction would end
    /// one with edits of both.
    func mark(_ context: ManagedObjectContext) -> Mark {
        recorder.endStretch(context)
        return Mark(done: done, undone: undone, stretches: recorder.stretches, endings: endings)
    }

    /// A transaction threw, and its edits are taken back: neither is a step, and redo goes on.
    func takeBack(to mark: Mark) {
        // Edits from before were given up as well.
        guard endings == mark.endings else { return forgetAll() }
        recorder.goBack(to: mark.stretches)
        (done, undone) = (mark.done, mark.undone)
    }
}

extension ManagedObjectContext {
    // MARK: Settings

    /// How many steps can be undone; 0, the default: edits are not recorded. Each step keeps the
    /// values that its edits changed, and objects that they or others deleted, with their large
    /// values and blobs. A smaller number drops the oldest steps.
    public var undoLimit: Int {
        get { undoSteps?.limit ?? 0 }
        set {
            guard newValue > 0 else {
                if let steps = undoSteps { recorders.removeAll { $0 === steps.recorder } }
                undoSteps = nil
                announceStates()
                return
            }
            if let steps = undoSteps {
                steps.limit = newValue
                if steps.done.count > newValue {
                    steps.done.removeFirst(steps.done.count - newValue)
                }
            } else {
                let steps = UndoSteps(limit: newValue)
                undoSteps = steps
                recorders.append(steps.recorder)
            }
        }
    }

    /// Whether there is a step to undo. Observed.
    public var canUndo: Bool {
        trackUndo(\.canUndo)
        return hasUndo
    }

    /// Whether there is a step to redo. Observed.
    public var canRedo: Bool {
        trackUndo(\.canRedo)
        return hasRedo
    }

    var hasUndo: Bool {
        guard let steps = undoSteps else { return false }
        return !steps.done.isEmpty || hasOpenStep(steps)
    }

    var hasRedo: Bool {
        guard let steps = undoSteps else { return false }
        return !steps.undone.isEmpty && !hasOpenStep(steps)
    }

    /// Whether there are edits that are no step yet. What is only marked to be deleted is one.
    private func hasOpenStep(_ steps: UndoSteps) -> Bool {
        !deletesToProcess.isEmpty || !steps.recorder.isEmpty
    }

    /// The name of the step that `undo()` takes back; empty: it has none, or there is no step.
    public var undoActionName: String {
        guard let steps = undoSteps, !hasOpenStep(steps) else { return "" }
        return steps.done.last?.name ?? ""
    }

    /// The name of the step that `redo()` does again; empty: it has none, or there is no step.
    public var redoActionName: String { hasRedo ? undoSteps?.undone.last?.name ?? "" : "" }

    // MARK: Steps

    /// Makes one step of the edits in `body`. A group inside a group belongs to the outer one.
    /// Edits outside of groups are one step from one save, group or undo to the next. The rules
    /// of deletions run when the group ends.
    ///
    /// - Parameters:
    ///   - name: what an app writes behind "Undo".
    ///   - body: the edits.
    /// - Throws: what `body` throws. Its edits stay, and are a step; `transaction` takes them back.
    /// - Complexity: O(edits).
    public func withUndoGroup<Result, Failure: Error>(
        _ name: String = "",
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard let steps = undoSteps, steps.depth == 0 else { return try body() }
        // Inside of an observer: the edit around it is none of this group.
        let start = withdrawals
        let isTakenOut = takeOutEditUnderWay()
        endUndoStep("")
        steps.depth += 1
        defer {
            // Groups of observers of these belong to this one.
            processPendingDeletions()
            steps.depth -= 1
            endUndoStep(name)
            if isTakenOut { putBack(since: start) }
        }
        return try body()
    }

    /// Takes the last step back: values, relationships, orders, new and deleted objects are as they
    /// were before it. That is an edit like any other: if the step was saved, the next save writes
    /// it. Objects that it deleted come back with their IDs.
    ///
    /// Hooks are not called for it: what they did is part of the step.
    ///
    /// - Returns: what was left because somebody else changed it since.
    /// - Throws: `StoreError`: `invalidRequest` inside a group or transaction, `reentrantSave`
    ///   while a save or a hook runs.
    /// - Complexity: O(edits of the step), O(n) for each list with an order among them, and for an
    ///   object that goes O(n) for each of its lists and O(log n) for each relationship to it.
    @discardableResult
    public func undo() throws -> [SkippedEdit] {
        try checkUndo("undo")
        endUndoStep("")
        guard let steps = undoSteps, var step = steps.done.popLast() else { return [] }
        step.deltas = step.deltas.map(holdingTheGone)
        defer { announceStates() }
        let start = withdrawals
        let (skipped, _) = lay(step.deltas.reversed(), to: .before, steps)
        // An observer gave all edits up, and with them all steps.
        if withdrawals != start { return skipped }
        steps.undone.append(step)
        return skipped
    }

    /// Does the step again that `undo()` took back last. An edit in between ends that.
    /// - Returns: what was left because somebody else changed it since.
    /// - Throws: as `undo()`.
    /// - Complexity: as `undo()`.
    @discardableResult
    public func redo() throws -> [SkippedEdit] {
        try checkUndo("redo")
        endUndoStep("")
        guard let steps = undoSteps, var step = steps.undone.popLast() else { return [] }
        step.deltas = step.deltas.map(holdingTheGone)
        defer { announceStates() }
        let start = withdrawals
        let (skipped, done) = lay(step.deltas, to: .after, steps)
        if withdrawals != start { return skipped }
        steps.push(UndoSteps.Step(name: step.name, deltas: done))
        return skipped
    }

    /// A delta that holds its objects which others deleted meanwhile. Without edits nothing else
    /// holds them.
    private func holdingTheGone(_ delta: GraphDelta) -> GraphDelta {
        var delta = delta
        for (index, item) in delta.items.enumerated() where item.object == nil {
            guard let object = registered(item.id), object.storage.state.contains(.gone) else {
                continue
            }
            delta.items[index] = item.with(item.values, item.lists, as: object)
        }
        return delta
    }

    /// Forgets all steps, and keeps the edits.
    public func removeAllUndoSteps() {
        processPendingDeletions()
        undoSteps?.forgetAll()
        announceStates()
    }

    private func lay(
        _ deltas: [GraphDelta],
        to side: DeltaSide,
        _ steps: UndoSteps
    ) -> (skipped: [SkippedEdit], done: [GraphDelta]) {
        steps.recorder.isPaused = true
        defer { steps.recorder.isPaused = false }
        var skipped: [SkippedEdit] = []
        var done: [GraphDelta] = []
        let start = withdrawals
        for delta in deltas where withdrawals == start {
            let plan = plan(delta, to: side, overwrites: false)
            done.append(trimmed(delta, to: plan))
            let stays = lay(plan, of: delta)
            skipped += (plan.conflicts + stays).map(skippedEdit)
        }
        return (skipped, done)
    }

    func skippedEdit(_ conflict: DeltaConflict) -> SkippedEdit {
        let reason: SkippedEdit.Reason =
            switch conflict.obstacle {
            case .changed: .changedSince
            case .gone: .deletedSince
            case .targetGone: .targetDeleted
            }
        return SkippedEdit(
            object: identity(conflict.item.model, conflict.item.id),
            property: conflict.slot.map { conflict.item.model.properties[$0].name },
            reason: reason
        )
    }

    /// The edits are saved: journals of steps say nothing of what is not.
    func endEra() {
        era += 1
        undoSteps?.forgetVoid(era: era)
    }

    /// Makes a step of what was recorded.
    func endUndoStep(_ name: String) {
        guard let steps = undoSteps, steps.depth == 0 else { return }
        guard hasOpenStep(steps) else {
            steps.recorder.forgetJournal()
            return
        }
        processPendingDeletions()
        let deltas = steps.recorder.take(self)
        if deltas.isEmpty { return }
        steps.noteEdit()
        steps.push(UndoSteps.Step(name: name, deltas: deltas))
        announceStates()
    }

    private func checkUndo(_ name: String) throws(StoreError) {
        guard phase == .idle, hookObject == nil, !isDeleting, observersTold == 0 else {
            throw StoreError(
                .reentrantSave,
                "\(name) was called inside a save, a hook or an observer of the same context",
                place: .init(store: container.place),
                suggestion: "Call it when they have returned."
            )
        }
        guard undoSteps?.depth ?? 0 == 0, openTransactions == 0 else {
            throw StoreError(
                .invalidRequest,
                "\(name) was called inside an undo group or a transaction",
                place: .init(store: container.place),
                suggestion: "Call it when the group has ended."
            )
        }
    }
}
