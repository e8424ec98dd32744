// Batches and prefetching: what they read and what they answer.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct BatchTests {
    @Test func aBatchReadsExactlyItsRows() throws {
        let container = try memory()
        try makeItems(420, in: container)
        let context = container.newContext()
        let opened = try reads(container) {
            try context.fetchBatched(Item.all.sorted { [$0.number.ascending] }, size: 50)
        }
        let list = opened.value
        #expect(opened.reads == 0)
        let shape = reads(container) { (list.count, list.ids.count, list.isEmpty) }
        #expect(shape.value == (420, 420, false) && shape.reads == 0)
        // Touching row 120 reads rows 100 to 149, in one pass.
        let touched = reads(container) { list[120].title }
        #expect(touched.value == "item 120" && touched.reads == 50 && touched.passes == 1)
        let neighbours = reads(container) { (list[100].title, list[149].title) }
        #expect(neighbours.reads == 0 && neighbours.value == ("item 100", "item 149"))
        let next = reads(container) { list[150].title }
        #expect(next.reads == 50)
        // The last batch is shorter.
        let last = reads(container) { list[419].number }
        #expect(last.value == 419 && last.reads == 20)
    }

    /// From the third batch in a row on, a pass brings 1, 2, 4 ... further batches along.
    @Test func aFullScanReadsEachRowOnceInFewPasses() throws {
        let container = try memory()
        try makeItems(420, in: container)
        let context = container.newContext()
        let scan = try reads(container) {
            let list = try context.fetchBatched(Item.all, size: 50)
            return list.reduce(0) { $0 + $1.number }
        }
        #expect(scan.value == 420 * 419 / 2 && scan.reads == 420 && scan.passes == 5)
        // Batches touched here and there bring nothing along.
        let other = container.newContext()
        container.trimMemory()
        let jumps = try reads(container) {
            let list = try other.fetchBatched(Item.all, size: 50)
            return [300, 200, 250, 0, 400].map { list[$0].number }
        }
        #expect(jumps.value == [300, 200, 250, 0, 400])
        #expect(jumps.reads == 220 && jumps.passes == 5)
    }

    @Test func twoBatchesStayPinned() throws {
        let container = try memory(ContainerOptions(unreferencedRowBytes: 0))
        try makeItems(200, in: container)
        let context = container.newContext()
        let list = try context.fetchBatched(Item.all, size: 50)
        _ = list[0]
        _ = list[50]
        #expect(container.statistics.rowCache.pinnedRows == 100)
        let back = reads(container) { list[0].number + list[50].number }
        #expect(back.reads == 0)
        _ = list[100]
        #expect(container.statistics.rowCache.pinnedRows == 100)
        // The batch touched longest ago was let go and counts again.
        let again = reads(container) { list[10].number }
        #expect(again.reads == 50)
    }

    @Test func theListIsFrozen() throws {
        let container = try memory()
        let ids = try makeItems(3, in: container)
        let context = container.newContext()
        let list = try context.fetchBatched(Item.all.sorted { [$0.number.ascending] }, size: 2)
        let other = container.newContext()
        other.delete(try other.object(with: ids[1]))
        Item(in: other).number = 0
        try other.save()
        context.advance()
        #expect(list.count == 3 && list.ids == ids)
        #expect(list[0].title == "item 0" && list[2].title == "item 2")
        #expect(list[1].isDeleted)
        #expect(context.readFailures.isEmpty)
    }

    @Test func loadingAndLimits() throws {
        let container = try memory()
        try makeItems(100, in: container)
        let context = container.newContext()
        let list = try context.fetchBatched(
            Item.all.sorted { [$0.number.descending] }.offset(10).limit(30),
            size: 50
        )
        #expect(list.count == 30)
        let loaded = try reads(container) { try list.load(0..<30) }
        #expect(loaded.reads == 30 && loaded.passes == 1)
        #expect(list.first?.number == 89 && list.last?.number == 60)
        #expect(code { _ = try context.fetchBatched(Item.all, size: 0) } == .invalidRequest)
    }

    @Test func batchesOfFilledObjects() throws {
        let container = try memory()
        try makeItems(100, in: container)
        let context = container.newContext()
        let list = try context.fetchBatched(Item.all.returningFaults(false), size: 50)
        let first = list[3]
        #expect(!first.isFault && first.title == "item 3")
        // A batch's objects are made together, and stay until two others were touched.
        #expect(container.statistics.realisedObjects == 50)
        #expect(list[3] === first && list[49].number == 49 && list[50].number == 50)
        #expect(list[3] === first)
        #expect(container.statistics.realisedObjects == 100)
        #expect(container.statistics.rowCache.pinnedRows == 100)
    }

    @Test func filledBatchesAreFilledAgain() throws {
        let container = try memory()
        try makeItems(8, in: container)
        let context = container.newContext()
        let request = Item.all.sorted { [$0.number.ascending] }.returningFaults(false)
        let list = try context.fetchBatched(request, size: 4)
        // While the objects of one batch are made, the app looks at another one.
        let hook = AwakeHook()
        hook.run = {
            hook.run = nil
            #expect(list[6].number == 6)
        }
        AwakeHook.current = hook
        defer { AwakeHook.current = nil }
        #expect(list[1].number == 1 && hook.run == nil)
        #expect((0..<8).map { list[$0].number } == Array(0..<8))
        #expect((4..<8).map { list[$0].number } == Array(4..<8))
        // An object that the app turned into a fault is filled when the list is asked for it.
        let one = list[5]
        context.refresh(one, mergeChanges: false)
        #expect(one.isFault)
        #expect(list[5] === one && !one.isFault && one.number == 5)
    }

    /// A cache that does not keep what was read ahead makes a list read at most twice.
    @Test func readingAheadInVainEnds() throws {
        let container = try memory(ContainerOptions(unreferencedRowBytes: 100_000))
        try makeItems(2_000, in: container)
        let context = container.newContext()
        let list = try context.fetchBatched(Item.all, size: 20)
        let scan = reads(container) {
            (0..<100).reduce(0) { sum, batch in
                container.trimMemory()
                return sum + list[20 * batch].number
            }
        }
        #expect(scan.value == 20 * 99 * 100 / 2)
        #expect(scan.reads >= 2_000 && scan.reads < 4_000)
    }

    /// A damaged page costs the rows in it, not those of the batches in front of it.
    @Test(.damagesStores("a leaf is overwritten")) func readingAheadIntoDamage() throws {
        let folder = try TemporaryFolder()
        let first = try folder.open()
        try makeItems(3_000, in: first)
        try first.closeNow()
        let bytes = try [UInt8](Data(contentsOf: folder.store))
        let request = Item.all.sorted { [$0.number.ascending] }.returningFaults(false)
        var lost = 0
        for part in 2..<24 {
            var damaged = bytes
            damaged[bytes.count * part / 25] ^= 0x10
            try Data(damaged).write(to: folder.store)
            guard let container = try? folder.open() else { continue }
            let context = container.newContext()
            if let list = try? context.fetchBatched(request, size: 20) {
                for index in 0..<list.count { _ = list[index].number }
                // A page of 8 KiB holds fewer rows than these, in at most two batches more.
                #expect(context.readFailures.count < 200, "part \(part)")
                lost += context.readFailures.count
            }
            try? container.closeNow()
        }
        #expect(lost > 0)
    }

    @Test func filledBatchesFollowTheirContext() throws {
        let container = try memory()
        let ids = try makeItems(6, in: container)
        let context = container.newContext()
        let new = Item(in: context)
        new.number = 3
        let request = Item.all.sorted { [$0.number.ascending] }.returningFaults(false)
        let list = try context.fetchBatched(request, size: 4)
        #expect(list.map(\.number) == [0, 1, 2, 3, 3, 4, 5])
        #expect(list[4] === new)
        // What was rolled back is gone, the others are the same.
        let first = list[0]
        context.rollback()
        #expect(list[4].isFault && list[0] === first)
        // Behind a reset, an object of before is no more; the list makes others.
        context.reset()
        #expect(list[0] !== first && list[0].title == "item 0")
        // Another context's change is there once this one moves on, in the same object.
        let again = list[0]
        let other = container.newContext()
        try other.object(with: ids[0]).title = "changed"
        other.delete(try other.object(with: ids[1]))
        try other.save()
        #expect(again.title == "item 0" && list[1].title == "item 1")
        context.advance()
        #expect(list[0] === again && again.title == "changed")
        #expect(list[1].isDeleted && context.readFailures.isEmpty)
    }

    @Test func unsavedObjectsAreInTheList() throws {
        let container = try memory()
        try makeItems(10, in: container)
        let context = container.newContext()
        let new = Item(in: context)
        new.number = 4
        let list = try context.fetchBatched(Item.all.sorted { [$0.number.ascending] }, size: 4)
        #expect(list.map(\.number) == [0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 9])
        #expect(list[5] === new)
    }
}

