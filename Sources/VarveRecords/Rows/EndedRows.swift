// FENCE: rows of objects that have ended, until their pins are taken back together.
//
// Invariants
// - The places below `count` hold references that belong to this value: they go when it ends.
// - Each row has one pin for each time that it stands here; `RowCache.unpin` takes it back.
//
// Why: an object's end is two locks otherwise, its registry's and the row cache's.

import VarveFormat

/// Rows that objects have let go of, each with a pin and a reference.
@safe public struct EndedRows: ~Copyable {
    /// Rows that there is room for.
    public static var room: Int { 64 }

    private var places: UnsafeMutablePointer<UInt>?
    /// Number of rows.
    public private(set) var count = 0

    /// No rows.
    public init() { unsafe places = nil }

    deinit {
        guard let places = unsafe places else { return }
        for index in 0..<count { unsafe UncountedRow(bits: places[index])?.release() }
        // Allocated in `append`, owned by this value alone. Addresses are trivial.
        unsafe places.deallocate()
    }

    /// Takes a row over.
    ///
    /// - Parameter row: what `CachedRow.kept` gave, not 0.
    public mutating func append(_ row: UInt) {
        precondition(count < Self.room && row != 0, "more rows than there is room for")
        let there: UnsafeMutablePointer<UInt>
        if let places = unsafe places {
            unsafe there = places
        } else {
            unsafe there = .allocate(capacity: Self.room)
            unsafe places = there
        }
        // Below `room` by the line above.
        unsafe (there + count).initialize(to: row)
        count &+= 1
    }

    /// Calls `body` with each row, in the order in which they came, and `soon` some rows earlier.
    func forEach(soon: (RowLink) -> Void, _ body: (RowLink) -> Void) {
        guard let places = unsafe places else { return }
        for index in 0..<count + Self.step {
            // References of this value's own, which it keeps while it is borrowed here.
            if index < count { unsafe soon(RowLink(bits: places[index])) }
            let here = index - Self.step
            if here >= 0 { unsafe body(RowLink(bits: places[here])) }
        }
    }

    private static var step: Int { ComingMemory.rowsAhead }
}

// Memory of its own; rows may be read and let go on any thread.
extension EndedRows: @unchecked Sendable {}
