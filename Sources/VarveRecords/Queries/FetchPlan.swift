// How a request will be answered, as a value: which tree, which ranges, what is left to test and to sort.

import VarveBase
import VarveFormat

/// The way to the objects of one request.
struct FetchPlan: Sendable {
    /// Where the candidates come from.
    enum Access: Sendable {
        /// Nothing can match.
        case nothing
        /// These objects, ascending, as far as they exist.
        case objects([ObjectID])
        /// All rows of the entity, by object ID.
        case rows
        /// Ranges of an index, ascending and disjoint.
        case index(RecordIndex, [KeyRange])
    }

    let entity: RecordEntity
    let access: Access
    /// What the access does not guarantee; nil when it guarantees everything.
    let residual: PredicateNode?
    /// The order asked for.
    let sort: CompiledSort
    /// Whether the access delivers it, read in `isReversed` direction.
    let isOrdered: Bool
    let isReversed: Bool
    /// Values in front of the sorted columns in each key of the index: fixed by equality.
    let fixedPrefix: [UInt8]
    /// The index's terms from the first that is not fixed on; in step with the sort terms that are not.
    let orderedTerms: [(term: RecordIndex.Term, sortIndex: Int)]
    /// Candidates in the ranges, exact for trees.
    let candidates: UInt64

    /// The key in the accessed tree where a place in the order stands; nil when the plan has no order.
    func key(of position: KeysetPosition) -> [UInt8]? {
        guard isOrdered else { return nil }
        var key = fixedPrefix
        for (term, sortIndex) in orderedTerms {
            _ = IndexKeys.append(position.values[sortIndex], term, to: &key)
        }
        KeyCoding.appendObjectID(position.object, to: &key)
        return key
    }
}
