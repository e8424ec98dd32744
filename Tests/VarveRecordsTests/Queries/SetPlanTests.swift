// Plans over several ranges, orders that extend an index, sorts that keep what a limit needs: which
// plan is taken, and how many entries and rows it looks at for n and 2n objects.

import Testing
import VarveBase
import VarveTesting

@testable import VarveRecords

@Suite(.verified) struct SetPlanTests {
    /// Cities `0..<count`: `population` and `latitude` are spread, each country has a quarter.
    private struct World {
        let store: RecordStore
        let city: RecordEntity
        let countries: [ObjectID]

        init(_ count: Int) throws {
            let store = try Cities.store(Cities.schema)
            let city = try store.schema.require("City")
            let countries = try (0..<4).map { index in
                try store.insert("Country", [("name", .text("country \(index)"))])
            }
            _ = try store.write { transaction in
                for index in 0..<count {
                    try transaction.insert(
                        city.id,
                        store.allocateObjectIDs(1),
                        city.values([
                            ("name", .text("city \(index * 7_919 % count)")),
                            ("population", .int(Int64(index * 31 % count))),
                            ("country", .reference(countries[index % 4])),
                            ("latitude", .double(Double(index * 17 % 1_000))),
                        ])
                    )
                }
            }
            (self.store, self.city, self.countries) = (store, city, countries)
        }

        /// Entries and rows that a fetch looks at, and its plan.
        func run(_ query: RecordQuery) throws -> (plan: String, entries: Int, rows: Int, ids: Int) {
            let snapshot = try store.snapshot()
            let before = store.statistics
            let ids = try snapshot.fetchIDs(query)
            let after = store.statistics
            return (
                try snapshot.explain(query), after.entriesScanned - before.entriesScanned,
                after.rowsScanned - before.rowsScanned, ids.count
            )
        }

        func query(_ predicate: Predicate = .always, _ sort: [SortTerm] = []) -> RecordQuery {
            RecordQuery(entity: city.id, predicate: predicate, sort: sort)
        }

        func population(_ comparison: Comparison, _ number: Int) -> Predicate {
            .compare(PropertyPath("population"), comparison, .int(Int64(number)))
        }

        func name(_ prefix: String) -> Predicate {
            .text(PropertyPath("name"), .hasPrefix, prefix, ignoring: [])
        }
    }

    @Test(arguments: [4_000, 8_000])
    func `An or reads the ranges of its branches only`(count: Int) throws {
        let world = try World(count)
        let either = Predicate.or([world.population(.less, 10), world.name("city 12")])
        let found = try world.run(world.query(either))
        #expect(found.plan.hasPrefix("set: any of [City(population) 1 range; City(name) 1 range]"))
        #expect(!found.plan.contains("filter"))
        #expect(found.rows == 0)
        let named = (0..<count).count { "city \($0)".hasPrefix("city 12") }
        #expect(found.entries == 10 + named)
        // Sorted, and with a test on top: the rows of the union only.
        var query = world.query(
            .and([either, .compare(PropertyPath("latitude"), .less, .double(500))]),
            [SortTerm("latitude")]
        )
        query.limit = 5
        let tested = try world.run(query)
        #expect(tested.plan.hasPrefix("set: any of ["))
        #expect(tested.rows <= 10 + named)
    }

    @Test(arguments: [4_000, 8_000])
    func `An and of two indexes reads the rows of neither`(count: Int) throws {
        let world = try World(count)
        let both = Predicate.and([world.population(.less, 60), world.name("city 1")])
        let found = try world.run(world.query(both))
        let named = (0..<count).count { "city \($0)".hasPrefix("city 1") }
        // 60 rows cost less than a thousand entries: one index, and a test.
        #expect(found.rows == 60 && found.entries == 60 && named > 1_000)
        let narrow = Predicate.and([world.population(.less, 150), world.name("city 12")])
        let crossed = try world.run(world.query(narrow))
        #expect(crossed.plan.hasPrefix("set: all of ["))
        #expect(crossed.rows == 0)
        #expect(crossed.entries == 150 + (0..<count).count { "city \($0)".hasPrefix("city 12") })
    }

    @Test(arguments: [4_000, 8_000])
    func `An order that an index begins is sorted by groups`(count: Int) throws {
        let world = try World(count)
        var query = world.query(
            .always,
            [SortTerm("population", isDescending: true), SortTerm("latitude")]
        )
        query.limit = 10
        let found = try world.run(query)
        #expect(found.plan.hasPrefix("index: City(population) backward, 1 range"))
        #expect(found.plan.contains("1 terms as read, the rest sorted in memory"))
        #expect(found.rows == 10 && found.entries == 10)
        // Each country is a group: the first one is read, whatever comes after it.
        query.sort = [SortTerm("country"), SortTerm("name", isDescending: true)]
        let groups = try world.run(query)
        #expect(groups.rows == count / 4)
        // Without a limit all rows are read anyway.
        query.limit = nil
        #expect(try world.run(query).plan.hasPrefix("rows: all"))
    }

    @Test func `A sort keeps the keys that the limit needs`() throws {
        let world = try World(4_000)
        var query = world.query(.always, [SortTerm("latitude"), SortTerm("founded")])
        query.limit = 10
        let found = try world.run(query)
        #expect(found.plan.contains("sorted in memory, only what the limit needs"))
        #expect(found.rows == 4_000)
        query.limit = nil
        let all = try world.store.snapshot().fetchIDs(query)
        for (limit, offset) in [(10, 0), (100, 7), (3, 3_990), (5_000, 0)] {
            query.limit = limit
            query.offset = offset
            let ids = try world.store.snapshot().fetchIDs(query)
            #expect(ids == Array(all.dropFirst(offset).prefix(limit)))
        }
    }

    @Test func `A collection of keys stays small in any order of arrival`() {
        for descending in [false, true] {
            for fromEnd in [false, true] {
                var keys = SortKeys(keep: 50, fromEnd: fromEnd, after: nil, before: nil)
                var most = 0
                for index in 0..<10_000 {
                    let number = UInt64(descending ? 10_000 - index : index)
                    let start = keys.bytes.count
                    for shift in stride(from: 56, through: 0, by: -8) {
                        keys.bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(shift)))
                    }
                    keys.close(from: start, ObjectID(number))
                    most = max(most, keys.bytes.count)
                }
                #expect(most <= 2 * 50 * 8)
                let ids = keys.sortedIDs().map { Int($0.rawValue) }
                let wanted = descending ? 1...10_000 : 0...9_999
                let kept = fromEnd ? Array(wanted.suffix(50)) : Array(wanted.prefix(50))
                #expect(fromEnd ? ids.suffix(50) == kept[...] : ids.prefix(50) == kept[...])
            }
        }
    }
}
