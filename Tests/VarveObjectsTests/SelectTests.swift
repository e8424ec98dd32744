// Tuples, groups, existence and streams against what a fetch of the same request shows.

import Foundation
import Synchronization
import Testing
import VarveObjects

@Suite(.verified) struct SelectTests {
    private struct Numbers {
        var state: UInt64
        mutating func below(_ count: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int((state >> 33) % UInt64(count))
        }
    }

    /// Items in three folders and in none, with equal values among them.
    private func fill(_ context: ManagedObjectContext, _ numbers: inout Numbers) throws {
        let folders = (0..<3).map { index in
            let folder = Folder(in: context)
            folder.name = "folder \(index)"
            return folder
        }
        for _ in 0..<150 {
            let item = Item(in: context)
            item.number = numbers.below(12)
            item.title = "title \(numbers.below(9))"
            item.timestamp = Date(timeIntervalSinceReferenceDate: Double(numbers.below(50)))
            item.serial = numbers.below(2) == 0 ? nil : UUID()
            let folder = numbers.below(4)
            if folder < 3 { item.folder = folders[folder] }
        }
        try context.save()
    }

    private func compare(
        _ context: ManagedObjectContext,
        _ request: FetchDescriptor<Item>,
        _ note: Comment
    ) throws {
        // Without edits the values are those of the commit, as another context sees them.
        let shown = request.includesPendingChanges ? context : context.container.newContext()
        let items = try shown.fetch(request)
        let tuples = try context.select(request) {
            ($0.title, $0.number, $0.serial, $0.folder.name.optional)
        }
        #expect(tuples.map(\.0) == items.map(\.title), note)
        #expect(tuples.map(\.1) == items.map(\.number), note)
        #expect(tuples.map(\.2) == items.map(\.serial), note)
        #expect(tuples.map(\.3) == items.map { $0.folder?.name }, note)
        #expect(try context.select(request) { $0.number } == items.map(\.number), note)
        #expect(try context.exists(request) == !items.isEmpty, note)

        let pairs = try context.select(distinct: request) { ($0.number, $0.title) }
        var expected: [(Int, String)] = []
        for item in items where !expected.contains(where: { $0 == (item.number, item.title) }) {
            expected.append((item.number, item.title))
        }
        expected.sort { $0 < $1 }
        #expect(pairs.map { "\($0)" } == expected.map { "\($0)" }, note)

        let byNumber = try context.select(request, groupedBy: { $0.number }) { column, group in
            (
                group.count, column.title.min, column.timestamp.max, column.number.sum,
                column.serial.distinctCount, column.number.average
            )
        }
        let groups = Dictionary(grouping: items, by: \.number).sorted { $0.key < $1.key }
        #expect(byNumber.map(\.key) == groups.map(\.key), note)
        for (found, (_, members)) in zip(byNumber, groups) {
            #expect(found.values.0 == members.count, note)
            #expect(found.values.1 == members.map(\.title).min(), note)
            #expect(found.values.2 == members.map(\.timestamp).max(), note)
            #expect(found.values.3 == members.map(\.number).reduce(0, +), note)
            #expect(found.values.4 == Set(members.compactMap(\.serial)).count, note)
            let mean = Double(members.map(\.number).reduce(0, +)) / Double(members.count)
            #expect(found.values.5 == mean, note)
        }
        let byFolder = try context.select(request, groupedBy: { $0.folder }) { _, group in
            group.count
        }
        let counts = Dictionary(grouping: items) { $0.folder?.id }.mapValues(\.count)
        #expect(byFolder.count == counts.count, note)
        for group in byFolder { #expect(counts[group.key] == group.values, note) }
        let byName = try context.select(request, groupedBy: { $0.folder.name.optional }) {
            column,
            _ in column.number.max
        }
        let names = Dictionary(grouping: items) { $0.folder?.name }
        #expect(Set(byName.map(\.key)) == Set(names.keys), note)
        for group in byName {
            #expect(names[group.key]?.map(\.number).max() == group.values, note)
        }
        let all = try context.aggregate(request) { column, group in
            (group.count, column.number.sum, column.title.max)
        }
        #expect(all.0 == items.count && all.1 == items.map(\.number).reduce(0, +), note)
        #expect(all.2 == items.map(\.title).max(), note)
    }

    @Test(arguments: [41, 42, 43] as [UInt64])
    func answersAreThoseOfAFetch(seed: UInt64) throws {
        let container = try memory()
        let context = container.newContext()
        var numbers = Numbers(state: seed)
        try compare(context, Item.all, "empty")
        try fill(context, &numbers)
        for round in 0..<12 {
            let (low, high) = (numbers.below(12), numbers.below(12))
            let requests: [FetchDescriptor<Item>] = [
                Item.all,
                Item.where { $0.number >= low || $0.title == "title 3" },
                Item.where { $0.folder.name == "folder 1" && $0.number != low },
                Item.all.sorted { [$0.number.ascending, $0.title.descending] }
                    .limit(numbers.below(20)).offset(numbers.below(4)),
                Item.where { $0.number == low }.sorted { [$0.timestamp.descending] }.limit(7),
                Item.where { $0.number == high && $0.number == low + 1 },
            ]
            for (number, request) in requests.enumerated() {
                try compare(context, request, "seed \(seed), round \(round), request \(number)")
                try compare(
                    context,
                    request.includingPendingChanges(false),
                    "seed \(seed), round \(round), request \(number), without edits"
                )
            }
            let items = try context.fetch(Item.all)
            let folders = try context.fetch(Folder.all)
            switch round % 6 {
            case 0: items[numbers.below(items.count)].number = low
            case 1: context.delete(items[numbers.below(items.count)])
            case 2: folders[0].name = "folder \(numbers.below(5))"
            case 3: Item(in: context).title = "new"
            case 4: items[0].folder = nil
            default: try context.save()
            }
        }
    }

    @Test func whatIsNoValueIsAnError() throws {
        let container = try memory()
        let context = container.newContext()
        Item(in: context).title = "alone"
        try context.save()
        #expect(code { _ = try context.select(Item.all) { $0.folder.name } } == .unreadableValue)
        let names: [String?] = try context.select(Item.all) { $0.folder.name.optional }
        #expect(names == [nil])
        let grouped = { try context.select(Item.all, groupedBy: { $0.folder.name }) { $1.count } }
        #expect(code { _ = try grouped() } == .unreadableValue)
        for request in [Item.all.limit(-1), Item.all.offset(-1)] {
            #expect(code { _ = try context.exists(request) } == .invalidRequest)
            #expect(code { _ = try context.select(request) { $0.number } } == .invalidRequest)
            #expect(code { _ = try context.enumerate(request) } == .invalidRequest)
        }
        #expect(try !context.exists(Item.all.limit(0)))
        #expect(try context.exists(Item.all.limit(.max)))
        #expect(try !context.exists(Item.all.offset(.max)))
        #expect(code { _ = try context.enumerate(Item.all, batchSize: 0) } == .invalidRequest)
        #expect(
            try context.aggregate(Item.where { $0.number == 77 }) { column, _ in
                column.number.min
            } == nil
        )
    }

