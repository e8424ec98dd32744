// Keys of indexes: their order, their length, where texts are cut; positions of ordered members.

import Testing
import VarveBase
import VarveTesting

@testable import VarveRecords

@Suite(.verified) struct IndexKeysTests {
    private func key(_ value: StoredValue, _ term: RecordIndex.Term) -> ([UInt8], Bool) {
        var key: [UInt8] = [7]
        let isCut = IndexKeys.append(value, term, to: &key)
        return (key, isCut)
    }

    @Test func `Keys order as values do, cut or not, in both directions`() {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("IndexKeysTests seed \(seed)")
        var random = SeededRandom(seed: seed)
        for limit in [16, 17, 18, 40, 515] {
            for isDescending in [false, true] {
                let term = RecordIndex.Term(
                    column: ColumnID(0),
                    isDescending: isDescending,
                    byteLimit: limit
                )
                for _ in 0..<3_000 {
                    func text() -> [UInt8] {
                        (0..<Int.random(in: 0..<24, using: &random)).map { _ in
                            [0, 0, 1, 2, 97, 0xFF].randomElement(using: &random) ?? 0
                        }
                    }
                    let shared = text()
                    let left = StoredValue.data(shared + text())
                    let right = StoredValue.data(shared + text())
                    let (a, aCut) = key(left, term)
                    let (b, bCut) = key(right, term)
                    #expect(a.count <= limit + 1 && b.count <= limit + 1)
                    let byKey = IndexKeys.compare(a, b) * (isDescending ? -1 : 1)
                    let byValue = ValueOrder.compare(left, right)
                    if byKey == 0 {
                        #expect(byValue == 0 || (aCut && bCut), "seed \(seed) \(left) \(right)")
                    } else {
                        #expect(
                            (byKey < 0) == (byValue < 0),
                            "seed \(seed) \(left) \(right) \(limit)"
                        )
                    }
                }
            }
        }
    }

    @Test func `The shares of a key never add up to more than a key`() {
        for fixed in 0..<6 {
            for variable in 1..<8 {
                let sizes =
                    [Int?](repeating: 41, count: fixed) + [Int?](repeating: nil, count: variable)
                let limit = IndexKeys.byteLimit(sizes: sizes)
                #expect(fixed * 41 + variable * limit + 8 <= IndexKeys.keyBytesMax)
            }
        }
    }

    @Test func `Positions ascend and as many as possible stay`() {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("LinkPositions seed \(seed)")
        var random = SeededRandom(seed: seed)
        var positions = LinkPositions.assign([Int64?](repeating: nil, count: 20))
        for step in 0..<5_000 {
            var list: [Int64?] = positions
            let from = Int.random(in: 0..<list.count, using: &random)
            let moved = list.remove(at: from)
            let to = Int.random(in: 0...list.count, using: &random)
            list.insert(step % 3 == 0 ? nil : moved, at: to)
            let next = LinkPositions.assign(list)
            #expect(zip(next, next.dropFirst()).allSatisfy { $0 < $1 }, "seed \(seed) step \(step)")
            let changed = zip(list, next).count { $0.0 != $0.1 }
            #expect(changed <= 1 || next == (1...20).map { $0 * LinkPositions.gap }, "seed \(seed)")
            positions = next
        }
        #expect(LinkPositions.assign([]) == [])
        #expect(LinkPositions.assign([Int64.max, Int64.min, 3]).count == 3)
        let extremes = LinkPositions.assign([nil, 1 << 60, nil, -(1 << 60), nil])
        #expect(zip(extremes, extremes.dropFirst()).allSatisfy { $0 < $1 })
    }
}
