// A list of IDs: the store's, with unsaved edits laid over and a window cut out.
//
// Invariants
// - Objects that edits reach are left out of the stored list and, those that match, put in at their
//   place: the list is the one that a save followed by a fetch would give.
// - `removed` and `inserted` ascend. Everything costs O(log n) and O(edits), not O(list).

import VarveBase
import VarveRecords

/// What unsaved edits make of a stored list.
struct ListPatch {
    /// Objects whose stored place does not count.
    var reached: Set<ObjectID> = []
    /// Their positions in the stored list, ascending; of those that are in it.
    var removed: [Int] = []
    /// Those that match, in the list's order; `rank`: stored objects before it, removed ones too.
    var inserted: [(key: KeysetPosition, rank: Int)] = []

    /// Removed positions below one of the stored list.
    func removed(below rank: Int) -> Int { removed.firstPlace { $0 >= rank } }
    /// The position of an inserted object in the patched list.
    func place(ofInserted index: Int) -> Int {
        inserted[index].rank - removed(below: inserted[index].rank) + index
    }
}

struct ObjectList {
    let source: ListSource
    var patch = ListPatch()
    /// Cuts limit and offset out of the patched list.
    let window: ListWindow

    /// The number of objects without limit and offset.
    var fullCount: Int { source.count - patch.removed.count + patch.inserted.count }
    /// The positions of the patched list that the window shows.
    var shown: Range<Int> { window.range(of: fullCount) }
    var count: Int { shown.count }

    /// The IDs at some positions of the window.
    func ids(_ range: Range<Int>) throws(RecordError) -> [ObjectID] {
        let start = shown.lowerBound
        return try fullIDs(range.lowerBound + start..<range.upperBound + start)
    }

    /// The IDs at some positions of the patched list.
    func fullIDs(_ range: Range<Int>) throws(RecordError) -> [ObjectID] {
        if patch.removed.isEmpty, patch.inserted.isEmpty { return try source.ids(range) }
        var ids: [ObjectID] = []
        ids.reserveCapacity(range.count)
        var next = patch.inserted.indices.firstPlace {
            patch.place(ofInserted: $0) >= range.lowerBound
        }
        var run: Range<Int>?
        for place in range {
            if next < patch.inserted.count, patch.place(ofInserted: next) == place {
                if let run { ids += try source.ids(run) }
                run = nil
                ids.append(patch.inserted[next].key.object)
                next += 1
                continue
            }
            let survivor = place - next
            let rank = survivor + removed(beforeSurvivor: survivor)
            if let known = run, known.upperBound == rank {
                run = known.lowerBound..<rank + 1
            } else {
                if let run { ids += try source.ids(run) }
                run = rank..<rank + 1
            }
        }
        if let run { ids += try source.ids(run) }
        return ids
    }

    /// How many removed objects precede the stored object that so many others precede.
    private func removed(beforeSurvivor survivor: Int) -> Int {
        patch.removed.indices.firstPlace { patch.removed[$0] - $0 > survivor }
    }
}

/// Limit and offset of a request, and the end that they count from.
struct ListWindow: Hashable {
    let limit: Int?
    let offset: Int
    /// Whether they count from the end: with `before` and without `after`.
    let isBackward: Bool

    init(_ query: RecordQuery) {
        (limit, offset) = (query.limit, query.offset)
        isBackward = query.before != nil && query.after == nil && (limit != nil || offset > 0)
    }

    var isWhole: Bool { limit == nil && offset == 0 }

    /// The positions of a list of `count` that it shows.
    func range(of count: Int) -> Range<Int> {
        let skipped = min(offset, count)
        let shown = min(limit ?? Int.max, count - skipped)
        return isBackward
            ? count - skipped - shown..<count - skipped : skipped..<skipped + shown
    }
}