    @Test(arguments: [1_000, 2_000])
    func explainTellsWhatIsRead(count: Int) throws {
        let container = try memory()
        try makeItems(count, in: container) { item, index in
            item.number = index
            item.title = "title \(index % 10)"
        }
        let context = container.newContext()
        func measured(_ request: FetchDescriptor<Item>) throws -> String {
            let text = try context.explain(request, isMeasured: true)
            return String(text.split(separator: "\n").last ?? "")
        }
        let narrow = try measured(Item.where { $0.number < 20 })
        #expect(narrow.hasPrefix("20 objects found; 0 rows, 20 entries and "))
        let tested = try measured(Item.where { $0.number < 20 && $0.title == "title 3" })
        #expect(tested.hasPrefix("2 objects found; 20 rows, 20 entries and "))
        let all = try measured(Item.where { $0.title == "title 3" })
        #expect(all.hasPrefix("\(count / 10) objects found; \(count) rows, 0 entries and "))
        #expect(narrow.hasSuffix(", 0 of the pages from the file"))
        // Without measuring nothing is read.
        let before = container.statistics
        _ = try context.explain(Item.where { $0.title == "title 3" })
        #expect(container.statistics.rowsScanned == before.rowsScanned)
    }

    @Test func existsStopsAtTheFirst() throws {
        let container = try memory()
        try makeItems(2_000, in: container) { item, index in item.title = "title \(index % 3)" }
        let context = container.newContext()
        let before = container.statistics.rowsScanned
        #expect(try context.exists(Item.where { $0.title.contains("2") }))
        #expect(container.statistics.rowsScanned - before <= 4)
        #expect(container.statistics.registeredObjects == 0)
    }

