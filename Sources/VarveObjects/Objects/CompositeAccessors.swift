// Reading and setting composite attributes: of objects, snapshots and rows of batches.
//
// Invariants
// - Setting touches only the fields that differ from what is shown: two contexts that edit two
//   fields do not meet, and a field of which this build cannot read the value keeps it.

import VarveBase
import VarveRecords

extension ManagedObject {
    /// Reads a composite attribute. For accessors only.
    /// - Complexity: a decode for each field; a fault is filled first.
    public func storedValue<Composite: StoredComposite>(
        _ column: CompositeColumn<Self, Composite>,
        _ keyPath: @autoclosure () -> KeyPath<Self, Composite>
    ) -> Composite {
        composite(column.layout, keyPath()) as? Composite ?? Composite()
    }

    /// Reads an optional composite attribute. For accessors only.
    /// - Complexity: a decode for each field; a fault is filled first.
    public func storedValue<Composite: StoredComposite>(
        _ column: OptionalCompositeColumn<Self, Composite>,
        _ keyPath: @autoclosure () -> KeyPath<Self, Composite?>
    ) -> Composite? {
        composite(column.layout, keyPath()) as? Composite
    }

    /// Sets the fields of a composite attribute that differ. For accessors only.
    public func setStoredValue<Composite: StoredComposite>(
        _ value: Composite,
        _ column: CompositeColumn<Self, Composite>,
        _ keyPath: @autoclosure () -> KeyPath<Self, Composite>
    ) {
        setComposite(value, column.layout)
    }

    /// Sets the fields of an optional composite attribute that differ. For accessors only.
    public func setStoredValue<Composite: StoredComposite>(
        _ value: Composite?,
        _ column: OptionalCompositeColumn<Self, Composite>,
        _ keyPath: @autoclosure () -> KeyPath<Self, Composite?>
    ) {
        setComposite(value, column.layout)
    }

    private func composite<Shown>(
        _ layout: CompositeLayout,
        _ keyPath: KeyPath<Self, Shown>
    ) -> (any StoredComposite)? {
        for member in layout.members { track(keyPath, checkedSlot(member)) }
        if storage.isFault { fillOrNote() }
        let (value, unreadable) = layout.value { looseValue($0) }
        for slot in unreadable { storage.core.context?.noteUnreadable(self, slot: slot) }
        return value
    }

    private func setComposite(_ value: (any StoredComposite)?, _ layout: CompositeLayout) {
        if let value {
            for (field, member) in zip(layout.fields, layout.members) {
                guard let refusal = field.refusal(value) else { continue }
                let slot = checkedSlot(member)
                storage.core.context?.refuse(self, slot, .unstorable(self, slot, refusal))
                return
            }
        }
        if storage.isFault { fillOrNote() }
        let context = storage.core.context
        if context == nil { noteEndedContext(.edit) }
        var changes = layout.changes(to: value) { looseValue($0) }
        if context?.has(.nilKeepsTheFields) == true, value == nil {
            changes = changes.filter { $0.member === layout.members.last }
        }
        if context?.has(.fieldsComparedWithTheRow) == true, let row = storage.row {
            changes = changes.filter { member, stored in
                (try? row.value(storage.model.columns[member.slot]))?.isSame(as: stored) != true
            }
        }
        for member in layout.members { context?.forgetUnstorable(self, checkedSlot(member)) }
        for (member, stored) in changes {
            context?.set(stored, of: self, slot: checkedSlot(member))
        }
    }
}

extension RowSnapshot {
    /// A composite attribute.
    public subscript<Composite>(
        dynamicMember column: KeyPath<Entity.Columns, CompositeColumn<Entity, Composite>>
    ) -> Composite {
        let layout = Entity.columns[keyPath: column].layout
        return layout.value { stored($0) }.value as? Composite ?? Composite()
    }

    /// An optional composite attribute.
    public subscript<Composite>(
        dynamicMember column: KeyPath<Entity.Columns, OptionalCompositeColumn<Entity, Composite>>
    ) -> Composite? {
        let layout = Entity.columns[keyPath: column].layout
        return layout.value { stored($0) }.value as? Composite
    }

    private func stored(_ slot: Int) -> StoredValue {
        values.indices.contains(slot) ? values[slot] : .null
    }
}

extension BatchRow {
    /// A composite attribute.
    public subscript<Composite>(
        dynamicMember member: KeyPath<Entity.Columns, CompositeColumn<Entity, Composite>>
    ) -> Composite {
        get { composite(Entity.columns[keyPath: member].layout) as? Composite ?? Composite() }
        set { setComposite(newValue, Entity.columns[keyPath: member].layout) }
    }

    /// An optional composite attribute.
    public subscript<Composite>(
        dynamicMember member: KeyPath<Entity.Columns, OptionalCompositeColumn<Entity, Composite>>
    ) -> Composite? {
        get { composite(Entity.columns[keyPath: member].layout) as? Composite }
        set { setComposite(newValue, Entity.columns[keyPath: member].layout) }
    }

    private func composite(_ layout: CompositeLayout) -> (any StoredComposite)? {
        var stored: [Int: StoredValue] = [:]
        for member in layout.members { stored[member.slot] = self.stored(member.slot) }
        return layout.value { stored[$0] }.value
    }

    private mutating func setComposite(
        _ value: (any StoredComposite)?,
        _ layout: CompositeLayout
    ) {
        if let value {
            for (field, member) in zip(layout.fields, layout.members) {
                if let refusal = field.refusal(value) { return refuse(member.slot, refusal) }
            }
        }
        let changes = layout.changes(to: value) { self.stored($0) }
        for (member, stored) in changes { record.set(column(member.slot), stored) }
    }
}
