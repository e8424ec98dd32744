// Runs in which others link things to what can be undone here, and put objects in the reach of
// deletions that can be undone.
//
// A world of its own, so that the runs of the other ones stay as they are.

import VarveObjects
import VarveTesting

/// A world of undo beside others.
final class SharingWorld: UndoWorld {
    private struct Link: Hashable {
        let relation: String
        let owner: ManagedObjectID
        let target: ManagedObjectID
    }

    private struct Order {
        let relation: String
        let owner: ManagedObjectID
        var members: [ManagedObjectID]
    }

    /// The orders that others gave to lists.
    private var orders: [Order] = []
    /// Lists whose order is not looked at: that others' one stays is checked by itself.
    private var rearranged: Set<[String]> = []
    /// What others linked.
    private var links: [Link] = []
    /// How often was saved, and how often before each step was made, by its place.
    private var saves = 0
    private var savesBefore: [Int: Int] = [:]

    override func step(_ number: UInt64) throws {
        guard number % 6 == 0 else {
            try super.step(number)
            // What was taken away here, and perhaps given back, is no link of others any more.
            try forgetOwn()
            return
        }
        var random = SeededRandom(seed: number)
        switch random.next() % 5 {
        case 0: try reach(&random)
        case 1: try rearrange(&random)
        case 2: try editOwned(&random)
        default: try link(&random)
        }
    }

    /// What others linked is not looked at: that it stays is checked by itself.
    override func shown(_ other: ManagedObjectContext? = nil) throws -> ShownGraph {
        var shown = try super.shown(other)
        for (id, object) in shown.objects {
            var object = object
            for (name, target) in object.ones where foreign.contains(target) {
                object.ones[name] = nil
            }
            for (name, members) in object.lists {
                let known = members.filter { !foreign.contains($0) }
                object.lists[name] = known.isEmpty ? nil : known
                if !known.isEmpty, rearranged.contains([id.uri, name]) {
                    object.lists[name] = known.sorted { $0.uri < $1.uri }
                }
            }
            shown.objects[id] = object
        }
        return shown
    }

    override func save() throws {
        try super.save()
        saves += 1
    }

    override func madeStep() { savesBefore[place] = saves }

    override func beginUndo() throws { try forgetOwn() }

    private func forgetOwn() throws {
        links = try links.filter(holds)
        try forgetOrders()
    }

    private func forgetOrders() throws {
        orders = try orders.filter(holds)
        // Who comes back is put where the step had him.
        for index in orders.indices {
            let present = try members(orders[index]) ?? []
            orders[index].members.removeAll { !present.contains($0) }
        }
    }

    override func checkOthers(_ what: String) throws {
        // Edits that were never saved are made once more, over all that is there now. No deletion
        // among them takes what others linked something to.
        if what == "a redo", savesBefore[place] == saves {
            links = try links.filter { link in
                let isWhole = try [link.owner, link.target].allSatisfy {
                    try context.existingObject(with: $0) != nil
                }
                return try !isWhole || holds(link)
            }
            try forgetOrders()
        }
        orders = try orders.filter { try context.existingObject(with: $0.owner) != nil }
        for order in orders where !(try holds(order)) {
            throw Violation("\(what) changed the order that others gave to \(order.relation)")
        }
        for link in links where !(try holds(link)) {
            throw Violation("\(what) took what others linked as \(link.relation)")
        }
    }

    private func holds(_ link: Link) throws -> Bool {
        guard let owner = try context.existingObject(with: link.owner) else { return false }
        if let one = access.ones[link.relation] {
            return one.get(owner)?.objectID == link.target
        }
        return access.lists[link.relation]?(owner).ids().contains(link.target) ?? false
    }

    /// Nil: its owner is gone.
    private func members(_ order: Order) throws -> [ManagedObjectID]? {
        guard let owner = try context.existingObject(with: order.owner) else { return nil }
        return access.lists[order.relation]?(owner).ids()
    }

    private func holds(_ order: Order) throws -> Bool {
        guard let now = try members(order) else { return true }
        return now.filter(order.members.contains) == order.members.filter(now.contains)
    }

    // MARK: Steps

