// Reading what is edited, deleted, reset or not to be written: values, batches, pages, aggregates.

import Foundation
import Testing
import VarveObjects
import VarveTesting

@Suite(.verified) struct AttackReadingTests {
    @Test func aLargeTextOfAnObjectDeletedHereStays() throws {
        let container = try graph()
        let context = container.newContext()
        let long = String(repeating: "long ", count: 40_000)
        let all = try nodes(long, long + "2", "small", in: context)
        var seen: [String] = []
        all[0].onDidSave = { [unowned node = all[0]] in seen.append(node.name) }
        context.delete(all[0])
        all[1].name = long + "3"
        all[1].onDidSave = { [unowned node = all[1]] in seen.append(node.name) }
        try context.save()
        // Changed objects are told first.
        let isWhole = seen == [long + "3", long]
        #expect(isWhole)
        #expect(all[0].isDeleted && all[0].name == long && all[0].snapshot().name == long)
        all[2].name = "edited"
        try context.save()
        context.advance()
        #expect(all[0].name == long && all[1].name == long + "3")
        #expect(context.readFailures.isEmpty && all[0].readFailure == nil)
    }

    /// The ends of a list are enough to count it; `map` ended the program when what lies between
    /// could not be read.
    @Test func aListWhoseMembersCannotBeReadIsAsLongAsItSaid() throws {
        let disk = SimulatedDisk()
        func open() throws -> PersistentContainer {
            try PersistentContainer.openNow(on: disk, schema: GraphSchema.self)
        }
        var container = try open()
        var context = container.newContext()
        let owner = Node(in: context)
        owner.name = "owner"
        for number in 0..<4_000 {
            let node = Node(in: context)
            node.name = "\(number)"
            owner.picks.append(node)
        }
        try context.save()
        try container.closeNow()
        container = try open()
        context = container.newContext()
        let again = try #require(try context.named("owner"))
        let list = again.picks
        #expect(list.count == 4_000)
        disk.setReadFault(.init(first: 1, count: .max, kind: .fails(5)))
        #expect(list.map(\.name).count == 4_000)
        #expect(Array(list).allSatisfy { $0.name == "" } && list.ids.isEmpty)
        #expect(!context.readFailures.isEmpty)
        disk.setReadFault(nil)
        #expect(Set(again.picks.map(\.name)).count == 4_000)
    }

    @Test(arguments: [false, true])
    func batchesOfWhatIsGone(_ returnsFaults: Bool) throws {
        let container = try memory()
        let ids = try makeItems(40, in: container)
        var held: [BatchedResults<Item>] = []
        func run() throws {
            let context = container.newContext()
            let new = Item(in: context)
            new.number = -1
            let request = Item.all.sorted { [$0.number.ascending] }.returningFaults(returnsFaults)
            let list = try context.fetchBatched(request, size: 7)
            #expect(list.count == 41 && list[0] === new && list[40].number == 39)
            let other = container.newContext()
            for index in stride(from: 0, to: 40, by: 2) {
                other.delete(try #require(try other.existingObject(with: ids[index])))
            }
            try other.save()
            context.rollback()
            context.advance()
            #expect(list[0].number == 0)
            for index in 1..<41 {
                let object = list[index]
                #expect(object.number == index - 1 || object.number == 0)
            }
            #expect(throws: Never.self) { try list.load(-5..<500) }
            context.acknowledgeReadFailures()
            context.reset()
            _ = list.map(\.number)
            held.append(list)
        }
        try run()
        #expect(held[0].ids.count == 41 && held[0][40].number == 39)
    }

    @Test func readersMayEditButNotWrite() throws {
        let folder = try TemporaryFolder()
        let writer = try folder.open()
        try makeItems(3, in: writer)
        try writer.closeNow()
        let container = try folder.open(ContainerOptions(isReadOnly: true))
        let context = container.newContext()
        let items = try context.fetch(Item.all)
        items[0].title = "edited"
        context.delete(items[1])
        let new = Item(in: context)
        let tag = Tag(in: context)
        new.tags.append(tag)
        #expect(code { try context.save() } == .readOnly)
        #expect(code { _ = try context.batchDelete(Item.all) } == .readOnly)
        #expect(items[0].title == "edited" && items[1].isDeleted && new.isInserted)
        #expect(try context.count(Item.all) == 3)
        #expect(new.calls == ["insert"])
        context.rollback()
        #expect(items[0].title == "item 0" && !items[1].isDeleted)
        #expect(!context.hasChanges)
        try container.closeNow()
    }

    /// Read anew with and without its edits, while what it leads to is deleted.
    @Test func refreshingAroundADelete() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", in: context)
        all[0].score = 5
        all[0].parent = all[1]
        context.refresh(all[0], mergeChanges: true)
        #expect(all[0].score == 5 && all[0].parent === all[1] && context.hasChanges)
        context.delete(all[1])
        context.refresh(all[1], mergeChanges: true)
        context.refresh(all[1], mergeChanges: false)
        #expect(all[1].isDeleted)
        context.refresh(all[0], mergeChanges: false)
        try context.save()
        #expect(try storedNames(container) == ["a"])
        try expectSound(container.newContext())
    }
}
