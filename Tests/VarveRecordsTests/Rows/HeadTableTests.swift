// That the row cache's table of heads says what a dictionary would say, and gives memory back.
import Testing
import VarveBase
import VarveTesting

@testable import VarveRecords

/// Links to nothing: the table looks at no row.
@Suite("Table of heads", .verified) struct HeadTableTests {
    @Test("Random changes leave the same heads as in a dictionary", arguments: 1...8)
    func model(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var table = HeadTable()
        var model: [UInt64: RowLink] = [:]
        // Few IDs, so that most entries have neighbours; some far apart, some of one lane.
        let spread = UInt64(1) << UInt64.random(in: 0..<40, using: &random)
        for step in 0..<20_000 {
            let id = UInt64.random(in: 0..<300, using: &random) * spread
            let row = RowLink(bits: UInt.random(in: 1..<1_000, using: &random))
            // Grows and shrinks in turn.
            let outOfTen = step / 4_000 % 2 == 0 ? 3 : 6
            if Int.random(in: 0..<10, using: &random) < outOfTen {
                table.replaceNewest(.none, of: ObjectID(id))
                model[id] = nil
            } else if Bool.random(using: &random) {
                table.replaceNewest(row, of: ObjectID(id))
                if model[id] != nil { model[id] = row }
            } else {
                let head = table.newest(of: ObjectID(id))
                #expect(head.row == model[id] ?? .none, "seed \(seed)")
                table.setNewest(row, of: ObjectID(id), entry: head.entry)
                model[id] = row
            }
            #expect(table[ObjectID(id)] == model[id] ?? .none, "seed \(seed)")
            #expect(table.count == model.count, "seed \(seed)")
        }
        for id in UInt64(0)..<300 {
            #expect(table[ObjectID(id * spread)] == model[id * spread] ?? .none, "seed \(seed)")
        }
        var all: [UInt] = []
        for entry in 0..<table.capacity where !table.row(at: entry).isNone {
            all.append(table.row(at: entry).bits)
        }
        #expect(all.sorted() == model.values.map(\.bits).sorted(), "seed \(seed)")
    }

    /// Without mixing, all of these but the first would begin in one lane of the four, and many at
    /// one entry.
    @Test("IDs of any distance are found in few steps", arguments: [1, 4, 16, 1 << 20])
    func lanes(_ stride: UInt64) {
        var table = HeadTable()
        for number in UInt64(1)...1_000 {
            let head = table.newest(of: ObjectID(number * stride))
            table.setNewest(
                RowLink(bits: UInt(number)),
                of: ObjectID(number * stride),
                entry: head.entry
            )
        }
        #expect(table.capacity == 2_048 && table.longestWay < 40, "\(table.longestWay)")
        for number in UInt64(1)...1_000 {
            #expect(table[ObjectID(number * stride)].bits == UInt(number))
        }
    }

    @Test("The table shrinks with what it holds") func shrinks() {
        var table = HeadTable()
        for id in UInt64(1)...40_000 {
            let head = table.newest(of: ObjectID(id))
            table.setNewest(RowLink(bits: 1), of: ObjectID(id), entry: head.entry)
        }
        #expect(table.capacity >= 40_000 && table.capacity <= 65_536 * 2)
        for id in UInt64(1)...40_000 { table.replaceNewest(.none, of: ObjectID(id)) }
        #expect(table.count == 0)
        #expect(table.capacity <= 64)
    }

    @Test("Object 0 and the last object are objects like others") func extremes() {
        var table = HeadTable()
        #expect(table[ObjectID(0)].isNone)
        table.replaceNewest(.none, of: ObjectID(0))
        for id in [UInt64(0), .max] {
            let head = table.newest(of: ObjectID(id))
            table.setNewest(RowLink(bits: 7), of: ObjectID(id), entry: head.entry)
        }
        #expect(table[ObjectID(0)].bits == 7 && table[ObjectID(.max)].bits == 7)
        #expect(table.count == 2)
    }
}
