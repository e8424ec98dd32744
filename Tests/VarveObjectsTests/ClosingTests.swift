// Closing a container: what it refuses to drop, what can be read behind it, who hears of it.

import Foundation
import Synchronization
import Testing
import VarveBase
import VarveObjects

@Suite(.verified) struct ClosingTests {
    /// What each context of a container would lose, as the error tells it.
    private func refusal(_ container: PersistentContainer) -> [String]? {
        do {
            try container.closeNow()
            return nil
        } catch let error as StoreError where error.code == .unsavedChanges {
            return error.details.map(\.message)
        } catch {
            Issue.record("another error: \(error)")
            return nil
        }
    }

    @Test func unsavedEditsKeepTheContainerOpen() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let ids = try makeItems(3, in: container)
        let first = container.newContext(author: "import")
        let second = container.newContext()
        Item(in: first).title = "new"
        try first.object(with: ids[0]).title = "edited"
        second.delete(try second.object(with: ids[1]))
        #expect(
            refusal(container) == [
                "context: 1 unsaved object", "context import: 2 unsaved objects",
            ]
        )
        // It is as open as before.
        try first.save()
        #expect(refusal(container) == ["context: 1 unsaved object"])
        second.rollback()
        try container.closeNow()
        let again = try folder.open()
        #expect(try again.newContext().count(Item.all) == 4)
        try again.closeNow()
    }

    @Test func whatIsUnsavedIsKnownForEveryKindOfEdit() throws {
        let other = try graph()
        let nodes = other.newContext()
        let (a, b) = (Node(in: nodes), Node(in: nodes))
        try nodes.save()
        // A list without inverse changes no row of its own.
        a.picks.append(b)
        #expect(nodes.hasChanges && refusal(other) == ["context: 1 unsaved object"])
        a.picks.remove(b)
        #expect(!nodes.hasChanges)
        a.name = "new"
        #expect(refusal(other) == ["context: 1 unsaved object"])
        a.name = ""
        nodes.delete(b)
        #expect(refusal(other) == ["context: 1 unsaved object"])
        nodes.rollback()
        let c = Node(in: nodes)
        #expect(refusal(other) == ["context: 1 unsaved object"])
        nodes.delete(c)
        nodes.processPendingChanges()
        #expect(!nodes.hasChanges)
        a.loose = b
        nodes.reset()
        try other.closeNow()
    }

    @Test func aContextThatIsGoneHoldsNothingUp() throws {
        let container = try memory()
        var kept: Item?
        do {
            let context = container.newContext()
            kept = Item(in: context)
        }
        #expect(kept?.context == nil)
        try container.closeNow()
    }

    @Test func closingMayDiscardEdits() async throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let context = container.newContext()
        Item(in: context).title = "never saved"
        try container.closeNow(discardingEdits: true)
        #expect(code { try context.save() } == .closed)
        let again = try folder.open()
        let empty = again.newContext()
        #expect(try empty.count(Item.all) == 0)
        Item(in: empty).title = "never saved either"
        try await again.close(discardingEdits: true)
    }

    @Test func aRunningTaskWithEditsHoldsClosingUp() async throws {
        let container = try memory()
        let refused = try await container.performBackgroundTask(author: "sync") { context in
            Item(in: context).title = "half"
            let error = code { try container.closeNow() }
            context.rollback()
            return error
        }
        #expect(refused == .unsavedChanges)
        try container.closeNow()
    }

    @Test(arguments: [false, true])
    func nothingIsReadFromAClosedStore(isInMemory: Bool) throws {
        let folder = try TemporaryFolder()
        let container = try isInMemory ? memory() : folder.open()
        let ids = try makeItems(300, in: container)
        let context = container.newContext()
        let items = try context.fetch(Item.all)
        let filled = items[0]
        #expect(filled.title == "item 0")
        let fault = try #require(items.first { $0.isFault })
        let list = try context.fetchBatched(Item.all)
        #expect(list[0] === filled)
        try container.closeNow()

        // What an object has in memory stays.
        #expect(filled.title == "item 0")
        // A fault is read no more, though its row may be in the cache.
        #expect(fault.title == "")
        #expect(fault.readFailure?.code == .closed)
        #expect(filled.tags.isEmpty && filled.folder == nil)
        #expect(context.readFailures.allSatisfy { $0.error.code == .closed })
        #expect(!context.readFailures.isEmpty)
        #expect(code { try context.load(fault) } == .closed)
        #expect(code { _ = try context.count(Item.all) } == .closed)
        #expect(code { _ = try context.fetch(Item.all) } == .closed)
        #expect(code { _ = try context.fetchIDs(Item.all) } == .closed)
        #expect(code { _ = try context.fetchBatched(Item.all) } == .closed)
        #expect(code { _ = try context.sum(Item.all) { $0.number } } == .closed)
        #expect(code { _ = try context.maximum(Item.all) { $0.number } } == .closed)
        #expect(code { _ = try context.selectDistinct(Item.all) { $0.title } } == .closed)
        #expect(code { _ = try context.explain(Item.all) } == .closed)
        #expect(code { _ = try context.existingObject(with: ids[299]) } == .closed)
        #expect(code { _ = try context.batchDelete(Item.all) } == .closed)
        #expect(code { _ = try context.batchInsert(Item.self, count: 1) { _, _ in } } == .closed)
        let late = container.newContext()
        #expect(code { _ = try late.count(Item.all) } == .closed)
    }

    @Test func aBlobOfAClosedStoreIsNotMissing() throws {
        let container = try memory()
        let context = container.newContext()
        let picture = Picture(in: context)
        picture.data = try context.makeBlob(
            Data(repeating: 7, count: 5_000),
            for: Picture.columns.data
        )
        try context.save()
        let blob = try #require(picture.data)
        #expect(try blob.readAll().count == 5_000)
        try container.closeNow()
        #expect(code { _ = try blob.readAll() } == .closed)
        #expect(code { _ = try blob.read(0..<10) } == .closed)
        if let late = picture.data { #expect(code { _ = try late.readAll() } == .closed) }
    }

    /// The view context moves on by itself: that the container was closed before it came to that
    /// is nobody's failed read.
    @Test @MainActor func aMergeAfterClosingFailsNothing() async throws {
        let failures = Shared<[String]>([])
        let container = try memory(
            ContainerOptions(onReadFailure: { failure in
                failures.withLock { $0.append("\(failure.error)") }
            })
        )
        let ids = try makeItems(2, in: container)
        let view = container.viewContext
        let item = try view.object(with: ids[0])
        #expect(item.title == "item 0")
        let other = container.newContext()
        try other.object(with: ids[0]).title = "changed"
        try other.save()
        // The merge is asked for, and cannot begin before this function suspends.
        try container.closeNow()
        for _ in 0..<20 { await Task.yield() }
        #expect(failures.withLock { $0 } == [])
        #expect(view.readFailures.isEmpty && item.title == "item 0")
    }

    @Test @MainActor func theViewContextMovesWhenAsked() throws {
        let container = try memory()
        let ids = try makeItems(1, in: container)
        let view = container.viewContext
        let shown = try view.object(with: ids[0])
        #expect(shown.title == "item 0")
        let scratch = container.newContext()
        try scratch.object(with: ids[0]).title = "new"
        try scratch.save()
        // Nothing has suspended since.
        #expect(shown.title == "item 0")
        view.advance()
        #expect(shown.title == "new")
        try container.closeNow()
    }
}

