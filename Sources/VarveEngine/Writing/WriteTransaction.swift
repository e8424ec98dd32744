// A write transaction: row changes on a state that nobody else sees yet.
//
// Invariants
// - Lives inside one `Engine.write` call, under the writer lock.
// - Every change goes through `StateEditor` and, while the commit may still be a DELTA, into the
//   list of operations; a replay of that list does the same again.
// - A change that failed may be half done: a transaction with a `failure` never commits.

public import VarveBase
public import VarveFormat

/// Changes that become one commit, or nothing.
public final class WriteTransaction {
    let editor: StateEditor
    let loader: NodeCache
    /// Holds the log while `Engine.write` lets the transaction change things.
    let spill: Spill
    private let options: EngineOptions
    private let delegate: any EngineDelegate
    // Asked for or changed with every row. Exclusivity is not checked at run time: a transaction
    // has one thread, and each function here reads or writes these at once and calls nobody in
    // between.
    @safe @exclusivity(unchecked) private(set) var operations = ByteWriter()
    @safe @exclusivity(unchecked) var operationCount: UInt64 = 0
    /// True when the changes cannot or should not be written as DELTA.
    @safe @exclusivity(unchecked) var needsTree = false
    /// Stamps that no node has.
    let takeStamp: () -> UInt64
    private(set) var schemaChanged = false
    /// Whether nothing but rows that go: such a commit gives space back.
    var onlyDeletes: Bool {
        !needsTree && deleteCount > 0 && operationCount == deleteCount + noteCount
    }
    /// Operations that tell of this opening, not of rows.
    private var noteCount: UInt64 = 0
    @safe @exclusivity(unchecked) private var deleteCount: UInt64 = 0
    /// The first error of a change.
    @safe @exclusivity(unchecked) private(set) var failure: EngineError?
    private let objectIDs: ObjectIDs
    @safe @exclusivity(unchecked) var changes = TransactionChanges()
    /// Changes of rows that are not in their tree yet.
    @safe @exclusivity(unchecked) private var waiting = WaitingRows()
    /// The change that was put in place last, and whether all came in the order of objects.
    private var lastSettled: (entity: EntityID, object: ObjectID)?
    private var rowsAscend = true
    /// The columns of the patch before: most change the same ones.
    @safe @exclusivity(unchecked) private var patchColumns: [ColumnID] = []

    init(
        editor: StateEditor,
        loader: NodeCache,
        spill: Spill,
        objectIDs: ObjectIDs,
        options: EngineOptions,
        delegate: any EngineDelegate,
        takeStamp: @escaping () -> UInt64
    ) {
        self.takeStamp = takeStamp
        self.objectIDs = objectIDs
        self.spill = spill
        self.editor = editor
        self.loader = loader
        self.options = options
        self.delegate = delegate
    }

    /// The number that this commit will have.
    public var number: CommitNumber { editor.number }
    /// The stored schema's bytes as this transaction has them.
    public var schema: [UInt8] { editor.schema }
    /// Whether nothing was changed yet.
    public var isEmpty: Bool { operationCount == 0 && !schemaChanged && !needsTree }

    // MARK: Reading, as `Snapshot`, on the changed state

    /// One row of an entity's tree, or nil. - Complexity: O(log n).
    public func row(_ tree: TreeID, _ object: ObjectID) throws(EngineError) -> StoredRow? {
        try settled(tree).row(object)
    }

    /// The tree with all changes so far in it. An index that could not be brought up to date is
    /// half changed.
    private func settled(_ tree: TreeID) throws(EngineError) -> Tree {
        if let failure { throw failure }
        do throws(EngineError) {
            try applyDeferredRows()
            return try editor.tree(tree)
        } catch {
            failure = failure ?? error
            throw error
        }
    }

    /// Rows of ascending object IDs in one pass, but for missing ones. `body` changes nothing.
    /// - Complexity: O(IDs + leaves touched x depth).
    public func rows(
        _ tree: TreeID,
        _ objects: [ObjectID],
        _ body: (Int, StoredRow) -> Void
    ) throws(EngineError) {
        try settled(tree).rows(objects, body)
    }

    /// The value of a key, or nil. - Complexity: O(log n).
    public func value(_ tree: TreeID, _ key: [UInt8]) throws(EngineError) -> [UInt8]? {
        try settled(tree).value(key)
    }

    /// Number of entries. - Complexity: O(1), and the entries of an index that wait.
    public func count(_ tree: TreeID) throws(EngineError) -> UInt64 {
        try settled(tree).root.rows
    }

    /// Number of entries whose key is below `key`. - Complexity: O(log n).
    public func position(_ tree: TreeID, of key: [UInt8]) throws(EngineError) -> UInt64 {
        try settled(tree).position(of: key)
    }

