// Positions of the members of an ordered relationship: numbers with room between them.
//
// Invariants
// - Positions of one owner ascend with the order and are distinct.
// - As many members as possible keep theirs: those of a longest ascending subsequence.

/// Gives positions to members of an ordered relationship.
enum LinkPositions {
    /// Room between neighbours: twenty halvings.
    static let gap: Int64 = 1 << 20
    /// Beyond this all are numbered anew.
    private static let limit: Int64 = 1 << 60

    /// A position after the last one.
    static func behind(_ last: Int64?) -> Int64 {
        (last ?? 0).addingReportingOverflow(gap).partialValue
    }

    /// Whether there is room in front of the `count`th of the entries that follow `low` for those
    /// before it and one more.
    static func isEnough(behind low: Int64?, before high: Int64?, _ count: Int) -> Bool {
        guard let high else { return true }
        // In front of all there is always room.
        guard let low else { return true }
        let (room, isTooMuch) = high.subtractingReportingOverflow(low)
        return isTooMuch || room > Int64(count) * Int64(count)
    }

    /// A position after `low` (nil: in front of all) for a new member, and those of the entries
    /// that follow, so that it has room. Nil: all must be numbered anew.
    ///
    /// - Parameter following: as `entriesMakingRoom` finds them. The last one stays where it is,
    ///   and has no position in the result, if it leaves enough room.
    static func insert(
        behind low: Int64?,
        before following: [Int64?]
    ) -> (new: Int64, moved: [Int64])? {
        let present = following.compactMap(\.self)
        guard present.count == following.count,
            (present + [low ?? 0]).allSatisfy({ $0 >= -limit && $0 <= limit })
        else { return nil }
        guard let low else {
            guard let high = present.first else { return (gap, []) }
            return high - gap < -limit ? nil : (high - gap, [])
        }
        var count = present.count
        var step = gap
        if let high = present.last, isEnough(behind: low, before: high, count) {
            // There are `count - 1` entries and the new one between the two.
            step = (high - low) / Int64(count + 1)
            count -= 1
        }
        guard step > 0, low + step * Int64(count + 1) <= limit else { return nil }
        return (low + step, (0..<count).map { low + step * Int64($0 + 2) })
    }

    /// Positions for members in their new order; `present` holds the position each has now.
    static func assign(_ present: [Int64?]) -> [Int64] {
        var result = kept(present)
        var index = 0
        while index < result.count {
            if result[index] != nil {
                index += 1
                continue
            }
            var end = index
            while end < result.count, result[end] == nil { end += 1 }
            let count = Int64(end - index)
            let low = index > 0 ? result[index - 1] : nil
            let high = end < result.count ? result[end] : nil
            let step: Int64
            let first: Int64
            switch (low, high) {
            case (let low?, let high?):
                step = (high - low) / (count + 1)
                first = low + step
            case (let low?, nil):
                step = gap
                first = low + gap
            case (nil, let high?):
                step = gap
                first = high - gap * count
            case (nil, nil):
                step = gap
                first = gap
            }
            if step == 0 { return renumbered(result.count) }
            for offset in 0..<(end - index) {
                result[index + offset] = first + step * Int64(offset)
            }
            index = end
        }
        let positions = result.compactMap(\.self)
        if positions.contains(where: { $0 > limit || $0 < -limit }) {
            return renumbered(result.count)
        }
        return positions
    }

    private static func renumbered(_ count: Int) -> [Int64] {
        (0..<count).map { (Int64($0) + 1) * gap }
    }

    /// The positions of a longest strictly ascending subsequence; nil elsewhere.
    static func kept(_ present: [Int64?]) -> [Int64?] {
        var ends: [Int] = []
        var before = [Int](repeating: -1, count: present.count)
        for (index, position) in present.enumerated() {
            guard let position, position >= -limit, position <= limit else { continue }
            var low = 0
            var high = ends.count
            while low < high {
                let middle = (low + high) / 2
                if (present[ends[middle]] ?? 0) < position {
                    low = middle + 1
                } else {
                    high = middle
                }
            }
            before[index] = low > 0 ? ends[low - 1] : -1
            if low == ends.count { ends.append(index) } else { ends[low] = index }
        }
        var result = [Int64?](repeating: nil, count: present.count)
        var index = ends.last ?? -1
        while index >= 0 {
            result[index] = present[index]
            index = before[index]
        }
        return result
    }
}