extension ClosingTests {
    /// The bytes that a sequence has still to bring come from the store too.
    @Test func aBlobThatIsBeingReadEndsWithItsStore() async throws {
        let container = try memory()
        let context = container.newContext()
        let picture = Picture(in: context)
        let bytes = Data(repeating: 7, count: 5_000)
        picture.data = try context.makeBlob(bytes, for: Picture.columns.data)
        try context.save()
        let blob = try #require(picture.data)
        var chunks = blob.chunks(of: 1_000).makeAsyncIterator()
        #expect(try await chunks.next()?.count == 1_000)
        try container.closeNow()
        let error = await #expect(throws: StoreError.self) { _ = try await chunks.next() }
        #expect(error?.code == .closed)
    }

    @Test func whatBeginsBehindACloseSaysSo() throws {
        let failures = Shared(0)
        let container = try memory(
            ContainerOptions(onReadFailure: { _ in failures.withLock { $0 += 1 } })
        )
        let context = container.newContext()
        #expect(try context.count(Item.all) == 0)
        var writer = try context.makeBlob()
        try writer.append(Data(repeating: 1, count: 10))
        try container.closeNow()
        #expect(code { try context.save() } == .closed)
        #expect(code { _ = try context.makeBlob() } == .closed)
        #expect(code { try writer.append(Data(repeating: 1, count: 10)) } == .closed)
        do {
            _ = try writer.finish()
            Issue.record("a blob was written into a closed store")
        } catch StoreError.Code.closed {}
        #expect(context.readFailures.isEmpty && failures.withLock { $0 } == 0)
    }

    @Test @MainActor func aClosedContainerGoesThoughItsViewContextWasUsed() async throws {
        weak var gone: PersistentContainer?
        do {
            let container = try memory()
            gone = container
            #expect(try container.viewContext.count(Item.all) == 0)
            try container.closeNow()
        }
        for _ in 0..<1_000 where gone != nil { await Task.yield() }
        #expect(gone == nil)
    }
}
