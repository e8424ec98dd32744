// What `ContainerOptions.trace` is told.

import Foundation
import Testing
import VarveBase
import VarveTesting

@testable import VarveObjects

@Suite(.verified) struct TraceTests {
    @Test func requestsSavesMergesAndCompactionsAreTold() async throws {
        let folder = try TemporaryFolder()
        let log = TraceLog()
        let container = try folder.open(log.options)
        try makeItems(100, in: container)
        let saved = try #require(log.saves.first)
        #expect(saved.inserted == 100 && saved.updated == 0 && saved.deleted == 0)
        #expect(saved.author == "test" && saved.failure == nil)
        #expect(saved.commit == container.statistics.newestCommit)
        #expect(saved.bytesWritten > 1_000)
        #expect(saved.waited >= .zero && saved.duration > saved.waited)

        let context = container.newContext(author: "reader")
        let request = Item.where { $0.number >= 90 }.sorted { [$0.title.ascending] }.limit(5)
        #expect(try context.fetch(request).count == 5)
        let fetches = log.fetches
        #expect(fetches.count == 1)
        let fetch = try #require(fetches.first)
        #expect(fetch.kind == .objects && fetch.entity == "Item" && fetch.found == 5)
        #expect(fetch.request == "Item.where { number >= 90 }.sorted { title }.limit(5)")
        #expect(fetch.plan == (try context.explain(request)))
        #expect(fetch.rowsScanned + fetch.entriesScanned >= 10 && fetch.duration > .zero)
        #expect(try context.count(Item.where { $0.number < 7 }) == 7)
        guard case .fetch(let count) = try #require(log.take().first) else {
            Issue.record("not a request")
            return
        }
        #expect(count.kind == .count && count.found == 7)

        try makeItems(1, in: container)
        _ = log.take()
        let before = try #require(context.commit)
        context.advance()
        guard case .merge(let merge) = try #require(log.take().first) else {
            Issue.record("not a merge")
            return
        }
        #expect(merge.author == "reader" && merge.from == before && merge.to == context.commit)
        context.advance()
        #expect(log.take().isEmpty)

        let result = try await container.compact()
        let compactions = log.compactions
        #expect(compactions.map(\.bytesAfter) == [result.bytesAfter])
        #expect(compactions.map(\.bytesBefore) == [result.bytesBefore])
        #expect(compactions.allSatisfy { $0.failure == nil && $0.duration > .zero })

        try container.suspendNow()
        Item(in: context).title = "refused"
        #expect(code { try context.save() } == .suspended)
        guard case .save(let failed) = try #require(log.take().first) else {
            Issue.record("not a save")
            return
        }
        #expect(
            failed.failure == .store(.suspended) && failed.commit == nil && failed.inserted == 1
        )
        try container.closeNow(discardingEdits: true)
    }
    @Test func savesThatFailAnywhereAreToldOnce() throws {
        let log = TraceLog()
        let container = try memory(log.options)
        let context = container.newContext(author: "editor")
        // Nothing to save is no save.
        try context.save()
        #expect(log.saves.isEmpty)
        // Validation, before anything is written.
        let item = Item(in: context)
        item.title = "bad"
        #expect(code { try context.save() } == .invalid)
        let invalid = log.saves
        #expect(invalid.map(\.failure) == [.store(.invalid)])
        #expect(invalid.map(\.inserted) == [1] && invalid[0].duration > .zero)
        #expect(invalid[0].waited == .zero && invalid[0].bytesWritten == 0)
        // An edit that was refused, before anything is counted.
        item.title = "plain"
        try context.save()
        let other = container.newContext()
        let folder = Folder(in: other)
        item.folder = folder
        #expect(code { try context.save() } == .crossContext)
        let tellings = log.saves
        #expect(tellings.map(\.failure) == [nil, .store(.crossContext)])
        context.rollback()
        // A conflict, under the writer lock.
        let rival = container.newContext()
        try rival.object(with: item.id).number = 1
        try rival.save()
        item.number = 2
        #expect(code { try context.save() } == .conflict)
        let conflict = log.saves
        #expect(conflict.map(\.failure) == [nil, .store(.conflict)])
        #expect(conflict[1].author == "editor" && conflict[1].updated == 1)
        #expect(conflict[1].commit == nil)
        // What the app's own code throws has no code.
        #expect(throws: Stop.self) {
            try context.save(mergePolicy: .custom { _ in throw Stop() })
        }
        #expect(log.saves.map(\.failure) == [.other])
        context.rollback()
    }

    @Test func requestsThatFailAreTold() throws {
        let disk = SimulatedDisk()
        let log = TraceLog()
        var options = log.options
        options.nodeCacheBytes = 0
        let schema = TestSchema.self
        let maker = try PersistentContainer.openNow(on: disk, schema: schema)
        try makeItems(2_000, in: maker)
        try maker.closeNow()
        let container = try PersistentContainer.openNow(on: disk, schema: schema, options: options)
        do {
            let context = container.newContext()
            disk.setReadFault(.init(first: 1, count: .max, kind: .fails(5)))
            #expect(code { _ = try context.fetchIDs(Item.where { $0.title == "x" }) } != nil)
            disk.setReadFault(nil)
        }
        let failed = log.fetches
        #expect(failed.map(\.failure) == [.store(.ioFailed)])
        #expect(failed.map(\.found) == [0])
        try container.closeNow()
    }

    @Test func handlersAreToldInTheirOrder() throws {
        let told = Shared<[String]>([])
        func handler(_ name: String) -> TraceHandler {
            TraceHandler { event in
                guard case .save = event else { return }
                told.withLock { $0.append(name) }
            }
        }
        var options = ContainerOptions()
        options.trace = .all([handler("first"), .all([handler("second")]), handler("third")])
        let container = try memory(options)
        try makeItems(1, in: container)
        #expect(told.withLock { $0 } == ["first", "second", "third"])
    }
}

private struct Stop: Error {}
