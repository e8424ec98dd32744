// Live lists: what they show and what they tell is what a fresh fetch gives.

import Foundation
import Observation
import Testing
import VarveBase
import VarveEngine
import VarveRecords

@testable import VarveObjects

/// An object that is there.
func existing(_ id: Item.ID, in context: ManagedObjectContext) throws -> Item {
    try #require(try context.existingObject(with: id))
}

@Suite(.verified) struct LiveListTests {
    /// A long run: `VARVE_LIVE_SEEDS` says how many, `VARVE_LIVE_FIRST` from which on.
    @Test func randomEditsBesideListsOfEveryKind() throws {
        let environment = ProcessInfo.processInfo.environment
        let count = environment["VARVE_LIVE_SEEDS"].flatMap { UInt64($0) } ?? 500
        let first = environment["VARVE_LIVE_FIRST"].flatMap { UInt64($0) } ?? 1
        var changes = 0
        for seed in first..<first + count {
            do {
                let fuzz = try LiveListFuzz(seed: seed)
                try fuzz.run(steps: 40)
                changes += fuzz.mirrors.reduce(0) { $0 + $1.changes }
            } catch {
                Issue.record("seed \(seed): \(error)")
                return
            }
        }
        #expect(changes > Int(count), "the lists tell of something")
    }

    /// Edits that commits forget, windows without their neighbours: the fuzzer finds both.
    @Test(arguments: [PlantedObjectBug.liveForgetsNeighbours, .liveForgetsEditsBefore])
    func plantedBugsAreFound(_ bug: PlantedObjectBug) throws {
        var options = ContainerOptions()
        options.plantedBugs = [bug]
        for seed in 1...200 as ClosedRange<UInt64> {
            do {
                try LiveListFuzz(seed: seed, options).run(steps: 40)
            } catch is LiveListFuzz.Finding {
                return
            }
        }
        Issue.record("\(bug) was not found in 200 runs")
    }

    @Test func aChangeNamesSectionsAndPlaces() throws {
        let container = try memory()
        let ids = try makeItems(6, in: container) { item, index in
            item.priority = index < 3 ? .low : .high
        }
        let context = container.newContext()
        let sectioned = try context.live(
            Item.all.sorted { [$0.number.ascending] },
            sectionedBy: { $0.priority }
        )
        #expect(sectioned.sections.map(\.value) == [.low, .high])
        #expect(sectioned.sections.map(\.count) == [3, 3])
        #expect(sectioned.sections[1].map(\.number) == [3, 4, 5])
        var told: [LiveChange<Item>] = []
        let observation = sectioned.list.onChange { told.append($0) }
        let other = container.newContext()
        try existing(ids[4], in: other).priority = .normal
        try other.save()
        context.advance()
        let change = try #require(told.first)
        #expect(told.count == 1)
        #expect(change.insertedSections == [1])
        #expect(change.deletedSections == [])
        // Item 4 goes in front of item 3: of the two ways to say it, the one that moves one object.
        #expect(change.moved.map(\.id) == [ids[4]])
        #expect(change.moved.first?.from.offset == 4)
        #expect(change.moved.first?.to.section == 1)
        #expect(change.moved.first?.to.item == 0)
        #expect(sectioned.sections.map(\.value) == [.low, .normal, .high])
        observation.cancel()
        try existing(ids[0], in: other).priority = .high
        try other.save()
        context.advance()
        #expect(told.count == 1)
        #expect(sectioned.list.count == 6)
    }

    @Test func aCollectionThatSomebodyHoldsStays() throws {
        let container = try memory()
        try makeItems(1_000, in: container)
        let context = container.newContext()
        let list = try context.live(Item.all.sorted { [$0.number.ascending] })
        let held = list.results
        let ids = held.ids
        let other = container.newContext()
        try other.batchDelete(Item.where { $0.number < 500 })
        context.advance()
        #expect(list.count == 500)
        #expect(held.count == 1_000)
        #expect(held.ids == ids)
        #expect(held[0].isDeleted)
        #expect(held[999].number == 999)
        #expect(list[0].number == 500)
    }

    @Test func observersOfAListAreToldOfItsChanges() throws {
        let container = try memory()
        let ids = try makeItems(3, in: container)
        let context = container.newContext()
        let list = try context.live(Item.where { $0.number < 10 })
        let told = Told()
        withObservationTracking {
            _ = list.count
        } onChange: {
            told.count += 1
        }
        let other = container.newContext()
        try existing(ids[0], in: other).number = 20
        try other.save()
        #expect(told.count == 0)
        context.advance()
        #expect(told.count == 1)
        #expect(list.count == 2)
    }

    /// Counts calls that may come from anywhere.
    private final class Told: @unchecked Sendable {
        var count = 0
    }

    @Test func aListThatIsGoneIsFollowedNoMore() throws {
        let container = try memory()
        try makeItems(3, in: container)
        let context = container.newContext()
        var list: LiveResults<Item>? = try context.live(Item.all)
        weak let gone = list
        #expect(list?.count == 3)
        list = nil
        #expect(gone == nil)
        try makeItems(3, in: container)
        context.advance()
        #expect(context.live?.snapshot == nil)
    }

    @Test func aRequestThatCannotBeAnsweredLeavesTheList() throws {
        let container = try memory()
        try makeItems(3, in: container)
        let context = container.newContext()
        let list = try context.live(Item.all)
        list.descriptor = Item.all.limit(-1)
        #expect(list.failure?.code == .invalidRequest)
        #expect(list.count == 3)
        list.descriptor = Item.all.limit(2)
        #expect(list.failure == nil)
        #expect(list.count == 2)
        #expect(code { _ = try context.live(Item.all, batchSize: 0) } == .invalidRequest)
    }

    /// A batched list with an index, and a live one, cost what is looked at: not its length.
    @Test func openingCostsNoEntries() throws {
        for count in [1_000, 2_000] {
            let container = try memory()
            try makeItems(count, in: container)
            let context = container.newContext()
            let before = container.statistics
            let request = Item.where { $0.number >= 10 }.sorted { [$0.number.descending] }
            let batched = try context.fetchBatched(request)
            let list = try context.live(request)
            #expect(batched.count == count - 10)
            #expect(list.count == count - 10)
            #expect(batched.id(at: 5) == list.results.id(at: 5))
            let after = container.statistics
            #expect(after.entriesScanned - before.entriesScanned == 2)
            #expect(after.rowsScanned == before.rowsScanned)
            #expect(after.storeReads == before.storeReads)
        }
    }

    /// What a commit costs depends on what it changed; one hundred lists read its rows once.
    @Test func aCommitCostsTheRowsThatItChanged() throws {
        var costs: [Int] = []
        for count in [2_000, 4_000] {
            let container = try memory()
            let ids = try makeItems(count, in: container)
            let context = container.newContext()
            let lists = try (0..<100).map { _ in
                try context.live(Item.all.sorted { [$0.number.ascending] })
            }
            let bystanders = try (0..<100).map { _ in try context.live(Folder.all) }
            let other = container.newContext()
            try existing(ids[7], in: other).number = 99
            try other.save()
            container.trimMemory()
            let before = container.statistics
            context.advance()
            let after = container.statistics
            #expect(after.storeReads - before.storeReads <= 2)
            #expect(after.rowsScanned == before.rowsScanned)
            for list in lists { #expect(list.count == count) }
            for list in bystanders { #expect(list.isEmpty) }
            costs.append(after.entriesScanned - before.entriesScanned)
        }
        #expect(costs[0] == costs[1])
    }
}
