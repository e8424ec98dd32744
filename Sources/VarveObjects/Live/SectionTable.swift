// The sections of a live list: runs of objects with the same value of the first sort term.
//
// Invariants
// - Sections come in the list's order, each value once, none empty.
// - A step costs the objects that it touched, and one pass over the sections.
// - An index and rows that disagree, in a damaged store, are an error: more objects leave a section
//   than it has.

import VarveBase
import VarveRecords

struct SectionTable {
    struct Section {
        let value: StoredValue
        var count: Int
    }

    private(set) var sections: [Section] = []
    private let isDescending: Bool
    /// The position of each section's first object.
    private(set) var starts: [Int] = []

    init(isDescending: Bool) { self.isDescending = isDescending }

    /// The section that a position of the list is in, and the position in it.
    func place(of offset: Int) -> (section: Int, item: Int) {
        let section = max(0, starts.firstPlace { $0 > offset } - 1)
        return (section, offset - (starts.isEmpty ? 0 : starts[section]))
    }

    /// Counts objects in or out. Returns which sections ended, by their old places, and which
    /// began, by their new ones.
    mutating func apply(
        _ entries: [LiveEntry]
    ) throws(RecordError) -> (ended: [Int], begun: [Int]) {
        var changes: [(value: StoredValue, count: Int)] = []
        for entry in entries {
            if entry.old != nil, let value = entry.oldKey?.values.first {
                changes.append((value, -1))
            }
            if entry.new != nil, let value = entry.newKey?.values.first {
                changes.append((value, 1))
            }
        }
        return try add(changes)
    }

    mutating func add(
        _ changes: [(value: StoredValue, count: Int)]
    ) throws(RecordError) -> (ended: [Int], begun: [Int]) {
        let sorted = changes.sorted { precedes($0.value, $1.value) }
        var result: [Section] = []
        result.reserveCapacity(sections.count)
        var (ended, begun): ([Int], [Int]) = ([], [])
        var (old, next) = (0, 0)
        while old < sections.count || next < sorted.count {
            if next == sorted.count
                || old < sections.count && precedes(sections[old].value, sorted[next].value)
            {
                result.append(sections[old])
                old += 1
                continue
            }
            let value = sorted[next].value
            let isKnown = old < sections.count && !precedes(value, sections[old].value)
            var section = isKnown ? sections[old] : Section(value: value, count: 0)
            while next < sorted.count, !precedes(value, sorted[next].value) {
                section.count += sorted[next].count
                next += 1
            }
            if section.count < 0 {
                throw .invalidRequest("the index of a sectioned list does not agree with its rows")
            }
            if section.count == 0 {
                if isKnown { ended.append(old) }
            } else {
                if !isKnown { begun.append(result.count) }
                result.append(section)
            }
            if isKnown { old += 1 }
        }
        sections = result
        count()
        return (ended, begun)
    }

    private mutating func count() {
        var before = 0
        starts = sections.map { section in
            defer { before += section.count }
            return before
        }
    }

    private func precedes(_ left: StoredValue, _ right: StoredValue) -> Bool {
        isDescending ? StoredOrder.precedes(right, left) : StoredOrder.precedes(left, right)
    }
}
