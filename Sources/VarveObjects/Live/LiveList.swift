// One list that follows the store, by IDs: where each step is worked out.
//
// Invariants
// - What a step changes is found from the objects that it touched. The list itself is never gone
//   through: their places are looked up.
// - `list` shows the feed's commit with the edits of the last step. Nothing of it changes while the
//   next step is worked out.

import VarveBase
import VarveRecords

final class LiveList {
    private(set) var request: ListRequest
    let entities: Set<EntityID>
    private let context: ManagedObjectContext
    private let feed: LiveFeed
    private(set) var list: ObjectList
    /// Nil: the list has no sections.
    private(set) var sections: SectionTable?
    /// The unsaved values of the objects that edits reach, as they are shown.
    private var shownEdits: [ObjectID: [StoredValue?]]

    /// What a step came to.
    struct Outcome {
        let list: ObjectList
        let sections: SectionTable?
        fileprivate let edits: [ObjectID: [StoredValue?]]
        /// The request, if what is inside its filter has changed.
        fileprivate var request: ListRequest?
        /// Nil: the list is another one as a whole.
        let diff: LiveDiff?
        var endedSections: [Int] = []
        var begunSections: [Int] = []

        /// Whether there is anything to tell.
        var isVisible: Bool {
            diff?.isEmpty != true || !endedSections.isEmpty || !begunSections.isEmpty
        }
    }

    init(
        _ request: ListRequest,
        hasSections: Bool,
        _ context: ManagedObjectContext,
        _ feed: LiveFeed
    ) throws(StoreError) {
        (self.request, self.context, self.feed) = (request, context, feed)
        entities = request.entities(context)
        if request.includesPending { context.processPendingDeletions() }
        let snapshot = try feed.begin()
        let made = try context.container.translating { () throws(RecordError) in
            let list = try context.list(request, snapshot, following: feed)
            let sections = hasSections ? try Self.sections(of: list, request, snapshot) : nil
            return (list, sections)
        }
        (list, sections) = made
        shownEdits = Self.edits(of: list.patch.reached, context)
    }

    var hasEdits: Bool { !list.patch.reached.isEmpty || request.dependsOnEdits }

    // MARK: A step

    /// What the list is after a step; nil: the same as before.
    func outcome(of step: LiveStep) throws(RecordError) -> Outcome? {
        let old = list
        // 0. Requests inside the filter: with other objects in their place it is another list.
        if let newer = try request.renewed(context, step.newer) {
            return try replacement(step.newer, newer)
        }
        // 1. Which objects may have another place: by commits, by edits before, by edits now.
        guard let affected = try step.affected(request.paths, request.model) else {
            return try replacement(step.newer)
        }
        let hasEdits = request.includesPending && context.hasEdits
        if affected.isEmpty, !hasEdits, old.patch.reached.isEmpty { return nil }
        // 2. Where commits have them, and where they had them.
        var stored: [ObjectID: (old: KeysetPosition?, new: KeysetPosition?)] = [:]
        for id in affected {
            let rows = try step.row(request.model.record.id, id)
            let before = try request.place(rows.old, step.older)
            let after = try request.place(rows.new, step.newer)
            if before != nil || after != nil { stored[id] = (before, after) }
        }
        if stored.isEmpty, !hasEdits, old.patch.reached.isEmpty { return nil }
        // 3. The stored list, then the edits over it.
        guard let source = try source(after: stored, step) else {
            return try replacement(step.newer)
        }
        let patch = try context.patch(request, over: source, step.newer)
        let new = ObjectList(source: source, patch: patch, window: request.window)
        // 4. The places of all of them in the list as it was shown and as it will be.
        let before = context.has(.liveForgetsEditsBefore) ? [] : old.patch.reached
        let candidates = Set(stored.keys).union(before).union(patch.reached)
        var entries = try entries(of: candidates, stored, old, new, step)
        let edits = Self.edits(of: patch.reached, context)
        for index in entries.indices where entries[index].old != nil && entries[index].new != nil {
            entries[index].isChanged = try isChanged(entries[index].id, edits, step)
        }
        // 5. What that is, told as positions.
        let diff = LiveDiff(entries, hasSections: sections != nil)
        var sections = sections
        let borders = try sections?.apply(entries)
        return Outcome(
            list: new,
            sections: sections,
            edits: edits,
            diff: diff,
            endedSections: borders?.ended ?? [],
            begunSections: borders?.begun ?? []
        )
    }

