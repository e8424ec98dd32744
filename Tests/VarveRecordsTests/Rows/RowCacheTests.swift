// The rules of the row cache, one by one, and its intervals under random commits.

import Testing
import VarveBase
import VarveEngine
import VarveTesting

@testable import VarveRecords

@Suite(.verified) struct RowCacheTests {
    private func world(
        _ count: Int,
        budget: Int = 8 << 20
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

    private func update(_ store: RecordStore, _ city: RecordEntity, _ id: ObjectID, _ name: String)
        throws
    {
        _ = try store.write { try $0.update(city.id, id, city.values([("name", .text(name))])) }
    }

    @Test func `Two contexts, one row, one read`() throws {
        let (store, city, ids) = try world(1, budget: 0)
        let cache = store.rowCache
        let one = try store.snapshot()
        let two = try store.snapshot()
        let first = try #require(try one.row(city.id, ids[0], pin: true))
        let second = try #require(try two.row(city.id, ids[0], pin: true))
        #expect(first === second)
        #expect(store.statistics.storeReads == 1)
        #expect(cache.statistics.hits == 1)
        #expect(cache.statistics.misses == 1)
        cache.unpin(first)
        #expect(cache.contains(ids[0]))
        cache.unpin(second)
        #expect(!cache.contains(ids[0]))
        #expect(cache.statistics.rows == 0)
        #expect(cache.statistics.bytes == 0)
    }

    @Test func `Unpinned rows go, least recently used first, pinned ones stay`() throws {
        let (store, city, ids) = try world(10, budget: 0)
        let snapshot = try store.snapshot()
        // Rows differ by a few bytes; three of any fit, four do not.
        let cost = try #require(try ids.compactMap { try snapshot.row(city.id, $0)?.cost }.max())
        let (roomy, entity, rows) = try world(10, budget: cost * 3)
        let view = try roomy.snapshot()
        for id in rows[0..<3] { _ = try view.row(entity.id, id) }
        _ = try view.row(entity.id, rows[0])
        _ = try view.row(entity.id, rows[3])
        #expect(roomy.rowCache.contains(rows[0]))
        #expect(!roomy.rowCache.contains(rows[1]))
        #expect(roomy.rowCache.contains(rows[2]))
        let pinned = try #require(try view.row(entity.id, rows[2], pin: true))
        for id in rows[4...] { _ = try view.row(entity.id, id) }
        #expect(roomy.rowCache.contains(rows[2]))
        #expect(!roomy.rowCache.contains(rows[0]))
        #expect(roomy.rowCache.statistics.pinnedRows == 1)
        #expect(roomy.rowCache.statistics.rows == 4)
        roomy.rowCache.unpin(pinned)
        #expect(roomy.rowCache.statistics.rows == 3)
        #expect(roomy.rowCache.statistics.pinnedBytes == 0)
        roomy.rowCache.trim()
        #expect(roomy.rowCache.statistics.rows == 0)
        #expect(roomy.rowCache.statistics.evictions == 10)
    }

    @Test func `Reading ahead keeps to half the budget and evicts none of its own`() throws {
        let (store, city, ids) = try world(3_000, budget: 64 << 10)
        let snapshot = try store.snapshot()
        let behind = Array(ids.reversed().dropFirst())
        let before = store.statistics
        _ = try snapshot.row(city.id, ids[2_999]) { behind }
        let statistics = store.rowCache.statistics
        #expect(statistics.bytes <= 33 << 10)
        #expect(statistics.bytes > 24 << 10)
        #expect(store.statistics.storePasses == before.storePasses + 1)
        #expect(store.statistics.storeReads == before.storeReads + statistics.rows)
        // In the order given: from the end of the list backward, without a gap.
        #expect(ids.suffix(statistics.rows).allSatisfy { store.rowCache.contains($0) })
        #expect(!store.rowCache.contains(ids[0]))
        let reads = store.statistics.storeReads
        _ = try snapshot.row(city.id, ids[2_998]) { behind }
        #expect(store.statistics.storeReads == reads)
    }

    @Test func `Fetching IDs caches nothing`() throws {
        let (store, city, ids) = try world(100)
        var query = RecordQuery(entity: city.id, sort: [SortTerm("latitude")])
        query.predicate = .text(PropertyPath("name"), .contains, "n", ignoring: .caseDifferences)
        #expect(try store.snapshot().fetchIDs(query) == ids)
        #expect(store.rowCache.statistics.rows == 0)
        #expect(store.statistics.storeReads == 0)
        #expect(store.statistics.rowsScanned > 0)
    }

    @Test func `Many rows are read in one pass, those in the cache not at all`() throws {
        let (store, city, ids) = try world(200)
        let snapshot = try store.snapshot()
        for id in ids[50..<60] { _ = try snapshot.row(city.id, id) }
        let before = store.statistics
        let asked = Array(ids[0..<100].reversed()) + [ObjectID(123_456_789)]
        let rows = try snapshot.rows(city.id, asked)
        #expect(rows.dropLast().map { $0?.id } == asked.dropLast().map { $0 })
        #expect(rows.count == 101 && rows[100] == nil)
        #expect(store.statistics.storeReads - before.storeReads == 90)
        #expect(store.statistics.storePasses - before.storePasses == 1)
        #expect(try snapshot.rows(city.id, asked).count == 101)
        #expect(store.statistics.storeReads - before.storeReads == 90)
    }

    @Test func `Two versions side by side, each to its own commit, the older evicted first`()
        throws
    {
        let (store, city, ids) = try world(2)
        let name = city.column("name")
        let old = try store.snapshot()
        let first = try #require(try old.row(city.id, ids[0], pin: true))
        try update(store, city, ids[0], "new")
        let new = try store.snapshot()
        #expect(new.cachedRow(city.id, ids[0]) == nil)
        let second = try #require(try new.row(city.id, ids[0], pin: true))
        #expect(first !== second)
        #expect(try second.text(name) == "new")
        #expect(try old.row(city.id, ids[0]) === first)
        #expect(store.statistics.storeReads == 2)
        #expect(store.rowCache.statistics.rows == 2)
        store.rowCache.unpin(second)
        store.rowCache.unpin(first)
        // Both are evictable now; a third row must push the closed version out.
        let (tight, entity, rows) = try world(3, budget: second.cost * 2 + 40)
        let before = try tight.snapshot()
        _ = try before.row(entity.id, rows[0])
        try update(tight, entity, rows[0], "new")
        let after = try tight.snapshot()
        _ = try after.row(entity.id, rows[0])
        _ = try after.row(entity.id, rows[1])
        #expect(before.cachedRow(entity.id, rows[0]) == nil)
        #expect(after.cachedRow(entity.id, rows[0]) != nil)
    }

    @Test func `A commit larger than what is remembered ends just the rows that it changed`() throws
    {
        let count = RowCacheState.recentMax + 100
        let (store, city, ids) = try world(count)
        let old = try store.snapshot()
        let rows = try [0, 1, count - 2, count - 1].map { index in
            try #require(try old.row(city.id, ids[index], pin: true))
        }
        _ = try store.write { transaction in
            for id in ids[1..<count - 1] {
                try transaction.update(city.id, id, city.values([("name", .text("new"))]))
            }
        }
        let new = try store.snapshot()
        let reads = store.statistics.storeReads
        let found = try [0, 1, count - 2, count - 1].map { index in
            try #require(try new.row(city.id, ids[index], pin: true))
        }
        #expect(zip(rows, found).map { $0 === $1 } == [true, false, false, true])
        #expect(store.statistics.storeReads == reads + 2)
        // The older commit still has its own.
        #expect(try old.row(city.id, ids[1]) === rows[1])
        for row in rows + found { store.rowCache.unpin(row) }
    }

    @Test
    func `A row filled from an older commit holds for that commit only when it changed since`()
        throws
    {
        let (store, city, ids) = try world(2)
        let old = try store.snapshot()
        try update(store, city, ids[0], "new")
        let new = try store.snapshot()
        _ = try old.row(city.id, ids[0])
        _ = try old.row(city.id, ids[1])
        #expect(new.cachedRow(city.id, ids[0]) == nil)
        #expect(new.cachedRow(city.id, ids[1]) != nil)
        #expect(try new.row(city.id, ids[0])?.text(city.column("name")) == "new")
        _ = try store.write { try $0.delete(city.id, ids[1]) }
        let newest = try store.snapshot()
        #expect(newest.cachedRow(city.id, ids[1]) == nil)
        #expect(try newest.row(city.id, ids[1]) == nil)
        #expect(try new.row(city.id, ids[1]) != nil)
    }

    @Test func `Rows that the caller has just written are cached without counting as reads`() throws
    {
        let (store, city, ids) = try world(3)
        let snapshot = try store.snapshot()
        let rows = try snapshot.rows(city.id, ids, pin: true, counting: false)
        #expect(rows.compactMap(\.self).count == 3)
        #expect(store.statistics.storeReads == 0 && store.statistics.storePasses == 0)
        #expect(store.rowCache.statistics.hits == 0 && store.rowCache.statistics.misses == 0)
        #expect(store.rowCache.statistics.pinnedRows == 3)
        #expect(snapshot.cachedRow(city.id, ids[1]) === rows[1])
    }

    @Test func `An object of another entity is not found under its ID`() throws {
        let (store, city, ids) = try world(1)
        let tag = try store.schema.require("Tag")
        let snapshot = try store.snapshot()
        _ = try snapshot.row(city.id, ids[0])
        #expect(try snapshot.row(tag.id, ids[0], pin: true) == nil)
        #expect(try snapshot.rows(tag.id, ids, pin: true).compactMap(\.self).isEmpty)
        #expect(snapshot.cachedRow(tag.id, ids[0]) == nil)
        #expect(try !snapshot.exists(tag.id, ids[0]))
        #expect(try snapshot.exists(city.id, ids[0]))
        #expect(store.rowCache.statistics.pinnedRows == 0)
    }

    @Test func `A row that left the cache is pinned again, or the one that came after it`()
        throws
    {
        let (store, city, ids) = try world(1, budget: 0)
        let (snapshot, cache) = (try store.snapshot(), store.rowCache)
        let gone = try #require(try snapshot.row(city.id, ids[0]))
        #expect(cache.statistics.rows == 0)
        cache.unpin(gone)
        cache.pin(gone)
        #expect(cache.statistics.pinnedRows == 1)
        #expect(try snapshot.row(city.id, ids[0]) === gone)
        cache.unpin(gone)
        #expect(cache.statistics.rows == 0)
        // Read again meanwhile: a pin of the old one counts for the new one.
        let new = try #require(try snapshot.row(city.id, ids[0], pin: true))
        #expect(new !== gone)
        cache.pin(gone)
        cache.unpin(new)
        #expect(cache.statistics.pinnedRows == 1)
        #expect(snapshot.cachedRow(city.id, ids[0]) === new)
        cache.unpin(gone)
        #expect(cache.statistics.rows == 0 && cache.statistics.bytes == 0)
    }

    @Test func `A list gives back the pins of the rows that nobody has taken`() throws {
        let (store, city, ids) = try world(20, budget: 0)
        let list = try store.snapshot().rows(city.id, ids + [ObjectID(123_456_789)], pin: true)
        #expect(!list.isComplete && list.averageByteCount > 0)
        let taken = list.take(3)
        store.rowCache.unpin(list)
        #expect(store.rowCache.statistics.pinnedRows == 1)
        #expect(store.rowCache.contains(ids[3]) && !store.rowCache.contains(ids[4]))
        // The list keeps what left the cache.
        #expect(list[4]?.id == ids[4] && list[3] == nil)
        var ended = EndedRows()
        ended.append(taken)
        store.rowCache.unpin(ended)
        #expect(store.rowCache.statistics.rows == 0)
        store.rowCache.unpin(RowList())
        #expect(RowList().averageByteCount == 0)
    }

    @Test func `A cache that ends lets its rows go, all versions of them`() throws {
        weak var first: RowMemory?
        weak var second: RowMemory?
        do {
            let (store, city, ids) = try world(1)
            let old = try store.snapshot()
            first = try old.row(city.id, ids[0])?.memory
            try update(store, city, ids[0], "new")
            second = try store.snapshot().row(city.id, ids[0], pin: true)?.memory
            #expect(first != nil && second != nil && store.rowCache.statistics.rows == 2)
        }
        #expect(first == nil && second == nil)
    }

    @Test func `Random commits, snapshots and budgets: no snapshot ever sees another commit's row`()
        throws
    {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("RowCacheTests seed \(seed)")
        var random = SeededRandom(seed: seed)
        let (store, city, ids) = try world(12, budget: 1_200)
        let name = city.column("name")
        var expected: [ObjectID: String] = [:]
        for id in ids { expected[id] = "n\(id.rawValue)" }
        var held: [(RecordSnapshot, [ObjectID: String])] = []
        var pins: [CachedRow] = []
        for step in 0..<2_000 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0, 1:
                let id = ids[Int.random(in: 0..<12, using: &random)]
                try update(store, city, id, "s\(step)")
                expected[id] = "s\(step)"
            case 2: held.append((try store.snapshot(), expected))
            case 3:
                if held.count > 5 {
                    held.remove(at: Int.random(in: 0..<held.count, using: &random))
                }
            case 4: if let row = pins.popLast() { store.rowCache.unpin(row) }
            case 5: if step % 50 == 0 { store.rowCache.trim() }
            default:
                guard let (snapshot, rows) = held.randomElement(using: &random) else { continue }
                let id = ids[Int.random(in: 0..<12, using: &random)]
                let pin = Int.random(in: 0..<4, using: &random) == 0
                let row = try #require(try snapshot.row(city.id, id, pin: pin))
                #expect(try row.text(name) == rows[id], "seed \(seed) step \(step)")
                if pin { pins.append(row) }
            }
        }
        for row in pins { store.rowCache.unpin(row) }
        let statistics = store.rowCache.statistics
        #expect(statistics.pinnedRows == 0 && statistics.pinnedBytes == 0)
        #expect(statistics.bytes <= 1_200, "seed \(seed)")
    }
}

private func === (one: CachedRow?, two: CachedRow?) -> Bool {
    guard let one, let two else { return one == nil && two == nil }
    return one.isSame(as: two)
}

private func !== (one: CachedRow?, two: CachedRow?) -> Bool { !(one === two) }
