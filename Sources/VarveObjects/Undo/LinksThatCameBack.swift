// What steps learn when a save brings an object back that others had deleted: the relationships of
// it that they edited. They showed nowhere, and only journals told of them.
//
// Invariants
// - A journal says what its moment wanted, over what the object's last row has. The difference
//   between a step's two journals is what the step did.
// - It is learned before the era of the journals ends.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// Tells steps, and a step that is open, what they did to objects that a save brings back.
    /// - Complexity: O(1) without such objects; else O(intents) for each step that edited them.
    func learnLinks(of plan: SavePlan) {
        guard !plan.rulings.revived.isEmpty, let steps = undoSteps, !has(.undoForgetsLinksOfTheGone)
        else { return }
        steps.changeDeltas { delta in
            guard let journals = delta.journals, journals.era == era else { return }
            for object in delta.held where plan.rulings.revived.contains(object.storage.object) {
                var (old, new) = (journals.before, journals.after)
                guard let before = try? wantedLinks(of: object, old.intents),
                    let after = try? wantedLinks(of: object, new.intents)
                else { continue }
                add(to: &delta, object, before, after)
            }
        }
    }

    private func add(
        to delta: inout GraphDelta,
        _ object: any ManagedObject,
        _ before: WantedLinks,
        _ after: WantedLinks
    ) {
        let (model, id) = (object.storage.model, object.storage.object)
        var values: [GraphDelta.Value] = []
        var lists: [GraphDelta.List] = []
        for slot in model.relationshipSlots {
            guard let relationship = model.properties[slot].relationship else { continue }
            if !relationship.isToMany, before.targets[slot] != after.targets[slot] {
                func value(_ target: ObjectID?) -> StoredValue {
                    target.map { .reference($0) } ?? .null
                }
                values.append(
                    GraphDelta.Value(
                        slot: slot,
                        before: value(before.targets[slot]),
                        after: value(after.targets[slot])
                    )
                )
            }
            guard relationship.isRecorded,
                let list = GraphDelta.List.between(
                    before.members[slot] ?? [],
                    after.members[slot] ?? [],
                    slot,
                    hidden: [],
                    isOrdered: relationship.isOrdered,
                    isWhole: false
                )
            else { continue }
            lists.append(list)
        }
        if values.isEmpty, lists.isEmpty { return }
        if let place = delta.items.firstIndex(where: { $0.id == id }) {
            let item = delta.items[place]
            delta.items[place] = item.with(item.values + values, item.lists + lists)
            return
        }
        delta.items.append(
            GraphDelta.Item(
                model: model,
                id: id,
                existed: true,
                exists: true,
                wasSaved: true,
                object: object,
                values: values,
                lists: lists
            )
        )
    }
}