    /// A cursor over the present state. The next change makes it invalid: use it before.
    public func cursor(_ tree: TreeID) throws(EngineError) -> TreeCursor {
        TreeCursor(try settled(tree))
    }

    /// A large value, also one that this transaction made.
    public func largeValue(
        entity: EntityID,
        object: ObjectID,
        column: ColumnID
    ) throws(EngineError) -> [UInt8] {
        try applyDeferred()
        return try editor.largeValue(entity, object, column)
    }

    // MARK: Rows

    /// Adds a row in the encoding of `RowCoding`, large values inside.
    ///
    /// `object` is from `allocateObjectIDs`; an ID belongs to one object of one entity. One that
    /// the caller chose himself, as a recovery does, is not handed out from here on, nor is any
    /// below it, whether the transaction is committed or not.
    ///
    /// - Throws: `invalid` when the object exists, its ID is 2^62 - 1 or above, or a row names an
    ///   unknown blob; `damaged`, `ioFailed`.
    /// - Complexity: O(log n) for the row and for each index entry.
    public func insert(
        _ entity: EntityID,
        _ object: ObjectID,
        row: [UInt8]
    ) throws(EngineError) {
        try checkNew(object)
        let (stored, moved) = try checked { () throws(FormatError) in
            try RowCoding.movingOutside(row, above: options.inlineValueBytesMax)
        }
        try change { () throws(EngineError) in
            try editor.insert(entity, object, stored: stored, moved: moved)
        }
        noteInserted(entity, object, stored)
    }

    /// The same for a row that its encoder knows, so that nobody looks through it again.
    ///
    /// - Parameter facts: `RowEncoder.facts`, taken after the row.
    public func insert(
        _ entity: EntityID,
        _ object: ObjectID,
        row: [UInt8],
        facts: RowFacts
    ) throws(EngineError) {
        if facts.hasBlobs || facts.largestBody > options.inlineValueBytesMax {
            return try insert(entity, object, row: row)
        }
        try checkNew(object)
        try change { () throws(EngineError) in try editor.insertPlain(entity, object, row: row) }
        noteInserted(entity, object, row)
    }

    /// The log refuses what it cannot read back, and a forged page may hold such a row.
    private func check(_ object: ObjectID) throws(EngineError) {
        guard object.rawValue < DeltaOps.objectsEnd else {
            throw EngineError(.invalid, "object IDs are below 2^62; this one is \(object.rawValue)")
        }
    }

    private func checkNew(_ object: ObjectID) throws(EngineError) {
        guard object.rawValue < DeltaOps.newObjectsEnd else {
            throw EngineError(
                .invalid,
                "IDs of new objects are below 2^62 - 1; this one is \(object.rawValue)"
            )
        }
    }

    /// An ID that no object ever had, for a row that this transaction adds.
    public func newObjectID() -> ObjectID { ObjectID(objectIDs.take(1)) }

    private func noteInserted(_ entity: EntityID, _ object: ObjectID, _ row: [UInt8]) {
        changes[entity].inserted.add(object)
        // An ID that the caller chose is taken for good, even if the transaction is given up.
        objectIDs.tookOver(object)
        // A log that will not have the row needs no operation with a reference to it.
        if needsTree {
            operationCount += 1
        } else {
            log(.insert(entity: entity, object: object, row: row))
        }
    }

    /// Changes columns of a row; `patch` in the encoding of `RowPatch`. The change may wait until
    /// something is read or the transaction ends, and so may its failure.
    ///
    /// - Throws: `objectMissing` when there is no such row, `invalid` when the patch is none
    ///   or the ID is 2^62 or above, `damaged`, `ioFailed`.
    /// - Complexity: as `insert`; many changes are put in place in the order of their objects.
    public func update(
        _ entity: EntityID,
        _ object: ObjectID,
        patch: [UInt8]
    ) throws(EngineError) {
        try check(object)
        let (stored, moved) = try checked { () throws(FormatError) in
            let parsed = try RowPatch(patch, patch.indices, like: patchColumns)
            patchColumns = parsed.columns
            return try parsed.movingOutside(above: options.inlineValueBytesMax)
        }
        if moved.isEmpty {
            if let failure { throw failure }
            waiting.update(entity, object, patch: stored)
            try settleRowsIfMany()
        } else {
            let parsed = try checked { () throws(FormatError) in try RowPatch(stored) }
            try change { () throws(EngineError) in
                try editor.update(entity, object, patch: parsed, moved: moved)
            }
        }
        changes[entity].updated.add(object)
        if needsTree {
            operationCount += 1
        } else {
            log(.update(entity: entity, object: object, patch: stored))
        }
    }

