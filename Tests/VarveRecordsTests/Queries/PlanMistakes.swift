// Mistakes that a planner could make, put into its plans: the random requests must find each.

import VarveBase
import VarveEngine

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
