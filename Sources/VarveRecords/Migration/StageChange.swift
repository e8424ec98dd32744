// What the code of a stage works with: rows as they were, and a transaction under the new schema.
//
// Invariants
// - Rows are read from the state that the stage began with, which nothing changes any more.
// - While the code runs, what goes is still in the store, and indexes of attributes that are new
//   are not: they are built once, from the rows that the code has left.
// - Memory: a chunk of rows, and what the transaction keeps; handles of blobs that were given to
//   rows are placed now and then, and let go.

public import VarveBase
public import VarveEngine
import VarveFormat

/// One stage under way. Used on the thread that migrates.
public final class StageChange {
    /// The schema before.
    public let old: RecordSchema
    /// The schema after. Indexes of new attributes are not in it.
    public let new: RecordSchema
    /// Changes rows, under the new schema.
    public let transaction: RecordTransaction
    /// The state before.
    public let frozen: FrozenState
    /// The store.
    public let store: RecordStore
    /// By entity: columns that go, so that a row that is written anyway loses them.
    let leaving: [EntityID: [ColumnID]]
    let control: MigrationControl
    private let makeDefault: (String, String) -> (() -> StoredValue)?
    private let reader: RecordReader<FrozenState>
    private(set) var marks: [EntityID: ReadMarks] = [:]
    /// Entities of which every row was written without what goes.
    private(set) var swept: Set<EntityID> = []
    /// Relationships whose links the code has set.
    private(set) var related: Set<Related> = []
    /// Entities whose rows the code has changed or added.
    private(set) var touched: Set<EntityID> = []
    /// Objects that are to go when the code has run, by entity.
    private(set) var doomed: [EntityID: ObjectIDCollector] = [:]
    private var defaults: [EntityID: [(column: ColumnID, make: () -> StoredValue)]] = [:]
    private var handles: [any AnyObject & Sendable] = []
    private var handleBytes = 0

    struct Related: Hashable {
        let entity: EntityID
        let name: String
    }

    /// Bytes of blobs that are kept in memory before they are placed.
    static let handleBytesMax = 8 << 20

    init(
        old: RecordSchema,
        new: RecordSchema,
        _ transaction: RecordTransaction,
        _ frozen: FrozenState,
        leaving: [EntityID: [ColumnID]],
        _ control: MigrationControl,
        makeDefault: @escaping (String, String) -> (() -> StoredValue)?
    ) {
        self.old = old
        self.new = new
        self.transaction = transaction
        self.frozen = frozen
        self.leaving = leaving
        self.control = control
        self.makeDefault = makeDefault
        store = transaction.store
        reader = RecordReader(source: frozen, schema: old, counters: transaction.store.counters)
    }

    // MARK: Reading

    private func marks(of entity: RecordEntity) -> ReadMarks {
        if let known = marks[entity.id] { return known }
        let made = ReadMarks(entity)
        marks[entity.id] = made
        return made
    }

    /// Rows of an entity before the stage. O(1).
    public func count(_ entity: RecordEntity) throws(RecordError) -> Int {
        Int(clamping: try reader.count(entity.tree))
    }

    /// Lends every row of an entity as it was, ascending by object.
    ///
    /// Throws what the closures throw, what the report of progress throws, `engine`, `format`.
    ///
    /// - Parameter beforeChunk: told of the objects that are lent next.
    /// - Complexity: O(rows).
    public func forEachRow(
        _ entity: RecordEntity,
        beforeChunk: ([ObjectID]) throws -> Void = { _ in },
        _ body: (StageRow) throws -> Void
    ) throws {
        var frozen = frozen
        if store.options.plantedStageBugs.contains(.readsWhatItWrites) {
            frozen = try transaction.storage.frozen()
        }
        let row = StageRow(entity, frozen, marks(of: entity))
        try control.begin("\(entity.name): rows", rows: try count(entity))
        var reader = StageRowReader(entity, frozen)
        var done = 0
        while try reader.next(into: row, beforeChunk: beforeChunk, body) {
            done += reader.count
            try control.done(done)
        }
    }

    /// Lends one row as it was. False: there was none.
    ///
    /// - Complexity: O(log n).
    public func withRow(
        _ entity: RecordEntity,
        _ id: ObjectID,
        _ body: (StageRow) throws -> Void
    ) throws -> Bool {
        let stored = try reader.engine { () throws(EngineError) in
            try frozen.row(entity.tree, id)
        }
        guard let stored else { return false }
        let row = StageRow(entity, frozen, marks(of: entity))
        row.take(chunk: stored.bytes)
        try row.show(id, 0..<stored.bytes.count)
        try body(row)
        return true
    }

    /// The members of a relationship as they were, in their order.
    public func members(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        of id: ObjectID
    ) throws(RecordError) -> [ObjectID] {
        try reader.related(relationship, of: id, in: entity)
    }

    /// Whether the migration was cancelled: throws `CancellationError` then.
    public func checkCancellation() throws { try control.check() }

    // MARK: Writing

