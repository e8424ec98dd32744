// Runs in which others put objects in the reach of a deletion that is not saved, and take them out.
//
// A world of its own, so that the runs of the other ones stay as they are.

import VarveObjects
import VarveTesting

/// A world of cascades that others' commits widen and narrow.
final class ReachWorld: GraphWorld {
    override class var pool: [ModelRelation] {
        [
            "parent", "children", "tags", "book", "next", "owned", "part", "playlist", "loose",
            "guardian", "guarded", "patron", "stale",
        ].compactMap { ModelRelation.named[$0] }
    }

    override func step(_ number: UInt64) throws {
        guard number % 8 == 0, !isOver else { return try super.step(number) }
        var random = SeededRandom(seed: number)
        let editor = editors[Int(random.next() % UInt64(editors.count))]
        try reach(editor, &random)
        for editor in editors { editor.simplify() }
    }

    private func reach(_ editor: GraphEditor, _ random: inout SeededRandom) throws {
        if random.next() % 2 == 0 { try advance(editor) }
        func isStored(_ id: Int) -> Bool {
            newest.isAlive(id) && editor.base.isAlive(id) && alive(editor).contains(id)
        }
        let candidates = newest.living("A").filter(isStored)
        guard let root = pick(candidates, &random),
            let branch = pick(candidates.filter { $0 != root }, &random)
        else { return }
        let value = Int(random.next() % 8)
        let sets = random.next() % 2 == 0
        if sets { try set(editor, branch, try object(branch, editor), number: value) }
        if random.next() % 2 == 0 { try insert(below: branch, editor) }
        note("\(index(editor)): delete \(name(root))")
        editor.context.delete(try alpha(root, editor))
        editor.marked.append(root)
        if random.next() % 2 == 0 {
            editor.context.processPendingChanges()
            editor.process()
            // What comes behind the deletion leads to what is gone then, and is not reached.
            if editor.shown.isAlive(branch), random.next() % 4 == 0 {
                try insert(below: branch, editor)
            }
        }
        try move(branch, below: root)
        if random.next() % 4 > 0 { try advance(editor) }
        try compare(editor)
        switch random.next() % 5 {
        case 0...1:
            try move(branch, below: nil)
            if random.next() % 4 > 0 { try advance(editor) }
            try compare(editor)
        case 2:
            // Somebody else deletes the same.
            try delete(random.next() % 2 == 0 ? root : branch)
            if random.next() % 4 > 0 { try advance(editor) }
            try compare(editor)
        default: break
        }
        if random.next() % 2 == 0 { try save(editor, &random) }
    }

    private func alpha(_ id: Int, _ editor: GraphEditor) throws -> Alpha {
        guard let alpha = try object(id, editor) as? Alpha else {
            throw fail("\(name(id)) is no Alpha")
        }
        return alpha
    }

    private func insert(below id: Int, _ editor: GraphEditor) throws {
        let new = Alpha(in: editor.context)
        let number = number(new.objectID)
        editor.held[number] = new
        editor.append(.insert(number, "A"))
        note("\(index(editor)): \(name(number)) = Alpha, its parent is \(name(id))")
        new.parent = try alpha(id, editor)
        editor.append(.relate(number, "parent", id))
    }

    /// Another context gives an object another parent.
    private func move(_ id: Int, below parent: Int?) throws {
        guard newest.isAlive(id), parent.map(newest.isAlive) ?? true else { return }
        note("another one: \(name(id)).parent = \(parent.map(name) ?? "nil")")
        let context = container.newContext()
        let object = try context.existingObject(with: ids[id]) as? Alpha
        object?.parent = try parent.flatMap { try context.existingObject(with: ids[$0]) as? Alpha }
        guard try context.save().commit != nil else { return }
        var after = newest
        after.apply(.relate(id, "parent", parent))
        after.settle()
        try committed(after)
    }

    /// Another context deletes an object with all that its cascades reach.
    private func delete(_ id: Int) throws {
        guard newest.isAlive(id) else { return }
        var after = newest
        after.apply(.delete(id))
        if after.isDenied { return }
        note("another one: delete \(name(id))")
        let context = container.newContext()
        guard let object = try context.existingObject(with: ids[id]) as? Alpha else { return }
        context.delete(object)
        try context.save()
        after.settle()
        try committed(after)
    }
}