    /// Takes a row out; like a change, that may wait.
    ///
    /// - Throws: `objectMissing` when there is no such row, `invalid` when the ID is 2^62 or above,
    ///   `damaged`, `ioFailed`.
    public func delete(_ entity: EntityID, _ object: ObjectID) throws(EngineError) {
        try check(object)
        if let failure { throw failure }
        waiting.delete(entity, object)
        try settleRowsIfMany()
        noteDeleted(entity, object)
    }

    /// Takes a row out at once if there is one.
    ///
    /// - Throws: `damaged`, `ioFailed`.
    public func deleteIfPresent(
        _ entity: EntityID,
        _ object: ObjectID
    ) throws(EngineError) -> Bool {
        var wasThere = false
        try change { () throws(EngineError) in
            // Of a page, not of the caller: it says so as the transaction's failure.
            try check(object)
            wasThere = try editor.deleteIfPresent(entity, object)
        }
        if wasThere { noteDeleted(entity, object) }
        return wasThere
    }

    private func noteDeleted(_ entity: EntityID, _ object: ObjectID) {
        changes[entity].deleted.add(object)
        deleteCount += 1
        log(.delete(entity: entity, object: object))
    }

    // MARK: Rows that wait

    /// Puts the changes of rows in place that wait; what they fail with, fails here.
    ///
    /// - Throws: `objectMissing`, `damaged`, `ioFailed`, `noSpace`.
    public func applyDeferred() throws(EngineError) { try change { () throws(EngineError) in } }

    /// Keeps what waits within the budget of sorting.
    private func settleRowsIfMany() throws(EngineError) {
        guard waiting.bytes > options.sortBytesMax else { return }
        if let failure { throw failure }
        do throws(EngineError) {
            try applyDeferredRows(isLast: false)
        } catch {
            failure = error
            throw error
        }
    }

    /// Puts what waits in place, leaf by leaf.
    ///
    /// - Parameter isLast: false when as many are likely to come again, to the same leaves.
    private func applyDeferredRows(isLast: Bool = true) throws(EngineError) {
        if waiting.isEmpty { return }
        var rows = WaitingRows()
        swap(&rows, &waiting)
        rows.sort()
        let isFirst = lastSettled == nil
        if let last = lastSettled, rowsAscend { rowsAscend = !rows.row(at: 0, isBelow: last) }
        lastSettled = rows.row(at: rows.count - 1)
        // After changes in the order of objects leaves are finished. Few changes in no order come
        // back to them; and few may be written as row changes, which is less.
        let isManyAtOnce = isLast && rows.count >= LeafReadAhead.changesMin
        let ahead = isFirst || rowsAscend ? try readAhead(rows) : nil
        defer { ahead?.end() }
        let patches = rows.patchBytes
        for index in 0..<rows.count {
            ahead?.advance(from: index - 1, to: index)
            let (entity, object, patch) = rows.change(at: index)
            if let patch {
                let parsed = try checked { () throws(FormatError) in
                    try RowPatch(patches, patch, like: patchColumns)
                }
                patchColumns = parsed.columns
                try editor.update(entity, object, patch: parsed, moved: [])
            } else if try !editor.deleteIfPresent(entity, object) {
                throw StateEditor.isMissing(entity, object)
            }
            if needsTree, rowsAscend || isManyAtOnce { try editor.spillFinished(entity) }
            try editor.spillIfLarge()
        }
        rows.removeAll()
        waiting = rows
    }

    private func readAhead(_ rows: WaitingRows) throws(EngineError) -> LeafReadAhead? {
        if rows.count < LeafReadAhead.changesMin { return nil }
        var trees: [EntityID: Tree] = [:]
        for entity in rows.entities {
            trees[entity] = editor.baseTree(try editor.rowTree(entity))
        }
        return LeafReadAhead.start(rows.count, options) { [trees] index throws(EngineError) in
            let (entity, object) = rows.row(at: index)
            let last = try trees[entity]?.restoreLeaf(of: object)
            return rows.next(behind: index, above: last ?? object)
        }
    }

    // MARK: Schema

    /// Replaces the stored schema; what follows is derived with the new one.
    ///
    /// The commit becomes a TREE commit, so no replay ever crosses a change of schema.
    ///
    /// - Throws: `invalid` when the delegate does not understand the bytes.
    public func replaceSchema(_ bytes: [UInt8], version: UInt32) throws(EngineError) {
        let deriver: any IndexDeriver
        do throws(FormatError) {
            deriver = try delegate.makeDeriver(schema: bytes)
        } catch {
            throw EngineError(.invalid, error.description, cause: error)
        }
        try check(valueBytes: bytes.count)
        try change { () throws(EngineError) in
            try editor.setSchema(bytes, version: version, deriver: deriver)
        }
        schemaChanged = true
        needsTree = true
    }

