// Pins that are taken back together, and the references that go with them.

import Testing
import VarveBase
import VarveEngine
import VarveTesting

@testable import VarveRecords

@Suite(.verified) struct EndedRowsTests {
    private func world(
        _ count: Int,
        budget: Int
    ) throws -> (RecordStore, RecordEntity, [ObjectID]) {
        let store = try Cities.store(unreferencedRowBytes: budget)
        let city = try store.schema.require("City")
        let first = store.allocateObjectIDs(count)
        let ids = (0..<count).map { ObjectID(first.rawValue + UInt64($0)) }
        _ = try store.write { transaction in
            for id in ids {
                try transaction.insert(
                    city.id,
                    id,
                    city.values([("name", .text("n\(id.rawValue)"))])
                )
            }
        }
        return (store, city, ids)
    }

    @Test func `Each row loses one pin for each time that it stands there`() throws {
        let (store, city, ids) = try world(EndedRows.room, budget: 0)
        let snapshot = try store.snapshot()
        let list = try snapshot.rows(city.id, ids, pin: true)
        let again = try #require(try snapshot.row(city.id, ids[0], pin: true))
        var ended = EndedRows()
        #expect(ended.count == 0)
        for index in ids.indices { ended.append(list.take(index)) }
        #expect(ended.count == EndedRows.room)
        #expect(store.rowCache.statistics.pinnedRows == EndedRows.room)
        store.rowCache.unpin(ended)
        // The first one has another pin; without a budget the others are gone.
        #expect(store.rowCache.statistics.pinnedRows == 1)
        #expect(store.rowCache.statistics.rows == 1)
        #expect(store.rowCache.contains(ids[0]) && !store.rowCache.contains(ids[1]))
        // The references are still there: those of rows that left the cache, too.
        var names: [String] = []
        ended.forEach(soon: { _ in }) { row in
            names.append((try? row.counted?.text(ColumnID(0))) ?? "")
        }
        #expect(names == ids.map { "n\($0.rawValue)" })
        store.rowCache.unpin(again)
        #expect(store.rowCache.statistics.rows == 0)
    }

    @Test func `The references go with it, and only those`() throws {
        let (store, city, ids) = try world(2, budget: 0)
        let snapshot = try store.snapshot()
        weak var first: RowMemory?
        weak var second: RowMemory?
        var kept: CachedRow?
        do {
            let list = try snapshot.rows(city.id, ids, pin: true)
            first = list[0]?.memory
            second = list[1]?.memory
            kept = list[1]
            var ended = EndedRows()
            ended.append(list.take(0))
            ended.append(list.keep(1))
            #expect(list.take(0) == 0 && list.has(0))
            store.rowCache.unpin(ended)
            // Taken back once: a second list of the same row has a reference of its own.
            #expect(second != nil && first != nil)
        }
        #expect(first == nil)
        #expect(second != nil && second === kept?.memory)
        kept = nil
        #expect(second == nil)
        #expect(store.rowCache.statistics.rows == 0)
    }

    @Test(arguments: [0, 1, 5, 6, 7, 11, 12, 13, 64])
    func `Each row is announced once, before its turn, and comes in order`(count: Int) throws {
        let (store, city, ids) = try world(count, budget: 1 << 20)
        let list = try store.snapshot().rows(city.id, ids, pin: true)
        var ended = EndedRows()
        for index in ids.indices { ended.append(list.take(index)) }
        var (soon, now): ([ObjectID], [ObjectID]) = ([], [])
        ended.forEach(soon: { soon.append($0.id) }) { row in
            now.append(row.id)
            #expect(soon.count >= now.count)
        }
        #expect(soon == ids && now == ids)
        store.rowCache.unpin(ended)
        #expect(store.rowCache.statistics.pinnedRows == 0)
    }
}
