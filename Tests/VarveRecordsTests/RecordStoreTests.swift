// Rows and relationships through a store: write, read back, reopen.

import Testing
import VarveBase
import VarveEngine
import VarveIO

@testable import VarveRecords

@Suite(.verified) struct RecordStoreTests {
    @Test func `A row comes back as it was written`() throws {
        let store = try Cities.store()
        let city = try store.schema.require("City")
        let id = try store.insert(
            "City",
            [("name", .text("Bern")), ("population", .int(134_000)), ("latitude", .double(46.9))]
        )
        let snapshot = try store.snapshot()
        let row = try #require(try snapshot.row(city.id, id))
        #expect(try row.text(city.column("name")) == "Bern")
        #expect(try row.int(city.column("population")) == 134_000)
        #expect(try row.double(city.column("latitude")) == 46.9)
        #expect(try row.bool(city.column("isCapital")) == false)
        #expect(try row.text(city.column("note")) == nil)
        #expect(row.isNull(city.column("note")))
        #expect(row.version == snapshot.number)
        #expect(try snapshot.row(city.id, ObjectID(999_999)) == nil)
    }

    @Test func `A snapshot keeps its commit`() throws {
        let store = try Cities.store()
        let city = try store.schema.require("City")
        let id = try store.insert("City", [("name", .text("old"))])
        let before = try store.snapshot()
        _ = try store.write { try $0.update(city.id, id, city.values([("name", .text("new"))])) }
        let after = try store.snapshot()
        #expect(try before.row(city.id, id)?.text(city.column("name")) == "old")
        #expect(try after.row(city.id, id)?.text(city.column("name")) == "new")
        _ = try store.write { try $0.delete(city.id, id) }
        #expect(try store.snapshot().row(city.id, id) == nil)
        #expect(try before.row(city.id, id)?.text(city.column("name")) == "old")
        #expect(try after.fetchIDs(RecordQuery(entity: city.id)) == [id])
    }

