// The row cache's tables: versions of one object, the order of use, recent changes.
//
// Invariants
// - An entry is the row of its object at every commit in [from, until); `until` is `open` while no
//   later change is known. Publishing a commit closes the entries it changed before anyone can see
//   it.
// - Versions of one object form a chain, newest first, with disjoint intervals.
// - A row that is here is either pinned or in the list of use; the list runs from warm to cold.
//   All links of both kinds stand in the rows themselves (`RowLink`).
// - Rows without pins weigh at most `budget` after every operation.

import Synchronization
import VarveBase

/// What the mutex of a row cache protects. Every operation costs O(1) per row, but for commits that
/// changed more rows than there are here: those cost O(log changes) per entry of the table, which
/// has up to eight times as many as there are objects.
struct RowCacheState: ~Copyable, Sendable {
    static let open = UInt64.max
    /// Changes remembered for rows that are filled from an older commit.
    static let recentMax = 16_384

    var budget: Int
    var statistics = RowCacheStatistics()
    private var heads = HeadTable()
    private var warmest = RowLink.none
    private var coldest = RowLink.none
    private var published: UInt64
    /// Changes after this commit are all in `recent`.
    private var knownSince: UInt64
    private var recent: [ObjectID: UInt64] = [:]
    /// What `checkIfDue` had counted at the last check.
    private var checked = 0
    /// Commits that it knows of.
    private var commits = 0

    init(budget: Int, published: CommitNumber) {
        self.budget = budget
        self.published = published.rawValue
        self.knownSince = published.rawValue
    }

    deinit {
        for entry in 0..<heads.capacity {
            var row = heads.row(at: entry)
            while !row.isNone {
                let older = row.older
                row.leave()
                row = older
            }
        }
    }

    // MARK: Finding and filling

    /// The row of an object at a commit, or none. It becomes the warmest, or gets a pin.
    mutating func find(_ id: ObjectID, at commit: UInt64, pin: Bool) -> RowLink {
        let row = row(of: id, at: commit)
        if !row.isNone { use(row, pin: pin) }
        return row
    }

    private mutating func use(_ row: RowLink, pin: Bool) {
        if pin { addPin(row) } else { warm(row) }
    }

    /// `find` for many objects, some dozens at a time: each of them waits for the memory of the
    /// table and of its row, and side by side they wait together.
    /// - Returns: the positions that are missing.
    mutating func find(
        _ ids: [ObjectID],
        at commit: UInt64,
        pin: Bool,
        into rows: RowListStorage
    ) -> [Int] {
        if statistics.rows == 0 { return Array(ids.indices) }
        var missing: [Int] = []
        var found: ContiguousArray<RowLink> = []
        found.reserveCapacity(Self.findAtOnce)
        var start = 0
        while start < ids.count {
            let end = min(start + Self.findAtOnce, ids.count)
            found.removeAll(keepingCapacity: true)
            for index in start..<end { heads.foresee(ids[index]) }
            for index in start..<end {
                let newest = heads[ids[index]]
                newest.foresee()
                found.append(newest)
            }
            for index in found.indices {
                let row = version(found[index], at: commit)
                if row.isNone {
                    missing.append(start &+ index)
                } else {
                    use(row, pin: pin)
                    rows.put(kept: row.kept(), start &+ index)
                }
            }
            start = end
        }
        return missing
    }

    private static let findAtOnce = 32

    /// Whether `find` would find one.
    func has(_ id: ObjectID, at commit: UInt64) -> Bool { !row(of: id, at: commit).isNone }

    private func row(of id: ObjectID, at commit: UInt64) -> RowLink {
        version(heads[id], at: commit)
    }

    /// The row that holds at a commit, in a chain that begins with the newest.
    private func version(_ newest: RowLink, at commit: UInt64) -> RowLink {
        var row = newest
        while !row.isNone, commit >= row.until || row.version > commit { row = row.older }
        return row
    }

    /// Whether any version of an object's row is here.
    func contains(_ id: ObjectID) -> Bool { !heads[id].isNone }

    /// Makes the row of an object at a commit the warmest; returns what it weighs without a pin.
    mutating func warm(_ id: ObjectID, at commit: UInt64) -> Int? {
        let row = row(of: id, at: commit)
        if row.isNone { return nil }
        warm(row)
        return row.pins > 0 ? 0 : row.cost
    }

