// Filters over a to-one relationship, turned round: first the few targets, then who leads to them.
//
// Invariants
// - Only tests that are false for null are turned round: then "the target passes" and "the
//   reference is one of these" say the same, also for references to objects that are gone.
// - Only where the targets are found cheaply and are few, and an index leads back from them.

import VarveBase

extension RecordReader {
    /// More targets than this are not turned into a list.
    private static var targetsMax: Int { 256 }
    /// An `||` of more branches is left alone.
    private static var branchesMax: Int { 16 }
    /// Rows of the target entity that may be scanned to find them.
    private static var targetScanMax: UInt64 { 1_000 }

    /// The and-terms of a filter with those over a to-one relationship replaced where that helps.
    func turnedRound(
        _ root: PredicateNode,
        _ entity: RecordEntity
    ) throws(RecordError) -> PredicateNode {
        if root.readsOwnRowOnly { return root }
        var tests = FetchPlanner<Source>.tests(root)
        var hasChanged = false
        for index in tests.indices {
            guard let test = try turnedRoundTest(tests[index], entity) else { continue }
            tests[index] = test
            hasChanged = true
        }
        return hasChanged ? PredicateCompiler.and(tests) : root
    }

    private func turnedRoundTest(
        _ test: PredicateNode,
        _ entity: RecordEntity
    ) throws(RecordError) -> PredicateNode? {
        if case .or(let branches) = test { return try turnedRoundBranches(branches, entity) }
        guard let (path, inner) = test.behindFirstHop, let first = path.hops.first,
            let hop = path.firstHop, let target = schema.entity(first.target),
            entity.indexes.contains(where: { $0.terms[0].column == first.column })
        else { return nil }
        let planner = FetchPlanner(
            reader: self,
            entity: target,
            root: try turnedRound(inner, target),
            sort: .byID,
            wanted: nil,
            needsOrder: false
        )
        let plan = try planner.plan()
        if case .rows = plan.access, plan.candidates > Self.targetScanMax { return nil }
        if plan.candidates > Self.targetScanMax, plan.residual != nil { return nil }
        let window = FetchWindow(limit: Self.targetsMax + 1)
        let targets = try PlanExecutor(reader: self, plan: plan).ids(window)
        if targets.count > Self.targetsMax { return nil }
        return PredicateCompiler.isIn(hop, targets.map { .reference($0) })
    }

    /// An `||` whose branches are turned round, so that each may become a range.
    private func turnedRoundBranches(
        _ branches: [PredicateNode],
        _ entity: RecordEntity
    ) throws(RecordError) -> PredicateNode? {
        if branches.count > Self.branchesMax { return nil }
        var turned: [PredicateNode] = []
        for branch in branches { turned.append(try turnedRound(branch, entity)) }
        return turned == branches ? nil : PredicateCompiler.or(turned)
    }
}

extension PredicateNode {
    /// For a test over a to-one relationship that is false for null: its path, and the same test as
    /// the target sees it.
    fileprivate var behindFirstHop: (CompiledPath, PredicateNode)? {
        switch self {
        case .compare(let path, let comparison, let value)
        where !path.hops.isEmpty && comparison != .notEqual && value != .null:
            return (path, .compare(path.behindFirstHop, comparison, value))
        case .isIn(let path, let values) where !path.hops.isEmpty && values.first != .null:
            return (path, .isIn(path.behindFirstHop, values))
        case .isWithin(let path, let range) where !path.hops.isEmpty:
            return (path, .isWithin(path.behindFirstHop, range))
        case .text(let path, let needle) where !path.hops.isEmpty:
            return (path, .text(path.behindFirstHop, needle))
        default: return nil
        }
    }
}
