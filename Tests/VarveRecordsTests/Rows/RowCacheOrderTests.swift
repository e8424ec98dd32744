// The row cache keeps the exact order of use, though rows that were found wait to be moved.

import Testing
import VarveBase
import VarveEngine
import VarveFormat
import VarveTesting

@testable import VarveRecords

@Suite(.verified) struct RowCacheOrderTests {
    /// Rows without pins as a list, the warmest first; and how often each row is pinned.
    private struct Model {
        var order: [Int] = []
        var pins: [Int: Int] = [:]

        mutating func warm(_ row: Int) {
            guard let place = order.firstIndex(of: row) else { return }
            order.remove(at: place)
            order.insert(row, at: 0)
        }

        mutating func evict(keeping most: Int) {
            while order.count > most { order.removeLast() }
        }
    }

    @Test("What goes is what was used least lately, whatever was found since", arguments: 1...12)
    func order(_ seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let (all, most) = (120, 70)
        let rows = try Self.rows(all)
        let cost = rows[0].cost
        #expect(rows.allSatisfy { $0.cost == cost })
        let commit = rows[0].version.rawValue
        var state = RowCacheState(budget: most * cost, published: rows[0].version)
        var model = Model()
        for step in 0..<4_000 {
            let number = Int(random.next() % UInt64(all))
            let row = RowLink(rows[number])
            let isHere = model.order.contains(number) || model.pins[number] != nil
            switch random.next() % 16 {
            case 0..<10:
                let found = state.find(rows[number].id, at: commit, pin: false)
                #expect(found == (isHere ? row : .none))
                model.warm(number)
            case 10:
                let found = state.find(rows[number].id, at: commit, pin: true)
                #expect(found == (isHere ? row : .none))
                if isHere {
                    model.order.removeAll { $0 == number }
                    model.pins[number, default: 0] += 1
                }
            case 11, 12:
                guard let pins = model.pins[number] else { continue }
                state.unpin(row)
                model.pins[number] = pins > 1 ? pins - 1 : nil
                if pins == 1 { model.order.insert(number, at: 0) }
                model.evict(keeping: most)
            case 13: _ = state.warm(rows[number].id, at: commit).map { _ in model.warm(number) }
            case 14 where random.next() % 64 == 0:
                state.trim()
                model.order = []
            default:
                if isHere { continue }
                _ = state.insert(row, readAt: commit, pin: false)
                model.order.insert(number, at: 0)
                model.evict(keeping: most)
            }
            if step % 50 == 0 {
                for number in 0..<all {
                    let isHere = model.order.contains(number) || model.pins[number] != nil
                    #expect(state.contains(rows[number].id) == isHere, "seed \(seed) step \(step)")
                }
                state.check()
            }
        }
        for (number, pins) in model.pins {
            for _ in 0..<pins { state.unpin(RowLink(rows[number])) }
        }
    }

    /// Rows of one size.
    private static func rows(_ count: Int) throws -> [CachedRow] {
        let store = try Cities.store(unreferencedRowBytes: 1 << 20)
        let city = try store.schema.require("City")
        let first = store.allocateObjectIDs(count).rawValue
        _ = try store.write { transaction in
            for number in 0..<count {
                let values = city.values([("name", .text("n"))])
                try transaction.insert(city.id, ObjectID(first + UInt64(number)), values)
            }
        }
        let snapshot = try store.snapshot()
        return try (0..<count).map { number in
            try #require(try snapshot.row(city.id, ObjectID(first + UInt64(number)))).copied()
        }
    }
}
