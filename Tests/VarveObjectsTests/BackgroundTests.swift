// Background work, merging, identity, pins.

import Foundation
import Observation
import Testing
import VarveObjects

@Suite(.verified) struct BackgroundTests {
    @Test func freshContextsOnOtherThreads() async throws {
        let container = try memory(ContainerOptions(backgroundThreads: 2))
        try makeItems(3, in: container)
        let running = Shared((now: 0, most: 0))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    try await container.performBackgroundTask { context in
                        running.withLock {
                            $0.now += 1
                            $0.most = max($0.most, $0.now)
                        }
                        let count = try context.count(Item.all)
                        #expect(context.commit != nil && !context.hasChanges && count == 3)
                        // Two meet, however long the second takes to begin; a third would be seen.
                        for _ in 0..<12_000 {
                            Thread.sleep(forTimeInterval: 0.005)
                            if running.withLock({ $0.most }) >= 2 { break }
                        }
                        running.withLock { $0.now -= 1 }
                    }
                }
            }
            try await group.waitForAll()
        }
        // As many threads as allowed, however many cooperative ones there are.
        #expect(running.withLock { $0.most } == 2)
        #expect(container.statistics.contexts == 0 && container.statistics.pins.isEmpty)
    }

    @Test func valuesErrorsAndUndo() async throws {
        struct Mine: Error {}
        let container = try memory()
        let value = try await container.performBackgroundTask { context in
            Item(in: context).title = "kept"
            try context.save()
            return 7
        }
        #expect(value == 7)
        await #expect(throws: Mine.self) {
            try await container.performBackgroundTask { context in
                Item(in: context).title = "dropped"
                throw Mine()
            }
        }
        let result: Result<Int, any Error> = await withCheckedContinuation { continuation in
            container.performBackgroundTask(
                author: "second form",
                { context in try context.count(Item.all) },
                completion: { continuation.resume(returning: $0) }
            )
        }
        #expect(try result.get() == 1)
    }

    @Test func unsavedEditsThrow() async throws {
        let container = try memory()
        do {
            try await container.performBackgroundTask { context in
                Item(in: context).title = "forgotten"
            }
            Issue.record("edits were dropped in silence")
        } catch let error as StoreError {
            #expect(error.code == .unsavedChanges)
        }
        try await container.performBackgroundTask { context in
            Item(in: context).title = "not wanted"
            context.rollback()
        }
        #expect(container.statistics.registeredObjects == 0)
    }

    @Test func aBackgroundContextLivesOn() async throws {
        let container = try memory()
        let worker = container.newBackgroundContext(author: "worker")
        let id = try await worker.perform { context in
            let item = Item(in: context)
            item.title = "unsaved"
            return item.id
        }
        let title = try await worker.perform { context in
            let item = try context.existingObject(with: id)
            try context.save()
            return item?.title
        }
        #expect(title == "unsaved")
        let counter = Shared(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    try await worker.perform { context in
                        let before = counter.withLock { $0 }
                        _ = try context.count(Item.all)
                        counter.withLock { $0 = before + 1 }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(counter.withLock { $0 } == 20)
    }

    @Test func aCancelledTaskEnds() async throws {
        let container = try memory()
        let task = Task {
            try await container.performBackgroundTask { context in
                while true { try context.checkCancellation() }
            }
        }
        try await Task.sleep(for: .milliseconds(20))
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let never = Task {
            try? await Task.sleep(for: .seconds(60))
            return try await container.performBackgroundTask { _ in 1 }
        }
        never.cancel()
        await #expect(throws: CancellationError.self) { try await never.value }
    }

    @Test func yourOwnActorOwnsAContext() async throws {
        actor Importer {
            private let context: ManagedObjectContext
            init(_ container: PersistentContainer) { context = container.newContext() }
            func add(_ title: String) throws -> Item.ID {
                let item = Item(in: context)
                item.title = title
                try context.save()
                return item.id
            }
            func first() throws -> Item.Snapshot? {
                try context.fetch(Item.all.limit(1)).first?.snapshot()
            }
        }
        let container = try memory()
        let importer = Importer(container)
        let id = try await importer.add("from an actor")
        let snapshot = try await importer.first()
        #expect(snapshot?.title == "from an actor" && snapshot?.id == id)
        #expect(snapshot?.serial == nil && snapshot?.picture == nil)
    }
}

@Suite(.verified) struct MergeTests {
    @MainActor @Test func theViewContextFollows() async throws {
        let container = try memory()
        let ids = try makeItems(3, in: container)
        let view = container.viewContext
        let items = try view.fetch(Item.all.returningFaults(false))
        items[1].number = 50
        let changes = Shared<[String]>([])
        for (index, item) in items.enumerated() {
            withObservationTracking {
                _ = item.title
            } onChange: {
                changes.withLock { $0.append("title \(index)") }
            }
        }
        try await container.performBackgroundTask { context in
            for id in ids.prefix(2) { try context.existingObject(with: id)?.title = "new" }
            Item(in: context).title = "fourth"
            try context.save()
        }
        for _ in 0..<60_000 where items[0].title == "item 0" {
            try await Task.sleep(for: .milliseconds(1))
        }
        // Unsaved edits stay, the rest shows the new values. Who did not change is silent.
        #expect(items[0].title == "new" && items[1].title == "new" && items[1].number == 50)
        #expect(items[2].title == "item 2")
        #expect(changes.withLock { $0.sorted() } == ["title 0", "title 1"])
        #expect(try view.count(Item.all) == 4)
        try view.save()
        // No merge in the middle of synchronous code.
        let other = container.newContext()
        try other.existingObject(with: ids[2])?.title = "later"
        try other.save()
        #expect(items[2].title == "item 2")
        for _ in 0..<60_000 where items[2].title == "item 2" {
            try await Task.sleep(for: .milliseconds(1))
        }
        #expect(items[2].title == "later")
    }

    @Test func otherContextsStayUntilTheyMove() throws {
        let container = try memory()
        let ids = try makeItems(1, in: container)
        let context = container.newContext()
        let item = try #require(try context.existingObject(with: ids[0]))
        let other = container.newContext()
        try other.existingObject(with: ids[0])?.title = "theirs"
        try other.save()
        let more = Item(in: other)
        try other.save()
        #expect(try context.count(Item.all) == 1)
        #expect(item.title == "item 0")
        #expect(try context.existingObject(with: more.id) == nil)
        context.advance()
        #expect(try context.count(Item.all) == 2)
        #expect(item.title == "theirs")
        // Saving moves too.
        try other.existingObject(with: ids[0])?.title = "again"
        try other.save()
        Item(in: context).title = "mine"
        try context.save()
        #expect(try context.count(Item.all) == 3)
        #expect(item.title == "again")
    }

    @Test func aLongWayBehindEveryObjectIsLookedAt() throws {
        let container = try memory(ContainerOptions(rememberedChanges: 0))
        let ids = try makeItems(3, in: container)
        let context = container.newContext()
        let items = try context.fetch(Item.all.returningFaults(false))
        let fault = items[2]
        context.refresh(fault, mergeChanges: false)
        let other = container.newContext()
        try other.existingObject(with: ids[0])?.title = "theirs"
        other.delete(try other.object(with: ids[1]))
        other.delete(try other.object(with: ids[2]))
        try other.save()
        context.advance()
        #expect(items[0].title == "theirs" && items[1].isDeleted && items[1].title == "item 1")
        #expect(fault.isDeleted && fault.title == "item 2")
    }

    /// A commit that changed more objects than a context has is held against those it has.
    @Test func aLargeCommitMeetsFewObjects() throws {
        let container = try memory()
        let ids = try makeItems(200, in: container)
        let context = container.newContext()
        let items = try [3, 4, 5, 6].map { try #require(try context.existingObject(with: ids[$0])) }
        #expect(items.map(\.title) == ["item 3", "item 4", "item 5", "item 6"])
        let other = container.newContext()
        for item in try other.fetch(Item.all) where item.number != 6 { item.title = "theirs" }
        try other.save()
        for id in ids[4...5] { other.delete(try other.object(with: id)) }
        try other.save()
        // The last change of each counts.
        for item in try other.fetch(Item.all) where item.number != 6 { item.title = "again" }
        try other.save()
        context.advance()
        #expect(items.map(\.title) == ["again", "item 4", "item 5", "item 6"])
        #expect(items.map(\.isDeleted) == [false, true, true, false])
    }

    /// What the app reads when a row is lost is as new as everything else afterwards, or lost too.
    @Test(arguments: [1 << 20, 0])
    func whatIsReadWhileARowIsLostMovesToo(rememberedChanges: Int) throws {
        let container = try memory(ContainerOptions(rememberedChanges: rememberedChanges))
        let ids = try makeItems(5, in: container)
        let context = container.newContext()
        #expect(try context.count(Item.all) == 5)
        let lost = try context.object(with: ids[1])
        #expect(lost.isFault)
        let other = container.newContext()
        for id in [ids[1], ids[3], ids[4]] { other.delete(try other.object(with: id)) }
        try other.existingObject(with: ids[0])?.title = "theirs"
        try other.existingObject(with: ids[2])?.title = "theirs"
        try other.save()
        var read: [Item] = []
        let hook = AwakeHook()
        hook.run = {
            hook.run = nil
            for id in [ids[0], ids[2], ids[3]] {
                if let item = (try? context.existingObject(with: id)) ?? nil { read.append(item) }
            }
        }
        AwakeHook.current = hook
        defer { AwakeHook.current = nil }
        context.advance()
        #expect(lost.isDeleted && read.map(\.isDeleted) == [false, false, true])
        #expect(read.map(\.title) == ["theirs", "theirs", "item 3"])
    }

    @MainActor @Test func observationTellsOfEdits() throws {
        let container = try memory()
        let view = container.viewContext
        let item = Item(in: view)
        let folder = Folder(in: view)
        try view.save()
        let calls = Shared(0)
        func watch(_ read: () -> Void) {
            withObservationTracking(read) { calls.withLock { $0 += 1 } }
        }
        watch { _ = item.title }
        item.number = 4
        #expect(calls.withLock { $0 } == 0)
        item.title = "x"
        #expect(calls.withLock { $0 } == 1)
        watch { _ = folder.items.count }
        item.folder = folder
        #expect(calls.withLock { $0 } == 2)
        watch { _ = item.title }
        view.rollback()
        #expect(calls.withLock { $0 } == 3)
        // Contexts that no view watches make no registrar.
        let other = container.newContext(observes: false)
        let same = try #require(try other.existingObject(with: item.id))
        watch { _ = same.title }
        same.title = "unwatched"
        #expect(calls.withLock { $0 } == 3)
    }
}

@Suite(.verified) struct IdentityTests {
    @Test func idsArePermanentAndNeverGivenTwice() throws {
        let folder = try TemporaryFolder()
        var ids: [Item.ID] = []
        var container = try folder.open()
        for round in 0..<3 {
            let context = container.newContext()
            let kept = Item(in: context)
            let id = kept.id
            try context.save()
            #expect(kept.id == id)
            let dropped = Item(in: context)
            ids += [id, dropped.id]
            context.rollback()
            #expect(try context.existingObject(with: ids.last!) == nil)
            if round == 1 {
                context.delete(kept)
                try context.save()
            }
        }
        #expect(ids == ids.sorted() && Set(ids).count == 6)
        try container.closeNow()
        container = try folder.open()
        let context = container.newContext()
        let committed = [ids[0], ids[2], ids[4]]
        let next = Item(in: context).id
        #expect(committed.allSatisfy { $0 < next })
        #expect(try context.existingObject(with: ids[2]) == nil)
        #expect(try context.existingObject(with: ids[4]) != nil)
        try container.closeNow(discardingEdits: true)
    }

    @Test func formsSurviveRestartAndForeignIDsAreRefused() throws {
        let folder = try TemporaryFolder()
        var container = try folder.open()
        let context = container.newContext()
        let item = Item(in: context)
        item.title = "same"
        try context.save()
        let uri = item.objectID.uri
        let data = try JSONEncoder().encode(item.id)
        try container.closeNow()
        container = try folder.open()
        let fresh = container.newContext()
        let id = try #require(ManagedObjectID(uri: uri))
        let same = try fresh.existingObject(with: id) as? Item
        #expect(same?.title == "same")
        let typed = try JSONDecoder().decode(Item.ID.self, from: data)
        #expect(try fresh.existingObject(with: typed)?.title == "same")
        #expect(typed.objectID == id)
        let wrong = try JSONDecoder().decode(Tag.ID.self, from: data)
        #expect(code { _ = try fresh.existingObject(with: wrong) } == .wrongEntity)
        let other = try memory().newContext()
        #expect(code { _ = try other.existingObject(with: typed) } == .foreignID)
        #expect(other.registeredObject(with: typed) == nil)
        for bad in ["", "varve:", "varve:x/1/2", uri + "/3", "http://a", uri.dropLast() + "x"] {
            #expect(ManagedObjectID(uri: String(bad)) == nil, "\(bad)")
        }
        try container.closeNow()
    }

    @Test func afterRollbackThereIsNoSuchObject() throws {
        let container = try memory()
        let context = container.newContext()
        let id = Item(in: context).id
        context.rollback()
        #expect(try context.existingObject(with: id) == nil)
    }
}

@Suite(.verified) struct PinTests {
    @Test func pinsBeginWithTheFirstReadAndEndWithTheContext() throws {
        let container = try memory()
        try makeItems(1, in: container)
        var context: ManagedObjectContext? = container.newContext(author: "pinning")
        #expect(container.statistics.pins.isEmpty && context?.commit == nil)
        _ = try context?.count(Item.all)
        let first = try #require(container.statistics.pins.first)
        #expect(first.commit == context?.commit && first.label.contains("pinning"))
        #expect(first.age >= .zero && first.kind == .context && first.holders == 1)
        #expect(first.fileBytes == 0 && first.memoryBytes == 0)
        let other = container.newContext()
        Item(in: other).title = "x"
        try other.save()
        #expect(
            container.statistics.pins.map(\.commit).sorted() == [first.commit, first.commit.next]
        )
        context?.advance()
        #expect(context?.commit == first.commit.next)
        context?.reset()
        #expect(container.statistics.pins.count == 1)
        _ = try context?.count(Item.all)
        context = nil
        #expect(container.statistics.pins.count == 1 && container.statistics.contexts == 1)
    }
}
