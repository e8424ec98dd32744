// FENCE: what every managed object holds: its identity, its row, its edits. One allocation.
//
// Invariants
// - `model` is not counted: the container keeps its models, and `core` keeps the container.
// - `row` is pinned in the row cache as long as it stands here. `keptRow` is the reference to it,
//   as a number: the end of the object hands both on, without counting.
// - `keptEdits` and `keptExtras` own a reference each: setters and `deinit` let it go, nobody else.
// - `deinit` may run on any thread, so it touches only what is Sendable: the registry, the row
//   cache.
// - `edits` of an inserted object hold a value for every column; those of another one only what
//   changed.
//
// Why no optional references: the compiler lets each go through its type's description, where it
// finds out that there is none: some 250 instructions for each object (callgrind).

import Observation
import Synchronization
public import VarveBase
public import VarveRecords

/// The part of a managed object that the library owns. An entity stores it and hands it on; it has
/// no members for apps.
@safe public struct ObjectStorage: ~Copyable {
    @usableFromInline let core: ContextCore
    @usableFromInline let uncountedModel: Unmanaged<EntityModel>
    @usableFromInline let object: ObjectID
    /// What `CachedRow.kept` gave for the row, or 0.
    @usableFromInline private(set) var keptRow: UInt
    @usableFromInline private(set) var keptEdits: Unmanaged<ObjectEdits>?
    private var keptExtras: Unmanaged<ObjectExtras>?
    var state: ObjectState
    /// Tells this object from others that its ID led to; 0: it is in no registry.
    let token: UInt32

    @usableFromInline init(
        core: ContextCore,
        model: borrowing EntityModel,
        object: ObjectID,
        state: ObjectState = [],
        token: UInt32 = 0,
        row: UInt = 0
    ) {
        self.core = core
        // The core's container has it as long as the core lives.
        unsafe uncountedModel = .passUnretained(copy model)
        self.object = object
        self.state = state
        self.token = token
        keptRow = row
        unsafe keptEdits = nil
        unsafe keptExtras = nil
    }

    deinit {
        if !state.contains(.invalid) {
            core.objectDied(object, token, keptRow)
        } else {
            // Nobody else has this reference.
            unsafe UncountedRow(bits: keptRow)?.release()
        }
        // Nor these.
        unsafe keptEdits?.release()
        unsafe keptExtras?.release()
    }

    /// The row of a filled object.
    var row: CachedRow? {
        // The reference of `keptRow` lasts while the new one is made.
        get { unsafe UncountedRow(bits: keptRow)?.counted }
        set {
            let old = keptRow
            keptRow = newValue?.kept() ?? 0
            // Nobody else has this reference.
            unsafe UncountedRow(bits: old)?.release()
        }
    }

    /// Unsaved values.
    var edits: ObjectEdits? {
        // The reference of `keptEdits` lasts while the new one is made.
        get { unsafe keptEdits?.takeUnretainedValue() }
        set {
            let old = unsafe keptEdits
            unsafe keptEdits = newValue.map { unsafe .passRetained($0) }
            // Nobody else has this reference.
            unsafe old?.release()
        }
    }

    /// What few objects have.
    private var extras: ObjectExtras? {
        // As with `edits`.
        get { unsafe keptExtras?.takeUnretainedValue() }
        set {
            let old = unsafe keptExtras
            unsafe keptExtras = newValue.map { unsafe .passRetained($0) }
            // Nobody else has this reference.
            unsafe old?.release()
        }
    }

    /// To-many relationships read so far.
    var related: [RelatedList]? {
        get { extras?.related }
        set {
            guard let extras = extras(if: newValue != nil) else { return }
            extras.related = newValue
            forgetExtras(extras)
        }
    }

    /// Made at the first read in an observing context.
    var observation: ObjectObservation? {
        get { extras?.observation }
        set {
            guard let extras = extras(if: newValue != nil) else { return }
            extras.observation = newValue
            forgetExtras(extras)
        }
    }

    /// What few objects have; made if it is wanted.
    private mutating func extras(if isWanted: Bool) -> ObjectExtras? {
        if extras == nil, isWanted { extras = ObjectExtras() }
        return extras
    }

