// Packed leaves whose IDs have no gap, and those that have one: every way to find a row in them.

import Testing
import VarveBase
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Rows of leaves with and without gaps", .verified) struct DenseLeafTests {
    /// What every lookup should find.
    private func check(_ engine: Engine, _ model: [UInt64: String], _ last: UInt64) throws {
        let snapshot = engine.snapshot()
        #expect(try snapshot.contents() == model)
        let ids = (0...last + 3).map { ObjectID($0) } + [ObjectID(.max)]
        var alone: Set<UInt64> = []
        for id in ids where try snapshot.row(TestDelegate.rows, id) != nil {
            alone.insert(id.rawValue)
        }
        #expect(alone == Set(model.keys))
        // Lists: all, few, and few that come after what a leaf has.
        for step in [1, 7, 50] {
            let list = stride(from: 0, to: ids.count, by: step).map { ids[$0] }
            var found: Set<UInt64> = []
            try snapshot.withRows(TestDelegate.rows, list) { place, _, _ in
                found.insert(list[place].rawValue)
                return true
            }
            #expect(found == Set(list.map(\.rawValue)).intersection(model.keys))
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
        var model: [UInt64: String] = [:]
        _ = try engine.write { transaction in
            for id in 1...last where isThere(id) {
                try transaction.insert(
                    TestDelegate.entity,
                    ObjectID(id),
                    row: row(Int64(id), "row \(id)")
                )
            }
        }
        model = try engine.contents()
        #expect(model.count == (1...last).count(where: isThere))
        _ = try engine.compact()
        try check(engine, model, last)
        // On top of the packed leaves: one goes at the front, one in the middle, others come.
        for (round, gone) in [[UInt64](1...3), [600, 601], [last, last - 1]].enumerated() {
            _ = try engine.write { transaction in
                for id in gone where model[id] != nil {
                    try transaction.delete(TestDelegate.entity, ObjectID(id))
                }
                let id = 150 * UInt64(round + 1)
                if model[id] == nil {
                    try transaction.insert(
                        TestDelegate.entity,
                        ObjectID(id),
                        row: row(Int64(id), "back")
                    )
                }
            }
            model = try engine.contents()
            #expect(gone.allSatisfy { model[$0] == nil })
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
