// FENCE: object IDs to heads of the row cache: open addressing, one cache line per lookup.
//
// Invariants
// - The number of entries is a power of two and at least a third larger than the number of heads.
// - An entry is free exactly when its head is empty; from an ID's home entry to its own none is
//   free.
// - Memory follows the number of heads, down as well as up.
//
// Why not a dictionary: the row cache is asked for every row that is read, pinned or let go, at
// random places of a table that the processor's caches do not hold. A dictionary touches three
// lines per lookup, and never shrinks.

import VarveBase
import VarveFormat

/// What the row cache knows of one object.
struct RowCacheHead: Equatable, BitwiseCopyable {
    /// Slot of the object's newest row, or `RowCacheState.none`.
    var newest: Int32 = -1
    /// Number of contexts that have the object registered.
    var references: Int32 = 0

    /// Nothing is known: the table keeps no such head.
    var isEmpty: Bool { newest == -1 && references == 0 }
}

/// Heads by object ID.
struct HeadTable {
    private struct Entry: BitwiseCopyable {
        var id: UInt64 = 0
        var head = RowCacheHead()
    }

    private static let entriesMin = 64
    private var entries: ContiguousArray<Entry> = []
    /// Number of heads that are not empty.
    private(set) var count = 0

    /// Number of entries, free ones included.
    var capacity: Int { entries.count }

    /// The head of an object; an empty one when the table has none.
    /// - Complexity: O(1).
    subscript(id: ObjectID) -> RowCacheHead {
        if entries.isEmpty { return RowCacheHead() }
        return entries[place(of: id.rawValue)].head
    }

    /// The newest row of an object, and a number by which `setNewest` finds the same entry: until
    /// the table is changed otherwise.
    /// - Complexity: O(1) amortised.
    mutating func newest(of id: ObjectID) -> (row: Int32, entry: Int) {
        reserve(count + 1)
        let place = place(of: id.rawValue)
        return (entries[place].head.newest, place)
    }

    /// Gives an object, whose entry `newest` has found, another newest row.
    mutating func setNewest(_ row: Int32, of id: ObjectID, entry: Int) {
        if entries[entry].head.isEmpty {
            entries[entry].id = id.rawValue
            count += 1
        }
        entries[entry].head.newest = row
    }

    /// Changes the head of an object and returns what `body` returns.
    /// - Complexity: O(1) amortised.
    mutating func update<R>(_ id: ObjectID, _ body: (inout RowCacheHead) -> R) -> R {
        reserve(count + 1)
        let place = place(of: id.rawValue)
        let wasEmpty = entries[place].head.isEmpty
        let result = body(&entries[place].head)
        switch (wasEmpty, entries[place].head.isEmpty) {
        case (true, false):
            entries[place].id = id.rawValue
            count += 1
        case (false, true):
            close(place)
            count -= 1
            if entries.count > Self.entriesMin, count < entries.count / 8 {
                rebuild(entries.count / 4)
            }
        default: break
        }
        return result
    }

    /// Asks for the memory of an object's head, which will be looked at soon.
    func foresee(_ id: ObjectID) {
        if entries.isEmpty { return }
        let home = NumberHash.mix(id.rawValue, 0) & (entries.count - 1)
        // Nothing is read.
        unsafe ComingMemory.foresee(entries.span.bytes, at: home * MemoryLayout<Entry>.stride)
    }

    /// Makes room for so many heads in all.
    mutating func reserve(_ heads: Int) {
        if heads <= entries.count / 4 * 3 { return }
        var size = max(Self.entriesMin, entries.count)
        while heads > size / 4 * 3 { size *= 2 }
        rebuild(size)
    }

    /// Where an ID stands, or the free entry where it would stand.
    private func place(of id: UInt64) -> Int {
        let mask = entries.count - 1
        var place = NumberHash.mix(id, 0) & mask
        while !entries[place].head.isEmpty, entries[place].id != id { place = (place + 1) & mask }
        return place
    }

    /// Moves later entries back over one that became free, so that none is cut off from its home.
    private mutating func close(_ freed: Int) {
        let mask = entries.count - 1
        var hole = freed
        var place = freed
        while true {
            place = (place + 1) & mask
            if entries[place].head.isEmpty { break }
            let home = NumberHash.mix(entries[place].id, 0) & mask
            if (place - home) & mask >= (place - hole) & mask {
                entries[hole] = entries[place]
                hole = place
            }
        }
        entries[hole] = Entry()
    }

    private mutating func rebuild(_ size: Int) {
        let old = entries
        entries = ContiguousArray(repeating: Entry(), count: size)
        for entry in old where !entry.head.isEmpty { entries[place(of: entry.id)] = entry }
    }
}