    private mutating func forgetExtras(_ known: ObjectExtras) {
        if known.related == nil, known.observation == nil { extras = nil }
    }

    /// The object's entity.
    @usableFromInline var model: EntityModel {
        // The core's container has it as long as the core lives.
        unsafe uncountedModel.takeUnretainedValue()
    }

    /// The row and the column behind a slot, whoever observes; nil for a fault or with edits.
    borrowing func unedited(_ slot: Int) -> (row: CachedRow, column: ColumnID)? {
        guard edits == nil, let row else { return nil }
        return (row, model.columns[slot])
    }

    /// Whether the next save deletes the object, or its row is gone already.
    var isDeleted: Bool { !state.isDisjoint(with: [.deleted, .gone]) }

    /// Whether the next save writes anything for the object.
    var hasChanges: Bool { !state.isDisjoint(with: [.inserted, .updated, .deleted]) }

    /// Whether no commit ever had the object.
    var isNew: Bool { state.contains(.inserted) && !state.contains(.returned) }

    /// Whether the object is as its commit has it.
    var isSettled: Bool { !hasChanges && !isDeleted }

    /// Whether the values are not in memory.
    var isFault: Bool { keptRow == 0 && state.isDisjoint(with: [.inserted, .settling]) }

    /// The value behind a slot, when nothing stands in the way: no edit, no observer. Nil also
    /// where the row does not give it. The library's own types are read where the row stands,
    /// without a reference to it.
    @inlinable borrowing func plainValue<Value: StorableValue>(
        _ slot: Int,
        _: Value.Type
    ) -> Value? {
        guard unsafe keptEdits == nil, !core.observes, let kept = unsafe UncountedRow(bits: keptRow)
        else { return nil }
        // The model lives as long as the core.
        let column = unsafe uncountedModel._withUnsafeGuaranteedRef { $0.columns[slot] }
        // The row stands here while it is read, unless code of an app lets it go meanwhile.
        if Value._isReadByLibrary { return unsafe kept.lend { Value.read($0, column) } }
        return unsafe kept.lendCounted { Value.read($0, column) }
    }
}

/// Columns by slot, read without a reference count: a getter's first step.
@safe @usableFromInline struct ColumnTable: ~Copyable {
    @usableFromInline let base: UnsafeMutablePointer<ColumnID>
    @usableFromInline let count: Int

    init(_ columns: [ColumnID]) {
        count = columns.count
        unsafe base = .allocate(capacity: columns.count)
        for (slot, column) in columns.enumerated() {
            // One of `count` places.
            unsafe (base + slot).initialize(to: column)
        }
    }

    deinit {
        // Allocated in `init`, owned by this value alone. Columns are trivial.
        unsafe base.deallocate()
    }

    /// By slot.
    var all: [ColumnID] { (0..<count).map { self[$0] } }

    /// The column behind a slot; a wrong slot is a broken invariant.
    @inlinable subscript(slot: Int) -> ColumnID {
        precondition(slot >= 0 && slot < count)
        // One of the places that `init` filled.
        return unsafe base[slot]
    }
}

/// Where an object stands between its context and the store.
@usableFromInline struct ObjectState: OptionSet, Sendable {
    @usableFromInline let rawValue: UInt8
    @usableFromInline init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Made in this context and not saved yet.
    static let inserted = ObjectState(rawValue: 1)
    /// Has unsaved edits of its own.
    static let updated = ObjectState(rawValue: 2)
    /// To be deleted by the next save.
    static let deleted = ObjectState(rawValue: 4)
    /// Its row is gone: another context deleted it, or this one did and saved.
    static let gone = ObjectState(rawValue: 8)
    /// Its context was reset, or its insertion rolled back.
    static let invalid = ObjectState(rawValue: 16)
    /// Its row is gone because this context deleted it, or another object stands in its place.
    static let ended = ObjectState(rawValue: 32)
    /// It was new and is on disk; its values are its edits until the context has moved there.
    static let settling = ObjectState(rawValue: 64)
    /// New here, but not for ever: a commit had an object of that ID, which was deleted since.
    static let returned = ObjectState(rawValue: 128)
}

