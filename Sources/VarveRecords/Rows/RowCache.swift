// The rows that all contexts of a container share (docs/Architecture.md, "Caches").
//
// Invariants
// - One mutex; nothing is read from the store and no caller's code runs while it is held.
// - An entry is found by object ID and commit; see RowCacheState for the intervals.
// - Blob bytes and values outside their rows are never here: a row does not contain them.
// - What lists read ahead has a lock and a budget of its own.

import Synchronization
public import VarveBase
import VarveFormat

#if VARVE_THREAD_SANITIZER
/// In the whole module: the thread sanitizer sees nothing of the other one.
typealias Mutex = TracedMutex
#endif

/// Figures of a row cache. "Bytes" are the rows' bytes plus 96 for keeping each.
public struct RowCacheStatistics: Hashable, Sendable {
    /// Rows in the cache; versions of one object count one each.
    public var rows = 0
    /// What they weigh.
    public var bytes = 0
    /// Rows that an object pins.
    public var pinnedRows = 0
    /// What those weigh.
    public var pinnedBytes = 0
    /// Rows that were asked for and there.
    public var hits = 0
    /// Rows that were asked for and not there.
    public var misses = 0
    /// Rows that had to go to keep the budget.
    public var evictions = 0
    /// Bytes of rows that lists have read ahead, not among `bytes`.
    public var readAheadBytes = 0

    /// All zero.
    public init() {}
}

/// The rows that all contexts of a container share. Every call costs O(1) per row; a commit of more
/// rows than the cache has costs O(log changes) per row of the cache.
public final class RowCache: Sendable {
    private let state: Mutex<RowCacheState>
    private let ahead = Mutex(RowsAheadShelf())

    /// A cache that keeps at most `budgetBytes` of rows that no object pins.
    init(budgetBytes: Int, published: CommitNumber) {
        state = Mutex(RowCacheState(budget: max(0, budgetBytes), published: published))
    }

    /// Present figures.
    public var statistics: RowCacheStatistics {
        var figures = state.withLock { $0.statistics }
        figures.readAheadBytes = ahead.withLock { $0.byteCount }
        return figures
    }

    /// Bytes of rows without pins that the cache keeps.
    public var budgetBytes: Int { state.withLock { $0.budget } }

    /// Whether a row of the object is in the cache, in any version.
    public func contains(_ id: ObjectID) -> Bool {
        state.withLock { $0.contains(id) }
    }

    // MARK: Pins

    /// Keeps a row in the cache until `unpin`. Pins are of rows that snapshots of this cache's
    /// store gave: a row has the links of one cache.
    public func pin(_ row: CachedRow) {
        state.withLock { $0.pin(RowLink(row)) }
    }

    /// Takes back one pin; may evict the row at once.
    public func unpin(_ row: CachedRow) {
        state.withLock { $0.unpin(RowLink(row)) }
    }

    /// Takes back one pin each.
    public func unpin(_ rows: [CachedRow]) {
        state.withLock { state in for row in rows { state.unpin(RowLink(row)) } }
    }

    /// Takes back one pin of each row that nobody has taken.
    public func unpin(_ rows: RowList) {
        if rows.isEmpty { return }
        state.withLock { state in
            rows.storage.forEach(soon: { $0.foresee() }, { state.unpin($0) })
        }
    }

    /// Takes back one pin each.
    public func unpin(_ rows: borrowing EndedRows) {
        state.withLock { state in
            rows.forEach(soon: { $0.foresee() }, { state.unpin($0) })
        }
    }

    /// Evicts every row that is not pinned, and what was read ahead, as under memory pressure.
    public func trim() {
        state.withLock { $0.trim() }
        ahead.withLock { $0.removeAll() }
    }

    // MARK: Read ahead

    /// What a list has read ahead, if it is still there.
    public func rowsAhead(of list: ObjectIdentifier) -> RowsAhead? {
        ahead.withLock { $0.rows(of: list) }
    }

    /// Bytes of rows that all lists together may have read ahead: twice those of the row cache. A
    /// pass over a store that is larger than its caches restores nearly all pages of an entity,
    /// however many of its rows it wants: half as many passes are half the work.
    public var readAheadBytesMax: Int {
        let (twice, overflow) = budgetBytes.multipliedReportingOverflow(by: 2)
        return overflow ? .max : twice
    }

    /// Bytes that a list may read ahead: an equal part for each list that has something.
    public func roomAhead(for list: ObjectIdentifier) -> Int {
        let budget = readAheadBytesMax
        return budget / ahead.withLock { $0.count(with: list) }
    }

