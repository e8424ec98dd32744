// Changes of rows and links that become one commit, or nothing.
//
// Invariants
// - Every value is checked against its column before the engine sees it.
// - Link rows are in `LinkWriting.swift`; deleting an object deletes its link rows.
// - Unique constraints hold when the transaction ends; in between they may be violated, so that two
//   objects can exchange their values.

public import VarveBase
import VarveEngine
import VarveFormat

/// A value for one column.
public struct ColumnValue: Hashable, Sendable {
    /// The column.
    public var column: ColumnID
    /// Its value.
    public var value: StoredValue

    /// Joins a column and a value.
    public init(_ column: ColumnID, _ value: StoredValue) {
        self.column = column
        self.value = value
    }
}

/// One write transaction. It sees its own changes; use it inside `RecordStore.write` only.
public final class RecordTransaction {
    /// The schema in force.
    public let schema: RecordSchema
    let storage: WriteTransaction
    let reader: RecordReader<WriteTransaction>
    let store: RecordStore
    // Asked for or changed with every row. Exclusivity is not checked at run time: a transaction
    // has one thread, and each function reads or writes these at once.
    @safe @exclusivity(unchecked) private var touched: [EntityID: Set<ObjectID>] = [:]
    @safe @exclusivity(unchecked) var linkSides: [EntityID: [LinkSide]] = [:]
    var mutualLinks = MutualLinks()
    /// Memory for the next row.
    @safe @exclusivity(unchecked) private var rowBytes: [UInt8] = []

    /// False: whoever made it looks at whole indexes in the end.
    private let tracksUniqueness: Bool

    init(
        _ storage: WriteTransaction,
        _ schema: RecordSchema,
        _ store: RecordStore,
        tracksUniqueness: Bool = true
    ) {
        self.tracksUniqueness = tracksUniqueness
        self.storage = storage
        self.schema = schema
        self.store = store
        reader = RecordReader(source: storage, schema: schema, counters: store.counters)
    }

    /// The number that this commit will have.
    public var number: CommitNumber { storage.number }

    // MARK: Reading

    /// One row as it is now; not cached.
    public func row(_ entity: EntityID, _ id: ObjectID) throws(RecordError) -> CachedRow? {
        let entity = try reader.entity(entity)
        let stored = try reader.engine { () throws(EngineError) in try storage.row(entity.tree, id)
        }
        return try stored.map { (row) throws(RecordError) in try CachedRow(entity, id, row) }
    }

    /// Rows of IDs in any order, read in one pass; not cached.
    public func rows(_ entity: EntityID, _ ids: [ObjectID]) throws(RecordError) -> [CachedRow?] {
        let entity = try reader.entity(entity)
        var result: [CachedRow?] = []
        for (id, row) in zip(ids, try reader.storedRows(entity, ids)) {
            result.append(
                try row.map { (row) throws(RecordError) in try CachedRow(entity, id, row) }
            )
        }
        return result
    }

    /// The commit that last changed a row: the pending one if this transaction did; nil when there
    /// is no row.
    public func version(_ entity: EntityID, _ id: ObjectID) throws(RecordError) -> CommitNumber? {
        let tree = try reader.entity(entity).tree
        return try reader.engine { () throws(EngineError) in try storage.row(tree, id)?.version }
    }

    /// The value of a column, read from the store where it lies outside the row.
    public func value(of row: CachedRow, _ column: ColumnID) throws(RecordError) -> StoredValue {
        let slot = row.slot(column)
        if slot.isOutside { return try storage.outsideValue(row.entity, row.id, column, slot) }
        return try row.value(column)
    }

    /// The object IDs of a request, in its order.
    public func fetchIDs(_ query: RecordQuery) throws(RecordError) -> [ObjectID] {
        try reader.fetchIDs(query)
    }

    /// How many objects a fetch would return.
    public func count(_ query: RecordQuery) throws(RecordError) -> Int {
        try reader.count(query)
    }

    /// The members of a relationship; see `RecordSnapshot.relatedIDs`.
    public func relatedIDs(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        of id: ObjectID
    ) throws(RecordError) -> [ObjectID] {
        try reader.related(relationship, of: id, in: entity)
    }

    /// Number of members of a relationship. O(log n).
    public func relatedCount(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        of id: ObjectID
    ) throws(RecordError) -> Int {
        try reader.relatedCount(relationship, of: id, in: entity)
    }

    // MARK: Rows

    /// Adds an object. Columns that are not named get their declared default.
    ///
    /// Throws `objectExists`, `wrongType`, `missingValue`, `unknownProperty`, `engine`.
    public func insert(
        _ entity: EntityID,
        _ id: ObjectID,
        _ values: [ColumnValue]
    ) throws(RecordError) {
        var row = RecordRow(try reader.entity(entity))
        for value in values { try set(value, in: &row, id) }
        let tree = row.entity.tree
        let exists = try reader.engine { () throws(EngineError) in try storage.row(tree, id) != nil
        }
        if exists { throw .objectExists(entity: row.entity.name, object: id) }
        try insert(&row, id)
    }