    /// Lends every row of an entity that stays, as it was, and writes what `body` sets.
    ///
    /// - Parameters:
    ///   - entity: as it is after the stage.
    ///   - body: sets columns of the row, and returns links to be set.
    /// - Complexity: O(rows); changes are put in place in the order of objects.
    public func update(
        _ entity: RecordEntity,
        _ body: (StageRow, inout RecordRow) throws -> [(RecordRelationship, [ObjectID])]
    ) throws {
        guard let before = old.entity(entity.id) else {
            throw RecordError.invalidRequest(
                "\(entity.name) is new in this stage and has no rows to update: insert some"
            )
        }
        var row = RecordRow(entity)
        touched.insert(entity.id)
        try forEachRow(before) { old in
            row.begin()
            let links = try body(old, &row)
            try relate(&row, old.id, entity, before: old)
            emptyLeaving(&row, old)
            try transaction.update(&row, old.id)
            try set(links, of: old.id, entity, isNew: false)
            try placeIfMany()
        }
        swept.insert(entity.id)
    }

    /// Adds an object.
    ///
    /// - Parameter number: the number of an object of an entity that goes, whose place the new one
    ///   takes: what led to it by number leads here. Nil: a new number.
    public func insert(
        _ row: inout RecordRow,
        keeping number: ObjectID?,
        links: [(RecordRelationship, [ObjectID])]
    ) throws -> ObjectID {
        let entity = row.entity
        if let number { try checkKept(number, entity) }
        let id = number ?? store.allocateObjectIDs(1)
        for (column, make) in varyingDefaults(entity) where !row.isSet(column) {
            row.set(column, make())
        }
        try relate(&row, id, entity, before: nil)
        try transaction.insert(&row, id)
        touched.insert(entity.id)
        try set(links, of: id, entity, isNew: true)
        try placeIfMany()
        return id
    }

    /// Notes what another writer has set of an object of this transaction, and keeps the lists that
    /// its to-ones belong to.
    ///
    /// - Parameter before: the row before; nil for a new object.
    public func note(
        _ row: inout RecordRow,
        _ id: ObjectID,
        before: CachedRow?
    ) throws(RecordError) {
        touched.insert(row.entity.id)
        try placeIfMany()
        for relationship in row.entity.relationships {
            guard case .column(let column, _) = relationship.storage else {
                if case .link = relationship.storage {
                    related.insert(Related(entity: row.entity.id, name: relationship.name))
                }
                continue
            }
            guard let value = try row.value(column) else { continue }
            related.insert(Related(entity: row.entity.id, name: relationship.name))
            guard let (far, inverse) = list(of: relationship) else { continue }
            if let former = try before?.reference(column), value != .reference(former) {
                try transaction.removeLink(far, inverse, from: former, to: id)
            }
            guard case .reference(let target) = value else { continue }
            try transaction.addLink(far, inverse, from: target, to: id)
        }
    }

    /// The ordered list on the other side of a to-one.
    private func list(
        of relationship: RecordRelationship
    ) -> (RecordEntity, RecordRelationship)? {
        guard let name = relationship.inverse, let far = new.entity(relationship.target),
            let inverse = far.relationship(named: name), case .link = inverse.storage
        else { return nil }
        return (far, inverse)
    }

    /// Nothing is left of what goes in the rows of an entity: each was written.
    public func noteSwept(_ entity: RecordEntity) { swept.insert(entity.id) }

    /// The columns of an entity that go.
    public func emptyLeaving(_ row: inout RecordRow, _ old: StageRow) {
        for column in leaving[row.entity.id] ?? [] where old.holds(column) {
            row.setAbsent(column)
        }
    }

    /// Notes that an object is to go. Delete rules hold, when the code has run.
    public func delete(_ entity: RecordEntity, _ id: ObjectID) {
        doomed[entity.id, default: ObjectIDCollector()].add(id)
        touched.insert(entity.id)
    }

    private func varyingDefaults(
        _ entity: RecordEntity
    ) -> [(column: ColumnID, make: () -> StoredValue)] {
        if let known = defaults[entity.id] { return known }
        let made = entity.attributes.compactMap { attribute in
            makeDefault(entity.name, attribute.name).map { (attribute.column, $0) }
        }
        defaults[entity.id] = made
        return made
    }

    /// Throws unless an object of `entity` may take a number: two rows never have one.
    public func checkKept(_ number: ObjectID, _ entity: RecordEntity) throws(RecordError) {
        for before in old.entities {
            let row = try reader.engine { () throws(EngineError) in
                try frozen.row(before.tree, number)
            }
            if row == nil { continue }
            if isGoing(before.id) { return }
            throw .invalidRequest(
                "a new \(entity.name) cannot take the number of a \(before.name), which stays in"
                    + " the schema: insert it without one, and keep a table of old and new IDs"
            )
        }
        throw .objectNotFound(entity: "object of an entity that goes", object: number)
    }

    /// Whether an entity of the old schema is not one of the new.
    public func isGoing(_ entity: EntityID) -> Bool { !stays.contains(entity) }

    private(set) lazy var stays = Set(new.all.map(\.id)).subtracting(goingEntities)
    /// Entities that are in `new` only until the code has run.
    var goingEntities: Set<EntityID> = []

    // MARK: Relationships

