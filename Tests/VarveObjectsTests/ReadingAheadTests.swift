// Lists read batch by batch: what they read ahead, what it weighs, and when it goes.

import Testing
import VarveObjects

@Suite("Reading ahead", .verified) struct ReadingAheadTests {
    private static let size = 10
    /// Twice what the row cache may keep.
    private static let budget = 40_000

    private func world(_ count: Int) throws -> (PersistentContainer, [Item.ID]) {
        let container = try memory(ContainerOptions(unreferencedRowBytes: Self.budget / 2))
        return (container, try makeItems(count, in: container))
    }

    private func list(_ context: ManagedObjectContext) throws -> BatchedResults<Item> {
        try context.fetchBatched(Item.all.sorted { [$0.number.descending] }, size: Self.size)
    }

    private func ahead(_ container: PersistentContainer) -> Int {
        container.statistics.rowCache.readAheadBytes
    }

    @Test("Each row is read once, and no more is held than the row cache may keep")
    func once() throws {
        let (container, _) = try world(3_000)
        let list = try list(container.newContext())
        var most = 0
        let scan = reads(container) {
            for index in 0..<3_000 {
                #expect(list[index].number == 2_999 - index)
                most = max(most, ahead(container))
            }
        }
        #expect(scan.reads == 3_000)
        // 3 batches alone, then 2, 3, 5, 9, 17 together, then what fits.
        #expect(scan.passes < 25)
        #expect(most > Self.budget / 2 && most <= Self.budget)
        #expect(ahead(container) == 0)
    }

    @Test("Who leaps through a list holds nothing ahead")
    func leaps() throws {
        let (container, _) = try world(400)
        let list = try list(container.newContext())
        for index in 0..<60 { _ = list[index].number }
        #expect(ahead(container) > 0)
        #expect(list[390].number == 9)
        #expect(ahead(container) == 0)
    }

    @Test("Lists share the budget, and a list that goes leaves nothing")
    func several() throws {
        let (container, _) = try world(1_500)
        let request = Item.all.sorted { [$0.number.descending] }
        var lists = try (0..<5).map {
            try container.newContext().fetchBatched(request.offset(150 * $0), size: Self.size)
        }
        let scan = reads(container) {
            for index in 0..<700 {
                for (list, offset) in zip(lists, 0...) {
                    #expect(list[index].number == 1_499 - index - 150 * offset)
                }
                #expect(ahead(container) <= Self.budget)
            }
        }
        // Those in step do not drive each other out.
        #expect(scan.reads < 5 * 1_000)
        #expect(ahead(container) > 0)
        lists = []
        #expect(ahead(container) == 0)
    }

    @Test("Under memory pressure it goes, and the list reads on")
    func pressure() throws {
        let (container, _) = try world(600)
        let list = try list(container.newContext())
        for index in 0..<100 { _ = list[index].number }
        #expect(ahead(container) > 0)
        container.trimMemory()
        #expect(ahead(container) == 0)
        #expect((0..<600).map { list[$0].number } == (0..<600).reversed().map { $0 })
    }

    @Test("Behind a newer commit the rows of before are not used")
    func newer() throws {
        let (container, ids) = try world(300)
        let context = container.newContext()
        let list = try list(context)
        for index in 0..<50 { _ = list[index].number }
        #expect(ahead(container) > 0)
        let other = container.newContext()
        for index in 0..<300 where index % 3 == 0 {
            try other.object(with: ids[index]).title = "changed"
        }
        for index in 0..<300 where index % 7 == 0 {
            other.delete(try other.object(with: ids[index]))
        }
        try other.save()
        // The context still reads its own commit,
        #expect((50..<80).allSatisfy { list[$0].title == "item \(299 - $0)" })
        context.advance()
        // and then the new one, also where rows were read ahead before.
        for index in Array(80..<300) + Array(0..<80) {
            let number = 299 - index
            let object = list[index]
            if number % 7 == 0 {
                #expect(object.isDeleted)
            } else {
                #expect(object.title == (number % 3 == 0 ? "changed" : "item \(number)"))
            }
        }
        #expect(context.readFailures.isEmpty)
    }

    @Test("Rows that grow along the list do not break the bound")
    func growing() throws {
        let container = try memory(ContainerOptions(unreferencedRowBytes: Self.budget / 2))
        try makeItems(1_000, in: container) { item, number in
            // The list is descending: small ones come first.
            item.title = String(repeating: "x", count: number < 500 ? 1_500 : 3)
        }
        let list = try list(container.newContext())
        var most = 0
        let scan = reads(container) {
            for index in 0..<1_000 {
                #expect(list[index].number == 999 - index)
                most = max(most, ahead(container))
            }
        }
        #expect(most > 0 && most <= Self.budget)
        #expect(scan.reads >= 1_000 && scan.reads < 1_500)
    }

    @Test("A cache without bounds reads ahead, too")
    func unlimited() throws {
        let container = try memory(ContainerOptions(unreferencedRowBytes: .max))
        try makeItems(200, in: container)
        let list = try list(container.newContext())
        #expect((0..<200).allSatisfy { list[$0].number == 199 - $0 })
        #expect(ahead(container) == 0)
    }

    @Test("Rows that are gone cost no pass each")
    func gone() throws {
        let (container, ids) = try world(1_000)
        let context = container.newContext()
        let list = try list(context)
        let other = container.newContext()
        for index in 0..<1_000 where index % 10 == 3 {
            other.delete(try other.object(with: ids[index]))
        }
        try other.save()
        context.advance()
        let scan = reads(container) {
            for index in 0..<1_000 { #expect(list[index].isDeleted == ((999 - index) % 10 == 3)) }
        }
        #expect(scan.reads == 900)
        #expect(scan.passes < 20)
    }

    @Test("A few rows that are not cached do not make all be read")
    func nearlyCached() throws {
        let container = try memory()
        let ids = try makeItems(2_000, in: container)
        let context = container.newContext()
        let first = try self.list(context)
        for index in 0..<2_000 { _ = first[index].number }
        let other = container.newContext()
        for index in 0..<2_000 where index % 50 == 7 {
            try other.object(with: ids[index]).title = "changed"
        }
        try other.save()
        container.trimMemory()
        for index in 0..<2_000 { _ = first[index].number }
        context.advance()
        let second = try self.list(context)
        let scan = reads(container) {
            for index in 0..<2_000 {
                let changed = (1_999 - index) % 50 == 7
                #expect(second[index].title == (changed ? "changed" : "item \(1_999 - index)"))
            }
        }
        #expect(scan.reads <= 40)
    }

    @Test("A touch in a list on screen reads no more than a frame allows") @MainActor
    func onScreen() throws {
        let container = try memory()
        try makeItems(6_000, in: container)
        let request = Item.all.sorted { [$0.number.descending] }
        let list = try container.viewContext.fetchBatched(request, size: 100)
        var most = 0
        for batch in 0..<60 {
            most = max(most, reads(container) { _ = list[100 * batch].number }.reads)
        }
        #expect(most > 1_000 && most <= 4_096)
    }

    @Test("What the row cache has is not read again")
    func cached() throws {
        let container = try memory()
        try makeItems(500, in: container)
        let context = container.newContext()
        let first = try self.list(context)
        for index in 0..<500 { _ = first[index].number }
        let second = try self.list(context)
        let scan = reads(container) {
            for index in 0..<500 { _ = second[index].number }
        }
        #expect(scan.reads == 0)
        #expect(ahead(container) == 0)
    }
}
