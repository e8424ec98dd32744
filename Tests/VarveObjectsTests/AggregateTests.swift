// Extremes, sums, averages and distinct values against folding over fetched objects.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct AggregateTests {
    /// Compares every question with the same one asked of the objects.
    private func compare(
        _ context: ManagedObjectContext,
        _ request: FetchDescriptor<Item>,
        _ note: Comment
    ) throws {
        let items = try context.fetch(request)
        let numbers = items.map(\.number)
        #expect(try context.minimum(request) { $0.number } == numbers.min(), note)
        #expect(try context.maximum(request) { $0.number } == numbers.max(), note)
        #expect(try context.sum(request) { $0.number } == numbers.reduce(0, +), note)
        let mean = numbers.isEmpty ? nil : Double(numbers.reduce(0, +)) / Double(numbers.count)
        #expect(try context.average(request) { $0.number } == mean, note)
        #expect(try context.selectDistinct(request) { $0.number } == Set(numbers).sorted(), note)
        let times = items.map(\.timestamp)
        #expect(try context.minimum(request) { $0.timestamp } == times.min(), note)
        #expect(try context.maximum(request) { $0.timestamp } == times.max(), note)
        let titles = Set(items.map(\.title)).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        #expect(try context.selectDistinct(request) { $0.title } == titles, note)
        #expect(try context.minimum(request) { $0.title } == titles.first, note)
        let serials = items.compactMap(\.serial).map(\.uuidString)
        #expect(try context.maximum(request) { $0.serial }?.uuidString == serials.max(), note)
        let different = Set(items.map { $0.serial?.uuidString ?? "" }).sorted()
        let found = try context.selectDistinct(request) { $0.serial }
        #expect(found.map { $0?.uuidString ?? "" } == different, note)
        #expect(try context.count(request) == items.count, note)
    }

    @Test func answersAreThoseOfAFetch() throws {
        let seed: UInt64 = 300
        var state = seed
        func below(_ count: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int((state >> 33) % UInt64(count))
        }
        let container = try memory()
        let context = container.newContext()
        try compare(context, Item.all, "empty")
        let long = String(repeating: "x", count: 3_000)
        try context.batchInsert(Item.self, count: 400) { row, index in
            row.number = below(40)
            row.title = below(20) == 0 ? long + "\(below(3))" : "title \(below(30))"
            row.timestamp = Date(timeIntervalSinceReferenceDate: Double(below(1_000)) - 500)
            row.serial = below(2) == 0 ? nil : UUID()
        }
        for round in 0..<20 {
            let (low, high) = (below(40), below(40))
            let requests: [FetchDescriptor<Item>] = [
                Item.all,
                Item.where { $0.number >= low && $0.number < high },
                Item.where { $0.title != "title 3" && $0.number != low },
                Item.where { $0.title.hasPrefix("title 1") || $0.number == high },
                Item.where { !($0.title == long + "1") && $0.title.contains("1") },
                Item.where { $0.number.isIn([low, high]) || $0.serial == nil },
                Item.all.sorted { [$0.timestamp.descending] }.limit(high).offset(low),
                Item.where { $0.title.hasSuffix("2") }.limit(5),
            ]
            for (number, request) in requests.enumerated() {
                try compare(context, request, "seed \(seed), round \(round), request \(number)")
            }
            // Unsaved edits count, too.
            if round == 10 {
                let items = try context.fetch(Item.all)
                for item in items where below(5) == 0 { item.number = 39 - item.number }
                for item in items where below(9) == 0 { context.delete(item) }
                Item(in: context).title = "new"
            }
        }
    }

    @Test func anIndexAnswersWithoutRows() throws {
        let container = try memory()
        try makeItems(2_000, in: container) { item, index in item.number = index % 50 }
        let context = container.newContext()
        let before = container.statistics
        #expect(try context.maximum(Item.all) { $0.number } == 49)
        #expect(try context.minimum(Item.all) { $0.number } == 0)
        #expect(try context.selectDistinct(Item.all) { $0.number } == Array(0..<50))
        let after = container.statistics
        #expect(after.rowsScanned - before.rowsScanned <= 2)
        #expect(after.storeReads - before.storeReads <= 2)
        #expect(after.registeredObjects == 0)
    }

    @Test func unsignedSumsAndTooLargeOnes() throws {
        let container = try memory()
        let context = container.newContext()
        try context.batchInsert(Everything.self, count: 3) { row, index in
            row.required = "x"
            row.uint64 = UInt64(index)
            row.int = .max
            row.double = 0.5
        }
        #expect(try context.sum(Everything.all) { $0.uint64 } == 3)
        #expect(try context.average(Everything.all) { $0.uint64 } == 1)
        #expect(try context.maximum(Everything.all) { $0.uint64 } == 2)
        #expect(try context.sum(Everything.all) { $0.double } == 1.5)
        #expect(try context.average(Everything.all) { $0.double } == 0.5)
        #expect(code { _ = try context.sum(Everything.all) { $0.int } } == .valueTooLarge)
        #expect(try context.maximum(Everything.all) { $0.optionalInt } == nil)
        #expect(try context.selectDistinct(Everything.all) { $0.optionalInt } == [nil])
        #expect(
            code { _ = try context.maximum(Item.all) { $0.folder.name } } == .unsupportedPredicate
        )
    }
}
