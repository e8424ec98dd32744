// The row cache's tables: slots, versions of one object, the order of use, recent changes.
//
// Invariants
// - An entry is the row of its object at every commit in [from, until); `until` is `open` while no
//   later change is known. Publishing a commit closes the entries it changed before anyone can see
//   it.
// - Versions of one object form a chain, newest first, with disjoint intervals.
// - A slot is either free, or pinned, or in the list of use; the list runs from warm to cold.
// - Rows without pins weigh at most `budget` after every operation.

import Synchronization
import VarveBase

/// What the mutex of a row cache protects. Every operation costs O(1) per row, but for commits that
/// changed more rows than there are slots: those cost O(log changes) per slot.
struct RowCacheState: ~Copyable, Sendable {
    static let none: Int32 = -1
    static let open = UInt64.max
    /// Changes remembered for rows that are filled from an older commit.
    static let recentMax = 16_384

    var budget: Int
    var statistics = RowCacheStatistics()
    private var slots = RowCacheSlots()
    private var free: Int32 = RowCacheState.none
    private var heads = HeadTable()
    private var warmest: Int32 = RowCacheState.none
    private var coldest: Int32 = RowCacheState.none
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

    // MARK: Finding and filling

    /// The row of an object at a commit. It becomes the warmest, or gets a pin.
    mutating func find(_ id: ObjectID, at commit: UInt64, pin: Bool) -> CachedRow? {
        let index = self.index(of: id, at: commit)
        return index == Self.none ? nil : use(index, pin: pin)
    }

    private mutating func use(_ index: Int32, pin: Bool) -> CachedRow? {
        if pin {
            addPin(index)
        } else if slots[Int(index)].pins == 0, warmest != index {
            unlink(index)
            linkWarm(index)
        }
        return slots[Int(index)].row
    }

    /// `find` for many objects, some dozens at a time: each of them waits for the memory of two
    /// tables, and side by side they wait together.
    /// - Returns: the positions that are missing.
    mutating func find(
        _ ids: [ObjectID],
        at commit: UInt64,
        pin: Bool,
        into rows: RowListStorage
    ) -> [Int] {
        var missing: [Int] = []
        var places: ContiguousArray<Int32> = []
        places.reserveCapacity(Self.findAtOnce)
        var start = 0
        while start < ids.count {
            let end = min(start + Self.findAtOnce, ids.count)
            places.removeAll(keepingCapacity: true)
            for index in start..<end { heads.foresee(ids[index]) }
            for index in start..<end {
                places.append(heads[ids[index]].newest)
                slots.foresee(Int(places[index &- start]))
            }
            for index in places.indices {
                places[index] = version(places[index], at: commit)
                slots.foreseeRow(Int(places[index]))
            }
            for index in places.indices {
                let place = places[index]
                if place != Self.none, let row = use(place, pin: pin) {
                    rows.put(row, start &+ index)
                } else {
                    missing.append(start &+ index)
                }
            }
            start = end
        }
        return missing
    }

    private static let findAtOnce = 32

    /// Whether `find` would find one.
    func has(_ id: ObjectID, at commit: UInt64) -> Bool { index(of: id, at: commit) != Self.none }

    private func index(of id: ObjectID, at commit: UInt64) -> Int32 {
        version(heads[id].newest, at: commit)
    }

    /// The slot that holds at a commit, in a chain that begins with the newest.
    private func version(_ newest: Int32, at commit: UInt64) -> Int32 {
        var index = newest
        while index != Self.none {
            let place = Int(index)
            if commit < slots[place].until, slots[place].version <= commit { return index }
            index = slots[place].older
        }
        return Self.none
    }

    /// Whether any version of an object's row is here.
    func contains(_ id: ObjectID) -> Bool {
        heads[id].newest != Self.none
    }

    /// Makes the row of an object at a commit the warmest; returns what it weighs without a pin.
    mutating func warm(_ id: ObjectID, at commit: UInt64) -> Int? {
        let index = self.index(of: id, at: commit)
        if index == Self.none { return nil }
        if slots[Int(index)].pins > 0 { return 0 }
        if warmest != index {
            unlink(index)
            linkWarm(index)
        }
        return slots[Int(index)].cost
    }

    /// Puts in a row that was read at a commit, unless it is there already, and returns the one
    /// that is there now: two readers that race end up with the same object.
    mutating func insert(_ row: CachedRow, readAt commit: UInt64, pin: Bool) -> CachedRow {
        let until = end(of: row, readAt: commit)
        var newer = Self.none
        let head = heads.newest(of: row.id)
        var index = head.row
        while index != Self.none, slots[Int(index)].version >= row.version.rawValue {
            if slots[Int(index)].version == row.version.rawValue, let there = slots[Int(index)].row
            {
                slots[Int(index)].until = max(slots[Int(index)].until, until)
                if pin { addPin(index) }
                return there
            }
            newer = index
            index = slots[Int(index)].older
        }
        let slot = take(
            RowCacheSlot(
                row: row,
                until: until,
                pins: 0,
                older: index,
                warmer: Self.none,
                colder: Self.none,
                version: row.version.rawValue,
                id: row.id,
                cost: row.cost
            )
        )
        row.place = slot
        if newer == Self.none {
            heads.setNewest(slot, of: row.id, entry: head.entry)
        } else {
            slots[Int(newer)].older = slot
        }
        statistics.rows += 1
        statistics.bytes += row.cost
        if pin {
            slots[Int(slot)].pins = 1
            statistics.pinnedRows += 1
            statistics.pinnedBytes += row.cost
        } else {
            if until == Self.open { linkWarm(slot) } else { linkCold(slot) }
            evict()
        }
        return row
    }

