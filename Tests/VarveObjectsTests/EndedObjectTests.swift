// The rows of objects that have ended: pinned for a while, together, and never for longer than
// anybody could tell.

import Foundation
import Testing
import VarveBase

@testable import VarveObjects

@Suite(.verified) struct EndedObjectTests {
    /// What the row cache itself says, without anybody asking the contexts first.
    private func pinned(_ container: PersistentContainer) -> Int {
        container.store.rowCache.statistics.pinnedRows
    }

    @Test func fewRowsWaitAndNobodySeesThem() throws {
        let container = try memory()
        let ids = try makeItems(300, in: container)
        let context = container.newContext()
        var list = try context.fetch(Item.all.returningFaults(false))
        #expect(pinned(container) == 300)
        list.removeLast(250)
        // Fewer than a whole lot wait.
        #expect(pinned(container) >= 50 && pinned(container) < 50 + 64)
        #expect(container.statistics.rowCache.pinnedRows == 50)
        #expect(container.statistics.realisedObjects == 50)
        #expect(pinned(container) == 50)
        // The end of the last object lets nothing wait.
        list = []
        #expect(pinned(container) == 0)
        #expect(container.statistics.realisedObjects == 0)
        // So does leaving the context.
        list = try context.fetch(Item.all.returningFaults(false))
        list.removeLast(10)
        context.reset()
        #expect(pinned(container) == 0)
        #expect(container.referenceCount(of: ids[0].objectID) == 0)
    }

    @Test func trimmingAndLookingComeAfterThem() throws {
        let container = try memory()
        let ids = try makeItems(20, in: container)
        let context = container.newContext()
        var list = try context.fetch(Item.all.returningFaults(false))
        list.removeLast(10)
        container.trimMemory()
        #expect(container.store.rowCache.statistics.rows == 10)
        #expect(container.isRowCached(ids[9].objectID))
        #expect(!container.isRowCached(ids[10].objectID))
        #expect(list.count == 10)
    }

    /// Without a budget worth the name nothing waits: a row goes with its last object.
    @Test(arguments: [0, 100_000]) func aSmallBudgetLetsNothingWait(_ budget: Int) throws {
        let container = try memory(ContainerOptions(unreferencedRowBytes: budget))
        try makeItems(20, in: container)
        let context = container.newContext()
        var list = try context.fetch(Item.all.returningFaults(false))
        for left in (0..<20).reversed() {
            list.removeLast()
            #expect(pinned(container) == left)
        }
    }

    /// Objects of several contexts end on several threads, while others ask for figures.
    @Test func endsOnManyThreadsLoseNoPin() async throws {
        let container = try memory()
        try makeItems(500, in: container)
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<4 {
                group.addTask {
                    for round in 0..<30 {
                        let context = container.newContext()
                        var list =
                            (try? context.fetch(Item.all.returningFaults(false))) ?? []
                        #expect(list.count == 500)
                        while let last = list.popLast() {
                            if list.count % 100 == worker { _ = last.title }
                            if list.count % 200 == round { _ = container.statistics }
                        }
                    }
                }
            }
        }
        #expect(pinned(container) == 0)
        #expect(container.statistics.realisedObjects == 0)
        #expect(container.statistics.registeredObjects == 0)
        #expect(container.store.rowCache.statistics.rows == 500)
    }

    /// Observers and read relationships share a place: each comes and goes without the other.
    @Test func whatFewObjectsHaveIsKeptApart() throws {
        let container = try memory()
        try makeItems(1, in: container)
        let context = container.newContext(observes: true)
        let item = try #require(try context.fetch(Item.all).first)
        _ = item.title
        let observation = item.storage.observation
        #expect(observation != nil)
        let commit = try #require(context.commit)
        item.storage.related = [RelatedList(slot: 1, commit: commit, ids: [], isPrefetched: false)]
        var (known, related) = (item.storage.observation, item.storage.related)
        #expect(known === observation && related?.first?.slot == 1)
        item.storage.observation = nil
        (known, related) = (item.storage.observation, item.storage.related)
        #expect(known == nil && related?.count == 1)
        item.storage.related = nil
        related = item.storage.related
        #expect(related == nil)
        _ = item.title
        known = item.storage.observation
        #expect(known != nil && known !== observation)
    }

    /// What an object holds goes with it, and what it held with the next.
    @Test func anObjectLetsGoOfWhatItHolds() throws {
        let container = try memory()
        try makeItems(1, in: container)
        let context = container.newContext(observes: true)
        weak var edits: ObjectEdits?
        weak var observation: ObjectObservation?
        do {
            let item = try #require(try context.fetch(Item.all).first)
            _ = item.title
            observation = item.storage.observation
            item.title = "first"
            edits = item.storage.edits
            #expect(edits != nil && observation != nil)
            context.rollback()
            #expect(edits == nil && observation != nil)
            item.title = "second"
            edits = item.storage.edits
            try context.save()
            #expect(edits == nil && item.title == "second")
        }
        #expect(observation == nil)
    }
}
