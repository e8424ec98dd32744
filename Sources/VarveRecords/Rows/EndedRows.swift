// FENCE: rows of objects that have ended, until their pins are taken back together.
//
// Invariants
// - The first row and the places below `count - 1` are references that belong to this value: they
//   go when it ends. A single row takes no memory.
// - Each row has one pin for each time that it stands here; `RowCache.unpin` takes it back.
//
// Why: an object's end is two locks otherwise, its registry's and the row cache's.

import VarveFormat

/// Rows that objects have let go of, each with a pin and a reference.
@safe public struct EndedRows: ~Copyable {
    /// Rows that there is room for.
    public static var room: Int { 64 }

    private var first: UInt = 0
    /// Those behind the first.
    private var places: UnsafeMutablePointer<UInt>?
    /// Number of rows.
    public private(set) var count = 0

    /// No rows.
    public init() { unsafe places = nil }

    deinit {
        for index in 0..<count { unsafe UncountedRow(bits: self[index])?.release() }
        // Allocated in `append`, owned by this value alone. Addresses are trivial.
        unsafe places?.deallocate()
    }

    /// Takes a row over.
    ///
    /// - Parameter row: what `CachedRow.kept` gave, not 0.
    public mutating func append(_ row: UInt) {
        precondition(count < Self.room && row != 0, "more rows than there is room for")
        if count == 0 {
            first = row
        } else {
            let there = unsafe places ?? .allocate(capacity: Self.room - 1)
            unsafe places = there
            // Below `room - 1` by the line above.
            unsafe (there + count - 1).initialize(to: row)
        }
        count &+= 1
    }

    /// The row at a position below `count`.
    private subscript(index: Int) -> UInt {
        guard index > 0, let places = unsafe places else { return first }
        return unsafe places[index - 1]
    }

    /// Calls `body` with each row, in the order in which they came, and `soon` some rows earlier.
    func forEach(soon: (RowLink) -> Void, _ body: (RowLink) -> Void) {
        if count == 1 {
            // The end of an object by itself: there is nothing to look ahead for.
            soon(RowLink(bits: first))
            return body(RowLink(bits: first))
        }
        for index in 0..<count + Self.step {
            // References of this value's own, which it keeps while it is borrowed here.
            if index < count { soon(RowLink(bits: self[index])) }
            let here = index - Self.step
            if here >= 0 { body(RowLink(bits: self[here])) }
        }
    }

    private static var step: Int { ComingMemory.rowsAhead }
}

// Memory of its own; rows may be read and let go on any thread.
extension EndedRows: @unchecked Sendable {}