    /// The first commit for which a row may no longer hold.
    private func end(of row: CachedRow, readAt commit: UInt64) -> UInt64 {
        if commit >= published { return Self.open }
        if commit >= knownSince, recent[row.id].map({ $0 <= commit }) ?? true { return Self.open }
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
        if count <= max(Self.recentMax, slots.count) {
            let remembers = count <= Self.recentMax
            for ids in changed {
                for id in ids {
                    if remembers { recent[id] = commit }
                    end(heads[id].newest, at: commit)
                }
            }
        } else {
            // All savers wait for this: it takes as long as the cache is large, not the commit.
            for index in slots.indices where slots[index].row != nil {
                let id = slots[index].id
                if changed.contains(where: { $0.contains(id) }) {
                    end(heads[id].newest, at: commit)
                }
            }
        }
    }

    /// The newest version of a row is not valid from `commit` on.
    private mutating func end(_ index: Int32, at commit: UInt64) {
        guard index != Self.none, slots[Int(index)].until > commit else { return }
        slots[Int(index)].until = commit
        if slots[Int(index)].pins == 0 {
            unlink(index)
            linkCold(index)
        }
    }

    /// Forgets everything: the meaning of the rows' columns changed with the schema.
    mutating func publishSchemaChange(_ commit: UInt64) {
        published = max(published, commit)
        recent.removeAll()
        knownSince = commit
        for index in slots.indices where slots[index].row != nil {
            slots[index].until = min(slots[index].until, commit)
        }
    }

    // MARK: Pins and references

    /// Pins a row; puts it back when it was evicted meanwhile.
    mutating func pin(_ row: CachedRow) {
        let index = self.index(of: row)
        if index != Self.none {
            addPin(index)
        } else {
            _ = insert(row, readAt: row.version.rawValue, pin: true)
        }
    }

    /// Takes one pin away; the last one makes the row evictable.
    mutating func unpin(_ row: CachedRow) {
        let index = self.index(of: row)
        guard index != Self.none, slots[Int(index)].pins > 0 else { return }
        slots[Int(index)].pins -= 1
        guard slots[Int(index)].pins == 0 else { return }
        statistics.pinnedRows -= 1
        statistics.pinnedBytes -= row.cost
        if slots[Int(index)].until == Self.open { linkWarm(index) } else { linkCold(index) }
        evict()
    }

    /// Asks for the memory of an object's head, which will be used soon.
    func foresee(_ id: ObjectID) { heads.foresee(id) }

    /// Asks for the memory of a row's slot, which will be used soon.
    func foresee(_ row: borrowing CachedRow) { slots.foresee(Int(row.place)) }

    /// Makes room for `count` more objects at once.
    mutating func reserve(_ count: Int) { heads.reserve(heads.count + count) }

    /// Makes room for `count` more rows at once, which are to be pinned: each of them will be here.
    mutating func reserve(rows count: Int) {
        reserve(count)
        slots.reserve(slots.count + count)
    }

    mutating func register(_ id: ObjectID) {
        let references = heads.update(id) { head in
            head.references += 1
            return head.references
        }
        if references == 1 { statistics.registeredObjects += 1 }
    }

    mutating func unregister(_ id: ObjectID) {
        let isLast = heads.update(id) { head in
            guard head.references > 0 else { return false }
            head.references -= 1
            return head.references == 0
        }
        if isLast { statistics.registeredObjects -= 1 }
    }

    func references(_ id: ObjectID) -> Int { Int(heads[id].references) }

    // MARK: Budget

    /// Evicts the coldest rows until those without pins fit the budget.
    mutating func evict() {
        while statistics.bytes - statistics.pinnedBytes > budget, coldest != Self.none {
            remove(coldest)
            statistics.evictions += 1
        }
    }

    /// Evicts every row without a pin.
    mutating func trim() {
        let budget = self.budget
        self.budget = 0
        evict()
        self.budget = budget
    }

    // MARK: Slots

    private func index(of row: CachedRow) -> Int32 {
        // Where it was put: looking for it by its ID would wait for the memory of two tables.
        let place = row.place
        if place >= 0, Int(place) < slots.count, slots[Int(place)].row?.isSame(as: row) == true {
            return place
        }
        var index = heads[row.id].newest
        while index != Self.none {
            if slots[Int(index)].version == row.version.rawValue { return index }
            index = slots[Int(index)].older
        }
        return Self.none
    }

