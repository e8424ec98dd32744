// Rows that are lent are the rows that are copied.

import Testing
import VarveBase
import VarveFormat
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

    @Test(arguments: [UInt64(1), 2, 3, 4])
    func placesAreSorted(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let width = [1, 10, 30, 63][Int(seed) - 1]
        let list = (0..<Int.random(in: 0...5_000, using: &random)).map { _ in
            ObjectID(UInt64.random(in: 0..<(1 << UInt64(width)), using: &random) + 5)
        }
        let sorted = SortedPlaces(list)
        #expect(sorted.ids == list.sorted(), "seed \(seed)")
        #expect(sorted.ids.indices.allSatisfy { list[sorted.place($0)] == sorted.ids[$0] })
        #expect(Set(sorted.ids.indices.map { sorted.place($0) }).count == list.count)
        let ascending = SortedPlaces(list.sorted())
        #expect(ascending.ids.indices.allSatisfy { ascending.place($0) == $0 })
    }
}
