// The two calls behind every stored property: reading and setting.
//
// Invariants
// - Reading a filled, unedited object that nobody observes is a check and a decode; everything else
//   goes through the context.
// - An implicit read that fails returns the zero value and is remembered; it never traps.

import VarveBase
import VarveRecords

extension ManagedObject {
    /// Reads an attribute. For accessors only.
    /// - Complexity: a decode; a fault is filled first, which may read the row from the store.
    @inlinable public func storedValue<Value: StorableValue>(
        _ column: Column<Self, Value>,
        _ keyPath: @autoclosure () -> KeyPath<Self, Value>
    ) -> Value {
        if let value = storage.plainValue(column.definition.slot, Value.self) { return value }
        let wasFault = fillPlainFault()
        if wasFault, let value = storage.plainValue(column.definition.slot, Value.self) {
            return value
        }
        return carefulValue(column, keyPath(), fills: !wasFault)
    }

    /// Fills a fault that nobody observes; a failure is remembered.
    /// - Returns: whether it was one.
    @usableFromInline func fillPlainFault() -> Bool {
        guard storage.keptRow == 0, !storage.core.observes, storage.isFault else { return false }
        fillOrNote()
        return true
    }

    /// Sets an attribute. For accessors only. A fault is filled first; if that fails, the value is
    /// kept out and the failure remembered. So is a value that a store cannot keep, as a refused
    /// edit.
    public func setStoredValue<Value: StorableValue>(
        _ value: Value,
        _ column: Column<Self, Value>,
        _ keyPath: @autoclosure () -> KeyPath<Self, Value>
    ) {
        setAttribute(value, column.definition)
    }

    func setAttribute<Value: StorableValue>(_ value: Value, _ definition: PropertyDefinition) {
        let slot = checkedSlot(definition)
        if let refusal = value._refusal {
            storage.core.context?.refuse(self, slot, .unstorable(self, slot, refusal))
            return
        }
        set(value.stored, slot: slot)
    }

    /// Reads a blob attribute: a handle, no bytes. For accessors only.
    public func storedValue(
        _ column: Column<Self, Blob?>,
        _ keyPath: @autoclosure () -> KeyPath<Self, Blob?>
    ) -> Blob? {
        let slot = checkedSlot(column.definition)
        track(keyPath(), slot)
        guard case .blob(let reference)? = looseValue(slot) else { return nil }
        if let context = storage.core.context { return context.blob(for: reference) }
        return Blob(reference: reference, source: .newest(of: storage.core.container))
    }

    /// Sets a blob attribute. For accessors only.
    public func setStoredValue(
        _ value: Blob?,
        _ column: Column<Self, Blob?>,
        _ keyPath: @autoclosure () -> KeyPath<Self, Blob?>
    ) {
        let slot = checkedSlot(column.definition)
        // The app's `awakeFromFetch` runs before the blob is kept: it may end all other edits.
        if storage.isFault { fillOrNote() }
        if let value, storage.core.context?.keepPending(value, for: self, slot) == false { return }
        set(value.map { .blob($0.reference) } ?? .null, slot: slot)
        // An observer may have rolled back before it was set.
        guard let value, let context = storage.core.context,
            context.pendingBlobs[value.reference] == nil,
            case .blob(value.reference)? = storage.edits?.values[slot]
        else { return }
        _ = context.keepPending(value, for: self, slot)
    }

    /// Reads a to-one relationship: nil, a registered object, or a new fault. For accessors only.
    public func storedValue<Target>(
        _ column: ToOneColumn<Self, Target>,
        _ keyPath: @autoclosure () -> KeyPath<Self, Target?>
    ) -> Target? {
        let slot = checkedSlot(column._definition)
        track(keyPath(), slot)
        guard let context = storage.core.context else {
            noteEndedContext(.read)
            return nil
        }
        let object: ObjectID
        if let plain = storage.unedited(slot), let stored = try? plain.row.reference(plain.column) {
            object = stored
        } else if case .reference(let stored)? = context.value(of: self, slot: slot) {
            object = stored
        } else {
            return nil
        }
        return context.typedTarget(of: self, slot: slot, object)
    }

