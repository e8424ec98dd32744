// What the code of a custom stage works with.
//
// Invariants
// - Old rows show the store as it was before the stage; nothing that is written changes them.
// - It is worth something while the stage's code runs, on the thread that runs it.

public import Foundation
import VarveBase
import VarveEngine
import VarveRecords

/// A custom stage under way: old rows by name, new rows by class or by name.
public final class Migration {
    let change: StageChange
    /// A container that only this stage knows: it has the classes of the new schema.
    let container: PersistentContainer
    private let context: ManagedObjectContext

    init(_ change: StageChange, _ container: PersistentContainer) {
        self.change = change
        self.container = container
        context = ManagedObjectContext(container: container, author: "", label: "migration")
    }

    /// The version of the schema before.
    public var oldVersion: Int { Int(change.old.version) }
    /// The version of the schema after.
    public var newVersion: Int { Int(change.new.version) }

    // MARK: Reading

    /// Rows of an entity before the stage.
    ///
    /// - Throws: `StoreError`: `unknownEntity`, `damaged`, `ioFailed`.
    /// - Complexity: O(1).
    public func count(_ entity: String) throws -> Int {
        let entity = try oldEntity(entity)
        return try translating { () throws(RecordError) in try change.count(entity) }
    }

    /// Lends every row of an entity as it was, in the order of object IDs.
    ///
    /// - Parameters:
    ///   - entity: its name before the stage.
    ///   - body: may write, too.
    /// - Throws: what `body` throws; `StoreError`: `unknownEntity`, `damaged`, `ioFailed`;
    ///   `CancellationError`.
    /// - Complexity: O(rows); memory: a chunk of rows.
    public func forEach(
        _ entity: String,
        _ body: (borrowing OldRow) throws -> Void
    ) throws {
        let entity = try oldEntity(entity)
        try translatingAny {
            try change.forEachRow(entity) { row in
                try body(OldRow(row: row, migration: self))
            }
        }
    }

    /// Lends one row as it was; nil: there was none.
    ///
    /// - Throws: what `body` throws; `StoreError`: `unknownEntity`, `foreignID`, `damaged`,
    ///   `ioFailed`.
    /// - Complexity: O(log n).
    public func withRow<Result>(
        _ id: ManagedObjectID,
        _ body: (borrowing OldRow) throws -> Result
    ) throws -> Result? {
        try check(id)
        guard let entity = change.old.entity(id.entity) else { return nil }
        var result: Result?
        try translatingAny {
            _ = try change.withRow(entity, id.object) { row in
                result = try body(OldRow(row: row, migration: self))
            }
        }
        return result
    }

    /// - Throws: `CancellationError` if the task that opens the store was cancelled. Going through
    ///   rows asks by itself.
    public func checkCancellation() throws { try change.checkCancellation() }

    // MARK: Writing by names

    /// Lends every row of an entity that stays, as it was, and writes what `body` sets.
    ///
    /// - Parameters:
    ///   - entity: its name after the stage, or before it.
    ///   - body: gets the old row and the new one.
    /// - Throws: what `body` throws; `StoreError`: `unknownEntity`, `invalidRequest` for an entity
    ///   that is new; `damaged`, `diskFull`, `ioFailed`; `CancellationError`.
    /// - Complexity: O(rows x log n); memory is bounded.
    public func update(
        _ entity: String,
        _ body: (borrowing OldRow, inout NewRow) throws -> Void
    ) throws {
        let entity = try stayingEntity(entity)
        var new = NewRow(entity, self)
        try translatingAny {
            try change.update(entity) { row, record in
                new.begin()
                swap(&new.record, &record)
                defer { swap(&new.record, &record) }
                try body(OldRow(row: row, migration: self), &new)
                return new.links
            }
        }
    }

