// Running a plan: object IDs in order, window cut out, rows read only where the plan says so.
//
// Invariants
// - A plan that is ordered and has no residual reads entries only: as many as it returns, and it
//   finds its first one by position or key in O(log n).
// - Rows are read in batches; a batch is one pass over the entity's tree.

import VarveBase
import VarveEngine
import VarveFormat

/// The part of an order that a request wants.
struct FetchWindow {
    var limit: Int?
    var offset = 0
    var after: KeysetPosition?
    var before: KeysetPosition?

    /// A request for what stands before a place is answered from that place backward.
    var isBackward: Bool { before != nil && after == nil && (limit != nil || offset > 0) }
}

/// Gets a row that passes: its object, the commit that wrote it, and what it holds. False ends it.
typealias PassingBody = (
    ObjectID, CommitNumber, RowLayout, Span<UInt8>
) throws(RecordError) -> Bool

/// Runs one plan on one state of the store.
struct PlanExecutor<Source: RecordSource> {
    let reader: RecordReader<Source>
    let plan: FetchPlan

    /// The object IDs of a window, in the order of the request.
    func ids(_ window: FetchWindow) throws(RecordError) -> [ObjectID] {
        if window.limit == 0 { return [] }
        if plan.groupedTerms > 0 { return try grouped(window) }
        if !plan.isOrdered { return try sorted(window) }
        switch plan.access {
        case .nothing: return []
        case .objects(let ids): return try pick(ids, window)
        case .set(let set): return try pick(self.ids(of: set), window)
        case .rows: return try scan(plan.entity.tree, [KeyRange(prefix: [])], window)
        case .index(let index, let ranges): return try scan(index.tree, ranges, window)
        }
    }

    /// Number of objects that match, whatever the window.
    func count() throws(RecordError) -> Int {
        guard plan.residual != nil else {
            switch plan.access {
            case .nothing: return 0
            case .objects(let ids): return try existing(ids).count
            case .set(let set): return try ids(of: set).count
            case .rows, .index: return Int(clamping: plan.candidates)
            }
        }
        var count = 0
        if case .rows = plan.access, let test = plan.inPlaceTest {
            let whole = [KeyRange(prefix: [])]
            try eachPassing(test, whole, goesBack: false, reading: .none) { _, _, _, _ in
                count += 1
                return true
            }
            return count
        }
        if plan.isCovered, case .index(let index, let ranges) = plan.access {
            try eachCovered(index, ranges, goesBack: false) { _ in
                count += 1
                return true
            }
        } else {
            try eachMatch { _ in count += 1 }
        }
        return count
    }

    // MARK: Ordered by the tree

    private func scan(
        _ tree: TreeID,
        _ ranges: [KeyRange],
        _ window: FetchWindow
    ) throws(RecordError) -> [ObjectID] {
        let goesBack = plan.isReversed != window.isBackward
        var ranges = try clip(ranges, window)
        if goesBack { ranges.reverse() }
        var result: [ObjectID] = []
        var skip = window.offset
        func take(_ id: ObjectID) -> Bool {
            if skip > 0 { skip -= 1 } else { result.append(id) }
            return result.count != window.limit
        }
        if plan.isCovered, case .index(let index, _) = plan.access {
            try eachCovered(index, ranges, goesBack: goesBack) { row in take(row.objectID) }
        } else if let residual = plan.residual, case .rows = plan.access {
            if let test = plan.inPlaceTest {
                try eachPassing(test, ranges, goesBack: goesBack, reading: .none) { id, _, _, _ in
                    take(id)
                }
            } else {
                let origin = RowOrigin(reader.source, plan.entity)
                let resolver = SourceResolver(reader)
                try eachRow(ranges, goesBack: goesBack) { (id, bytes) throws(RecordError) in
                    try !residual.matches(SourceRow(origin, id, bytes), resolver) || take(id)
                }
            }
        } else if let residual = plan.residual {
            let resolver = SourceResolver(reader)
            let batch = window.limit == nil ? 1_024 : 64
            try eachBatch(tree, ranges, goesBack: goesBack, of: batch, upTo: 1_024) {
                (ids) throws(RecordError) in
                for id in try matching(ids, residual, resolver) where !take(id) { return false }
                return true
            }
        } else {
            try scanTaking(tree, ranges, window, goesBack, &result)
        }
        if window.isBackward { result.reverse() }
        return result
    }

