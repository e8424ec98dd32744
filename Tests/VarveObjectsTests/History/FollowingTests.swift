// Contexts that move on when somebody commits: by a loop of their actor, or by themselves.

import Foundation
import Testing
import VarveBase

@testable import VarveObjects

/// An actor that owns a context, as an app's would.
private actor Owner {
    private let context: ManagedObjectContext
    private var item: Item?

    init(_ container: PersistentContainer) { context = container.newContext() }

    func hold(_ id: Item.ID) throws { item = try context.existingObject(with: id) }
    var title: String? { item?.title }
    var commit: CommitNumber? { context.commit }
    func edit(_ number: Int) { item?.number = number }
    var number: Int? { item?.number }
    func follow() async { await context.follow() }
    func save() throws { try context.save() }
}

@Suite(.verified) struct FollowingTests {
    /// Asks until the answer is yes; a test that waits for long has failed.
    private static func wait(
        _ what: Comment,
        isolation: isolated (any Actor)? = #isolation,
        until answer: () async -> Bool
    ) async {
        for _ in 0..<4_000 {
            if await answer() { return }
            try? await Task.sleep(for: .milliseconds(5))
        }
        Issue.record(what)
    }

    @Test func `A context that follows shows what others save, and keeps its edits`() async throws {
        let container = try memory()
        let (id, _) = try saveTitle("0", in: container)
        let owner = Owner(container)
        try await owner.hold(id)
        let task = Task { await owner.follow() }
        for step in 1...5 {
            if step == 3 { await owner.edit(3) }
            try saveTitle("\(step)", of: id, in: container)
            await Self.wait("step \(step)") { await owner.title == "\(step)" }
        }
        #expect(await owner.number == 3)
        try await owner.save()
        task.cancel()
        await task.value
        let commit = await owner.commit
        try saveTitle("after", of: id, in: container)
        try await Task.sleep(for: .milliseconds(50))
        #expect(await owner.commit == commit)
    }

    @Test func `A loop ends when the container is closed`() async throws {
        let container = try memory()
        let (id, _) = try saveTitle("0", in: container)
        let owner = Owner(container)
        try await owner.hold(id)
        let task = Task { await owner.follow() }
        try await Task.sleep(for: .milliseconds(20))
        try container.closeNow()
        await task.value
        #expect(await owner.title == "0")
    }

    @Test func `A context of the past follows nothing`() async throws {
        let container = try memory()
        let (id, then) = try saveTitle("0", in: container)
        try saveTitle("1", of: id, in: container)
        let past = try container.newContext(at: .commit(then))
        await past.follow()
        #expect(try past.existingObject(with: id)?.title == "0")
    }

    @MainActor @Test func `A context of the main actor can follow by itself`() async throws {
        let container = try memory()
        let (id, _) = try saveTitle("0", in: container)
        var context: ManagedObjectContext? = container.newContext(automaticallyMergesChanges: true)
        #expect(context?.automaticallyMergesChanges == true)
        var item = try context?.existingObject(with: id)
        weak let seen = context
        for step in 1...5 {
            // Its object keeps it.
            if step == 3 { context = nil }
            try saveTitle("\(step)", of: id, in: container)
            // Code of the main actor sees one commit until it suspends.
            #expect(item?.title == "\(step - 1)")
            await Self.wait("step \(step)") { item?.title == "\(step)" }
        }
        item = nil
        await Self.wait("nobody holds it") { seen == nil }
        let plain = container.newContext(automaticallyMergesChanges: false)
        #expect(!plain.automaticallyMergesChanges)
    }

    @Test func `A background context can follow by itself`() async throws {
        let container = try memory()
        let (id, _) = try saveTitle("0", in: container)
        var worker: BackgroundContext? = container.newBackgroundContext(
            automaticallyMergesChanges: true
        )
        let read: @Sendable (ManagedObjectContext) throws -> String? = { context in
            try context.existingObject(with: id)?.title
        }
        #expect(try await worker?.perform(read) == "0")
        for step in 1...5 {
            try saveTitle("\(step)", of: id, in: container)
            await Self.wait("step \(step)") { (try? await worker?.perform(read)) == "\(step)" }
        }
        weak let seen = worker
        worker = nil
        await Self.wait("nobody holds it") { seen == nil }
        try container.closeNow()
    }
}