    /// Gives an attribute of every row another value, of another type if the schema says so.
    ///
    /// - Parameters:
    ///   - entity: its name after the stage.
    ///   - attribute: its name after the stage.
    ///   - name: its name before the stage; nil: the same.
    ///   - value: makes the new value of the old one.
    /// - Throws: what `update` throws, and what the rows throw for names and types.
    public func convert<Old: StorableValue, New: StorableValue>(
        _ entity: String,
        _ attribute: String,
        from name: String? = nil,
        _ value: (Old) throws -> New
    ) throws {
        try update(entity) { old, new in
            let before: Old = try old[name ?? attribute]
            try new.set(attribute, to: try value(before))
        }
    }

    /// Adds an object.
    ///
    /// - Parameters:
    ///   - entity: its name after the stage.
    ///   - id: of an object whose entity goes with this stage. The new object takes its number, so
    ///     that a relationship that led to the one is led to the other by the same ID.
    ///   - body: sets properties; what it does not set gets its default.
    /// - Returns: the new object's ID.
    /// - Throws: what `body` throws; `StoreError`: `unknownEntity`, `missingValue`,
    ///   `invalidRequest` for the ID of an object that stays; `diskFull`, `ioFailed`.
    /// - Complexity: O(log n) for each index.
    @discardableResult
    public func insert(
        _ entity: String,
        keeping id: ManagedObjectID? = nil,
        _ body: (inout NewRow) throws -> Void
    ) throws -> ManagedObjectID {
        let entity = try newEntity(entity)
        if let id { try check(id) }
        var new = NewRow(entity, self)
        new.begin()
        try body(&new)
        var made = ObjectID(0)
        let links = new.links
        do {
            made = try change.insert(&new.record, keeping: id?.object, links: links)
        } catch {
            throw StoreError.translatingAny(error, in: container)
        }
        return identity(entity.id, made)
    }

    /// Deletes an object when the stage's code has run: by the delete rules of the new schema. A
    /// `deny` that stands then fails the stage.
    ///
    /// - Throws: `StoreError`: `foreignID`, `wrongEntity` for an object of an entity that goes.
    public func delete(_ id: ManagedObjectID) throws {
        try check(id)
        guard let entity = change.new.entity(id.entity), !change.isGoing(id.entity) else {
            throw error(
                .wrongEntity,
                "an object was to be deleted whose entity goes with the stage, and it with it",
                change.old.entity(id.entity)?.name,
                nil,
                id,
                "Delete objects of entities that stay."
            )
        }
        change.delete(entity, id.object)
    }

    // MARK: Writing by classes

    /// Lends every row of an entity that stays, as it was, and writes what `body` sets by the
    /// names of the class. `new` reads as the row is by now.
    ///
    /// - Throws: as the other `update`, and as `batchUpdate`.
    public func update<Entity: ManagedObject>(
        _ type: Entity.Type,
        _ body: (borrowing OldRow, inout BatchRow<Entity>) throws -> Void
    ) throws {
        let batch = try writer(type)
        let entity = batch.model.record
        guard let before = change.old.entity(entity.id) else { throw isNew(entity.name) }
        let transaction = change.transaction
        var row = BatchRow<Entity>(batch.model, container, transaction)
        var current: [CachedRow?] = []
        var place = 0
        // A relationship of one row can change another one of the same sweep.
        let readsAhead = batch.model.relationshipSlots.isEmpty
        try translatingAny {
            try change.forEachRow(
                before,
                beforeChunk: { ids in
                    if !readsAhead { return }
                    current = try transaction.rows(entity.id, ids)
                    place = 0
                },
                { old in
                    defer { place += 1 }
                    let found =
                        readsAhead ? current[place] : try transaction.row(entity.id, old.id)
                    guard let now = found else { return }
                    row.begin(old.id, now)
                    try body(OldRow(row: old, migration: self), &row)
                    change.emptyLeaving(&row.record, old)
                    try keep(&row)
                    try batch.update(&row, transaction)
                    try change.note(&row.record, old.id, before: now)
                }
            )
        }
        change.noteSwept(entity)
    }