    /// Cuts the ranges at the places of the window.
    func clip(
        _ ranges: [KeyRange],
        _ window: FetchWindow
    ) throws(RecordError) -> [KeyRange] {
        if window.after == nil, window.before == nil { return ranges }
        let first = plan.isReversed ? window.before : window.after
        let last = plan.isReversed ? window.after : window.before
        var lower: [UInt8] = []
        if let first {
            guard let cut = plan.cut(at: first, isBehind: true) else { return [] }
            lower = cut
        }
        let upper = last.flatMap { plan.cut(at: $0, isBehind: false) }
        return ranges.map { range in
            var range = range
            range.raiseLower(to: lower)
            range.reduceUpper(to: upper)
            return range
        }.filter { !$0.isEmpty }
    }

    private func scanTaking(
        _ tree: TreeID,
        _ ranges: [KeyRange],
        _ window: FetchWindow,
        _ goesBack: Bool,
        _ result: inout [ObjectID]
    ) throws(RecordError) {
        var skip = UInt64(window.offset)
        var left = window.limit ?? Int.max
        if window.limit == nil || window.limit.map({ UInt64($0) > plan.candidates }) ?? false {
            result.reserveCapacity(Int(clamping: plan.candidates))
        } else {
            result.reserveCapacity(left)
        }
        for range in ranges where left > 0 {
            var cursor = try reader.cursor(tree)
            var start: UInt64?
            if skip > 0 {
                let (lower, upper) = try reader.bounds(tree, range)
                if upper - lower <= skip {
                    skip -= upper - lower
                    continue
                }
                start = goesBack ? upper - 1 - skip : lower + skip
                skip = 0
            }
            let taken = try reader.engine { () throws(EngineError) in
                guard try Self.seek(&cursor, range, start, goesBack) else { return 0 }
                return try cursor.takeObjectIDs(
                    limit: left,
                    isForward: !goesBack,
                    end: goesBack ? range.lower : range.upper,
                    into: &result
                )
            }
            left -= taken
            reader.counters.entriesScanned.count(taken)
        }
    }

    static func seek(
        _ cursor: inout TreeCursor,
        _ range: KeyRange,
        _ position: UInt64?,
        _ goesBack: Bool
    ) throws(EngineError) -> Bool {
        if let position { return try cursor.seek(position: position) }
        if !goesBack {
            return range.lower.isEmpty
                ? try cursor.first() : try cursor.seek(atOrAfter: range.lower)
        }
        guard let upper = range.upper else { return try cursor.last() }
        return try cursor.seek(before: upper)
    }

    // MARK: Going through ranges of a tree

    private enum ScanStep { case goesOn, rangeEnds, isEnough }

    /// The loop of every scan: `step` gets a cursor on an entry and the key that ends the range. It
    /// takes what it wants and moves on.
    private func scanRanges(
        _ tree: TreeID,
        _ ranges: [KeyRange],
        goesBack: Bool,
        _ step: (inout TreeCursor, [UInt8]?) throws(RecordError) -> ScanStep
    ) throws(RecordError) {
        for range in ranges {
            var cursor = try reader.cursor(tree)
            _ = try reader.engine { () throws(EngineError) in
                try Self.seek(&cursor, range, nil, goesBack)
            }
            let end = goesBack ? range.lower : range.upper
            steps: while cursor.isValid {
                switch try step(&cursor, end) {
                case .goesOn: break
                case .rangeEnds: break steps
                case .isEnough: return
                }
            }
        }
    }

    /// Calls `body`, which does not move the cursor, at each entry until it says false.
    func eachEntry(
        _ tree: TreeID,
        _ ranges: [KeyRange],
        goesBack: Bool,
        _ body: (inout TreeCursor) throws(RecordError) -> Bool
    ) throws(RecordError) {
        try scanRanges(tree, ranges, goesBack: goesBack) { (cursor, end) throws(RecordError) in
            if let end {
                let order = cursor.compareKey(with: end)
                if goesBack ? order < 0 : order >= 0 { return .rangeEnds }
            }
            guard try body(&cursor) else { return .isEnough }
            _ = try reader.engine { () throws(EngineError) in
                goesBack ? try cursor.previous() : try cursor.next()
            }
            return .goesOn
        }
    }

