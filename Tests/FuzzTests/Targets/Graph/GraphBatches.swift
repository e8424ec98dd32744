// Batches of a run, and one that deletes what another one edits.

import VarveInspection
import VarveObjects
import VarveTesting

extension GraphWorld {
    func batch(_ editor: GraphEditor, _ random: inout SeededRandom) throws {
        let context = editor.context
        let limit = Int(random.next() % 8)
        var after = newest
        var result = BatchResult?.none
        switch random.next() % 4 {
        case 0:
            note("\(index(editor)): batch: numbers below \(limit) of Alpha become 7")
            result = try context.batchUpdate(Alpha.where { $0.number < limit }) { $0.number = 7 }
            for id in after.living("A") where after.objects[id]?.number ?? 0 < limit {
                after.set(id) { $0.number = 7 }
            }
        case 1:
            guard let id = pick(after.living, &random) else { return }
            note("\(index(editor)): batch: delete \(name(id))")
            result = try delete(id, context, &after)
        default:
            note("\(index(editor)): batch: a new Alpha")
            var id: Alpha.ID?
            result = try context.batchInsert(Alpha.self, count: 1) { row, _ in
                row.number = limit
                id = row.id
            }
            guard let id else { throw fail("a batch gave no ID") }
            var object = ModelState.Object(kind: "A")
            object.number = limit
            after.add(self.number(id.objectID), object)
        }
        if result?.commit == nil {
            let isSame = after.sameAs(newest)
            try expect(isSame, true, "a batch without a commit changes nothing")
        } else {
            try committed(after)
        }
        // A batch takes its own context along. One that was denied does not.
        if result != nil { moved(editor) }
    }

    private func delete(
        _ id: Int,
        _ context: ManagedObjectContext,
        _ after: inout ModelState
    ) throws -> BatchResult? {
        after.apply(.delete(id))
        do {
            let result =
                newest.objects[id]?.kind == "A"
                ? try context.batchDelete([try typed(Alpha.self, id)])
                : try context.batchDelete([try typed(Beta.self, id)])
            if after.isDenied { throw fail("a batch passed over deny") }
            return result
        } catch let error as StoreError {
            let isExpected =
                error.code == .deleteDenied && after.isDenied
                || error.code == .invalid && !after.miscounts.isEmpty
            guard isExpected else { throw error }
            after = newest
            return nil
        }
    }

    /// One edits what another one deletes, and saves.
    func meet(_ editor: GraphEditor, _ random: inout SeededRandom) throws {
        if random.next() % 2 == 0 { try advance(editor) }
        let stored = newest.living
        guard let id = pick(alive(editor).filter(stored.contains), &random) else { return }
        try set(editor, id, try object(id, editor), number: Int(random.next() % 8))
        note("another one deletes \(name(id))")
        var after = newest
        if try delete(id, container.newContext(), &after)?.commit != nil {
            after.settle()
            try committed(after)
        }
        try save(editor, &random, policy: Int(random.next() % 5))
    }

    private func typed<Entity: ManagedObject>(
        _ type: Entity.Type,
        _ id: Int
    ) throws -> TypedObjectID<Entity> {
        let context = container.newContext()
        guard let object = try context.existingObject(with: ids[id]) as? Entity else {
            throw fail("\(name(id)) is not stored")
        }
        return object.id
    }
}
