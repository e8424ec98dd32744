// Which plan is chosen, and what it costs: entries and rows looked at.

import Testing
import VarveBase
import VarveEngine
import VarveTesting

@testable import VarveRecords

@Suite(.verified) struct PlannerTests {
    private struct World {
        let store: RecordStore
        let city: RecordEntity
        let countries: [ObjectID]
        let ids: [ObjectID]

        init(_ count: Int) throws {
            store = try Cities.store()
            city = try store.schema.require("City")
            let (store, city) = (store, city)
            let countries = try (0..<4).map {
                try store.insert("Country", [("name", .text("c\($0)"))])
            }
            let first = store.allocateObjectIDs(count)
            let ids = (0..<count).map { ObjectID(first.rawValue + UInt64($0)) }
            self.countries = countries
            self.ids = ids
            _ = try store.write { transaction in
                for (index, id) in ids.enumerated() {
                    try transaction.insert(
                        city.id,
                        id,
                        city.values([
                            ("name", .text("city \(index * 7_919 % count)")),
                            ("population", .int(Int64(index * 31 % count))),
                            ("country", .reference(countries[index % 4])),
                            ("latitude", .double(Double(index % 90))),
                        ])
                    )
                }
            }
        }

        func query(_ predicate: Predicate = .always, _ sort: [SortTerm] = []) -> RecordQuery {
            RecordQuery(entity: city.id, predicate: predicate, sort: sort)
        }

        /// Entries and rows that a request looks at.
        func cost(_ body: (RecordSnapshot) throws -> Void) throws -> (entries: Int, rows: Int) {
            let snapshot = try store.snapshot()
            let before = store.statistics
            try body(snapshot)
            let after = store.statistics
            return (
                after.entriesScanned - before.entriesScanned, after.rowsScanned - before.rowsScanned
            )
        }

        func plan(_ query: RecordQuery) throws -> String {
            try store.snapshot().explain(query)
        }
    }

    @Test func `A count that one index answers looks at nothing else`() throws {
        let world = try World(1_000)
        let population = PropertyPath("population")
        func compare(_ comparison: Comparison, _ value: StoredValue) -> Predicate {
            .compare(population, comparison, value)
        }
        let cases: [(Predicate, Int)] = [
            (.and([compare(.greater, .int(9)), compare(.less, .int(3))]), 0),
            (.and([compare(.greaterOrEqual, .int(3)), compare(.lessOrEqual, .int(9))]), 7),
            (.and([compare(.greater, .int(3)), compare(.less, .int(9))]), 5),
            (.and([compare(.equal, .null), compare(.less, .int(5))]), 0),
            (compare(.notEqual, .null), 1_000),
            (compare(.less, .int(5)), 5),
            (.isIn(population, [.null, .int(1), .int(2), .int(2_000)]), 2),
            (.isIn(population, []), 0),
            (.and([.isIn(population, [.int(1), .int(9)]), compare(.less, .int(2))]), 1),
            (.isWithin(population, ValueRange(from: .int(990), upTo: nil)), 10),
            (.isWithin(population, ValueRange(from: nil, upTo: .int(10))), 10),
        ]
        for (predicate, wanted) in cases {
            let query = world.query(predicate)
            var found = 0
            let cost = try world.cost { found = try $0.count(query) }
            #expect(found == wanted, "\(predicate)")
            #expect(cost.entries == 0 && cost.rows == 0, "\(predicate)")
            #expect(try world.store.snapshot().fetchIDs(query).count == wanted, "\(predicate)")
        }
        // An order changes no number, but one that the entity has not is a mistake all the same.
        var query = world.query(compare(.less, .int(5)), [SortTerm("population")])
        #expect(try world.store.snapshot().count(query) == 5)
        query.offset = 3
        #expect(try world.store.snapshot().count(query) == 2)
        query.sort = [SortTerm("size")]
        #expect(throws: RecordError.self) { try world.store.snapshot().count(query) }
    }