    /// Calls `body` with a copy of each row of the entity until it says false.
    private func eachRow(
        _ ranges: [KeyRange],
        goesBack: Bool,
        _ body: (ObjectID, [UInt8]) throws(RecordError) -> Bool
    ) throws(RecordError) {
        var count = 0
        defer { reader.counters.rowsScanned.count(count) }
        try eachEntry(plan.entity.tree, ranges, goesBack: goesBack) {
            (cursor) throws(RecordError) in
            count += 1
            let (id, row) = try reader.engine { () throws(EngineError) in
                (try cursor.trailingObjectID(), try cursor.row())
            }
            return try body(id, row.bytes)
        }
    }

    /// Calls `body` with each row that passes, read where its leaf holds it, until it says false.
    /// The row may have no more than the columns that `body` reads. The numbers of a column go to
    /// `numbers` instead, many at a time, where a leaf can.
    func eachPassing(
        _ test: InPlaceTest,
        _ ranges: [KeyRange],
        goesBack: Bool,
        reading columns: RowColumns,
        numbers: (column: ColumnID, body: NumbersBody)? = nil,
        _ body: PassingBody
    ) throws(RecordError) {
        let reading = test.reading(columns, numbers: numbers?.column)
        var count = 0
        var lent = 0
        defer {
            reader.counters.rowsScanned.count(count)
            if count > lent { reader.counters.rowsRuledOut.count(count - lent) }
        }
        func many(_ kind: LeafNumberKind, _ values: Span<Int64>, _ nulls: Int) {
            lent += values.count + nulls
            numbers?.body(kind, values, nulls)
        }
        func visit(
            _ id: ObjectID,
            _ version: CommitNumber,
            _ row: Span<UInt8>,
            _ isPassing: Bool
        ) throws(RecordError) -> Bool {
            let layout: RowLayout
            do throws(FormatError) { layout = try RowLayout(row) } catch { throw .format(error) }
            if !isPassing { guard try passes(test, id, layout, row) else { return true } }
            return try body(id, version, layout, row)
        }
        try scanRanges(plan.entity.tree, ranges, goesBack: goesBack) {
            (cursor, end) throws(RecordError) in
            var outcome = Result<Bool, RecordError>.success(true)
            try reader.engine { () throws(EngineError) in
                try cursor.visitRows(
                    reading,
                    isForward: !goesBack,
                    end: end,
                    &count,
                    numbers: numbers == nil ? nil : many
                ) { id, version, row, isPassing in
                    lent += 1
                    do throws(RecordError) {
                        let goesOn = try visit(id, version, row, isPassing)
                        if !goesOn { outcome = .success(false) }
                        return goesOn
                    } catch {
                        outcome = .failure(error)
                        return false
                    }
                }
            }
            return try outcome.get() ? .rangeEnds : .isEnough
        }
    }

    /// Whether a row passes; where its bytes do not say, what is kept outside it is read.
    @inline(__always)
    private func passes(
        _ test: InPlaceTest,
        _ id: ObjectID,
        _ layout: RowLayout,
        _ row: Span<UInt8>
    ) throws(RecordError) -> Bool {
        if let passes = try test.matches(layout, row) { return passes }
        let values = try SourceRow(
            RowOrigin(reader.source, plan.entity),
            id,
            ByteReader.copy(row, 0..<row.count)
        )
        return try test.node.matches(values, SourceResolver(reader))
    }

    /// Calls `body` with the objects of the entries, `first` of them, then twice as many each time
    /// up to `most`, until it says false.
    func eachBatch(
        _ tree: TreeID,
        _ ranges: [KeyRange],
        goesBack: Bool,
        of first: Int,
        upTo most: Int,
        _ body: ([ObjectID]) throws(RecordError) -> Bool
    ) throws(RecordError) {
        var size = first
        try scanRanges(tree, ranges, goesBack: goesBack) { (cursor, end) throws(RecordError) in
            var ids: [ObjectID] = []
            let taken = try reader.engine { () throws(EngineError) in
                try cursor.takeObjectIDs(limit: size, isForward: !goesBack, end: end, into: &ids)
            }
            reader.counters.entriesScanned.count(taken)
            size = min(size * 2, most)
            return try body(ids) ? .goesOn : .isEnough
        }
    }

    // MARK: Given objects

