// Packed leaves whose IDs have no gap, and those that have one: every way to find a row in them.

import Testing
import VarveBase
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Rows of leaves with and without gaps", .verified) struct DenseLeafTests {
    /// What every lookup should find: the bytes of each row.
    private func check(_ engine: Engine, _ model: [UInt64: [UInt8]], _ last: UInt64) throws {
        let snapshot = engine.snapshot()
        #expect(try Set(snapshot.contents().keys) == Set(model.keys))
        let ids = (0...last + 3).map { ObjectID($0) } + [ObjectID(.max)]
        var alone: [UInt64: [UInt8]] = [:]
        for id in ids { alone[id.rawValue] = try snapshot.row(TestDelegate.rows, id)?.bytes }
        #expect(alone == model)
        // Lists: all, few, and few that come after what a leaf has.
        for step in [1, 7, 50] {
            let list = stride(from: 0, to: ids.count, by: step).map { ids[$0] }
            var found: [UInt64: [UInt8]] = [:]
            try snapshot.withRows(TestDelegate.rows, list) { place, _, bytes in
                found[list[place].rawValue] = bytes.indices.map { bytes[$0] }
                return true
            }
            let listed = Set(list.map(\.rawValue))
            #expect(found == model.filter { listed.contains($0.key) })
        }
    }

    @Test("Rows are found, or not, wherever the gap is", arguments: [UInt64(0), 1, 2, 3, 4])
    func gaps(_ kind: UInt64) throws {
        let directory = MemoryDirectory()
        var engine = try PackedStoreTests.open(directory)
        let last: UInt64 = 1_200
        let isThere: (UInt64) -> Bool = { id in
            switch kind {
            case 0: true
            case 1: id > 100
            case 2: id % 150 != 0
            case 3: id < 500 || id > 900
            default: id % 2 == 0
            }
        }
        var model: [UInt64: [UInt8]] = [:]
        for id in 1...last where isThere(id) { model[id] = row(Int64(id), "row \(id)") }
        _ = try engine.write { transaction in
            for (id, row) in model.sorted(by: { $0.key < $1.key }) {
                try transaction.insert(TestDelegate.entity, ObjectID(id), row: row)
            }
        }
        _ = try engine.compact()
        try check(engine, model, last)
        // On top of the packed leaves: one goes at the front, one in the middle, others come.
        for (round, gone) in [[UInt64](1...3), [600, 601], [last, last - 1]].enumerated() {
            _ = try engine.write { transaction in
                for id in gone where model.removeValue(forKey: id) != nil {
                    try transaction.delete(TestDelegate.entity, ObjectID(id))
                }
                let id = 150 * UInt64(round + 1)
                if model[id] == nil {
                    let back = row(Int64(id), "back")
                    try transaction.insert(TestDelegate.entity, ObjectID(id), row: back)
                    model[id] = back
                }
            }
            try check(engine, model, last)
            try engine.close()
            engine = try PackedStoreTests.open(directory)
            try check(engine, model, last)
        }
        _ = try engine.compact()
        try check(engine, model, last)
        try engine.close()
    }
}
