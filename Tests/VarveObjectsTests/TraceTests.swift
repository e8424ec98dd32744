// What `ContainerOptions.trace` is told.

import Foundation
import Testing
import VarveBase

@testable import VarveObjects

@Suite(.verified) struct TraceTests {
    @Test func requestsSavesMergesAndCompactionsAreTold() async throws {
        let folder = try TemporaryFolder()
        let events = Shared<[TraceEvent]>([])
        var options = ContainerOptions(compactsAutomatically: false)
        options.trace = { event in events.withLock { $0.append(event) } }
        let container = try folder.open(options)
        func take() -> [TraceEvent] {
            events.withLock { events in
                defer { events = [] }
                return events
            }
        }
        try makeItems(100, in: container)
        let saved = try #require(
            take().compactMap { if case .save(let save) = $0 { save } else { nil } }.first
        )
        #expect(saved.inserted == 100 && saved.updated == 0 && saved.deleted == 0)
        #expect(saved.author == "test" && saved.failure == nil)
        #expect(saved.commit == container.statistics.newestCommit)
        #expect(saved.bytesWritten > 1_000)
        #expect(saved.waited >= .zero && saved.duration > saved.waited)

        let context = container.newContext(author: "reader")
        let request = Item.where { $0.number >= 90 }.sorted { [$0.title.ascending] }.limit(5)
        #expect(try context.fetch(request).count == 5)
        let fetches = take().compactMap { if case .fetch(let fetch) = $0 { fetch } else { nil } }
        #expect(fetches.count == 1)
        let fetch = try #require(fetches.first)
        #expect(fetch.kind == .objects && fetch.entity == "Item" && fetch.found == 5)
        #expect(fetch.request == "Item.where { number >= 90 }.sorted { title }.limit(5)")
        #expect(fetch.plan == (try context.explain(request)))
        #expect(fetch.rowsScanned + fetch.entriesScanned >= 10 && fetch.duration > .zero)
        #expect(try context.count(Item.where { $0.number < 7 }) == 7)
        guard case .fetch(let count) = try #require(take().first) else {
            Issue.record("not a request")
            return
        }
        #expect(count.kind == .count && count.found == 7)

        try makeItems(1, in: container)
        _ = take()
        let before = try #require(context.commit)
        context.advance()
        guard case .merge(let merge) = try #require(take().first) else {
            Issue.record("not a merge")
            return
        }
        #expect(merge.author == "reader" && merge.from == before && merge.to == context.commit)
        context.advance()
        #expect(take().isEmpty)

        let result = try await container.compact()
        let compactions = take().compactMap {
            if case .compaction(let compaction) = $0 { compaction } else { nil }
        }
        #expect(compactions.map(\.bytesAfter) == [result.bytesAfter])

        try container.suspendNow()
        Item(in: context).title = "refused"
        #expect(code { try context.save() } == .suspended)
        guard case .save(let failed) = try #require(take().first) else {
            Issue.record("not a save")
            return
        }
        #expect(failed.failure == .suspended && failed.commit == nil && failed.inserted == 1)
        try container.closeNow(discardingEdits: true)
    }
}
