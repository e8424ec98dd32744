// A to-one with `.noAction` whose target is gone reads as none, everywhere, and nothing else fails.

import Testing
import VarveObjects

@Suite(.verified) struct StaleReferenceTests {
    @Test(arguments: ["here", "there", "there, advanced"])
    func aStaleReferenceReadsAsNone(whoDeletes: String) throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", "c", in: context)
        all[0].stale = all[1]
        try context.save()
        if whoDeletes == "here" {
            context.delete(all[1])
            #expect(all[0].name == "a")
            try context.save()
        } else {
            let other = container.newContext()
            other.delete(try other.same(all)[1])
            try other.save()
            if whoDeletes == "there, advanced" { context.advance() }
        }
        all[2].name = "unrelated"
        try context.save()
        #expect(all[0].stale == nil && all[0].snapshot().name == "a")
        #expect(context.readFailures.isEmpty && !context.hasChanges)
        all[0].name = "edited"
        try context.save()
        let fresh = container.newContext()
        let list = try fresh.fetch(Node.all.prefetch { $0.stale })
        #expect(list.names == ["edited", "unrelated"])
        let node = try #require(list.first)
        #expect(node.stale == nil)
        node.score = 2
        #expect(try fresh.fetch(Node.where { $0.stale.name == "b" }).isEmpty)
        #expect(fresh.readFailures.isEmpty)
        try fresh.save()
        // It may lead elsewhere again, and to nothing.
        node.stale = list[1]
        try fresh.save()
        #expect(node.stale === list[1])
        node.stale = nil
        try fresh.save()
        let last = container.newContext()
        #expect(try last.named("edited")?.stale == nil)
    }

    @Test func anObjectWithAStaleReferenceMayBeDeletedAndRefreshed() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", "c", in: context)
        all[0].stale = all[1]
        all[2].stale = all[1]
        try context.save()
        context.delete(all[1])
        try context.save()
        context.refresh(all[0], mergeChanges: false)
        context.refreshAllObjects()
        #expect(all[0].stale == nil && all[2].stale == nil)
        // Setting it to none may be an edit or not; what is stored ends as none.
        all[2].stale = nil
        context.delete(all[0])
        try context.save()
        #expect(context.readFailures.isEmpty && !context.hasChanges)
        #expect(try storedNames(container) == ["c"])
    }
}