    private mutating func warm(_ row: RowLink) {
        if row.pins > 0 || warmest == row { return }
        unlink(row)
        linkWarm(row)
    }

    /// Puts in a row that was read at a commit, unless it is there already, and returns the one
    /// that is there now: two readers that race end up with the same row.
    ///
    /// - Parameter row: kept by the caller, and in no cache.
    mutating func insert(_ row: RowLink, readAt commit: UInt64, pin: Bool) -> RowLink {
        let (id, from, cost) = (row.id, row.version, row.cost)
        let until = end(of: id, readAt: commit)
        var newer = RowLink.none
        let head = heads.newest(of: id)
        var older = head.row
        while !older.isNone, older.version >= from {
            if older.version == from {
                older.until = max(older.until, until)
                if pin { addPin(older) }
                return older
            }
            newer = older
            older = older.older
        }
        row.enter(older: older, until: until)
        if newer.isNone {
            heads.setNewest(row, of: id, entry: head.entry)
        } else {
            newer.older = row
        }
        statistics.rows += 1
        statistics.bytes += cost
        if pin {
            row.pins = 1
            statistics.pinnedRows += 1
            statistics.pinnedBytes += cost
        } else {
            if until == Self.open { linkWarm(row) } else { linkCold(row) }
            evict()
        }
        return row
    }

    /// The first commit for which a row that was read may no longer hold.
    private func end(of id: ObjectID, readAt commit: UInt64) -> UInt64 {
        if commit >= published { return Self.open }
        if commit >= knownSince, recent[id].map({ $0 <= commit }) ?? true { return Self.open }
        return commit + 1
    }

    // MARK: Commits

    /// Closes the intervals of the rows that a commit changes. Called before the commit can be
    /// seen.
    mutating func publish(_ commit: UInt64, changed: [ObjectIDSet]) {
        published = max(published, commit)
        let count = changed.reduce(0) { $0 + $1.count }
        if count + recent.count > Self.recentMax {
            recent.removeAll()
            knownSince = commit
        }
        if count <= max(Self.recentMax, statistics.rows) {
            let remembers = count <= Self.recentMax
            for ids in changed {
                for id in ids {
                    if remembers { recent[id] = commit }
                    end(heads[id], at: commit)
                }
            }
        } else {
            // All savers wait for this: it takes as long as the cache is large, not the commit.
            for entry in 0..<heads.capacity {
                let row = heads.row(at: entry)
                if !row.isNone, changed.contains(where: { $0.contains(row.id) }) {
                    end(row, at: commit)
                }
            }
        }
    }

    /// The newest version of a row is not valid from `commit` on.
    private mutating func end(_ row: RowLink, at commit: UInt64) {
        guard !row.isNone, row.until > commit else { return }
        row.until = commit
        if row.pins == 0 {
            unlink(row)
            linkCold(row)
        }
    }

    /// Forgets everything: the meaning of the rows' columns changed with the schema.
    mutating func publishSchemaChange(_ commit: UInt64) {
        published = max(published, commit)
        recent.removeAll()
        knownSince = commit
        for entry in 0..<heads.capacity {
            var row = heads.row(at: entry)
            while !row.isNone {
                row.until = min(row.until, commit)
                row = row.older
            }
        }
    }

    // MARK: Pins

    /// Pins a row; puts it back when it was evicted meanwhile.
    mutating func pin(_ row: RowLink) {
        let here = located(row)
        if here.isNone {
            _ = insert(row, readAt: row.version, pin: true)
        } else {
            addPin(here)
        }
    }

    /// Takes one pin away; the last one makes the row evictable.
    ///
    /// - Parameter row: kept by the caller.
    mutating func unpin(_ row: RowLink) {
        let row = located(row)
        guard !row.isNone, row.pins > 0 else { return }
        row.pins -= 1
        guard row.pins == 0 else { return }
        statistics.pinnedRows -= 1
        statistics.pinnedBytes -= row.cost
        if row.until == Self.open { linkWarm(row) } else { linkCold(row) }
        evict()
    }

    /// The row if it is here, else another one of the same version.
    private func located(_ row: RowLink) -> RowLink {
        if row.pins != RowLink.notCached { return row }
        var here = heads[row.id]
        while !here.isNone, here.version != row.version { here = here.older }
        return here
    }

    /// Asks for the memory of an object's place in the table, which will be used soon.
    func foresee(_ id: ObjectID) { heads.foresee(id) }

