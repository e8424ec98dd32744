// What the row cache says of itself is checked, and a lie ends the process.

import Testing
import VarveBase
import VarveEngine

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
            state.register(ObjectID(5))
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

    @Test("A registered object that the table does not have is found") func noHead() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            var state = RowCacheState(budget: 0, published: CommitNumber(1))
            state.register(ObjectID(5))
            state.check()
            state.statistics.registeredObjects += 1
            state.check()
        }
        #expect(Self.says(result, "a registered object has a head"))
    }

    /// `RowCacheSlots.foreseeRow` looks at the reference where it stands.
    @Test("A slot has its row in front, one word that is nil or a reference") func rowInFront() {
        #expect(MemoryLayout<RowCacheSlot>.offset(of: \.row) == 0)
        #expect(MemoryLayout<CachedRow?>.size == MemoryLayout<UInt>.size)
    }

    @Test("Memory may be asked for that is not there") func nothingToForesee() {
        var state = RowCacheState(budget: 1 << 20, published: CommitNumber(1))
        state.foresee(ObjectID(.max))
        state.register(ObjectID(5))
        for id in [0, 5, UInt64.max] { state.foresee(ObjectID(id)) }
        #expect(state.references(ObjectID(5)) == 1)
        var slots = RowCacheSlots()
        for index in [-1, 0, 1, Int.max] {
            slots.foresee(index)
            slots.foreseeRow(index)
        }
        slots.reserve(4)
        slots.foreseeRow(0)
        #expect(slots.count == 0)
    }
}
