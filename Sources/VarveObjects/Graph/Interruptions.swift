// Observers that change the graph in the middle of an edit of it.
//
// Invariants
// - An evaluator that finds another version of the graph than it began with changes nothing any
//   more; who ran it lays the journal again, or leaves that to one that is under way around it.
// - An edit of other properties than those that the edit around it is about interrupts nothing:
//   laid one after the other they come to the same.
// - An edit leaves the journal while its observer moves the context, or makes a transaction or a
//   group of edits, and comes back behind that: who records has no half of it.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// Runs the evaluator. False: an observer edited relationships, moved the context or ended
    /// edits in the middle. From then on the evaluator changes nothing, and the journal has to be
    /// laid.
    func withoutInterruption(_ body: () -> Void) -> Bool {
        graphVersion += 1
        let (version, outer) = (graphVersion, laidVersion)
        laidVersion = version
        evaluators += 1
        defer {
            laidVersion = outer
            evaluators -= 1
        }
        let before = withdrawals
        body()
        if has(.observersAreNotNoticed) { return withdrawals == before }
        return graphVersion == laidVersion || has(.editsOutliveARollback)
    }

    /// Runs the evaluator for one intent. Where it is one of an observer in the middle of another
    /// one, and changes nothing that this one is about, that one goes on.
    func besideOthers(_ intent: Intent, _ body: () -> Void) -> Bool {
        guard core.observes else { return withoutInterruption(body) }
        let (outer, isNested) = (concerned, evaluators > 0 && !isInterrupted)
        let others = touched
        concerned = concerns(intent)
        touched = []
        let isWhole = withoutInterruption(body)
        let own = touched
        (concerned, touched) = (outer, [])
        if isNested { touched = others.flatMap { others in own.map { others + $0 } } }
        if isNested, isWhole, let outer, let own, !own.contains(where: outer.contains) {
            laidVersion = graphVersion
        }
        return isWhole
    }

    /// The properties that an intent reads and changes; nil: it may be any.
    private func concerns(_ intent: Intent) -> Set<ToManyKey>? {
        switch intent {
        case .relate(let model, let id, let slot, let target):
            return concerns(model, id, slot, target)
        case .link(let model, let id, let slot, let member, _),
            .unlink(let model, let id, let slot, let member):
            guard let relationship = model.properties[slot].relationship,
                let inverse = relationship.inverseSlot,
                let far = schema.entity(relationship.target)
            else { return [ToManyKey(owner: id, slot: slot)] }
            if relationship.isKeptByInverse { return concerns(far, member, inverse, id) }
            return [ToManyKey(owner: id, slot: slot), ToManyKey(owner: member, slot: inverse)]
        case .arrange(_, let id, let slot, _): return [ToManyKey(owner: id, slot: slot)]
        case .delete: return nil
        }
    }

    private func concerns(
        _ model: EntityModel,
        _ id: ObjectID,
        _ slot: Int,
        _ target: ObjectID?
    ) -> Set<ToManyKey>? {
        var keys: Set<ToManyKey> = [ToManyKey(owner: id, slot: slot)]
        guard let relationship = model.properties[slot].relationship,
            let inverse = relationship.inverseSlot,
            let far = schema.entity(relationship.target)
        else { return keys }
        do throws(StoreError) {
            for other in [try reference(id, model, slot), target].compactMap(\.self) {
                keys.insert(ToManyKey(owner: other, slot: inverse))
                guard !relationship.inverseIsToMany, try isAlive(other, far),
                    let partner = try reference(other, far, inverse)
                else { continue }
                keys.insert(ToManyKey(owner: partner, slot: slot))
            }
        } catch { return nil }
        return keys
    }

    /// Whether what the evaluator has read may be no more.
    var isInterrupted: Bool { laidVersion != graphVersion && !ignoresObservers }

    private var ignoresObservers: Bool {
        has(.editsOutliveARollback) || has(.observersAreNotNoticed)
    }

    // MARK: A move in the middle

    /// A stretch of a recorder must not end over half an edit, or a journal that is laid in part.
    /// - Returns: whether an edit under way was taken out.
    func makeWholeBeforeAMove() -> Bool {
        let recording = recorders.filter { !$0.isPaused }
        if recording.isEmpty { return false }
        if isRecorded { return takeOutEditUnderWay() }
        if recording.contains(where: { $0.count > 0 }) { replay(holdsBack: true) }
        return false
    }

    /// Takes the edit under way out of the journal, before its observer moves the context: it is an
    /// edit of the commit behind the move, and who records has to know how things were without it.
    /// What that shows then is as if the observer had been first.
    /// - Returns: whether there is one: then `putBack` belongs behind the move.
    func takeOutEditUnderWay() -> Bool {
        guard evaluators > 0, !has(.movesSplitEdits) else { return false }
        var all: Set<ObjectID> = []
        if journal.deletes {
            replay(holdsBack: true)
            all = Set(doomed.keys)
        }
        if !journal.takeBegun() { return false }
        graphVersion += 1
        replay(holdsBack: true)
        // What it had deleted is recorded behind the move.
        doomedBefore.formIntersection(doomed.keys)
        doomedAside = all.subtracting(doomed.keys)
        return true
    }

    /// Puts it back, but for what others have deleted as well. Who submitted it lays the journal.
    /// - Parameter start: the count of withdrawals before: after another one it is given up.
    func putBack(since start: Int) {
        let taken = journal.takeFromAside()
        doomedAside = []
        if taken.isEmpty || withdrawals != start { return }
        recordJournal()
        _ = journal.begin()
        for intent in taken { journal.append(intent) }
        forgetWhatOthersDeletedToo()
        recordAllEdits()
    }
}
