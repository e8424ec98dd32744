// Choosing the way to the objects of a request.
//
// Invariants
// - Every plan gives the same objects in the same order; the choice is about cost only.
// - Costs rest on exact counts: how many entries a range has is two descents of the tree.
// - An index is trusted for order only if no key in its ranges was cut.

import VarveBase
import VarveEngine
import VarveFormat

/// Chooses a plan for one request on one state of the store.
struct FetchPlanner<Source: RecordSource> {
    let reader: RecordReader<Source>
    let entity: RecordEntity
    let root: PredicateNode
    let sort: CompiledSort
    /// Objects wanted at most, counted from the start of the order; nil: all.
    let wanted: Int?
    /// Whether the order matters: not for a count.
    let needsOrder: Bool

    struct Candidate {
        let plan: FetchPlan
        let cost: Double
    }

    /// The cheapest plan.
    func plan() throws(RecordError) -> FetchPlan {
        var candidates = try candidates()
        // Several ranges are worth a look only where one leaves much.
        if candidates.count > 0, candidates.allSatisfy({ $0.cost > Self.setCostMin }),
            let candidate = try setCandidate()
        {
            candidates.append(candidate)
        }
        guard let best = candidates.min(by: { $0.cost < $1.cost }) else {
            preconditionFailure("all rows can always be read")
        }
        return best.plan
    }

    /// Every plan but one over sets: the first of equal cost is preferred.
    func candidates() throws(RecordError) -> [Candidate] {
        func only(_ plan: FetchPlan) -> [Candidate] { [Candidate(plan: plan, cost: 0)] }
        if root == .constant(false) { return only(make(.nothing, residual: nil, candidates: 0)) }
        let tests = Self.tests(root)
        if let plan = objectPlan(tests) { return only(plan) }
        var matches: [(match: IndexMatch, entries: UInt64)] = []
        for index in entity.indexes where mayHelp(index, tests) {
            let match = IndexMatch(index, tests)
            if match.ranges.isEmpty {
                return only(make(.nothing, residual: nil, candidates: 0))
            }
            if !match.isNarrowed, !needsOrder || beginning(match) == nil { continue }
            let entries = try reader.count(index.tree, match.ranges)
            if !needsOrder, match.covered.count == tests.count {
                // Its entries are the objects: no other plan looks at fewer.
                return only(try indexCandidate(match, entries, tests, fewest: entries).plan)
            }
            matches.append((match, entries))
        }
        let total = try reader.count(entity.tree)
        let fewest = matches.reduce(total) { min($0, $1.entries) }
        var all = [rowsCandidate(tests, total: total, fewest: fewest)]
        for (match, entries) in matches {
            all.append(try indexCandidate(match, entries, tests, fewest: fewest))
            if let grouped = try groupedCandidate(match, entries, tests, fewest: fewest) {
                all.append(grouped)
            }
        }
        return all
    }

    /// A plan whose entries are the list itself, in order and without a test; nil: there is none.
    func positionedPlan() throws(RecordError) -> FetchPlan? {
        if root == .constant(false) { return make(.nothing, residual: nil, candidates: 0) }
        let tests = Self.tests(root)
        if objectPlan(tests) != nil { return nil }
        if tests.isEmpty, sort.terms.isEmpty {
            let all = try reader.count(entity.tree)
            return make(
                .rows,
                residual: nil,
                isReversed: sort.isTieDescending,
                candidates: all
            )
        }
        for index in entity.indexes where mayHelp(index, tests) {
            let match = IndexMatch(index, tests)
            if match.ranges.isEmpty { return make(.nothing, residual: nil, candidates: 0) }
            guard match.covered.count == tests.count, order(match) != nil else { continue }
            let entries = try reader.count(index.tree, match.ranges)
            let plan = try indexCandidate(match, entries, tests, fewest: entries).plan
            if plan.isOrdered, plan.residual == nil { return plan }
        }
        return nil
    }

    private static var setCostMin: Double { 100 }

    /// Whether an index narrows the objects or gives an order: what it costs to find out more is
    /// most of what a small request costs.
    private func mayHelp(_ index: RecordIndex, _ tests: [PredicateNode]) -> Bool {
        if IndexMatch.mayNarrow(index, tests) { return true }
        guard needsOrder, let first = sort.terms.first?.path.ownColumn else { return false }
        return index.terms.first?.column == first
    }

    /// The and-terms of a filter.
    static func tests(_ root: PredicateNode) -> [PredicateNode] {
        switch root {
        case .constant(true): []
        case .and(let all): all
        default: [root]
        }
    }

