// Rows that are lent are the rows that are copied.

import Testing
import VarveBase
import VarveEngine
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveRecords

@Suite(.verified) struct RowReadingTests {
    /// Rows in pages and rows changed since, absent IDs, any order, requests in index order.
    @Test(arguments: [UInt64(1), 2, 3])
    func lentRowsAreTheRows(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let store = try Cities.store(unreferencedRowBytes: 2_000)
        let city = try store.schema.require("City")
        let first = store.allocateObjectIDs(500).rawValue
        func values(_ number: Int64) -> [ColumnValue] {
            city.values([("name", .text("city \(number)")), ("population", .int(number))])
        }
        _ = try store.write { transaction in
            for id in first..<(first + 500) where id % 5 > 0 {
                let population = Int64.random(in: 0..<100, using: &random)
                try transaction.insert(city.id, ObjectID(id), values(population))
            }
        }
        _ = try store.write { transaction in
            for id in first..<(first + 500) where id % 35 == 1 {
                try transaction.update(city.id, ObjectID(id), values(Int64(id)))
            }
        }
        let snapshot = try store.snapshot()
        let population = city.column("population")
        var numbers: [ObjectID: Int64] = [:]
        for id in first..<(first + 500) {
            let id = ObjectID(id)
            var lent: Int64?
            let isThere = try snapshot.withRow(city, id) { version, layout, row in
                #expect(
                    version == snapshot.number || version.rawValue + 1 == snapshot.number.rawValue
                )
                lent = try? layout.slot(population, in: row).int(in: row)
            }
            #expect(try snapshot.row(city.id, id)?.int(population) == lent, "seed \(seed)")
            #expect(isThere == (id.rawValue % 5 > 0))
            if isThere { numbers[id] = lent }
        }
        var scanned: [ObjectID: Int64] = [:]
        var last = ObjectID(0)
        try snapshot.forEachRow(city) { id, _, layout, row in
            #expect(last < id)
            last = id
            scanned[id] = try? layout.slot(population, in: row).int(in: row)
            return true
        }
        #expect(scanned == numbers, "seed \(seed)")
        for _ in 0..<20 {
            let list = (0..<Int.random(in: 0...300, using: &random)).map { _ in
                ObjectID(UInt64.random(in: first..<(first + 510), using: &random))
            }
            var found = [Int64?](repeating: nil, count: list.count)
            try snapshot.withRows(city, list) { position, _, layout, row in
                found[position] = try? layout.slot(population, in: row).int(in: row)
                return true
            }
            #expect(found == list.map { numbers[$0] }, "seed \(seed)")
        }
        let query = RecordQuery(entity: city.id, sort: [SortTerm("population")])
        let wanted = try snapshot.fetchIDs(query)
        var ordered: [ObjectID] = []
        try snapshot.forEachRow(of: query) { id, _, layout, row in
            ordered.append(id)
            #expect((try? layout.slot(population, in: row).int(in: row)) == numbers[id])
            return true
        }
        #expect(ordered == wanted && ordered.count == numbers.count, "seed \(seed)")
        // Enough is enough, and an error comes through.
        var count = 0
        try snapshot.forEachRow(of: query) { _, _, _, _ in
            count += 1
            return count < 7
        }
        #expect(count == 7)
        #expect(throws: RecordError.self) {
            try snapshot.forEachRow(city) { (_, _, _, _) throws(RecordError) in
                throw .invalidRequest("enough")
            }
        }
    }

    /// Lists of at most 256 rows begin in memory, and go on in the file wherever a page is not.
    @Test(arguments: [UInt64(1), 2, 3])
    func shortListsBeginInMemory(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let place = StoreLocation.directory(MemoryDirectory(), name: "cities")
        let names = (0..<700).map { "city \($0) " + String(repeating: "x", count: $0 % 90) }
        let made = try RecordStore.open(place, schema: Cities.schema)
        let city = try made.schema.require("City")
        let first = made.allocateObjectIDs(names.count).rawValue
        _ = try made.write { transaction in
            for (number, name) in names.enumerated() where number % 7 > 0 {
                let id = ObjectID(first + UInt64(number))
                let values = city.values([
                    ("name", .text(name)), ("population", .int(Int64(number * 31 % 50))),
                ])
                try transaction.insert(city.id, id, values)
            }
        }
        try made.close()
        var options = RecordOptions(unreferencedRowBytes: 0)
        options.engine.nodeCacheBytes = 24 << 10
        let store = try RecordStore.open(place, schema: Cities.schema, options: options)
        let snapshot = try store.snapshot()
        let name = city.column("name")
        var (began, wentOn) = (false, false)
        for count in [1, 2, 50, 256, 257] {
            let numbers = (0..<count).map { _ in Int.random(in: 0..<names.count, using: &random) }
            let ids = numbers.map { ObjectID(first + UInt64($0)) }
            let rows = try snapshot.rows(city.id, ids)
            #expect(
                try rows.map { try $0?.text(name) }
                    == numbers.map { $0 % 7 > 0 ? names[$0] : nil },
                "seed \(seed), \(count) rows"
            )
            let done = try snapshot.lendInMemory(city, ids) { _, _, _ in true }
            if done > 0 { began = true }
            if done < ids.count { wentOn = true }
            let query = RecordQuery(
                entity: city.id,
                sort: [SortTerm("population")],
                limit: count,
                offset: 100
            )
            let before = store.statistics
            var listed: [ObjectID] = []
            try snapshot.forEachRow(of: query) { id, _, layout, row in
                let text = try? layout.slot(name, in: row).text(in: row)
                #expect(text == names[Int(id.rawValue - first)])
                listed.append(id)
                return true
            }
            #expect(try listed == snapshot.fetchIDs(query) && listed.count == count)
            #expect(store.statistics.storeReads - before.storeReads == count)
            let passes = store.statistics.storePasses - before.storePasses
            #expect(count > 256 || passes == 1, "\(passes) passes, \(count) rows")
            // What was lent before an error counts, too.
            #expect(throws: RecordError.self) {
                try snapshot.forEachRow(of: query) { (_, _, _, _) throws(RecordError) in
                    throw .invalidRequest("enough")
                }
            }
            #expect(store.statistics.storeReads - before.storeReads > count)
        }
        #expect(began && wentOn, "seed \(seed)")
        try store.close()
    }

    @Test(arguments: [UInt64(1), 2, 3, 4])
    func placesAreSorted(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let width = [1, 10, 30, 63][Int(seed) - 1]
        // Short lists are sorted in another way than long ones.
        for count in [0, 1, 2, 255, 256, 257, Int.random(in: 300...5_000, using: &random)] {
            let list = (0..<count).map { _ in
                ObjectID(UInt64.random(in: 0..<(1 << UInt64(width)), using: &random) + 5)
            }
            let sorted = SortedPlaces(list)
            #expect(sorted.ids == list.sorted(), "seed \(seed), \(count) IDs")
            #expect(sorted.ids.indices.allSatisfy { list[sorted.place($0)] == sorted.ids[$0] })
            #expect(Set(sorted.ids.indices.map { sorted.place($0) }).count == list.count)
            let ascending = SortedPlaces(list.sorted())
            #expect(ascending.ids.indices.allSatisfy { ascending.place($0) == $0 })
        }
    }
}