    /// A step takes a member out of a list, another context gives the list another order.
    private func rearrange(_ random: inout SeededRandom) throws {
        let ordered = relations.filter { $0.isMany && $0.isOrdered }
        guard let relation = ordered.randomElement(using: &random) else { return }
        let all: [any ManagedObject] =
            relation.owner == "A" ? try context.fetch(Alpha.all) : try context.fetch(Beta.all)
        let long = all.filter { access.lists[relation.name]?($0).count() ?? 0 > 2 }
        guard let mine = long.randomElement(using: &random),
            let own = access.lists[relation.name]?(mine),
            let member = own.objects().randomElement(using: &random)
        else { return }
        note("\(name(mine)).\(relation.name) - \(name(member))")
        context.withUndoGroup { own.remove(member) }
        states.removeSubrange((place + 1)...)
        states.append(try shown())
        place += 1
        madeStep()
        try save()
        let other = container.newContext()
        guard place > 0, let owner = try other.existingObject(with: mine.objectID),
            let list = access.lists[relation.name]?(owner)
        else { return }
        list.replaceAll(list.objects().shuffled(using: &random))
        note("another one: \(name(owner)).\(relation.name) = \(list.objects().map(name))")
        let order = Order(relation: relation.name, owner: owner.objectID, members: list.ids())
        try other.save()
        rearranged.insert([owner.objectID.uri, relation.name])
        for index in states.indices { sort(&states[index], owner.objectID, relation.name) }
        sort(&self.stored, owner.objectID, relation.name)
        context.advance()
        orders.removeAll { $0.owner == owner.objectID && $0.relation == relation.name }
        // Own edits of the order stand.
        if try holds(order) { orders.append(order) }
        try expect(states[place], "after a merge")
        if random.next() % 2 == 0 { try undo(1) }
    }

    private func sort(_ shown: inout ShownGraph, _ id: ManagedObjectID, _ name: String) {
        shown.objects[id]?.lists[name]?.sort { $0.uri < $1.uri }
    }

    /// Another context makes an object and links it to one of those that are stored.
    private func link(_ random: inout SeededRandom) throws {
        let other = container.newContext()
        guard let relation = relations.randomElement(using: &random) else { return }
        let isOwner = random.next() % 2 == 0
        let kind = isOwner ? relation.target : relation.owner
        let stored: [any ManagedObject] =
            kind == "A" ? try other.fetch(Alpha.all) : try other.fetch(Beta.all)
        guard let known = stored.randomElement(using: &random) else { return }
        // Nobody's partner is taken away.
        let own = isOwner ? relation.back : relation
        if let own, !own.isMany, access.ones[own.name]?.get(known) != nil { return }
        let newKind = isOwner ? relation.owner : relation.target
        let new: any ManagedObject = newKind == "A" ? Alpha(in: other) : Beta(in: other)
        let (owner, target) = isOwner ? (new, known) : (known, new)
        note("another one: \(name(owner)).\(relation.name) leads to \(name(target))")
        if relation.isMany {
            access.lists[relation.name]?(owner).append(target)
        } else {
            access.ones[relation.name]?.set(owner, target)
        }
        foreign.insert(new.objectID)
        links.append(
            Link(relation: relation.name, owner: owner.objectID, target: target.objectID)
        )
        try other.save()
        context.advance()
        try expect(states[place], "after a merge")
    }

    /// An edit, a deletion that does not reach it, another one that makes it reach it, undo.
    private func reach(_ random: inout SeededRandom) throws {
        try save()
        let all = try context.fetch(Alpha.all)
        guard let root = all.randomElement(using: &random),
            let branch = all.filter({ $0 !== root }).randomElement(using: &random)
        else { return try resetSteps(try shown()) }
        let number = Int(random.next() % 100) + 100
        note("reach: \(name(branch)).number = \(number), delete \(name(root))")
        context.withUndoGroup { branch.number = number }
        let edited = try shown()
        let fresh: Alpha? = random.next() % 2 == 0 ? makeChild(of: branch) : nil
        context.withUndoGroup { context.delete(root) }
        let isReached = branch.isDeleted
        let other = container.newContext()
        try other.object(with: branch.id).parent = try other.object(with: root.id)
        note("another one puts it below that")
        try other.save()
        stored = try shown(container.newContext())
        context.advance()
        if !branch.isDeleted { throw Violation("a cascade does not reach what others put there") }
        if random.next() % 2 == 0 {
            note("another one takes it out again")
            try other.object(with: branch.id).parent = nil
            try other.save()
            stored = try shown(container.newContext())
            context.advance()
        }
        if random.next() % 3 == 0, !isReached, branch.isDeleted {
            return try saveReached(branch, fresh, edited)
        }
        let skipped = try context.undo()
        if !skipped.isEmpty, !isReached { throw Violation("skipped: \(skipped)") }
        if branch.isDeleted || branch.number != number {
            throw Violation("an undo lost the number of \(name(branch)): \(branch.number)")
        }
        if let fresh {
            if fresh.number != 7 || fresh.parent !== branch {
                throw Violation("an undo lost the values of a new object")
            }
            try context.undo()
        }
        try same(try shown(), edited, but: branch.objectID)
        try resetSteps(try shown())
    }

