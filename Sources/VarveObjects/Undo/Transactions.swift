// Edits that are taken back if something throws.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// Runs edits that count together: if `body` throws, what it edited is as it was before, and
    /// edits from before stay. Nothing is saved. Transactions may stand one inside the other.
    ///
    /// Save when it has returned: `save()` in `body` throws `reentrantSave`. A `rollback()` or
    /// `reset()` in `body` gives up all edits, those from before as well. What others saved
    /// meanwhile stays, also of a property that `body` edited. A branch does not move on in it.
    /// If `body` throws, its edits are no step to undo, and what could be redone still can be.
    ///
    /// - Throws: what `body` throws.
    /// - Complexity: O(edits of `body`); with undo, also of those since the last step or
    ///   transaction.
    public func transaction<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        processPendingDeletions()
        // Inside of an observer: the edit around it is none of this transaction.
        let start = withdrawals
        let isTakenOut = takeOutEditUnderWay()
        let recorder = EditRecorder()
        recorder.keepsJournals = true
        recorders.append(recorder)
        if openTransactions == 0 { refusals.forgetMadeGood() }
        openTransactions += 1
        let refused = refusals
        let undo = undoSteps.map { (steps: $0, mark: $0.mark(self)) }
        // Inside a hook they wait for its end.
        let marked = Set(deletesToProcess)
        defer {
            openTransactions -= 1
            recorders.removeAll { $0 === recorder }
            if isTakenOut { putBack(since: start) }
        }
        do throws(Failure) {
            return try body()
        } catch {
            takeBack(recorder, except: marked)
            if let undo, undo.steps === undoSteps, !container.has(.thrownLeavesUndoSteps) {
                undo.steps.takeBack(to: undo.mark)
            }
            announceStates()
            refusals.goBack(to: refused)
            throw error
        }
    }

    private func takeBack(_ recorder: EditRecorder, except earlier: Set<ObjectID>) {
        // What was only marked has changed nothing yet.
        let marked = deletesToProcess.filter { !earlier.contains($0) }
        deletesToProcess.removeAll { !earlier.contains($0) }
        // What a deletion reaches is marked by that as well.
        for id in marked where doomed[id] == nil {
            if let object = changed[id] { unmark(object) }
        }
        let deltas = recorder.take(self)
        recorder.isPaused = true
        let start = withdrawals
        for delta in deltas.reversed() where withdrawals == start {
            let plan = plan(
                delta,
                to: .before,
                overwrites: true,
                leavesOthersDeletions: true
            )
            lay(plan, of: delta)
        }
    }
}
