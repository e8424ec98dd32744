// The list of an edited relationship: against an array, and how deep it gets.

import Testing
import VarveBase
import VarveTesting

@testable import VarveObjects

@Suite(.verified) struct MemberOrderTests {
    @Test func `Every step agrees with an array`() {
        for seed in UInt64(1)...20 {
            var random = SeededRandom(seed: seed)
            let base = (0..<UInt64.random(in: 0...30, using: &random)).map { ObjectID($0 * 3) }
            var model = base
            if seed % 3 == 0 { model.shuffle(using: &random) }
            var order = MemberOrder(model, over: base)
            for step in 0..<600 {
                let id = ObjectID(UInt64.random(in: 0..<100, using: &random))
                order.remove(id)
                model.removeAll { $0 == id }
                if Bool.random(using: &random) {
                    let index = Int.random(in: 0...model.count, using: &random)
                    order.insert(id, at: index)
                    model.insert(id, at: index)
                }
                #expect(order.ids == model, "seed \(seed), step \(step)")
                #expect(order.count == model.count && order.isBase == (model == base))
                let other = ObjectID(UInt64.random(in: 0..<100, using: &random))
                #expect(order.index(of: other) == model.firstIndex(of: other))
                #expect(order.contains(other) == model.contains(other))
                let place = Int.random(in: -1...model.count, using: &random)
                #expect(order[place] == (model.indices.contains(place) ? model[place] : nil))
            }
            // Back to what it was.
            for id in order.ids { order.remove(id) }
            #expect(order.count == 0 && order.isBase == base.isEmpty)
            for (index, id) in base.enumerated() { order.insert(id, at: index) }
            #expect(order.isBase)
        }
    }

    @Test(arguments: [4_000, 16_000])
    func `It stays flat, in whatever order it is filled`(_ count: Int) {
        let ids = (0..<count).map { ObjectID(UInt64($0) + 1) }
        var front = MemberOrder([], over: [])
        for id in ids { front.insert(id, at: 0) }
        let back = MemberOrder(ids, over: ids)
        let bits = Int.bitWidth - count.leadingZeroBitCount
        #expect(front.depth <= 4 * bits && back.depth <= 4 * bits)
        #expect(front.ids == ids.reversed() && back.ids == ids)
    }
}
