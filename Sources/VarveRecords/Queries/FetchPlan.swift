// How a request will be answered, as a value: which tree, which ranges, what is left to test and to
// sort.

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
        /// What several ranges have together.
        case set(EntrySet)
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
    /// How many values that are.
    var fixedTerms = 0
    /// The sort terms, in step with the index's terms after the fixed ones.
    let steps: [OrderStep]
    /// Sort terms that the index gives, where it gives not all: what is equal in them is sorted in
    /// memory. Else 0.
    var groupedTerms = 0
    /// Whether the index's keys say all that is left to test and to sort.
    var isCovered = false
    /// What packed leaves are asked where all rows are gone through; nil: what the residual says.
    var leafFilter: LeafCondition?
    /// Candidates in the ranges, exact for trees; entries to be read for a set.
    let candidates: UInt64

    /// The residual as a test of rows where they lie; nil: it looks at more than the row.
    var inPlaceTest: InPlaceTest? {
        InPlaceTest(residual ?? .constant(true), entity, leafFilter)
    }

    /// Where a place in the order cuts the accessed tree: what the tree has below the key stands on
    /// one side of the place, what it has from the key on stands on the other. With `isBehind` an
    /// entry that is exactly at the place counts to what is below. Nil: all of the tree is below.
    func cut(at position: KeysetPosition, isBehind: Bool) -> [UInt8]? {
        var key = fixedPrefix
        for (sortIndex, step) in steps.enumerated() {
            let value = position.values[sortIndex]
            switch step {
            case .column(let term): _ = IndexKeys.append(value, term, to: &key)
            case .fixed(let fixed):
                // The place need not be of an object that passes the filter: then all objects that
                // were equal up to here stand on the same side of it.
                let order = ValueOrder.compare(fixed, value)
                if order == 0 { continue }
                let isAfter = (order > 0) != sort.terms[sortIndex].isDescending
                return isAfter != isReversed ? key : KeyCoding.end(ofPrefix: key)
            }
        }
        // A place cuts no group: its own one is read whole.
        if groupedTerms > 0 { return isBehind ? key : KeyCoding.end(ofPrefix: key) }
        KeyCoding.appendObjectID(position.object, to: &key)
        if isBehind { key.append(0) }
        return key
    }
}

/// How one sort term is met by an index.
enum OrderStep: Hashable, Sendable {
    /// By the next column of the key.
    case column(RecordIndex.Term)
    /// The filter allows one value only.
    case fixed(StoredValue)
}
