// What a save deletes, and no step knows as it is: others' commits had put it in the reach of a
// deletion, or changed it, behind the moment when the deletion was taken down. The step that made
// the deletion learns of it when it is saved, so that its undo brings back what was there.
//
// Invariants
// - What is learned are the rows beneath the commit, and what of their relationships the commit
//   itself took away: what others did behind it is theirs.
// - A new object is learned only by a step behind the one that made it: what a step both made and
//   lost is nothing.
// - Where nobody has saved since the deletion was taken down, nothing is looked at.

import VarveBase
import VarveRecords

/// What a save deletes.
struct ReachedDeletions {
    /// The newest commit before the save.
    let before: RecordSnapshot
    let objects: [(model: EntityModel, id: ObjectID)]
    /// From which object the cascade came to another one.
    let reachedBy: [ObjectID: ObjectID]
    /// Those of them that were new.
    let new: [ObjectID: any ManagedObject]
}

extension ManagedObjectContext {
    /// What is about to be deleted; nil: nothing, or no step has to learn of it. Call it with the
    /// writer lock held.
    func reachedDeletions(
        _ plan: SavePlan,
        _ changes: ChangeSet
    ) throws(StoreError) -> ReachedDeletions? {
        guard let steps = undoSteps else { return nil }
        let all = plan.graph?.doomed ?? deletions.compactMap { id in doomed[id].map { ($0, id) } }
        if all.isEmpty { return nil }
        let before = try newestSnapshot()
        // What is recorded still is of the context's commit.
        guard commit != before.number || steps.hasDeletion(before: before.number) else {
            return nil
        }
        let phantoms = changes.inserted.filter { changes.phantoms.contains($0.storage.object) }
        return ReachedDeletions(
            before: before,
            objects: all,
            reachedBy: plan.graph?.reachedBy ?? reachedBy,
            new: Dictionary(uniqueKeysWithValues: phantoms.map { ($0.storage.object, $0) })
        )
    }

    /// Tells steps what a save did beyond them.
    func learn(_ reached: ReachedDeletions?, _ plan: SavePlan) {
        if let reached { learn(reached) }
        learnLinks(of: plan)
    }

    /// Tells the steps that made the deletions. What cannot be read now is not brought back by an
    /// undo, and reported; the save stands all the same.
    func learn(_ reached: ReachedDeletions) {
        do throws(StoreError) { try learn(reached, newestSnapshot()) } catch {
            container.report(ReadFailure(object: nil, error: error))
        }
    }

    /// Tells the steps that made the deletions. Call it while edits and rows are as before the
    /// save.
    /// - Parameter newest: the save, or a later commit.
    /// - Complexity: O(items of the steps), and for each object what its relationships cost.
    private func learn(
        _ reached: ReachedDeletions,
        _ newest: RecordSnapshot
    ) throws(StoreError) {
        guard let steps = undoSteps, !has(.undoForgetsWhatWasReached) else { return }
        let ids = Set(reached.objects.map(\.id))
        let edited = Set(journal.intents.compactMap(\.subject))
        let places = steps.placesOfDeletions()
        var learned: [UndoSteps.Place: GraphDelta] = [:]
        var maker = CommitDelta(self, before: reached.before, after: newest)
        for (model, id) in reached.objects {
            guard let place = places.place(of: id, reached.reachedBy),
                steps.commit(of: place) != reached.before.number
            else { continue }
            if let new = reached.new[id] {
                if places.deleted[id] == nil {
                    learned[place, default: GraphDelta()].add(delta(of: new))
                }
                continue
            }
            learned[place, default: GraphDelta()].add(
                try maker.make(
                    ofDeletion: id,
                    model,
                    by: reached.reachedBy[id],
                    // What led to it was taken down with its own deletion.
                    findsLinks: places.deleted[id] != place,
                    with: ids,
                    but: edited
                )
            )
        }
        for (place, delta) in learned { steps.learn(delta, at: place) }
    }

    /// A new object that ends, as a deletion.
    private func delta(of object: any ManagedObject) -> GraphDelta {
        let (model, id) = (object.storage.model, object.storage.object)
        var delta = GraphDelta()
        var values: [GraphDelta.Value] = []
        for (slot, property) in model.properties.enumerated()
        where property.column != nil && property.derive == nil {
            let value = object.storage.edits?.values[slot] ?? .null
            if case .blob(let reference) = value { delta.blobs[reference] = blob(for: reference) }
            let last: StoredValue = property.relationship == nil ? .null : value
            values.append(GraphDelta.Value(slot: slot, before: value, after: last))
        }
        let lists = model.relationshipSlots.compactMap { slot -> GraphDelta.List? in
            guard let relationship = model.properties[slot].relationship, relationship.isRecorded,
                let members = try? linkedMembers(of: object, slot: slot)
            else { return nil }
            return GraphDelta.List.between(
                members,
                members,
                slot,
                hidden: [],
                isOrdered: relationship.isOrdered,
                isWhole: true
            )
        }
        delta.items = [
            GraphDelta.Item(
                model: model,
                id: id,
                existed: true,
                exists: false,
                wasSaved: object.storage.state.contains(.returned),
                object: object,
                values: values,
                lists: lists,
                unset: EditRecorder.unset(object)
            )
        ]
        return delta
    }
}

