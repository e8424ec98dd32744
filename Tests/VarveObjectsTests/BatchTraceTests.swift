// What `ContainerOptions.trace` is told of batches: one event each, with all of their commits.

import Foundation
import Testing
import VarveObjects
import VarveTesting

@Suite(.verified) struct BatchTraceTests {
    private struct Stop: Error {}

    @Test func insertsUpdatesAndDeletesAreTold() throws {
        let log = TraceLog()
        let container = try memory(log.options)
        let context = container.newContext(author: "import")
        let inserted = try context.batchInsert(Item.self, count: 100, rowsPerCommit: 30) {
            row,
            number in row.number = number
        }
        // A batch is no save, and the lists that it makes are no requests.
        let first = log.take()
        #expect(first.count == 1)
        guard case .batch(let insert) = try #require(first.first) else {
            Issue.record("not a batch")
            return
        }
        #expect(insert.kind == .insert && insert.entity == "Item" && insert.author == "import")
        #expect(insert.inserted == 100 && insert.updated == 0 && insert.deleted == 0)
        #expect(insert.commits == 4 && insert.commit == inserted.commit && insert.failure == nil)
        #expect(insert.bytesWritten > 1_000)
        #expect(insert.duration > insert.waited && insert.waited > .zero)

        try context.batchUpdate(Item.where { $0.number < 10 }) { row in
            if row.number < 4 { row.title = "changed" }
        }
        let update = try #require(log.batches.first)
        #expect(update.kind == .update && update.updated == 4 && update.skipped == 6)
        #expect(update.commits == 1)

        try context.batchDelete(Item.where { $0.number >= 60 })
        let delete = try #require(log.batches.first)
        #expect(delete.kind == .delete && delete.deleted == 40 && delete.inserted == 0)

        // One that finds nothing writes nothing.
        try context.batchDelete(Item.where { $0.number >= 60 })
        let empty = try #require(log.batches.first)
        #expect(empty.deleted == 0 && empty.commits == 0 && empty.commit == nil)
        #expect(empty.failure == nil && empty.bytesWritten == 0)
    }

    @Test func whatABatchReadsIsToldWithIt() async throws {
        let log = TraceLog()
        let container = try PersistentContainer.inMemory(
            schema: LandSchema.self,
            options: log.options
        )
        let context = container.newContext()
        let text = (0..<5).map { "{\"code\": \"L\($0)\"}\n" }.joined()
        let (lines, feed) = AsyncStream.makeStream(of: Data.self)
        feed.yield(Data(text.utf8))
        feed.finish()
        var options = JSONLinesOptions()
        options.rowsPerCommit = 2
        try await context.batchInsert(Land.self, jsonLines: lines, options: options)
        let read = log.batches
        #expect(read.map(\.kind) == [.jsonLines] && read.map(\.inserted) == [5])
        #expect(read.map(\.commits) == [3] && read.map(\.entity) == ["Land"])

        let (numbers, more) = AsyncStream.makeStream(of: Int.self)
        for number in 5..<8 { more.yield(number) }
        more.finish()
        try await context.batchInsert(Land.self, numbers) { row, number in
            row.code = "L\(number)"
        }
        let streamed = log.batches
        #expect(streamed.map(\.kind) == [.insert] && streamed.map(\.inserted) == [3])

        let fixtures = #"{"Land": [{"code": "F1"}, {"code": "F2"}]}"#
        try container.loadFixtures(json: Data(fixtures.utf8))
        let loaded = log.batches
        #expect(loaded.map(\.kind) == [.fixtures] && loaded.map(\.inserted) == [2])
    }

    @Test func whatStandsOfABatchThatFailedIsTold() async throws {
        let log = TraceLog()
        let container = try memory(log.options)
        let context = container.newContext()
        // The app's own error, in the third commit.
        #expect(throws: Stop.self) {
            try context.batchInsert(Item.self, count: 50, rowsPerCommit: 20) { row, number in
                if number == 45 { throw Stop() }
                row.number = number
            }
        }
        let stopped = try #require(log.batches.first)
        #expect(stopped.failure == .other && stopped.inserted == 40 && stopped.commits == 2)
        #expect(stopped.commit == container.statistics.newestCommit)
        // The store's, and nothing stands.
        #expect(
            code {
                try context.batchUpdate(Item.all) { row in row.number = -1 }
            } == .invalid
        )
        let invalid = try #require(log.batches.first)
        #expect(invalid.failure == .store(.invalid) && invalid.updated == 0)
        #expect(invalid.commits == 0 && invalid.commit == nil)
        // A cancelled task.
        let task = Task {
            let (numbers, feed) = AsyncStream.makeStream(of: Int.self)
            feed.yield(1)
            let context = container.newContext()
            try await context.batchInsert(Item.self, numbers, rowsPerCommit: 1) { row, _ in
                row.number = 7
                unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        let cancelled = try #require(log.batches.first)
        #expect(cancelled.failure == .cancelled && cancelled.inserted == 1)
    }
}
