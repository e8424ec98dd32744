// FENCE: object IDs to the newest rows of the row cache: open addressing in plain memory.
//
// Invariants
// - The number of entries is 0 or a power of two, and at least a third larger than the number of
//   objects.
// - An entry is free exactly when it leads to no row; on the way from an ID's home entry to its own
//   none is free. Ways go in steps of 5: the next cache line and the next lane. 5 is odd, so that
//   each way meets every entry.
// - Memory follows the number of objects, down as well as up.
//
// Why not a dictionary: the row cache is asked for every row that is read or evicted, at random
// places of a table that the processor's caches do not hold. A dictionary touches three cache lines
// per lookup, and never shrinks. IDs that follow one another share a cache line here, 4 at a time.

import VarveBase
import VarveFormat

/// The newest row of each object, by ID. It looks at no row.
@safe struct HeadTable: ~Copyable {
    private struct Entry: BitwiseCopyable {
        var id: UInt64 = 0
        var row = RowLink.none
    }

    private static let entriesMin = 64
    /// Entries of a cache line.
    private static let lanes = 4
    /// From one entry of a way to the next.
    private static let step = 5
    /// Times `step` this is 1, in 64 bits and so in the lowest of them: distances become steps.
    private static let stepInverse = Int(bitPattern: 0xCCCC_CCCC_CCCC_CCCD)
    private var entries: UnsafeMutablePointer<Entry>
    /// Number of entries, free ones included.
    private(set) var capacity = 0
    /// Number of objects.
    private(set) var count = 0

    init() { unsafe entries = Self.allocate(0) }

    /// Memory that begins with a cache line, so that 4 entries are one.
    private static func allocate(_ count: Int) -> UnsafeMutablePointer<Entry> {
        let stride = MemoryLayout<Entry>.stride
        let memory = UnsafeMutableRawPointer.allocate(
            byteCount: max(count, 1) * stride,
            alignment: lanes * stride
        )
        return unsafe memory.bindMemory(to: Entry.self, capacity: count)
    }

    deinit {
        // Allocated in `init` or `rebuild`, owned by this value alone. Entries are trivial.
        unsafe UnsafeMutableRawPointer(entries).deallocate()
    }

    /// The newest row of an object, or none.
    /// - Complexity: O(1).
    subscript(id: ObjectID) -> RowLink {
        // Places are below `capacity`.
        count == 0 ? .none : unsafe entries[place(of: id.rawValue)].row
    }

    /// The row of an entry by its number, below `capacity`: to go through all of them.
    func row(at entry: Int) -> RowLink {
        precondition(entry >= 0 && entry < capacity)
        return unsafe entries[entry].row
    }

    /// The newest row of an object, and a number by which `setNewest` finds the same entry: until
    /// the table is changed otherwise.
    /// - Complexity: O(1) amortised.
    mutating func newest(of id: ObjectID) -> (row: RowLink, entry: Int) {
        reserve(count + 1)
        let place = place(of: id.rawValue)
        return unsafe (entries[place].row, place)
    }

    /// Gives an object, whose entry `newest` has found, another newest row.
    mutating func setNewest(_ row: RowLink, of id: ObjectID, entry: Int) {
        precondition(entry >= 0 && entry < capacity && !row.isNone)
        if unsafe entries[entry].row.isNone { count += 1 }
        unsafe entries[entry] = Entry(id: id.rawValue, row: row)
    }

    /// Gives an object that is here another newest row; none: it is here no longer.
    /// - Complexity: O(1) amortised.
    mutating func replaceNewest(_ row: RowLink, of id: ObjectID) {
        if count == 0 { return }
        let place = place(of: id.rawValue)
        if unsafe entries[place].row.isNone { return }
        if !row.isNone {
            unsafe entries[place].row = row
            return
        }
        close(place)
        count -= 1
        if capacity > Self.entriesMin, count < capacity / 8 {
            rebuild(max(Self.entriesMin, capacity / 4))
        }
    }

    /// Asks for the memory of an object's entry, which will be looked at soon.
    @inline(__always)
    func foresee(_ id: ObjectID) {
        if capacity == 0 { return }
        // A home is below `capacity`.
        unsafe ComingMemory.foresee(entries + home(id.rawValue), 1)
    }

    /// Makes room for so many objects in all.
    mutating func reserve(_ objects: Int) {
        if objects <= capacity / 4 * 3 { return }
        var size = max(Self.entriesMin, capacity)
        while objects > size / 4 * 3 { size *= 2 }
        rebuild(size)
    }

    /// Each of IDs that follow one another has a lane of its own. Every fourth ID alone would fill
    /// one lane only, if it were not mixed.
    @inline(__always)
    private func home(_ id: UInt64) -> Int {
        let mix = NumberHash.mix(id &>> 2, 0)
        let lane = (Int(truncatingIfNeeded: id) ^ (mix >> 58)) & (Self.lanes &- 1)
        return (mix &<< 2 | lane) & (capacity &- 1)
    }

    /// Where an ID stands, or the free entry where it would stand.
    @inline(__always)
    private func place(of id: UInt64) -> Int {
        let mask = capacity &- 1
        var place = home(id)
        // Places are below `capacity` by the mask, and a quarter of them is free.
        while unsafe !entries[place].row.isNone && entries[place].id != id {
            place = (place &+ Self.step) & mask
        }
        return place
    }

    /// How many steps a way takes from one entry to another.
    @inline(__always)
    private func steps(from start: Int, to end: Int) -> Int {
        ((end &- start) &* Self.stepInverse) & (capacity &- 1)
    }

    /// The most steps from an ID's home to its entry. O(capacity), for tests.
    var longestWay: Int {
        var longest = 0
        for place in 0..<capacity where unsafe !entries[place].row.isNone {
            longest = unsafe max(longest, steps(from: home(entries[place].id), to: place))
        }
        return longest
    }

    /// Moves later entries back over one that became free, so that none is cut off from its home.
    private mutating func close(_ freed: Int) {
        var hole = freed
        var place = freed
        while true {
            place = (place &+ Self.step) & (capacity &- 1)
            if unsafe entries[place].row.isNone { break }
            let home = unsafe home(entries[place].id)
            if steps(from: home, to: place) >= steps(from: hole, to: place) {
                unsafe entries[hole] = entries[place]
                hole = place
            }
        }
        unsafe entries[hole] = Entry()
    }

    private mutating func rebuild(_ size: Int) {
        let (old, oldCapacity) = unsafe (entries, capacity)
        unsafe entries = Self.allocate(size)
        unsafe entries.initialize(repeating: Entry(), count: size)
        capacity = size
        for number in 0..<oldCapacity where unsafe !old[number].row.isNone {
            let entry = unsafe old[number]
            unsafe entries[place(of: entry.id)] = entry
        }
        unsafe UnsafeMutableRawPointer(old).deallocate()
    }
}

// Memory of its own; what the links lead to belongs to whoever follows them.
extension HeadTable: @unchecked Sendable {}
