// Relationships that are followed one object at a time: told once, with the prefetch to write.

import Foundation
import Testing
import VarveBase

@testable import VarveObjects

@Suite(.verified) struct RepeatedFaultTests {
    private final class Log: Sendable {
        let traces = Shared<[RepeatedFaultsTrace]>([])
        var taken: [RepeatedFaultsTrace] {
            traces.withLock { traces in
                defer { traces = [] }
                return traces
            }
        }
    }

    /// 40 items, each in a folder of its own with an owner of its own and two tags of its own.
    private func sample(
        _ log: Log,
        max: Int = 10,
        traces: Bool = true
    ) throws -> PersistentContainer {
        var options = ContainerOptions()
        options.repeatedFaultsMax = max
        if traces {
            options.trace = TraceHandler { event in
                if case .repeatedFaults(let trace) = event {
                    log.traces.withLock { $0.append(trace) }
                }
            }
        }
        let container = try memory(options)
        let context = container.newContext()
        for number in 0..<40 {
            let item = Item(in: context)
            item.number = number
            let folder = Folder(in: context)
            folder.owner = Person(in: context)
            folder.owner?.name = "owner"
            item.folder = folder
            for _ in 0..<2 { item.tags.append(Tag(in: context)) }
        }
        try context.save()
        container.trimMemory()
        return container
    }

    @Test func aRelationshipFollowedOneByOneIsToldOnceWithThePrefetch() throws {
        let log = Log()
        let container = try sample(log)
        let context = container.newContext(author: "list", observes: true)
        let request = Item.where { $0.number >= 0 }
        for item in try context.fetch(request) { _ = item.folder?.name }
        let told = log.taken
        #expect(told.count == 1)
        let trace = try #require(told.first)
        #expect(trace.author == "list" && trace.entity == "Item" && trace.reads == 11)
        #expect(trace.relationship == "folder" && trace.target == "Folder")
        #expect(trace.request == "Item.where { number >= 0 }")
        #expect(trace.suggestion == "Item.where { number >= 0 }.prefetch { $0.folder }")
        for item in try context.fetch(request) { _ = item.folder?.name }
        #expect(log.taken.isEmpty)
    }

    @Test func thePrefetchThatIsToldEndsIt() throws {
        let log = Log()
        let container = try sample(log)
        for context in [
            container.newContext(observes: true), container.newContext(observes: true),
        ] {
            let items = try context.fetch(Item.all.prefetch { ($0.folder.owner, $0.tags) })
            for item in items {
                _ = item.folder?.owner?.name
                _ = item.tags.map(\.name)
            }
            #expect(log.taken.isEmpty)
        }
    }

    @Test func pathsGoBackToTheRequest() throws {
        let log = Log()
        let container = try sample(log)
        let context = container.newContext(observes: true)
        let items = try context.fetch(Item.all.prefetch { $0.folder })
        for item in items { _ = item.folder?.owner?.name }
        let told = log.taken
        #expect(told.map(\.relationship) == ["owner"])
        #expect(told.first?.entity == "Folder")
        #expect(told.first?.suggestion.hasSuffix(".prefetch { $0.folder.owner }") == true)
        #expect(told.first?.request?.hasPrefix("Item") == true)
    }

    @Test func membersOfListsAndListsThemselvesAreTold() throws {
        let log = Log()
        let container = try sample(log)
        let context = container.newContext(observes: true)
        for item in try context.fetch(Item.all) { _ = item.tags.map(\.name) }
        let told = log.taken
        #expect(told.map(\.relationship) == ["tags"])
        #expect(told.first?.suggestion.hasSuffix(".prefetch { $0.tags }") == true)
    }

    @Test func gatheredFirstAndReadLaterIsToldToo() throws {
        let log = Log()
        let container = try sample(log)
        let context = container.newContext(observes: true)
        let folders = try context.fetch(Item.all).compactMap(\.folder)
        #expect(log.taken.isEmpty)
        for folder in folders { _ = folder.name }
        #expect(log.taken.map(\.relationship) == ["folder"])
    }

    @Test func fewReadsBackgroundWorkAndNoTraceAreNotWatched() throws {
        let log = Log()
        let container = try sample(log)
        let context = container.newContext(observes: true)
        for item in try context.fetch(Item.all.limit(10)) { _ = item.folder?.name }
        #expect(log.taken.isEmpty)
        let quiet = container.newContext(observes: false)
        container.trimMemory()
        for item in try quiet.fetch(Item.all) { _ = item.folder?.name }
        #expect(log.taken.isEmpty && quiet.faultWatch == nil)

        #expect(try sample(log, max: 0).newContext(observes: true).faultWatch == nil)
        #expect(try sample(log, traces: false).newContext(observes: true).faultWatch == nil)
    }

    @Test func aPrefetchWhoseRowsDidNotStayIsToldAsThat() throws {
        let log = Log()
        let container = try sample(log)
        let context = container.newContext(observes: true)
        let items = try context.fetch(Item.all.prefetch { $0.folder })
        container.trimMemory()
        for item in items { _ = item.folder?.name }
        #expect(log.taken.first?.suggestion.contains("unreferencedRowBytes") == true)
    }
}