    /// Makes room for what a list is about to read ahead.
    public func makeRoomAhead(_ bytes: Int, for list: ObjectIdentifier) {
        let budget = readAheadBytesMax
        ahead.withLock { $0.makeRoom(bytes, for: list, upTo: budget) }
    }

    /// Keeps what a list has read ahead, in the place of what it read before.
    public func keep(_ rows: RowsAhead, of list: ObjectIdentifier) {
        let budget = readAheadBytesMax
        ahead.withLock { $0.keep(rows, of: list, upTo: budget) }
    }

    /// Lets go what a list has read ahead.
    public func dropRowsAhead(of list: ObjectIdentifier) {
        ahead.withLock { $0.drop(list) }
    }

    /// Whether more than one in eight of `ids` have no row here. Warms none.
    public func misses(_ ids: ArraySlice<ObjectID>, at commit: CommitNumber) -> Bool {
        let most = ids.count / 8
        var missing = 0
        return state.withLock { state in
            for id in ids where !state.has(id, at: commit.rawValue) {
                missing += 1
                if missing > most { return true }
            }
            return false
        }
    }

    // MARK: For snapshots and the store

    func find(_ id: ObjectID, at commit: CommitNumber, pin: Bool, counts: Bool) -> CachedRow? {
        state.withLock { state in
            let row = state.find(id, at: commit.rawValue, pin: pin)
            if counts {
                if row.isNone { state.statistics.misses += 1 } else { state.statistics.hits += 1 }
            }
            return row.counted
        }
    }

    /// Looks up many rows under one lock; returns the positions that are missing.
    func find(
        _ ids: [ObjectID],
        at commit: CommitNumber,
        pin: Bool,
        counts: Bool,
        into rows: RowListStorage
    ) -> [Int] {
        state.withLock { state in
            let missing = state.find(ids, at: commit.rawValue, pin: pin, into: rows)
            if counts {
                state.statistics.hits += ids.count - missing.count
                state.statistics.misses += missing.count
            }
            return missing
        }
    }

    func insert(_ row: CachedRow, readAt commit: CommitNumber, pin: Bool) -> CachedRow {
        state.withLock { state in
            state.insert(RowLink(row), readAt: commit.rawValue, pin: pin).counted ?? row
        }
    }

    /// Puts in rows that are likely to be wanted.
    func insert(_ rows: [CachedRow], readAt commit: CommitNumber) {
        state.withLock { state in
            for row in rows {
                _ = state.insert(RowLink(row), readAt: commit.rawValue, pin: false)
            }
        }
    }

    /// Puts in the rows that were read for some positions of a list; where one is there already,
    /// the list gets that one.
    func insert(_ rows: RowListStorage, _ places: [Int], readAt commit: CommitNumber, pin: Bool) {
        state.withLock { state in
            if pin { state.reserve(places.count) }
            for (index, place) in places.enumerated() {
                let coming = index + ComingMemory.rowsAhead
                if coming < places.count {
                    let row = rows.link(places[coming])
                    if !row.isNone { state.foresee(row.id) }
                }
                let row = rows.link(place)
                if row.isNone { continue }
                let kept = state.insert(row, readAt: commit.rawValue, pin: pin)
                if kept == row { continue }
                rows.drop(place)
                rows.put(kept: kept.kept(), place)
            }
        }
    }

    /// Warms the rows of `ids` that are here, in order. A pinned row weighs nothing.
    /// - Returns: the IDs without a row here, and what the others weigh.
    func warm(
        _ ids: ArraySlice<ObjectID>,
        at commit: CommitNumber
    ) -> (missing: [ObjectID], bytes: Int) {
        state.withLock { state in
            var missing: [ObjectID] = []
            var bytes = 0
            for id in ids {
                if let cost = state.warm(id, at: commit.rawValue) {
                    bytes += cost
                } else {
                    missing.append(id)
                }
            }
            return (missing, bytes)
        }
    }

    func publish(_ commit: CommitNumber, changed: [ObjectIDSet], schemaChanged: Bool) {
        if schemaChanged { ahead.withLock { $0.removeAll() } }
        state.withLock { state in
            if schemaChanged {
                state.publishSchemaChange(commit.rawValue)
            } else {
                state.publish(commit.rawValue, changed: changed)
            }
            if Invariants.areChecked { state.checkIfDue() }
        }
    }
}