    /// Adds an object under an ID that no object ever had. Columns that are not set get their
    /// declared default.
    ///
    /// Throws `wrongType`, `missingValue`, `unknownProperty`, `engine`.
    public func insert(_ row: inout RecordRow, _ id: ObjectID) throws(RecordError) {
        row.fillDefaults()
        try row.check(id)
        let entity = row.entity
        // One array for all rows: what is below copies it into a leaf and into the log.
        var bytes = rowBytes
        rowBytes = []
        defer { rowBytes = bytes }
        bytes.removeAll(keepingCapacity: true)
        row.encoder.encode(into: &bytes)
        let facts = row.encoder.facts
        try reader.engine { () throws(EngineError) in
            try storage.insert(entity.id, id, row: bytes, facts: facts)
        }
        if tracksUniqueness, entity.hasUniqueIndex { touched[entity.id, default: []].insert(id) }
    }

    private func set(
        _ value: ColumnValue,
        in row: inout RecordRow,
        _ id: ObjectID
    ) throws(RecordError) {
        guard Int(value.column.rawValue) < row.entity.columnCount else {
            throw .unknownProperty(
                entity: row.entity.name,
                property: "column \(value.column.rawValue)"
            )
        }
        row.set(value.column, value.value)
    }

    /// Changes columns of an object; the others stay. The change may wait until something is read
    /// or the transaction ends, and so may its failure.
    ///
    /// Throws `objectNotFound`, `wrongType`, `missingValue`, `unknownProperty`, `engine`.
    public func update(
        _ entity: EntityID,
        _ id: ObjectID,
        _ values: [ColumnValue]
    ) throws(RecordError) {
        var row = RecordRow(try reader.entity(entity))
        for value in values { try set(value, in: &row, id) }
        try update(&row, id)
    }

    /// Changes the columns that are set; the others stay. Many changes are put in place in the
    /// order of IDs, whatever order they come in.
    ///
    /// Throws as the other `update`.
    public func update(_ row: inout RecordRow, _ id: ObjectID) throws(RecordError) {
        if row.isEmpty { return }
        try row.check(id)
        let entity = row.entity
        // One array for all patches, as for all rows.
        var patch = rowBytes
        rowBytes = []
        defer { rowBytes = patch }
        patch.removeAll(keepingCapacity: true)
        row.encoder.encodePatch(into: &patch)
        try reader.engine { () throws(EngineError) in
            try storage.update(entity.id, id, patch: patch)
        }
        guard tracksUniqueness, entity.hasUniqueIndex else { return }
        for index in entity.indexes where index.uniqueness != nil {
            for term in index.terms where row.isSet(term.column) {
                touched[entity.id, default: []].insert(id)
            }
        }
    }

    /// Takes an object out, with the link rows that it stands in. Delete rules are the object
    /// layer's. Like a change, that may wait.
    ///
    /// Throws `objectNotFound`, `unknownEntity`, `engine`.
    public func delete(_ entity: EntityID, _ id: ObjectID) throws(RecordError) {
        _ = try reader.entity(entity)
        try deleteLinks(of: entity, id)
        try reader.engine { () throws(EngineError) in try storage.delete(entity, id) }
        if !touched.isEmpty { touched[entity]?.remove(id) }
    }

    /// Takes an object out at once, with the link rows that it stands in; false when there is none.
    ///
    /// Throws `unknownEntity`, `engine`.
    public func deleteIfPresent(
        _ entity: EntityID,
        _ id: ObjectID
    ) throws(RecordError) -> Bool {
        _ = try reader.entity(entity)
        let wasThere = try reader.engine { () throws(EngineError) in
            try storage.deleteIfPresent(entity, id)
        }
        if !wasThere { return false }
        try deleteLinks(of: entity, id)
        if !touched.isEmpty { touched[entity]?.remove(id) }
        return true
    }

    // MARK: Uniqueness

    /// The constraints that a new object with these values would violate, with the objects in its
    /// way.
    public func uniqueConflicts(
        _ entity: EntityID,
        values: [ColumnValue],
        excluding: ObjectID? = nil
    ) throws(RecordError) -> [UniqueViolation] {
        let entity = try reader.entity(entity)
        let given = GivenValues(
            objectID: excluding ?? ObjectID(0),
            entity: entity,
            values: Dictionary(values.map { ($0.column, $0.value) }, uniquingKeysWith: { $1 })
        )
        var result: [UniqueViolation] = []
        for index in entity.indexes {
            guard let policy = index.uniqueness else { continue }
            let others = try reader.sharing(index, entity, given, excluding: excluding)
            if others.isEmpty { continue }
            result.append(
                UniqueViolation(
                    entity: entity.id,
                    entityName: entity.name,
                    properties: index.names,
                    policy: policy,
                    objects: others.sorted()
                )
            )
        }
        return result
    }

    /// The end of the transaction: what waited is put in place, and constraints hold.
    func finish() throws(RecordError) {
        try reader.engine { () throws(EngineError) in try storage.applyDeferred() }
        try verifyUniqueness()
    }

    /// Throws `notUnique` with every violation among the objects that this transaction touched.
    public func verifyUniqueness() throws(RecordError) {
        var violations: [UniqueViolation] = []
        for (id, objects) in touched.sorted(by: { $0.key < $1.key }) {
            let entity = try reader.entity(id)
            for index in entity.indexes where index.uniqueness != nil {
                // After a bulk load one walk over the index is cheaper than a search per object.
                let entries = try reader.count(index.tree)
                let isBulk = objects.count > 256 && UInt64(objects.count) > entries / 16
                let suspects =
                    isBulk
                    ? try reader.sharedEntries(index).filter { objects.contains($0) }
                    : objects.sorted()
                violations += try reader.violations(entity, suspects, only: [index.tree])
            }
        }
        if !violations.isEmpty { throw .notUnique(violations) }
    }
}
