// Saves that wait for other savers without holding their actor up.

import Dispatch
import Foundation
import Testing
import VarveObjects

/// A writer that stays inside the body of its commit until it is told to end.
private final class SlowWriter: Sendable {
    private let began = DispatchSemaphore(value: 0)
    private let mayEnd = DispatchSemaphore(value: 0)
    private let hasEnded = DispatchSemaphore(value: 0)
    private let failure = Shared<(any Error)?>(nil)

    /// Returns when the writer is inside its body.
    init(_ container: PersistentContainer) {
        let thread = Thread { [self] in
            do {
                try container.newContext(author: "slow").batchUpdate(Item.all) { row in
                    if row.title == "first" {
                        began.signal()
                        mayEnd.wait()
                    }
                    row.number += 1
                }
            } catch {
                failure.withLock { $0 = error }
            }
            hasEnded.signal()
        }
        thread.start()
        began.wait()
    }

    func letEnd() { mayEnd.signal() }

    func end() throws {
        mayEnd.signal()
        hasEnded.wait()
        if let error = failure.withLock({ $0 }) { throw error }
    }
}

private func container() throws -> PersistentContainer {
    let container = try memory()
    let context = container.newContext()
    Item(in: context).title = "first"
    Item(in: context).title = "second"
    try context.save()
    return container
}

@Suite(.verified) struct SaveConcurrentlyTests {
    @Test @MainActor func theActorIsFreeDuringTheWait() async throws {
        let container = try container()
        let context = container.viewContext
        let slow = SlowWriter(container)
        let mine = Item(in: context)
        mine.title = "mine"
        let turns = Shared(0)
        let ticking = Task { @MainActor in
            while !Task.isCancelled {
                turns.withLock { $0 += 1 }
                await Task.yield()
            }
        }
        let saving = Task { @MainActor in try await context.saveConcurrently() }
        while turns.withLock({ $0 }) < 1000 { await Task.yield() }
        // The writer is still at it, and so nothing is saved: but this actor works.
        #expect(mine.isInserted && context.hasChanges)
        mine.title = "edited during the wait"
        try slow.end()
        let commit = try #require(try await saving.value.commit)
        ticking.cancel()
        #expect(!context.hasChanges && mine.title == "edited during the wait")
        let other = container.newContext()
        #expect(other.commit.map { $0 >= commit } ?? true)
        #expect(try other.fetch(Item.where { $0.title == "edited during the wait" }).count == 1)
        #expect(try other.fetch(Item.where { $0.title == "first" }).first?.number == 1)
    }

    @Test @MainActor func aCancelledWaitKeepsTheEdits() async throws {
        let container = try container()
        let context = container.viewContext
        let slow = SlowWriter(container)
        Item(in: context).title = "mine"
        let saving = Task { @MainActor in try await context.saveConcurrently() }
        for _ in 0..<10 { await Task.yield() }
        saving.cancel()
        await #expect(throws: CancellationError.self) { try await saving.value }
        #expect(context.hasChanges)
        try slow.end()
        // Nobody holds a place in the line any more.
        try container.newContext().batchUpdate(Item.all) { $0.number += 1 }
        try await context.saveConcurrently()
        #expect(try container.newContext().count(Item.all) == 3)
    }

    @Test @MainActor func aBusyActorHoldsNobodyUp() async throws {
        let container = try container()
        let context = container.viewContext
        let slow = SlowWriter(container)
        Item(in: context).title = "mine"
        let saving = Task { @MainActor in try await context.saveConcurrently() }
        for _ in 0..<10 { await Task.yield() }
        try slow.end()
        // The task has the grant and cannot run: this code does not give the actor up. A save on
        // the same actor and one on another thread go first.
        let own = container.newContext()
        Item(in: own).title = "same actor"
        try own.save()
        let isDone = DispatchSemaphore(value: 0)
        let thread = Thread {
            let context = container.newContext()
            Item(in: context).title = "other thread"
            _ = try? context.save()
            isDone.signal()
        }
        thread.start()
        isDone.wait()
        #expect(context.hasChanges)
        let commit = try await saving.value.commit
        #expect(commit != nil && !context.hasChanges)
        #expect(try container.newContext().count(Item.all) == 5)
    }

    @Test @MainActor func manyTasksAndThreads() async throws {
        let container = try container()
        let writers = 4
        let rounds = 25
        var tasks: [Task<Void, any Error>] = []
        for number in 0..<writers {
            tasks.append(
                Task { @MainActor in
                    let context = container.newContext()
                    for round in 0..<rounds {
                        Item(in: context).title = "task \(number) \(round)"
                        try await context.saveConcurrently()
                    }
                }
            )
            tasks.append(
                Task.detached {
                    for round in 0..<rounds {
                        try await container.performBackgroundTask { context in
                            Item(in: context).title = "thread \(number) \(round)"
                            try context.save()
                        }
                    }
                }
            )
        }
        for task in tasks { try await task.value }
        #expect(try container.newContext().count(Item.all) == 2 + 2 * writers * rounds)
    }

    @Test @MainActor func whatFailsFailsAsInASave() async throws {
        let container = try container()
        let context = container.newContext()
        // Without edits it moves on, as a save.
        try container.newContext().batchUpdate(Item.all) { $0.number += 1 }
        let before = try context.count(Item.all)
        #expect(try await context.saveConcurrently().commit == nil)
        #expect(try context.count(Item.all) == before)
        let past = try container.newContext(at: .commit(#require(context.commit)))
        await #expect(throws: StoreError.self) { try await past.saveConcurrently() }
        let serial = UUID()
        for _ in 0..<2 { Item(in: context).serial = serial }
        do {
            try await context.saveConcurrently()
            Issue.record("two objects with one serial were saved")
        } catch let error as StoreError {
            #expect(error.code == .notUnique)
        }
        #expect(context.hasChanges)
        context.rollback()
    }
}
