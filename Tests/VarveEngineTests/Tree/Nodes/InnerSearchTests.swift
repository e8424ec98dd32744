// Searching an inner node: the guess of a place, and the counting from the nearer end.

import Testing
import VarveBase
import VarveFormat
import VarveTesting

@testable import VarveEngine

@Suite("Inner nodes are searched", .verified) struct InnerSearchTests {
    enum Spread: CaseIterable {
        /// As IDs that were given out in a row: every leaf has about as many.
        case even
        /// Nothing in common.
        case random
        /// Half of them close together, one far away.
        case lopsided
        /// Short keys whose heads are equal.
        case equalHeads
    }

    private static func separators(
        _ count: Int,
        _ spread: Spread,
        _ random: inout SeededRandom
    ) -> [[UInt8]] {
        func key(_ value: UInt64) -> [UInt8] {
            unsafe withUnsafeBytes(of: value.bigEndian) { unsafe Array($0) }
        }
        var keys: Set<[UInt8]> = []
        var next: UInt64 = 1_000
        while keys.count < count {
            switch spread {
            case .even:
                keys.insert(key(next))
                next += UInt64.random(in: 50...70, using: &random)
            case .random: keys.insert(key(.random(in: 1...(.max), using: &random)))
            case .lopsided:
                keys.insert(key(keys.isEmpty ? .max : .random(in: 1...4_000, using: &random)))
            case .equalHeads:
                let length = Int.random(in: 1...8, using: &random)
                keys.insert([7] + [UInt8](repeating: 0, count: length - 1))
                keys.insert(key(.random(in: 1...9_000, using: &random)))
            }
        }
        return [[]] + keys.sorted { $0.lexicographicallyPrecedes($1) }
    }

    private static func node(_ keys: [[UInt8]], _ rows: [UInt64]) -> TreeNode {
        let node = TreeNode(stamp: 1, level: 1)
        for (index, key) in keys.enumerated() {
            node.insert(key, [], at: index)
            let address = PageAddress(
                offset: FileOffset(UInt64(8192 + 8 * index)),
                storedLength: 1,
                payloadHash: 1
            )
            let child = ChildPointer(node: nil, address: address, rows: rows[index])
            node.insertChild(child, at: index)
        }
        // As of a node that comes from the file.
        unsafe node.words.lookAtSeparators()
        return node
    }

    @Test(
        "The child of an object is the last one that begins at or below it",
        arguments: Spread.allCases
    )
    func children(spread: Spread) {
        var random = SeededRandom(seed: 20_261_128)
        for count in [0, 1, 6, 7, 8, 9, 40, 250] {
            let keys = Self.separators(count, spread, &random)
            let node = Self.node(keys, keys.map { _ in 1 })
            let heads = keys.map { key in
                (key + [UInt8](repeating: 0, count: 8)).prefix(8).reduce(UInt64(0)) {
                    $0 << 8 | UInt64($1)
                }
            }
            var wanted: [UInt64] = [1, .max, .max - 1]
            for head in heads {
                wanted += [head, head &+ 1, head == 0 ? 1 : head - 1]
                wanted.append(.random(in: 1...(.max), using: &random))
            }
            for object in wanted {
                let expected = heads.lastIndex { $0 <= object } ?? 0
                let found = node.childIndex(object: ObjectID(object))
                #expect(found == expected, "\(count) of \(spread), \(object)")
            }
        }
    }

    @Test("Entries in front of a child are counted from either end") func rowsBefore() {
        var random = SeededRandom(seed: 7)
        for count in [1, 2, 3, 9, 200] {
            let keys = Self.separators(count - 1, .random, &random)
            let rows = keys.map { _ in UInt64.random(in: 0...9_000, using: &random) }
            let node = Self.node(keys, rows)
            let all = rows.reduce(0, +)
            for index in 0...keys.count {
                let view = unsafe node.view
                let expected = rows[..<index].reduce(0, +)
                #expect(unsafe view.rows(before: index) == expected)
                #expect(unsafe view.rows(before: index, of: all) == expected)
            }
        }
    }
}
