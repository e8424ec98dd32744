// One row of a batch operation: typed properties by name, no object behind them.
//
// Invariants
// - What is set is kept as the row's bytes already; nothing is allocated per value.
// - Handles of blobs that were set go on to the batch, which keeps them until its commit: the store
//   knows their bytes only through them.

public import VarveBase
public import VarveRecords

/// One row of a batch operation, with the entity's properties as its members: `row.title = "new"`.
///
/// Attributes have their own types. A to-one relationship is set by the ID of the object it leads
/// to, a many-to-many one by the IDs of its members; inverses follow. A one-to-many relationship is
/// set on its other side.
@dynamicMemberLookup
public struct BatchRow<Entity: ManagedObject>: ~Copyable {
    @usableFromInline var record: RecordRow
    /// By slot.
    @usableFromInline let columns: [ColumnID]
    let model: EntityModel
    let container: PersistentContainer
    var object = ObjectID(0)
    /// The row as it was; nil for a new one.
    var old: CachedRow?
    var blobs: [Blob] = []
    /// Reads values outside their rows.
    let transaction: RecordTransaction

    init(_ model: EntityModel, _ container: PersistentContainer, _ transaction: RecordTransaction) {
        record = RecordRow(model.record)
        columns = model.columns.all
        self.model = model
        self.container = container
        self.transaction = transaction
    }

    mutating func begin(_ object: ObjectID, _ old: CachedRow?) {
        record.begin()
        self.object = object
        self.old = old
        if !blobs.isEmpty { blobs = [] }
        if !links.isEmpty { links = [:] }
    }

    /// The object's permanent ID; that of a new row leads to it as soon as the batch is committed.
    public var id: Entity.ID {
        TypedObjectID(
            ManagedObjectID(
                store: container.identity,
                entity: model.record.id,
                object: object
            )
        )
    }

    /// An attribute. One that was not set reads as it is in the store; in a new row as its default.
    @inlinable
    public subscript<Value: StorableValue>(
        dynamicMember member: KeyPath<Entity.Columns, Column<Entity, Value>>
    ) -> Value {
        get { value(Entity.columns[keyPath: member].definition.slot) }
        set {
            let slot = Entity.columns[keyPath: member].definition.slot
            if let refusal = newValue._refusal { return refuse(slot, refusal) }
            newValue.write(column(slot), to: &record)
        }
    }

    /// A blob attribute.
    public subscript(
        dynamicMember member: KeyPath<Entity.Columns, Column<Entity, Blob?>>
    ) -> Blob? {
        get {
            let slot = Entity.columns[keyPath: member].definition.slot
            guard case .blob(let reference)? = stored(slot) else { return nil }
            if let own = blobs.last(where: { $0.reference == reference }) { return own }
            return Blob(reference: reference, source: .newest(of: container))
        }
        set {
            let slot = Entity.columns[keyPath: member].definition.slot
            if let newValue { blobs.append(newValue) }
            newValue.write(column(slot), to: &record)
        }
    }

    /// The object that a to-one relationship leads to, by its ID.
    public subscript<Target>(
        dynamicMember member: KeyPath<Entity.Columns, ToOneColumn<Entity, Target>>
    ) -> Target.ID? {
        get {
            let slot = Entity.columns[keyPath: member]._definition.slot
            guard case .reference(let object)? = stored(slot),
                let entity = model.properties[slot].relationship?.target
            else { return nil }
            return TypedObjectID(
                ManagedObjectID(store: container.identity, entity: entity, object: object)
            )
        }
        set {
            let column = column(Entity.columns[keyPath: member]._definition.slot)
            guard let newValue else { return record.setNull(column) }
            if newValue.objectID.store != container.identity {
                foreign = foreign ?? newValue.objectID
            }
            record.set(column, reference: newValue.objectID.object)
        }
    }

    /// The members of a many-to-many relationship, or of a to-many without inverse, by their IDs:
    /// as they were set, else as the store has them. Setting makes them exactly these; in an
    /// ordered relationship in this order. Where the inverse is a to-one the batch fails with
    /// `invalidRequest`: set that one.
    public subscript<Target>(
        dynamicMember member: KeyPath<Entity.Columns, ToManyColumn<Entity, Target>>
    ) -> [Target.ID] {
        get {
            let slot = Entity.columns[keyPath: member].definition.slot
            guard let relationship = model.properties[slot].relationship else { return [] }
            let ids =
                links[slot]
                ?? (old == nil
                    ? nil
                    : try? transaction.relatedIDs(model.record, relationship.record, of: object))
            return (ids ?? []).map {
                TypedObjectID(
                    ManagedObjectID(
                        store: container.identity,
                        entity: relationship.target,
                        object: $0
                    )
                )
            }
        }
        set {
            let slot = Entity.columns[keyPath: member].definition.slot
            guard let relationship = model.properties[slot].relationship else { return }
            if relationship.isKeptByInverse { return refuseMembers(slot) }
            for id in newValue where id.objectID.store != container.identity {
                foreign = foreign ?? id.objectID
            }
            var seen: Set<ObjectID> = []
            links[slot] = newValue.map(\.objectID.object).filter { seen.insert($0).inserted }
        }
    }

    /// Members of to-many relationships that were set, by slot; each once.
    var links: [Int: [ObjectID]] = [:]

    private mutating func refuseMembers(_ slot: Int) {
        let name = model.properties[slot].name
        unstorable =
            unstorable
            ?? StoreError(
                .invalidRequest,
                "\(model.name).\(name) cannot be set in a batch: it is what its inverse says",
                place: .init(entity: model.name, attribute: name),
                suggestion: "Set the to-one on the other side, in a batch of its entity."
            )
    }

    /// An ID of another store that was set; the batch then fails.
    private(set) var foreign: ManagedObjectID?

    /// Why something that was set cannot be; the batch then fails.
    private(set) var unstorable: StoreError?

    @usableFromInline mutating func refuse(_ slot: Int, _ reason: String) {
        let name = model.properties[slot].name
        unstorable =
            unstorable
            ?? StoreError(
                .invalid,
                "\(model.name).\(name) was to be set to a value that \(reason)",
                place: .init(entity: model.name, attribute: name),
                suggestion: "Set \(name) to a value that can be stored, and do the batch again."
            )
    }

    @usableFromInline func column(_ slot: Int) -> ColumnID {
        precondition(slot >= 0, "the property is not in Columns, or columns is no static let")
        return columns[slot]
    }

    @usableFromInline func value<Value: StorableValue>(_ slot: Int) -> Value {
        guard let stored = stored(slot) else { return Value.zeroValue }
        if stored == .null, !Value.isOptional { return Value.zeroValue }
        return Value(stored: stored) ?? Value.zeroValue
    }

    /// What was set, else what the row holds, else the default. Nil: not readable, or no default.
    func stored(_ slot: Int) -> StoredValue? { (try? readable(slot)) ?? nil }

    /// The same; nil: there is no default.
    func readable(_ slot: Int) throws -> StoredValue? {
        let column = column(slot)
        if let set = try record.value(column) { return set }
        if let old { return try transaction.value(of: old, column) }
        return model.properties[slot].makeDefault?()
    }

    /// Sets the defaults of what was not set.
    mutating func fillDefaults() {
        for (slot, make) in model.defaults where !record.isSet(columns[slot]) {
            record.set(columns[slot], make())
        }
    }
}
