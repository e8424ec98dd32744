// FENCE: the slots of the row cache in plain memory.
//
// Invariants
// - The slots below `count` are initialised, until the table ends.
// - Read and written under the row cache's lock only.
//
// Why not an array: each write to one asks whether it is shared. A row that is found, pinned and
// let go is a dozen writes.

import VarveBase
import VarveFormat

/// One row of the row cache, or a free place.
struct RowCacheSlot {
    /// Stands first (`RowCacheSlots.foreseeRow`).
    var row: CachedRow?
    var until: UInt64
    var pins: Int32
    var older: Int32
    var warmer: Int32
    var colder: Int32
    // Copies of what the row says, so that lookups and evictions leave other rows alone: each
    // would be memory that the processor has to wait for.
    var version: UInt64
    var id: ObjectID
    var cost: Int
}

/// The slots by number.
@safe struct RowCacheSlots: ~Copyable {
    private static let roomMin = 16
    private var base: UnsafeMutablePointer<RowCacheSlot>
    private var room = 0
    private(set) var count = 0

    init() { unsafe base = .allocate(capacity: 0) }

    deinit {
        // Allocated in `init` or `append`, owned by this value alone.
        unsafe base.deinitialize(count: count)
        unsafe base.deallocate()
    }

    /// All numbers.
    var indices: Range<Int> { 0..<count }

    /// A slot in place; a wrong number is a broken invariant.
    subscript(index: Int) -> RowCacheSlot {
        @inline(__always) _read {
            precondition(index >= 0 && index < count)
            // One of `count` slots.
            yield unsafe base[index]
        }
        @inline(__always) _modify {
            precondition(index >= 0 && index < count)
            // One of `count` slots.
            yield unsafe &base[index]
        }
    }

    /// Asks for the memory of a slot, if it is one.
    func foresee(_ index: Int) {
        if index < 0 || index >= count { return }
        unsafe ComingMemory.foresee(base + index, MemoryLayout<RowCacheSlot>.size)
    }

    /// Asks for the memory of a slot's row, to which a reference will be made soon.
    func foreseeRow(_ index: Int) {
        if index < 0 || index >= count { return }
        // One of `count` slots, with its row in front: a reference or nothing, which is looked at
        // without counting it.
        let row = unsafe UnsafeRawPointer(base + index).load(as: UnsafeRawPointer?.self)
        if let row = unsafe row { unsafe ComingMemory.foresee(row, 1) }
    }

    /// Makes room for so many slots in all.
    mutating func reserve(_ slots: Int) {
        if slots <= room { return }
        room = max(Self.roomMin, 2 * room, slots)
        let larger = UnsafeMutablePointer<RowCacheSlot>.allocate(capacity: room)
        // The slots move; the old memory holds nothing any more.
        unsafe larger.moveInitialize(from: base, count: count)
        unsafe base.deallocate()
        unsafe base = larger
    }

    /// Adds a slot behind the last one.
    mutating func append(_ slot: consuming RowCacheSlot) {
        reserve(count + 1)
        // Behind the initialised ones, where there is room.
        unsafe (base + count).initialize(to: slot)
        count &+= 1
    }
}

// Memory of its own; what the slots hold may be read on any thread.
extension RowCacheSlots: @unchecked Sendable {}