@Suite(.verified) struct PrefetchTests {
    private func make(_ container: PersistentContainer, _ count: Int) throws {
        let context = container.newContext()
        let folder = Folder(in: context)
        folder.name = "shared"
        folder.owner = Person(in: context)
        folder.owner?.name = "owner"
        let tags = (0..<3).map { _ in Tag(in: context) }
        for index in 0..<count {
            let item = Item(in: context)
            item.number = index
            item.picture = Picture(in: context)
            item.picture?.caption = "picture \(index)"
            item.folder = folder
            for tag in tags.prefix(index % 3) { item.tags.append(tag) }
        }
        try context.save()
        context.reset()
        container.trimMemory()
    }

    @Test func onePassPerEntity() throws {
        let container = try memory()
        try make(container, 100)
        container.trimMemory()
        let context = container.newContext()
        let fetched = try reads(container) {
            try context.fetch(
                Item.all.sorted { [$0.number.ascending] }.prefetch { $0.picture }
            )
        }
        #expect(fetched.reads == 200 && fetched.passes == 2)
        let used = reads(container) { fetched.value.map { $0.picture?.caption } }
        #expect(used.reads == 0 && used.value[42] == "picture 42")
    }

    @Test func prefetchedPathsShareTargets() throws {
        let container = try memory()
        try make(container, 50)
        container.trimMemory()
        let context = container.newContext()
        let fetched = try reads(container) {
            try context.fetch(Item.all.prefetch { ($0.folder.owner, $0.folder) })
        }
        #expect(fetched.reads == 52 && fetched.passes == 3)
        let used = reads(container) { fetched.value.map { $0.folder?.owner?.name } }
        #expect(used.reads == 0 && used.value == Array(repeating: "owner", count: 50))
    }

