// Runs about what a model says beyond types: how many objects a relationship leads to.
//
// A world of its own, so that the runs of the other ones stay as they are.

import VarveObjects
import VarveTesting

extension ModelRelation {
    /// Those with a count.
    static let counted: [ModelRelation] = [
        .init(name: "host", owner: "A", target: "B", inverse: "guests"),
        .init(
            name: "guests",
            owner: "B",
            target: "A",
            isMany: true,
            inverse: "host",
            count: { $0 != 1 }
        ),
        .init(name: "leader", owner: "A", target: "B", inverse: "squad"),
        .init(
            name: "squad",
            owner: "B",
            target: "A",
            isMany: true,
            isOrdered: true,
            rule: .cascade,
            inverse: "leader",
            count: { $0 != 1 }
        ),
        .init(
            name: "pairs",
            owner: "A",
            target: "A",
            isMany: true,
            inverse: "pairedBy",
            count: { $0 <= 2 }
        ),
        .init(
            name: "pairedBy",
            owner: "A",
            target: "A",
            isMany: true,
            inverse: "pairs",
            count: { $0 != 1 }
        ),
        .init(name: "trio", owner: "A", target: "B", isMany: true, count: { $0 != 1 }),
    ]
}

extension ModelState {
    /// Relationships that lead to too few or too many.
    var miscounts: [String] {
        objects.sorted { $0.key < $1.key }.flatMap { id, object -> [String] in
            if object.isDead { return [] }
            return ModelRelation.counted.compactMap { relation in
                guard relation.owner == object.kind, let allows = relation.count else { return nil }
                let count = list(id, relation.name).count
                return allows(count) ? nil : "#\(id).\(relation.name) leads to \(count)"
            }
        }
    }
}

/// A world whose relationships have counts.
final class ModellingWorld: GraphWorld {
    override class var pool: [ModelRelation] {
        ModelRelation.counted + ModelRelation.all.filter { ["book", "tags"].contains($0.name) }
    }

    override func step(_ number: UInt64) throws {
        // A share of the steps is what other worlds do not do.
        guard number % 16 == 0, !isOver else { return try super.step(number) }
        var random = SeededRandom(seed: number)
        let editor = editors[Int(random.next() % UInt64(editors.count))]
        try joinByBatch(editor, &random)
        for editor in editors { editor.simplify() }
    }

    /// A batch that sets relationships, from the side that batches set them on.
    private func joinByBatch(_ editor: GraphEditor, _ random: inout SeededRandom) throws {
        let settable = relations.filter { !$0.isMany || $0.back?.isMany != false }
        guard let relation = pick(settable, &random) else { return }
        let owners = newest.living(relation.owner).filter { _ in random.next() % 2 == 0 }.prefix(3)
        let targets = newest.living(relation.target).shuffled(using: &random)
            .prefix(relation.isMany ? Int(random.next() % 4) : 1)
        guard !owners.isEmpty, relation.isMany || !targets.isEmpty else { return }
        let wanted = random.next() % 4 == 0 ? [] : Array(targets)
        note(
            "\(index(editor)): batch: \(owners.map(name)).\(relation.name) = \(wanted.map(name))"
        )
        var after = newest
        for id in owners { after.lead(id, relation, to: wanted) }
        let result: BatchResult
        do {
            let (owners, wanted) = (owners.map { ids[$0] }, wanted.map { ids[$0] })
            result = try join(editor.context, relation, owners, wanted)
        } catch let error as StoreError where error.code == .invalid {
            if after.miscounts.isEmpty { throw fail("a batch without a cause: \(error)") }
            return note("   throws \(error.code)")
        }
        if !after.miscounts.isEmpty { throw fail("a batch passed over \(after.miscounts)") }
        if result.commit == nil {
            try expect(after.sameAs(newest), true, "a batch without a commit")
        } else {
            try committed(after)
        }
        moved(editor)
    }

    private func join(
        _ context: ManagedObjectContext,
        _ relation: ModelRelation,
        _ owners: [ManagedObjectID],
        _ targets: [ManagedObjectID]
    ) throws -> BatchResult {
        let reader = container.newContext()
        func typed<Entity: ManagedObject>(_ ids: [ManagedObjectID]) -> [TypedObjectID<Entity>] {
            ids.compactMap { ((try? reader.existingObject(with: $0)) as? Entity)?.id }
        }
        if relation.owner == "B" {
            return try context.batchUpdate(typed(owners) as [Beta.ID]) { row in
                switch relation.name {
                case "tagged": row.tagged = typed(targets)
                default: break
                }
            }
        }
        return try context.batchUpdate(typed(owners) as [Alpha.ID]) { row in
            switch relation.name {
            case "host": row.host = (typed(targets) as [Beta.ID]).first
            case "leader": row.leader = (typed(targets) as [Beta.ID]).first
            case "book": row.book = (typed(targets) as [Beta.ID]).first
            case "pairs": row.pairs = typed(targets)
            case "pairedBy": row.pairedBy = typed(targets)
            case "trio": row.trio = typed(targets)
            case "tags": row.tags = typed(targets)
            default: break
            }
        }
    }

    private func pick<Value>(_ values: [Value], _ random: inout SeededRandom) -> Value? {
        values.isEmpty ? nil : values[Int(random.next() % UInt64(values.count))]
    }
}

extension ModelState {
    /// Makes a relationship lead to these.
    fileprivate mutating func lead(_ id: Int, _ relation: ModelRelation, to wanted: [Int]) {
        guard relation.isMany else { return apply(.relate(id, relation.name, wanted.first)) }
        for member in list(id, relation.name) where !wanted.contains(member) {
            apply(.unlink(id, relation.name, member))
        }
        for member in wanted where !list(id, relation.name).contains(member) {
            apply(.link(id, relation.name, member, nil))
        }
    }
}