/// What few objects have. Here it costs the others one word and nothing at their end.
final class ObjectExtras {
    var related: [RelatedList]?
    var observation: ObjectObservation?
}

/// Unsaved values of one object, by slot.
@usableFromInline final class ObjectEdits {
    var values: [StoredValue?]
    /// They are on disk, and the row of that is not read yet.
    var isSaved = false
    /// Slots that the app set, as opposed to defaults of a new object: the first 64 as bits.
    private var assigned: UInt64 = 0
    /// Those from 64 on.
    private var assignedBehind: Set<Int> = []

    init(count: Int) { values = Array(repeating: nil, count: count) }

    init(values: [StoredValue?]) { self.values = values }

    func copy() -> ObjectEdits {
        let copy = ObjectEdits(values: values)
        (copy.assigned, copy.assignedBehind) = (assigned, assignedBehind)
        return copy
    }

    func assign(_ slot: Int) {
        if slot < 64 { assigned |= 1 << UInt64(slot) } else { assignedBehind.insert(slot) }
    }

    func isAssigned(_ slot: Int) -> Bool {
        slot < 64 ? assigned & (1 << UInt64(slot)) != 0 : assignedBehind.contains(slot)
    }

    var isEmpty: Bool { values.allSatisfy { $0 == nil } }

    /// Takes out what was saved meanwhile; by slot.
    func forget(_ saved: [StoredValue?]) {
        for (slot, value) in saved.enumerated() {
            guard let value, let edited = values[slot], edited.isSame(as: value) else { continue }
            values[slot] = nil
        }
    }
}

/// The members of a to-many relationship, as one commit has them.
final class RelatedList {
    let slot: Int
    let commit: CommitNumber
    let ids: [ObjectID]
    /// Whether a request prefetched it: who goes through it wants the members' values.
    let isPrefetched: Bool
    /// The same, once a long list was asked often enough to be worth it.
    private var known: Set<ObjectID>?

    init(slot: Int, commit: CommitNumber, ids: [ObjectID], isPrefetched: Bool) {
        (self.slot, self.commit, self.ids) = (slot, commit, ids)
        self.isPrefetched = isPrefetched
    }

    /// - Complexity: O(1), but for the first time.
    func contains(_ id: ObjectID) -> Bool {
        if ids.count <= 16 { return ids.contains(id) }
        if let known { return known.contains(id) }
        let all = Set(ids)
        known = all
        return all.contains(id)
    }
}

/// Who is told about changes of one object.
final class ObjectObservation {
    let registrar = ObservationRegistrar()
    /// Whether somebody looks at a property that is not stored: only its setter tells him.
    var hasTransients = false
    /// For each slot that was read: how to announce its change. True: before; false: after.
    private var announcers: [Int: (any ManagedObject, Bool) -> Void] = [:]

    func access<Object: ManagedObject, Value>(
        _ object: Object,
        _ keyPath: KeyPath<Object, Value>,
        slot: Int
    ) {
        if announcers[slot] == nil {
            announcers[slot] = { [registrar] subject, isBefore in
                guard let subject = subject as? Object else { return }
                if isBefore {
                    registrar.willSet(subject, keyPath: keyPath)
                } else {
                    registrar.didSet(subject, keyPath: keyPath)
                }
            }
        }
        registrar.access(object, keyPath: keyPath)
    }

    /// Announces a change of these slots; nil: of all that were read.
    func announce(_ object: any ManagedObject, _ slots: [Int]?, isBefore: Bool) {
        let context = object.storage.core.context
        if context?.heldBack != nil {
            if isBefore { context?.heldBack?.append((object, slots)) }
            return
        }
        context?.observersTold += 1
        defer { context?.observersTold -= 1 }
        for slot in slots ?? announcers.keys.sorted() {
            // Copied: an observer may read what was not read before, which adds an announcer.
            let tell = announcers[slot]
            tell?(object, isBefore)
        }
    }
}

// Nothing changes behind `init`.
extension ColumnTable: @unchecked Sendable {}