    @Test func `An entity is found by its number, and by no other`() throws {
        let schema = try World(1).store.schema
        for entity in schema.all { #expect(schema.entity(entity.id) === entity) }
        #expect(schema.all.map(\.id) == schema.all.map(\.id).sorted())
        let last = try #require(schema.all.last).id.rawValue
        for number in [0, last + 1, .max] { #expect(schema.entity(EntityID(number)) == nil) }
    }

    @Test func `A sort is read from its index, from either end`() throws {
        let world = try World(1_000)
        var query = world.query(.always, [SortTerm("name")])
        #expect(try world.plan(query).hasPrefix("index: City(name), 1 range, 1000 entries"))
        query.sort = [SortTerm("name", isDescending: true)]
        #expect(try world.plan(query).hasPrefix("index: City(name) backward"))
        query.sort = [SortTerm("population", isDescending: true)]
        #expect(try world.plan(query).hasPrefix("index: City(population) backward"))
        query.sort = [SortTerm("latitude")]
        #expect(
            try world.plan(query) == "rows: all 1000 of City\norder: latitude, ID, sorted in memory"
        )
        query.sort = []
        #expect(try world.plan(query) == "rows: all 1000 of City\norder: ID, as read")
        query.sort = [SortTerm(.object, isDescending: true)]
        #expect(try world.plan(query).hasPrefix("rows: all 1000 of City backward"))
        #expect(try world.store.snapshot().fetchIDs(query) == world.ids.reversed())
    }

    @Test func `Equal values in front, then the order`() throws {
        let world = try World(1_000)
        let inside = Predicate.compare(
            PropertyPath("country"),
            .equal,
            .reference(world.countries[1])
        )
        let query = world.query(inside, [SortTerm("population", isDescending: true)])
        let plan = try world.plan(query)
        #expect(plan.hasPrefix("index: City(country, population) backward, 1 range, 250 entries"))
        #expect(!plan.contains("filter"))
        let cost = try world.cost { (snapshot) throws in
            #expect(try snapshot.fetchIDs(query).count == 250)
        }
        #expect(cost == (250, 0))
        let ranged = world.query(
            .and([inside, .compare(PropertyPath("population"), .greaterOrEqual, .int(900))]),
            [SortTerm("population")]
        )
        let rangedCost = try world.cost { (snapshot) throws in
            #expect(try snapshot.fetchIDs(ranged).count == 25)
        }
        #expect(rangedCost == (25, 0))
    }

    @Test func `The narrowest index wins`() throws {
        let world = try World(1_000)
        let query = world.query(
            .and([
                .compare(PropertyPath("country"), .equal, .reference(world.countries[0])),
                .text(PropertyPath("name"), .hasPrefix, "city 12", ignoring: []),
            ])
        )
        #expect(try world.plan(query).hasPrefix("index: City(name), 1 range, 11 entries"))
        #expect(try world.plan(query).contains("filter: country == ?"))
        let cost = try world.cost { _ = try $0.fetchIDs(query) }
        #expect(cost == (11, 11))
    }

    @Test func `Keys answer filters and sorts on their own columns`() throws {
        let world = try World(1_000)
        var query = world.query(
            .text(PropertyPath("name"), .hasSuffix, "7", ignoring: []),
            [SortTerm("name")]
        )
        #expect(try world.plan(query).contains("filter: name hasSuffix ?, on keys"))
        let cost = try world.cost { (snapshot) throws in
            #expect(try snapshot.fetchIDs(query).count == 100)
        }
        #expect(cost == (1_000, 0))
        query.limit = 5
        query.offset = 3
        let page = try world.cost { (snapshot) throws in
            #expect(try snapshot.fetchIDs(query).count == 5)
        }
        #expect(page.entries < 200 && page.rows == 0)
        let sorted = world.query(
            .compare(PropertyPath("country"), .equal, .reference(world.countries[0])),
            [SortTerm("population"), SortTerm("country", isDescending: true)]
        )
        #expect(try world.plan(sorted).contains("keys sorted in memory"))
        let sortedCost = try world.cost { (snapshot) throws in
            #expect(try snapshot.fetchIDs(sorted).count == 250)
        }
        #expect(sortedCost == (250, 0))
    }

    @Test func `Lists are ranges of one index`() throws {
        let world = try World(1_000)
        let values: [StoredValue] = [3, 5, 700, 5_000].map { .int($0) }
        let either = Predicate.or(values.map { .compare(PropertyPath("population"), .equal, $0) })
        let query = world.query(either, [SortTerm("population", isDescending: true)])
        #expect(
            try world.plan(query).hasPrefix("index: City(population) backward, 4 ranges, 3 entries")
        )
        let snapshot = try world.store.snapshot()
        let rows = try snapshot.rows(world.city.id, snapshot.fetchIDs(query))
        #expect(try rows.map { try $0?.int(world.city.column("population")) } == [700, 5, 3])
    }

