// Another process deletes and changes what this one edits: the outcome is the one that a second
// context of the same container gives. A second container on the same file is another process.

import Foundation
import Testing
import VarveObjects
import VarveTesting

@Suite(.verified) struct AttackOtherProcessTests {
    /// Everything of a graph, by name.
    private func describe(_ context: ManagedObjectContext) throws -> [String] {
        try context.fetch(Node.all).map { node in
            let ones = [
                node.parent, node.next, node.previous, node.loose, node.stale, node.book,
                node.guardian,
            ].map { $0?.name ?? "-" }
            let lists = [
                node.children, node.picks, node.playlist, node.left, node.right, node.chapters,
                node.guarded,
            ].map { "\($0.count)\($0.names)" }
            return "\(node.name) \(node.score) \(ones) \(lists)"
        }
    }

    private func edit(
        _ all: [Node],
        _ context: ManagedObjectContext,
        _ random: inout SeededRandom,
        _ count: Int
    ) {
        func below(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
        for _ in 0..<count {
            let (node, other) = (all[below(all.count)], all[below(all.count)])
            let choice = below(16)
            // What is deleted is not edited: that would be refused.
            guard !node.isDeleted, !other.isDeleted else { continue }
            switch choice {
            case 0: node.score = Double(below(100))
            case 1: node.parent = other
            case 2: node.next = other
            case 3: node.loose = other
            case 4: node.stale = other
            case 5: node.book = other
            case 6: node.guardian = below(3) == 0 ? other : nil
            case 7: node.picks.append(other)
            case 8: node.playlist.insert(other, at: below(3))
            case 9: node.left.append(other)
            case 10: node.right.insert(other, at: 0)
            case 11: node.children.remove(other)
            case 12: node.playlist.replaceAll(with: [other, node])
            case 13: node.chapters.append(other)
            default:
                context.delete(node)
                context.processPendingChanges()
            }
        }
    }

    /// One course of events; `isApart`: the others are another process.
    private func course(_ seed: UInt64, _ policy: MergePolicy, _ isApart: Bool) throws -> [String] {
        var random = SeededRandom(seed: seed)
        let folder = try TemporaryFolder()
        func open() throws -> PersistentContainer {
            try PersistentContainer.openNow(at: folder.store, schema: GraphSchema.self)
        }
        let container = try open()
        let others = isApart ? try open() : container
        var log: [String] = []
        func run() throws {
            let context = container.newContext()
            let all = try nodes("a", "b", "c", "d", "e", "f", "g", in: context)
            edit(all, context, &random, 30)
            if code({ try context.save() }) != nil { context.rollback() }
            // Some lists were read, others not.
            let mine = try context.fetch(Node.all)
            for node in mine where random.next() % 2 == 0 {
                _ = (node.children.count, node.playlist.names, node.left.names, node.picks.count)
            }
            edit(mine, context, &random, 6)
            log.append("mine: \(try describe(context))")
            for _ in 0..<2 {
                let other = others.newContext()
                let theirs = try other.fetch(Node.all)
                if theirs.isEmpty { break }
                for _ in 0..<2 where random.next() % 2 == 0 {
                    other.delete(theirs[Int(random.next() % UInt64(theirs.count))])
                }
                other.processPendingChanges()
                edit(theirs, other, &random, 3)
                log.append("theirs: \(String(describing: code { try other.save() }))")
                other.rollback()
            }
            // What is not read of before is read now, of the commit that the context stands on.
            log.append("before: \(try describe(context))")
            if random.next() % 2 == 0 { context.advance() }
            for node in mine {
                log.append("\(node.isDeleted) \(node.name) \(node.playlist.names)")
            }
            log.append("after: \(try describe(context))")
            log.append("failures: \(context.readFailures.count)")
            log.append(
                "save: \(String(describing: code { try context.save(mergePolicy: policy) }))"
            )
            log.append("behind: \(try describe(context))")
            let last = code { try context.save(mergePolicy: .objectWinsByProperty) }
            log.append("again: \(String(describing: last)) \(context.hasChanges)")
            if last == nil { try expectSound(context) }
            context.rollback()
            context.advance()
            log.append("rolled back: \(try describe(context))")
            let fresh = others.newContext()
            try expectSound(fresh)
            #expect(try describe(fresh) == describe(context), "seed \(seed)")
        }
        try run()
        try container.closeNow()
        if isApart { try others.closeNow() }
        return log
    }

    @Test(arguments: ["error", "objectWins", "storeWins", "overwrite", "rollback"])
    func theOutcomeIsThatOfAnotherContext(_ name: String) throws {
        let policies: [String: MergePolicy] = [
            "error": .error, "objectWins": .objectWinsByProperty,
            "storeWins": .storeWinsByProperty, "overwrite": .overwrite, "rollback": .rollback,
        ]
        let policy = try #require(policies[name])
        for seed in UInt64(1)...12 {
            let together = try course(seed, policy, false)
            let apart = try course(seed, policy, true)
            for (left, right) in zip(together, apart) {
                #expect(left == right, "seed \(seed), \(name)")
            }
            #expect(together.count == apart.count, "seed \(seed), \(name)")
        }
    }
}