    /// Makes room for `count` more objects at once: each of them will be here.
    mutating func reserve(_ count: Int) { heads.reserve(heads.count + count) }

    // MARK: Budget

    /// Evicts the coldest rows until those without pins fit the budget.
    mutating func evict() {
        while statistics.bytes - statistics.pinnedBytes > budget, !coldest.isNone {
            remove(coldest)
            statistics.evictions += 1
            if coldest.isNone { return }
            // The next one was asked for when its colder neighbour went.
            heads.foresee(coldest.id)
            coldest.warmer.foresee()
        }
    }

    /// Evicts every row without a pin.
    mutating func trim() {
        let budget = self.budget
        self.budget = 0
        evict()
        self.budget = budget
    }

    // MARK: Links

    /// Takes out a row without a pin.
    private mutating func remove(_ row: RowLink) {
        unlink(row)
        let (id, older) = (row.id, row.older)
        var newer = heads[id]
        if newer == row {
            heads.replaceNewest(older, of: id)
        } else {
            while !newer.isNone, newer.older != row { newer = newer.older }
            if !newer.isNone { newer.older = older }
        }
        statistics.rows -= 1
        statistics.bytes -= row.cost
        row.leave()
    }

    private mutating func addPin(_ row: RowLink) {
        if row.pins == 0 {
            unlink(row)
            statistics.pinnedRows += 1
            statistics.pinnedBytes += row.cost
        }
        row.pins += 1
    }

    private mutating func linkWarm(_ row: RowLink) {
        row.warmer = .none
        row.colder = warmest
        if warmest.isNone { coldest = row } else { warmest.warmer = row }
        warmest = row
    }

    private mutating func linkCold(_ row: RowLink) {
        row.colder = .none
        row.warmer = coldest
        if coldest.isNone { warmest = row } else { coldest.colder = row }
        coldest = row
    }

    private mutating func unlink(_ row: RowLink) {
        let (warmer, colder) = (row.warmer, row.colder)
        if !warmer.isNone {
            warmer.colder = colder
        } else if warmest == row {
            warmest = colder
        }
        if !colder.isNone {
            colder.warmer = warmer
        } else if coldest == row {
            coldest = warmer
        }
        row.warmer = .none
        row.colder = .none
    }

    // MARK: Invariants

    /// Checks after as many new rows and commits as a check looks at rows and entries: each pays
    /// for a few.
    mutating func checkIfDue() {
        commits += 1
        let changes = statistics.rows + statistics.evictions + commits
        if changes - checked < max(heads.capacity, statistics.rows) { return }
        checked = changes
        check()
    }

    /// Traps where the tables are not what their invariants say.
    /// - Complexity: O(rows).
    func check() {
        var found = RowCacheStatistics()
        var objects = 0
        for entry in 0..<heads.capacity {
            var row = heads.row(at: entry)
            if row.isNone { continue }
            objects += 1
            let id = row.id
            precondition(heads[id] == row, "an object leads to its newest row")
            while !row.isNone {
                precondition(row.pins >= 0, "a row of the table is in the cache")
                precondition(row.version <= row.until, "a row ends after its beginning")
                found.rows += 1
                found.bytes += row.cost
                if row.pins > 0 {
                    found.pinnedRows += 1
                    found.pinnedBytes += row.cost
                }
                let older = row.older
                precondition(
                    older.isNone
                        || older.id == id && older.version < row.version
                            && older.until <= row.version,
                    "versions of an object follow each other"
                )
                row = older
            }
        }
        precondition(objects == heads.count, "objects are counted")
        precondition(
            found.rows == statistics.rows && found.bytes == statistics.bytes
                && found.pinnedRows == statistics.pinnedRows
                && found.pinnedBytes == statistics.pinnedBytes,
            "rows and their bytes are counted"
        )
        precondition(found.bytes - found.pinnedBytes <= budget, "rows without pins fit the budget")
        checkOrder(unpinned: found.rows - found.pinnedRows)
    }

    /// The list of use: together with the pinned rows it is all.
    private func checkOrder(unpinned: Int) {
        var (row, last, length) = (warmest, RowLink.none, 0)
        while !row.isNone {
            length += 1
            precondition(
                row.pins == 0 && row.warmer == last && length <= unpinned,
                "rows without pins are in the list of use once"
            )
            (last, row) = (row, row.colder)
        }
        precondition(last == coldest && length == unpinned, "the list of use has both its ends")
    }
}