/// Where objects came and went in the steps that can be undone: the newest places.
struct DeletionPlaces {
    fileprivate(set) var deleted: [ObjectID: UndoSteps.Place] = [:]
    fileprivate(set) var made: [ObjectID: UndoSteps.Place] = [:]

    /// Where the deletion was made that came to an object: its own, or that of the object from
    /// which a cascade came to it. Nil: a later step made it, or no step is left.
    fileprivate func place(
        of id: ObjectID,
        _ reachedBy: [ObjectID: ObjectID]
    ) -> UndoSteps.Place? {
        let own = made[id]
        func found(_ place: UndoSteps.Place?) -> UndoSteps.Place? {
            guard let place, own.map({ $0 < place }) ?? true else { return nil }
            return place
        }
        if let place = found(deleted[id]) { return place }
        var seen: Set<ObjectID> = []
        var next = reachedBy[id]
        while let owner = next, seen.insert(owner).inserted {
            if let place = deleted[owner] { return found(place) }
            next = reachedBy[owner]
        }
        return nil
    }
}

extension UndoSteps {
    struct Place: Hashable, Comparable {
        let step: Int
        let delta: Int

        static func < (left: Self, right: Self) -> Bool {
            (left.step, left.delta) < (right.step, right.delta)
        }
    }

    /// Whether a deletion was taken down over an earlier commit.
    fileprivate func hasDeletion(before commit: CommitNumber) -> Bool {
        func isEarlier(_ delta: GraphDelta) -> Bool {
            delta.commit != commit && delta.items.contains { $0.existed && !$0.exists }
        }
        return recorder.stretches.contains(where: isEarlier)
            || done.contains { $0.deltas.contains(where: isEarlier) }
    }

    fileprivate func placesOfDeletions() -> DeletionPlaces {
        var places = DeletionPlaces()
        // Behind the steps, what a save inside of a group has not ended.
        for (step, deltas) in (done.map(\.deltas) + [recorder.stretches]).enumerated() {
            for (delta, part) in deltas.enumerated() {
                let place = Place(step: step, delta: delta)
                for item in part.items where item.existed != item.exists {
                    if item.exists {
                        places.made[item.id] = place
                    } else {
                        places.deleted[item.id] = place
                    }
                }
            }
        }
        return places
    }

    fileprivate func commit(of place: Place) -> CommitNumber? {
        place.step < done.count
            ? done[place.step].deltas[place.delta].commit
            : recorder.stretches[place.delta].commit
    }
}

extension GraphDelta {
    /// Adds the items of another one; `learn` joins those of one object.
    fileprivate mutating func add(_ other: GraphDelta) {
        items += other.items
        blobs.merge(other.blobs) { known, _ in known }
    }

    /// Takes in what a deletion did. What is known already stays as it is, but for what others
    /// changed of an object that is deleted in it.
    /// - Complexity: O(items of both).
    mutating func learn(_ other: GraphDelta) {
        var places: [ObjectID: Int] = [:]
        for (place, item) in items.enumerated() { places[item.id] = place }
        for item in other.items {
            guard let place = places[item.id] else {
                places[item.id] = items.count
                items.append(item)
                continue
            }
            let known = items[place]
            if !known.existed { continue }
            items[place] =
                known.exists || item.exists ? known.learning(item) : known.refreshed(by: item)
        }
        blobs.merge(other.blobs) { known, _ in known }
    }
}

extension GraphDelta.Item {
    /// The same of an object that was edited, or led to others, and what of it was deleted then.
    fileprivate func learning(_ other: Self) -> Self {
        let slots = Set(values.map(\.slot))
        return with(
            other,
            values + other.values.filter { !slots.contains($0.slot) },
            lists.map { list in
                other.lists.first { $0.slot == list.slot }.map(list.learning) ?? list
            } + other.lists.filter { list in !lists.contains { $0.slot == list.slot } }
        )
    }

    /// The same of a deleted object, with what others had changed of it by the time it went.
    fileprivate func refreshed(by other: Self) -> Self {
        with(
            other,
            values.map { value in
                guard value.wasStored else { return value }
                return other.values.first { $0.slot == value.slot } ?? value
            },
            lists.map { list in
                guard list.wasStored else { return list }
                return other.lists.first { $0.slot == list.slot } ?? list
            } + other.lists.filter { list in !lists.contains { $0.slot == list.slot } }
        )
    }

    private func with(
        _ other: Self,
        _ values: [GraphDelta.Value],
        _ lists: [GraphDelta.List]
    ) -> Self {
        Self(
            model: model,
            id: id,
            existed: existed,
            exists: exists && other.exists,
            wasSaved: wasSaved,
            reachedBy: reachedBy ?? other.reachedBy,
            object: object ?? other.object,
            values: values,
            lists: lists
        )
    }
}

extension GraphDelta.List {
    fileprivate func learning(_ other: Self) -> Self {
        let known = Set(removed).union(added)
        return Self(
            slot: slot,
            removed: removed + other.removed.filter { !known.contains($0) },
            added: added,
            members: members,
            leavesOrder: leavesOrder
        )
    }
}
