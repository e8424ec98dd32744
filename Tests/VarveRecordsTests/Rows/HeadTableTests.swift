// That the row cache's table of heads says what a dictionary would say, and gives memory back.
import Testing
import VarveBase
import VarveTesting

@testable import VarveRecords

@Suite("Table of heads", .verified) struct HeadTableTests {
    @Test("Random changes leave the same heads as in a dictionary", arguments: 1...8)
    func model(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var table = HeadTable()
        var model: [UInt64: RowCacheHead] = [:]
        // Few IDs, so that most entries have neighbours; some far apart.
        let spread = UInt64(1) << UInt64.random(in: 0..<40, using: &random)
        for _ in 0..<20_000 {
            let id = UInt64.random(in: 0..<300, using: &random) * spread
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                table.update(ObjectID(id)) { $0 = RowCacheHead() }
                model[id] = nil
            case 1:
                let slot = Int32.random(in: 0..<1_000, using: &random)
                if Bool.random(using: &random) {
                    table.update(ObjectID(id)) { $0.newest = slot }
                } else {
                    let head = table.newest(of: ObjectID(id))
                    #expect(head.row == model[id]?.newest ?? -1, "seed \(seed)")
                    table.setNewest(slot, of: ObjectID(id), entry: head.entry)
                }
                model[id, default: RowCacheHead()].newest = slot
            default:
                table.update(ObjectID(id)) { $0.references += 1 }
                model[id, default: RowCacheHead()].references += 1
            }
            #expect(table[ObjectID(id)] == model[id] ?? RowCacheHead(), "seed \(seed)")
            #expect(table.count == model.count, "seed \(seed)")
        }
        for id in UInt64(0)..<300 {
            #expect(table[ObjectID(id * spread)] == model[id * spread] ?? RowCacheHead())
        }
    }

    @Test("The table shrinks with what it holds") func shrinks() {
        var table = HeadTable()
        for id in UInt64(1)...40_000 { table.update(ObjectID(id)) { $0.references = 1 } }
        #expect(table.capacity >= 40_000 && table.capacity <= 65_536 * 2)
        for id in UInt64(1)...40_000 { table.update(ObjectID(id)) { $0.references = 0 } }
        #expect(table.count == 0)
        #expect(table.capacity <= 64)
    }

    @Test("Object 0 and the last object are objects like others") func extremes() {
        var table = HeadTable()
        #expect(table[ObjectID(0)].isEmpty)
        for id in [UInt64(0), .max] { table.update(ObjectID(id)) { $0.newest = 7 } }
        #expect(table[ObjectID(0)].newest == 7 && table[ObjectID(.max)].newest == 7)
        #expect(table.count == 2)
    }
}
