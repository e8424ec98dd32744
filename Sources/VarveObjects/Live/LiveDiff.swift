// What a step changes in a list, as positions: pure arithmetic over the objects that it touched.
//
// Invariants
// - Taking out `deleted` and the old places of `moved`, counted in the old list, and putting in
//   `inserted` and the new places of `moved`, counted in the new one, makes the one of the other.
// - As few objects move as can be: the others keep their order among each other.

import VarveBase
import VarveRecords

/// Where one object was in the shown list and where it is.
struct LiveEntry {
    let id: ObjectID
    /// Nil: it was not in the list.
    var oldKey: KeysetPosition?
    /// Nil: it is not in the list any more.
    var newKey: KeysetPosition?
    /// Positions in the shown list; nil: outside of it.
    var old: Int?
    var new: Int?
    /// Whether a value that it shows is another one.
    var isChanged = false

    var changesPlace: Bool { !isSamePlace(oldKey, newKey) }
    /// Whether the first sort value, which sections are made by, is another one.
    var changesSection: Bool {
        guard let old = oldKey?.values.first, let new = newKey?.values.first else { return false }
        return StoredOrder.precedes(old, new) || StoredOrder.precedes(new, old)
    }
}

struct LiveDiff {
    var deleted: [(id: ObjectID, offset: Int)] = []
    var inserted: [(id: ObjectID, offset: Int)] = []
    var moved: [(id: ObjectID, from: Int, to: Int)] = []
    var updated: [(id: ObjectID, offset: Int)] = []

    var isEmpty: Bool {
        deleted.isEmpty && inserted.isEmpty && moved.isEmpty && updated.isEmpty
    }

    init() {}

    /// - Parameter hasSections: an object in another section is one that moved, though it has the
    ///   same neighbours.
    /// - Complexity: O(n log n), n the objects touched.
    init(_ entries: [LiveEntry], hasSections: Bool) {
        // Objects whose place in the order is the same never move. Among all others, those stay
        // whose number of such neighbours before them is the same, as far as they do not overtake
        // each other.
        var loose: (old: [Int], new: [Int]) = ([], [])
        for entry in entries where entry.old == nil || entry.new == nil || entry.changesPlace {
            if let old = entry.old { loose.old.append(old) }
            if let new = entry.new { loose.new.append(new) }
        }
        loose.old.sort()
        loose.new.sort()
        var staying: [(index: Int, old: Int, new: Int)] = []
        for (index, entry) in entries.enumerated() {
            guard let old = entry.old, let new = entry.new, entry.changesPlace else { continue }
            if hasSections, entry.changesSection { continue }
            let before = old - loose.old.firstPlace { $0 >= old }
            if before == new - loose.new.firstPlace({ $0 >= new }) {
                staying.append((index, old, new))
            }
        }
        staying.sort { $0.old < $1.old }
        let kept = Set(Self.longestRise(staying.map(\.new)).map { staying[$0].index })
        for (index, entry) in entries.enumerated() {
            switch (entry.old, entry.new) {
            case (nil, nil): break
            case (let old?, nil): deleted.append((entry.id, old))
            case (nil, let new?): inserted.append((entry.id, new))
            case (let old?, let new?):
                if entry.changesPlace, !kept.contains(index) {
                    moved.append((entry.id, old, new))
                } else if entry.isChanged {
                    updated.append((entry.id, new))
                }
            }
        }
        deleted.sort { $0.offset < $1.offset }
        inserted.sort { $0.offset < $1.offset }
        moved.sort { $0.to < $1.to }
        updated.sort { $0.offset < $1.offset }
    }

    /// Places of a longest rising subsequence, ascending: patience sorting.
    private static func longestRise(_ values: [Int]) -> [Int] {
        var tails: [Int] = []
        var before = [Int?](repeating: nil, count: values.count)
        for (place, value) in values.enumerated() {
            let pile = tails.firstPlace { values[$0] >= value }
            before[place] = pile > 0 ? tails[pile - 1] : nil
            if pile == tails.count { tails.append(place) } else { tails[pile] = place }
        }
        var rise: [Int] = []
        var next = tails.last
        while let place = next {
            rise.append(place)
            next = before[place]
        }
        return rise.reversed()
    }
}

/// Whether both are the same place, or none.
func isSamePlace(_ left: KeysetPosition?, _ right: KeysetPosition?) -> Bool {
    guard let left, let right else { return left == nil && right == nil }
    return left.isSame(as: right)
}
