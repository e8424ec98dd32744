// Leaves of layout 1: every row comes back byte for byte, and is found.

import Testing
import VarveBase
import VarveTesting

@testable import VarveFormat

@Suite("Leaves of layout 1") struct LeafRoundTripTests {
    @Test("Random rows come back byte for byte") func randomRowsComeBack() throws {
        var made = 0
        for seed in UInt64(1)...600 {
            var random = SeededRandom(seed: seed)
            let rows = LeafRows.random(
                &random,
                count: random.pick([1, 2, 3, 17, 120, 300]),
                columns: random.pick([0, 1, 2, 7, 19, 60])
            )
            guard let body = LeafEncoder.anyBody(of: rows, symbols: nil) else { continue }
            made += 1
            unsafe try LentLeaf.with(body, count: rows.count) { leaf in
                let found = unsafe LentLeaf.rows(leaf)
                #expect(found == rows.expected, "seed \(seed)")
                unsafe try leaf.check(place: "leaf")
                unsafe try Self.find(unsafe leaf, rows, &random, seed)
            }
        }
        #expect(made > 500)
    }

    private static func find(
        _ leaf: PackedLeaf,
        _ rows: LeafRows,
        _ random: inout SeededRandom,
        _ seed: UInt64
    ) throws {
        var wanted: [UInt64] = [0, 1, .max, .max - 1]
        for object in rows.objects { wanted += [object, object &- 1, object &+ 1] }
        for _ in 0..<20 { wanted.append(random.number()) }
        for object in wanted {
            let place = rows.objects.firstIndex { $0 >= object } ?? rows.count
            let isEqual = place < rows.count && rows.objects[place] == object
            let found = unsafe leaf.index(of: object)
            #expect(found.index == place && found.isEqual == isEqual, "seed \(seed), \(object)")
        }
    }
}