    /// Cuts the window out of objects that are ascending. Rows are read in batches, and no more of
    /// them than a limit needs.
    private func pick(_ ids: [ObjectID], _ window: FetchWindow) throws(RecordError) -> [ObjectID] {
        let sort = plan.sort
        func precedes(_ left: ObjectID, _ right: ObjectID) -> Bool {
            sort.isTieDescending ? right < left : left < right
        }
        var ids = plan.isReversed ? ids.reversed() : ids
        if let after = window.after { ids.removeAll { !precedes(after.object, $0) } }
        if let before = window.before { ids.removeAll { !precedes($0, before.object) } }
        if case .set = plan.access, plan.residual == nil { return window.cut(ids) }
        if window.isBackward { ids.reverse() }
        let needed = window.limit.map { $0.addingReportingOverflow(window.offset) }
        let most = needed.map { $0.overflow ? Int.max : $0.partialValue } ?? Int.max
        let resolver = SourceResolver(reader)
        var found: [ObjectID] = []
        var start = 0
        var size = window.limit == nil ? 1_024 : 64
        while start < ids.count, found.count < most {
            let batch = Array(ids[start..<min(ids.count, start + size)])
            if let residual = plan.residual {
                found += try matching(batch, residual, resolver)
            } else {
                found += try existing(batch)
            }
            start += batch.count
            size = min(size * 2, 1_024)
        }
        if window.isBackward { found.reverse() }
        return window.cut(found)
    }

    func existing(_ ids: [ObjectID]) throws(RecordError) -> [ObjectID] {
        let rows = try reader.storedRows(plan.entity, ids)
        reader.counters.rowsScanned.count(ids.count)
        return ids.indices.filter { rows[$0] != nil }.map { ids[$0] }
    }

    func matching(
        _ ids: [ObjectID],
        _ residual: PredicateNode,
        _ resolver: SourceResolver<Source>
    ) throws(RecordError) -> [ObjectID] {
        var result: [ObjectID] = []
        let rows = try reader.storedRows(plan.entity, ids)
        let origin = RowOrigin(reader.source, plan.entity)
        reader.counters.rowsScanned.count(ids.count)
        for (index, id) in ids.enumerated() {
            guard let row = rows[index] else { continue }
            let values = try SourceRow(origin, id, row.bytes)
            if try residual.matches(values, resolver) { result.append(id) }
        }
        return result
    }

    // MARK: Every match

    /// Calls `body` with each object that passes, in no particular order.
    func eachMatch(
        _ body: (SourceRow<Source>) throws(RecordError) -> Void
    ) throws(RecordError) {
        let resolver = SourceResolver(reader)
        let source = reader.source
        let origin = RowOrigin(source, plan.entity)
        let residual = plan.residual
        func test(_ id: ObjectID, _ bytes: [UInt8]) throws(RecordError) {
            let values = try SourceRow(origin, id, bytes)
            if let residual, try !residual.matches(values, resolver) { return }
            try body(values)
        }
        func testAll(_ ids: [ObjectID]) throws(RecordError) {
            let rows = try reader.storedRows(plan.entity, ids)
            reader.counters.rowsScanned.count(ids.count)
            for (index, id) in ids.enumerated() {
                if let row = rows[index] { try test(id, row.bytes) }
            }
        }
        switch plan.access {
        case .nothing: return
        case .objects(let ids): try testAll(ids)
        case .set(let set):
            let ids = try ids(of: set)
            for start in stride(from: 0, to: ids.count, by: 4_096) {
                try testAll(Array(ids[start..<min(ids.count, start + 4_096)]))
            }
        case .rows:
            if residual != nil, let test = plan.inPlaceTest {
                // Only rows that pass are copied.
                try eachPassing(test, [KeyRange(prefix: [])], goesBack: false, reading: .all) {
                    (id, _, _, row) throws(RecordError) in
                    let bytes = ByteReader.copy(row, 0..<row.count)
                    try body(SourceRow(origin, id, bytes))
                    return true
                }
                return
            }
            try eachRow([KeyRange(prefix: [])], goesBack: false) {
                (id, bytes) throws(RecordError) in
                try test(id, bytes)
                return true
            }
        case .index(let index, let ranges):
            // Each batch in the order of the rows.
            try eachBatch(index.tree, ranges, goesBack: false, of: 4_096, upTo: 4_096) {
                (ids) throws(RecordError) in
                try testAll(ids.sorted())
                return true
            }
        }
    }
}

extension FetchWindow {
    /// Cuts limit and offset out of a list that is in order and clipped already.
    func cut(_ ids: [ObjectID]) -> [ObjectID] {
        if limit == nil, offset == 0 { return ids }
        if isBackward {
            let rest = ids.dropLast(offset)
            return Array(rest.suffix(limit ?? rest.count))
        }
        let rest = ids.dropFirst(offset)
        return Array(rest.prefix(limit ?? rest.count))
    }
}