    /// Empties a tree whose entity or index is gone.
    public func dropTree(_ tree: TreeID) throws(EngineError) {
        try change { () throws(EngineError) in try editor.editor(tree).removeAll() }
        needsTree = true
    }

    /// Derives the entries of some indexes of an entity anew from its rows.
    ///
    /// - Parameter afterRows: told how many rows were read, now and then; when it says false, the
    ///   transaction fails with `cancelled`.
    /// - Complexity: O(n log n); sorts some megabytes of new keys at a time.
    public func rebuildIndexes(
        _ indexes: [TreeID],
        of entity: EntityID,
        afterRows: (Int) -> Bool = { _ in true }
    ) throws(EngineError) {
        try change { () throws(EngineError) in try rebuild(indexes, of: entity, afterRows) }
    }

    private func rebuild(
        _ indexes: [TreeID],
        of entity: EntityID,
        _ afterRows: (Int) -> Bool
    ) throws(EngineError) {
        needsTree = true
        var count = 0
        for index in indexes { try editor.editor(index).removeAll() }
        var rows = try cursor(try editor.rowTree(entity))
        var hasRow = try rows.first()
        while hasRow {
            let object = try rows.trailingObjectID()
            let row = try rows.row()
            let full = try editor.derivableRow(entity, object, row.bytes)
            try editor.addEntries(entity, object, full, of: indexes)
            hasRow = try rows.next()
            count += 1
            if count % 1_024 == 0 || !hasRow, !afterRows(count) {
                throw EngineError(.cancelled, "the change of the schema was cancelled")
            }
        }
    }

    // MARK: Facts

    /// Sets a fact in a tree that holds no rows.
    public func put(_ tree: TreeID, _ key: [UInt8], _ value: [UInt8]) throws(EngineError) {
        guard key.count <= DeltaOps.keyBytesMax else {
            throw EngineError(.limitExceeded, "a key has \(key.count) bytes, the limit is 1024")
        }
        try check(valueBytes: value.count)
        try change { () throws(EngineError) in try editor.editor(tree).put(key, value) }
        log(.put(tree: tree, key: key, value: value))
    }

    /// Takes a fact out.
    public func remove(_ tree: TreeID, _ key: [UInt8]) throws(EngineError) {
        try change { () throws(EngineError) in try editor.editor(tree).remove(key) }
        log(.remove(tree: tree, key: key))
    }

    /// A fact lies in a page, whatever else is on it.
    private func check(valueBytes count: Int) throws(EngineError) {
        guard count <= EngineOptions.valueBytesMax else {
            throw EngineError(
                .limitExceeded,
                "a fact has \(count) bytes, the limit is \(EngineOptions.valueBytesMax)"
            )
        }
    }

    func change(_ body: () throws(EngineError) -> Void) throws(EngineError) {
        if let failure { throw failure }
        do throws(EngineError) {
            try applyDeferredRows()
            try body()
            try editor.spillIfLarge()
        } catch {
            failure = error
            throw error
        }
    }

    // MARK: What the commit needs

    /// No more changes: brings every tree up to date while the log is still the transaction's.
    func finishChanges() throws(EngineError) {
        try change { () throws(EngineError) in try editor.applyDeferredIndexes() }
    }

    /// Puts an opening into the account of openings; as late as possible, like `finishChanges`.
    func noteEpoch(_ epoch: UInt64, isRecovered: Bool = false) throws(EngineError) {
        let before = operationCount
        if isRecovered {
            try put(.catalog, EpochAccount.recovered.key, EpochAccount.recovered.value)
        }
        if let oldest = try EpochAccount.surplus(in: settled(.catalog)) {
            try remove(.catalog, oldest)
        }
        try put(.catalog, EpochAccount.key(number.rawValue), EpochAccount.value(epoch))
        noteCount += operationCount - before
    }

    /// The opening that the newest commit of the account is of.
    func newestEpoch() throws(EngineError) -> UInt64? {
        try EpochAccount.epoch(of: .max, in: settled(.catalog))
    }

    private func log(_ operation: DeltaOperation) {
        operationCount += 1
        if needsTree { return }
        DeltaOps.append(operation, to: &operations)
        if operations.count > options.deltaBytesMax {
            needsTree = true
            operations = ByteWriter()
        }
    }

    /// What an app hands over and does not fit the format is its mistake.
    private func checked<R: ~Copyable>(
        _ body: () throws(FormatError) -> R
    ) throws(EngineError) -> R {
        do throws(FormatError) { return try body() } catch {
            throw EngineError(.invalid, error.description, cause: error)
        }
    }
}
