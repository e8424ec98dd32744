// What one index can do for a filter: equal values at its front, then one range or list.
//
// Invariants
// - Every object that passes the filter has its entry in `ranges`; `covered` lists the and-terms
//   for which the ranges let nothing else through.
// - Bounds are compared as encoded bytes, so a descending column needs no case of its own but the
//   swap.

import VarveBase
import VarveFormat

/// The ranges of one index that an and-list of tests leaves.
struct IndexMatch {
    let index: RecordIndex
    /// Ascending and disjoint.
    var ranges: [KeyRange]
    /// Encoded equal values at the front.
    var prefix: [UInt8] = []
    /// The equal values themselves.
    var prefixValues: [StoredValue] = []
    /// How many terms the equal values fill.
    var prefixTerms: Int { prefixValues.count }
    /// Positions of the and-terms that need no further test.
    var covered = TermSet()

    init(_ index: RecordIndex, _ tests: [PredicateNode]) {
        self.index = index
        ranges = []
        for term in index.terms {
            guard let value = Self.equal(term, tests, &covered, &prefix) else { break }
            prefixValues.append(value)
        }
        guard prefixTerms < index.terms.count else {
            ranges = [KeyRange(prefix: prefix)]
            return
        }
        narrow(index.terms[prefixTerms], tests)
        if ranges.contains(where: \.isEmpty) { ranges.removeAll(where: \.isEmpty) }
    }

    /// Whether a test is of the index's first column: else no test narrows it.
    static func mayNarrow(_ index: RecordIndex, _ tests: [PredicateNode]) -> Bool {
        guard let first = index.terms.first?.column else { return false }
        return tests.contains { $0.indexedPath?.ownColumn == first }
    }

    /// Whether each test is of a column of the index, and one of its first: else no range of it is
    /// the whole answer.
    static func mayCover(_ index: RecordIndex, _ tests: [PredicateNode]) -> Bool {
        guard let first = index.terms.first?.column else { return false }
        var hasFirst = false
        for test in tests {
            guard let column = test.indexedPath?.ownColumn else { return false }
            if column == first {
                hasFirst = true
            } else if !index.terms.contains(where: { $0.column == column }) {
                return false
            }
        }
        return hasFirst
    }

    /// Whether it says more than the whole tree does.
    var isNarrowed: Bool { prefixTerms > 0 || ranges != [KeyRange(prefix: [])] }

    /// The ranges, where their entries are just what all of so many tests let through; empty ones
    /// where nothing can pass. Nil: something is left to test.
    consuming func exactRanges(_ testCount: Int) -> [KeyRange]? {
        ranges.isEmpty || covered.count == testCount ? ranges : nil
    }

    private static func equal(
        _ term: RecordIndex.Term,
        _ tests: [PredicateNode],
        _ covered: inout TermSet,
        _ prefix: inout [UInt8]
    ) -> StoredValue? {
        for (position, test) in tests.enumerated() {
            guard case .compare(let path, .equal, let value) = test, path.ownColumn == term.column
            else { continue }
            var key = prefix
            if IndexKeys.append(value, term, to: &key) { continue }
            prefix = key
            covered.insert(position)
            return value
        }
        return nil
    }

    /// Applies lists, comparisons and text prefixes on the column behind the equal ones.
    private mutating func narrow(_ term: RecordIndex.Term, _ tests: [PredicateNode]) {
        var whole = KeyRange(prefix: prefix)
        var leavesOutNull = false
        var list: [KeyRange]?
        for (position, test) in tests.enumerated() {
            switch test {
            case .compare(let path, let comparison, let value) where path.ownColumn == term.column:
                if compare(comparison, value, term, &whole, &leavesOutNull) {
                    covered.insert(position)
                }
            case .isWithin(let path, let between) where path.ownColumn == term.column:
                if narrow(to: between, term, &whole, &leavesOutNull) { covered.insert(position) }
            case .text(let path, let needle)
            where path.ownColumn == term.column && needle.match == .hasPrefix
                && needle.folding.isEmpty:
                if textPrefix(needle.bytes, term, &whole) { covered.insert(position) }
            case .isIn(let path, let values) where path.ownColumn == term.column && list == nil:
                var isExact = true
                list = values.map { value in
                    var key = prefix
                    if IndexKeys.append(value, term, to: &key) { isExact = false }
                    return KeyRange(prefix: key)
                }
                if isExact { covered.insert(position) }
            default: break
            }
        }
        if leavesOutNull { excludeNull(term, &whole) }
        guard let list else {
            ranges = [whole]
            return
        }
        ranges = list.sorted { IndexKeys.compare($0.lower, $1.lower) < 0 }.map { range in
            var range = range
            range.raiseLower(to: whole.lower)
            range.reduceUpper(to: whole.upper)
            return range
        }
        // Cut values of a list can share a range.
        var disjoint: [KeyRange] = []
        for range in ranges where disjoint.last != range { disjoint.append(range) }
        ranges = disjoint
    }