    // MARK: Candidates

    private func objectPlan(_ tests: [PredicateNode]) -> FetchPlan? {
        for (position, test) in tests.enumerated() {
            guard let ids = Self.objects(test) else { continue }
            let rest = tests.enumerated().filter { $0.offset != position }.map(\.element)
            let access = ids.isEmpty ? FetchPlan.Access.nothing : .objects(ids)
            return make(
                access,
                residual: Self.residual(rest),
                isOrdered: sort.terms.isEmpty,
                isReversed: sort.isTieDescending,
                candidates: UInt64(ids.count)
            )
        }
        return nil
    }

    private func rowsCandidate(
        _ tests: [PredicateNode],
        total: UInt64,
        fewest: UInt64
    ) -> Candidate {
        let plan = make(
            .rows,
            residual: Self.residual(tests),
            isOrdered: sort.terms.isEmpty,
            isReversed: sort.isTieDescending,
            candidates: total
        )
        // A scan of rows in their own order is cheaper per row than picking them one by one.
        return Candidate(plan: plan, cost: cost(plan, fewest: fewest, perRow: 3))
    }

    private func indexCandidate(
        _ match: IndexMatch,
        _ entries: UInt64,
        _ tests: [PredicateNode],
        fewest: UInt64
    ) throws(RecordError) -> Candidate {
        let rest = match.covered.others(tests)
        let residual = Self.residual(rest)
        let isExact = try isExact(match)
        let order = needsOrder && isExact ? order(match) : nil
        let isOrdered = order != nil || !needsOrder
        let isCovered =
            isExact && (residual != nil || !isOrdered)
            && isCovered(residual, sortsInMemory: !isOrdered, by: match.index)
        let plan = FetchPlan(
            entity: entity,
            access: .index(match.index, match.ranges),
            residual: residual,
            sort: sort,
            isOrdered: isOrdered,
            isReversed: order?.isReversed ?? false,
            fixedPrefix: match.prefix,
            fixedTerms: match.prefixTerms,
            steps: order?.steps ?? [],
            isCovered: isCovered,
            candidates: entries
        )
        return Candidate(plan: plan, cost: cost(plan, fewest: fewest, perRow: isCovered ? 2 : 8))
    }

    /// Whether an index has all that a filter and an order look at.
    private func isCovered(
        _ residual: PredicateNode?,
        sortsInMemory: Bool,
        by index: RecordIndex
    ) -> Bool {
        let columns = Set(index.terms.map(\.column))
        guard residual?.isCovered(by: columns) ?? true else { return false }
        return !sortsInMemory
            || sort.terms.allSatisfy { $0.path.ownColumn.map(columns.contains) ?? false }
    }

    /// Reading an index that gives the first terms of the order only, up to a limit.
    private func groupedCandidate(
        _ match: IndexMatch,
        _ entries: UInt64,
        _ tests: [PredicateNode],
        fewest: UInt64
    ) throws(RecordError) -> Candidate? {
        guard needsOrder, let wanted, entries > 0, let order = beginning(match),
            order.steps.count < sort.terms.count || !order.isWhole, try isExact(match)
        else { return nil }
        let rest = match.covered.others(tests)
        let plan = FetchPlan(
            entity: entity,
            access: .index(match.index, match.ranges),
            residual: Self.residual(rest),
            sort: sort,
            isOrdered: false,
            isReversed: order.isReversed,
            fixedPrefix: match.prefix,
            fixedTerms: match.prefixTerms,
            steps: order.steps,
            groupedTerms: order.steps.count,
            candidates: entries
        )
        let all = Double(entries)
        let perMatch = rest.isEmpty ? 1 : all / Double(max(1, min(fewest, entries)))
        let group = Double(try firstGroup(plan, match))
        let visited = min(all, Double(wanted) * perMatch + group)
        return Candidate(plan: plan, cost: 20 + visited * 10)
    }

    /// Entries of the group with which the reading begins: what one group costs. O(log n).
    private func firstGroup(_ plan: FetchPlan, _ match: IndexMatch) throws(RecordError) -> UInt64 {
        let ranges = plan.isReversed ? match.ranges.reversed() : match.ranges
        for range in ranges {
            var cursor = try reader.cursor(match.index.tree)
            let isThere = try reader.engine { () throws(EngineError) in
                try PlanExecutor<Source>.seek(&cursor, range, nil, plan.isReversed)
            }
            guard isThere else { continue }
            let group = KeyRange(prefix: try plan.groupPrefix(of: cursor.key, match.index))
            return try reader.count(match.index.tree, group)
        }
        return 0
    }

