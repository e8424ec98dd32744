// Sets of objects that several index ranges give together: unions and intersections.
//
// Invariants
// - A set is ascending and has each object once.
// - It holds every object that passes the tests it stands for. Whether it holds others too, and
//   these tests must be asked again, is the planner's business (SetPlanner.swift).

import VarveBase
import VarveEngine

/// Objects that entries of indexes name.
indirect enum EntrySet: Sendable {
    /// These objects, ascending; they need not exist.
    case objects([ObjectID])
    /// What an index has in these ranges, ascending and disjoint.
    case ranges(RecordIndex, [KeyRange])
    /// What at least one has.
    case union([EntrySet])
    /// What all have. The smallest comes first.
    case intersection([EntrySet])
}

extension PlanExecutor {
    /// The objects of a set, ascending.
    /// - Complexity: O(n log n) for n entries; 8 bytes of memory each.
    func ids(of set: EntrySet) throws(RecordError) -> [ObjectID] {
        switch set {
        case .objects(let ids): return try existing(ids)
        case .ranges(let index, let ranges):
            var ids: [ObjectID] = []
            try eachBatch(index.tree, ranges, goesBack: false, of: 4_096, upTo: 4_096) { batch in
                ids += batch
                return true
            }
            return ids.sorted()
        case .union(let sets):
            var all: [ObjectID] = []
            for set in sets { all += try ids(of: set) }
            all.sort()
            var ids: [ObjectID] = []
            ids.reserveCapacity(all.count)
            for id in all where ids.last != id { ids.append(id) }
            return ids
        case .intersection(let sets):
            guard let first = sets.first else { return [] }
            var ids = try ids(of: first)
            for set in sets.dropFirst() where !ids.isEmpty {
                ids = Self.common(ids, try self.ids(of: set))
            }
            return ids
        }
    }

    /// What two ascending lists have in common.
    private static func common(_ left: [ObjectID], _ right: [ObjectID]) -> [ObjectID] {
        var result: [ObjectID] = []
        var (first, second) = (0, 0)
        while first < left.count, second < right.count {
            if left[first] == right[second] {
                result.append(left[first])
                first += 1
                second += 1
            } else if left[first] < right[second] {
                first += 1
            } else {
                second += 1
            }
        }
        return result
    }
}
