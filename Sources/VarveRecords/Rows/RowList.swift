// FENCE: rows by position, as counted references in plain memory.
//
// Invariants
// - A place holds 0: there is no row; 1: its row was taken; or the address of a row that the list
//   keeps a reference to. It lets go of those that are left when it ends.
// - Filled by the one who makes it, before anybody else sees it. Afterwards only `take` changes it,
//   by the one context that it was made for.
//
// Why not an array of `CachedRow?`: an array hands out a second reference to each row, and ends by
// asking for each element's type how it is let go: a tenth of a fetch.

import VarveBase
import VarveFormat

/// Rows by position, nil where there is none; a reference.
public struct RowList: RandomAccessCollection {
    @usableFromInline let storage: RowListStorage

    /// No rows.
    public init() { storage = RowListStorage(count: 0) }

    init(_ storage: RowListStorage) { self.storage = storage }

    /// 0.
    @inlinable public var startIndex: Int { 0 }
    /// Number of positions, with rows or without.
    @inlinable public var endIndex: Int { storage.count }

    /// The row at a position, if there is one and nobody has taken it.
    @inlinable public subscript(index: Int) -> CachedRow? { storage.row(index) }

    /// Whether there was a row at a position, taken or not.
    @inlinable public func has(_ index: Int) -> Bool { storage.bits(index) != 0 }

    /// Whether there is a row at every position.
    @inlinable public var isComplete: Bool { storage.missing == 0 }

    /// Bytes of a row that is here, on average; 0: there is none.
    public var averageByteCount: Int {
        var (count, bytes) = (0, 0)
        for index in 0..<storage.count {
            let row = storage.link(index)
            if row.isNone { continue }
            count += 1
            bytes += row.byteCount
        }
        return count == 0 ? 0 : bytes / count
    }

    /// Hands the row at a position over, without a new reference to it: what `CachedRow.kept`
    /// gives, or 0 if there is none. Once.
    @inlinable public func take(_ index: Int) -> UInt { storage.take(index) }

    /// The row at a position as `CachedRow.kept` gives it; 0 if there is none.
    @inlinable public func keep(_ index: Int) -> UInt { storage.row(index)?.kept() ?? 0 }
}

/// What a row list refers to.
@safe @usableFromInline final class RowListStorage {
    @usableFromInline let places: UnsafeMutablePointer<UInt>
    @usableFromInline let count: Int
    /// Positions without a row.
    @usableFromInline private(set) var missing: Int

    /// All positions are without a row.
    init(count: Int) {
        self.count = count
        missing = count
        unsafe places = .allocate(capacity: count)
        unsafe places.initialize(repeating: 0, count: count)
    }

    deinit {
        for index in 0..<count where unsafe places[index] > 1 { release(index) }
        // Allocated in `init`, owned by this object alone. Addresses are trivial.
        unsafe places.deallocate()
    }

    /// What a place holds.
    @inlinable @inline(__always)
    func bits(_ index: Int) -> UInt {
        precondition(index >= 0 && index < count)
        // One of `count` places.
        return unsafe places[index]
    }

    @inlinable
    func row(_ index: Int) -> CachedRow? {
        let bits = bits(index)
        guard bits > 1, let memory = unsafe UnsafeRawPointer(bitPattern: bits) else { return nil }
        // The list keeps a reference.
        return unsafe CachedRow(
            memory: Unmanaged<RowMemory>.fromOpaque(memory).takeUnretainedValue()
        )
    }

    @inlinable
    func take(_ index: Int) -> UInt {
        let bits = bits(index)
        if bits <= 1 { return 0 }
        // The list's reference goes over to the caller.
        unsafe places[index] = 1
        return bits
    }

    /// Puts a row at a position that has none.
    func put(_ row: consuming CachedRow, _ index: Int) { put(kept: row.kept(), index) }

    /// Puts a row at a position that has none: what `CachedRow.kept` gave, which belongs to the
    /// list from now on.
    func put(kept bits: UInt, _ index: Int) {
        precondition(self.bits(index) == 0 && bits > 1)
        // Let go by `take` or `deinit`.
        unsafe places[index] = bits
        missing &-= 1
    }

    /// The row at a position, or none. The list keeps it.
    func link(_ index: Int) -> RowLink {
        let bits = bits(index)
        return bits > 1 ? RowLink(bits: bits) : .none
    }

    /// Calls `body` with each row that is here, and `soon` some positions earlier.
    func forEach(soon: (RowLink) -> Void, _ body: (RowLink) -> Void) {
        for index in 0..<count + ComingMemory.rowsAhead {
            if index < count, case let row = link(index), !row.isNone { soon(row) }
            let here = index - ComingMemory.rowsAhead
            if here >= 0, case let row = link(here), !row.isNone { body(row) }
        }
    }

    /// Lets the row at a position go.
    func drop(_ index: Int) {
        if bits(index) > 1 {
            release(index)
            missing &+= 1
        }
        unsafe places[index] = 0
    }

    private func release(_ index: Int) {
        guard let memory = unsafe UnsafeRawPointer(bitPattern: places[index]) else { return }
        // The list's own reference.
        unsafe Unmanaged<RowMemory>.fromOpaque(memory).release()
    }
}
