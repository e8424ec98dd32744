// The journal of a context: a to-one relationship that is set again and again leaves one entry,
// however much was set before, and what follows counts over what came earlier.

import Testing
import VarveBase
import VarveTesting

@testable import VarveObjects

@Suite(.verified) struct JournalTests {
    /// What each object was last said to lead to.
    private static func lastWords(_ intents: [Intent]) -> [ObjectID: ObjectID?] {
        var words: [ObjectID: ObjectID?] = [:]
        for intent in intents {
            if case .relate(_, let id, _, let target) = intent { words[id] = .some(target) }
        }
        return words
    }

    @Test(arguments: [UInt64(1), 2, 3, 4, 5, 6])
    func `the last word counts, and few entries stay`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let container = try graph()
        let context = container.newContext()
        let nodes = (0..<20).map { _ in Node(in: context) }
        var model: [ObjectID: ObjectID?] = [:]
        for step in 0..<2_000 {
            let node = nodes[Int.random(in: 0..<20, using: &random)]
            let target = Bool.random(using: &random) ? nodes.randomElement(using: &random) : nil
            let isNews = node.loose !== target
            node.loose = target
            if isNews { model[node.objectID.object] = .some(target?.objectID.object) }
            if step % 701 == 700 {
                // Each step of a list counts: entries before it stay.
                nodes[0].playlist.append(nodes[Int.random(in: 0..<20, using: &random)])
            }
        }
        let words = Self.lastWords(context.journal.intents)
        #expect(words == model, "seed \(seed)")
        // Of each stretch between the lists' steps one for each object, and the steps themselves.
        #expect(context.journal.intents.count <= 3 * 20 + 2, "seed \(seed)")
        try context.save()
        let fresh = container.newContext()
        for node in nodes {
            let saved = try fresh.existingObject(with: node.id)
            #expect(saved?.loose?.id == node.loose?.id, "seed \(seed)")
        }
    }

    @Test func `a relationship that is set back leaves no edit`() throws {
        let container = try graph()
        let context = container.newContext()
        let (one, two) = (Node(in: context), Node(in: context))
        try context.save()
        one.loose = two
        two.loose = one
        one.loose = nil
        #expect(context.journal.intents.count == 1)
        two.loose = nil
        #expect(!context.hasChanges)
        #expect(context.journal.intents.isEmpty)
    }
}
