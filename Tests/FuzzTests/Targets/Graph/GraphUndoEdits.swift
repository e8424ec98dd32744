// The random edits of runs of undo, redo, transactions and branches.

import VarveObjects
import VarveTesting

/// A world of random edits.
protocol EditingWorld: FuzzedWorld {
    var access: GraphAccess { get }
    /// The relationships of the run.
    var relations: [ModelRelation] { get }
    func note(_ line: @autoclosure () -> String)
    func name(_ object: any ManagedObject) -> String
    /// Keeps an object alive, if the world wants that.
    func keep(_ object: any ManagedObject, of context: ManagedObjectContext)
    /// A unique value for an object.
    func makeCode(_ random: inout SeededRandom) -> String?
}

extension EditingWorld {
    private func pick(
        _ context: ManagedObjectContext,
        _ kind: Character,
        _ random: inout SeededRandom
    ) throws -> (any ManagedObject)? {
        let ids: [ManagedObjectID] =
            kind == "A"
            ? try context.fetchIDs(Alpha.all).map(\.objectID)
            : try context.fetchIDs(Beta.all).map(\.objectID)
        guard !ids.isEmpty else { return nil }
        let object = try context.existingObject(with: ids[Int(random.next() % UInt64(ids.count))])
        if let object { keep(object, of: context) }
        return object
    }

    func edit(_ context: ManagedObjectContext, _ random: inout SeededRandom) throws {
        let kind: Character = random.next() % 2 == 0 ? "A" : "B"
        switch random.next() % 12 {
        case 0...2:
            let object: any ManagedObject = kind == "A" ? Alpha(in: context) : Beta(in: context)
            keep(object, of: context)
            note("   \(name(object)) = new \(kind)")
            if random.next() % 2 == 0 { set(object, Int(random.next() % 8)) }
        case 3...4:
            guard let object = try pick(context, kind, &random) else { return }
            set(object, Int(random.next() % 8))
        case 5: try takeCode(context, kind, &random)
        case 6: try delete(context, kind, &random)
        case 7...8: try relate(context, &random)
        default: try editList(context, &random)
        }
    }

    private func set(_ object: any ManagedObject, _ number: Int) {
        note("   \(name(object)).number = \(number)")
        (object as? Alpha)?.number = number
        (object as? Beta)?.number = number
    }

    private func takeCode(
        _ context: ManagedObjectContext,
        _ kind: Character,
        _ random: inout SeededRandom
    ) throws {
        guard let object = try pick(context, kind, &random) else { return }
        let code = makeCode(&random)
        note("   \(name(object)).code = \(code ?? "nil")")
        (object as? Alpha)?.code = code
        (object as? Beta)?.code = code
    }

    private func delete(
        _ context: ManagedObjectContext,
        _ kind: Character,
        _ random: inout SeededRandom
    ) throws {
        guard let object = try pick(context, kind, &random) else { return }
        note("   delete \(name(object))")
        func open<Entity: ManagedObject>(_ object: Entity) { context.delete(object) }
        open(object)
        if random.next() % 3 == 0 { context.processPendingChanges() }
    }

    private func relate(_ context: ManagedObjectContext, _ random: inout SeededRandom) throws {
        let ones = relations.filter { !$0.isMany }
        guard !ones.isEmpty else { return try editList(context, &random) }
        let relation = ones[Int(random.next() % UInt64(ones.count))]
        guard let object = try pick(context, relation.owner, &random) else { return }
        let target = random.next() % 4 == 0 ? nil : try pick(context, relation.target, &random)
        note("   \(name(object)).\(relation.name) = \(target.map(name) ?? "nil")")
        access.ones[relation.name]?.set(object, target)
    }

    private func editList(_ context: ManagedObjectContext, _ random: inout SeededRandom) throws {
        let lists = relations.filter(\.isMany)
        guard !lists.isEmpty else { return }
        let relation = lists[Int(random.next() % UInt64(lists.count))]
        guard let owner = try pick(context, relation.owner, &random),
            let list = access.lists[relation.name]?(owner)
        else { return }
        switch random.next() % 8 {
        case 0...3:
            guard let member = try pick(context, relation.target, &random) else { return }
            note("   \(name(owner)).\(relation.name) + \(name(member))")
            list.append(member)
        case 4 where relation.isOrdered:
            guard let member = try pick(context, relation.target, &random) else { return }
            let index = Int(random.next() % 5)
            note("   \(name(owner)).\(relation.name) + \(name(member)) at \(index)")
            list.insert(member, index)
        case 5:
            note("   \(name(owner)).\(relation.name) - all")
            list.removeAll()
        case 6:
            var wanted: [any ManagedObject] = []
            for _ in 0..<(random.next() % 4) {
                guard let member = try pick(context, relation.target, &random),
                    !wanted.contains(where: { $0.objectID == member.objectID })
                else { continue }
                wanted.append(member)
            }
            note("   \(name(owner)).\(relation.name) = \(wanted.map(name))")
            list.replaceAll(wanted)
        default:
            let members = list.objects()
            guard !members.isEmpty else { return }
            let member = members[Int(random.next() % UInt64(members.count))]
            note("   \(name(owner)).\(relation.name) - \(name(member))")
            list.remove(member)
        }
    }
}