    /// The whole list anew, after steps that were missed.
    func renewal(_ snapshot: RecordSnapshot) throws(RecordError) -> Outcome {
        try replacement(snapshot, request.renewed(context, snapshot))
    }

    /// The whole list anew.
    private func replacement(
        _ snapshot: RecordSnapshot,
        _ newer: ListRequest? = nil
    ) throws(RecordError) -> Outcome {
        let request = newer ?? self.request
        let list = try context.list(request, snapshot, following: feed)
        return Outcome(
            list: list,
            sections: sections == nil ? nil : try Self.sections(of: list, request, snapshot),
            edits: Self.edits(of: list.patch.reached, context),
            request: newer,
            diff: nil
        )
    }

    func show(_ outcome: Outcome) {
        list = outcome.list
        sections = outcome.sections
        shownEdits = outcome.edits
        if let newer = outcome.request { request = newer }
    }

    /// The stored list after a step; nil: it is to be made anew.
    private func source(
        after stored: [ObjectID: (old: KeysetPosition?, new: KeysetPosition?)],
        _ step: LiveStep
    ) throws(RecordError) -> ListSource? {
        let changed = stored.values.filter { !isSamePlace($0.old, $0.new) }
        if changed.isEmpty { return list.source }
        guard var ids = list.source.chunks else {
            guard let positions = try step.newer.positioned(request.query) else { return nil }
            return ListSource(positions, request.query, following: feed)
        }
        var removed: [Int] = []
        for (old, _) in changed {
            guard let old else { continue }
            let rank = try request.rank(of: old, in: list.source, step.older)
            // Rows that others are sorted by could not be read as they were: all anew.
            guard rank < ids.count, ids[rank] == old.object else { return nil }
            removed.append(rank)
        }
        for rank in removed.sorted(by: >) { ids.remove(at: rank) }
        let added = changed.compactMap(\.new).sorted { request.sort.precedes($0, $1) }
        for place in added {
            let rank = try (0..<ids.count).firstPlace { index throws(RecordError) in
                try !request.sort.precedes(request.key(of: ids[index], step.newer), place)
            }
            ids.insert(place.object, at: rank)
        }
        return ListSource(ids, request.query)
    }

    private func entries(
        of candidates: Set<ObjectID>,
        _ stored: [ObjectID: (old: KeysetPosition?, new: KeysetPosition?)],
        _ old: ObjectList,
        _ new: ObjectList,
        _ step: LiveStep
    ) throws(RecordError) -> [LiveEntry] {
        let oldInserted = keys(of: old.patch)
        let newInserted = keys(of: new.patch)
        var entries: [LiveEntry] = []
        for id in candidates {
            var entry = LiveEntry(id: id)
            var places = stored[id] ?? (nil, nil)
            if stored[id] == nil { places = try unaffected(id, old, new, step) }
            entry.oldKey = old.patch.reached.contains(id) ? oldInserted[id] : places.old
            entry.newKey = new.patch.reached.contains(id) ? newInserted[id] : places.new
            if entry.oldKey != nil || entry.newKey != nil { entries.append(entry) }
        }
        try addNeighbours(of: candidates, old, new, step, to: &entries)
        for index in entries.indices {
            if let key = entries[index].oldKey {
                entries[index].old = old.shown.place(
                    of: try request.offset(of: key, in: old, step.older)
                )
            }
            if let key = entries[index].newKey {
                entries[index].new = new.shown.place(
                    of: try request.offset(of: key, in: new, step.newer)
                )
            }
        }
        return entries
    }

    private func keys(of patch: ListPatch) -> [ObjectID: KeysetPosition] {
        Dictionary(uniqueKeysWithValues: patch.inserted.map { ($0.key.object, $0.key) })
    }

    /// The place of an object that only edits reach: the same in both commits.
    private func unaffected(
        _ id: ObjectID,
        _ old: ObjectList,
        _ new: ObjectList,
        _ step: LiveStep
    ) throws(RecordError) -> (old: KeysetPosition?, new: KeysetPosition?) {
        if old.patch.reached.contains(id), new.patch.reached.contains(id) { return (nil, nil) }
        let rows = try step.row(request.model.record.id, id)
        return (
            try request.place(rows.old, step.older), try request.place(rows.new, step.newer)
        )
    }

