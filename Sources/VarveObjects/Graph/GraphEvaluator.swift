// THE EVALUATOR. What an intent does to a graph of objects: inverses, partners, delete rules.
//
// Invariants
// - The only code that knows what linking and deleting mean. A context that shows its edits, one
//   that moves to a newer commit, and a save in its transaction all come through here.
// - Both sides of a relationship agree after each intent, if they did before.
// - An intent about an object that does not exist in this graph does nothing; one that leads to
//   such an object leads nowhere, and that is noted.
//
// The rules in plain words: docs/Architecture.md, "Edits".

import VarveBase
import VarveRecords

extension GraphState {
    /// Applies one intent.
    func apply(_ intent: Intent) throws(StoreError) {
        switch intent {
        case .relate(let model, let id, let slot, let target):
            try relate(model, id, slot, to: target)
        case .link(let model, let id, let slot, let member, let place):
            try link(model, id, slot, member, place)
        case .unlink(let model, let id, let slot, let member):
            try unlink(model, id, slot, member)
        case .arrange(let model, let id, let slot, let ids):
            try arrange(model, id, slot, ids)
        case .delete(let model, let id):
            try delete(model, id)
        }
    }

    /// Whether an object is there to be edited. What this journal deletes is no loss.
    private func isHome(
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) throws(StoreError) -> Bool {
        if try isAlive(id, model) { return true }
        if !isDoomed(id) { noteLost(id, model, slot) }
        return false
    }

    // MARK: To-one

    /// A to-one relationship leads to `target`. Its inverse follows; of a one-to-one, the earlier
    /// partners of both are free.
    private func relate(
        _ model: EntityModel,
        _ id: ObjectID,
        _ slot: Int,
        to wanted: ObjectID?
    ) throws(StoreError) {
        guard let relationship = model.properties[slot].relationship,
            let far = schema.entity(relationship.target), try isHome(id, model, slot)
        else { return }
        forgetLost(id, slot, nil)
        var target = wanted
        if let wanted, try !isAlive(wanted, far), !has(.lostTargetsAreWritten) {
            noteLost(wanted, wantedBy: id, model, slot)
            target = nil
        }
        let old = try reference(id, model, slot)
        if old == target { return }
        try setReference(id, model, slot, target)
        guard let inverse = relationship.inverseSlot else { return }
        if relationship.inverseIsToMany {
            if let old { try remove(id, old, far, inverse) }
            if let target { try add(id, target, far, inverse) }
            return
        }
        if let old, try isAlive(old, far), try reference(old, far, inverse) == id {
            try setReference(old, far, inverse, nil)
        }
        guard let target, !has(.oneSideOfAnInverse) else { return }
        let previous = try reference(target, far, inverse)
        if let previous, previous != id, try isAlive(previous, model),
            try reference(previous, model, slot) == target, !has(.partnersAreNotDisplaced)
        {
            try setReference(previous, model, slot, nil)
        }
        if previous != id { try setReference(target, far, inverse, id) }
    }

    // MARK: To-many

    private func link(
        _ model: EntityModel,
        _ id: ObjectID,
        _ slot: Int,
        _ member: ObjectID,
        _ place: LinkPlace
    ) throws(StoreError) {
        guard let relationship = model.properties[slot].relationship,
            let far = schema.entity(relationship.target), try isHome(id, model, slot)
        else { return }
        guard try isAlive(member, far) else {
            noteLost(member, wantedBy: id, model, slot)
            return
        }
        if try !isMember(member, id, model, slot) {
            if relationship.isKeptByInverse, let inverse = relationship.inverseSlot {
                try relate(far, member, inverse, to: id)
            } else {
                try add(member, id, model, slot)
                if let inverse = relationship.inverseSlot {
                    try add(id, member, far, inverse)
                } else {
                    noteListed(member, by: id, slot)
                }
            }
        }
        guard relationship.isOrdered, case .between = place else { return }
        let known = list(id, slot)
        var start: (members: [ObjectID], base: [ObjectID])?
        if known?.order == nil {
            start = (try members(id, model, slot), try savedMembers(id, model, slot))
        }
        let gone = deletions.count
        try edit(id, model, slot) { (list) in
            if let start { list.startOrder(start.members, over: start.base, gone: gone) }
            list.place(member, place)
            list.dropOrder()
        }
    }

    private func unlink(
        _ model: EntityModel,
        _ id: ObjectID,
        _ slot: Int,
        _ member: ObjectID
    ) throws(StoreError) {
        guard let relationship = model.properties[slot].relationship,
            let far = schema.entity(relationship.target), try isHome(id, model, slot)
        else { return }
        forgetLost(id, slot, member)
        guard try isMember(member, id, model, slot) else { return }
        if relationship.isKeptByInverse, let inverse = relationship.inverseSlot {
            try relate(far, member, inverse, to: nil)
            return
        }
        try remove(member, id, model, slot)
        if let inverse = relationship.inverseSlot { try remove(id, member, far, inverse) }
    }

    private func add(
        _ member: ObjectID,
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) throws(StoreError) {
        try edit(id, model, slot) { (list) throws(StoreError) in
            list.add(member)
            list.dropOrder()
            if list.isOnlyMoved { list.dropMoves(over: try savedMembers(id, model, slot)) }
        }
    }

