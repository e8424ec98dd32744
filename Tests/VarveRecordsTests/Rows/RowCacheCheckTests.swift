// What the row cache says of itself is checked, and a lie ends the process.

import Testing
import VarveBase
import VarveEngine
import VarveFormat
import VarveTesting

@testable import VarveRecords

@Suite(.verified) struct RowCacheCheckTests {
    private static func says(_ result: ExitTest.Result?, _ message: String) -> Bool {
        String(decoding: result?.standardErrorContent ?? [], as: UTF8.self).contains(message)
    }

    @Test("A row cache that counts a row too many is found") func aRowTooMany() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            var state = RowCacheState(budget: 1 << 20, published: CommitNumber(1))
            state.checkIfDue()
            state.statistics.rows += 1
            state.checkIfDue()
        }
        #expect(Self.says(result, "rows and their bytes are counted"))
    }

    @Test("A row cache beyond its budget is found") func beyondTheBudget() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            var state = RowCacheState(budget: 0, published: CommitNumber(1))
            state.check()
            state.budget = -1
            state.check()
        }
        #expect(Self.says(result, "rows without pins fit the budget"))
    }

    /// Breaks something of a row that is in a cache without pins, and has the cache look.
    private static func lookAfter(_ change: (RowLink) -> Void) throws {
        let store = try Cities.store(unreferencedRowBytes: 1 << 20)
        let city = try store.schema.require("City")
        let id = store.allocateObjectIDs(1)
        _ = try store.write { try $0.insert(city.id, id, city.values([("name", .text("n"))])) }
        let row = try #require(try store.snapshot().row(city.id, id)).copied()
        var state = RowCacheState(budget: 1 << 20, published: CommitNumber(1))
        _ = state.insert(RowLink(row), readAt: 1, pin: false)
        state.check()
        change(RowLink(row))
        state.check()
    }

    @Test("A pin that nobody counted is found") func aPinTooMany() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) { try Self.lookAfter { $0.pins += 1 } }
        #expect(Self.says(result, "rows and their bytes are counted"))
    }

    @Test("Versions out of order are found") func versionsInACircle() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) { try Self.lookAfter { $0.older = $0 } }
        #expect(Self.says(result, "versions of an object follow each other"))
    }

    @Test("A row that is in no cache, but in its table, is found") func notCached() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) { try Self.lookAfter { $0.pins = RowLink.notCached } }
        #expect(Self.says(result, "a row of the table is in the cache"))
    }

    @Test("An order of use with a wrong end is found") func orderOfUse() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) { try Self.lookAfter { $0.warmer = $0 } }
        #expect(Self.says(result, "rows without pins are in the list of use once"))
    }

    @Test("A row that is in a cache enters no other") func twoCaches() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            try Self.lookAfter { row in
                var other = RowCacheState(budget: 1 << 20, published: CommitNumber(1))
                _ = other.insert(row, readAt: 1, pin: false)
            }
        }
        #expect(Self.says(result, "a row is in one cache once"))
    }

    @Test("A link that leads nowhere is not followed") func nowhere() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) { _ = RowLink.none.pins }
        #expect(Self.says(result, "a link that leads nowhere was followed"))
    }

    @Test("Memory may be asked for that is not there") func nothingToForesee() {
        var state = RowCacheState(budget: 1 << 20, published: CommitNumber(1))
        state.foresee(ObjectID(.max))
        state.reserve(5)
        for id in [0, 5, UInt64.max] { state.foresee(ObjectID(id)) }
        RowLink.none.foresee()
        #expect(RowLink.none.counted == nil)
        state.check()
    }
}

extension CachedRow {
    /// The same row in memory of its own, which is in no cache.
    func copied() throws -> CachedRow {
        try withRow { _, bytes throws(FormatError) in
            try CachedRow(entity: entity, id: id, version: version, checking: bytes)
        }
    }
}