    @Test func `Counting reads neither entries nor rows when an index answers`() throws {
        let world = try World(1_000)
        let name = PropertyPath("name")
        let cost = try world.cost { (snapshot) throws in
            #expect(try snapshot.count(world.query()) == 1_000)
            #expect(
                try snapshot.count(
                    world.query(.text(name, .hasPrefix, "city 1", ignoring: []))
                ) == 111
            )
            #expect(
                try snapshot.count(world.query(.compare(name, .greater, .text("city 9")))) == 110
            )
            #expect(
                try snapshot.count(world.query(.compare(PropertyPath("note"), .notEqual, .null)))
                    == 0
            )
            var window = world.query(.compare(PropertyPath("population"), .less, .int(100)))
            window.offset = 20
            window.limit = 50
            #expect(try snapshot.count(window) == 50)
            window.offset = 90
            #expect(try snapshot.count(window) == 10)
        }
        #expect(cost.entries == 0)
        // `note` has no index: its filter looks at every row.
        #expect(cost.rows == 1_000)
    }

    @Test func `An offset costs a descent, not a scan`() throws {
        let world = try World(1_000)
        var query = world.query(.always, [SortTerm("name")])
        let all = try world.store.snapshot().fetchIDs(query)
        query.offset = 900
        query.limit = 50
        let cost = try world.cost { (snapshot) throws in
            #expect(try snapshot.fetchIDs(query) == Array(all[900..<950]))
        }
        #expect(cost == (50, 0))
        query.offset = 1_000
        #expect(try world.store.snapshot().fetchIDs(query) == [])
        query.offset = -1
        #expect(throws: RecordError.self) { try world.store.snapshot().fetchIDs(query) }
    }

    @Test func `A page by key costs its own entries`() throws {
        let world = try World(1_000)
        var query = world.query(
            .always,
            [SortTerm("population", isDescending: true), SortTerm("name")]
        )
        #expect(try world.plan(query).contains("sorted in memory"))
        query.sort = [SortTerm("population", isDescending: true)]
        let all = try world.store.snapshot().fetchIDs(query)
        query.limit = 50
        var pages: [ObjectID] = []
        while true {
            var page: [ObjectID] = []
            let cost = try world.cost { page = try $0.fetchIDs(query) }
            #expect(cost.entries <= 51 && cost.rows == 0)
            guard let last = page.last else { break }
            pages += page
            let snapshot = try world.store.snapshot()
            let row = try #require(try snapshot.row(world.city.id, last))
            query.after = try snapshot.position(row, in: query)
        }
        #expect(pages == all)
        // And back from the middle.
        query.after = nil
        let snapshot = try world.store.snapshot()
        let row = try #require(try snapshot.row(world.city.id, all[500]))
        query.before = try snapshot.position(row, in: query)
        let cost = try world.cost { (snapshot) throws in
            #expect(try snapshot.fetchIDs(query) == Array(all[450..<500]))
        }
        #expect(cost.entries <= 51 && cost.rows == 0)
        query.before = KeysetPosition(values: [], object: all[0])
        #expect(throws: RecordError.self) { try snapshot.fetchIDs(query) }
        query.before = KeysetPosition(values: [.text("x")], object: all[0])
        #expect(throws: RecordError.self) { try snapshot.fetchIDs(query) }
    }

    @Test func `Paging while a writer inserts and deletes shows each lasting row once`() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("PlannerTests paging seed \(seed)")
        var random = SeededRandom(seed: seed)
        let world = try World(300)
        var query = world.query(.always, [SortTerm("name", isDescending: true)])
        query.limit = 20
        var lasting = Set(world.ids)
        var seen: [ObjectID] = []
        while true {
            let snapshot = try world.store.snapshot()
            let page = try snapshot.fetchIDs(query)
            guard let last = page.last else { break }
            seen += page
            let row = try #require(try snapshot.row(world.city.id, last))
            query.after = try snapshot.position(row, in: query)
            // The cursor's own row goes too, now and then.
            let victims =
                Bool.random(using: &random)
                ? [last] : [world.ids[Int.random(in: 0..<300, using: &random)]]
            for victim in victims where lasting.remove(victim) != nil {
                _ = try world.store.write { try $0.delete(world.city.id, victim) }
            }
            try world.store.insert(
                "City",
                [("name", .text("city \(Int.random(in: 0..<300, using: &random))x"))]
            )
        }
        #expect(Set(seen).count == seen.count, "seed \(seed)")
        #expect(lasting.isSubset(of: Set(seen)), "seed \(seed)")
    }

    @Test func `A filter over a to-one relationship starts from its few targets`() throws {
        let world = try World(1_000)
        let query = world.query(
            .compare(PropertyPath(["country", "name"]), .equal, .text("c2")),
            [SortTerm("population")]
        )
        #expect(
            try world.plan(query).hasPrefix(
                "index: City(country, population), 1 range, 250 entries"
            )
        )
        let cost = try world.cost { (snapshot) throws in
            #expect(try snapshot.fetchIDs(query).count == 250)
        }
        #expect(cost.entries == 251 && cost.rows == 0)
        let none = world.query(.compare(PropertyPath(["country", "name"]), .equal, .text("x")))
        #expect(try world.plan(none).hasPrefix("nothing"))
        let others = world.query(
            .compare(PropertyPath(["country", "name"]), .notEqual, .text("c2"))
        )
        #expect(try world.plan(others).hasPrefix("rows"))
        #expect(try world.store.snapshot().count(others) == 750)
    }

    @Test func `Objects by ID are picked, not searched`() throws {
        let world = try World(100)
        let wanted = [world.ids[7], world.ids[3], ObjectID(987_654)]
        let query = world.query(
            .and([
                .isIn(.object, wanted.map { .reference($0) }),
                .compare(PropertyPath("latitude"), .less, .double(5)),
            ]),
            [SortTerm("name")]
        )
        #expect(try world.plan(query).hasPrefix("objects: 3 of City by ID"))
        #expect(try world.store.snapshot().fetchIDs(query) == [world.ids[3]])
        #expect(try world.store.snapshot().count(query) == 1)
    }

    @Test func `A filter that cannot hold reads nothing`() throws {
        let world = try World(50)
        let cost = try world.cost { (snapshot) throws in
            let name = PropertyPath("population")
            let never: [Predicate] = [
                .never, .isIn(name, []), .compare(name, .less, .null),
                .and([.compare(name, .less, .int(3)), .compare(name, .greater, .int(5))]),
                .and([.always, .never]), .not(.always),
            ]
            for predicate in never {
                #expect(try snapshot.fetchIDs(world.query(predicate)) == [])
                #expect(try snapshot.explain(world.query(predicate)).hasPrefix("nothing"))
            }
        }
        #expect(cost == (0, 0))
    }

    @Test func `Misuse is reported`() throws {
        let world = try World(1)
        let snapshot = try world.store.snapshot()
        let wrong: [Predicate] = [
            .compare(PropertyPath("nothing"), .equal, .int(1)),
            .compare(PropertyPath("name"), .equal, .int(1)),
            .compare(PropertyPath("tags"), .equal, .int(1)),
            .compare(PropertyPath(["name", "name"]), .equal, .int(1)),
            .text(PropertyPath("population"), .contains, "1", ignoring: []),
            .compareProperties(PropertyPath("name"), .less, PropertyPath("population")),
            .any(PropertyPath("country"), .always),
            .compare(PropertyPath(["name"], part: .blobLength), .equal, .int(1)),
        ]
        for predicate in wrong {
            #expect(throws: RecordError.self) { try snapshot.fetchIDs(world.query(predicate)) }
        }
        var deep = Predicate.always
        for _ in 0..<5_000 { deep = .not(deep) }
        #expect(throws: RecordError.self) { try snapshot.fetchIDs(world.query(deep)) }
        #expect(throws: RecordError.self) {
            try snapshot.fetchIDs(RecordQuery(entity: EntityID(999)))
        }
    }

    /// Positions from 64 on are in no set of and-terms: such tests are made on the rows.
    @Test func manyTestsOfOneColumnGiveWhatFewGive() throws {
        let world = try World(300)
        let path = PropertyPath("population")
        let few = Predicate.and([
            .compare(path, .greaterOrEqual, .int(100)), .compare(path, .less, .int(110)),
        ])
        let bounds = (0..<70).map { Predicate.compare(path, .greaterOrEqual, .int(100 - $0)) }
        let last = Predicate.compare(path, .less, .int(110))
        for many in [Predicate.and([last] + bounds), .and(bounds + [last])] {
            let snapshot = try world.store.snapshot()
            #expect(
                try snapshot.fetchIDs(world.query(many)) == snapshot.fetchIDs(world.query(few))
            )
            #expect(try snapshot.count(world.query(many)) == 10)
            #expect(try snapshot.count(world.query(.and([many, .not(.never)]))) == 10)
        }
    }

    @Test func aSetOfTermsHasThoseBelowSixtyFour() {
        var set = TermSet(3)
        for position in [0, 63, 64, 200] { set.insert(position) }
        #expect(set.count == 3 && set.contains(0) && set.contains(3) && set.contains(63))
        #expect(!set.contains(64) && !set.contains(200) && !set.contains(1))
        #expect(TermSet(all: 2).union(TermSet(2)) == TermSet(all: 3))
        #expect(TermSet(3).isSubset(of: set) && !set.isSubset(of: TermSet(3)))
        #expect(TermSet(all: 64).count == 64 && TermSet(all: 65).count == 64)
        #expect(TermSet().isSubset(of: TermSet()) && TermSet(all: 0) == TermSet())
        let tests = [PredicateNode](repeating: .constant(true), count: 66)
        #expect(TermSet(all: 66).others(tests).count == 2)
        #expect(TermSet(all: 2).others(Array(tests[..<2])).isEmpty)
    }

    /// The entries of the index that answers are counted by their places: none is looked at.
    @Test func aCountOfOneRangeLooksAtNoEntry() throws {
        let world = try World(4_000)
        let path = PropertyPath("population")
        let within = Predicate.and([
            .compare(path, .greaterOrEqual, .int(10)), .compare(path, .less, .int(3_000)),
        ])
        for filter in [within, .compare(PropertyPath("name"), .greater, .text("c"))] {
            var found = 0
            let cost = try world.cost { found = try $0.count(world.query(filter)) }
            #expect(cost == (0, 0) && found > 2_000)
        }
        // A test that its index does not answer is made on keys or rows.
        let other = Predicate.compare(PropertyPath("latitude"), .less, .double(45))
        var found = 0
        let cost = try world.cost { found = try $0.count(world.query(.and([within, other]))) }
        #expect(cost.rows + cost.entries >= found && found > 1_000 && found < 2_990)
    }
}