    private func remove(
        _ member: ObjectID,
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int
    ) throws(StoreError) {
        try edit(id, model, slot) { (list) throws(StoreError) in
            list.remove(member)
            list.dropOrder()
            if list.isOnlyMoved { list.dropMoves(over: try savedMembers(id, model, slot)) }
        }
    }

    /// What others added since the app arranged the list comes after it.
    private func arrange(
        _ model: EntityModel,
        _ id: ObjectID,
        _ slot: Int,
        _ ids: [ObjectID]
    ) throws(StoreError) {
        guard try isHome(id, model, slot) else { return }
        let present = try members(id, model, slot)
        let isPresent = Set(present)
        let isNamed = Set(ids)
        let order = ids.filter { isPresent.contains($0) } + present.filter { !isNamed.contains($0) }
        if order == present { return }
        let base = try savedMembers(id, model, slot)
        let gone = deletions.count
        try edit(id, model, slot) { (list) in
            list.arrange(order, over: base, gone: gone)
            list.dropOrder()
        }
    }

    // MARK: Deleting

    /// Deletes an object and what its cascades reach; whoever stays forgets them. `deny` is judged
    /// at the end of the journal (`denials`), so that both sides may be deleted.
    private func delete(_ model: EntityModel, _ id: ObjectID) throws(StoreError) {
        guard try isAlive(id, model) else { return }
        var doomed: [(model: EntityModel, id: ObjectID)] = [(model, id)]
        try doom(id, model, by: nil)
        var next = 0
        while next < doomed.count {
            // Nothing is doomed any more, and a circle of cascades would have no end.
            if isInterrupted { return }
            let (model, id) = doomed[next]
            next += 1
            if next > 1, has(.cascadeStopsAtTheFirstLevel) { continue }
            for slot in model.cascadeSlots {
                guard let relationship = model.properties[slot].relationship,
                    let far = schema.entity(relationship.target)
                else { continue }
                for target in try targets(model, id, slot) where try isAlive(target, far) {
                    try doom(target, far, by: id)
                    doomed.append((far, target))
                }
            }
        }
        for (model, id) in doomed { try detach(model, id) }
    }

    /// The objects that a relationship leads to.
    func targets(
        _ model: EntityModel,
        _ id: ObjectID,
        _ slot: Int
    ) throws(StoreError) -> [ObjectID] {
        if model.properties[slot].relationship?.isToMany == true {
            return try members(id, model, slot)
        }
        return try reference(id, model, slot).map { [$0] } ?? []
    }

    /// Whoever stays forgets a deleted object. Rows that link it go with it, whatever the rule:
    /// only a column can keep a reference to what is gone (`noAction`), and none keeps one to what
    /// never was in a commit.
    private func detach(_ model: EntityModel, _ id: ObjectID) throws(StoreError) {
        for slot in model.relationshipSlots {
            guard let relationship = model.properties[slot].relationship,
                let inverse = relationship.inverseSlot,
                let far = schema.entity(relationship.target)
            else { continue }
            if relationship.inverseIsToMany, !relationship.isToMany {
                if let target = try reference(id, model, slot), try isAlive(target, far) {
                    try remove(id, target, far, inverse)
                }
                continue
            }
            if relationship.inverseIsToMany {
                for target in try targets(model, id, slot) where try isAlive(target, far) {
                    try remove(id, target, far, inverse)
                }
                continue
            }
            // A denied deletion is not saved.
            if relationship.rule == .noAction || relationship.rule == .deny, !isUnsaved(id) {
                continue
            }
            for target in try targets(model, id, slot) where try isAlive(target, far) {
                guard try reference(target, far, inverse) == id else { continue }
                try setReference(target, far, inverse, nil)
            }
        }
        for (owner, slot) in schema.incoming(model.record.id) {
            if owner.properties[slot].relationship?.rule == .noAction, !isUnsaved(id) { continue }
            for other in try referring(owner, slot, to: id) where try isAlive(other, owner) {
                guard try reference(other, owner, slot) == id else { continue }
                try setReference(other, owner, slot, nil)
            }
        }
    }

    /// The relationships with the rule `deny` by which deleted objects lead to living ones.
    func denials(
        of doomed: some Sequence<(model: EntityModel, id: ObjectID)>
    ) throws(StoreError) -> [Denial] {
        if has(.denialsAreForgotten) { return [] }
        var denials: [Denial] = []
        for (model, id) in doomed {
            for slot in model.relationshipSlots {
                guard let relationship = model.properties[slot].relationship,
                    relationship.rule == .deny, let far = schema.entity(relationship.target)
                else { continue }
                for target in try targets(model, id, slot) where try isAlive(target, far) {
                    denials.append(
                        Denial(model: model, owner: id, slot: slot, far: far, target: target)
                    )
                    break
                }
            }
        }
        return denials
    }
}

/// A deletion that a rule forbids.
struct Denial {
    let model: EntityModel
    let owner: ObjectID
    let slot: Int
    let far: EntityModel
    let target: ObjectID
}