    /// Sets a to-one relationship and keeps its inverse equal. An object that is deleted or of
    /// another context is kept out, as a refused edit. For accessors only.
    public func setStoredValue<Target>(
        _ value: Target?,
        _ column: ToOneColumn<Self, Target>,
        _ keyPath: @autoclosure () -> KeyPath<Self, Target?>
    ) {
        guard let context = storage.core.context else { return noteEndedContext(.edit) }
        context.setToOne(self, checkedSlot(column._definition), to: value)
    }

    /// A to-many relationship. Reads nothing yet. For accessors only.
    public func storedValue<Target>(
        _ column: ToManyColumn<Self, Target>,
        _ keyPath: @autoclosure () -> KeyPath<Self, ToMany<Target>>
    ) -> ToMany<Target> {
        let slot = checkedSlot(column.definition)
        track(keyPath(), slot)
        return ToMany(owner: self, slot: slot)
    }

    @usableFromInline func carefulValue<Value: StorableValue>(
        _ column: Column<Self, Value>,
        _ keyPath: KeyPath<Self, Value>,
        fills: Bool
    ) -> Value {
        readValue(column, keyPath, fills: fills)
    }

    /// Reads an attribute that a property shows as something else.
    /// - Parameter fills: false if it was tried to fill a fault already.
    func readValue<Value: StorableValue, Shown>(
        _ column: Column<Self, Value>,
        _ keyPath: KeyPath<Self, Shown>,
        fills: Bool = true
    ) -> Value {
        let slot = checkedSlot(column.definition)
        track(keyPath, slot)
        if fills, storage.isFault { fillOrNote() }
        if let plain = storage.unedited(slot), let value = Value.read(plain.row, plain.column) {
            return value
        }
        guard let stored = looseValue(slot) else { return Value.zeroValue }
        if stored == .null, !Value.isOptional { return Value.zeroValue }
        guard let value = Value(stored: stored) else {
            storage.core.context?.noteUnreadable(self, slot: slot)
            return Value.zeroValue
        }
        return value
    }

    func fillOrNote() {
        guard let context = storage.core.context else { return noteEndedContext(.read) }
        do throws(StoreError) { try context.fill(self) } catch { context.note(error, self) }
    }

    /// The value with or without a context: an object that outlived its context keeps its last
    /// values.
    func looseValue(_ slot: Int) -> StoredValue? {
        if let context = storage.core.context { return context.value(of: self, slot: slot) }
        if let edited = storage.edits?.values[slot] { return edited }
        guard let row = storage.row else { return nil }
        let (column, entity) = (storage.model.columns[slot], storage.model.record.id)
        if !row.isOutside(column) { return try? row.value(column) }
        // A large value is in the store only: there as long as nobody changed the object.
        guard let newest = try? storage.core.container.newestSnapshot(for: PinOwner(.context)),
            let current = try? newest.row(entity, storage.object), current.version == row.version
        else { return nil }
        return try? newest.value(of: row, column)
    }

    private func set(_ value: StoredValue, slot: Int) {
        guard let context = storage.core.context else { return noteEndedContext(.edit) }
        context.set(value, of: self, slot: slot)
    }

    func track<Value>(_ keyPath: @autoclosure () -> KeyPath<Self, Value>, _ slot: Int) {
        guard storage.core.observes else { return }
        observation.access(self, keyPath(), slot: slot)
    }

    /// Made when somebody asks for it first.
    var observation: ObjectObservation {
        if let known = storage.observation { return known }
        let made = ObjectObservation()
        storage.observation = made
        return made
    }

    func checkedSlot(_ definition: PropertyDefinition) -> Int {
        let slot = definition.slot
        precondition(
            slot >= 0,
            "\(Self.entityName).\(definition.name) is not in Columns, or columns is no static let"
        )
        return slot
    }
}
