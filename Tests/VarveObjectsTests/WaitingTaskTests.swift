// Background tasks whose body waits, and cursors of objects inside a page.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct WaitingTaskTests {
    @Test("A body that waits runs off the caller's actor, one step at a time")
    @MainActor func runsElsewhere() async throws {
        let container = try memory()
        let start = try container.historyToken
        let numbers = AsyncStream { stream in
            for number in 0..<2_500 { stream.yield(number) }
            stream.finish()
        }
        let result = try await container.performBackgroundTask(author: "import") { context in
            dispatchPrecondition(condition: .notOnQueue(.main))
            let result = try await context.batchInsert(Item.self, numbers, rowsPerCommit: 1_000) {
                $0.number = $1
            }
            dispatchPrecondition(condition: .notOnQueue(.main))
            try context.save()
            return result
        }
        #expect(result.inserted == 2_500)
        #expect(try container.newContext().count(Item.all) == 2_500)
        #expect(container.statistics.contexts == 0 && container.statistics.pins.isEmpty)
        let authors = try container.history(after: start).commits().map(\.author)
        #expect(authors.filter { $0 == "import" }.count == 3)
    }

    @Test("What it leaves unsaved is told, and it is cancelled with its caller")
    func endings() async throws {
        let container = try memory()
        do {
            try await container.performBackgroundTask { context in
                await Task.yield()
                Item(in: context).title = "forgotten"
            }
            Issue.record("edits were dropped in silence")
        } catch let error as StoreError {
            #expect(error.code == .unsavedChanges)
        }
        let (signal, begun) = AsyncStream.makeStream(of: Void.self)
        let endless = AsyncStream { 1 }
        let work = Task {
            try await container.performBackgroundTask { context in
                try await context.batchInsert(
                    Item.self,
                    endless,
                    rowsPerCommit: 10,
                    progress: { _ in begun.yield() },
                    { $0.number = $1 }
                )
            }
        }
        for await _ in signal { break }
        work.cancel()
        await #expect(throws: CancellationError.self) { try await work.value }
        let early = Task {
            while !Task.isCancelled { await Task.yield() }
            try await container.performBackgroundTask { _ in
                await Task.yield()
                Issue.record("a task that was cancelled before it began has run")
            }
        }
        early.cancel()
        await #expect(throws: CancellationError.self) { try await early.value }
        #expect(container.statistics.registeredObjects == 0 && container.statistics.contexts == 0)
    }

    @Test("A cursor of any object of a page, unsaved ones too, and none of one that is gone")
    func cursorsInside() throws {
        let container = try memory()
        let ids = try makeItems(30, in: container) { item, index in item.number = index / 4 }
        let context = container.newContext()
        let request = Item.all.sorted { [$0.number.descending] }.limit(10)
        let new = Item(in: context)
        new.number = 3
        let whole = try context.fetchIDs(request.limit(nil))
        for (place, id) in whole.enumerated() {
            let cursor = try context.cursor(of: id, in: request)
            let after = try context.fetchIDs(request.after(cursor))
            let before = try context.fetchIDs(request.before(cursor))
            #expect(after == Array(whole[(place + 1)...].prefix(10)))
            #expect(before == Array(whole[..<place].suffix(10)))
        }
        // Not of the request's objects, and all the same with a place in its order.
        let some = Item.where { $0.number != 3 }.sorted { [$0.number.descending] }
        let cursor = try context.cursor(of: new.id, in: some)
        #expect(try context.fetch(some.after(cursor)).allSatisfy { $0.number < 3 })
        context.delete(try context.object(with: ids[4]))
        #expect(code { _ = try context.cursor(of: ids[4], in: request) } == .objectNotFound)
        // The order of places counts, not whether the object is there.
        let gone = try context.cursor(of: ids[8], in: request)
        context.delete(try context.object(with: ids[8]))
        try context.save()
        let rest = whole[(whole.firstIndex(of: ids[8]) ?? 0)...].filter {
            $0 != ids[8] && $0 != ids[4]
        }
        #expect(try context.fetchIDs(request.after(gone)) == Array(rest.prefix(10)))
    }
}
