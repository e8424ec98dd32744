// Members of ordered lists at their places: against an array, and what it costs.

import Testing
import VarveBase
import VarveTesting

@testable import VarveRecords

@Suite(.verified) struct PlaceLinkTests {
    @Test(arguments: ["ordered", "both"])
    func `Placing agrees with an array`(_ name: String) throws {
        for seed in UInt64(1)...20 {
            var random = SeededRandom(seed: seed)
            let lists = try ListStore(24)
            let relationship = try lists.relationship(name)
            var model: [ObjectID] = []
            // Few places, so that room runs out.
            let places = seed % 2 == 0 ? 2 : 25
            for _ in 0..<12 {
                _ = try lists.store.write { transaction in
                    for _ in 0..<12 {
                        guard let id = lists.members.randomElement(using: &random) else { continue }
                        if Int.random(in: 0..<8, using: &random) == 0 {
                            model.removeAll { $0 == id }
                            try transaction.removeLink(
                                lists.list,
                                relationship,
                                from: lists.owner,
                                to: id
                            )
                            continue
                        }
                        model.removeAll { $0 == id }
                        let place = min(Int.random(in: 0..<places, using: &random), model.count)
                        try transaction.placeLink(
                            lists.list,
                            relationship,
                            of: lists.owner,
                            id,
                            behind: place == 0 ? nil : model[place - 1]
                        )
                        model.insert(id, at: place)
                    }
                }
                #expect(try lists.ids(name) == model, "seed \(seed)")
            }
        }
    }

    /// Behind the first member, again and again: the gap there is used up every twenty times.
    @Test(arguments: [0, 1])
    func `n members at one place cost O(n log n)`(_ place: Int) throws {
        try expectLinear(400, percent: 250) { count in
            let lists = try ListStore(count)
            let relationship = try lists.relationship("ordered")
            var model: [ObjectID] = []
            let entries = try lists.entries { transaction in
                for id in lists.members {
                    let at = min(place, model.count)
                    try transaction.placeLink(
                        lists.list,
                        relationship,
                        of: lists.owner,
                        id,
                        behind: at == 0 ? nil : model[at - 1]
                    )
                    model.insert(id, at: at)
                }
            }
            #expect(entries <= 12 * count)
            #expect(try lists.ids("ordered") == model)
            return entries
        }
    }

    @Test func `A move costs the same in a long list`() throws {
        for count in [100, 200] {
            let lists = try ListStore(count)
            let relationship = try lists.relationship("ordered")
            _ = try lists.store.write {
                try $0.setOrder(lists.list, relationship, of: lists.owner, lists.members)
            }
            var model = lists.members
            let moved = model.remove(at: count - 1)
            model.insert(moved, at: 50)
            let entries = try lists.entries { transaction in
                let previous = model[49]
                try transaction.placeLink(
                    lists.list,
                    relationship,
                    of: lists.owner,
                    moved,
                    behind: previous
                )
            }
            #expect(entries <= 2)
            #expect(try lists.ids("ordered") == model)
        }
    }

    @Test func `Positions at the edge of what fits are numbered anew`() {
        let limit: Int64 = 1 << 60
        #expect(LinkPositions.insert(behind: nil, before: [-limit]) == nil)
        #expect(LinkPositions.insert(behind: limit, before: []) == nil)
        #expect(LinkPositions.insert(behind: .max, before: []) == nil)
        #expect(LinkPositions.insert(behind: .min, before: [.max]) == nil)
        #expect(LinkPositions.insert(behind: nil, before: [nil]) == nil)
        #expect(LinkPositions.insert(behind: 5, before: [nil]) == nil)
        #expect(LinkPositions.isEnough(behind: .min, before: .max, 3))
        let first = LinkPositions.insert(behind: nil, before: [])
        #expect(first?.new == LinkPositions.gap && first?.moved == [])
        let crowded = LinkPositions.insert(behind: 1, before: [2, 3, 100])
        #expect(crowded?.new == 25 && crowded?.moved == [49, 73])
        let last = LinkPositions.insert(behind: 1, before: [2])
        #expect(last?.new == 1 + LinkPositions.gap && last?.moved == [1 + 2 * LinkPositions.gap])
    }

    @Test func `Placing says what cannot be`() throws {
        let lists = try ListStore(2)
        let ordered = try lists.relationship("ordered")
        let far = try lists.relationship("far")
        let (first, second) = (lists.members[0], lists.members[1])
        _ = try lists.store.write { transaction in
            for (relationship, member, previous) in [
                (ordered, first, second), (ordered, first, first), (far, first, nil),
            ] as [(RecordRelationship, ObjectID, ObjectID?)] {
                #expect(throws: RecordError.self) {
                    try transaction.placeLink(
                        lists.list,
                        relationship,
                        of: lists.owner,
                        member,
                        behind: previous
                    )
                }
            }
        }
    }
}