    /// Narrows to what lies between two bounds; true when the range lets nothing else through.
    private func narrow(
        to between: ValueRange,
        _ term: RecordIndex.Term,
        _ range: inout KeyRange,
        _ leavesOutNull: inout Bool
    ) -> Bool {
        var isExact = true
        if let lower = between.lower {
            isExact = compare(.greaterOrEqual, lower, term, &range, &leavesOutNull)
        }
        if let upper = between.upper {
            let comparison = between.includesUpper ? Comparison.lessOrEqual : .less
            isExact = compare(comparison, upper, term, &range, &leavesOutNull) && isExact
        }
        return isExact
    }

    /// Narrows to one comparison; true when the range lets nothing else through. Where it sets
    /// `leavesOutNull`, the caller has to do that: once, for all comparisons.
    private func compare(
        _ comparison: Comparison,
        _ value: StoredValue,
        _ term: RecordIndex.Term,
        _ range: inout KeyRange,
        _ leavesOutNull: inout Bool
    ) -> Bool {
        var key: [UInt8] = []
        key.reserveCapacity(prefix.count + 16)
        key += prefix
        let isCut = IndexKeys.append(value, term, to: &key)
        var isLower: Bool
        var isInclusive: Bool
        switch comparison {
        case .equal:
            range.reduceUpper(to: KeyCoding.end(ofPrefix: key))
            range.raiseLower(to: key)
            return !isCut
        case .notEqual:
            guard value == .null else { return false }
            (isLower, isInclusive) = (true, false)
        case .less: (isLower, isInclusive) = (false, false)
        case .lessOrEqual: (isLower, isInclusive) = (false, true)
        case .greater: (isLower, isInclusive) = (true, false)
        case .greaterOrEqual: (isLower, isInclusive) = (true, true)
        }
        // Among keys that share the cut bytes, the row must tell.
        if isCut { isInclusive = true }
        if term.isDescending { isLower.toggle() }
        // Behind the keys with this value, or in front of them; without an end there is no bound.
        if isLower == isInclusive || KeyCoding.raiseToEnd(&key) {
            if isLower { range.raiseLower(to: key) } else { range.reduceUpper(to: key) }
        }
        // Null has the lowest key, or the highest: a bound on the other side does not leave it out.
        if isLower == term.isDescending || value == .null { leavesOutNull = true }
        return !isCut
    }

    /// Null is not part of any ordered comparison.
    private func excludeNull(_ term: RecordIndex.Term, _ range: inout KeyRange) {
        // Most ranges have a bound beyond null already.
        let place = prefix.count
        if term.isDescending {
            if let upper = range.upper, upper.count > place, upper[place] < ~KeyCoding.nullTag {
                return
            }
        } else if range.lower.count > place, range.lower[place] > KeyCoding.nullTag {
            return
        }
        var null = prefix
        _ = IndexKeys.append(.null, term, to: &null)
        if term.isDescending {
            range.reduceUpper(to: null)
        } else if let end = KeyCoding.end(ofPrefix: null) {
            range.raiseLower(to: end)
        }
    }

    private func textPrefix(
        _ bytes: [UInt8],
        _ term: RecordIndex.Term,
        _ range: inout KeyRange
    ) -> Bool {
        // The share of a key may be smaller than what a key could hold.
        var kept = bytes[...]
        let limit = min(KeyCoding.contentBytesMax, max(0, (term.byteLimit - 3) / 2))
        if kept.count > limit { kept = kept.prefix(limit) }
        var key = prefix
        let start = key.count
        key.append(KeyCoding.textTag)
        for byte in kept {
            key.append(byte)
            if byte == 0 { key.append(KeyCoding.escapedZero) }
        }
        if term.isDescending { for index in start..<key.count { key[index] = ~key[index] } }
        range.raiseLower(to: key)
        range.reduceUpper(to: KeyCoding.end(ofPrefix: key))
        return kept.count == bytes.count
    }
}

extension PredicateNode {
    /// The value that a test which an index may answer is about.
    var indexedPath: CompiledPath? {
        switch self {
        case .compare(let path, _, _), .isWithin(let path, _), .isIn(let path, _),
            .text(let path, _):
            path
        default: nil
        }
    }
}

/// And-terms by position. Those from 64 on are never in it: they are tested on the rows, whatever
/// an index says.
struct TermSet: Hashable {
    private var bits: UInt64 = 0

    init() {}

    /// All of so many.
    init(all count: Int) { bits = count >= 64 ? .max : 1 << UInt64(count) &- 1 }

    /// One position.
    init(_ position: Int) { insert(position) }

    var count: Int { bits.nonzeroBitCount }

    func contains(_ position: Int) -> Bool { position < 64 && bits >> UInt64(position) & 1 == 1 }

    mutating func insert(_ position: Int) {
        if position < 64 { bits |= 1 << UInt64(position) }
    }

    func isSubset(of other: TermSet) -> Bool { bits & ~other.bits == 0 }

    func union(_ other: TermSet) -> TermSet {
        var union = self
        union.bits |= other.bits
        return union
    }

    /// Of all terms, those that are not here.
    func others(_ tests: [PredicateNode]) -> [PredicateNode] {
        if count == tests.count { return [] }
        return tests.indices.filter { !contains($0) }.map { tests[$0] }
    }
}