    @Test func sumsOverTheTopAreErrors() throws {
        let container = try memory()
        let context = container.newContext()
        try context.batchInsert(Everything.self, count: 3) { row, index in
            row.required = "x"
            row.uint64 = .max
            row.int = .max
            row.double = 0.5
            row.optionalInt = index == 0 ? nil : 4
        }
        let ints = { try context.aggregate(Everything.all) { column, _ in column.int.sum } }
        #expect(code { _ = try ints() } == .valueTooLarge)
        let unsigned = { try context.aggregate(Everything.all) { column, _ in column.uint64.sum } }
        #expect(code { _ = try unsigned() } == .valueTooLarge)
        let rest = try context.aggregate(Everything.all) { column, group in
            (
                column.uint64.average, column.double.sum, column.optionalInt.sum,
                column.optionalInt.average, column.optionalInt.min, column.uint64.max
            )
        }
        #expect(rest.0 == Double(UInt64.max) && rest.1 == 1.5 && rest.2 == 8)
        #expect(rest.3 == 4 && rest.4 == 4 && rest.5 == .max)
    }

    @Test func aStreamGivesAllAndStops() async throws {
        let container = try memory()
        try makeItems(1_000, in: container) { item, index in item.number = index }
        let context = container.newContext()
        let request = Item.all.sorted { [$0.number.descending] }
        var seen: [Int] = []
        for try await item in try context.enumerate(request, batchSize: 64) {
            seen.append(item.number)
            // Objects that are not held cost nothing.
            #expect(container.statistics.registeredObjects <= 3 * 64)
        }
        #expect(seen == (0..<1_000).reversed())

        // What is deleted before its turn does not come; what is inserted does not either.
        seen = []
        for try await item in try context.enumerate(request, batchSize: 10) {
            seen.append(item.number)
            guard item.number == 900 else { continue }
            let others = try context.fetch(Item.where { $0.number < 890 && $0.number > 20 })
            for other in others { context.delete(other) }
            Item(in: context).number = 15
            try context.save()
        }
        #expect(seen == (890..<1_000).reversed() + (0...20).reversed())
    }

    @Test func aCancelledStreamThrows() async throws {
        let container = try memory()
        try makeItems(100, in: container) { item, index in item.number = index }
        let count = Mutex(0)
        let reader = Task { () -> Bool in
            let context = container.newContext()
            do {
                for try await _ in try context.enumerate(Item.all, batchSize: 10) {
                    count.withLock { $0 += 1 }
                    while count.withLock({ $0 == 25 }), !Task.isCancelled {
                        await Task.yield()
                    }
                }
                return false
            } catch is CancellationError {
                return true
            }
        }
        while count.withLock({ $0 < 25 }) { await Task.yield() }
        reader.cancel()
        #expect(try await reader.value, "no CancellationError")
        #expect(count.withLock { $0 } == 25)
    }

    @Test func fetchesOnAnotherThread() async throws {
        let container = try memory()
        try makeItems(300, in: container) { item, index in item.number = index % 40 }
        let context = container.newContext()
        let request = Item.where { $0.number > 30 }.sorted { [$0.number.descending] }
        #expect(try await context.fetchConcurrently(request).map(\.id) == context.fetchIDs(request))
        let whole = request.returningFaults(false)
        let filled = try await context.fetchConcurrently(whole)
        #expect(filled.allSatisfy { !$0.isFault } && filled.count == 63)
        // Edits that count are seen, as by a fetch.
        filled[0].number = 0
        #expect(try await context.fetchConcurrently(request).count == 62)
        #expect(try await container.fetchIDs(request).count == 63)
        #expect(try await container.fetchSnapshots(request).map(\.number).min() == 31)
        try context.save()
        #expect(try await container.fetchIDs(request).count == 62)
        await #expect(throws: StoreError.self) {
            _ = try await context.fetchConcurrently(request.limit(-1))
        }
    }
}
