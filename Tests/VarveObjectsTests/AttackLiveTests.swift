// Live lists used in the wrong order: handlers that edit, save, reset, close and exchange the
// request; hooks that make lists; another process; a full disk; numbers at their ends.

import Foundation
import Observation
import Testing
import VarveTesting

@testable import VarveObjects

@Suite(.verified) struct AttackLiveTests {
    private let byNumber = Item.all.sorted { [$0.number.ascending] }

    private func numbers(_ list: LiveResults<Item>) -> [Int] { list.results.map(\.number) }

    /// Saves another item from elsewhere.
    private func add(_ number: Int, to container: PersistentContainer) throws {
        try makeItems(1, in: container) { item, _ in item.number = number }
    }

    @Test func aHandlerEditsSavesAndMovesOn() throws {
        let container = try memory()
        try makeItems(3, in: container)
        let context = container.newContext()
        let list = try context.live(byNumber)
        let other = try context.live(byNumber.limit(2))
        var told: [Int] = []
        let observation = list.onChange { change in
            told.append(change.count)
            guard told.count == 1 else { return }
            // In the middle of a step: what it does is the next one.
            list[0].number = 50
            context.delete(list[1])
            #expect(code { try context.save() } == nil)
            #expect(code { try add(60, to: container) } == nil)
            context.advance()
        }
        try makeItems(1, in: container)
        context.advance()
        #expect(numbers(list) == [1, 2, 50, 60])
        #expect(numbers(other) == [1, 2])
        #expect(told.count > 1)
        observation.cancel()
    }

    @Test func aHandlerResetsAndRollsBack() throws {
        let container = try memory()
        let ids = try makeItems(3, in: container)
        let context = container.newContext()
        let list = try context.live(byNumber)
        var replaced = 0
        let observation = list.onChange { change in
            if change.isReplaced { replaced += 1 } else { context.reset() }
        }
        let item = try existing(ids[0], in: context)
        item.number = 9
        context.processPendingChanges()
        #expect(replaced == 1)
        #expect(item.context == nil)
        #expect(numbers(list) == [0, 1, 2])
        _ = Item(in: context)
        context.rollback()
        #expect(numbers(list) == [0, 1, 2])
        observation.cancel()
    }

