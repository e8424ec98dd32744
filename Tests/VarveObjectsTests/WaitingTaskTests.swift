// withBackgroundContext: bodies that wait, and what becomes of them in every order of events.

import Foundation
import Testing
import VarveObjects

private struct Mine: Error {}

@Suite(.verified) struct WaitingTaskTests {
    /// The code of an error that something asynchronous throws; nil: it threw none.
    private func code(
        _ body: () async throws -> Void
    ) async -> StoreError.Code? {
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

    /// Nothing is left of bodies that have ended.
    private func isLeftAlone(_ container: PersistentContainer) -> Bool {
        let now = container.statistics
        return now.registeredObjects == 0 && now.contexts == 0 && now.pins.isEmpty
    }

    @Test("A body that waits runs off the caller's actor, one step at a time")
    @MainActor func runsElsewhere() async throws {
        let container = try memory()
        let start = try container.historyToken
        let numbers = AsyncStream { stream in
            for number in 0..<2_500 { stream.yield(number) }
            stream.finish()
        }
        let result = try await container.withBackgroundContext(author: "import") { context in
            #expect(#isolation is BackgroundContext)
            dispatchPrecondition(condition: .notOnQueue(.main))
            let result = try await context.batchInsert(Item.self, numbers, rowsPerCommit: 1_000) {
                $0.number = $1
            }
            // It comes back to where it was, also from the main actor.
            await MainActor.run { dispatchPrecondition(condition: .onQueue(.main)) }
            #expect(#isolation is BackgroundContext)
            dispatchPrecondition(condition: .notOnQueue(.main))
            try context.save()
            return result
        }
        dispatchPrecondition(condition: .onQueue(.main))
        #expect(result.inserted == 2_500)
        #expect(try container.newContext().count(Item.all) == 2_500)
        #expect(isLeftAlone(container))
        let authors = try container.history(after: start).commits().map(\.author)
        #expect(authors.filter { $0 == "import" }.count == 3)
    }

    @Test("Edits that it leaves unsaved are told, those that were rolled back are not")
    func unsavedEdits() async throws {
        let container = try memory()
        let edits: [@Sendable (ManagedObjectContext) -> Void] = [
            { Item(in: $0).title = "new" },
            { context in (try? context.fetch(Item.all).first)?.title = "edited" },
            { context in (try? context.fetch(Item.all).first).map(context.delete) },
        ]
        try makeItems(2, in: container)
        for edit in edits {
            let unsaved = await code {
                try await container.withBackgroundContext { context in
                    try context.fetch(Item.all).last?.number = 7
                    try context.save()
                    await Task.yield()
                    edit(context)
                }
            }
            #expect(unsaved == .unsavedChanges)
            try await container.withBackgroundContext { context in
                edit(context)
                await Task.yield()
                context.rollback()
            }
        }
        // What was saved before the end stands.
        let context = container.newContext()
        let items = try context.fetch(Item.all)
        #expect(items.map(\.title) == ["item 0", "item 1"] && items.last?.number == 7)
        #expect(container.statistics.contexts == 1)
    }

    @Test("A body that throws: its saves stand, its edits are dropped, its error comes out")
    func throwing() async throws {
        let container = try memory()
        await #expect(throws: Mine.self) {
            try await container.withBackgroundContext { context in
                Item(in: context).title = "saved"
                try context.save()
                Item(in: context).title = "dropped"
                await Task.yield()
                throw Mine()
            }
        }
        #expect(try container.newContext().select(Item.all) { $0.title } == ["saved"])
        #expect(isLeftAlone(container))
        try container.closeNow()
    }

