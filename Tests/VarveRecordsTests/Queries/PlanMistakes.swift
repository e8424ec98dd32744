// Mistakes that a planner could make, put into its plans: the random requests must find each.

import VarveBase
import VarveEngine
import VarveFormat

@testable import VarveRecords

enum PlanMistake: CaseIterable, Sendable {
    /// What the access does not guarantee is not tested.
    case residualForgotten
    /// What is in one of the sets is taken for what is in all.
    case intersectionAsUnion
    /// One side of an `||` is not looked at.
    case branchForgotten
    /// A range of an index is not read.
    case rangeForgotten
    /// The order of the access is taken for the one asked for.
    case orderTakenAsGiven
    /// An index is read in the wrong direction.
    case readBackward
    /// Objects that are equal in what an index sorts are taken for several groups.
    case groupTooNarrow
    /// Packed leaves take a row without a value for one that does not pass, or the other way round.
    case nullsForgotten
    /// What packed leaves cannot tell is ruled out.
    case openRowsRuledOut

    /// Whether it can be made only where leaves are packed.
    var isOfLeaves: Bool { self == .nullsForgotten || self == .openRowsRuledOut }

    /// The plan with the mistake in it; nil: it cannot be made here.
    func made(in plan: FetchPlan) -> FetchPlan? {
        var access = plan.access
        var (residual, isOrdered, isReversed) = (plan.residual, plan.isOrdered, plan.isReversed)
        var steps = plan.steps
        switch (self, plan.access) {
        case (.residualForgotten, _) where residual != nil: residual = nil
        case (.intersectionAsUnion, .set(.intersection(let sets))): access = .set(.union(sets))
        case (.branchForgotten, .set(.union(let sets))) where sets.count > 1:
            access = .set(.union(Array(sets.dropLast())))
        case (.rangeForgotten, .index(let index, let ranges)) where ranges.count > 1:
            access = .index(index, Array(ranges.dropLast()))
        case (.orderTakenAsGiven, _) where !isOrdered && plan.groupedTerms == 0: isOrdered = true
        case (.readBackward, .index) where isOrdered: isReversed.toggle()
        case (.groupTooNarrow, .index(let index, _)) where plan.groupedTerms > 0:
            let columns = steps.count { if case .column = $0 { true } else { false } }
            guard index.terms.count > plan.fixedTerms + columns else { return nil }
            steps.append(.column(index.terms[plan.fixedTerms + columns]))
        case (.nullsForgotten, .rows), (.openRowsRuledOut, .rows):
            guard let filter = residual?.leafCondition(plan.entity) else { return nil }
            var wrong = plan
            wrong.leafFilter = self == .nullsForgotten ? filter.withoutNulls : filter.closed
            return wrong
        default: return nil
        }
        var wrong = FetchPlan(
            entity: plan.entity,
            access: access,
            residual: residual,
            sort: plan.sort,
            isOrdered: isOrdered,
            isReversed: isReversed,
            fixedPrefix: plan.fixedPrefix,
            steps: steps,
            candidates: plan.candidates
        )
        wrong.fixedTerms = plan.fixedTerms
        wrong.groupedTerms = plan.groupedTerms
        wrong.isCovered = plan.isCovered
        return wrong
    }
}

extension LeafCondition {
    /// As it would be if nobody had thought of rows without a value.
    fileprivate var withoutNulls: LeafCondition {
        switch self {
        case .constant, .unknown: return self
        case .column(let column):
            return .column(
                ColumnCondition(
                    column.column,
                    column.values,
                    isNegated: column.isNegated,
                    passesNull: !column.passesNull,
                    passesAbsent: column.passesAbsent
                )
            )
        case .not(let inner): return .not(inner.withoutNulls)
        case .and(let all): return .and(all.map(\.withoutNulls))
        case .or(let all): return .or(all.map(\.withoutNulls))
        }
    }

    /// As it would be if what is not known were false.
    fileprivate var closed: LeafCondition {
        switch self {
        case .constant, .column: return self
        case .unknown: return .constant(false)
        case .not(let inner): return .not(inner.closed)
        case .and(let all): return .and(all.map(\.closed))
        case .or(let all): return .or(all.map(\.closed))
        }
    }
}
