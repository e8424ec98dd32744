// What a save deletes because others' commits had put it in the reach of a deletion. No step took
// it down when the deletion was made; the step that made it learns of it when it is saved, so that
// its undo brings all of it back.
//
// Invariants
// - What is learned are the rows beneath the commit, and what of their relationships the commit
//   itself took away: what others did behind it is theirs.
// - A new object is learned only by a step behind the one that made it: what a step both made and
//   lost is nothing.

import VarveBase
import VarveRecords

/// What the cascades of a save reached.
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
    /// What cascades reach that are about to be written; nil: there are none, or no step to learn
    /// of them. Call it with the writer lock held.
    func reachedDeletions(
        _ plan: SavePlan,
        _ changes: ChangeSet
    ) throws(StoreError) -> ReachedDeletions? {
        guard undoSteps != nil else { return nil }
        let owners = plan.graph?.reachedBy ?? reachedBy
        if owners.isEmpty { return nil }
        let all = plan.graph?.doomed ?? deletions.compactMap { id in doomed[id].map { ($0, id) } }
        let phantoms = changes.inserted.filter { changes.phantoms.contains($0.storage.object) }
        return ReachedDeletions(
            before: try newestSnapshot(),
            objects: all.filter { owners[$0.id] != nil },
            reachedBy: owners,
            new: Dictionary(uniqueKeysWithValues: phantoms.map { ($0.storage.object, $0) })
        )
    }

    /// Tells the steps that made the deletions. Call it while edits and rows are as before the
    /// save.
    /// - Parameter newest: the save, or a later commit.
    func learn(_ reached: ReachedDeletions, _ newest: RecordSnapshot) throws(StoreError) {
        guard let steps = undoSteps, !has(.undoForgetsWhatWasReached) else { return }
        let ids = Set(reached.objects.map(\.id))
        for object in reached.objects {
            guard let place = steps.placeOfDeletion(of: object.id, reached) else { continue }
            if let new = reached.new[object.id] {
                steps.learn(delta(of: new), at: place)
                continue
            }
            var maker = CommitDelta(self, before: reached.before, after: newest)
            steps.learn(
                try maker.make(ofDeletion: object.id, object.model, with: ids),
                at: place
            )
        }
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
                lists: lists
            )
        ]
        return delta
    }
}

extension UndoSteps {
    /// Where the deletion was made that came to an object: a step and a delta of it. Nil: the
    /// object's own deletion was taken down, or a later step made it, or no step is left.
    /// - Complexity: O(items of the steps).
    fileprivate func placeOfDeletion(
        of id: ObjectID,
        _ reached: ReachedDeletions
    ) -> (step: Int, delta: Int)? {
        var owners: Set<ObjectID> = []
        var next = reached.reachedBy[id]
        while let owner = next, owners.insert(owner).inserted { next = reached.reachedBy[owner] }
        for (step, made) in done.enumerated().reversed() {
            for (delta, part) in made.deltas.enumerated().reversed() {
                if part.items.contains(where: { $0.id == id && ($0.existed != $0.exists) }) {
                    return nil
                }
                if part.items.contains(where: { owners.contains($0.id) && !$0.exists }) {
                    return (step, delta)
                }
            }
        }
        return nil
    }
}

extension GraphDelta {
    /// Takes in what a deletion reached. What is known already stays as it is.
    mutating func learn(_ other: GraphDelta) {
        for item in other.items {
            guard let place = items.firstIndex(where: { $0.id == item.id }) else {
                items.append(item)
                continue
            }
            if items[place].existed { items[place] = items[place].learning(item) }
        }
        blobs.merge(other.blobs) { known, _ in known }
    }
}

extension GraphDelta.Item {
    fileprivate func learning(_ other: Self) -> Self {
        let slots = Set(values.map(\.slot))
        return Self(
            model: model,
            id: id,
            existed: existed,
            exists: exists && other.exists,
            wasSaved: wasSaved,
            object: object ?? other.object,
            values: values + other.values.filter { !slots.contains($0.slot) },
            lists: lists.map { list in
                other.lists.first { $0.slot == list.slot }.map(list.learning) ?? list
            } + other.lists.filter { list in !lists.contains { $0.slot == list.slot } }
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