    /// At the ends of a window others come in or go out: at most as many as objects were touched.
    private func addNeighbours(
        of candidates: Set<ObjectID>,
        _ old: ObjectList,
        _ new: ObjectList,
        _ step: LiveStep,
        to entries: inout [LiveEntry]
    ) throws(RecordError) {
        guard !request.window.isWhole, !context.has(.liveForgetsNeighbours) else { return }
        var known = candidates
        for (list, snapshot) in [(old, step.older), (new, step.newer)] {
            for edge in [list.shown.lowerBound, list.shown.upperBound] {
                let first = max(0, edge - candidates.count)
                let near = first..<max(first, min(list.fullCount, edge + candidates.count))
                if near.isEmpty { continue }
                for id in try list.fullIDs(near) where known.insert(id).inserted {
                    let key = try request.key(of: id, snapshot)
                    entries.append(LiveEntry(id: id, oldKey: key, newKey: key))
                }
            }
        }
    }

    // MARK: What is shown

    private static func edits(
        of reached: Set<ObjectID>,
        _ context: ManagedObjectContext
    ) -> [ObjectID: [StoredValue?]] {
        var edits: [ObjectID: [StoredValue?]] = [:]
        for id in reached {
            if let values = context.changed[id]?.storage.edits?.values { edits[id] = values }
        }
        return edits
    }

    /// Whether an object shows another value than before.
    private func isChanged(
        _ id: ObjectID,
        _ edits: [ObjectID: [StoredValue?]],
        _ step: LiveStep
    ) throws(RecordError) -> Bool {
        let (before, after) = (shownEdits[id], edits[id])
        let rows = try step.row(request.model.record.id, id)
        if before == nil, after == nil, rows.old?.version == rows.new?.version { return false }
        for (slot, property) in request.model.properties.enumerated() {
            guard let column = property.column else { continue }
            if before?[slot] == nil, after?[slot] == nil,
                rows.old?.version == rows.new?.version
            {
                continue
            }
            var (old, new) = (before?[slot], after?[slot])
            if old == nil { old = try Self.value(rows.old, column, step.older) }
            if new == nil { new = try Self.value(rows.new, column, step.newer) }
            if let old, let new, !old.isSame(as: new) { return true }
        }
        return false
    }

    private static func value(
        _ row: CachedRow?,
        _ column: ColumnID,
        _ snapshot: RecordSnapshot
    ) throws(RecordError) -> StoredValue {
        guard let row else { return .null }
        return try snapshot.value(of: row, column)
    }

    // MARK: Sections

    /// The sections of the window of a list.
    /// - Complexity: O(sections x log n).
    private static func sections(
        of list: ObjectList,
        _ request: ListRequest,
        _ snapshot: RecordSnapshot
    ) throws(RecordError) -> SectionTable {
        var table = SectionTable(isDescending: request.query.sort[0].isDescending)
        let key = { (id: ObjectID) throws(RecordError) in try request.key(of: id, snapshot) }
        var found: [(value: StoredValue, count: Int)] = []
        // Stored objects by runs; then the edited ones are counted out and in.
        var start = 0
        while start < list.source.count {
            guard let id = try list.source.ids(start..<start + 1).first else { break }
            let first = try key(id)
            let end = max(start + 1, try list.source.endOfRun(from: start, first, key))
            if let value = first.values.first { found.append((value, end - start)) }
            start = end
        }
        for rank in list.patch.removed {
            guard let id = try list.source.ids(rank..<rank + 1).first else { continue }
            if let value = try key(id).values.first { found.append((value, -1)) }
        }
        for (key, _) in list.patch.inserted {
            if let value = key.values.first { found.append((value, 1)) }
        }
        _ = try table.add(found)
        if request.window.isWhole { return table }
        // Cut the window out of the runs.
        let shown = list.shown
        let cut = zip(table.sections, table.starts).compactMap { section, start in
            let part = (start..<start + section.count).clamped(to: shown)
            return part.isEmpty ? nil : (section.value, part.count)
        }
        var windowed = SectionTable(isDescending: request.query.sort[0].isDescending)
        _ = try windowed.add(cut)
        return windowed
    }
}

extension Range<Int> {
    /// The position of an offset in the range; nil: it is outside.
    fileprivate func place(of offset: Int) -> Int? {
        contains(offset) ? offset - lowerBound : nil
    }
}
