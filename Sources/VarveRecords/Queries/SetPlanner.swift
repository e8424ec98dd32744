// Plans that read several index ranges: the union of an `||`, the intersection of an `&&`.
//
// Invariants
// - A part stands for and-terms: every object that passes them is in its set. `exact` lists those
//   for which the set lets nothing else through; only these leave the residual filter.
// - A union is possible only if each branch has a set; it is exact if each branch's set is.

import VarveBase

extension FetchPlanner {
    /// A set of entries and what it answers.
    struct SetPart {
        var set: EntrySet
        /// Entries to be read.
        var entries: UInt64
        /// Objects in it, estimated for intersections.
        var objects: Double
        /// Positions of the and-terms that need no further test.
        var exact: TermSet
    }

    /// Branches of a filter that are looked at; beyond that the planning would cost more than the
    /// scan.
    private static var branchesMax: Int { 64 }
    /// `||` inside `&&` inside `||`: deeper ones are tested on the rows.
    private static var depthMax: Int { 4 }
    /// Reading an entry, and putting its object into the order of the set.
    private static var costPerEntry: Double { 3 }
    /// Reading one row by its ID.
    private static var costPerRow: Double { 8 }

    /// The cheapest plan over a set; nil: one index, or none, does as well.
    func setCandidate() throws(RecordError) -> Candidate? {
        let tests = Self.tests(root)
        if tests.isEmpty { return nil }
        let total = try reader.count(entity.tree)
        guard let part = try part(tests, total: Double(total), depth: 0) else { return nil }
        // A single range is what the other candidates are.
        if case .ranges = part.set { return nil }
        let rest = part.exact.others(tests)
        let isOrdered = !needsOrder || sort.terms.isEmpty
        let plan = FetchPlan(
            entity: entity,
            access: .set(part.set),
            residual: Self.residual(rest),
            sort: sort,
            isOrdered: isOrdered,
            isReversed: needsOrder && isOrdered && sort.isTieDescending,
            fixedPrefix: [],
            steps: [],
            candidates: part.entries
        )
        var rows = rest.isEmpty && isOrdered ? 0 : part.objects
        if isOrdered, let wanted { rows = min(rows, Double(wanted) * 8) }
        let cost = 20 + Double(part.entries) * Self.costPerEntry + rows * (Self.costPerRow + 2)
        return Candidate(plan: plan, cost: cost)
    }

    /// The best set for and-terms; nil: no index narrows them.
    private func part(
        _ tests: [PredicateNode],
        total: Double,
        depth: Int
    ) throws(RecordError) -> SetPart? {
        var parts: [SetPart] = []
        for index in entity.indexes where IndexMatch.mayNarrow(index, tests) {
            let match = IndexMatch(index, tests)
            if match.ranges.isEmpty {
                return SetPart(
                    set: .union([]),
                    entries: 0,
                    objects: 0,
                    exact: TermSet(all: tests.count)
                )
            }
            guard match.isNarrowed else { continue }
            let entries = try reader.count(index.tree, match.ranges)
            parts.append(
                SetPart(
                    set: .ranges(index, match.ranges),
                    entries: entries,
                    objects: Double(entries),
                    exact: match.covered
                )
            )
        }
        for (position, test) in tests.enumerated() {
            if let ids = Self.objects(test) {
                parts.append(
                    SetPart(
                        set: .objects(ids),
                        entries: UInt64(ids.count) * 3,
                        objects: Double(ids.count),
                        exact: TermSet(position)
                    )
                )
            } else if case .or(let branches) = test, branches.count <= Self.branchesMax,
                depth < Self.depthMax,
                let union = try union(branches, at: position, total: total, depth: depth)
            {
                parts.append(union)
            }
        }
        return Self.intersected(parts, tests: tests.count, total: total)
    }

    private func union(
        _ branches: [PredicateNode],
        at position: Int,
        total: Double,
        depth: Int
    ) throws(RecordError) -> SetPart? {
        var sets: [EntrySet] = []
        var result = SetPart(set: .union([]), entries: 0, objects: 0, exact: TermSet(position))
        for branch in branches {
            let tests = Self.tests(branch)
            guard let part = try part(tests, total: total, depth: depth + 1) else { return nil }
            sets.append(part.set)
            result.entries += part.entries
            result.objects += part.objects
            if part.exact.count < tests.count { result.exact = TermSet() }
            // It costs as much as reading everything.
            if Double(result.entries) * Self.costPerEntry > total * 5 { return nil }
        }
        result.set = .union(sets)
        result.objects = min(result.objects, total)
        return result
    }

    /// The narrowest part, and each other one that saves more rows than its entries cost.
    private static func intersected(
        _ parts: [SetPart],
        tests: Int,
        total: Double
    ) -> SetPart? {
        let parts = parts.sorted { ($0.entries, -$0.exact.count) < ($1.entries, -$1.exact.count) }
        guard var result = parts.first else { return nil }
        var sets = [result.set]
        for part in parts.dropFirst() {
            guard !part.exact.isSubset(of: result.exact) else { continue }
            let share = min(1, part.objects / max(1, total))
            var saved = result.objects * costPerRow * (1 - share)
            if result.exact.union(part.exact).count == tests {
                // No row is read at all.
                saved = result.objects * costPerRow
            }
            guard Double(part.entries) * costPerEntry < saved else { continue }
            sets.append(part.set)
            result.entries += part.entries
            result.objects *= share
            result.exact = result.exact.union(part.exact)
        }
        if sets.count > 1 { result.set = .intersection(sets) }
        return result
    }

    /// The objects that a test names, ascending.
    static func objects(_ test: PredicateNode) -> [ObjectID]? {
        switch test {
        case .compare(let path, .equal, let value) where path.isObject:
            if case .reference(let id) = value { return [id] }
            return []
        case .isIn(let path, let values) where path.isObject:
            var ids: [ObjectID] = []
            for case .reference(let id) in values { ids.append(id) }
            return ids.sorted()
        default: return nil
        }
    }
}