    /// Adds an object by the names of its class.
    ///
    /// - Parameters:
    ///   - type: the entity.
    ///   - id: see the other `insert`.
    ///   - body: sets properties; what it does not set gets its default.
    /// - Returns: the new object's ID.
    /// - Throws: as the other `insert`, and as `batchInsert`.
    @discardableResult
    public func insert<Entity: ManagedObject>(
        _ type: Entity.Type,
        keeping id: ManagedObjectID? = nil,
        _ body: (inout BatchRow<Entity>) throws -> Void
    ) throws -> TypedObjectID<Entity> {
        let batch = try writer(type)
        var row = BatchRow<Entity>(batch.model, container, change.transaction)
        let number: ObjectID
        if let id {
            try check(id)
            number = id.object
            try translating { () throws(RecordError) in
                try change.checkKept(number, batch.model.record)
            }
        } else {
            number = change.store.allocateObjectIDs(1)
        }
        row.begin(number, nil)
        try body(&row)
        do {
            try keep(&row)
            try batch.insert(&row, change.transaction)
            try change.note(&row.record, number, before: nil)
        } catch {
            throw StoreError.translatingAny(error, in: container)
        }
        return row.id
    }

    /// An ID of an old row as that of an entity of the new schema: the same object's, or that of
    /// the object that took its number.
    ///
    /// - Throws: `StoreError`: `wrongEntity` for an object that stays and is of another entity,
    ///   `unknownEntity`, `foreignID`.
    public func id<Entity: ManagedObject>(
        _ id: ManagedObjectID,
        of type: Entity.Type
    ) throws -> TypedObjectID<Entity> {
        try check(id)
        let model = try container.model(of: type)
        guard id.entity == model.record.id || change.isGoing(id.entity) else {
            throw StoreError.wrongEntity(id, Entity.entityName)
        }
        return TypedObjectID(identity(model.record.id, id.object))
    }

    private var writers: [ObjectIdentifier: AnyObject] = [:]

    private func writer<Entity: ManagedObject>(
        _ type: Entity.Type
    ) throws(StoreError) -> BatchWriter<Entity> {
        if let known = writers[ObjectIdentifier(type)] as? BatchWriter<Entity> { return known }
        let made = try BatchWriter<Entity>(context, nil)
        made.keepsBlobs = false
        made.judgesCounts = false
        writers[ObjectIdentifier(type)] = made
        return made
    }

    // MARK: Blobs

    /// Begins a blob that rows of the new schema can have.
    ///
    /// - Parameter externalLimit: bytes above which it becomes a file of its own.
    /// - Throws: `readOnly`.
    public func makeBlob(externalLimit: Int = 102_400) throws -> BlobWriter {
        try context.makeBlob(externalLimit: externalLimit)
    }

    /// Makes a blob of bytes.
    ///
    /// - Throws: `diskFull`, `ioFailed`.
    public func makeBlob(_ data: Data, externalLimit: Int = 102_400) throws -> Blob {
        var writer = try makeBlob(externalLimit: externalLimit)
        try writer.append(data)
        return try writer.finish()
    }

    func blob(_ reference: BlobReference) -> Blob {
        Blob(
            reference: reference,
            source: BlobSource(keeper: .frozen(change.frozen), container: container)
        )
    }

    private func keep<Entity>(_ row: inout BatchRow<Entity>) throws(StoreError) {
        for blob in row.blobs { try keep(blob, Entity.entityName, "") }
    }

    /// Sees to it that the bytes of a blob are there when the commit names it.
    func keep(_ blob: Blob, _ entity: String, _ name: String) throws(StoreError) {
        guard let source = blob.source, source.container.store === change.store else {
            throw error(
                .crossContext,
                "\(entity).\(name) was set to a blob of another container",
                entity,
                name,
                nil,
                "Copy its bytes with migration.makeBlob."
            )
        }
        guard case .pending(let pending) = source.keeper else { return }
        change.keep(pending, bytes: blob.length)
    }
}
