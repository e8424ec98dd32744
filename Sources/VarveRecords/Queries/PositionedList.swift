// The list of a request as places in a tree: none of it is in memory.
//
// Invariants
// - The list is the entries of disjoint ranges of one tree, read from one end: nothing is left to
//   test or to sort.
// - Every question is answered by counted descents: O(log n), however long the list is.
// - It shows one commit, and keeps it readable as long as it lives.

public import VarveBase
import VarveEngine
import VarveFormat

/// A request's list that an index, or the rows by ID, give in order and without a test.
public struct PositionedList: Sendable {
    /// The commit that the list shows.
    public let snapshot: RecordSnapshot
    /// The number of objects.
    public let count: Int
    private let plan: FetchPlan
    private let tree: TreeID
    private let parts: [Part]

    /// A range of the tree, ascending: how many entries of the tree, and of the list, precede it.
    private struct Part {
        let first: UInt64
        let count: Int
        let before: Int
    }

    /// Nil when rows would have to be tested or sorted.
    init?(
        _ plan: FetchPlan,
        _ window: FetchWindow,
        _ snapshot: RecordSnapshot
    ) throws(RecordError) {
        guard plan.isOrdered, plan.residual == nil else { return nil }
        let ranges: [KeyRange]
        switch plan.access {
        case .objects, .set: return nil
        case .nothing: (tree, ranges) = (plan.entity.tree, [])
        case .rows: (tree, ranges) = (plan.entity.tree, [KeyRange(prefix: [])])
        case .index(let index, let all): (tree, ranges) = (index.tree, all)
        }
        let reader = snapshot.reader
        var parts: [Part] = []
        var before = 0
        for range in try PlanExecutor(reader: reader, plan: plan).clip(ranges, window) {
            let (lower, upper) = try reader.bounds(tree, range)
            parts.append(
                Part(first: lower, count: Int(clamping: upper - lower), before: before)
            )
            before += Int(clamping: upper - lower)
        }
        (self.plan, self.snapshot, self.parts, count) = (plan, snapshot, parts, before)
    }

    /// The IDs at some positions, in the order of the request.
    /// - Complexity: O(log n + range).
    public func ids(_ range: Range<Int>) throws(RecordError) -> [ObjectID] {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "positions of the list")
        let inTree =
            plan.isReversed ? count - range.upperBound..<count - range.lowerBound : range
        var ids: [ObjectID] = []
        ids.reserveCapacity(range.count)
        let reader = snapshot.reader
        for part in parts {
            let wanted = inTree.clamped(to: part.before..<part.before + part.count)
            if wanted.isEmpty { continue }
            var cursor = try reader.cursor(tree)
            let first = part.first + UInt64(wanted.lowerBound - part.before)
            let taken = try reader.engine { () throws(EngineError) in
                guard try cursor.seek(position: first) else { return 0 }
                return try cursor.takeObjectIDs(
                    limit: wanted.count,
                    isForward: true,
                    end: nil,
                    into: &ids
                )
            }
            reader.counters.entriesScanned.count(taken)
        }
        guard ids.count == range.count else {
            throw .format(
                FormatError(
                    place: "index",
                    field: "entries",
                    found: "\(ids.count)",
                    expected: "\(range.count)"
                )
            )
        }
        if plan.isReversed { ids.reverse() }
        return ids
    }

    /// How many objects of the list come before a place.
    /// - Complexity: O(log n).
    public func rank(of place: KeysetPosition) throws(RecordError) -> Int {
        guard let key = plan.cut(at: place, isBehind: plan.isReversed) else {
            return plan.isReversed ? 0 : count
        }
        return try entries(below: key)
    }

    /// Where the run of objects ends that have the same value of the first sort term as a place
    /// has: the position after the last of them.
    /// - Complexity: O(log n).
    public func endOfRun(of place: KeysetPosition) throws(RecordError) -> Int {
        guard case .column(let term)? = plan.steps.first else { return count }
        var key = plan.fixedPrefix
        _ = IndexKeys.append(place.values[0], term, to: &key)
        // Read from its end, the list has the run's first entry last.
        guard !plan.isReversed else { return try entries(below: key) }
        guard let end = KeyCoding.end(ofPrefix: key) else { return count }
        return try entries(below: end)
    }

    /// Entries on the near side of a key of the tree.
    private func entries(below key: [UInt8]) throws(RecordError) -> Int {
        let reader = snapshot.reader
        let place = try reader.engine { () throws(EngineError) in
            try reader.source.position(tree, of: key)
        }
        var below = 0
        for part in parts where place > part.first {
            below += min(part.count, Int(clamping: place - part.first))
        }
        return plan.isReversed ? count - below : below
    }
}

extension RecordSnapshot {
    /// The list of a request as places in a tree, without its limit and offset; nil when its rows
    /// would have to be tested or sorted.
    /// - Complexity: O(log n) for each index of the entity.
    public func positioned(_ query: RecordQuery) throws(RecordError) -> PositionedList? {
        let (planner, window) = try reader.planner(query, needsOrder: true, turnsRound: false)
        guard let plan = try planner.positionedPlan() else { return nil }
        let places = FetchWindow(limit: nil, after: window.after, before: window.before)
        return try PositionedList(plan, places, self)
    }
}
