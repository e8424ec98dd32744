// Suspensions, backups, compactions and history in the wrong order, and beside each other.

import Foundation
import Testing
import VarveBase
import VarveTesting

@testable import VarveObjects

@Suite(.verified) struct AttackContainerTests {
    private func told(_ body: () async throws -> Void) async -> StoreError.Code? {
        do {
            try await body()
            return nil
        } catch let error as StoreError {
            return error.code
        } catch {
            Issue.record("not a StoreError: \(error)")
            return nil
        }
    }

    @Test func suspendAndResumeFromEverywhereAtOnce() async throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        try container.resumeNow()
        try makeItems(10, in: container)
        for round in 0..<10 {
            await withTaskGroup(of: StoreError.Code?.self) { group in
                for number in 0..<6 {
                    group.addTask {
                        await self.told {
                            switch (round + number) % 3 {
                            case 0: try await container.suspend()
                            case 1: try await container.resume()
                            default: try makeItems(1, in: container)
                            }
                        }
                    }
                }
                for await code in group { #expect(code == nil || code == .suspended) }
            }
            #expect(try container.newContext().count(Item.all) >= 10)
        }
        try await container.suspend()
        try await container.suspend()
        try await container.resume()
        #expect(!container.isSuspended)
        try makeItems(1, in: container)
        try await container.resume()
        try container.closeNow()
    }

    @Test func closeWhileSuspendedAndWhileSuspending() async throws {
        let folder = try TemporaryFolder()
        for _ in 0..<10 {
            let container = try folder.open()
            try makeItems(5, in: container)
            async let first = told { try await container.suspend() }
            async let second = told { try await container.close(discardingEdits: true) }
            async let third = told { try makeItems(1, in: container) }
            let codes = await [first, second, third]
            #expect(codes[0] == nil || codes[0] == .closed)
            #expect(codes[1] == nil)
            #expect([nil, .closed, .suspended].contains(codes[2]))
            #expect(await told { try await container.resume() } == .closed)
        }
        let again = try folder.open()
        #expect(try again.newContext().count(Item.all) >= 50)
        try again.closeNow()
    }