    private mutating func take(_ slot: consuming RowCacheSlot) -> Int32 {
        if free != Self.none {
            let index = free
            free = slots[Int(index)].older
            slots[Int(index)] = slot
            return index
        }
        precondition(slots.count < Int(Int32.max), "row cache full")
        slots.append(slot)
        return Int32(slots.count - 1)
    }

    private mutating func remove(_ index: Int32) {
        unlink(index)
        let (id, older) = (slots[Int(index)].id, slots[Int(index)].older)
        var newer = heads[id].newest
        if newer == index {
            heads.update(id) { $0.newest = older }
        } else {
            while newer != Self.none, slots[Int(newer)].older != index {
                newer = slots[Int(newer)].older
            }
            if newer != Self.none { slots[Int(newer)].older = older }
        }
        statistics.rows -= 1
        statistics.bytes -= slots[Int(index)].cost
        slots[Int(index)].row = nil
        slots[Int(index)].older = free
        free = index
    }

    private mutating func addPin(_ index: Int32) {
        if slots[Int(index)].pins == 0 {
            unlink(index)
            statistics.pinnedRows += 1
            statistics.pinnedBytes += slots[Int(index)].cost
        }
        slots[Int(index)].pins += 1
    }

    private mutating func linkWarm(_ index: Int32) {
        slots[Int(index)].warmer = Self.none
        slots[Int(index)].colder = warmest
        if warmest != Self.none { slots[Int(warmest)].warmer = index } else { coldest = index }
        warmest = index
    }

    private mutating func linkCold(_ index: Int32) {
        slots[Int(index)].colder = Self.none
        slots[Int(index)].warmer = coldest
        if coldest != Self.none { slots[Int(coldest)].colder = index } else { warmest = index }
        coldest = index
    }

    private mutating func unlink(_ index: Int32) {
        let warmer = slots[Int(index)].warmer
        let colder = slots[Int(index)].colder
        if warmer != Self.none {
            slots[Int(warmer)].colder = colder
        } else if warmest == index {
            warmest = colder
        }
        if colder != Self.none {
            slots[Int(colder)].warmer = warmer
        } else if coldest == index {
            coldest = warmer
        }
        slots[Int(index)].warmer = Self.none
        slots[Int(index)].colder = Self.none
    }

    // MARK: Invariants

    /// Checks after as many new rows and commits as there are slots: each pays for one slot.
    mutating func checkIfDue() {
        commits += 1
        let changes = statistics.rows + statistics.evictions + commits
        if changes - checked < slots.count { return }
        checked = changes
        check()
    }

    /// Traps where the tables are not what their invariants say.
    /// - Complexity: O(slots).
    func check() {
        var found = RowCacheStatistics()
        var hasNewer = [Bool](repeating: false, count: slots.count)
        for index in slots.indices {
            let slot = slots[index]
            guard let row = slot.row else { continue }
            precondition(
                slot.id == row.id && slot.version == row.version.rawValue && slot.cost == row.cost
                    && Int(row.place) == index,
                "a slot says what its row says"
            )
            precondition(slot.version <= slot.until, "a row ends after its beginning")
            found.rows += 1
            found.bytes += slot.cost
            if slot.pins > 0 {
                found.pinnedRows += 1
                found.pinnedBytes += slot.cost
            }
            if slot.older == Self.none { continue }
            let older = slots[Int(slot.older)]
            precondition(
                older.row != nil && older.id == slot.id && older.version < slot.version
                    && older.until <= slot.version && !hasNewer[Int(slot.older)],
                "versions of an object follow each other"
            )
            hasNewer[Int(slot.older)] = true
        }
        for index in slots.indices where slots[index].row != nil {
            let isNewest = Int(heads[slots[index].id].newest) == index
            precondition(isNewest != hasNewer[index], "an object leads to its newest row")
        }
        precondition(
            found.rows == statistics.rows && found.bytes == statistics.bytes
                && found.pinnedRows == statistics.pinnedRows
                && found.pinnedBytes == statistics.pinnedBytes,
            "rows and their bytes are counted"
        )
        precondition(found.bytes - found.pinnedBytes <= budget, "rows without pins fit the budget")
        precondition(statistics.registeredObjects <= heads.count, "a registered object has a head")
        checkLists(used: found.rows, unpinned: found.rows - found.pinnedRows)
    }

    /// The list of use and the free slots: together with the pinned ones they are all.
    private func checkLists(used: Int, unpinned: Int) {
        var (index, last, length) = (warmest, Self.none, 0)
        while index != Self.none {
            let slot = slots[Int(index)]
            length += 1
            precondition(
                slot.row != nil && slot.pins == 0 && slot.warmer == last && length <= unpinned,
                "rows without pins are in the list of use once"
            )
            (last, index) = (index, slot.colder)
        }
        precondition(last == coldest && length == unpinned, "the list of use has both its ends")
        (index, length) = (free, 0)
        while index != Self.none, length <= slots.count {
            precondition(slots[Int(index)].row == nil, "a free slot has no row")
            length += 1
            index = slots[Int(index)].older
        }
        precondition(used + length == slots.count, "a slot is used or free")
    }
}
