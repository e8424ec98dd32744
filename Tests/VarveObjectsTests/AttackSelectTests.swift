// Tuples, groups, streams and fetches on other threads, asked in the wrong order: beside unsaved
// edits, with odd windows and odd numbers, while their context is emptied or closed.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct AttackSelectTests {
    // MARK: Streams

    @Test(arguments: ["delete", "process", "rollback", "reset", "save", "undelete"])
    func aStreamLeavesOutWhatIsGone(_ way: String) async throws {
        let container = try memory()
        try makeItems(12, in: container)
        let context = container.newContext()
        for number in [100, 101] { Item(in: context).number = number }
        var seen: [Int] = []
        let request = Item.all.sorted { [$0.number.ascending] }
        let all = try context.fetch(request)
        for try await item in try context.enumerate(request, batchSize: 5) {
            seen.append(item.number)
            #expect(!item.isDeleted && item.context === context, "\(way)")
            guard item.number == 2 else { continue }
            switch way {
            case "rollback": context.rollback()
            case "reset": context.reset()
            default: for place in [3, 4, 8, 13] { context.delete(all[place]) }
            }
            if way == "process" { context.processPendingChanges() }
            if way == "save" { try context.save() }
            if way == "undelete" { context.rollback() }
        }
        let expected: [Int] =
            switch way {
            case "rollback", "reset", "undelete": Array(0..<12)
            default: [0, 1, 2, 5, 6, 7, 9, 10, 11, 100]
            }
        #expect(seen == expected, "\(way)")
    }

    @Test func aStreamOfAClosedContainerThrows() async throws {
        let container = try memory()
        try makeItems(12, in: container)
        let context = container.newContext()
        var seen = 0
        do {
            for try await _ in try context.enumerate(Item.all, batchSize: 4) {
                seen += 1
                if seen == 4 { try container.closeNow() }
            }
            Issue.record("it went on")
        } catch let error as StoreError {
            #expect(error.code == .closed)
        }
        #expect(seen == 4)
        await #expect(throws: StoreError.self) { _ = try await context.fetchConcurrently(Item.all) }
        await #expect(throws: StoreError.self) { _ = try await container.fetchIDs(Item.all) }
        #expect(code { _ = try context.exists(Item.all) } == .closed)
        #expect(code { _ = try context.exists(Item.all.limit(0)) } == .closed)
        #expect(code { _ = try context.select(Item.all) { $0.number } } == .closed)
        #expect(code { _ = try context.aggregate(Item.all) { _, group in group.count } } == .closed)
    }

    // MARK: Fetches on other threads

    @Test func aCancelledFetchThrows() async throws {
        let container = try memory()
        try makeItems(50, in: container)
        let tasks = (0..<8).map { number in
            Task { () -> Bool in
                let context = container.newContext()
                if number % 2 == 0 { while !Task.isCancelled { await Task.yield() } }
                do {
                    let request = Item.all.sorted { [$0.title.descending] }
                    return try await context.fetchConcurrently(request).count == 50
                } catch is CancellationError { return true }
            }
        }
        for task in tasks { task.cancel() }
        for task in tasks { #expect(try await task.value) }
        #expect(container.statistics.contexts <= 1)
        try container.closeNow()
    }

    @MainActor @Test func aContextThatMovesOnIsAskedAgain() async throws {
        let container = try memory()
        let ids = try makeItems(400, in: container)
        let view = container.viewContext
        _ = try view.count(Item.all)
        for round in 0..<20 {
            let found = Task { @MainActor in
                try await view.fetchConcurrently(Item.where { $0.number < 200 })
                    .allSatisfy { $0.context === view && !$0.isDeleted }
            }
            await Task.yield()
            let other = container.newContext()
            try other.object(with: ids[round]).number = 1_000
            try other.save()
            if round % 3 == 0 { view.advance() }
            if round % 5 == 0 { view.reset() }
            if round % 7 == 0 { Item(in: view).number = 3 }
            #expect(try await found.value)
            view.rollback()
        }
    }

    // MARK: Windows

    @Test(arguments: [0, 1, 2])
    func oddWindowsAreThoseOfAFetch(edits: Int) async throws {
        let container = try memory()
        try makeItems(20, in: container) { item, index in item.number = index % 4 }
        let context = container.newContext()
        if edits > 0 { Item(in: context).number = 2 }
        if edits > 1 { try context.fetch(Item.all.limit(3)).forEach { context.delete($0) } }
        let orders: [FetchDescriptor<Item>] = [
            Item.all, Item.all.sorted { [$0.number.descending] },
            Item.where { $0.number == 1 || $0.title == "item 6" }.sorted { [$0.title.ascending] },
            Item.all.sorted { [$0.timestamp.month(in: .gmt).ascending, $0.number.descending] },
        ]
        for (place, order) in orders.enumerated() {
            let all = try context.fetchIDs(order)
            for limit in [0, 1, 7, .max, nil] as [Int?] {
                for offset in [0, 3, 40, .max] {
                    var request = order.offset(offset)
                    if let limit { request = request.limit(limit) }
                    let wanted = Array(all.dropFirst(offset).prefix(limit ?? .max))
                    let note: Comment = "edits \(edits) order \(place) \(limit as Any) \(offset)"
                    #expect(try context.fetchIDs(request) == wanted, note)
                    #expect(try context.count(request) == wanted.count, note)
                    #expect(try context.exists(request) == !wanted.isEmpty, note)
                    #expect(try context.select(request) { $0.number }.count == wanted.count, note)
                    #expect(
                        try context.aggregate(request) { _, group in group.count } == wanted.count,
                        note
                    )
                    #expect(try context.fetchBatched(request).ids == wanted, note)
                    let found = try await context.fetchConcurrently(request)
                    #expect(found.map(\.id) == wanted, note)
                    _ = try context.explain(request)
                }
            }
            for request in [order.limit(-1), order.offset(-1), order.limit(.min).offset(.min)] {
                #expect(code { _ = try context.exists(request) } == .invalidRequest)
                #expect(code { _ = try context.select(request) { $0.title } } == .invalidRequest)
                #expect(code { _ = try context.enumerate(request) } == .invalidRequest)
                #expect(code { _ = try context.explain(request) } == .invalidRequest)
            }
        }
        #expect(code { _ = try context.enumerate(Item.all, batchSize: 0) } == .invalidRequest)
    }

    // MARK: Odd values

    /// Edits answer as the commit does that a save makes of them.
    @Test func oddNumbersAreTheSameBeforeAndAfterASave() throws {
        let container = try memory()
        let context = container.newContext()
        let numbers: [Double] = [0, -0.0, .nan, -.nan, .infinity, -.infinity, 1, .nan, -0.0]
        for (place, number) in numbers.enumerated() {
            let thing = Everything(in: context)
            thing.double = number
            thing.float = Float(number)
            thing.date = Date(timeIntervalSinceReferenceDate: number)
            thing.optionalInt = place % 2 == 0 ? nil : place
            thing.string = String(repeating: "long ", count: 600 + place / 2)
            thing.data = Data(repeating: 7, count: 3_000 + place / 3)
            thing.required = ""
        }
        func answers() throws -> [String] {
            var answers: [String] = []
            func add(_ answer: some Any) { answers.append("\(answer)") }
            let all = Everything.all
            // A date that is no number cannot be printed.
            func moment(_ date: Date) -> Double { date.timeIntervalSinceReferenceDate }
            add(
                try context.select(distinct: all) { ($0.double, $0.float, $0.date) }
                    .map { "\($0.0) \($0.1) \(moment($0.2))" }
            )
            add(try context.select(distinct: all) { ($0.string, $0.data) }.map { $0.0.count })
            add(
                try context.select(all, groupedBy: { $0.double }) { column, group in
                    (group.count, column.optionalInt.sum, column.optionalInt.average)
                }
            )
            add(try context.select(all, groupedBy: { $0.data }) { _, group in group.count }.count)
            add(
                try context.select(all, groupedBy: { $0.date.year(in: .gmt) }) { column, group in
                    (group.count, column.date.year(in: .gmt).max, column.double.max)
                }
            )
            add(
                try context.aggregate(all) { column, group in
                    (
                        column.double.max, column.double.min, column.double.distinctCount,
                        column.string.distinctCount, column.date.distinctCount,
                        column.optionalInt.min, column.float.max
                    )
                }
            )
            add(try context.selectDistinct(all) { $0.double })
            add(try context.maximum(all) { $0.date }.map(moment) as Any)
            let sorted = all.sorted { [$0.double.descending, $0.string.ascending] }
            let pairs = try context.select(sorted) { ($0.double, $0.string) }
            add(pairs.map { "\($0.0) \($0.1.count)" })
            add(try context.exists(Everything.where { $0.double == .nan }))
            add(try context.exists(Everything.where { $0.date.year(in: .gmt) == nil }))
            return answers
        }
        let unsaved = try answers()
        try context.save()
        let saved = try answers()
        for (before, after) in zip(unsaved, saved) { #expect(before == after) }
        #expect(saved[0].contains("nan"))
        // An unrelated edit changes no answer.
        Everything(in: context).required = "x"
        context.delete(try #require(context.insertedObjects.first as? Everything))
        #expect(try answers() == saved)
    }

    @Test func partsOfValuesAreColumns() throws {
        let container = try memory()
        let context = container.newContext()
        let item = Item(in: context)
        item.timestamp = Date(timeIntervalSinceReferenceDate: 0)
        let picture = Picture(in: context)
        picture.data = try context.makeBlob(Data([1, 2, 3]), for: Picture.columns.data)
        item.picture = picture
        for isSaved in [false, true] {
            if isSaved { try context.save() }
            let lengths: [Int?] = [3]
            #expect(try context.select(Picture.all) { $0.data.length } == lengths)
            #expect(try context.select(Item.all) { $0.picture.data.length } == lengths)
            #expect(try context.aggregate(Picture.all) { column, _ in column.data.length.sum } == 3)
            let years: [Int?] = [2001]
            #expect(try context.select(Item.all) { $0.timestamp.year(in: .gmt) } == years)
            #expect(
                try context.select(Item.all, groupedBy: { $0.timestamp.weekday(in: .gmt) }) {
                    $1.count
                }.map(\.key) == [2]
            )
            // What asks an index about a column says that a part is none, and traps nowhere.
            let part = code { _ = try context.maximum(Item.all) { $0.timestamp.year(in: .gmt) } }
            #expect(part == .unsupportedPredicate)
        }
    }

    @Test func pathsOverDeletedTargetsAreNil() throws {
        let container = try memory()
        let context = container.newContext()
        let person = Person(in: context)
        person.name = "owner"
        var items: [Item] = []
        for number in 0..<6 {
            let folder = Folder(in: context)
            folder.name = "folder \(number / 2)"
            if number < 4 { folder.owner = person }
            let item = Item(in: context)
            item.number = number
            item.folder = folder
            items.append(item)
        }
        try context.save()
        let request = Item.all.sorted { [$0.folder.owner.name.descending, $0.number.ascending] }
        func rows() throws -> [String] {
            try context.select(request) {
                ($0.number, $0.folder.name.optional, $0.folder.owner.name.optional)
            }.map { "\($0.0) \($0.1 ?? "-") \($0.2 ?? "-")" }
        }
        func shown() throws -> [String] {
            try context.fetch(request).map {
                "\($0.number) \($0.folder?.name ?? "-") \($0.folder?.owner?.name ?? "-")"
            }
        }
        #expect(try rows() == shown())
        context.delete(try #require(items[1].folder))
        items[2].folder?.owner = nil
        items[5].folder?.owner = person
        #expect(try rows() == shown())
        #expect(try rows().first == "0 folder 0 owner")
        let grouped = try context.select(Item.all, groupedBy: { $0.folder.owner }) { $1.count }
        #expect(grouped.map(\.values) == [3, 3] && grouped[1].key == person.id)
        try context.save()
        #expect(try rows() == shown())
        let other = container.newContext()
        try other.fetch(Folder.where { $0.name == "folder 0" }).forEach { other.delete($0) }
        try other.save()
        #expect(try rows() == shown())
        context.advance()
        #expect(try rows() == shown())
    }

    // MARK: Pages

    /// Goes through a request by pages, from both ends.
    private func walk<Entity>(
        _ context: ManagedObjectContext,
        _ request: FetchDescriptor<Entity>,
        _ note: String
    ) throws {
        let all = try context.fetchIDs(request)
        var seen: [Entity.ID] = []
        var page = try context.fetchPage(request.limit(3))
        while let last = page.last, seen.count <= all.count {
            seen += page.objects.map(\.id)
            // A cursor outlives its process.
            let text = try JSONEncoder().encode(last)
            let place = try JSONDecoder().decode(FetchCursor.self, from: text)
            page = try context.fetchPage(request.limit(3).after(place))
        }
        #expect(seen == all, "\(note) forward")
        guard let end = try context.fetchPage(request).last else { return }
        seen = Array(all.suffix(1))
        page = try context.fetchPage(request.limit(4).before(end))
        while let first = page.first, seen.count <= all.count {
            seen = page.objects.map(\.id) + seen
            page = try context.fetchPage(request.limit(4).before(first))
        }
        #expect(seen == all, "\(note) backward")
    }

    @Test(arguments: [false, true])
    func pagesOfOddOrdersAreWhole(edits: Bool) throws {
        let container = try memory()
        let context = container.newContext()
        let numbers: [Double] = [0, -0.0, .nan, .infinity, 1, -.nan, -0.0, 0, .nan, -1, 1e300]
        func fill(_ context: ManagedObjectContext) {
            for (place, number) in numbers.enumerated() {
                let thing = Everything(in: context)
                (thing.double, thing.float) = (number, Float(number))
                thing.date = Date(timeIntervalSinceReferenceDate: number * 1e8)
                thing.optionalInt = place % 3 == 0 ? nil : place % 2
                thing.string = String(repeating: "x", count: 2_000 + place % 3)
                thing.required = ""
                let folder = Folder(in: context)
                folder.name = "\(place % 2)"
                let item = Item(in: context)
                item.number = place % 3
                item.folder = place % 4 == 0 ? nil : folder
            }
        }
        fill(context)
        try context.save()
        if edits {
            fill(context)
            for thing in try context.fetch(Everything.all.limit(3)) { thing.double = .nan }
            context.delete(try context.fetch(Everything.all.limit(1))[0])
            context.delete(try context.fetch(Folder.all.limit(1))[0])
        }
        let orders: [FetchDescriptor<Everything>] = [
            Everything.all.sorted { [$0.double.ascending] },
            Everything.all.sorted { [$0.float.descending, $0.optionalInt.ascending] },
            Everything.all.sorted { [$0.date.year(in: .gmt).descending, $0.string.descending] },
            Everything.all.sorted { [$0.string.ascending, $0.double.descending] },
            Everything.where { $0.double == .nan || $0.optionalInt == nil }
                .sorted { [$0.optionalInt.descending] },
            Everything.where { $0.date.year(in: .gmt) == nil },
        ]
        for (place, order) in orders.enumerated() { try walk(context, order, "order \(place)") }
        let items: [FetchDescriptor<Item>] = [
            Item.all.sorted { [$0.folder.name.ascending] },
            Item.all.sorted { [$0.number.descending, $0.folder.name.descending] },
            Item.where { $0.number.isIn(1...) || $0.folder.name == "0" }
                .sorted { [$0.number.ascending] },
        ]
        for (place, order) in items.enumerated() { try walk(context, order, "items \(place)") }
    }

    // MARK: Costs

    /// One edit makes no list of single reads.
    @Test func anEditCostsNoPassForEachRow() throws {
        let container = try memory(ContainerOptions(unreferencedRowBytes: 0))
        try makeItems(2_000, in: container)
        let context = container.newContext()
        Item(in: context).title = "new"
        let titles = try reads(container) { try context.select(Item.all) { $0.title } }
        #expect(titles.value.count == 2_001 && titles.value.last == "new")
        #expect(titles.passes <= 4, "\(titles.passes) passes")
        let sums = try reads(container) {
            try context.aggregate(Item.all) { column, _ in column.number.sum }
        }
        #expect(sums.value == 1_999 * 1_000 && sums.passes <= 4, "\(sums.passes) passes")
        #expect(try context.exists(Item.where { $0.title == "new" }))
    }

    @Test func aStreamOfOneHugeBatch() async throws {
        let container = try memory()
        try makeItems(10, in: container)
        let context = container.newContext()
        var seen = 0
        for try await item in try context.enumerate(Item.all, batchSize: .max) {
            seen += 1
            if seen == 3 { context.delete(item) }
        }
        #expect(seen == 10)
    }
}