    /// Whether no value in the ranges was cut.
    private func isExact(_ match: IndexMatch) throws(RecordError) -> Bool {
        guard let cutTree = match.index.cutTree, try reader.count(cutTree) > 0 else {
            return true
        }
        return try reader.count(cutTree, match.ranges) == 0
    }

    /// Estimated cost: an entry 1, a row as given, sorting by its logarithm.
    private func cost(_ plan: FetchPlan, fewest: UInt64, perRow: Double) -> Double {
        let all = Double(plan.candidates)
        var isScan = false
        if case .rows = plan.access { isScan = true }
        let needsRows = plan.residual != nil
        if plan.isOrdered {
            var visited = all
            if let wanted {
                // As many candidates per match as the narrowest index leaves.
                let perMatch = needsRows ? all / Double(max(1, min(fewest, plan.candidates))) : 1
                visited = min(all, Double(wanted) * max(1, perMatch))
            }
            return 20 + visited * (needsRows ? perRow : 1)
        }
        let readsRows = isScan || needsRows || !sort.terms.isEmpty
        return 20 + all * ((readsRows ? perRow : 1) + 2)
    }

    // MARK: Order

    /// How an index delivers the whole order after its fixed columns; nil when it does not.
    private func order(_ match: IndexMatch) -> (isReversed: Bool, steps: [OrderStep])? {
        guard let order = beginning(match), order.steps.count == sort.terms.count, order.isWhole
        else { return nil }
        return (order.isReversed, order.steps)
    }

    /// How an index delivers the first terms of the order after its fixed columns; nil when it
    /// delivers none but fixed ones. `isWhole`: what is equal in them comes in the order of the
    /// tie.
    private func beginning(
        _ match: IndexMatch
    ) -> (isReversed: Bool, steps: [OrderStep], isWhole: Bool)? {
        let fixed = match.index.terms[..<match.prefixTerms].map(\.column)
        var rest = match.index.terms[match.prefixTerms...]
        var steps: [OrderStep] = []
        var direction: Bool?
        for wanted in sort.terms {
            guard let column = wanted.path.ownColumn else { break }
            if let place = fixed.firstIndex(of: column) {
                steps.append(.fixed(match.prefixValues[place]))
                continue
            }
            guard let term = rest.first, term.column == column else { break }
            let flips = term.isDescending != wanted.isDescending
            if let direction, direction != flips { break }
            direction = flips
            rest.removeFirst()
            steps.append(.column(term))
        }
        let tie = sort.isTieDescending
        let isWhole = rest.isEmpty && direction ?? tie == tie
        if steps.count < sort.terms.count || !isWhole, direction == nil { return nil }
        return (direction ?? tie, steps, isWhole)
    }

    static func residual(_ tests: [PredicateNode]) -> PredicateNode? {
        tests.isEmpty ? nil : PredicateCompiler.and(tests)
    }

    private func make(
        _ access: FetchPlan.Access,
        residual: PredicateNode?,
        isOrdered: Bool = true,
        isReversed: Bool = false,
        candidates: UInt64
    ) -> FetchPlan {
        FetchPlan(
            entity: entity,
            access: access,
            residual: residual,
            sort: sort,
            isOrdered: isOrdered || !needsOrder,
            isReversed: needsOrder && isReversed,
            fixedPrefix: [],
            steps: [],
            candidates: candidates
        )
    }
}

extension RecordReader {
    /// How many objects match a filter, where a tree says it without a test; nil: it takes a plan.
    /// The planner takes the same way where it meets such an index (`candidates`).
    func matchingEntries(
        _ root: PredicateNode,
        _ entity: RecordEntity
    ) throws(RecordError) -> UInt64? {
        if case .constant(false) = root { return 0 }
        let tests = FetchPlanner<Source>.tests(root)
        if tests.isEmpty { return try count(entity.tree) }
        // By place: an index that is none for these tests is not copied.
        for place in entity.indexes.indices
        where IndexMatch.mayCover(entity.indexes[place], tests) {
            let index = entity.indexes[place]
            guard let ranges = IndexMatch(index, tests).exactRanges(tests.count) else { continue }
            return try count(index.tree, ranges)
        }
        return nil
    }
}

extension CompiledPath {
    /// Whether it is the object itself.
    var isObject: Bool { hops.isEmpty && terminal == .object }
}