    @Test func toManyRelationshipsAreFilledToo() throws {
        let container = try memory()
        try make(container, 30)
        container.trimMemory()
        let context = container.newContext()
        let fetched = try reads(container) {
            try context.fetch(Item.all.sorted { [$0.number.ascending] }.prefetch { $0.tags })
        }
        #expect(fetched.passes == 2 && fetched.reads == 32)
        #expect(fetched.value.allSatisfy { !$0.hasFault(Item.columns.tags) })
        let used = reads(container) { fetched.value.map { $0.tags.map(\.name).count } }
        #expect(used.reads == 0 && used.value.prefix(4) == [0, 1, 2, 0])
    }

    @Test func batchesPrefetchPerBatch() throws {
        let container = try memory(ContainerOptions(unreferencedRowBytes: 0))
        try make(container, 100)
        let context = container.newContext()
        let list = try context.fetchBatched(
            Item.all.sorted { [$0.number.ascending] }.prefetch { ($0.picture, $0.tags) },
            size: 20
        )
        let touched = reads(container) { list[25].picture?.caption }
        #expect(touched.value == "picture 25" && touched.reads == 20 + 20 + 2)
        let others = reads(container) {
            (20..<40).map { (list[$0].picture?.caption, list[$0].tags.count) }
        }
        #expect(others.reads == 0 && others.value[3].0 == "picture 23")
    }

    @Test func withoutItRelationshipsStayFaults() throws {
        let container = try memory()
        try make(container, 10)
        let context = container.newContext()
        let items = try context.fetch(Item.all.returningFaults(false))
        #expect(items.allSatisfy { !$0.isFault && $0.picture?.isFault == true })
        #expect(items.allSatisfy { $0.hasFault(Item.columns.tags) })
    }

    @Test func anotherEntitysRelationshipIsRefused() throws {
        let container = try memory()
        let context = container.newContext()
        let request = Item.all.prefetch { _ in Tag.columns.items }
        #expect(code { _ = try context.fetch(request) } == .invalidRequest)
    }
}