    @Test func aHandlerClosesTheContainer() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let ids = try makeItems(300, in: container)
        let context = container.newContext()
        let list = try context.live(byNumber)
        let held = list.results
        let observation = list.onChange { _ in
            #expect(code { try container.closeNow(discardingEdits: true) } == nil)
        }
        try existing(ids[0], in: context).number = 9
        context.processPendingChanges()
        #expect(list.count == 300)
        // Nothing can be read any more, and nothing ends the program.
        _ = (list.results.ids, held.ids, list[299].number, held[299].isFault)
        list.descriptor = Item.all
        #expect(list.failure?.code == .closed)
        context.advance()
        context.rollback()
        context.processPendingChanges()
        #expect(code { _ = try context.live(byNumber) } == .closed)
        #expect(code { _ = try context.liveCount(Item.all) } == .closed)
        observation.cancel()
        let again = try folder.open()
        #expect(try again.newContext().count(Item.all) == 300)
        try again.closeNow()
    }

    @Test func aHandlerExchangesTheRequestAndDropsTheList() throws {
        let container = try memory()
        try makeItems(4, in: container)
        let context = container.newContext()
        var list: LiveResults<Item>? = try context.live(byNumber)
        let some = Item.where { $0.number >= 2 }.sorted { [$0.number.ascending] }
        let second = try context.live(some)
        var heard: [Bool] = []
        let first = list?.onChange { change in
            if !change.isReplaced { list?.descriptor = Item.where { $0.number == 7 } }
        }
        let late = list?.onChange { heard.append($0.isReplaced) }
        let dropping = second.onChange { _ in list = nil }
        try add(7, to: container)
        context.advance()
        // The change before the exchange is not told after it.
        #expect(heard == [true])
        #expect(list == nil)
        try add(8, to: container)
        context.advance()
        #expect(numbers(second) == [2, 3, 7, 8])
        first?.cancel()
        late?.cancel()
        dropping.cancel()
    }

    @Test func aListThatAnObserverMakesIsBroughtAlong() throws {
        var options = ContainerOptions()
        options.everyContextObserves = true
        let container = try memory(options)
        let ids = try makeItems(3, in: container)
        let context = container.newContext()
        let list = try context.live(byNumber)
        final class Made: @unchecked Sendable {
            var list: LiveResults<Item>?
            var run: (() -> Void)?
        }
        let made = Made()
        made.run = { made.list = try? context.live(Item.where { $0.number < 2 }) }
        withObservationTracking {
            _ = list.count
        } onChange: {
            made.run?()
        }
        let other = container.newContext()
        try existing(ids[0], in: other).number = 5
        try other.save()
        context.advance()
        #expect(made.list?.results.map(\.number) == [1])
        made.run = nil
    }

    @Test func aCollectionOutlivesItsList() throws {
        let container = try memory()
        try makeItems(500, in: container)
        let context = container.newContext()
        let keeper = try context.live(Folder.all)
        let collection = try context.live(byNumber).results
        try container.newContext().batchDelete(Item.where { $0.number < 100 })
        context.advance()
        #expect(collection.count == 500)
        #expect(collection.ids.count == 500)
        #expect(collection[499].number == 499)
        #expect(context.readFailures.isEmpty)
        #expect(keeper.isEmpty)
    }

    /// Its objects do not change their rows: that of their folder does.
    @Test func aSectionGetsAnotherName() throws {
        let container = try memory()
        let writer = container.newContext()
        let folder = Folder(in: writer)
        folder.name = "a"
        for number in 0..<3 {
            let item = Item(in: writer)
            item.number = number
            item.folder = folder
        }
        try writer.save()
        let context = container.newContext()
        let sectioned = try context.live(Item.all, sectionedBy: { $0.folder.name })
        var told: [LiveChange<Item>] = []
        let observation = sectioned.list.onChange { told.append($0) }
        folder.name = "b"
        try writer.save()
        context.advance()
        #expect(sectioned.sections.map(\.value) == ["b"])
        #expect(told.map(\.deletedSections) == [[0]])
        #expect(told.map(\.insertedSections) == [[0]])
        #expect(told.first?.moved.count == 3)
        observation.cancel()
    }

    /// A second container on the same file is another process.
    @Test func anotherProcessIsFollowed() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let ids = try makeItems(400, in: container)
        let context = container.newContext()
        let list = try context.live(byNumber)
        let count = try context.liveCount(Item.where { $0.number < 10 })
        var told = 0
        let observation = list.onChange { change in
            #expect(!change.isReplaced)
            told += change.count
        }
        let apart = try folder.open()
        let writer = apart.newContext()
        for round in 0..<5 {
            let item = try #require(try writer.fetch(byNumber.limit(1)).first)
            item.number = 1_000 + round
            try writer.save()
            context.advance()
            let fresh = try context.fetchIDs(byNumber)
            #expect(list.results.ids == fresh)
            #expect(count.value == 9 - round)
        }
        #expect(told == 5)
        try existing(ids[399], in: context).number = 0
        try context.save()
        #expect(list.results.ids.first == ids[399])
        observation.cancel()
        try apart.closeNow()
        try container.closeNow()
    }

    @Test func aFullDiskLeavesTheListAsItIs() throws {
        let disk = SimulatedDisk()
        let container = try PersistentContainer.openNow(on: disk, schema: TestSchema.self)
        let ids = try makeItems(20, in: container)
        let context = container.newContext()
        let list = try context.live(byNumber)
        let item = Item(in: context)
        item.title = AdviceForDisksTests.long
        context.delete(try existing(ids[3], in: context))
        context.processPendingChanges()
        let shown = numbers(list)
        #expect(shown.count == 20 && shown.prefix(2) == [0, 0])
        try AdviceForDisksTests().stop(disk, SimulatedDisk.noSpace)
        #expect(code { try context.save() } == .diskFull)
        #expect(numbers(list) == shown)
        disk.setFault(nil)
        try context.save()
        #expect(numbers(list) == shown)
        try container.closeNow()
    }

    @Test func numbersAtTheirEnds() throws {
        let container = try memory()
        try makeItems(300, in: container)
        let context = container.newContext()
        for request in [byNumber, Item.all.sorted { [$0.title.ascending] }] {
            for (limit, offset) in [(0, 0), (.max, .max), (.max, 0), (1, .max), (5, 299)] {
                let list = try context.live(request.limit(limit).offset(offset), batchSize: .max)
                let wanted = try context.fetchIDs(list.descriptor)
                #expect(list.results.ids == wanted)
                if let last = list.results.last { #expect(last.isFault || last.number >= 0) }
                try add(0, to: container)
                context.advance()
                let fresh = try context.fetchIDs(list.descriptor)
                #expect(list.results.ids == fresh)
            }
        }
        #expect(code { _ = try context.live(byNumber.limit(-1)) } == .invalidRequest)
        #expect(code { _ = try context.live(byNumber.offset(.min)) } == .invalidRequest)
        #expect(code { _ = try context.live(byNumber, batchSize: .min) } == .invalidRequest)
    }

    /// Numbers that are no numbers, zeros with a sign, and texts that Swift calls equal.
    @Test func valuesThatAreEqualAndNot() throws {
        let container = try graph()
        let writer = container.newContext()
        let scores: [Double] = [0, -0.0, .nan, .infinity, -.infinity, .nan, 1]
        for (index, score) in scores.enumerated() {
            let node = Node(in: writer)
            node.score = score
            node.name = index % 2 == 0 ? "e\u{301}" : "\u{e9}"
        }
        try writer.save()
        let context = container.newContext()
        let request = Node.all.sorted { [$0.name.ascending, $0.score.descending] }
        let list = try context.live(request)
        let sectioned = try context.live(Node.all, sectionedBy: { $0.name })
        #expect(sectioned.sections.count == 2)
        #expect(Set(sectioned.sections.map(\.id)).count == 2)
        let all = try writer.fetch(Node.all)
        for (index, score) in [(0, -0.0), (1, 0.0), (2, 2.0), (6, .nan), (3, -0.0)] {
            all[index].score = score
            all[index].name = index % 2 == 0 ? "\u{e9}" : "e\u{301}"
            try writer.save()
            context.advance()
            let fresh = try context.fetchIDs(request)
            #expect(list.results.ids == fresh)
            #expect(sectioned.sections.reduce(0) { $0 + $1.count } == scores.count)
        }
    }
}
