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

    /// What others linked.
    private var links: [Link] = []
    /// How often was saved, and how often before each step was made, by its place.
    private var saves = 0
    private var savesBefore: [Int: Int] = [:]

    override func step(_ number: UInt64) throws {
        guard number % 6 == 0 else {
            try super.step(number)
            // What was taken away here, and perhaps given back, is no link of others any more.
            links = try links.filter(holds)
            return
        }
        var random = SeededRandom(seed: number)
        if random.next() % 3 == 0 { try reach(&random) } else { try link(&random) }
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

    override func beginUndo() throws { links = try links.filter(holds) }

    override func checkOthers(_ what: String) throws {
        // Edits that were never saved are made once more, over all that is there now.
        if what == "a redo", savesBefore[place] == saves { links = try links.filter(holds) }
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

    // MARK: Steps

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
        try sameValues(try shown(), edited)
        try resetSteps(try shown())
    }

    private func makeChild(of parent: Alpha) -> Alpha {
        context.withUndoGroup("child") {
            let new = Alpha(in: context)
            new.number = 7
            new.parent = parent
            return new
        }
    }

    private func sameValues(_ now: ShownGraph, _ expected: ShownGraph) throws {
        if now.objects.mapValues(\.values) != expected.objects.mapValues(\.values) {
            throw Violation("reach: \(expected.difference(now))")
        }
    }
}