    @Test func `A body that throws changes nothing`() throws {
        struct Stop: Error {}
        let store = try Cities.store()
        let city = try store.schema.require("City")
        let number = try store.snapshot().number
        #expect(throws: Stop.self) {
            try store.write { transaction in
                try transaction.insert(city.id, store.allocateObjectIDs(1), [])
                throw Stop()
            }
        }
        #expect(try store.snapshot().number == number)
        #expect(try store.snapshot().count(store.query("City")) == 0)
        #expect(try store.write { _ in 7 }.commit == nil)
    }

    @Test func `Values are checked against their columns`() throws {
        let store = try Cities.store()
        let city = try store.schema.require("City")
        let id = try store.insert("City")
        func update(_ name: String, _ value: StoredValue) -> RecordError? {
            do {
                _ = try store.write { try $0.update(city.id, id, city.values([(name, value)])) }
                return nil
            } catch {
                return error as? RecordError
            }
        }
        guard case .wrongType? = update("name", .int(1)) else { return #expect(Bool(false)) }
        guard case .missingValue? = update("name", .null) else { return #expect(Bool(false)) }
        guard case .wrongType? = update("country", .int(1)) else { return #expect(Bool(false)) }
        #expect(update("country", .null) == nil)
        #expect(throws: RecordError.self) {
            try store.write { try $0.insert(city.id, id, []) }
        }
        #expect(throws: RecordError.self) {
            try store.write { try $0.delete(city.id, ObjectID(77_777)) }
        }
    }

    @Test func `To-one, its inverse, many-to-many and ordered links`() throws {
        let store = try Cities.store()
        let schema = try store.schema
        let city = try schema.require("City")
        let country = try schema.require("Country")
        let tag = try schema.require("Tag")
        let home = try store.insert("Country", [("name", .text("CH"))])
        var ids: [ObjectID] = []
        for name in ["a", "b", "c", "d"] {
            ids.append(
                try store.insert("City", [("name", .text(name)), ("country", .reference(home))])
            )
        }
        let cities = try #require(country.relationship(named: "cities"))
        let tags = try #require(city.relationship(named: "tags"))
        let tagged = try #require(tag.relationship(named: "cities"))
        let stops = try #require(city.relationship(named: "stops"))
        var snapshot = try store.snapshot()
        #expect(try snapshot.relatedIDs(country, cities, of: home) == ids)
        #expect(try snapshot.relatedCount(country, cities, of: home) == 4)
        #expect(try snapshot.isRelated(country, cities, of: home, to: ids[2]))
        #expect(try !snapshot.isRelated(country, cities, of: home, to: home))

        let red = try store.insert("Tag", [("name", .text("red"))])
        let blue = try store.insert("Tag", [("name", .text("blue"))])
        _ = try store.write { transaction in
            try transaction.addLink(city, tags, from: ids[0], to: blue)
            try transaction.addLink(city, tags, from: ids[0], to: red)
            try transaction.addLink(city, tags, from: ids[0], to: red)
            try transaction.addLink(tag, tagged, from: red, to: ids[1])
            try transaction.setOrder(city, stops, of: ids[0], [ids[3], ids[1], ids[2]])
        }
        snapshot = try store.snapshot()
        #expect(try snapshot.relatedIDs(city, tags, of: ids[0]) == [red, blue].sorted())
        #expect(try snapshot.relatedIDs(tag, tagged, of: red) == [ids[0], ids[1]])
        #expect(try snapshot.isRelated(city, tags, of: ids[1], to: red))
        #expect(try snapshot.relatedIDs(city, stops, of: ids[0]) == [ids[3], ids[1], ids[2]])
        #expect(try snapshot.isRelated(city, stops, of: ids[0], to: ids[1]))

        _ = try store.write { transaction in
            try transaction.setOrder(city, stops, of: ids[0], [ids[1], ids[2], ids[3]])
            try transaction.removeLink(tag, tagged, from: red, to: ids[0])
            try transaction.addLink(city, stops, from: ids[1], to: ids[1])
        }
        snapshot = try store.snapshot()
        #expect(try snapshot.relatedIDs(city, stops, of: ids[0]) == [ids[1], ids[2], ids[3]])
        #expect(try snapshot.relatedIDs(city, tags, of: ids[0]) == [blue])

        _ = try store.write { try $0.delete(city.id, ids[1]) }
        snapshot = try store.snapshot()
        #expect(try snapshot.relatedIDs(tag, tagged, of: red) == [])
        #expect(try snapshot.relatedIDs(city, stops, of: ids[0]) == [ids[2], ids[3]])
        #expect(try snapshot.relatedIDs(city, stops, of: ids[1]) == [])
        #expect(try snapshot.relatedIDs(country, cities, of: home) == [ids[0], ids[2], ids[3]])
    }

    @Test func `Large texts are read through the snapshot and never cached`() throws {
        let store = try Cities.store()
        let city = try store.schema.require("City")
        let long = String(repeating: "ö", count: 5_000)
        let id = try store.insert("City", [("name", .text(long)), ("note", .text(long))])
        let snapshot = try store.snapshot()
        let row = try #require(try snapshot.row(city.id, id))
        let note = city.column("note")
        #expect(row.isOutside(note))
        #expect(throws: RecordError.self) { try row.text(note) }
        #expect(try snapshot.value(of: row, note) == .text(long))
        #expect(store.rowCache.statistics.bytes < 2_000)
        var query = try store.query("City")
        query.predicate = .compare(PropertyPath("name"), .equal, .text(long))
        #expect(try snapshot.fetchIDs(query) == [id])
        query.predicate = .text(PropertyPath("note"), .hasSuffix, "öö", ignoring: [])
        #expect(try snapshot.fetchIDs(query) == [id])
    }

    @Test func `A store reopens with its rows and indexes`() throws {
        let directory = MemoryDirectory()
        let location = StoreLocation.directory(directory, name: "cities")
        var ids: [ObjectID] = []
        do {
            let store = try RecordStore.open(location, schema: Cities.schema)
            for name in ["b", "a", "c"] {
                ids.append(try store.insert("City", [("name", .text(name))]))
            }
            try store.close()
        }
        let store = try RecordStore.open(location, schema: Cities.schema)
        #expect(try store.snapshot().number.rawValue == 4)
        var query = try store.query("City")
        query.sort = [SortTerm("name")]
        #expect(try store.snapshot().fetchIDs(query) == [ids[1], ids[0], ids[2]])
        try store.close()
    }
}
