// That the referee of the other tests sees what it is there for.

import StoreReferee
import Testing
import VarveBase
import VarveEngine
import VarveFormat

@testable import VarveRecords

@Suite(.damagesStores("that is what they are made for")) struct RefereeTests {
    /// What a referee says at the end of `body`.
    private func faults(_ body: () throws -> Void) throws -> [String] {
        let referee = StoreReferee(.rows)
        try OpeningWitnesses.$current.withValue(referee) { try body() }
        return referee.end()
    }

    private func makeCity(_ country: ObjectID?) throws -> RecordStore {
        let store = try Cities.store()
        let city = try store.schema.require("City")
        let id = store.allocateObjectIDs(1)
        let value = country.map { StoredValue.reference($0) } ?? .null
        _ = try store.write {
            try $0.insert(city.id, id, city.values([("name", .text("a")), ("country", value)]))
        }
        return store
    }

    @Test func `A store that is sound is sound, open or closed or let go`() throws {
        #expect(try faults { _ = try makeCity(nil) } == [])
        #expect(try faults { try makeCity(nil).close() } == [])
        var kept: RecordStore?
        #expect(try faults { kept = try makeCity(nil) } == [])
        try kept?.close()
    }

    @Test func `A reference to nothing is told after the store is gone`() throws {
        let told = try faults { _ = try makeCity(ObjectID(4711)) }
        #expect(told.count == 1)
        #expect(told.first?.contains("City.country: once it leads to an object") == true, "\(told)")
        #expect(told.first?.contains("Country:4711") == true)
    }

    @Test func `Of very many stores the first and the last are looked at`() throws {
        let told = try faults {
            for number in 0..<40 {
                _ = try makeCity([0, 20, 39].contains(number) ? ObjectID(4711) : nil)
            }
        }
        #expect(told.count == 2)
    }
}
