// Live values and commit notices.

import Foundation
import Testing
import VarveBase

@testable import VarveObjects

@Suite(.verified) struct LiveValueTests {
    @Test func valuesFollowCommitsAndEdits() throws {
        let container = try memory()
        let ids = try makeItems(5, in: container)
        let context = container.newContext()
        let few = Item.where { $0.number < 3 }
        let count = try context.liveCount(few)
        let exists = try context.liveExists(Item.where { $0.number == 77 })
        let sum = try context.liveSum(few) { $0.number }
        let least = try context.liveMinimum(Item.all) { $0.number }
        let most = try context.liveMaximum(Item.all) { $0.number }
        let one = try context.liveObject(ids[1])
        func values() -> [Int?] {
            [count.value, exists.value ? 1 : 0, sum.value, least.value, most.value]
        }
        #expect(values() == [3, 0, 3, 0, 4])
        #expect(one.value?.number == 1)
        let other = container.newContext()
        try existing(ids[0], in: other).number = 77
        other.delete(try existing(ids[1], in: other))
        try other.save()
        #expect(values() == [3, 0, 3, 0, 4])
        context.advance()
        #expect(values() == [1, 1, 2, 2, 77])
        #expect(one.value == nil)
        let item = Item(in: context)
        item.number = -5
        context.processPendingChanges()
        #expect(values() == [2, 1, -3, -5, 77])
        context.rollback()
        #expect(values() == [1, 1, 2, 2, 77])
    }

    @Test func onlyCommitsThatCanChangeItAskAgain() throws {
        let container = try memory()
        let ids = try makeItems(5, in: container)
        let context = container.newContext()
        let count = try context.liveCount(Item.where { $0.number < 3 })
        let sum = try context.liveSum(Item.where { $0.number < 3 }) { $0.number }
        let one = try context.liveObject(ids[0])
        var told = 0
        let observation = count.onChange { _ in told += 1 }
        let other = container.newContext()
        func asked() -> [Int] {
            [count.timesAsked, sum.timesAsked, one.timesAsked, told]
        }
        func change(_ edit: () throws -> Void) throws {
            try edit()
            try other.save()
            context.advance()
        }
        try change { _ = Folder(in: other) }
        try change { try existing(ids[4], in: other).number = 5 }
        try change { try existing(ids[0], in: other).title = "other" }
        #expect(asked() == [1, 1, 1, 0])
        try change { try existing(ids[0], in: other).number = 1 }
        #expect(asked() == [1, 2, 1, 0])
        #expect(sum.value == 4)
        try change { other.delete(try existing(ids[0], in: other)) }
        #expect(asked() == [2, 3, 2, 1])
        observation.cancel()
    }

    @Test func noticesSayWhatEachCommitChanged() async throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let listening = container.commits.makeAsyncIterator()
        let ids = try makeItems(2, in: container)
        try await container.performBackgroundTask(author: "second") { context in
            try existing(ids[0], in: context).title = "new"
            context.delete(try existing(ids[1], in: context))
            try context.save()
        }
        var notices = listening
        let first = try #require(await notices.next())
        #expect(first.author == "test")
        #expect(first.isOwn)
        #expect(first.missed == 0)
        #expect(first.ids(of: Item.self, .inserted) == ids)
        #expect(first.changedObjects == 2)
        let second = try #require(await notices.next())
        #expect(second.author == "second")
        #expect(second.commit > first.commit)
        #expect(second.ids(of: Item.self, .updated) == [ids[0]])
        #expect(second.ids(.deleted) == [ids[1].objectID])
        #expect(second.ids(of: Folder.self, .updated).isEmpty)
        try await container.close()
        #expect(await notices.next() == nil)
    }

    @Test func aSlowListenerHearsHowManyItMissed() async throws {
        let container = try memory()
        var notices = container.commits(bufferSize: 2).makeAsyncIterator()
        for _ in 0..<5 { try makeItems(1, in: container) }
        #expect(await notices.next()?.missed == 3)
        #expect(await notices.next()?.missed == 0)
    }

    /// An actor with a context of its own: its loop follows what others save.
    private actor Follower {
        private let context: ManagedObjectContext
        private(set) var counts: [Int] = []

        init(_ container: PersistentContainer) { context = container.newContext() }

        func follow(until wanted: Int) async throws {
            let list = try context.live(Item.all)
            counts.append(list.count)
            for await change in list.changes {
                counts.append(list.count)
                #expect(!change.isReplaced)
                if list.count >= wanted { return }
            }
        }
    }

    @Test(.timeLimit(.minutes(10))) func aLoopOverChangesFollowsOthers() async throws {
        let container = try memory()
        let follower = Follower(container)
        let following = Task { try await follower.follow(until: 30) }
        while await follower.counts.isEmpty { await Task.yield() }
        for _ in 0..<10 { try makeItems(3, in: container) }
        try await following.value
        let counts = await follower.counts
        #expect(counts.first == 0)
        #expect(counts.last == 30)
        #expect(counts == counts.sorted())
    }

    @Test(.timeLimit(.minutes(10))) func aLoopEndsWithItsTaskAndWithTheContainer() async throws {
        let container = try memory()
        let follower = Follower(container)
        let cancelled = Task { try await follower.follow(until: .max) }
        cancelled.cancel()
        try await cancelled.value
        let other = Follower(container)
        let closed = Task { try await other.follow(until: .max) }
        while await other.counts.isEmpty { await Task.yield() }
        try await container.close(discardingEdits: true)
        try await closed.value
    }

    /// Copies of one iterator share what waits for them: each change goes to one of them.
    @MainActor @Test(.timeLimit(.minutes(10))) func twoTasksShareAnIterator() async throws {
        let container = try memory()
        let list = try container.viewContext.live(Item.all)
        let shared = list.changes.makeAsyncIterator()
        let tasks = (0..<2).map { _ in
            Task { @MainActor in
                var own = shared
                return await own.next()?.inserted.count ?? 0
            }
        }
        for _ in 0..<100 { await Task.yield() }
        try makeItems(1, in: container)
        while list.count < 1 { await Task.yield() }
        try makeItems(2, in: container)
        var told = 0
        for task in tasks { told += await task.value }
        #expect(told == 3)
    }

    @MainActor @Test(.timeLimit(.minutes(10)))
    func theViewContextFollowsByItself() async throws {
        let container = try memory()
        let view = container.viewContext
        let list = try view.live(Item.all.sorted { [$0.number.ascending] })
        var changes = list.changes.makeAsyncIterator()
        try makeItems(3, in: container)
        let saved = await changes.next()
        #expect(saved?.inserted.count == 3)
        // An edit shows at the next turn of the main actor.
        list[0].number = 7
        #expect(list.results.map(\.number) == [7, 1, 2])
        let edited = await changes.next()
        #expect(edited?.moved.map(\.to.offset) == [2])
        #expect(list.results.map(\.number) == [1, 2, 7])
    }
}