    @Test("Cancelled before its start it never runs; in the middle, what it waits for ends")
    func cancelling() async throws {
        let container = try memory()
        let early = Task {
            while !Task.isCancelled { await Task.yield() }
            try await container.withBackgroundContext { _ in
                _ = Issue.record("a body that was cancelled before it began has run")
            }
        }
        early.cancel()
        await #expect(throws: CancellationError.self) { try await early.value }

        let (signal, begun) = AsyncStream.makeStream(of: Void.self)
        let endless = AsyncStream { 1 }
        let batch = Task {
            try await container.withBackgroundContext { context in
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
        batch.cancel()
        await #expect(throws: CancellationError.self) { try await batch.value }
        // The commits that it told of stand, and no part of one.
        let count = try container.newContext().count(Item.all)
        #expect(count >= 10 && count % 10 == 0)
        #expect(isLeftAlone(container))
    }

    @Test("A cancelled body may end its work in peace: what it saves and returns counts")
    func cancelledAndDone() async throws {
        let container = try memory()
        let (signal, begun) = AsyncStream.makeStream(of: Void.self)
        let work = Task {
            try await container.withBackgroundContext { context in
                begun.yield()
                try? await Task.sleep(for: .seconds(600))
                #expect(Task.isCancelled)
                #expect(throws: CancellationError.self) { try context.checkCancellation() }
                Item(in: context).title = "tidied up"
                try context.save()
                return try context.count(Item.all)
            }
        }
        for await _ in signal { break }
        work.cancel()
        #expect(try await work.value == 1)
        #expect(try container.newContext().count(Item.all) == 1)
    }

    @Test("It waits for the main actor, which waits for it, and the view has its saves")
    @MainActor func awaitsTheMainActor() async throws {
        let container = try memory()
        let seen = Shared<[Int]>([])
        let last = try await container.withBackgroundContext { context in
            for number in 1...3 {
                let id = try await MainActor.run {
                    let view = container.viewContext
                    view.advance()
                    let count = try view.count(Item.all)
                    seen.withLock { $0.append(count) }
                    let item = Item(in: view)
                    item.number = number
                    try view.save()
                    return item.id
                }
                // The body's commit is its own: the view's save is seen when it moves on.
                #expect(try context.existingObject(with: id) == nil)
                context.advance()
                #expect(try context.existingObject(with: id)?.number == number)
                Item(in: context).number = number
                try context.save()
            }
            return try context.count(Item.all)
        }
        #expect(seen.withLock { $0 } == [0, 2, 4] && last == 6)
        let view = container.viewContext
        view.advance()
        #expect(try view.fetch(Item.all).map(\.number).reduce(0, +) == 12)
    }

    @Test("Bodies inside bodies, and background tasks in them, need no thread of the pool")
    func nested() async throws {
        let container = try memory(ContainerOptions(backgroundThreads: 1))
        @Sendable func descend(_ depth: Int) async throws -> Int {
            try await container.withBackgroundContext(author: "depth \(depth)") { context in
                Item(in: context).number = depth
                try context.save()
                if depth == 20 {
                    return try await container.performBackgroundTask { inner in
                        try inner.count(Item.all)
                    }
                }
                let below = try await descend(depth + 1)
                // Each stands at its own commit, whatever those below have saved.
                #expect(try context.count(Item.all) == depth + 1)
                return below
            }
        }
        #expect(try await descend(0) == 21)
        // The same object in both: the outer one is told.
        let id = try makeItems(1, in: container)[0]
        let conflict = await code {
            try await container.withBackgroundContext { outer in
                try outer.object(with: id).number = 1
                try await container.withBackgroundContext { inner in
                    try inner.object(with: id).number = 2
                    try inner.save()
                }
                try outer.save()
            }
        }
        #expect(conflict == .conflict)
        #expect(try container.newContext().select(Item.all.limit(22)) { $0.number }.last == 2)
        #expect(isLeftAlone(container))
    }

    @Test("Closing waits for no body: unsaved edits hold it up, and behind it all says closed")
    func closedMeanwhile() async throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let count = try await container.withBackgroundContext(author: "import") { context in
            let item = Item(in: context)
            item.title = "half"
            do {
                try await container.close()
                Issue.record("closed over unsaved edits")
            } catch let error as StoreError where error.code == .unsavedChanges {
                #expect(
                    error.details.map(\.message) == ["background task import: 1 unsaved object"]
                )
            }
            try context.save()
            try await container.close()
            #expect(await code { _ = try context.fetch(Item.all) } == .closed)
            #expect(item.title == "half")
            item.title = "never saved"
            #expect(await code { _ = try context.save() } == .closed)
            context.rollback()
            return 1
        }
        #expect(count == 1)
        let late = await code {
            try await container.withBackgroundContext { _ in
                _ = Issue.record("a body of a closed container has run")
            }
        }
        #expect(late == .closed)

        // Edits that closing discards are told at the end of the body, too.
        let again = try folder.open()
        let discarded = await code {
            try await again.withBackgroundContext { context in
                try context.fetch(Item.all)[0].title = "discarded"
                try await again.close(discardingEdits: true)
            }
        }
        #expect(discarded == .unsavedChanges)
        let last = try folder.open()
        #expect(try last.newContext().select(Item.all) { $0.title } == ["half"])
        try await last.close()
    }

    @Test("An object and a context that were smuggled out are ended, and harm nothing")
    func usedAfterTheEnd() async throws {
        /// What Swift 5 code does without a word of the compiler.
        final class Smuggler: @unchecked Sendable {
            var object: Item?
            var context: ManagedObjectContext?
        }
        let container = try memory()
        let ids = try makeItems(3, in: container)
        let kept = Smuggler()
        try await container.withBackgroundContext { context in
            kept.context = context
            kept.object = try context.object(with: ids[0])
            #expect(kept.object?.title == "item 0")
        }
        let child = Task { () throws in
            #expect(kept.object?.context == nil && kept.object?.title == "")
            kept.object?.title = "after the end"
            guard let context = kept.context else { return }
            // It is an empty context now, of nobody.
            #expect(context.registeredObjects.isEmpty && !context.hasChanges)
            #expect(try context.fetch(Item.all).map(\.title) == ["item 0", "item 1", "item 2"])
        }
        try await child.value
        (kept.object, kept.context) = (nil, nil)
        #expect(isLeftAlone(container))
        #expect(try container.newContext().count(Item.where { $0.title == "after the end" }) == 0)
    }

    @Test("Many bodies at once: each has a context and a queue of its own")
    func manyAtOnce() async throws {
        let container = try memory(ContainerOptions(backgroundThreads: 1))
        // All wait until the last has begun: no two share a thread or a turn.
        let begun = Shared(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                group.addTask {
                    try await container.withBackgroundContext { context in
                        Item(in: context).number = number
                        begun.withLock { $0 += 1 }
                        while begun.withLock({ $0 }) < 40 {
                            try await Task.sleep(for: .milliseconds(1))
                        }
                        #expect(context.insertedObjects.count == 1)
                        try context.save()
                    }
                }
            }
            try await group.waitForAll()
        }
        let numbers = try container.newContext().select(Item.all) { $0.number }
        #expect(numbers.sorted() == Array(0..<40))
        #expect(isLeftAlone(container))
    }
}
