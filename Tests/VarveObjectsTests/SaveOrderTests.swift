// saveConcurrently in wrong orders: what happens to its context while it waits for its turn.

import Dispatch
import Foundation
import Testing

@testable import VarveObjects

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
                try container.newContext(author: "slow").batchUpdate(Tag.all) { row in
                    began.signal()
                    mayEnd.wait()
                    row.name = "written"
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

@Suite(.verified) @MainActor struct SaveOrderTests {
    private let container: PersistentContainer
    private let context: ManagedObjectContext
    private let item: Item
    private let slow: SlowWriter

    /// Somebody else writes, and the context has edits.
    init() throws {
        container = try memory()
        context = container.viewContext
        context.undoLimit = 9
        item = Item(in: context)
        item.title = "saved"
        _ = Tag(in: context)
        try context.save()
        slow = SlowWriter(container)
        item.title = "edited"
    }

    /// A save that waits for its turn.
    private func save(
        _ context: ManagedObjectContext? = nil
    ) async throws -> Task<SaveResult, any Error> {
        let context = context ?? self.context
        let task = Task { @MainActor in try await context.saveConcurrently() }
        for _ in 0..<20 { await Task.yield() }
        return task
    }

    private func titles() throws -> [String] {
        try container.newContext().select(Item.all) { $0.title }
    }

    @Test func `Two saves of one context at once are one commit`() async throws {
        let saves = [try await save(), try await save(), try await save()]
        try slow.end()
        var commits: [CommitNumber] = []
        for save in saves { if let commit = try await save.value.commit { commits.append(commit) } }
        #expect(commits == [container.statistics.newestCommit] && !context.hasChanges)
        #expect(try titles() == ["edited"])
    }

    @Test func `One of two that wait is cancelled, the other one saves`() async throws {
        let saves = [try await save(), try await save()]
        saves[0].cancel()
        await #expect(throws: CancellationError.self) { try await saves[0].value }
        #expect(context.hasChanges)
        try slow.end()
        #expect(try await saves[1].value.commit != nil && !context.hasChanges)
        #expect(try titles() == ["edited"])
    }

    @Test func `What is undone during the wait is not saved`() async throws {
        context.delete(item)
        let new = Item(in: context)
        new.title = "new"
        let saving = try await save()
        #expect(try context.undo().isEmpty)
        #expect(!context.hasChanges && !item.isDeleted && item.title == "saved")
        try slow.end()
        #expect(try await saving.value.commit == nil)
        #expect(try titles() == ["saved"])
        // And it can be done again.
        try context.redo()
        #expect(try await context.saveConcurrently().commit != nil)
        #expect(try titles() == ["new"])
    }

    @Test func `What is deleted during the wait is deleted`() async throws {
        let saving = try await save()
        context.delete(item)
        try slow.end()
        #expect(try await saving.value.commit != nil)
        #expect(item.isDeleted && !context.hasChanges)
        #expect(try titles() == [])
    }

    @Test(arguments: [false, true])
    func `A context that is emptied during the wait saves nothing`(isReset: Bool) async throws {
        let saving = try await save()
        if isReset { context.reset() } else { context.rollback() }
        try slow.end()
        #expect(try await saving.value.commit == nil)
        #expect(try titles() == ["saved"] && !context.hasChanges)
        // The context reads what the other one wrote.
        #expect(try context.select(Tag.all) { $0.name } == ["written"])
    }

    @Test func `Closing during the wait ends it, and no edit is lost unsaid`() async throws {
        let container = container
        let saving = try await save()
        await #expect(throws: StoreError.self) { try await container.close() }
        #expect(context.hasChanges && !container.isClosed)
        let closing = Task.detached { try await container.close(discardingEdits: true) }
        for _ in 0..<20 { await Task.yield() }
        slow.letEnd()
        try await closing.value
        #expect(container.isClosed)
        do {
            // It was quicker, or it is told.
            #expect(try await saving.value.commit != nil)
        } catch let error as StoreError {
            #expect(error.code == .closed)
        }
    }

    @Test func `A branch is refused at once, and merges during the wait`() async throws {
        let branch = try context.branch()
        try branch.object(with: item.id).number = 7
        do {
            try await branch.saveConcurrently()
            Issue.record("a branch was saved")
        } catch let error as StoreError {
            #expect(error.code == .invalidRequest)
        }
        let saving = try await save()
        try branch.mergeIntoParent()
        try branch.object(with: item.id).title = "left in the branch"
        try slow.end()
        #expect(try await saving.value.commit != nil)
        let saved = try #require(try container.newContext().existingObject(with: item.id))
        #expect(saved.title == "edited" && saved.number == 7)
        #expect(branch.hasChanges && !context.hasChanges)
        branch.rollback()
    }

    @Test func `A save of the same actor goes first, and the one that waits has nothing to do`()
        async throws
    {
        let saving = try await save()
        slow.letEnd()
        let commit = try #require(try context.save().commit)
        #expect(try await saving.value.commit == nil)
        #expect(try container.historyToken.commit == commit)
        #expect(try titles() == ["edited"])
    }

    /// A context that does not follow commits of others by itself.
    @Test func `What waits meets what others saved before its turn`() async throws {
        context.rollback()
        let context = container.newContext()
        try context.object(with: item.id).title = "edited"
        let saving = try await save(context)
        let container = container
        let id = item.id
        let (signal, begun) = AsyncStream.makeStream(of: Void.self)
        let other = Task.detached {
            try await container.performBackgroundTask { context in
                try context.object(with: id).title = "theirs"
                begun.yield()
                try context.save()
            }
        }
        for await _ in signal { break }
        try slow.end()
        // Whoever comes second is told.
        let codes = [await code(saving), await code(other)]
        #expect(codes.compactMap(\.self) == [.conflict])
        #expect(try titles() == [codes[0] == nil ? "edited" : "theirs"])
        #expect(context.hasChanges == (codes[0] != nil))
        context.rollback()
    }

    private func code<Success>(_ task: Task<Success, any Error>) async -> StoreError.Code? {
        do {
            _ = try await task.value
            return nil
        } catch let error as StoreError {
            return error.code
        } catch {
            Issue.record("not a StoreError: \(error)")
            return nil
        }
    }

    @Test func `A body is cancelled while its save waits, and nothing stays`() async throws {
        let container = container
        let (signal, begun) = AsyncStream.makeStream(of: Void.self)
        let body = Task.detached {
            try await container.withBackgroundContext { context in
                Item(in: context).title = "body"
                begun.yield()
                try await context.saveConcurrently()
            }
        }
        for await _ in signal { break }
        body.cancel()
        await #expect(throws: CancellationError.self) { try await body.value }
        try slow.end()
        #expect(try titles() == ["saved"])
        try await context.saveConcurrently()
        #expect(try titles() == ["edited"])
    }
}