    private func set(
        _ links: [(RecordRelationship, [ObjectID])],
        of id: ObjectID,
        _ entity: RecordEntity,
        isNew: Bool
    ) throws(RecordError) {
        for (relationship, members) in links {
            related.insert(Related(entity: entity.id, name: relationship.name))
            if relationship.isOrdered {
                try transaction.setOrder(entity, relationship, of: id, members)
                continue
            }
            if !isNew {
                let wanted = Set(members)
                let present = try transaction.relatedIDs(entity, relationship, of: id)
                for member in present where !wanted.contains(member) {
                    try transaction.removeLink(entity, relationship, from: id, to: member)
                }
            }
            for member in members {
                try transaction.addLink(entity, relationship, from: id, to: member)
            }
        }
    }

    /// Keeps the far sides of to-one relationships that `row` sets.
    private func relate(
        _ row: inout RecordRow,
        _ id: ObjectID,
        _ entity: RecordEntity,
        before: StageRow?
    ) throws(RecordError) {
        for relationship in entity.relationships {
            guard case .column(let column, _) = relationship.storage,
                let value = try row.value(column)
            else { continue }
            related.insert(Related(entity: entity.id, name: relationship.name))
            var target: ObjectID?
            if case .reference(let object) = value { target = object }
            guard let name = relationship.inverse, let far = new.entity(relationship.target),
                let inverse = far.relationship(named: name)
            else { continue }
            if store.options.plantedStageBugs.contains(.forgetsInverses) { continue }
            switch inverse.storage {
            case .column(let back, _):
                var updated = 0
                let pair = OneToOne(near: entity.id, column, far: far.id, back)
                try transaction.relate(pair, id, to: target, &updated)
                if updated > 0 { touched.insert(far.id) }
            case .link:
                if before != nil,
                    let former = try transaction.row(entity.id, id)?.reference(column),
                    former != target
                {
                    try transaction.removeLink(far, inverse, from: former, to: id)
                }
                if let target { try transaction.addLink(far, inverse, from: target, to: id) }
            case .inverseColumn: break
            }
        }
    }

    // MARK: Blobs

    /// Keeps a blob that was given to a row until its bytes are placed.
    public func keep(_ handle: any AnyObject & Sendable, bytes: Int) {
        handles.append(handle)
        handleBytes += min(bytes, 1 << 20) + 256
    }

    /// After a row was written, which names what was kept for it.
    private func placeIfMany() throws(RecordError) {
        if handleBytes > Self.handleBytesMax { try placeBlobs() }
    }

    /// Writes the bytes of blobs that rows name by now, and lets go of their handles.
    func placeBlobs() throws(RecordError) {
        try reader.engine { () throws(EngineError) in try transaction.storage.placeValues() }
        handles = []
        handleBytes = 0
    }

    /// Puts everything in place that the code has done.
    func finish() throws(RecordError) {
        try reader.engine { () throws(EngineError) in try transaction.storage.applyDeferred() }
        try placeBlobs()
    }
}

/// Goes through the rows of a frozen state, a chunk at a time.
struct StageRowReader {
    private static let chunkBytes = 128 << 10
    private static let chunkRows = MigrationControl.rowsPerReport

    private let entity: RecordEntity
    private let frozen: FrozenState
    private var rows: [(id: ObjectID, range: Range<Int>)] = []
    private var next = ObjectID(0)

    /// Rows of the chunk that was read last.
    var count: Int { rows.count }

    init(_ entity: RecordEntity, _ frozen: FrozenState) {
        self.entity = entity
        self.frozen = frozen
    }

    /// Reads the next chunk and lends its rows; false: there are none.
    mutating func next(
        into row: StageRow,
        beforeChunk: ([ObjectID]) throws -> Void = { _ in },
        _ body: (StageRow) throws -> Void
    ) throws -> Bool {
        var chunk = row.giveBack()
        chunk.removeAll(keepingCapacity: true)
        rows.removeAll(keepingCapacity: true)
        try read(&chunk)
        row.take(chunk: chunk)
        chunk = []
        if !rows.isEmpty { try beforeChunk(rows.map(\.id)) }
        for (id, range) in rows {
            try row.show(id, range)
            try body(row)
        }
        guard let last = rows.last?.id, last.rawValue < .max else { return false }
        next = ObjectID(last.rawValue + 1)
        return true
    }

    private mutating func read(_ chunk: inout [UInt8]) throws(RecordError) {
        var key: [UInt8] = []
        KeyCoding.appendObjectID(next, to: &key)
        var list = rows
        rows = []
        var bytes = ByteWriter(appendingTo: chunk)
        chunk = []
        defer {
            rows = list
            chunk = bytes.bytes
        }
        do throws(EngineError) {
            var cursor = try frozen.cursor(entity.tree)
            guard try cursor.seek(atOrAfter: key) else { return }
            try cursor.visitRows { id, _, row in
                let start = bytes.count
                bytes.raw(row, 0..<row.count)
                list.append((id, start..<bytes.count))
                return list.count < Self.chunkRows && bytes.count < Self.chunkBytes
            }
        } catch {
            throw .engine(error)
        }
    }
}
