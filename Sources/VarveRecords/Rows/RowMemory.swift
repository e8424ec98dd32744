// FENCE: a row of the row cache in one piece of memory: what is known of it, and its bytes after.
//
// Invariants
// - The bytes are initialised when the row is made and never change; neither does the head, but for
//   what belongs to the row cache: that is read and written under the cache's lock only
//   (`RowLink`). So a row may be read on any thread.
// - The layout was made of these bytes: every slot lies inside them.
//
// Why not an array in an object: that is two allocations for every row that is read, and two places
// in memory to wait for whenever a property is. Why the cache's links stand here: a table of its
// own would be a third.

import VarveBase
import VarveFormat

/// What stands in front of a row's bytes. What the row cache looks at comes first: with the
/// object's own two words 64 bytes.
@usableFromInline struct RowHead {
    // The row cache's (`RowLink`).
    var pins = RowLink.notCached
    let count: UInt32
    let version: CommitNumber
    var until: UInt64 = 0
    var older = RowLink.none
    var warmer = RowLink.none
    var colder = RowLink.none
    // Its readers'.
    let id: ObjectID
    let entity: RecordEntity
    let layout: RowLayout

    init(
        entity: RecordEntity,
        id: ObjectID,
        version: CommitNumber,
        layout: RowLayout,
        count: UInt32
    ) {
        (self.entity, self.id, self.version) = (entity, id, version)
        (self.layout, self.count) = (layout, count)
    }
}

/// A head and bytes, allocated as one.
@usableFromInline final class RowMemory: ManagedBuffer<RowHead, UInt8> {
    /// A copy of a row that was checked where it lies.
    static func make(
        _ entity: RecordEntity,
        _ id: ObjectID,
        _ version: CommitNumber,
        _ layout: RowLayout,
        _ row: Span<UInt8>
    ) -> RowMemory {
        let made = create(minimumCapacity: row.count) { _ in
            RowHead(
                entity: entity,
                id: id,
                version: version,
                layout: layout,
                count: UInt32(row.count)
            )
        }
        // `create` makes an instance of the class that it is called on.
        let memory = unsafe unsafeDowncast(made, to: RowMemory.self)
        // Room for `row.count` bytes was asked for; both buffers live for the closures.
        unsafe row.withUnsafeBytes { source in
            unsafe memory.withUnsafeMutablePointerToElements { bytes in
                unsafe UnsafeMutableRawPointer(bytes).copyMemory(from: source)
            }
        }
        return memory
    }

    // Nobody changes these; each pointer lives for its closure.
    var entity: RecordEntity {
        unsafe withUnsafeMutablePointerToHeader { unsafe $0.pointee.entity }
    }
    var id: ObjectID { unsafe withUnsafeMutablePointerToHeader { unsafe $0.pointee.id } }
    var version: CommitNumber {
        unsafe withUnsafeMutablePointerToHeader { unsafe $0.pointee.version }
    }
    var byteCount: Int {
        unsafe withUnsafeMutablePointerToHeader { unsafe Int($0.pointee.count) }
    }

    /// Lends the bytes and where the columns lie in them.
    @inline(__always)
    func withRow<R, Failure: Error>(
        _ body: (RowLayout, Span<UInt8>) throws(Failure) -> R
    ) throws(Failure) -> R {
        // `count` bytes were initialised by `make`; the span lives for the closure.
        try unsafe withUnsafeMutablePointers { head, bytes throws(Failure) -> R in
            let count = unsafe Int(head.pointee.count)
            let row = unsafe UnsafeBufferPointer(start: bytes, count: count)
            return try unsafe body(head.pointee.layout, row.span)
        }
    }
}

extension UnsafeMutableRawPointer {
    /// Copies a buffer here; the caller made room.
    @inline(__always)
    fileprivate func copyMemory(from source: UnsafeRawBufferPointer) {
        guard let base = source.baseAddress else { return }
        // The caller's promise.
        unsafe copyMemory(from: base, byteCount: source.count)
    }
}

// What a row's readers see never changes; the rest belongs to the cache's lock.
extension CachedRow: @unchecked Sendable {}

extension CachedRow {
    /// A reference to the row as a number, which somebody has to end: `UncountedRow.release`, or
    /// `EndedRows`. Never 0.
    @inlinable public consuming func kept() -> UInt {
        unsafe UInt(bitPattern: Unmanaged.passRetained(memory).toOpaque())
    }
}

/// A row that somebody else keeps: no reference count of its own. Two atomic operations were a
/// quarter of reading a property.
@unsafe public struct UncountedRow {
    @usableFromInline let memory: Unmanaged<RowMemory>

    /// - Parameter bits: what `CachedRow.kept` gave, kept by the caller for as long as this is
    ///   used; nil for 0.
    @inlinable @inline(__always) public init?(bits: UInt) {
        guard let pointer = unsafe UnsafeRawPointer(bitPattern: bits) else { return nil }
        unsafe memory = .fromOpaque(pointer)
    }

    /// The row with a reference of its own.
    @inlinable public var counted: CachedRow {
        unsafe CachedRow(memory: memory.takeUnretainedValue())
    }

    /// Ends the reference that `CachedRow.kept` began. Once.
    @inlinable public func release() { unsafe memory.release() }

    /// Lends the row with a reference count for the time: `body` may let it go elsewhere.
    @inlinable public func lendCounted<R>(_ body: (borrowing CachedRow) -> R) -> R {
        _ = unsafe memory.retain()
        defer { unsafe memory.release() }
        return unsafe lend(body)
    }

    /// Lends the row. Nothing in `body` may let it go.
    @inlinable public func lend<R>(_ body: (borrowing CachedRow) -> R) -> R {
        unsafe memory._withUnsafeGuaranteedRef { body(CachedRow(memory: $0)) }
    }
}
