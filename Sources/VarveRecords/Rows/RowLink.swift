// FENCE: rows by address, as the tables and the list of use of the row cache hold them.
//
// Invariants
// - A link keeps nothing. Whoever follows one knows that somebody keeps the row: the row cache
//   keeps every row that is in it (`enter`, `leave`), a list and an object keep theirs.
// - What stands below "Under the lock" belongs to the lock of the one row cache that the row
//   is in; what stands above it never changes.
//
// Why: the cache looks at a row, pins it and lets it go without counting references, and a row is
// found, pinned and put in its place in the order of use by looking at one piece of memory.

import VarveBase
import VarveFormat

/// The address of a row, or none.
@safe @usableFromInline struct RowLink: Equatable, BitwiseCopyable, Sendable {
    /// 0: none.
    let bits: UInt

    init(bits: UInt) { self.bits = bits }

    /// The address of a row that somebody keeps.
    init(_ row: borrowing CachedRow) {
        bits = unsafe UInt(bitPattern: Unmanaged.passUnretained(row.memory).toOpaque())
    }

    /// Leads nowhere.
    static let none = RowLink(bits: 0)

    /// What `pins` says of a row that is in no row cache.
    static let notCached: Int32 = -1

    /// Whether it leads nowhere.
    var isNone: Bool { bits == 0 }

    // MARK: What never changes

    /// The object.
    var id: ObjectID { unsafe look { unsafe $0.pointee.id } }
    /// The commit that last changed the row.
    var version: UInt64 { unsafe look { unsafe $0.pointee.version.rawValue } }
    /// Bytes of the row.
    var byteCount: Int { unsafe look { unsafe Int($0.pointee.count) } }
    /// `CachedRow.cost`.
    var cost: Int { byteCount + CachedRow.costBeside }

    /// Whether the row is of another entity.
    func isOfOther(than entity: RecordEntity) -> Bool {
        unsafe look { head in
            unsafe head.pointee.entity !== entity && head.pointee.entity.id != entity.id
        }
    }

    // MARK: Under the lock

    /// How many hold the row in the cache; `notCached` for one that is not there.
    var pins: Int32 {
        get { unsafe look { unsafe $0.pointee.pins } }
        nonmutating set { unsafe look { unsafe $0.pointee.pins = newValue } }
    }

    /// The first commit for which the row no longer holds.
    var until: UInt64 {
        get { unsafe look { unsafe $0.pointee.until } }
        nonmutating set { unsafe look { unsafe $0.pointee.until = newValue } }
    }

    /// The next older version of the object in the cache.
    var older: RowLink {
        get { unsafe look { unsafe $0.pointee.older } }
        nonmutating set { unsafe look { unsafe $0.pointee.older = newValue } }
    }

    /// Its neighbour in the list of use that was used later.
    var warmer: RowLink {
        get { unsafe look { unsafe $0.pointee.warmer } }
        nonmutating set { unsafe look { unsafe $0.pointee.warmer = newValue } }
    }

    /// Its neighbour in the list of use that was used earlier.
    var colder: RowLink {
        get { unsafe look { unsafe $0.pointee.colder } }
        nonmutating set { unsafe look { unsafe $0.pointee.colder = newValue } }
    }

    /// Enters the cache, which keeps it from now on.
    func enter(older: RowLink, until: UInt64) {
        precondition(pins == Self.notCached, "a row is in one cache once")
        unsafe look { head in
            unsafe head.pointee.pins = 0
            unsafe head.pointee.older = older
            unsafe head.pointee.until = until
        }
        _ = kept()
    }

    /// Leaves the cache, which lets it go: perhaps nobody else keeps it.
    func leave() {
        unsafe look { head in
            unsafe head.pointee.pins = Self.notCached
            unsafe head.pointee.older = .none
            unsafe head.pointee.warmer = .none
            unsafe head.pointee.colder = .none
        }
        unsafe memory.release()
    }

    // MARK: References

    /// A new reference to the row, as `CachedRow.kept` gives it.
    func kept() -> UInt {
        _ = unsafe memory.retain()
        return bits
    }

    /// The row with a reference of its own; nil for none.
    var counted: CachedRow? {
        isNone ? nil : unsafe CachedRow(memory: memory.takeUnretainedValue())
    }

    /// Asks for the memory of what the cache looks at and of the object, which will be soon. A row
    /// begins anywhere in a cache line, so that it is two of them.
    @inline(__always)
    func foresee() {
        if let start = unsafe UnsafeRawPointer(bitPattern: bits) {
            unsafe ComingMemory.foresee(start, Self.foreseenBytes)
        }
    }

    /// An object's own two words, and the head up to the object's ID.
    static let foreseenBytes = 16 + 56

    private var memory: Unmanaged<RowMemory> {
        guard let start = unsafe UnsafeRawPointer(bitPattern: bits) else {
            preconditionFailure("a link that leads nowhere was followed")
        }
        // Somebody keeps the row.
        return unsafe .fromOpaque(start)
    }

    @inline(__always)
    private func look<R>(_ body: (UnsafeMutablePointer<RowHead>) -> R) -> R {
        // Kept by somebody else meanwhile; the pointer lives for the closure.
        unsafe memory._withUnsafeGuaranteedRef { memory in
            unsafe memory.withUnsafeMutablePointerToHeader { unsafe body($0) }
        }
    }
}
