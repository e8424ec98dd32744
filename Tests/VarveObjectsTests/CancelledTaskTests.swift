// Background tasks that are cancelled while they wait for a thread.

import Dispatch
import Foundation
import Testing
import VarveTesting

@testable import VarveObjects

/// A background task that keeps the only thread until it is told to end.
private final class Blocker: Sendable {
    private let mayEnd = DispatchSemaphore(value: 0)
    private let hasEnded = Shared(false)
    private let task: Task<Void, any Error>

    init(_ container: PersistentContainer) async {
        let (signal, begun) = AsyncStream.makeStream(of: Void.self)
        task = Task { [mayEnd, hasEnded] in
            try await container.performBackgroundTask { _ in
                begun.yield()
                // A test that fails goes on in the end.
                _ = mayEnd.wait(timeout: .now() + 600)
                hasEnded.withLock { $0 = true }
            }
        }
        for await _ in signal { break }
    }

    var isThere: Bool { hasEnded.withLock { !$0 } }

    func end() async throws {
        mayEnd.signal()
        try await task.value
    }
}

@Suite(.verified) struct CancelledTaskTests {
    private final class Kept: Sendable {}

    private func container() throws -> PersistentContainer {
        try memory(ContainerOptions(backgroundThreads: 1))
    }

    private func waitForQueue(_ container: PersistentContainer, _ count: Int) async throws {
        for _ in 0..<20_000 where container.workers.waitingBodies < count {
            try await Task.sleep(for: .milliseconds(1))
        }
        #expect(container.workers.waitingBodies == count)
    }

    /// Its caller waited until a thread came to the task.
    @Test func `A queued task that is cancelled is told at once, and never runs`() async throws {
        let container = try container()
        let blocker = await Blocker(container)
        weak var kept: Kept?
        var queued: Task<Void, any Error>?
        do {
            let made = Kept()
            kept = made
            queued = Task {
                try await container.performBackgroundTask { _ in
                    _ = Issue.record("a cancelled body has run: \(made)")
                }
            }
        }
        try await waitForQueue(container, 1)
        #expect(kept != nil)
        queued?.cancel()
        await #expect(throws: CancellationError.self) { try await queued?.value }
        #expect(blocker.isThere)
        // What the body held is let go, though its place in the line is still there.
        queued = nil
        for _ in 0..<10_000 where kept != nil { try await Task.sleep(for: .milliseconds(1)) }
        #expect(kept == nil && blocker.isThere)
        try await blocker.end()
        #expect(try await container.performBackgroundTask { _ in 7 } == 7)
        try container.closeNow()
    }

    @Test func `Those around a cancelled one keep their order`() async throws {
        let container = try container()
        let blocker = await Blocker(container)
        let order = Shared<[Int]>([])
        var tasks: [Task<Int, any Error>] = []
        for number in 0..<9 {
            tasks.append(
                Task {
                    try await container.performBackgroundTask { _ in
                        order.withLock { $0.append(number) }
                        return number
                    }
                }
            )
            try await waitForQueue(container, number + 1)
        }
        for number in [8, 0, 4, 5] { tasks[number].cancel() }
        for number in [8, 0, 4, 5] {
            await #expect(throws: CancellationError.self) { try await tasks[number].value }
        }
        #expect(blocker.isThere && order.withLock { $0.isEmpty })
        try await blocker.end()
        for number in [1, 2, 3, 6, 7] { #expect(try await tasks[number].value == number) }
        #expect(order.withLock { $0 } == [1, 2, 3, 6, 7])
    }

    /// A cancel, the end of the wait and the begin of the body meet in every order.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `Each task ends once, with its value or as cancelled`(seed: UInt64) async throws {
        let container = try memory(ContainerOptions(backgroundThreads: 2))
        var random = SeededRandom(seed: seed)
        let run = Shared(0)
        var tasks: [Task<Int, any Error>] = []
        for number in 0..<400 {
            tasks.append(
                Task {
                    try await container.performBackgroundTask { _ in
                        run.withLock { $0 += 1 }
                        return number
                    }
                }
            )
            if random.next() % 2 == 0 {
                tasks[Int(random.next() % UInt64(tasks.count))].cancel()
            }
            if random.next() % 16 == 0 { await Task.yield() }
        }
        var values = 0
        for (number, task) in tasks.enumerated() {
            do {
                let value = try await task.value
                if value != number { Issue.record("seed \(seed): \(value) for \(number)") }
                values += 1
            } catch is CancellationError {}
        }
        // A body that has run is never told as cancelled.
        #expect(values == run.withLock { $0 }, "seed \(seed)")
        #expect(container.statistics.contexts == 0)
        try container.closeNow()
    }

    @Test func `A cancelled task closes its container though`() async throws {
        let container = try container()
        let closing = Task {
            while !Task.isCancelled { await Task.yield() }
            try await container.close()
        }
        closing.cancel()
        try await closing.value
        #expect(container.isClosed)
    }
}