    /// Everything that an app may ask for while it is suspended gives an answer.
    @Test func everythingWhileSuspended() async throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let ids = try makeItems(20, in: container)
        let token = try container.historyToken
        let context = container.newContext()
        context.undoLimit = 5
        let item = try context.object(with: ids[3])
        item.title = "edited"
        try context.detectConflicts(for: item)
        try container.suspendNow()
        container.trimMemory(.everything)
        #expect(try container.history(after: token).commits().isEmpty)
        #expect(try container.newContext(at: .token(token)).count(Item.all) == 20)
        #expect(try container.spaceUse().fileBytes > 0)
        #expect(try context.revert(ids[3], to: .token(token)).isEmpty)
        #expect(item.title == "item 3")
        try context.undo()
        #expect(item.title == "edited")
        context.advance()
        context.refreshAllObjects()
        #expect(code { try context.save() } == .suspended)
        #expect(
            code { _ = try context.makeBlob(Data(count: 5_000), for: Picture.columns.data) }
                != .damaged
        )
        let branch = try context.branch()
        try branch.object(with: ids[4]).title = "branch"
        try branch.mergeIntoParent()
        context.rollback()
        let other = container.newContext()
        #expect(try other.fetch(Item.all.returningFaults(false)).count == 20)
        #expect(await told { _ = try await container.compact() } == .suspended)
        #expect(other.readFailures.isEmpty && context.readFailures.isEmpty)
        try await container.close()
    }

    @Test func aBackupWhileOthersSaveIsOneCommit() async throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        // Both have the same number in every commit.
        let ids = try makeItems(2, in: container) { item, _ in item.number = 0 }
        let isOver = Shared(false)
        let saver = Task.detached {
            let context = container.newContext()
            let items = try ids.map { try context.object(with: $0) }
            var number = 0
            while !isOver.withLock({ $0 }) {
                number += 1
                for item in items { item.number = number }
                let picture = Picture(in: context)
                picture.data = try context.makeBlob(
                    Data(repeating: UInt8(truncatingIfNeeded: number), count: 3_000),
                    for: Picture.columns.data
                )
                if number > 3, let old = try context.fetch(Picture.all).first {
                    context.delete(old)
                }
                try context.save()
                await Task.yield()
            }
        }
        let copy = folder.url.appending(path: "copy.varve")
        for round in 0..<6 {
            try await Task.sleep(for: .milliseconds(20))
            if round == 3 {
                try await container.compact()
                let after = await told { try await container.backup(to: copy) }
                #expect(after == .invalidRequest)
                for name in ["copy.varve", "copy.varve-lock", "copy.varve-blobs"] {
                    try? FileManager.default.removeItem(at: folder.url.appending(path: name))
                }
            }
            let result = try await container.backup(to: copy)
            let read = try PersistentContainer.openNow(
                at: copy,
                schema: TestSchema.self,
                options: ContainerOptions(isReadOnly: true)
            )
            let context = read.newContext()
            #expect(context.container.statistics.newestCommit == result.commit)
            let items = try ids.map { try #require(try context.existingObject(with: $0)) }
            #expect(items[0].number == items[1].number)
            for picture in try context.fetch(Picture.all) {
                let bytes = try #require(try picture.data?.readAll())
                #expect(bytes.count == 3_000 && Set(bytes).count == 1)
            }
            try read.closeNow()
        }
        isOver.withLock { $0 = true }
        try await saver.value
        try await container.close()
        let place = folder.url.appending(path: "again.varve")
        try await PersistentContainer.restore(from: copy, to: place)
        let again = try PersistentContainer.openNow(at: place, schema: TestSchema.self)
        let context = again.newContext()
        let items = try ids.map { try #require(try context.existingObject(with: $0)) }
        #expect(items[0].number == items[1].number)
        try again.closeNow()
    }

    @Test func restoringOverAnOpenStoreIsRefused() async throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        try makeItems(3, in: container)
        let copy = folder.url.appending(path: "copy.varve")
        try await container.backup(to: copy)
        try makeItems(3, in: container)
        func restore(_ replacing: Bool) async -> StoreError.Code? {
            await told {
                try await PersistentContainer.restore(
                    from: copy,
                    to: folder.store,
                    replacing: replacing
                )
            }
        }
        #expect(await restore(true) == .busy)
        #expect([.busy, .storeExists].contains(await restore(false)))
        #expect(
            await told {
                try await PersistentContainer.restore(from: copy, to: copy, replacing: true)
            } != nil
        )
        // A store that is open cannot be restored from, either, or it is whole.
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(!names.contains { $0.contains("-new") })
        try makeItems(1, in: container)
        #expect(try container.newContext().count(Item.all) == 7)
        try await container.close()
        #expect(await restore(false) == .storeExists)
        #expect(await restore(true) == nil)
        let again = try folder.open()
        #expect(try again.newContext().count(Item.all) == 3)
        try again.closeNow()
    }

    /// A context of the past goes on beside compactions, and one that is made meanwhile shows its
    /// commit or says that it is gone.
    @Test func thePastBesideCompactions() async throws {
        let folder = try TemporaryFolder()
        let container = try folder.open(ContainerOptions(compactsAutomatically: false))
        let context = container.newContext()
        let item = Item(in: context)
        let picture = Picture(in: context)
        item.picture = picture
        var commits: [(CommitNumber, Int)] = []
        func step(_ number: Int) throws {
            item.number = number
            picture.data = try context.makeBlob(
                Data(repeating: UInt8(number), count: 20_000),
                for: Picture.columns.data
            )
            let tag = Tag(in: context)
            tag.name = "\(number)"
            item.tags.insert(tag, at: 0)
            commits.append((try #require(try context.save().commit), number))
        }
        for number in 1...8 { try step(number) }
        let id = item.id
        func check(_ past: ManagedObjectContext, _ number: Int) throws {
            let old = try #require(try past.existingObject(with: id))
            #expect(old.number == number && old.tags.count == number)
            #expect(old.tags.first?.name == "\(number)")
            let bytes = try #require(try old.picture?.data?.readAll())
            #expect(bytes == Data(repeating: UInt8(number), count: 20_000))
        }
        let held = try container.newContext(at: .commit(commits[2].0))
        for round in 0..<6 {
            let compaction = Task { try await container.compact() }
            for (commit, number) in commits {
                do {
                    let past = try container.newContext(at: .commit(commit))
                    try check(past, number)
                } catch let error as StoreError {
                    #expect(error.code == .commitExpired)
                }
            }
            try step(9 + round)
            _ = try await compaction.value
            container.trimMemory(.everything)
            try check(held, 3)
            held.reset()
            try check(held, 3)
        }
        #expect(code { _ = try container.newContext(at: .commit(commits[0].0)) } == .commitExpired)
        #expect(code { try context.revert(commit: commits[1].0) } == .commitExpired)
        try container.closeNow()
    }

    /// What a revert of a deletion needs is what the commit deleted: the whole graph.
    @Test func aDeletedGraphIsReverted() throws {
        let container = try graph()
        let context = container.newContext()
        context.undoLimit = 5
        let all = try nodes("root", "one", "two", "leaf", "free", "late", in: context)
        all[1].parent = all[0]
        all[2].parent = all[0]
        all[3].parent = all[1]
        for node in [all[3], all[1], all[2]] { all[4].playlist.append(node) }
        for node in [all[2], all[4], all[1]] { all[0].chapters.append(node) }
        all[0].next = all[4]
        all[4].loose = all[3]
        all[1].left.append(all[2])
        all[2].key = "k"
        try context.save()
        context.delete(all[0])
        let deletion = try #require(try context.save().commit)
        #expect(try storedNames(container).sorted() == ["free", "late"])
        // Others go on with what is left.
        let other = container.newContext()
        let theirs = try other.same([all[4], all[5]])
        theirs[0].playlist.append(theirs[1])
        theirs[1].next = theirs[0]
        let taker = Node(in: other)
        (taker.name, taker.key) = ("taker", "k")
        try other.save()
        context.advance()
        #expect(code { try context.revert(commit: deletion) } == .revertConflict)
        #expect(!context.hasChanges)
        let skipped = try context.revert(commit: deletion, policy: .skip, undoActionName: "Back")
        #expect(!skipped.isEmpty && context.undoActionName == "Back")
        try expectSound(context)
        #expect(theirs[1].next === theirs[0])
        let free = all[4]
        #expect(free.previous?.name == "late" && free.loose?.name == "leaf")
        #expect(Set(free.playlist.names) == ["leaf", "one", "two", "late"])
        let root = try #require(try context.existingObject(with: all[0].id))
        #expect(root.chapters.names == ["two", "free", "one"] && root.next == nil)
        try context.undo()
        #expect(!context.hasChanges)
        try context.redo()
        try expectSound(context)
        try context.save()
        let fresh = container.newContext()
        try expectSound(fresh)
        #expect(try fresh.fetch(Node.where { $0.key == "k" }).count == 1)
        // The same commit is reverted once more: there is nothing left of it to be reverted.
        _ = try context.revert(commit: deletion, policy: .skip)
        try expectSound(context)
        try context.save()
        try expectSound(container.newContext())
    }

    @Test func tokensAfterARestore() async throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let (id, first) = try saveTitle("a", in: container)
        let early = try container.historyToken
        let copy = folder.url.appending(path: "copy.varve")
        try await container.backup(to: copy)
        try saveTitle("lost", of: id, in: container)
        let lost = try container.historyToken
        try container.closeNow()
        try await PersistentContainer.restore(from: copy, to: folder.store, replacing: true)
        let again = try folder.open()
        #expect(try again.history(after: early).commits().isEmpty)
        #expect(code { _ = try again.history(after: lost) } == .unknownCommit)
        try saveTitle("b", of: id, in: again)
        #expect(code { _ = try again.history(after: lost) } == .unknownCommit)
        #expect(code { _ = try again.newContext(at: .token(lost)) } == .unknownCommit)
        #expect(try again.newContext(at: .commit(first)).existingObject(with: id)?.title == "a")
        let since = try again.history(after: early).commits()
        #expect(since.count == 1)
        try await again.compact()
        #expect(code { _ = try again.history(after: early) } == .commitExpired)
        try again.closeNow()
    }

    /// `detectConflicts` in a branch concerns what its parent saves.
    @Test func aBranchReliesOnAnObject() throws {
        let container = try graph()
        let parent = container.newContext()
        let all = try nodes("a", "b", in: parent)
        let branch = try parent.branch()
        let copies = try branch.same(all)
        copies[0].name = "edited because b is b"
        try branch.detectConflicts(for: copies[1])
        let other = container.newContext()
        try other.same(all)[1].name = "c"
        try other.save()
        try branch.mergeIntoParent()
        #expect(code { try parent.save() } == .conflict)
        parent.advance()
        try parent.save()
        #expect(try storedNames(container).sorted() == ["c", "edited because b is b"])
    }

    @Test func trimmingBesideEverything() async throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let ids = try makeItems(500, in: container)
        let isOver = Shared(false)
        let trimmer = Task.detached {
            while !isOver.withLock({ $0 }) {
                container.trimMemory(.everything)
                container.trimMemory()
                try await Task.sleep(for: .microseconds(200))
            }
        }
        let context = container.newContext()
        context.undoLimit = 50
        var random = SeededRandom(seed: 7)
        for round in 0..<60 {
            context.withUndoGroup {
                for _ in 0..<10 {
                    if let id = ids.randomElement(using: &random),
                        let item = try? context.existingObject(with: id)
                    {
                        item.title = "round \(round)"
                        if round % 5 == 4 { context.delete(item) }
                    }
                }
            }
            if round % 4 == 0 { try context.save() }
            if round % 7 == 0 { try context.undo() }
            if round % 9 == 0 { context.refreshAllObjects() }
        }
        while context.canUndo { try context.undo() }
        try context.save()
        #expect(context.readFailures.isEmpty)
        isOver.withLock { $0 = true }
        try await trimmer.value
        try container.closeNow()
    }
}
