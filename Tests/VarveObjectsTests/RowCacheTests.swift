// What the row cache promises, as objects see it.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct RowCacheTests {
    @Test func countsAreContextsAndPinsAreFilledObjects() throws {
        let container = try memory(ContainerOptions(unreferencedRowBytes: 0))
        let id = try makeItems(1, in: container)[0].objectID
        #expect(container.referenceCount(of: id) == 0)
        var first: ManagedObjectContext? = container.newContext()
        var second: ManagedObjectContext? = container.newContext()
        let start = container.statistics.storeReads
        var one = try first?.existingObject(with: id) as? Item
        var two = try second?.existingObject(with: id) as? Item
        #expect(one?.title == "item 0" && two?.title == "item 0")
        #expect(container.referenceCount(of: id) == 2)
        #expect(container.statistics.storeReads == start + 1)
        #expect(container.statistics.rowCache.pinnedRows == 1)
        #expect(container.statistics.realisedObjects == 2)
        one = nil
        first = nil
        #expect(container.referenceCount(of: id) == 1)
        #expect(container.isRowCached(id))
        two = nil
        second = nil
        #expect(one == nil && two == nil && first == nil && second == nil)
        #expect(container.referenceCount(of: id) == 0)
        #expect(!container.isRowCached(id))
        #expect(container.statistics.registeredObjects == 0)
    }

    @Test func aChangedObjectStaysUntilSave() throws {
        let container = try memory()
        let id = try makeItems(1, in: container)[0]
        let context = container.newContext()
        do {
            let item = try context.existingObject(with: id)
            item?.title = "changed"
        }
        #expect(context.registeredObject(with: id) != nil)
        #expect(context.updatedObjects.count == 1)
        try context.save()
        #expect(context.registeredObject(with: id) == nil)
        #expect(container.referenceCount(of: id.objectID) == 0)
        #expect(try context.existingObject(with: id)?.title == "changed")
    }

    @Test func backToFaultKeepsTheCountAndDropsThePin() throws {
        let container = try memory(ContainerOptions(unreferencedRowBytes: 0))
        let id = try makeItems(1, in: container)[0]
        let context = container.newContext()
        let item = try #require(try context.existingObject(with: id))
        #expect(container.statistics.rowCache.pinnedRows == 1)
        context.refresh(item, mergeChanges: false)
        #expect(container.statistics.rowCache.pinnedRows == 0)
        #expect(container.referenceCount(of: id.objectID) == 1)
        #expect(!container.isRowCached(id.objectID))
        context.reset()
        #expect(container.referenceCount(of: id.objectID) == 0)
        #expect(container.statistics.registeredObjects == 0)
    }

    @Test func aSecondContextReadsNothing() throws {
        let container = try memory()
        let ids = try makeItems(20, in: container)
        let first = container.newContext()
        let second = container.newContext()
        let one = try reads(container) {
            try ids.map { try first.existingObject(with: $0)?.title }
        }
        let two = try reads(container) {
            try ids.map { try second.existingObject(with: $0)?.title }
        }
        #expect(one.reads == 20 && two.reads == 0 && one.value == two.value)
    }

    @Test func aListIsReadWhenItsFaultsFire() throws {
        let container = try memory(ContainerOptions(unreferencedRowBytes: 40_000))
        try makeItems(1_000, in: container)
        let context = container.newContext()
        let fetched = try reads(container) { try context.fetch(Item.all) }
        #expect(fetched.value.count == 1_000 && fetched.reads == 0)
        #expect(container.statistics.rowCache.rows == 0)
        // The first fault brings those behind it in the list along, in its own pass.
        let first = reads(container) { fetched.value[0].title }
        #expect(first.passes == 1 && first.reads > 20 && first.reads <= 128)
        #expect(container.isRowCached(fetched.value[first.reads - 1].objectID))
        #expect(!container.isRowCached(fetched.value[first.reads].objectID))
        #expect(container.statistics.realisedObjects == 1)
        let behind = reads(container) { fetched.value[1..<first.reads].map(\.title) }
        #expect(behind.reads == 0)
        // No more than half the budget at once, and never more than all of it.
        let all = reads(container) { fetched.value.map(\.number) }
        #expect(all.value == Array(0..<1_000) && all.reads == 1_000 - first.reads)
        #expect(all.passes <= 1_000 / first.reads + 1)
        let cache = container.statistics.rowCache
        #expect(cache.bytes - cache.pinnedBytes <= 40_000)
    }

    @Test func faultsOfNoListAndWithoutBudgetReadThemselvesOnly() throws {
        let container = try memory()
        let ids = try makeItems(50, in: container)
        let context = container.newContext()
        let promises = try ids.map { try context.object(with: $0) }
        #expect(reads(container) { promises[0].title }.reads == 1)
        let bare = try memory(ContainerOptions(unreferencedRowBytes: 0))
        try makeItems(50, in: bare)
        let other = bare.newContext()
        let list = try other.fetch(Item.all)
        #expect(reads(bare) { list[0].title }.reads == 1)
        #expect(bare.statistics.rowCache.rows == 1)
    }

    @Test func fetchingIDsCachesNothing() throws {
        let container = try memory()
        try makeItems(100, in: container)
        let context = container.newContext()
        let ids = try reads(container) { try context.fetchIDs(Item.all) }
        #expect(ids.value.count == 100 && ids.reads == 0)
        #expect(container.statistics.rowCache.rows == 0)
        let fills = try reads(container) {
            for id in ids.value { _ = try context.existingObject(with: id)?.title }
        }
        #expect(fills.reads == 100)
    }

    @Test func blobBytesAreNeverInTheCache() throws {
        let container = try memory()
        let context = container.newContext()
        for index in 0..<40 {
            let picture = Picture(in: context)
            picture.data = try context.makeBlob(
                Data(repeating: UInt8(index), count: 15_000),
                for: Picture.columns.data
            )
        }
        try context.save()
        context.reset()
        container.trimMemory()
        let pictures = try context.fetch(Picture.all.returningFaults(false))
        #expect(pictures.allSatisfy { $0.data?.length == 15_000 })
        #expect(container.statistics.rowCache.bytes < 40 * 400)
        let before = container.statistics
        #expect(try pictures[7].data?.readAll() == Data(repeating: 7, count: 15_000))
        #expect(container.statistics.rowCache.bytes == before.rowCache.bytes)
        #expect(container.statistics.blobBytesRead - before.blobBytesRead == 15_000)
    }

    @Test func twoVersionsForTwoCommits() throws {
        let container = try memory()
        let id = try makeItems(1, in: container)[0]
        let old = container.newContext()
        let oldItem = try #require(try old.existingObject(with: id))
        let new = container.newContext()
        let newItem = try #require(try new.existingObject(with: id))
        newItem.title = "second"
        try new.save()
        #expect(oldItem.title == "item 0" && newItem.title == "second")
        #expect(container.statistics.rowCache.pinnedRows == 2)
        old.refresh(oldItem, mergeChanges: false)
        #expect(oldItem.title == "item 0")
    }

    @Test func anImportReadsNothingBack() throws {
        let container = try memory()
        let context = container.newContext()
        let import_ = try reads(container) {
            for batch in 0..<4 {
                for index in 0..<250 {
                    let item = Item(in: context)
                    item.number = batch * 250 + index
                }
                try context.save()
            }
        }
        #expect(import_.reads == 0)
        #expect(container.statistics.registeredObjects == 0)
        #expect(try context.count(Item.all) == 1_000)
    }
}