    /// The save deletes what others put in the reach of the deletion; an undo brings it back, with
    /// what was below it.
    private func saveReached(
        _ branch: Alpha,
        _ fresh: Alpha?,
        _ edited: ShownGraph
    ) throws {
        note("save, undo")
        do { try context.save() } catch let error as StoreError {
            guard error.code == .deleteDenied else { throw error }
            context.rollback()
            return try resetSteps(try shown())
        }
        stored = try shown(container.newContext())
        let skipped = try context.undo()
        if !skipped.isEmpty { throw Violation("skipped: \(skipped)") }
        if branch.isDeleted { throw Violation("an undo leaves what a save reached") }
        if let fresh, fresh.isDeleted || fresh.parent !== branch {
            throw Violation("an undo leaves what was new below it")
        }
        if let fresh { context.delete(fresh) }
        context.processPendingChanges()
        try same(try shown(), edited, but: branch.objectID)
        try save()
        try resetSteps(try shown())
    }

    /// A deletion with all below it is undone; others edit something below; it is done again.
    private func editOwned(_ random: inout SeededRandom) throws {
        try save()
        let all = try context.fetch(Alpha.all)
        guard let root = all.randomElement(using: &random),
            let branch = all.filter({ $0 !== root }).randomElement(using: &random)
        else { return try resetSteps(try shown()) }
        note("\(name(branch)) is below \(name(root)), which is deleted")
        context.withUndoGroup { branch.parent = root }
        try save()
        try resetSteps(try shown())
        context.withUndoGroup { context.delete(root) }
        let saves = random.next() % 2 == 0
        if saves { try save() }
        // A denied deletion was rolled back.
        guard context.canUndo else { return }
        note("undo")
        let skipped = try context.undo()
        if !skipped.isEmpty { throw Violation("skipped: \(skipped)") }
        if saves { try save() }
        note("another one gives \(name(branch)) a name")
        let other = container.newContext()
        codes += 1
        try other.object(with: branch.id).name = "edited by others \(codes)"
        renamed.insert(branch.objectID)
        try other.save()
        context.advance()
        let before = try shown()
        note("redo, undo")
        let stays = try context.redo()
        if try context.existingObject(with: branch.objectID) == nil {
            throw Violation("a redo took what others edited")
        }
        _ = try isOver(stays, resets: false)
        try context.undo()
        let now = try shown()
        if now != before { throw Violation("undo of a redo: \(before.difference(now))") }
        stored = try shown(container.newContext())
        try resetSteps(now)
    }

    private func makeChild(of parent: Alpha) -> Alpha {
        context.withUndoGroup("child") {
            let new = Alpha(in: context)
            new.number = 7
            new.parent = parent
            return new
        }
    }

    /// All but the parent that others gave to an object.
    private func same(
        _ now: ShownGraph,
        _ expected: ShownGraph,
        but branch: ManagedObjectID
    ) throws {
        func without(_ shown: ShownGraph) -> ShownGraph {
            var shown = shown
            shown.objects[branch]?.ones["parent"] = nil
            for (id, object) in shown.objects {
                let children = object.lists["children"]?.filter { $0 != branch } ?? []
                shown.objects[id]?.lists["children"] = children.isEmpty ? nil : children
            }
            return shown
        }
        let (expected, now) = (without(expected), without(now))
        if now != expected { throw Violation("reach: \(expected.difference(now))") }
    }
}
