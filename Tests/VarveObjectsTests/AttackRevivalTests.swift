// Objects that this context and another one deleted, that a third one brings back, and that this
// one deletes, edits or leads to once more.

import Testing
import VarveObjects

@Suite(.verified) struct AttackRevivalTests {
    private typealias Revived = (
        container: PersistentContainer, context: ManagedObjectContext, all: [Node], id: Node.ID
    )

    /// Deleted here and by others, and there again by the policy of a third one. The context that
    /// is returned has moved over all of it, and has another edit that keeps its journal.
    private func revived(_ isHeld: Bool) throws -> Revived {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", "c", in: context)
        func makeX() throws -> Node.ID {
            let node = try nodes("x", in: context)[0]
            node.parent = all[2]
            try context.save()
            return node.id
        }
        let kept = try makeX()
        let reviver = container.newContext()
        try #require(try reviver.existingObject(with: kept)).score = 5
        var held: Node? = try context.existingObject(with: kept)
        #expect(held != nil)
        all[0].next = all[1]
        if let held { context.delete(held) }
        context.processPendingChanges()
        let other = container.newContext()
        other.delete(try #require(try other.existingObject(with: kept)))
        try other.save()
        context.advance()
        #expect(held?.isDeleted == true && context.hasChanges && context.deletedObjects.isEmpty)
        if !isHeld { held = nil }
        try reviver.save(mergePolicy: .objectWinsByProperty)
        context.advance()
        if let held { #expect(!held.isDeleted && held.score == 5) }
        return (container, context, all + (held.map { [$0] } ?? []), kept)
    }

    private func somebodySaves(_ container: PersistentContainer) throws {
        let other = container.newContext()
        try #require(try other.named("c")).score += 1
        try other.save()
    }

    /// How a context comes to know an object again.
    private static let ways = ["held", "id", "fault", "filled", "batch", "list", "prefetch"]

    private func find(_ revived: Revived, _ way: String) throws -> Node {
        let context = revived.context
        switch way {
        case "held": return try #require(revived.all.last)
        case "id": return try #require(try context.existingObject(with: revived.id))
        case "fault":
            return try #require(try context.fetch(Node.where { $0.name == "x" }).first)
        case "filled":
            let request = Node.where { $0.name == "x" }.returningFaults(false)
            return try #require(try context.fetch(request).first)
        case "batch":
            let request = Node.where { $0.name == "x" }.returningFaults(false)
            return try #require(try context.fetchBatched(request, size: 4).first)
        case "prefetch":
            let request = Node.where { $0.name == "c" }.prefetch { $0.children }
            return try #require(try context.fetch(request).first?.children.first)
        default: return try #require(revived.all[2].children.first)
        }
    }

    /// The second deletion is one like any other, whoever saves in between.
    @Test(arguments: ways)
    func theSecondDeletionCounts(_ way: String) throws {
        for step in ["save", "advance", "advance, process", "others save"] {
            let revived = try revived(way == "held")
            let (container, context) = (revived.container, revived.context)
            let x = try find(revived, way)
            #expect(x.score == 5 && x.parent === revived.all[2], "\(way) \(step)")
            context.delete(x)
            if step != "save" {
                if step != "advance" { context.processPendingChanges() }
                try somebodySaves(container)
                if step != "others save" { context.advance() }
                #expect(x.isDeleted && context.deletedObjects.count == 1, "\(way) \(step)")
            }
            try context.save()
            #expect(x.isDeleted && !context.hasChanges, "\(way) \(step)")
            #expect(try storedNames(container) == ["a", "b", "c"], "\(way) \(step)")
            let fresh = container.newContext()
            #expect(try fresh.named("a")?.next?.name == "b", "\(way) \(step)")
            try expectSound(fresh)
            try expectSound(context)
        }
    }

    /// What leads to it is an edit again, and is told when others delete it once more.
    @Test(arguments: ways)
    func whatLeadsToItIsLostLikeAnyOther(_ way: String) throws {
        for movesOn in [false, true] {
            let revived = try revived(way == "held")
            let (container, context) = (revived.container, revived.context)
            let x = try find(revived, way)
            revived.all[0].loose = x
            revived.all[1].picks.append(x)
            let other = container.newContext()
            other.delete(try #require(try other.existingObject(with: revived.id)))
            try other.save()
            if movesOn { context.advance() }
            #expect(code { try context.save() } == .conflict, "\(way) \(movesOn)")
            try context.save(mergePolicy: .objectWinsByProperty)
            #expect(try storedNames(container) == ["a", "b", "c"], "\(way) \(movesOn)")
            let fresh = container.newContext()
            #expect(try fresh.named("a")?.loose == nil, "\(way) \(movesOn)")
            #expect(try fresh.named("a")?.next?.name == "b", "\(way) \(movesOn)")
            try expectSound(fresh)
        }
    }

    /// Edited and deleted by others once more: a conflict, as for any other object.
    @Test(arguments: ways)
    func whatIsEditedOfItIsAConflict(_ way: String) throws {
        for movesOn in [false, true] {
            let revived = try revived(way == "held")
            let (container, context) = (revived.container, revived.context)
            let x = try find(revived, way)
            x.picks.append(revived.all[0])
            let other = container.newContext()
            other.delete(try #require(try other.existingObject(with: revived.id)))
            try other.save()
            if movesOn { context.advance() }
            #expect(code { try context.save() } == .conflict, "\(way) \(movesOn)")
            context.rollback()
            #expect(try storedNames(container) == ["a", "b", "c"], "\(way) \(movesOn)")
            #expect(!context.hasChanges, "\(way) \(movesOn)")
        }
    }
}
