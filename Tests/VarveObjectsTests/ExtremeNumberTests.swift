// The public API with numbers that nobody should give: a typed error or the plain meaning, never a
// trap. Only the subscripts of collections want an index of theirs, as an Array's does.

import Foundation
import Testing
import VarveBase
import VarveObjects

@Suite(.verified) struct ExtremeNumberTests {
    private static let numbers = [Int.min, Int.min + 1, -1, 0, 1, 2, 50, Int.max - 1, Int.max]

    /// The value, or nil with a typed error.
    private func answer<Value>(_ body: () throws -> Value) -> Value? {
        do {
            return try body()
        } catch {
            #expect(error is StoreError, "\(error)")
            return nil
        }
    }

    private func refuses(_ code: StoreError.Code, _ body: () throws -> Void) -> Bool {
        do {
            try body()
            return false
        } catch {
            return (error as? StoreError)?.code == code
        }
    }

    @Test(arguments: [false, true]) func windows(isEdited: Bool) throws {
        let container = try memory()
        try makeItems(20, in: container)
        let context = container.newContext()
        if isEdited {
            Item(in: context).number = 100
            try context.fetch(Item.where { $0.number == 3 })[0].number = -5
            context.delete(try context.fetch(Item.where { $0.number == 7 })[0])
        }
        let sorted = Item.all.sorted { [$0.title.descending] }
        let numbers = isEdited ? [Int.min, -1, 0, 1, 2, 50, 1 << 60] : Self.numbers
        let page = try context.fetchPage(sorted.limit(5))
        for request in [
            Item.all, sorted, Item.where { $0.number >= 0 }, sorted.after(page.last),
            sorted.before(page.last), sorted.after(page.first).before(page.last),
        ] {
            let all = try context.fetchIDs(request)
            for offset in numbers {
                #expect(
                    (offset < 0)
                        == refuses(.invalidRequest) {
                            _ = try context.fetchIDs(request.offset(offset))
                        }
                )
                for limit in numbers {
                    let window = request.offset(offset).limit(limit)
                    let ids = answer { try context.fetchIDs(window) }
                    #expect((ids == nil) == (offset < 0 || limit < 0), "\(offset) \(limit)")
                    guard let ids else { continue }
                    #expect(ids.count <= max(0, all.count - min(all.count, offset)))
                    #expect(ids.count <= limit)
                    #expect(answer { try context.fetch(window).map(\.id) } == ids)
                    #expect(answer { try context.count(window) } == ids.count)
                    _ = answer { try context.fetchPage(window) }
                    _ = answer { try context.minimum(window) { $0.number } }
                    _ = answer { try context.sum(window) { $0.number } }
                    _ = answer { try context.explain(window) }
                }
            }
            for size in numbers {
                let list = answer { try context.fetchBatched(request, size: size) }
                #expect((list == nil) == (size < 1))
                guard let list else { continue }
                for lower in numbers {
                    for upper in numbers where lower <= upper {
                        try list.load(lower..<upper)
                    }
                }
                #expect(list.map(\.id) == all)
            }
        }
    }

    @Test func filters() throws {
        let container = try memory()
        try makeItems(3, in: container) { item, index in
            for _ in 0..<index { item.tags.append(Tag(in: item.context!)) }
        }
        let context = container.newContext()
        func object(_ number: Int64) -> Everything {
            let object = Everything(in: context)
            object.required = "r"
            object.int64 = number
            object.double = Double(number)
            object.uint64 = UInt64(bitPattern: number)
            object.date = Date(timeIntervalSinceReferenceDate: Double(number))
            return object
        }
        let wide = Self.numbers.map(Int64.init)
        for number in wide { _ = object(number) }
        for isSaved in [false, true] {
            if isSaved { try context.save() }
            for number in Self.numbers {
                #expect(
                    try context.count(Item.where { $0.tags.count < number })
                        == (0..<3).count { $0 < number }
                )
                #expect(
                    try context.count(
                        Item.where { $0.tags.count(where: { _ in .always }) >= number }
                    )
                        == (0..<3).count { $0 >= number }
                )
                #expect(
                    try context.count(Everything.where { $0.int64 <= Int64(number) })
                        == wide.count { $0 <= number }
                )
                #expect(
                    try context.count(
                        Everything.where { $0.uint64 == UInt64(bitPattern: Int64(number)) }
                    )
                        == 1
                )
            }
            for number in [-Double.infinity, -.greatestFiniteMagnitude, -0.0, .infinity, .nan] {
                let date = Date(timeIntervalSinceReferenceDate: number)
                _ = try context.count(Everything.where { $0.double < number })
                _ = try context.count(Everything.where { $0.date >= date })
                _ = try context.count(Everything.where { $0.double == number })
            }
            // Nine numbers from both ends of the range: no Int holds their sum with one more.
            #expect(answer { try context.sum(Everything.all) { $0.int64 } } != nil)
            #expect(
                answer { try context.sum(Everything.where { $0.int64 > 1 }) { $0.int64 } } == nil
            )
            #expect(answer { try context.average(Everything.all) { $0.uint64 } } != nil)
            #expect(try context.maximum(Everything.all) { $0.int64 } == .max)
            #expect(try context.minimum(Everything.all) { $0.int64 } == .min)
        }
    }

    @Test func relationshipsAndBlobs() throws {
        let container = try memory()
        let context = container.newContext()
        let item = Item(in: context)
        let tags = (0..<4).map { _ in Tag(in: context) }
        for tag in tags { item.tags.append(tag) }
        for index in Self.numbers {
            item.tags.insert(tags[1], at: index)
            let expected = index <= 0 ? 0 : min(index, 3)
            #expect(item.tags.map(\.id).firstIndex(of: tags[1].id) == expected, "\(index)")
        }
        try context.save()
        let bytes = Data((0..<100).map { UInt8($0) })
        for limit in Self.numbers {
            var writer = try context.makeBlob(externalLimit: limit)
            try writer.append(bytes)
            let blob = try writer.finish()
            let picture = Picture(in: context)
            picture.data = blob
            try context.save()
            let kept = try #require(picture.data)
            #expect(try kept.readAll() == bytes)
            for lower in Self.numbers {
                for upper in Self.numbers where lower <= upper {
                    let read = answer { try kept.read(lower..<upper) }
                    #expect((read != nil) == (lower >= 0 && upper <= 100), "\(lower)..<\(upper)")
                }
            }
        }
    }

    @Test func chunks() async throws {
        let container = try memory()
        let blob: Blob = try {
            let context = container.newContext()
            let picture = Picture(in: context)
            picture.data = try context.makeBlob(
                Data(repeating: 7, count: 60),
                for: Picture.columns.data
            )
            try context.save()
            return picture.data!
        }()
        for size in Self.numbers {
            var count = 0
            for try await chunk in blob.chunks(of: size) { count += chunk.count }
            #expect(count == 60)
        }
    }

    @Test func batches() throws {
        let container = try memory()
        let context = container.newContext()
        for number in Self.numbers where number <= 50 {
            let result = try context.batchInsert(Item.self, count: number) { row, index in
                row.number = index
            }
            #expect(result.inserted == max(0, number))
        }
        for number in Self.numbers {
            let isRefused = number < 1
            #expect(
                isRefused
                    == refuses(.invalidRequest) {
                        try context.batchInsert(Item.self, count: 2, rowsPerCommit: number) {
                            _,
                            _ in
                        }
                    }
            )
            #expect(
                isRefused
                    == refuses(.invalidRequest) {
                        try context.batchUpdate(Item.all, rowsPerCommit: number) { $0.title = "x" }
                    }
            )
            #expect(
                isRefused
                    == refuses(.invalidRequest) {
                        try context.batchDelete(
                            Item.where { $0.number == -9 },
                            rowsPerCommit: number
                        )
                    }
            )
            #expect(
                (number < 0)
                    == refuses(.invalidRequest) {
                        try context.batchUpdate(Item.all.limit(number)) { $0.title = "y" }
                    }
            )
        }
    }

    @Test func options() async throws {
        for number in Self.numbers {
            let options = ContainerOptions(
                unreferencedRowBytes: number,
                nodeCacheBytes: number,
                rememberedChanges: number,
                backgroundThreads: number
            )
            let folder = try TemporaryFolder()
            let container = try folder.open(options)
            try makeItems(200, in: container)
            let context = container.newContext()
            #expect(try context.fetchBatched(Item.all).map(\.number).reduce(0, +) == 19_900)
            let count = try await container.performBackgroundTask { context in
                let item = Item(in: context)
                item.number = 1
                try context.save()
                return try context.count(Item.all)
            }
            #expect(count == 201)
            context.advance()
            #expect(try context.count(Item.all) == 201)
            _ = container.statistics
            container.trimMemory()
            try container.closeNow()
        }
    }

    @Test func identities() throws {
        let container = try memory()
        for number in [UInt64.min, 1, 1 << 32, (1 << 32) - 1, 1 << 63, .max - 1, .max] {
            for text in ["Item/\(number)", "Item/\(number)-\(number)", "1/\(number)"] {
                guard let id = container.objectID(text) else { continue }
                #expect(container.objectID(id.description) == id)
                #expect(ManagedObjectID(uri: id.uri) == id)
                let context = container.newContext()
                let isThere = answer { try context.existingObject(with: id) != nil }
                #expect(isThere != true, "\(text)")
            }
        }
    }
}
